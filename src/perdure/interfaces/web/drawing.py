"""Drawings as numbers: where bars, lines and circles stand. Templates make SVG of them; nothing here knows of text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from perdure.domain.overview import DayActivity

WIDTH, HEIGHT, FOOT = 720.0, 120.0, 18.0


@dataclass(frozen=True, slots=True)
class Bar:
    day: date
    x: float
    width: float
    messages_y: float
    messages_height: float
    changes_y: float
    changes_height: float
    messages: int
    changes: int
    label: str


@dataclass(frozen=True, slots=True)
class BarChart:
    width: float
    height: float
    base: float
    """Where the bars stand."""
    bars: tuple[Bar, ...]
    top: int
    """What the highest bar counts."""


def activity(days: Sequence[DayActivity]) -> BarChart:
    """Messages and, above them, changes for each day. Only some days are labelled, so that labels do not touch."""
    top = max((one.messages + one.changes for one in days), default=0)
    base = HEIGHT - FOOT
    step = WIDTH / max(1, len(days))
    scale = (base - 8) / top if top else 0.0
    bars = []
    for place, one in enumerate(days):
        said, changed = one.messages * scale, one.changes * scale
        label = f"{one.day.day} {one.day:%b}" if (len(days) - 1 - place) % 7 == 0 else ""
        bars.append(
            Bar(
                one.day, place * step + step * 0.14, step * 0.72, base - said, said, base - said - changed, changed,
                one.messages, one.changes, label,
            )
        )  # fmt: skip
    return BarChart(WIDTH, HEIGHT, base, tuple(bars), top)
