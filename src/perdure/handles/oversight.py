"""The overseer as callers use it: before a goal, after a tool, and around an agent."""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import Injection, KeptResult
from perdure.domain.scope import Scope
from perdure.domain.text.rules import brief
from perdure.services.oversight.after import AfterRequest, ResultKeeper, check_tool
from perdure.services.oversight.before import Overseer

_log = logging.getLogger("perdure.oversight")


@dataclass(frozen=True, slots=True)
class OversightServices:
    """The overseer before a goal and after a tool."""

    overseer: Overseer
    keeper: ResultKeeper

    def after(self, scope: Scope, result: AfterRequest) -> KeptResult:
        """What becomes of a tool's result; what is saved is told to the log, in the seed's words."""
        kept = self.keeper.after(scope, result)
        if kept.saved:
            _log.info("Auto-saved to memory: %s - %s", kept.key, kept.reason)
        return kept


@dataclass(frozen=True, slots=True)
class GoalRun:
    """A goal that an agent worked on: its answer, what it was given, and what was kept of its tools' results."""

    answer: Any
    injection: Injection
    kept: tuple[KeptResult, ...]


def run(
    do: OversightServices,
    scope: Scope,
    before: Callable[[], Injection],
    agent: Callable[..., Any],
    tools: Mapping[str, Callable[..., Any]],
    **keeping: Any,
) -> GoalRun:
    """`Memory.run`: what is given before the goal, and how results of tools are kept."""
    check_agent(agent)
    check_tools(tools)
    given = before()
    kept: list[KeptResult] = []

    def looked_at(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        def look(value: Any) -> Any:
            kept.append(do.after(scope, AfterRequest(tool=name, value=value, goal=given.goal, **keeping)))
            return value

        async def look_later(value: Awaitable[Any]) -> Any:
            return look(await value)

        @functools.wraps(tool)
        def called(*args: Any, **named: Any) -> Any:
            value = tool(*args, **named)
            return look_later(value) if inspect.isawaitable(value) else look(value)

        return called

    hands = {name: looked_at(name, tool) for name, tool in tools.items()}
    answer = agent(given.text, hands) if takes_tools(agent) else agent(given.text)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InvalidInput("`agent` is async; run it with `perdure.aio`, where `await ana.run(…)` waits for it")
    return GoalRun(answer, given, tuple(kept))


def check_agent(agent: object) -> None:
    """`InvalidInput` unless it can be called."""
    if not callable(agent):
        raise InvalidInput(
            f"`agent` is a `{type(agent).__name__}`; pass something that can be called with the goal and the tools"
        )


def check_tools(tools: object) -> None:
    """`InvalidInput` unless each is a name and something to call. Before anything runs: a tool that did its work must not
    fail afterwards."""
    if not isinstance(tools, Mapping):
        raise InvalidInput(f"`tools` is a `{type(tools).__name__}`; pass a dict of names and functions")
    for name, tool in tools.items():
        check_tool(name)
        if not callable(tool):
            raise InvalidInput(f"tool {brief(name, 60)} is a `{type(tool).__name__}`; pass something that can be called")


def takes_tools(agent: Callable[..., Any]) -> bool:
    """Whether it can be called with the goal and the tools; an agent that has its own tools takes the goal alone."""
    try:
        inspect.signature(agent).bind("goal", {})
    except TypeError:
        return False
    except ValueError:
        return True  # something built in, which does not tell
    return True
