"""What a user's memory holds, at a glance: how much of what, and how much came and changed on each day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date


@dataclass(frozen=True, slots=True)
class DayActivity:
    """One day, where the user is."""

    day: date
    messages: int = 0
    changes: int = 0
    """Operations of the journal."""


@dataclass(frozen=True, slots=True)
class Overview:
    """Counts of what is held, and the last days, the oldest first."""

    counts: Mapping[str, int]
    """By name: `messages`, `sessions`, `memories`, `pinned`, `archived`, `entities`, `todos` and `instructions` that are open,
    `suggestions`, `state`, `series`, `jobs_waiting`, `jobs_dead`."""
    days: tuple[DayActivity, ...]
    partial: bool = False
    """There is more than was counted: the numbers of sessions, messages, keys, series or days are lower bounds."""
