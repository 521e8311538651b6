"""How often something may happen: a bucket of tokens for each caller, of whom only so many are remembered."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable

CALLERS_MAX = 10_000


class Buckets:
    """`burst` at once, then `per_s` each second. A caller who was forgotten begins with a full bucket."""

    def __init__(self, per_s: float, burst: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._burst = max(1.0, burst)
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> float:
        """Take a token: 0, or after how many seconds there will be one."""
        now = self._clock()
        left = self._left(caller, now)
        if left < 1:
            return (1 - left) / self._per_s
        self._keep(caller, left - 1, now)
        return 0.0

    def wait_s(self, caller: str) -> float:
        """After how many seconds there will be a token; 0: there is one. None is taken."""
        left = self._left(caller, self._clock())
        return 0.0 if left >= 1 else (1 - left) / self._per_s

    def _left(self, caller: str, now: float) -> float:
        left, at = self._held.get(caller, (self._burst, now))
        return min(self._burst, left + (now - at) * self._per_s)

    def _keep(self, caller: str, left: float, now: float) -> None:
        self._held[caller] = (left, now)
        self._held.move_to_end(caller)
        if len(self._held) > CALLERS_MAX:
            self._held.popitem(last=False)


def whole_seconds(wait_s: float) -> str:
    """For `Retry-After`, which knows no parts of a second."""
    return str(max(1, math.ceil(wait_s)))
