"""The composition root: builds an engine from settings."""

from __future__ import annotations

import copy
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from perdure.domain.accesses import PROGRAM, Access, Asker
from perdure.domain.errors import InvalidInput
from perdure.domain.limits import Limits
from perdure.domain.portable import ExportReport, ImportReport
from perdure.domain.recall import parse_blend
from perdure.domain.reports import BackupReport, DoctorReport, Health, ProcessReport, PurgeReport, StoreFile, VerifyReport
from perdure.domain.scope import DEFAULT, RESERVED, Owner, Scope
from perdure.engine.upkeep import CURATE, EXTRACT
from perdure.handles.agents import AgentHandle
from perdure.handles.api_keys import ApiKeyHandle
from perdure.handles.chatting import Chat
from perdure.handles.knowledge import KnowledgeServices
from perdure.handles.memory import Memory, MemoryServices, bound
from perdure.handles.oversight import OversightServices
from perdure.handles.portable import Importation, Source, import_all
from perdure.handles.recall import RecallServices
from perdure.handles.series import SeriesServices
from perdure.handles.watching import space_scope, told, watched
from perdure.parts import (
    Models,
    check_reranker,
    embedder_of,
    helpers_of,
    near_words,
    open_store,
    token_count,
    word_vectors,
)
from perdure.ports.clock import Clock
from perdure.ports.contexts import ContextStore
from perdure.ports.index import INDEX_JOB
from perdure.ports.paths import check_path
from perdure.ports.store import Progress, Store, check_progress
from perdure.services.accessing import AccessLog, noting
from perdure.services.aggregates import Aggregates
from perdure.services.api_keys import ApiKeys
from perdure.services.auditing import Auditing
from perdure.services.backup import backup, check_file
from perdure.services.backup import restore as restore_file
from perdure.services.consulting import Consultant
from perdure.services.contexts import StoredContexts
from perdure.services.curating import Curating
from perdure.services.doctor import Doctor
from perdure.services.embedders import Embedders
from perdure.services.entities import Entities
from perdure.services.exporting import Target
from perdure.services.extracting import Extracting
from perdure.services.forgetting import Forgetting
from perdure.services.history import History
from perdure.services.indexing import Indexing
from perdure.services.instructions import Instructions
from perdure.services.keeping import Keeper
from perdure.services.knowing import Knowing
from perdure.services.knowledge import Knowledge
from perdure.services.logged_contexts import LoggedContexts
from perdure.services.once import Once
from perdure.services.overseeing import Overseer
from perdure.services.overviewing import Overviewing
from perdure.services.readthrough import ReadThrough
from perdure.services.recalling import Recalling
from perdure.services.retention import CLEANUP, cleanup_handler, cleanup_job
from perdure.services.series import SeriesService
from perdure.services.shelves import Shelves
from perdure.services.state import StateService
from perdure.services.todos import Todos
from perdure.services.touching import Mention
from perdure.services.undoing import Undoing
from perdure.services.verify import verify
from perdure.services.work import TIDY, Background, Handler, Worker, tidy_handler, tidy_job
from perdure.settings import Settings, load
from perdure.wiring import Talk, portable, taught_in

if TYPE_CHECKING:
    from typing import Self, Unpack

BACKGROUND_REST = 1.0
"""Python runs one thread at a time. Half of it at most goes to the jobs, the rest stays with those who wait for an answer."""


def open(  # noqa: A001 - `perdure.open` reads as what it is, and nothing in this module needs the builtin
    url: str | None = None,
    *,
    background: bool = False,
    settings: Settings | None = None,
    clock: Clock | None = None,
    **models: Unpack[Models],
) -> Engine:
    """Open the store at `url`, making it if it is new.

    Without a URL, the settings name it, else it is a SQLite file in the user's data directory. With `background=True`
    a thread of this process runs the jobs until `close()`; otherwise `perdure worker` or `process()` does. Summaries
    are written by `summariser`, and memories are proposed by `extractor`; without them, by `model` or the one that the
    settings name; without that, by rules.
    Meaning is compared by `embedder`, else by the one that the settings name; `reranker` has a last look at what was found.
    """
    chosen = _chosen(settings, url)
    if clock is None:
        clock = _system_clock()
    if not all(callable(getattr(clock, name, None)) for name in ("now", "monotonic", "new_id", "chance")):
        raise InvalidInput(f"`clock` is a `{type(clock).__name__}`; pass one that has what `perdure.testing.StoppedClock` has")
    unknown = [name for name in models if name not in Models.__annotations__]
    if unknown:
        raise TypeError(f"open() got an unexpected keyword argument {unknown[0]!r}")
    return Engine(open_store(chosen), clock, chosen, background=background, models=models)


def restore(
    path: str | os.PathLike[str],
    url: str | None = None,
    *,
    replace: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Mapping[str, int]:
    """Fill the store at `url` from a backup, whichever kind of store that was made on; the rows taken over, by table.

    All or nothing. A store that holds data is a `Conflict` unless `replace=True`. Its access log is then that of the backup; if
    the setting `access_log` is on, the log of the space tells of the restore.
    """
    return restored(path, _chosen(settings, url), replace=replace, progress=progress, asker=PROGRAM)


def restored(
    path: str | os.PathLike[str], chosen: Settings, *, replace: bool, progress: Progress | None, asker: Asker
) -> Mapping[str, int]:
    """`restore`, as one who asks by a face."""
    check_progress(progress)
    # First the file: a wrong name must not leave a new, empty store behind.
    file = check_path(path, "path")
    check_file(file)
    store = open_store(chosen)
    try:
        if chosen.access_log == "off":
            return restore_file(store, file, replace=replace, progress=progress)
        log = AccessLog(store, _system_clock(), chosen.limits, chosen.access_log, asker)
        work = partial(restore_file, store, file, replace=replace, progress=progress)
        return log.restoring(space_scope(chosen.space), lambda through: work(through=through))
    finally:
        store.close()


def _system_clock() -> Clock:
    from perdure.adapters.system import SystemClock

    return SystemClock()


def _chosen(settings: Settings | None, url: str | None) -> Settings:
    """The settings that are meant, from either."""
    if settings is None:
        return load(url=url)
    if url is not None:
        raise InvalidInput("`url` and `settings` are both given; put the URL into the settings")
    if not isinstance(settings, Settings):
        raise InvalidInput(f"`settings` is a `{type(settings).__name__}`; pass `perdure.Settings`")
    return settings


class Engine:
    """A store and what concerns it as a whole. Data is reached through `memory()`, which binds a scope.

    Safe to share between threads. After a fork, parent and child may both go on using it; a background thread stays
    with the parent.
    """

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        *,
        background: bool = False,
        models: Models | None = None,
    ) -> None:
        given: Models = {} if models is None else models
        self._store = store = noting(store, settings.access_log)
        self._clock = clock
        self._settings = settings
        self._history = History(store, settings.limits)
        limits = settings.limits
        known = Knowledge(store, clock, limits)
        todos, orders = Todos(store, clock, limits), Instructions(store, clock, limits)
        limit = settings.series_max_entries
        series = SeriesService(store, clock, limits, None if limit == 0 else limit)
        check_reranker(given.get("reranker"))
        embedders = Embedders(settings.embedder, given.get("embedder"), partial(embedder_of, key=settings.embedder_key))
        recalling = Recalling(
            store, clock, limits, settings.zone, Shelves(), embedders, near_words, token_count(settings.tokenizer),
            parse_blend(settings.recall_blend), series, given.get("reranker"),
        )  # fmt: skip
        indexing = Indexing(store, clock, embedders.current, settings.zone)
        helpers = helpers_of(store, clock, settings, given)
        self._closings, self._model_name = (helpers.close, embedders.close), helpers.consultant.name
        consultant = helpers.consultant
        taught = taught_in(store, clock, settings)
        knowing = Knowing(store, clock, known, todos, orders, recalling, taught.lessons)
        talk = Talk(store, clock, settings, helpers.summariser, knowing)
        self._ingest = talk.services.ingest
        knowledge = KnowledgeServices(
            known,
            Undoing(store, clock),
            Entities(store, clock, limits),
            todos,
            orders,
            Extracting(store, clock, helpers.extractor, settings.zone, helpers.rules),
            Curating(store, clock),
            Forgetting(store, clock, talk.transcripts, taught.lessons, settings.zone),
            Auditing(store, clock),
        )
        state = StateService(store, clock, settings.limits)
        self._services = MemoryServices(
            clock,
            self._ingest,
            self._history,
            talk.services,
            state,
            SeriesServices(series, Aggregates(store), ReadThrough(store, series)),
            talk.transcripts,
            knowledge,
            RecallServices(recalling, indexing),
            self._overseeing(consultant, state, knowing),
            taught,
            Overviewing(store, clock, settings.zone),
            portable(store, clock, settings, known, (taught.lessons, todos)),
            AccessLog(store, clock, limits, settings.access_log),
        )
        self._handlers: dict[str, Handler] = {
            TIDY: tidy_handler(store, clock),
            CLEANUP: cleanup_handler(store, series),
            **talk.handlers,
            EXTRACT: knowledge.extracting.handle,
            CURATE: knowledge.curating.handle,
            INDEX_JOB: indexing.handle,
        }
        self._background = Background(replace(self.worker(), rest=BACKGROUND_REST)) if background else None

    def _overseeing(self, consultant: Consultant, state: StateService, knowing: Knowing) -> OversightServices:
        store, clock, settings, recalling = self._store, self._clock, self._settings, knowing.recalling
        overseer = Overseer(
            store, clock, state, recalling.series, recalling, knowing, consultant, recalling.count, settings.zone,
            settings.week_start, timedelta(seconds=settings.session_idle_s),
            None if settings.embedder == "none" else word_vectors,
        )  # fmt: skip
        return OversightServices(
            store, overseer, Keeper(store, clock, state, recalling.series, consultant, settings.save_results)
        )

    @property
    def limits(self) -> Limits:
        """The bounds in force; errors quote their names."""
        return self._settings.limits

    def memory(self, user: str, *, agent: str = DEFAULT, channel: str = DEFAULT, space: str | None = None) -> Memory:
        """A handle bound to one scope: this user, talking with this agent, on this channel."""
        scope = Scope.of(user, agent=agent, channel=channel, space=self._settings.space if space is None else space)
        return bound(scope, self._services)

    @property
    def agents(self) -> AgentHandle:
        """The agents of the space that the settings name: the texts that make them, and the channels they answer on."""
        agents = AgentHandle(self._settings.space, self._services.lessons.prompting.agents)
        return watched(agents, self._access_log, space_scope(self._settings.space))

    @property
    def space(self) -> str:
        """The application or customer that data belongs to when a call names none."""
        return self._settings.space

    @property
    def zone(self) -> str:
        """The time zone of the users, as the settings name it."""
        return self._settings.zone

    @property
    def default_user(self) -> str:
        """The user that is meant where a call of the command line or a page names none; empty: nobody."""
        return self._settings.user

    @property
    def api_keys(self) -> ApiKeyHandle:
        """The keys that let callers in over the network, to the space that the settings name."""
        keys = ApiKeyHandle(ApiKeys(self._store, self._clock, self._settings.space))
        return watched(keys, self._access_log, space_scope(self._settings.space))

    @told
    def users(self, *, limit: int = 1_000) -> Sequence[str]:
        """The users of the space that the settings name, in order."""
        rows = self._settings.limits.page(limit)
        found = {owner.user for owner in self._services.recall.indexing.owners() if owner.space == self._settings.space}
        return sorted(user for user in found if not user.startswith(RESERVED))[:rows]

    @told
    def accesses(self, limit: int = 50, *, before: str | None = None) -> Sequence[Access]:
        """Who did what that concerned the whole space, newest first: what was logged while the setting `access_log` was on."""
        return self._access_log.list_(space_scope(self._settings.space).owner, limit=limit, before=before)

    @property
    def _access_log(self) -> AccessLog:
        return self._services.log

    def process(self, seconds: float = 10.0) -> ProcessReport:
        """Run the jobs that are due, until none is or the time is up."""
        return self.worker().process(seconds)

    def worker(self) -> Worker:
        """A job worker on this store, for a host that wants to run it itself."""
        name = f"{socket.gethostname()}-{os.getpid()}-{threading.get_ident():x}"
        return Worker(
            self._store, self._clock, self._handlers, name, repeating=(tidy_job(self._clock), cleanup_job(self._clock))
        )

    def verify(self, progress: Progress | None = None) -> VerifyReport:
        """Check every invariant, on one consistent snapshot; nothing is changed."""
        return verify(self._store, check_progress(progress))

    @told
    def backup(self, path: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None) -> BackupReport:
        """Write everything to one file, as of one moment, while writers go on."""
        return backup(self._store, check_path(path, "path"), replace=replace, progress=progress)

    @told
    def export(self, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """Write every row of each user of the space to one file, as of one moment, and what they share; see `Memory.export`."""
        return self._services.portable.exporting.export_all(self._settings.space, to, replace=replace, progress=progress)

    @told
    def import_(
        self, source: Source, *, replace: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        """Take over the users of a lossless export under the names they have there, each in one transaction.

        A user that holds data is a `Conflict`, and nothing is changed, unless `replace`.
        """
        how = Importation(replace=replace, dry_run=dry_run, progress=progress)
        return import_all(self._settings.space, self._services.portable, source, how)

    def doctor(self) -> DoctorReport:
        """Prove a round trip through the store, and say what is degraded."""
        return self._doctor.examine(self._troubles(self._trouble()))

    def health(self) -> Health:
        """What is degraded, and how much there is of everything: a look only, cheap enough to ask for again and again."""
        space, trouble = self._settings.space, self._trouble()
        owners = [owner for owner in self._services.recall.indexing.owners() if owner.space == space]
        users = sum(not owner.user.startswith(RESERVED) for owner in owners)
        return replace(self._doctor.look(self._troubles(trouble), users), worker_trouble=trouble)

    def _trouble(self) -> str | None:
        return None if self._background is None else self._background.trouble()

    def _troubles(self, trouble: str | None) -> tuple[str, ...]:
        return () if trouble is None else (f"background worker: {trouble}",)

    @property
    def _doctor(self) -> Doctor:
        versions = {"perdure": _version()}
        return Doctor(self._store, self._clock, self._ingest, self._history, self._handlers, versions, self._model_name)

    @told
    def purge(self) -> PurgeReport:
        """Forget finished jobs, and give freed space back so that deleted data leaves the disk too."""
        before = self._store.describe().bytes
        removed = self._store.remove_done(before=self._clock.now())
        self._store.purge()
        return PurgeReport(removed, before, self._store.describe().bytes)

    @told
    def reindex(self, progress: Progress | None = None) -> Mapping[Owner, int]:
        """Make the search index of every user anew, while the old ones answer; how many entries each has."""
        indexing = self._services.recall.indexing
        return {owner: indexing.reindex(owner, progress) for owner in indexing.owners()}

    def files(self) -> tuple[StoreFile, ...]:
        """The files that hold the data, as far as this process can see them."""
        return self._store.files()

    def close(self) -> None:
        """Stop the background thread, release the store. Closing again does nothing."""
        if self._background is not None:
            self._background.stop()
            self._background = None
        for close in self._closings:
            close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def asked_by(engine: Engine, asker: Asker) -> Engine:
    """The same engine, with another one asking, as the access log has it."""
    if not engine._access_log.on:
        return engine
    seen = copy.copy(engine)
    seen._services = replace(engine._services, log=engine._access_log.seen_by(asker))
    return seen


def requests_of(engine: Engine) -> Once:
    """What remembers which requests were carried out, for a skin whose callers repeat them."""
    return Once(engine._store, engine._clock)


def log_repeat(engine: Engine, user: str | None, request: str) -> None:
    """Have it in the access log that a caller was given the answer to a request of theirs again."""
    log = engine._access_log
    if log.on:
        scope = space_scope(engine.space) if user is None else engine.memory(user).scope
        log.around(scope, "repeat", "read", lambda: None, lambda _: (Mention("request", request),))


def chat_with(engine: Engine, memory: Memory) -> Chat:
    """A chat at the address of `memory`, with the model of the engine if it has one."""
    return Chat(memory, engine._services.oversight.keeper.consultant)


def context_store(engine: Engine, *, user: str | None = None, space: str | None = None) -> ContextStore:
    """Context documents as a view over an engine's store, for one user or for all; see `perdure.contexts`."""
    talk = engine._services.conversation
    chosen = engine._settings.space if space is None else space
    Scope.of("any" if user is None else user, space=chosen)  # which checks both
    held = StoredContexts(engine._store, engine._clock, talk.ingest, talk.folding, talk.sessions, chosen, user)
    return LoggedContexts(held, engine._access_log) if engine._access_log.on else held


def _version() -> str:
    from importlib.metadata import version

    return version("perdure")
