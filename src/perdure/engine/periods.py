"""The time of day: which part of it an hour belongs to, and what an agent does well to mind then."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

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
