"""The overseer as callers use it: before a goal, after a tool, and around an agent."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import AskedTool, Injection, KeptResult, WindowRule
from perdure.domain.scope import Scope
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass
from perdure.engine.oversight.tool_windows import check_rule
from perdure.handles.registry.toolset import HostTool
from perdure.services.oversight.after import AfterRequest, ResultKeeper, check_tool
from perdure.services.oversight.before import Overseer
from perdure.services.oversight.log import tell_saved

DeclaredWindows = WindowRule | Mapping[str, WindowRule] | None
"""Which time tools fetch: of all of them, or by their names."""


@dataclass(frozen=True, slots=True)
class OversightServices:
    """The overseer before a goal and after a tool."""

    overseer: Overseer
    keeper: ResultKeeper

    def after(self, scope: Scope, result: AfterRequest) -> KeptResult:
        """What becomes of a tool's result; what is saved is told to the log, in the seed's words."""
        kept = self.keeper.after(scope, result)
        tell_saved(kept)
        return kept


@dataclass(frozen=True, slots=True)
class GoalRun:
    """The result of `run`: the agent's answer, what it was given, and what was kept."""

    answer: Any
    injection: Injection
    kept: tuple[KeptResult, ...]


def run(
    do: OversightServices,
    scope: Scope,
    before: Callable[[], Injection],
    agent: Callable[..., Any],
    tools: Mapping[str, Callable[..., Any]],
    *,
    window: DeclaredWindows = None,
    **keeping: Any,
) -> GoalRun:
    """`Memory.run`: what is given before the goal, and how results of tools are kept."""
    check_agent(agent)
    check_tools(tools)
    rules = window_rules(window, tools)
    given = before()
    kept: list[KeptResult] = []

    def looked_at(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        def look(value: Any, asked: AskedTool) -> Any:
            kept.append(do.after(scope, AfterRequest(tool=name, value=value, goal=given.goal, asked=asked, **keeping)))
            return value

        async def look_later(value: Awaitable[Any], asked: AskedTool) -> Any:
            return look(await value, asked)

        @functools.wraps(tool)
        def called(*args: Any, **named: Any) -> Any:
            asked = asked_tool(tool, args, named, do.keeper.clock.now(), rules[name])
            value = tool(*args, **named)
            return look_later(value, asked) if inspect.isawaitable(value) else look(value, asked)

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


def window_rules(window: object, tools: Mapping[str, Callable[..., Any]]) -> dict[str, WindowRule | None]:
    """Of each tool, the window that it honours: as this run says, or as its own declaration does."""
    own = {name: tool.window if isinstance(tool, HostTool) else None for name, tool in tools.items()}
    if isinstance(window, Mapping):
        unknown = [name for name in window if name not in tools]
        if unknown:
            raise InvalidInput(f"`window` names {brief(unknown[0], 60)}, which is none of the tools; use {', '.join(tools)}")
        return own | {name: check_rule(rule, f"window of {name}") for name, rule in window.items()}
    return own if window is None else dict.fromkeys(tools, check_rule(window))


def asked_tool(
    tool: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any], at: datetime, rule: WindowRule | None
) -> AskedTool:
    """How a tool is called: its arguments by name, defaults included, as far as it tells their names."""
    function = tool.function if isinstance(tool, HostTool) else tool
    try:
        bound = inspect.signature(function).bind(*args, **named)
    except (TypeError, ValueError):  # it will say so itself, or it is built in and tells nothing
        places = {f"argument {place}": value for place, value in enumerate(args, 1)}
        return AskedTool({**places, **named}, frozenset([*places, *named]), at, rule)
    given = _by_name(bound)
    bound.apply_defaults()
    return AskedTool(_by_name(bound), frozenset(given), at, rule)


def _by_name(bound: inspect.BoundArguments) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            told |= value
        elif kind is inspect.Parameter.VAR_POSITIONAL:
            told |= {f"{name} {place}": one for place, one in enumerate(value, 1)}
        else:
            told[name] = value
    return told


def takes_tools(agent: Callable[..., Any]) -> bool:
    """Whether it can be called with the goal and the tools; an agent that has its own tools takes the goal alone."""
    try:
        inspect.signature(agent).bind("goal", {})
    except TypeError:
        return False
    except ValueError:
        return True  # something built in, which does not tell
    return True
