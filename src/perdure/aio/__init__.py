"""The async face: the same calls, each sent whole to a thread of a bounded pool.

There is one core and no second implementation. A thread cannot be interrupted, so a cancelled call waits for its work
to end before the cancellation goes on: no write outlives the task that asked for it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING

from perdure import app
from perdure.aio.api_keys import AsyncApiKeyHandle
from perdure.aio.conversation import AsyncConversation, AsyncTranscripts, AsyncTurn
from perdure.aio.data import AsyncSeries, AsyncState
from perdure.aio.knowledge import AsyncEntities, AsyncMemories, AsyncTasks, AsyncTodos
from perdure.aio.lessons import AsyncAgentHandle, AsyncLessons
from perdure.aio.memory import AsyncMemory
from perdure.aio.threads import Threads
from perdure.aio.tools import AsyncTools
from perdure.domain.accesses import Access
from perdure.domain.limits import Limits
from perdure.domain.portable import ExportReport, ImportReport
from perdure.domain.reports import BackupReport, DoctorReport, Health, ProcessReport, PurgeReport, StoreFile, VerifyReport
from perdure.domain.scope import DEFAULT, Owner
from perdure.handles.portable import Source
from perdure.parts import Models
from perdure.ports.clock import Clock
from perdure.ports.store import Progress
from perdure.services.exporting import Target
from perdure.services.work import Worker
from perdure.settings import Settings

if TYPE_CHECKING:
    from typing import Self, Unpack

__all__ = [
    "AsyncAgentHandle",
    "AsyncApiKeyHandle",
    "AsyncConversation",
    "AsyncEngine",
    "AsyncEntities",
    "AsyncLessons",
    "AsyncMemories",
    "AsyncMemory",
    "AsyncSeries",
    "AsyncState",
    "AsyncTasks",
    "AsyncTodos",
    "AsyncTools",
    "AsyncTranscripts",
    "AsyncTurn",
    "Threads",
    "open",
]


async def open(
    url: str | None = None,
    *,
    background: bool = False,
    settings: Settings | None = None,
    clock: Clock | None = None,
    **models: Unpack[Models],
) -> AsyncEngine:
    """As `perdure.open`; use the result with `async with`, or `await engine.close()`."""
    threads = Threads()
    try:
        call = partial(app.open, url, background=background, settings=settings, clock=clock)
        engine = await threads.run(call, **models)
    except BaseException:
        threads.close()
        raise
    return AsyncEngine(engine, threads)


class AsyncEngine:
    """`perdure.Engine`, awaited. `memory()`, `worker()` and `limits` touch nothing and need no await."""

    def __init__(self, engine: app.Engine, threads: Threads) -> None:
        self._engine = engine
        self._threads = threads

    @property
    def limits(self) -> Limits:
        return self._engine.limits

    def memory(self, user: str, *, agent: str = DEFAULT, channel: str = DEFAULT, space: str | None = None) -> AsyncMemory:
        return AsyncMemory(self._engine.memory(user, agent=agent, channel=channel, space=space), self._threads)

    @property
    def agents(self) -> AsyncAgentHandle:
        return AsyncAgentHandle(self._engine.agents, self._threads)

    @property
    def api_keys(self) -> AsyncApiKeyHandle:
        return AsyncApiKeyHandle(self._engine.api_keys, self._threads)

    @property
    def space(self) -> str:
        return self._engine.space

    @property
    def zone(self) -> str:
        return self._engine.zone

    @property
    def default_user(self) -> str:
        return self._engine.default_user

    async def users(self, *, limit: int = 1_000) -> Sequence[str]:
        return await self._threads.run(self._engine.users, limit=limit)

    async def accesses(self, limit: int = 50, *, before: str | None = None) -> Sequence[Access]:
        return await self._threads.run(self._engine.accesses, limit, before=before)

    def worker(self) -> Worker:
        return self._engine.worker()

    async def process(self, seconds: float = 10.0) -> ProcessReport:
        return await self._threads.run(self._engine.process, seconds)

    async def verify(self, progress: Progress | None = None) -> VerifyReport:
        return await self._threads.run(self._engine.verify, progress)

    async def backup(
        self, path: str | os.PathLike[str], *, replace: bool = False, progress: Progress | None = None
    ) -> BackupReport:
        return await self._threads.run(self._engine.backup, path, replace=replace, progress=progress)

    async def export(self, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        return await self._threads.run(self._engine.export, to, replace=replace, progress=progress)

    async def import_(
        self, source: Source, *, replace: bool = False, dry_run: bool = False, progress: Progress | None = None
    ) -> ImportReport:
        return await self._threads.run(self._engine.import_, source, replace=replace, dry_run=dry_run, progress=progress)

    async def doctor(self) -> DoctorReport:
        return await self._threads.run(self._engine.doctor)

    async def health(self) -> Health:
        return await self._threads.run(self._engine.health)

    async def purge(self) -> PurgeReport:
        return await self._threads.run(self._engine.purge)

    async def reindex(self, progress: Progress | None = None) -> Mapping[Owner, int]:
        return await self._threads.run(self._engine.reindex, progress)

    async def files(self) -> tuple[StoreFile, ...]:
        return await self._threads.run(self._engine.files)

    async def close(self) -> None:
        await self._threads.run(self._engine.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
