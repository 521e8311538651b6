"""Packs soul, mood, memory, skill and the time into a token budget. Never over it; says what it left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perdure.domain.context import fenced
from perdure.domain.lessons import Lesson
from perdure.domain.prompts import MEMORY_HEADING, PART_KINDS, PartKind, PromptPart
from perdure.engine.lesson_rules import weights
from perdure.engine.sentences import cut_text

Count = Callable[[str], int]
SEPARATOR = "\n\n"
SHARES: dict[PartKind, float] = {"time": 0.1, "soul": 0.3, "memory": 0.3, "skill": 0.2, "mood": 0.1}
"""What each may count on, if not all fits; what one does not need is given to the others, in this order."""
CHARS_MIN = 20
"""Less than this of a text is not worth reading."""


def combine(
    texts: dict[PartKind, str], lessons: Sequence[Lesson], request: str, budget_tokens: int, count: Count
) -> tuple[tuple[PromptPart, ...], tuple[str, ...]]:
    """The parts in order, and what was dropped. `texts` has the parts that are text; of lessons, whole lines are shown."""
    wanted = {kind: text.strip() for kind, text in texts.items() if text.strip()}
    if lessons:
        wanted["memory"] = _memory(lessons)
    costs = {kind: count(text + SEPARATOR) for kind, text in wanted.items()}
    rooms = _rooms(costs, budget_tokens)
    dropped: list[str] = []
    parts: list[PromptPart] = []
    for kind in PART_KINDS:
        if kind not in wanted:
            continue
        text = wanted[kind]
        if costs[kind] > rooms[kind]:
            text = (
                _fewer(lessons, request, rooms[kind], count, dropped)
                if kind == "memory"
                else _shorter(text, rooms[kind], count)
            )
            if kind != "memory":
                dropped.append(f"{kind}: {'cut' if text else 'left out'}, {costs[kind]} tokens")
        if text:
            parts.append(PromptPart(kind, text, count(text + SEPARATOR)))
    return tuple(parts), tuple(dropped)


def _rooms(costs: dict[PartKind, int], budget: int) -> dict[PartKind, int]:
    rooms = {kind: min(cost, int(budget * SHARES[kind])) for kind, cost in costs.items()}
    left = budget - sum(rooms.values())
    for kind in SHARES:
        if kind in rooms:
            more = min(left, costs[kind] - rooms[kind])
            rooms[kind] += more
            left -= more
    return rooms


def _memory(lessons: Sequence[Lesson]) -> str:
    # A line each, and nothing in it that could pass for the frame of another block.
    return "\n".join([f"## {MEMORY_HEADING}", *(f"- {fenced(' '.join(one.text.split()))}" for one in lessons)])


def _fewer(lessons: Sequence[Lesson], request: str, room: int, count: Count, dropped: list[str]) -> str:
    """As many lessons as fit: pinned ones first, then what fits the request, then the newest; shown in their order."""
    weighed = weights(lessons, request)
    best = sorted(range(len(lessons)), key=lambda place: -weighed[place])
    costs = [count(f"- {lesson.text}\n") + 1 for lesson in lessons]
    spent = count(f"## {MEMORY_HEADING}\n{SEPARATOR}")
    chosen: list[int] = []
    for place in best:
        if spent + costs[place] <= room:
            chosen.append(place)
            spent += costs[place]
    while chosen and count(_memory([lessons[place] for place in sorted(chosen)]) + SEPARATOR) > room:
        chosen.pop()
    dropped.append(f"lessons: {len(lessons) - len(chosen)} of {len(lessons)} left out")
    return _memory([lessons[place] for place in sorted(chosen)]) if chosen else ""


def _shorter(text: str, room: int, count: Count) -> str:
    chars = len(text)
    while text and count(text + SEPARATOR) > room:
        chars = int(chars * min(0.9, max(room, 1) / count(text + SEPARATOR)))
        text = cut_text(text, chars) if chars >= CHARS_MIN else ""
    return text
