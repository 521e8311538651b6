"""T-53: one day through all five seeds, on a simulated clock, without a network: every counter of it as predicted.

The script is `perdure.interfaces.demo.day`, which `perdure demo` shows; the predictions are in `predicted_day`.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from offline import cut_off
from perdure.interfaces.demo.day import SCRIPT, walk
from perdure.interfaces.demo.day_world import ASK, METRIC, World
from predicted_day import EXPLAINED, PREDICTED, live, told

BACKENDS = {"sqlite": "sqlite", "postgres": "postgresql"}


def test_one_day_through_all_five_seeds_is_as_predicted_and_needs_no_network_t_53(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(monkeypatch)
    day = live(backend, tmp_path / "day")
    facts = told(day)
    explained = facts.pop(EXPLAINED)
    assert facts == PREDICTED
    assert list(day) == [step.title for step in SCRIPT]
    shares = explained["shares"]
    assert isinstance(shares, dict)
    assert sum(shares.values()) == pytest.approx(explained["score"], abs=0.05)

    assert day["The doctor proves a round trip"].facts["backend"] == BACKENDS[backend.name]
    book = (tmp_path / "day/agents/memory.md").read_text(encoding="utf-8")
    assert book == f"# What we have learned\n\n- {METRIC}\n- {ASK}\n", "the hand's layout stays"


def test_the_day_passes_from_night_to_night_on_the_users_wall_t_52() -> None:
    moments = [step.at for step in SCRIPT]
    assert moments == sorted(moments)
    periods = [str(facts["period"]) for facts in PREDICTED.values() if "period" in facts]
    assert [period for period, _ in groupby(periods)] == ["night", "morning", "afternoon", "evening", "night"]
    edges = {"05:59", "06:00", "12:00", "17:00", "22:00"}
    assert edges <= set(moments)


def test_the_clock_of_the_day_stands_where_its_steps_say(sqlite: Any, tmp_path: Path) -> None:
    world = World(tmp_path / "day", sqlite.settings)
    try:
        first = next(walk(world))
        assert (first.at.strftime("%H:%M"), first.at.utcoffset()) == ("05:30", timedelta(hours=1))
        assert world.clock.now() == first.at
    finally:
        world.close()
