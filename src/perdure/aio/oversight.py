"""The overseer around an agent, awaited: the store is asked in threads, agent and tools run where they were called from."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from perdure.aio.threads import Threads
from perdure.domain.oversight import Kept
from perdure.handles.memory import Memory
from perdure.handles.oversight import Ran, RunFields, check_tools, checked_agent, takes_tools


async def run_async(
    memory: Memory,
    threads: Threads,
    goal: str,
    agent: Callable[..., Any],
    tools: Mapping[str, Callable[..., Any]],
    fields: RunFields,
) -> Ran:
    """`AsyncMemory.run`. A tool is awaited by the agent, whatever it was before: its result is looked at in a thread."""
    checked_agent(agent, fields)
    check_tools(tools)
    asking = {name: fields[name] for name in ("budget_tokens", "deadline_s") if name in fields}
    keeping = {name: fields[name] for name in ("mode", "allow", "deny") if name in fields}
    given = await threads.run(functools.partial(memory.before, goal, target="goal", **asking))  # type: ignore[arg-type]
    kept: list[Kept] = []

    def watched(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(tool)
        async def called(*args: Any, **named: Any) -> Any:
            value = tool(*args, **named)
            value = await value if inspect.isawaitable(value) else value
            kept.append(await threads.run(functools.partial(memory.after, name, value, goal, **keeping)))  # type: ignore[arg-type]
            return value

        return called

    hands = {name: watched(name, tool) for name, tool in tools.items()}
    answer = agent(given.text, hands) if takes_tools(agent) else agent(given.text)
    answer = await answer if inspect.isawaitable(answer) else answer
    return Ran(answer, given, tuple(kept))
