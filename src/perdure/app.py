"""`perdure.open` and `Engine`: a store, what concerns it as a whole, and the handles that reach its data."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Annotated

from perdure.compose.engine import compose
from perdure.compose.models import HostModels
from perdure.compose.store import machine_token as machine_token
from perdure.compose.store import open_store
from perdure.domain.access import PROGRAM, Access, Asker
from perdure.domain.errors import InvalidInput
from perdure.domain.limits import Limits
from perdure.domain.reports import (
    BackupReport,
    ClockReport,
    DistributionReport,
    DoctorReport,
    ExportReport,
    Health,
    ImportReport,
    PartReport,
    ProcessReport,
    PurgeReport,
    StoreFile,
    VerifyReport,
)
from perdure.domain.scope import DEFAULT, RESERVED, Owner, Scope
from perdure.handles.admin import AgentHandle, ApiKeyHandle
from perdure.handles.arguments import BeforeId, DryRun, Limit, Replace
from perdure.handles.memory import Memory, bound
from perdure.handles.operation import Arg, Handle, operation, space_scope, unlogged
from perdure.handles.registry.toolset import HostTool
from perdure.ports.clock import Clock
from perdure.ports.files import Source, Target, check_path
from perdure.ports.store import Progress, Store, check_progress
from perdure.services.access.keys import ApiKeys
from perdure.services.access.log import AccessLog, noting
from perdure.services.access.mentions import Mention
from perdure.services.jobs.idempotency import IdempotentRequests
from perdure.services.jobs.worker import BackgroundWorker, Worker, tidy_job
from perdure.services.series.cleanup import cleanup_job
from perdure.settings import Settings, load

if TYPE_CHECKING:
    from typing import Self, Unpack

    from perdure.domain.conversation.documents import ContextStore
    from perdure.handles.chat import Chat
    from perdure.ports.models import Summariser
    from perdure.services.store.doctor import Doctor

BACKGROUND_REST = 1.0
"""Python runs one thread at a time. Half of it at most goes to the jobs, the rest stays with those who wait for an answer."""


def open(  # noqa: A001 - `perdure.open` reads as what it is, and nothing in this module needs the builtin
    url: str | os.PathLike[str] | None = None,
    *,
    background: bool = False,
    settings: Settings | None = None,
    clock: Clock | None = None,
    **models: Unpack[HostModels],
) -> Engine:
    """Open the store at `url` (or the path of a SQLite file); create it if needed.

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
    unknown = [name for name in models if name not in HostModels.__annotations__]
    if unknown:
        raise TypeError(f"open() got an unexpected keyword argument {unknown[0]!r}")
    return Engine(open_store(chosen), clock, chosen, background=background, models=models)


def restore(
    path: str | os.PathLike[str],
    url: str | os.PathLike[str] | None = None,
    *,
    replace: bool = False,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> Mapping[str, int]:
    """Restore a backup into the store at `url`, of any kind; returns the number of rows by table.

    All or nothing. A store that holds data is a `Conflict` unless `replace=True`. Its access log is then that of the backup; if
    the setting `access_log` is on, the log of the space tells of the restore.
    """
    return restored(path, _chosen(settings, url), replace=replace, progress=progress, asker=PROGRAM)


def restored(
    path: str | os.PathLike[str], chosen: Settings, *, replace: bool, progress: Progress | None, asker: Asker
) -> Mapping[str, int]:
    """`restore`, as one who asks by a face."""
    from perdure.services.store.backup import check_file
    from perdure.services.store.backup import restore as restore_file

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
    from perdure.adapters.clock import SystemClock

    return SystemClock()


def _chosen(settings: Settings | None, url: str | os.PathLike[str] | None) -> Settings:
    """The settings that are meant, from either."""
    if settings is None:
        return load(url=url)
    if url is not None:
        raise InvalidInput("`url` and `settings` are both given; put the URL into the settings")
    if not isinstance(settings, Settings):
        raise InvalidInput(f"`settings` is a `{type(settings).__name__}`; pass `perdure.Settings`")
    return settings


class Engine(Handle):
    """An open store, and everything that concerns it as a whole. Data is reached through `memory()`, which binds a scope.

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
        models: HostModels | None = None,
    ) -> None:
        self._store = store = noting(store, settings.access_log)
        self._clock = clock
        self._settings = settings
        self._composed = composed = compose(store, clock, settings, {} if models is None else models)
        self._services = composed.services
        super().__init__(space_scope(settings.space), composed.services.active_log)
        self._background = BackgroundWorker(replace(self.worker(), rest=BACKGROUND_REST)) if background else None

    @property
    @unlogged("it is a setting")
    def limits(self) -> Limits:
        """The limits in force; errors quote their names."""
        return self._settings.limits

    @unlogged("it opens a handle, whose calls are logged")
    def memory(
        self,
        user: str,
        *,
        agent: str = DEFAULT,
        channel: str = DEFAULT,
        space: str | None = None,
        persona: str | None = None,
    ) -> Memory:
        """A handle bound to one user, agent and channel. `persona` is another word for
        `agent`.
        """
        if persona is not None:
            if agent not in (DEFAULT, persona):
                raise InvalidInput("`agent` and `persona` name two agents; they mean the same, so give one of them")
            agent = persona
        scope = Scope.of(user, agent=agent, channel=channel, space=self._settings.space if space is None else space)
        return bound(scope, self._services)

    @unlogged("it returns no data")
    def add_tool(self, tool: HostTool) -> None:
        """Add a function declared with `@perdure.tool(…)` to `ana.tools`, HTTP and MCP."""
        self._services.tools.add(tool)

    @property
    def agents(self) -> AgentHandle:
        """The agents of the space: their texts and channels."""
        return AgentHandle(self._settings.space, self._services.lessons.prompts.agents, self._log)

    @property
    @unlogged("it is a setting")
    def space(self) -> str:
        """The application or customer that data belongs to when a call names none."""
        return self._settings.space

    @property
    @unlogged("it is a setting")
    def zone(self) -> str:
        """The users' time zone, from the settings."""
        return self._settings.zone

    @property
    @unlogged("it is a setting")
    def default_user(self) -> str:
        """The default user of the command line and the page; may be empty."""
        return self._settings.user

    @property
    def api_keys(self) -> ApiKeyHandle:
        """The API keys of the space."""
        space = self._settings.space
        return ApiKeyHandle(space, ApiKeys(self._store, self._clock, space), self._log)

    @operation("read")
    def users(self, *, limit: Limit = 1_000) -> Sequence[str]:
        """The users of the space, in order."""
        rows = self._settings.limits.page(limit)
        found = {owner.user for owner in self._services.admin.indexer.owners() if owner.space == self._settings.space}
        return sorted(user for user in found if not user.startswith(RESERVED))[:rows]

    @operation("admin")
    def accesses(self, limit: Limit = 50, *, before: BeforeId = None) -> Sequence[Access]:
        """List logged calls that concerned the whole space, newest first."""
        return self._services.log.list_(self.scope.owner, limit=limit, before=before)

    @unlogged("what jobs change is in the journal")
    def process(self, seconds: Annotated[float, Arg("For how long at most.", ge=0)] = 10.0) -> ProcessReport:
        """Run due jobs, until none is left or the time is up."""
        return self.worker().process(seconds)

    @unlogged("what jobs change is in the journal")
    def worker(self) -> Worker:
        """A job worker on this store, to run yourself."""
        from socket import gethostname

        name = f"{gethostname()}-{os.getpid()}-{threading.get_ident():x}"
        return Worker(
            self._store, self._clock, self._composed.handlers, name, repeating=(tidy_job(self._clock), cleanup_job(self._clock))
        )

    @unlogged("it counts and checks, and returns no data")
    def verify(self, progress: Progress | None = None) -> VerifyReport:
        """Check every invariant on one snapshot; changes nothing."""
        from perdure.services.store.verify import verify

        return verify(self._store, check_progress(progress))

    @operation("read", permission="admin", first=True)
    def backup(
        self, path: str | os.PathLike[str], *, replace: Replace = False, progress: Progress | None = None
    ) -> BackupReport:
        """Write everything to one file, as of one moment; writers need not stop."""
        from perdure.services.store.backup import backup

        return backup(self._store, check_path(path, "path"), replace=replace, progress=progress)

    @operation("read", permission="admin", first=True)
    def export(self, to: Target, *, replace: Replace = False, progress: Progress | None = None) -> ExportReport:
        """Write all users of the space, and what they share, to one file, as of one moment."""
        return self._services.portability().exporter.export_all(self._settings.space, to, replace=replace, progress=progress)

    @operation("change", permission="admin", first=True)
    def import_(
        self, source: Source, *, replace: Replace = False, dry_run: DryRun = False, progress: Progress | None = None
    ) -> ImportReport:
        """Import all users of an export under their names, each in one transaction.

        A user that holds data is a `Conflict`, and nothing is changed, unless `replace`.
        """
        return self._services.portability().import_all(
            self._settings.space, source, replace=replace, dry_run=dry_run, progress=progress
        )

    @unlogged("it counts and checks, and returns no data")
    def doctor(self) -> DoctorReport:
        """Check the store and the configuration."""
        return self._doctor().examine(self._troubles(self._trouble()))

    @unlogged("it counts and checks, and returns no data")
    def health(self) -> Health:
        """What is degraded, and counts of everything; cheap enough to poll."""
        space, trouble = self._settings.space, self._trouble()
        owners = [owner for owner in self._services.admin.indexer.owners() if owner.space == space]
        users = sum(not owner.user.startswith(RESERVED) for owner in owners)
        return replace(self._doctor().look(self._troubles(trouble), users), worker_trouble=trouble)

    def _trouble(self) -> str | None:
        return None if self._background is None else self._background.trouble()

    def _troubles(self, trouble: str | None) -> tuple[str, ...]:
        learning = self._services.catch_up
        told = () if trouble is None else (f"background worker: {trouble}",)
        if learning.last_failure is None:
            return told
        return (*told, f"learning while reading: failed {learning.failures} times, last: {learning.last_failure}")

    def _doctor(self) -> Doctor:
        from perdure.services.store.doctor import Doctor

        versions = {"perdure": _version()}
        return Doctor(
            store=self._store,
            clock=self._clock,
            ingest=self._services.conversation.ingest,
            history=self._services.conversation.history,
            erasures=self._services.admin.erasures,
            handlers=self._composed.handlers,
            versions=versions,
            indexes=self._services.recall.shelves.report,
            model=self._composed.consultant.name,
        )

    @operation("admin", first=True)
    def purge(self, progress: Progress | None = None) -> PurgeReport:
        """Remove finished jobs, overwrite deleted data, and return free space to the disk."""
        check_progress(progress)
        before = self._store.describe().bytes
        removed = self._store.remove_done(before=self._clock.now())
        remain = self._services.admin.erasures.purge(progress)
        return PurgeReport(removed, before, self._store.describe().bytes, remain)

    @operation("admin", first=True)
    def repair_clock(self) -> ClockReport:
        """Move timestamps written by a clock that ran ahead back to now. Set the clock of the machine right first."""
        from perdure.services.store.doctor import ClockRepair

        return ClockRepair(self._store, self._clock).repair()

    @operation("admin", first=True)
    def distribute(self) -> DistributionReport:
        """Spread the tables over the nodes of a Citus cluster, each user on one node. Stop the servers before.

        One that was interrupted is run again: it continues where it stopped. See docs/how-to/cluster.md.
        """
        return self._store.distribute()

    @operation("admin")
    def reindex(self, progress: Progress | None = None) -> Mapping[Owner, int]:
        """Rebuild every user's search index while the old ones answer; returns their sizes."""
        indexer = self._services.admin.indexer
        return {owner: indexer.reindex(owner, progress) for owner in indexer.owners()}

    @unlogged("it counts and checks, and returns no data")
    def files(self) -> tuple[StoreFile, ...]:
        """The files of the store that this process can see."""
        return self._store.files()

    @unlogged("it ends the engine")
    def close(self) -> None:
        """Stop the background thread, release the store. Closing again does nothing."""
        if self._background is not None:
            self._background.stop()
            self._background = None
        self._composed.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def asked_by(engine: Engine, asker: Asker) -> Engine:
    """The same engine, with another one asking, as the access log has it."""
    if engine._log is None:
        return engine
    seen = copy.copy(engine)
    seen._log = engine._log.seen_by(asker)
    seen._services = replace(engine._services, log=seen._log)
    return seen


def parts_of(engine: Engine) -> tuple[Store, Clock, Settings]:
    """What an engine is made of, to make another one over the same store."""
    return engine._store, engine._clock, engine._settings


def requests_of(engine: Engine) -> IdempotentRequests:
    """What remembers which requests were carried out, for a skin whose callers repeat them."""
    return IdempotentRequests(engine._store, engine._clock)


def log_repeat(engine: Engine, user: str | None, request: str) -> None:
    """Have it in the access log that a caller was given the answer to a request of theirs again."""
    log = engine._log
    if log is not None:
        scope = engine.scope if user is None else engine.memory(user).scope
        log.around(scope, "repeat", "read", lambda: None, lambda _: (Mention("request", request),))


def chat_with(engine: Engine, memory: Memory) -> Chat:
    """A chat at the address of `memory`, with the model of the engine if it has one."""
    from perdure.handles.chat import Chat

    return Chat(memory, engine._composed.consultant)


def model_reports(engine: Engine, *, ask: bool) -> tuple[PartReport, ...]:
    """Which model, embedder and reranker an engine has; `ask`: and whether each answers."""
    from perdure.services.store.doctor import ModelChecks

    recall = engine._services.recall
    checks = ModelChecks(engine._composed.consultant, recall.embedders, engine._settings.embedder, recall.reranker)
    return checks.reports(ask=ask)


def summariser_of(engine: Engine) -> Summariser:
    """What writes the summaries of an engine: the one that was set, that of its model, or the one that needs none."""
    return engine._services.conversation.folds.writer.chosen


def context_store(engine: Engine, *, user: str | None = None, space: str | None = None) -> ContextStore:
    """Context documents as a view over an engine's store, for one user or for all; see `perdure.documents`."""
    from perdure.documents.logged import LoggedContexts

    chosen = engine._settings.space if space is None else space
    Scope.of("any" if user is None else user, space=chosen)  # which checks both
    services = engine._services
    held = replace(services.conversation.documents.stored, space=chosen, user=user, catch_up=services.catch_up)
    return held if engine._log is None else LoggedContexts(held, engine._log)


def _version() -> str:
    from importlib.metadata import version

    return version("perdure")
