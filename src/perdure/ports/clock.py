"""Time and new ids come in through here, so that flows can run on a stopped clock."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current instant, aware and in UTC. It may jump either way; nothing may rely on it for order."""

    def monotonic(self) -> float:
        """Seconds that only ever grow, for measuring how long something took."""

    def new_id(self) -> str:
        """A UUIDv7 in its usual text form; never the same one twice."""

    def chance(self) -> float:
        """A number in [0, 1), used to spread retries."""
