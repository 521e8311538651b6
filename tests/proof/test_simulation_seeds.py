"""The whole system by seeds: a few that meet every fault, one that is compared with the store in memory, and some new ones."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from proof import simulation

CALLS = 120
KEPT = (1, 2, 3)
COMPARED = 4
NEW = 5


def test_what_is_kept_holds_through_every_fault_and_a_seed_always_means_one_run() -> None:
    runs = [simulation.run(seed, calls=CALLS) for seed in KEPT]
    assert [str(ran.violated) for ran in runs if ran.violated is not None] == []
    again = simulation.run(KEPT[-1], calls=CALLS)
    assert (again.hash, again.trace) == (runs[-1].hash, runs[-1].trace)
    met = sum((ran.counts for ran in runs), Counter[str]())
    assert [name for name in simulation.FAULTS if not met[name]] == [], "these seeds show less than they should: choose others"


def test_sqlite_and_memory_give_the_same_trace() -> None:
    assert COMPARED % simulation.COMPARED_EVERY == 0
    assert simulation.tried(COMPARED, calls=CALLS, shrink=False) is None


@pytest.mark.parametrize("_number", range(NEW))
def test_a_new_seed_shows_nothing_wrong(_number: int) -> None:
    seed = random.SystemRandom().randrange(10**9)
    failure = simulation.tried(seed, calls=CALLS, shrink=False)
    assert failure is None, f"{failure}"
