"""What the generated classes stand on, and the calls that run the caller's own functions: those run in the caller's loop."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from perdure.aio.threads import Bridge, Threads
from perdure.app import Engine
from perdure.domain.oversight import KeptResult
from perdure.domain.scope import Scope
from perdure.domain.series import SeriesAnswer
from perdure.domain.text.rules import Json
from perdure.handles.arguments import Allowed, Budget, Deadline, Denied, Mode, SeriesEnd, SeriesStart
from perdure.handles.memory import Memory, clock_of
from perdure.handles.operation import Handle
from perdure.handles.oversight import (
    DeclaredWindows,
    GoalRun,
    asked_tool,
    check_agent,
    check_tools,
    takes_tools,
    window_rules,
)
from perdure.handles.series import Entries, JoinGaps, Lease, Longest, SeriesHandle, StaleFor, Wait
from perdure.services.oversight.before import BUDGET_TOKENS
from perdure.services.series.fetch import LEASE_S, Fetcher

if TYPE_CHECKING:
    from typing import Self

H = TypeVar("H", bound=Handle)


class Awaited(Generic[H]):
    """A handle whose calls are sent to threads."""

    __slots__ = ("_sync", "_threads")

    def __init__(self, sync: H, threads: Threads) -> None:
        self._sync = sync
        self._threads = threads

    @property
    def scope(self) -> Scope:
        return self._sync.scope


class AwaitedEngine(Awaited[Engine]):
    __slots__ = ()

    async def close(self) -> None:
        await self._threads.run(self._sync.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AwaitedMemory(Awaited[Memory]):
    __slots__ = ()

    async def run(
        self,
        goal: str,
        agent: Callable[..., Any],
        tools: Mapping[str, Callable[..., Any]] | None = None,
        *,
        budget_tokens: Budget = BUDGET_TOKENS,
        deadline_s: Deadline = 2.0,
        mode: Mode = None,
        allow: Allowed = None,
        deny: Denied = (),
        window: DeclaredWindows = None,
    ) -> GoalRun:
        """As `Memory.run`; agent and tools may be async, and run in this event loop.

        A tool is awaited by the agent, whatever it was before: its result is looked at in a thread.
        """
        memory, threads = self._sync, self._threads
        hands = {} if tools is None else tools
        check_agent(agent)
        check_tools(hands)
        rules, clock = window_rules(window, hands), clock_of(memory)
        given = await threads.run(memory.before, goal, target="goal", budget_tokens=budget_tokens, deadline_s=deadline_s)
        kept: list[KeptResult] = []

        def looked_at(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(tool)
            async def called(*args: Any, **named: Any) -> Any:
                asked = asked_tool(tool, args, named, clock.now(), rules[name])
                value = tool(*args, **named)
                value = await value if inspect.isawaitable(value) else value
                look = functools.partial(memory.after, mode=mode, allow=allow, deny=deny, arguments=asked)
                kept.append(await threads.run(look, name, value, goal))
                return value

            return called

        called = {name: looked_at(name, tool) for name, tool in hands.items()}
        answer = agent(given.text, called) if takes_tools(agent) else agent(given.text)
        answer = await answer if inspect.isawaitable(answer) else answer
        return GoalRun(answer, given, tuple(kept))


class AwaitedSeriesHandle(Awaited[SeriesHandle]):
    __slots__ = ()

    async def fetch(
        self,
        start: SeriesStart,
        end: SeriesEnd,
        fetcher: Fetcher,
        *,
        fresh_for_s: StaleFor = None,
        join_gaps_s: JoinGaps = 0.0,
        longest_s: Longest = None,
        lease_s: Lease = LEASE_S,
        wait_s: Wait = 120.0,
        limit: Entries = None,
    ) -> SeriesAnswer:
        bridge = Bridge(fetcher, asyncio.get_running_loop())
        call = functools.partial(
            self._sync.fetch,
            start,
            end,
            bridge,
            fresh_for_s=fresh_for_s,
            join_gaps_s=join_gaps_s,
            longest_s=longest_s,
            lease_s=lease_s,
            wait_s=wait_s,
            limit=limit,
        )
        return await self._threads.run_fetch(call, bridge)

    def tool(
        self,
        *,
        fresh_for_s: StaleFor = None,
        join_gaps_s: JoinGaps = 0.0,
        longest_s: Longest = None,
        lease_s: Lease = LEASE_S,
        wait_s: Wait = 120.0,
        limit: Entries = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., Awaitable[dict[str, Json]]]]:
        made = self._sync.tool(
            fresh_for_s=fresh_for_s,
            join_gaps_s=join_gaps_s,
            longest_s=longest_s,
            lease_s=lease_s,
            wait_s=wait_s,
            limit=limit,
        )

        def wrap(call: Callable[..., Any]) -> Callable[..., Awaitable[dict[str, Json]]]:
            @functools.wraps(call)
            async def cached(start: object, end: object) -> dict[str, Json]:
                bridge = Bridge(call, asyncio.get_running_loop())
                return await self._threads.run_fetch(functools.partial(made(bridge), start, end), bridge)

            return cached

        return wrap
