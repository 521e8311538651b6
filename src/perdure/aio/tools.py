"""The tools of an agent, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from perdure.aio.threads import Threads
from perdure.domain.series import CoverageRule
from perdure.handles.tools import Permission, Result, Tools

if TYPE_CHECKING:
    pass


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
