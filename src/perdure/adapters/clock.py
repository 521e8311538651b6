"""The machine's clock and source of ids."""

from __future__ import annotations

import os
import random
import threading
import time
from datetime import UTC, datetime

from perdure.adapters.forks import watch_forks


class SystemClock:
    """Wall-clock time, and UUIDv7 ids that grow within the process even when the clock stands still or goes back."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last = 0
        watch_forks(self)

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def new_id(self) -> str:
        return uuid7_text(self._tick(), os.urandom(8))

    def chance(self) -> float:
        return random.random()

    def _tick(self) -> int:
        """Milliseconds times 4,096, plus a count within the millisecond; never the same twice in one process."""
        with self._lock:
            self._last = max(self._last + 1, (time.time_ns() // 1_000_000) << 12)
            return self._last

    def before_fork(self) -> None:
        """Nothing to do."""

    def after_fork_in_parent(self) -> None:
        """Nothing changed."""

    def after_fork_in_child(self) -> None:
        # Another thread may have held the lock when the process forked.
        self._lock = threading.Lock()


def uuid7_text(tick: int, noise: bytes) -> str:
    """RFC 9562 version 7: 48 bits of milliseconds, 12 bits of counter, 62 bits of noise."""
    high = ((tick >> 12) << 16) | 0x7000 | (tick & 0xFFF)
    low = (int.from_bytes(noise, "big") & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000
    text = f"{(high << 64) | low:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
