"""State and series, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from perdure.aio.threads import Bridge, Threads
from perdure.domain.series import CoveredWindow, Entry, Infer, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.spans import Span
from perdure.domain.state import KeyInfo, Loaded, Revision
from perdure.domain.text import Json
from perdure.handles.series import Asking, MergeExtras, SeriesHandle, SeriesRules
from perdure.handles.state import Found, State
from perdure.services.aggregates import Period
from perdure.services.readthrough import Fetcher
from perdure.services.series import Cleanup, QueryOptions

if TYPE_CHECKING:
    from typing import Unpack


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
