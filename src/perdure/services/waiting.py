"""Waiting for something only as long as one has time: what comes too late is left to itself."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from perdure.domain.errors import Unavailable

T = TypeVar("T")
LEFT_MAX = 16
"""So many calls that nobody waits for any more may go on at once; beyond, nothing new is begun."""
_LEFT = threading.BoundedSemaphore(LEFT_MAX)


class TooLate(Unavailable):
    """It is not done yet, and there is no more time."""


def within(seconds: float, work: Callable[[], T]) -> T:
    """What `work` gives, or raises; `TooLate` if that takes longer. It then goes on in its own thread, unheard."""
    if seconds <= 0 or not _LEFT.acquire(blocking=False):
        raise TooLate("there was no time left for it")
    answer: list[T] = []
    trouble: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(work())
        except BaseException as error:  # noqa: BLE001 - handed on to the caller, who waits for it
            trouble.append(error)
        finally:
            _LEFT.release()

    thread = threading.Thread(target=run, name="perdure-within", daemon=True)
    thread.start()
    thread.join(seconds)
    if trouble:
        raise trouble[0]
    if not answer:
        raise TooLate(f"it took longer than {seconds:.1f} s")
    return answer[0]
