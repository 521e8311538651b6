"""The past in which the demo data is lived: the same store, seen at another time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, time, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from perdure.app import Engine, parts_of
from perdure.domain.models import Usage
from perdure.domain.times.instants import to_us
from perdure.handles.memory import Memory

USER = "demo"
PLACES = {"coach": ("coach", "app"), "clerk": ("clerk", "discord:42"), "planner": ("planner", "terminal")}
"""With whom Ana talks, and where."""
Event = tuple[datetime, Callable[[], object]]


class PastClock:
    """Stands where it is told to. Its ids are UUIDv7 of that moment, counted, so that they never meet another's."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._count = count(1)

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return 0.0

    def new_id(self) -> str:
        number = next(self._count)
        millis = to_us(self._now) // 1000
        return str(UUID(int=(millis << 80) | (0x7 << 76) | (0b10 << 62) | (0xDE << 48) | number))

    def chance(self) -> float:
        return 0.5

    def set(self, now: datetime) -> None:
        self._now = now


class DemoPast:
    """The demo's world while it is filled: the same store, at another time."""

    def __init__(self, engine: Engine) -> None:
        self._store, clock, chosen = parts_of(engine)
        self.now = clock.now()
        self.clock = PastClock(self.now)
        # No model, no files, no network: what the demo shows is what the rules do.
        settings = replace(chosen, model="", files_dir="", agents_dir="", save_results="manual")
        self.engine = Engine(self._store, self.clock, settings)

    def memory(self, place: str = "coach") -> Memory:
        """Ana, at one of her places."""
        agent, channel = PLACES[place]
        return self.engine.memory(USER, agent=agent, channel=channel)

    def ask_model(self, **counts: Any) -> None:
        """Count questions to a model as if they had been asked now; the demo has none to ask."""
        used = Usage(last_at=self.clock.now(), **counts)
        self._store.write(self.memory().scope.owner, lambda tx: tx.oversight.add_usage(used))

    def ago(self, days: float = 0, at: str = "12:00") -> datetime:
        """A time of day so many days ago, and never later than now."""
        day = (self.now - timedelta(days=days)).date()
        return min(datetime.combine(day, time.fromisoformat(at), self.now.tzinfo), self.now)

    def work(self) -> None:
        """Let the jobs run."""
        self.engine.process()
