"""Work that computes all the time is done by one thread at a time.

Python runs one thread at a time anyway. Several that compute hand the interpreter to and fro at every call that lets go of
it, hundreds of times for one answer: eight of them took three times the processor of one, and answered half as often.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

WAIT_S = 1.0
"""Whoever has waited so long goes ahead anyway: this is for speed, and nothing may hang on it."""


class Alone:
    """Lets one thread in at a time. Not to be entered twice by one thread."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self._pid != os.getpid():
            self._start()  # after a fork, whoever held it is no longer there
        lock = self._lock
        held = lock.acquire(timeout=WAIT_S)
        try:
            yield
        finally:
            if held:
                lock.release()
