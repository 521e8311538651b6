"""The async face: the same calls, each sent whole to a thread of a bounded pool.

There is one core and no second implementation. A thread cannot be interrupted, so a cancelled call waits for its work
to end before the cancellation goes on: no write outlives the task that asked for it.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from datetime import datetime
from functools import partial, update_wrapper, wraps
from itertools import islice
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from perdure import app
from perdure.domain.jobs import Job, JobState
from perdure.domain.journal import Operation
from perdure.domain.limits import Limits
from perdure.domain.messages import Message, MessageFields, NewMessage, Session
from perdure.domain.reports import BackupReport, DoctorReport, ProcessReport, PurgeReport, StoreFile, VerifyReport
from perdure.domain.scope import DEFAULT, Scope
from perdure.domain.series import CoverageRule, CoveredWindow, Entry, Infer, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.spans import Span
from perdure.domain.state import KeyInfo, Loaded, Revision
from perdure.domain.tally import Tally
from perdure.domain.text import Json
from perdure.handles.memory import Memory
from perdure.handles.series import Asking, MergeExtras, SeriesHandle, SeriesRules
from perdure.handles.state import Found, State
from perdure.handles.tools import Permission, Result, Tools
from perdure.ports.clock import Clock
from perdure.ports.store import Progress
from perdure.services.aggregates import Period
from perdure.services.readthrough import Fetcher
from perdure.services.series import Cleanup, QueryOptions
from perdure.services.work import Worker
from perdure.settings import Settings

if TYPE_CHECKING:
    from typing import Self, Unpack

P = ParamSpec("P")
T = TypeVar("T")
THREADS = 16
PER_HOP = 500
# Fetches wait, and may ask for others in turn; a waiting thread costs little.
FETCH_THREADS = 256


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
        # A fetch may wait for another one whose fetcher calls us in turn: it must not hold the threads that call needs.
        self._waiting = ThreadPoolExecutor(FETCH_THREADS, thread_name_prefix="perdure-aio-fetch")

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._hop(self._pool, partial(call, *args, **kwargs))

    async def run_fetch(self, call: Callable[[], T], bridge: Bridge) -> T:
        """As `run`, for a call that waits for others of its kind; a cancellation ends what its fetcher waits for."""
        return await self._hop(self._waiting, call, bridge.cancel)

    async def _hop(self, pool: ThreadPoolExecutor, call: Callable[[], T], on_cancel: Callable[[], None] | None = None) -> T:
        work = asyncio.get_running_loop().run_in_executor(pool, partial(copy_context().run, call))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # However often we are cancelled: wait, then let the cancellation go on.
            while not work.done():
                if on_cancel is not None:
                    on_cancel()
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({work})
            if not work.cancelled():
                work.exception()  # retrieved, so that nobody warns of it
            raise

    async def each(self, items: Iterator[T]) -> AsyncIterator[T]:
        """The items of an iterator that reads from the store, taken a few hundred per hop."""
        while chunk := await self.run(lambda: list(islice(items, PER_HOP))):
            for item in chunk:
                yield item

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        self._waiting.shutdown(wait=False)


class AsyncState:
    """`Memory.state`, awaited."""

    __slots__ = ("_state", "_threads")

    def __init__(self, state: State, threads: Threads) -> None:
        self._state = state
        self._threads = threads

    async def save(
        self,
        key: str,
        value: Json,
        *,
        expected: int | None = None,
        expires_in_s: float | None = None,
        request: str | None = None,
    ) -> int:
        call = partial(self._state.save, key, value, expected=expected)
        return await self._threads.run(call, expires_in_s=expires_in_s, request=request)

    async def load(self, key: str, default: Json = None, *, revision: int | None = None) -> Json:
        return await self._threads.run(self._state.load, key, default, revision=revision)

    async def find(self, key: str, *, revision: int | None = None) -> Loaded:
        return await self._threads.run(self._state.find, key, revision=revision)

    async def delete(self, key: str, *, expected: int | None = None) -> bool:
        return await self._threads.run(self._state.delete, key, expected=expected)

    async def keys(self) -> Sequence[str]:
        return await self._threads.run(self._state.keys)

    async def list(self, pattern: str = "*", *, limit: int | None = None) -> Sequence[KeyInfo]:
        return await self._threads.run(self._state.list, pattern, limit=limit)

    async def search(self, pattern: str, *, limit: int | None = None) -> Found:
        return await self._threads.run(self._state.search, pattern, limit=limit)

    async def history(self, key: str, *, limit: int = 100, before: int | None = None) -> Sequence[Revision]:
        return await self._threads.run(self._state.history, key, limit=limit, before=before)

    async def restore(self, key: str, revision: int) -> int:
        return await self._threads.run(self._state.restore, key, revision)

    async def clear(self) -> int:
        return await self._threads.run(self._state.clear)


class AsyncSeries:
    """`Memory.series(name)`, awaited. Fetchers may be async; they run on the caller's loop."""

    __slots__ = ("_series", "_threads")

    def __init__(self, series: SeriesHandle, threads: Threads) -> None:
        self._series = series
        self._threads = threads

    @property
    def name(self) -> str:
        return self._series.name

    async def about(self) -> Series:
        return await self._threads.run(self._series.about)

    async def configure(self, **rules: Unpack[SeriesRules]) -> Series:
        return await self._threads.run(self._series.configure, **rules)

    async def remove(self) -> int:
        return await self._threads.run(self._series.remove)

    async def merge(
        self,
        entries: Iterable[object],
        *,
        window: tuple[object, object] | None = None,
        complete: bool = True,
        newest_first: bool = True,
        infer: Infer = "none",
        strict: bool = False,
        **more: Unpack[MergeExtras],
    ) -> MergeResult:
        call = partial(self._series.merge, entries, window=window, complete=complete, newest_first=newest_first, **more)
        return await self._threads.run(call, infer=infer, strict=strict)

    async def fetch(self, start: object, end: object, fetcher: Fetcher, **options: Unpack[Asking]) -> SeriesAnswer:
        bridge = Bridge(fetcher, asyncio.get_running_loop())
        return await self._threads.run_fetch(partial(self._series.fetch, start, end, bridge, **options), bridge)

    def tool(self, **options: Unpack[Asking]) -> Callable[[Callable[..., Any]], Callable[..., Awaitable[dict[str, Json]]]]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Awaitable[dict[str, Json]]]:
            @wraps(call)
            async def cached(start: object, end: object) -> dict[str, Json]:
                bridge = Bridge(call, asyncio.get_running_loop())
                return await self._threads.run_fetch(partial(self._series.tool(**options)(bridge), start, end), bridge)

            return cached

        return wrap

    async def cleanup(self, keep_days: float = 90) -> Cleanup:
        return await self._threads.run(self._series.cleanup, keep_days)

    async def query(
        self,
        start: object,
        end: object,
        *,
        limit: int | None = None,
        page: str | None = None,
        options: QueryOptions | None = None,
    ) -> SeriesAnswer:
        return await self._threads.run(self._series.query, start, end, limit=limit, page=page, options=options)

    async def gaps(self, start: object, end: object) -> tuple[Span, ...]:
        return await self._threads.run(self._series.gaps, start, end)

    async def windows(self, start: object, end: object) -> Sequence[CoveredWindow]:
        return await self._threads.run(self._series.windows, start, end)

    async def history(self, id: str, *, limit: int = 100) -> Sequence[PastEntry]:
        return await self._threads.run(self._series.history, id, limit=limit)

    async def count(self, start: object = None, end: object = None) -> int:
        return await self._threads.run(self._series.count, start, end)

    async def first(self) -> Entry | None:
        return await self._threads.run(self._series.first)

    async def last(self) -> Entry | None:
        return await self._threads.run(self._series.last)

    async def per(
        self, period: Period, *, zone: str | None = None, start: object = None, end: object = None
    ) -> dict[datetime, int]:
        return await self._threads.run(self._series.per, period, zone=zone, start=start, end=end)

    async def group(self, field: str, *, start: object = None, end: object = None) -> dict[str, int]:
        return await self._threads.run(self._series.group, field, start=start, end=end)

    async def distinct(self, field: str, *, start: object = None, end: object = None) -> Sequence[str]:
        return await self._threads.run(self._series.distinct, field, start=start, end=end)

    def entries(self, start: object = None, end: object = None) -> AsyncIterator[Entry]:
        return self._threads.each(self._series.entries(start, end))

    def export(self, format: str = "jsonl", *, start: object = None, end: object = None) -> AsyncIterator[str]:
        return self._threads.each(self._series.export(format, start=start, end=end))

    async def rows(self, start: object = None, end: object = None) -> list[dict[str, Json]]:
        return await self._threads.run(self._series.rows, start, end)

    async def to_pandas(self, start: object = None, end: object = None) -> Any:
        return await self._threads.run(self._series.to_pandas, start, end)

    async def to_polars(self, start: object = None, end: object = None) -> Any:
        return await self._threads.run(self._series.to_polars, start, end)

    async def to_arrow(self, start: object = None, end: object = None) -> Any:
        return await self._threads.run(self._series.to_arrow, start, end)

    def __repr__(self) -> str:
        return f"Async{self._series!r}"


class Bridge:
    """A function for use from a thread: what it leaves to be awaited is awaited on the caller's loop."""

    def __init__(self, call: Callable[..., Any], loop: asyncio.AbstractEventLoop) -> None:
        update_wrapper(self, call)
        self._call = call
        self._loop = loop
        self._awaited: Future[Any] | None = None
        self._cancelled = False

    def __call__(self, *args: object) -> Any:
        async def whole(answer: Awaitable[Any]) -> Any:
            return await answer

        if self._cancelled:
            raise CancelledError("the caller was cancelled")
        answer = self._call(*args)
        if not inspect.isawaitable(answer):
            return answer
        self._awaited = asyncio.run_coroutine_threadsafe(whole(answer), self._loop)
        return self._awaited.result()

    def cancel(self) -> None:
        """End what is being awaited, and let nothing new begin."""
        self._cancelled = True
        if self._awaited is not None:
            self._awaited.cancel()


class AsyncTools:
    """`Memory.tools`, awaited where a tool is called."""

    __slots__ = ("_threads", "_tools")

    def __init__(self, tools: Tools, threads: Threads) -> None:
        self._tools = tools
        self._threads = threads

    def read_only(self) -> AsyncTools:
        return AsyncTools(self._tools.read_only(), self._threads)

    def names(self) -> Sequence[str]:
        return self._tools.names()

    def permissions(self) -> Mapping[str, Permission]:
        return self._tools.permissions()

    def schemas(self, style: str = "openai") -> list[Result]:
        return self._tools.schemas(style)

    async def call_tool(self, name: str, params: Any = None) -> Result:
        return await self._threads.run(self._tools.call_tool, name, params)

    async def merge_timeseries_state(
        self,
        state_key: str,
        new_entries: Sequence[object],
        id_field: str = "id",
        timestamp_field: str = "timestamp",
        *,
        window_start: object = None,
        window_end: object = None,
        complete: bool = True,
        **more: Any,
    ) -> Result:
        call = partial(self._tools.merge_timeseries_state, state_key, new_entries, id_field, timestamp_field, **more)
        return await self._threads.run(call, window_start=window_start, window_end=window_end, complete=complete)

    async def query_timeseries_state(
        self,
        state_key: str,
        start_time: object,
        end_time: object,
        timestamp_field: str = "timestamp",
        *,
        coverage: CoverageRule = "ledger",
        fresh_for_s: float | None = None,
        **more: Any,
    ) -> Result:
        call = partial(self._tools.query_timeseries_state, state_key, start_time, end_time, timestamp_field, **more)
        return await self._threads.run(call, coverage=coverage, fresh_for_s=fresh_for_s)

    async def cleanup_old_timeseries(self, state_key: str, keep_days: float = 90, timestamp_field: str = "timestamp") -> Result:
        return await self._threads.run(self._tools.cleanup_old_timeseries, state_key, keep_days, timestamp_field)


class AsyncMemory:
    """`perdure.Memory`, awaited."""

    __slots__ = ("_memory", "_threads")

    def __init__(self, memory: Memory, threads: Threads) -> None:
        self._memory = memory
        self._threads = threads

    @property
    def scope(self) -> Scope:
        return self._memory.scope

    @property
    def state(self) -> AsyncState:
        return AsyncState(self._memory.state, self._threads)

    def series(self, name: str, **rules: Unpack[SeriesRules]) -> AsyncSeries:
        return AsyncSeries(self._memory.series(name, **rules), self._threads)

    async def list_series(self, limit: int = 100) -> Sequence[Series]:
        return await self._threads.run(self._memory.list_series, limit)

    @property
    def tools(self) -> AsyncTools:
        return AsyncTools(self._memory.tools, self._threads)

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
