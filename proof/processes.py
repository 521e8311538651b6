"""Processes of ours that may be killed: forked from a server that has everything imported, so that starting one costs little."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess

PRELOADED = ["proof.__main__", "proof.workers.warm"]
END_S = 60.0
POLL_S = 0.001
_DIE_WITH_PARENT = 1
"""Of prctl(2)."""


class Crew:
    """The processes that one trial has started; none outlives it."""

    def __init__(self) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._started: list[BaseProcess] = []

    def start(self, target: Callable[..., object], *args: object) -> BaseProcess:
        process = self._context.Process(target=_tied, args=(target, *args))
        process.start()
        self._started.append(process)
        return process

    def end_all(self) -> None:
        for process in self._started:
            if process.is_alive():
                process.kill()
        for process in self._started:
            process.join(END_S)
            process.close()
        self._started.clear()


def _tied(target: Callable[..., object], *args: object) -> None:
    """Run it in a process that does not outlive those who started it, even if they were killed themselves."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    target(*args)


@contextmanager
def crew() -> Iterator[Crew]:
    """A crew that is ended whatever happens."""
    made = Crew()
    try:
        yield made
    finally:
        made.end_all()


def kill(process: BaseProcess) -> bool:
    """End it as `kill -9` does; False if it had ended by itself."""
    process.kill()
    return ended(process) == -signal.SIGKILL


def ended(process: BaseProcess, *, seconds: float = END_S) -> int:
    """Wait for its end; how it ended, below zero by a signal."""
    process.join(seconds)
    if process.exitcode is None:
        raise TimeoutError(f"process {process.pid} did not end within {seconds:.0f} s")
    return process.exitcode


def until(holds: Callable[[], bool], what: str, *, seconds: float = END_S) -> None:
    """Wait until it holds; a trial in which it never does has failed."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(POLL_S)


def die() -> None:
    """End this very process as `kill -9` does."""
    os.kill(os.getpid(), signal.SIGKILL)
