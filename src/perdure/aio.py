"""The async face: the same calls, each sent whole to a thread of a bounded pool.

There is one core and no second implementation. A thread cannot be interrupted, so a cancelled call waits for its work
to end before the cancellation goes on: no write outlives the task that asked for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from perdure import app
from perdure.domain.jobs import Job, JobState
from perdure.domain.journal import Operation
from perdure.domain.limits import Limits
from perdure.domain.messages import Message, MessageFields, NewMessage, Session
from perdure.domain.reports import BackupReport, DoctorReport, ProcessReport, PurgeReport, StoreFile, VerifyReport
from perdure.domain.scope import DEFAULT, Scope
from perdure.domain.tally import Tally
from perdure.handles.memory import Memory
from perdure.ports.clock import Clock
from perdure.ports.store import Progress
from perdure.services.work import Worker
from perdure.settings import Settings

if TYPE_CHECKING:
    from typing import Self, Unpack

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 16


async def open(
    url: str | None = None,
    *,
    background: bool = False,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> AsyncEngine:
    """As `perdure.open`; use the result with `async with`, or `await engine.close()`."""
    threads = Threads()
    try:
        engine = await threads.run(app.open, url, background=background, settings=settings, clock=clock)
    except BaseException:
        threads.close()
        raise
    return AsyncEngine(engine, threads)


class Threads:
    """A bounded pool that runs one whole call per hop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="perdure-aio")

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        job = partial(copy_context().run, partial(call, *args, **kwargs))
        work = asyncio.get_running_loop().run_in_executor(self._pool, job)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # However often we are cancelled: wait, then let the cancellation go on.
            while not work.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({work})
            if not work.cancelled():
                work.exception()  # retrieved, so that nobody warns of it
            raise

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class AsyncMemory:
    """`perdure.Memory`, awaited."""

    __slots__ = ("_memory", "_threads")

    def __init__(self, memory: Memory, threads: Threads) -> None:
        self._memory = memory
        self._threads = threads

    @property
    def scope(self) -> Scope:
        return self._memory.scope

    async def append(self, role: str, content: str, **fields: Unpack[MessageFields]) -> Message:
        return await self._threads.run(self._memory.append, role, content, **fields)

    async def append_many(self, messages: Iterable[NewMessage]) -> list[Message]:
        return await self._threads.run(self._memory.append_many, messages)

    async def messages(
        self, limit: int = 20, *, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        return await self._threads.run(self._memory.messages, limit, session=session, before=before, after=after)

    async def message(self, id: str) -> Message:
        return await self._threads.run(self._memory.message, id)

    async def sessions(self, limit: int = 20) -> Sequence[Session]:
        return await self._threads.run(self._memory.sessions, limit)

    async def tally(self, session: str | None = None) -> Tally:
        return await self._threads.run(self._memory.tally, session)

    async def journal(self, limit: int = 50, *, before: int | None = None) -> Sequence[Operation]:
        return await self._threads.run(self._memory.journal, limit, before=before)

    async def jobs(self, state: JobState | None = None, *, limit: int = 100) -> Sequence[Job]:
        return await self._threads.run(self._memory.jobs, state, limit=limit)

    async def retry_jobs(self) -> int:
        return await self._threads.run(self._memory.retry_jobs)

    def __repr__(self) -> str:
        return f"Async{self._memory!r}"


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

    async def doctor(self) -> DoctorReport:
        return await self._threads.run(self._engine.doctor)

    async def purge(self) -> PurgeReport:
        return await self._threads.run(self._engine.purge)

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
