"""`ContextManager` keeps context documents, in a folder or in a store; `ContextCompactor` keeps them small."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from types import MethodType, TracebackType
from typing import TYPE_CHECKING, ClassVar, Concatenate, Generic, Literal, ParamSpec, TypeVar, get_args

from perdure.adapters.clock import SystemClock
from perdure.adapters.files.atomic import reading
from perdure.documents.folder import ContextFolder
from perdure.domain.conversation.documents import (
    Archived,
    CompactionReport,
    ContextData,
    ContextDraft,
    ContextStore,
    ContextVersion,
    HistoryEntry,
)
from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.text.rules import brief, check_flag
from perdure.domain.times.instants import to_us
from perdure.engine.documents.compaction import CompactionRules, RuleFields, added, full_history, planned
from perdure.engine.documents.json_form import (
    DOCUMENT_BYTES_MAX,
    check_bytes_max,
    check_context,
    read_foreign_document,
    render_without_secrets,
)
from perdure.ports.clock import Clock
from perdure.ports.files import check_path
from perdure.ports.models import Summariser
from perdure.services.documents.documents import compact, draft_of, loaded, settle, without_secrets

if TYPE_CHECKING:
    from typing import Self, Unpack

    from perdure.aio import AsyncEngine
    from perdure.app import Engine


Storage = Literal["json_files", "store"]
S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


class ContextManager:
    """Keeps context documents: `ContextManager("./data/context")`, or `ContextManager(storage="store", engine=engine)`.

    In a folder, each is a human-readable JSON file; any number of threads and processes of one machine may use it, and
    nothing is made before `initialize`, or before the first `save`. In a store, a document is a view over the session
    that its id names as `user:agent:session`: its history is the working set, its summary the newest fold. With `user`,
    the manager reaches that user's documents only. The engine stays the caller's, who closes it.
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str] | None = None,
        *,
        storage: Storage = "json_files",
        engine: Engine | AsyncEngine | None = None,
        user: str | None = None,
        space: str | None = None,
        clock: Clock | None = None,
        document_bytes_max: int = DOCUMENT_BYTES_MAX,
    ) -> None:
        self._bytes_max = check_bytes_max(document_bytes_max)
        self._store: ContextStore
        if storage == "json_files":
            _refuse(storage, engine=engine, user=user, space=space)
            if base_path is None:
                raise InvalidInput('`base_path` is missing; name a folder, or pass `storage="store"` and `engine`')
            folder = check_path(base_path, "base_path")
            self._store = ContextFolder(folder, clock or _system_clock(), document_bytes_max=document_bytes_max)
        elif storage == "store":
            _refuse(storage, base_path=base_path, clock=clock)
            self._store = _view(engine, user, space)
        else:
            raise InvalidInput(f"`storage` = {brief(storage)} is unknown; use one of {', '.join(get_args(Storage))}")

    def initialize(self) -> None:
        """Create the folder if needed. Temporary files of saves that were interrupted are removed."""
        self._store.initialize()

    def load(self, session_id: str, *, revision: int | None = None) -> ContextData:
        """The document of a session; a new one, not yet stored, if there is none.

        In a folder, a file that cannot be read is put aside and the last good revision comes back; `notes` says so, and
        so does a warning in the log. A file that somebody edited counts as it is. With `revision`, the document as it was
        saved then, to look at; `NotFound` if that is not kept.
        """
        return loaded(self._store, session_id, revision)

    def versions(self, session_id: str) -> list[ContextVersion]:
        """The kept revisions, newest first: three of each document."""
        return self._store.versions(session_id)

    def save(self, context: ContextData) -> int:
        """Store a document and what compaction took out of it; returns its new revision.

        `Conflict` if the stored document is no longer the one that was loaded: load it again and repeat the change.
        """
        draft = self._draft(context)
        done = self._store.save(draft)
        settle(context, draft, done)
        return done.revision

    def delete(self, session_id: str) -> bool:
        """Remove the document with its earlier revisions and its history. False if there was nothing.

        In a store, the messages of the session are deleted, and what was derived from them.
        """
        return self._store.delete(session_id)

    def list_sessions(self) -> list[str]:
        """The ids of all stored documents, sorted."""
        return self._store.list_sessions()

    def history(self, session_id: str) -> list[HistoryEntry]:
        """Every entry ever saved, in order, also those that compaction took out."""
        context, archived = self._store.with_archive(session_id)
        return full_history(archived, context.recent_history)

    def archive(self, session_id: str) -> Sequence[Archived]:
        """Everything that compaction took out, oldest first."""
        return self._store.with_archive(session_id)[1]

    def import_file(self, path: str | os.PathLike[str], *, replace: bool = False) -> str:
        """Import a file of another program; returns its session id.

        The file stays where it is, with fields of its own that a document does not have. Repeating it does nothing;
        `Conflict` if there is another document under the id, unless `replace`.
        """
        file = check_path(path, "path")
        try:
            with reading(file):
                raw = file.read_bytes()
        except FileNotFoundError:
            raise NotFound(f"there is no file {file}; check the name") from None
        try:
            context, _ = read_foreign_document(raw, bytes_max=self._bytes_max)
        except InvalidInput as error:
            raise InvalidInput(f"{file}: {error}") from None
        self._take_over(context, (), replace=replace)
        return context.session_id

    def close(self) -> None:
        """Nothing is held between calls. An engine that was passed stays open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _take_over(self, context: ContextData, archived: Sequence[Archived], *, replace: bool) -> bool:
        """Store a document of another storage with its archive. False if it is here already."""
        check_flag(replace, "replace")
        session_id = context.session_id
        document = render_without_secrets(context, bytes_max=self._bytes_max)
        archived = without_secrets(archived)
        held, held_archived = self._store.with_archive(session_id)
        missing: Sequence[Archived] | None = added((held, held_archived), (context, archived))
        if missing is None and not replace:
            raise Conflict(
                f"there is another document under {session_id!r:.80}, which this one does not continue; pass "
                "`replace=True` to have this one in its place"
            )
        if missing is None:
            self._store.delete(session_id)
            held, missing = ContextData(session_id), archived
        elif not missing and held == context and held.revision:
            return False
        self._store.save(ContextDraft(session_id, document, tuple(missing), held.revision, held.lineage, whole=True))
        return True

    def _draft(self, context: ContextData) -> ContextDraft:
        return draft_of(context, bytes_max=self._bytes_max)


class AsyncContextManager:
    """`ContextManager`, awaited. Use it with `async with`, or `await manager.close()`."""

    def __init__(
        self,
        base_path: str | os.PathLike[str] | None = None,
        *,
        storage: Storage = "json_files",
        engine: Engine | AsyncEngine | None = None,
        user: str | None = None,
        space: str | None = None,
        clock: Clock | None = None,
        document_bytes_max: int = DOCUMENT_BYTES_MAX,
    ) -> None:
        from perdure.aio.calls import Threads  # not for those who do without asyncio

        self._manager = ContextManager(
            base_path,
            storage=storage,
            engine=engine,
            user=user,
            space=space,
            clock=clock,
            document_bytes_max=document_bytes_max,
        )
        self._threads = Threads()

    async def initialize(self) -> None:
        await self._threads.run(self._manager.initialize)

    async def load(self, session_id: str, *, revision: int | None = None) -> ContextData:
        return await self._threads.run(self._manager.load, session_id, revision=revision)

    async def versions(self, session_id: str) -> list[ContextVersion]:
        return await self._threads.run(self._manager.versions, session_id)

    async def save(self, context: ContextData) -> int:
        # Drawn up here and not in the thread: what other tasks do to the context meanwhile belongs to the next save.
        draft = self._manager._draft(context)
        done = await self._threads.run(self._manager._store.save, draft)
        settle(context, draft, done)
        return done.revision

    async def delete(self, session_id: str) -> bool:
        return await self._threads.run(self._manager.delete, session_id)

    async def list_sessions(self) -> list[str]:
        return await self._threads.run(self._manager.list_sessions)

    async def history(self, session_id: str) -> list[HistoryEntry]:
        return await self._threads.run(self._manager.history, session_id)

    async def archive(self, session_id: str) -> Sequence[Archived]:
        return await self._threads.run(self._manager.archive, session_id)

    async def import_file(self, path: str | os.PathLike[str], *, replace: bool = False) -> str:
        return await self._threads.run(self._manager.import_file, path, replace=replace)

    async def close(self) -> None:
        await self._threads.run(self._manager.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def copy_contexts(
    source: ContextManager, target: ContextManager, session_ids: Iterable[str] | None = None, *, replace: bool = False
) -> list[str]:
    """Copy documents with their history, by default all; returns the ids of those that changed.

    What the target holds already is left alone, and what it holds an earlier state of is brought up to date, so the call
    may be repeated. `Conflict` if a document of the target went another way, unless `replace`.
    """
    for name, one in (("source", source), ("target", target)):
        if not isinstance(one, ContextManager):
            raise InvalidInput(f"`{name}` is a `{type(one).__name__}`; pass a `ContextManager`")
    if session_ids is not None and (isinstance(session_ids, str) or not isinstance(session_ids, Iterable)):
        raise InvalidInput(f"`session_ids` is a `{type(session_ids).__name__}`; pass a list of session ids")
    copied = []
    for session_id in source.list_sessions() if session_ids is None else session_ids:
        context, archived = source._store.with_archive(session_id)
        if not context.revision and not archived and context == ContextData(session_id):
            raise NotFound(f"the source has no document {session_id!r:.80}; `list_sessions()` tells what there is")
        shown = source._store.load(session_id)  # on a store, with what is known beside it
        context.facts[:], context.active_tasks[:] = shown.facts, shown.active_tasks
        if target._take_over(context, archived, replace=replace):
            copied.append(session_id)
    return copied


class _OnClassToo(Generic[S, P, T]):
    """A method that may also be called on the class, and then acts on an instance with the defaults."""

    def __init__(self, call: Callable[Concatenate[S, P], T]) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(self, instance: S | None, owner: type[S]) -> Callable[P, T]:
        return MethodType(self._call, owner() if instance is None else instance)


class ContextCompactor:
    """Keeps a document small: `ContextCompactor.compact(context)`, or `ContextCompactor(max_history=100).compact(context)`.

    The rules and their defaults are those of `CompactionRules`. `summariser` writes the summary in place of a line for each
    entry: one of yours, or an engine, whose own it takes.
    """

    compactions: ClassVar[int] = 0
    """How many compactions there were in this process: for the host's metrics."""
    _counting: ClassVar[threading.Lock] = threading.Lock()

    def __init__(
        self, *, clock: Clock | None = None, summariser: Summariser | Engine | None = None, **rules: Unpack[RuleFields]
    ) -> None:
        if unknown := rules.keys() - RuleFields.__annotations__.keys():
            known = ", ".join(sorted(RuleFields.__annotations__))
            raise InvalidInput(f"`{min(unknown)}` is no rule of a compaction; use one of {known}")
        self.rules = CompactionRules(**rules)
        self._clock = clock or _system_clock()
        self._summariser = None if summariser is None else _summariser(summariser)

    @_OnClassToo
    def compact(self, context: ContextData, *, force: bool = False) -> bool:
        """Compact in place if a limit is exceeded; returns whether history or summary changed.

        In this order: more than `max_history` entries leave `keep`; more than `max_tokens` tokens lose their older half
        until they are under; facts are freed of repeats and sorted; tasks that ended a day ago go. Facts and tasks are
        tidied in any case. `force` compacts the history although no limit is exceeded: to `keep`, or to its newer half if
        it has no more than that.

        What leaves the document is kept in `context.archived` until `save` stores it; `last_compaction` tells what was
        done. No cut falls between an assistant entry and the `tool` entries after it. A summariser that fails changes nothing
        of this: then the summary has its lines, and the log says why.
        """
        if not compact(context, self.rules, self._clock.now(), force=force, summariser=self._summariser):
            return False
        with self._counting:
            ContextCompactor.compactions += 1
        return True

    @_OnClassToo
    def plan(self, context: ContextData, *, force: bool = False) -> CompactionReport:
        """What `compact` would do now, without doing it."""
        now_s = to_us(self._clock.now()) // 1_000_000
        return planned(check_context(context), self.rules, now_s=now_s, force=force).report


def _summariser(given: Summariser | Engine) -> Summariser:
    from perdure import app  # not for those who bring one of their own

    found = app.summariser_of(given) if isinstance(given, app.Engine) else given
    if not callable(getattr(found, "summarise", None)):
        raise InvalidInput(f"`summariser` is a `{type(given).__name__}`; pass something with `summarise`, or an engine")
    return found


def _view(engine: Engine | AsyncEngine | None, user: str | None, space: str | None) -> ContextStore:
    from perdure import app  # not for those who use a folder

    if engine is not None and not isinstance(engine, app.Engine):
        engine = getattr(engine, "_sync", None)  # that of the async face
    if not isinstance(engine, app.Engine):
        raise InvalidInput("`engine` must be what `perdure.open` gives; pass `engine=perdure.open(…)`")
    return app.context_store(engine, user=user, space=space)


def _refuse(storage: str, **given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"`{name}` has no meaning with `storage={storage!r}`; leave it out")


@cache
def _system_clock() -> Clock:
    return SystemClock()
