"""The overseer as callers use it: before a goal, after a tool, and around an agent."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import Decision, DecisionKind, Injection, Kept, SaveMode, Target
from perdure.domain.scope import ID_BYTES_MAX, Scope
from perdure.domain.spans import Span
from perdure.domain.text import brief, check_id, utf8_size
from perdure.domain.times import check_instant, to_us
from perdure.ports.store import Store
from perdure.services.keeping import Keeper, Result, check_tool
from perdure.services.overseeing import BUDGET_TOKENS, Asked, Overseer

DECISIONS_SHOWN = 50


class BeforeFields(TypedDict, total=False):
    budget_tokens: int
    target: Target
    deadline_s: float


class AfterFields(TypedDict, total=False):
    mode: SaveMode
    allow: Sequence[str]
    deny: Sequence[str]
    window: tuple[datetime, datetime]
    deadline_s: float


class RunFields(TypedDict, total=False):
    budget_tokens: int
    deadline_s: float
    mode: SaveMode
    allow: Sequence[str]
    deny: Sequence[str]


@dataclass(frozen=True, slots=True)
class OversightServices:
    store: Store
    overseer: Overseer
    keeper: Keeper


@dataclass(frozen=True, slots=True)
class Ran:
    """A goal that an agent worked on: its answer, what it was given, and what was kept of its tools' results."""

    answer: Any
    injection: Injection
    kept: tuple[Kept, ...]


def before(scope: Scope, services: OversightServices, goal: str, fields: BeforeFields) -> Injection:
    """`Memory.before`."""
    _refuse_unknown("before", fields, BeforeFields)
    return services.overseer.before(scope, Asked(goal, **fields))


def after(scope: Scope, services: OversightServices, tool: str, value: object, goal: str, fields: AfterFields) -> Kept:
    """`Memory.after`."""
    _refuse_unknown("after", fields, AfterFields)
    window = fields.get("window")
    span = None if window is None else _span(window)
    allow, deny = fields.get("allow"), fields.get("deny", ())
    result = Result(tool, value, goal, fields.get("mode"), allow, deny, span, fields.get("deadline_s", 5.0))
    return services.keeper.after(scope, result)


def run(
    scope: Scope,
    services: OversightServices,
    goal: str,
    agent: Callable[..., Any],
    tools: Mapping[str, Callable[..., Any]],
    fields: RunFields,
) -> Ran:
    """`Memory.run`."""
    _refuse_unknown("run", fields, RunFields)
    if not callable(agent):
        raise InvalidInput(
            f"`agent` is a `{type(agent).__name__}`; pass something that can be called with the goal and the tools"
        )
    budget, seconds = fields.get("budget_tokens", BUDGET_TOKENS), fields.get("deadline_s", 2.0)
    check_tools(tools)
    given = services.overseer.before(scope, Asked(goal, budget, "goal", seconds))
    kept: list[Kept] = []
    mode, allow, deny = fields.get("mode"), fields.get("allow"), fields.get("deny", ())

    def watched(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        def look(value: Any) -> Any:
            kept.append(services.keeper.after(scope, Result(name, value, goal, mode, allow, deny)))
            return value

        async def look_later(value: Awaitable[Any]) -> Any:
            return look(await value)

        @functools.wraps(tool)
        def called(*args: Any, **named: Any) -> Any:
            value = tool(*args, **named)
            return look_later(value) if inspect.isawaitable(value) else look(value)

        return called

    hands = {name: watched(name, tool) for name, tool in tools.items()}
    answer = agent(given.text, hands) if takes_tools(agent) else agent(given.text)
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise InvalidInput("`agent` is async; run it with `perdure.aio`, where `await ana.run(…)` waits for it")
    return Ran(answer, given, tuple(kept))


def decisions(
    scope: Scope, services: OversightServices, *, kind: DecisionKind | None, limit: int, before: str | None
) -> Sequence[Decision]:
    """`Memory.decisions`."""
    rows = services.keeper.state.limits.page(limit)
    if before is not None:
        check_id(before, "before", bytes_max=ID_BYTES_MAX)
    if kind is not None and (utf8_size(kind, "`kind`") == 0 or kind not in ("before", "after")):
        raise InvalidInput(f"`kind` = {brief(kind)} is unknown; use before or after")
    return services.store.read(
        scope.owner,
        lambda view: list(view.oversight.list_decisions(limit=rows, kind=kind, address=scope.address, before=before)),
    )


def checked_agent(agent: object, fields: Mapping[str, object]) -> None:
    """`InvalidInput` unless it can be called; `TypeError` for an option that `run` does not have."""
    _refuse_unknown("run", fields, RunFields)
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


def _refuse_unknown(call: str, given: Mapping[str, object], known: type) -> None:
    unknown = [name for name in given if name not in known.__annotations__]
    if unknown:
        raise TypeError(f"{call}() got an unexpected keyword argument {unknown[0]!r}")


def _span(given: object) -> Span:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidInput(f"`window` = {brief(given, 80)} must be two moments: from, and up to but not including")
    start, end = (check_instant(moment, "window") for moment in given)
    if start >= end:
        raise InvalidInput(f"`window` ends at {end.isoformat()}, not after its start {start.isoformat()}; swap them")
    return Span(to_us(start), to_us(end))
