"""How many examples a property is tried on. They are new ones on each run, so the fast lane takes few of them each time."""

from __future__ import annotations

import hypothesis

FAST_SHARE, EXAMPLES_MIN = 0.25, 6
_fast = False


def take(lane: str) -> None:
    """Settle the lane before tests are collected, by the marks that the run asks for: one without `slow` tests is the fast one."""
    global _fast
    _fast = "not slow" in lane
    hypothesis.settings.register_profile("lane", hypothesis.settings(), max_examples=examples(100))
    hypothesis.settings.load_profile("lane")


def examples(number: int) -> int:
    """`number`, or the share of it that the fast lane takes."""
    return max(EXAMPLES_MIN, int(number * FAST_SHARE)) if _fast else number
