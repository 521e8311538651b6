"""Undoing an undo after what it stands on was taken back, too: found by the machine of knowledge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import perdure
from perdure import Conflict
from perdure.testing import StoppedClock


def test_what_tells_of_somebody_who_is_no_longer_there_does_not_come_back() -> None:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        ana.remember("Makesh works with Mukesh", "PEOPLE", entities=["person:Makesh", "person:Mukesh"])
        met = ana.journal.list(1)[0].seq
        ana.remember("Mukesh plays chess", "PEOPLE", entities=["person:Mukesh"])
        ana.undo(ana.journal.list(1)[0].seq)
        redo = ana.journal.list(1)[0].seq
        ana.undo(met)
        with pytest.raises(Conflict, match="person:mukesh"):
            ana.undo(redo)
        assert engine.verify().findings == ()


def test_a_correction_of_what_is_to_come_prolongs_nothing() -> None:
    now = datetime(2026, 1, 5, 10, tzinfo=UTC)
    clock = StoppedClock(now)
    with perdure.open("memory:", clock=clock) as engine:
        ana = engine.memory("ana")
        ana.remember("Lives in Austin", attribute="lives_in", value="Austin")
        move = now + timedelta(days=5)
        ana.remember("Lives in Boston", attribute="lives_in", value="Boston", valid_from=move)
        later = move + timedelta(minutes=1)
        ana.remember("Lives in Chicago", attribute="lives_in", value="Chicago", valid_from=later, corrects=True)
        [held] = ana.memories.list(as_of=move)
        assert held.content == "Lives in Boston"
