"""Packs soul, mood, memory, skill and the time into a token budget. Never over it; says what it left out.

The time of day: which part of it an hour belongs to, and what an agent does well to mind then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

from perdure.domain.context.context import MEMORY_HEADING, NOTES_HEADING, PART_KINDS, PartKind, PromptPart
from perdure.domain.lessons import Lesson
from perdure.domain.text.fences import fenced
from perdure.engine.lessons import weights
from perdure.engine.text.sentences import cut_text

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
    # A line each, and nothing in it that could pass for the frame of another block. What an agent noted stands apart.
    own = [one for one in lessons if one.source == "model"]
    learned = [one for one in lessons if one.source != "model"]
    return "\n".join(
        line for heading, some in ((MEMORY_HEADING, learned), (NOTES_HEADING, own)) for line in _under(heading, some)
    )


def _under(heading: str, lessons: Sequence[Lesson]) -> list[str]:
    return [f"## {heading}", *(f"- {fenced(' '.join(one.text.split()))}" for one in lessons)] if lessons else []


def _fewer(lessons: Sequence[Lesson], request: str, room: int, count: Count, dropped: list[str]) -> str:
    """As many lessons as fit: pinned ones first, then what fits the request, then the newest; shown in their order."""
    weighed = weights(lessons, request)
    best = sorted(range(len(lessons)), key=lambda place: -weighed[place])
    costs = [count(f"- {lesson.text}\n") + 1 for lesson in lessons]
    headings = (MEMORY_HEADING, NOTES_HEADING) if any(one.source == "model" for one in lessons) else (MEMORY_HEADING,)
    spent = count("".join(f"## {heading}\n" for heading in headings) + SEPARATOR)
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


Period = Literal["night", "morning", "afternoon", "evening"]

_STARTS: tuple[tuple[int, Period], ...] = ((22, "night"), (17, "evening"), (12, "afternoon"), (6, "morning"), (0, "night"))
GUIDANCE: dict[Period, str] = {
    "night": "Be quiet and brief; what can wait until morning can wait.",
    "morning": "The day begins: be fresh and to the point, and mind what is due today.",
    "afternoon": "The day is in full swing: be practical and keep things moving.",
    "evening": "The day winds down: be relaxed, round things off, and begin nothing large unasked.",
}


def period_of(hour: int) -> Period:
    """Night from 22, morning from 6, afternoon from 12, evening from 17. `hour` is that of the clock on the wall, 0 to 23."""
    return next(period for start, period in _STARTS if hour >= start)


def time_line(local: datetime, zone: str) -> str:
    """The time and what it asks for, in one line."""
    period = period_of(local.hour)
    return f"It is {local:%A}, {local.day} {local:%B %Y}, {local:%H:%M} ({zone}): {period}. {GUIDANCE[period]}"
