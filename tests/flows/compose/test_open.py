"""Opening an engine: what no URL can be, and what a closed one leaves behind."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest

import perdure
from perdure.adapters.clock import SystemClock


@pytest.mark.parametrize("url", [5, "http://[::1", "sqlite:///x%00y", "sqlite:agent.db", "sqlite:///:memory:"])
def test_odd_urls_are_refused_in_our_words(url: Any) -> None:
    with pytest.raises(perdure.InvalidInput):
        perdure.open(url)


def test_clocks_do_not_pile_up() -> None:
    def held() -> tuple[int, int]:
        gc.collect()
        return sum(isinstance(one, SystemClock) for one in gc.get_objects()), threading.active_count()

    clocks, threads = held()  # other tests may have engines open
    for _ in range(50):
        perdure.open("memory:").close()
    now = held()
    assert now[0] < clocks + 25
    assert now[1] < threads + 25
