"""A clock that moves only when told to."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from itertools import count


class StoppedClock:
    """Stands at `now` until moved. Ids are UUIDv7-shaped and count up; chance is always one half."""

    def __init__(self, now: datetime = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)) -> None:
        self._now = now
        self._monotonic = 0.0
        self._ids = count(1)
        self._lock = threading.Lock()

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def new_id(self) -> str:
        with self._lock:
            number = next(self._ids)
        return f"00000000-0000-7000-8000-{number:012x}"

    def chance(self) -> float:
        return 0.5

    def move(self, **by: float) -> datetime:
        """Go forward, or back: `clock.move(minutes=31)`. Monotonic time only ever goes forward."""
        step = timedelta(**by)
        self._now += step
        self._monotonic += max(0.0, step.total_seconds())
        return self._now

    def set(self, now: datetime) -> None:
        """Jump to an instant, as clocks do when they are corrected."""
        self._now = now
