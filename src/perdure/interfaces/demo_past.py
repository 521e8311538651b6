"""The past in which the demo data is lived: the same store, seen at another time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, time, timedelta
from itertools import count
from uuid import UUID

from perdure.app import Engine
from perdure.domain.knowledge import Extraction, ExtractionRequest
from perdure.domain.times import to_us
from perdure.handles.memory import Memory

USER = "demo"
PLACES = {"coach": ("coach", "app"), "clerk": ("clerk", "discord:42"), "planner": ("planner", "terminal")}
"""With whom Ana talks, and where."""
TRIES = 9
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


class Past:
    """The demo's world while it is filled: the same store, at another time."""

    def __init__(self, engine: Engine) -> None:
        self.now = engine._clock.now()
        self.clock = PastClock(self.now)
        # No model, no files, no network: what the demo shows is what the rules do.
        settings = replace(engine._settings, model="", files_dir="", agents_dir="", save_results="manual")
        self.engine = Engine(engine._store, self.clock, settings)
        self._troubled = Engine(engine._store, self.clock, settings, models={"extractor": _Unreachable()})

    def memory(self, place: str = "coach") -> Memory:
        """Ana, at one of her places."""
        agent, channel = PLACES[place]
        return self.engine.memory(USER, agent=agent, channel=channel)

    def ago(self, days: float = 0, at: str = "12:00") -> datetime:
        """A time of day so many days ago, and never later than now."""
        day = (self.now - timedelta(days=days)).date()
        return min(datetime.combine(day, time.fromisoformat(at), self.now.tzinfo), self.now)

    def work(self, *, troubled: bool = False) -> None:
        """Let the jobs run; `troubled`, while nobody can be asked what there is to learn, until they are given up."""
        if troubled:
            for _ in range(TRIES):
                self._troubled.process()
                self.clock.set(self.clock.now() + timedelta(hours=2))
        else:
            self.engine.process()


class _Unreachable:
    """An extractor whose server is down."""

    name = "demo-model/1"

    def extract(self, _request: ExtractionRequest) -> Extraction:
        raise ConnectionRefusedError
