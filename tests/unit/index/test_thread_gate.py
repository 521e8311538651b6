"""One thread at a time, and nobody hangs for it."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure.services.index import cache
from perdure.services.index.cache import ThreadGate


def test_one_thread_is_in_at_a_time() -> None:
    only, inside, seen = ThreadGate(), [0], set[int]()

    def work(_: int) -> None:
        with only():
            inside[0] += 1
            seen.add(inside[0])
            inside[0] -= 1

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(200)))
    assert seen == {1}


def test_whoever_has_waited_long_enough_goes_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WAIT_S", 0.01)
    only, done = ThreadGate(), threading.Event()

    def work() -> None:
        with only():
            done.set()

    with only():
        thread = threading.Thread(target=work)
        thread.start()
        assert done.wait(10)
        thread.join()


def test_an_error_lets_the_next_one_in() -> None:
    only = ThreadGate()
    with pytest.raises(RuntimeError), only():
        raise RuntimeError
    with only():
        pass


def test_a_child_does_not_wait_for_a_thread_of_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    only = ThreadGate()
    with only():
        here = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: here + 1)  # as if forked meanwhile
        with only():
            assert only._lock.locked()
