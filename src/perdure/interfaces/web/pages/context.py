"""`/u/{user}/context`: exactly what an agent would be given for a goal, by block, what that costs, and why."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request, Response

from perdure.domain.context.context import Context, Prompt
from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.oversight import Choice, Injection
from perdure.domain.text.rules import brief
from perdure.handles.memory import Memory
from perdure.interfaces.web.page import memory_of, page

router = APIRouter()
View = Literal["before", "context", "prompt"]
VIEWS: dict[View, str] = {
    "before": "Goal context: only what is relevant",
    "context": "Whole context: memory, then the conversation",
    "prompt": "System prompt: persona, tone, lessons",
}
BUDGETS = (500, 1_000, 2_000, 4_000, 8_000)
GOAL_CHARS_MAX = 8_000
ROWS_MAX = 1_000
MESSAGES_READ_MAX = 100
LEFT_SHOWN = 6
BlockRow = tuple[str, str, str, str, int, bool]
"""Kind, title, source, text, tokens, and whether it changes from goal to goal."""
TONES = ("accent", "blue", "violet", "amber", "red", "soft", "strong")


@router.get("/u/{user:id}/context")
def ask(request: Request, goal: str = "", view: str = "before") -> Response:
    memory_of(request)
    return _page(request, goal, view if view in VIEWS else "before", 2_000, None)


@router.post("/u/{user:id}/context")
def show(
    request: Request,
    goal: Annotated[str, Form(max_length=GOAL_CHARS_MAX)] = "",
    view: Annotated[str, Form()] = "before",
    budget: Annotated[int, Form(ge=1, le=1_000_000)] = 2_000,
) -> Response:
    """It is posted because it is what an agent would do: the overseer's decision is recorded, and what is due is folded."""
    memory = memory_of(request, "write")
    if view == "before":
        if not goal.strip():
            raise InvalidInput("the goal is empty; write what the agent is to do")
        found = memory.before(goal, budget_tokens=budget)
        return _page(request, goal, view, budget, _injection(found, choice_names(memory, found.choices)))
    if view == "context":
        return _page(request, goal, view, budget, _context(memory.context(goal.strip() or None, budget_tokens=budget)))
    if view == "prompt":
        return _page(request, goal, view, budget, _prompt(memory.prompt(goal, budget_tokens=budget)))
    raise InvalidInput(f"{brief(view)} is unknown; use one of {', '.join(VIEWS)}")


def _page(request: Request, goal: str, view: str, budget: int, made: dict[str, Any] | None) -> Response:
    return page(
        request, "context.html", goal=goal, view=view, budget=budget, made=made, views=VIEWS, budgets=BUDGETS, shown=LEFT_SHOWN
    )


def choice_names(memory: Memory, choices: Sequence[Choice]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What the ids of choices stand for, in words, and where that can be seen."""
    kinds = {one.kind for one in choices}
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    if "memory" in kinds or "card" in kinds:
        for held in memory.memories.list(limit=ROWS_MAX):
            found |= {one.id: (one.content, ("memories", one.memory)) for one in held.statements}
    if "lesson" in kinds:
        found |= {one.id: (one.text, ("lessons",)) for one in memory.lessons.list(limit=ROWS_MAX)}
    if "instruction" in kinds:
        found |= {one.id: (one.content, ("todos",)) for one in memory.instructions.list(limit=ROWS_MAX)}
    if "todo" in kinds:
        found |= {one.id: (one.content, ("todos",)) for one in memory.todos.list(limit=ROWS_MAX)}
    for one in choices[:MESSAGES_READ_MAX]:
        if one.kind == "message":
            with suppress(PerdureError):  # it was said at another address
                found[one.id] = (memory.conversation.message(one.id).content, ("messages", one.id))
        elif one.kind in ("state", "series"):
            found[one.id] = (one.id, (one.kind, one.id))
    return found


def _injection(found: Injection, names: dict[str, tuple[str, tuple[str, ...]]]) -> dict[str, Any]:
    return _made(
        found,
        [(one.kind, one.title, one.source, one.render(), one.tokens, one.volatile) for one in found.blocks],
        {"decided by": found.outcome, "took": f"{found.took_ms:.0f} ms", "model calls": found.model_calls},
        taken=[(one, *names.get(one.id, (one.id, ()))) for one in found.choices if one.included],
        left=[(one, *names.get(one.id, (one.id, ()))) for one in found.choices if not one.included],
        span=found.time_range,
    )


def _context(found: Context) -> dict[str, Any]:
    blocks = [(one.kind, one.title, one.source, one.render(), one.tokens, one.volatile) for one in found.blocks]
    return _made(found, blocks, {"messages": len(found.messages)}, messages=found.messages, dropped=found.dropped)


def _prompt(found: Prompt) -> dict[str, Any]:
    blocks = [(one.kind, one.kind, "", one.text, one.tokens, one.kind == "time") for one in found.parts]
    return _made(found, blocks, {"agent": found.agent, "it is": found.period}, dropped=found.dropped)


def _made(
    found: Injection | Context | Prompt, blocks: Sequence[BlockRow], facts: dict[str, Any], **more: Any
) -> dict[str, Any]:
    """What all three have, and what one of them has more."""
    return {
        "blocks": block_rows(blocks),
        "messages": (),
        "tokens": found.tokens,
        "budget": found.budget_tokens,
        "taken": (),
        "left": (),
        "dropped": (),
        "notes": found.notes,
        "text": found.text,
        "span": None,
        "facts": facts,
        **more,
    }


def block_rows(blocks: Sequence[BlockRow]) -> list[dict[str, Any]]:
    """With a colour each, and where its part of the whole begins."""
    total = max(1, sum(block[4] for block in blocks))
    made, start = [], 0.0
    for place, (kind, title, source, text, tokens, volatile) in enumerate(blocks):
        share = tokens / total
        made.append(
            {
                "kind": kind,
                "title": title,
                "source": source,
                "text": text,
                "tokens": tokens,
                "volatile": volatile,
                "tone": TONES[place % len(TONES)],
                "start": start,
                "share": share,
            }
        )
        start += share
    return made
