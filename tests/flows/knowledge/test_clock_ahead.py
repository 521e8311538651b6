"""A clock that ran ahead: what was stored then is current at once, can be replaced, is told by `doctor`, and is repaired."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import perdure
from perdure.adapters.sql.knowledge import SqlRecords
from perdure.settings import Settings
from perdure.testing import StoppedClock

AHEAD = timedelta(days=400)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(datetime(2026, 11, 17, 12, tzinfo=UTC))


@pytest.fixture
def engine(clock: StoppedClock) -> Iterator[perdure.Engine]:
    settings = Settings(url="memory:", embedder="none")
    with perdure.open(settings=settings, clock=clock) as engine:
        yield engine


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    return engine.memory("ana")


def current(ana: perdure.Memory) -> list[str]:
    return sorted(statement.content for memory in ana.memories.list() for statement in memory.statements)


def found(ana: perdure.Memory, question: str) -> list[str]:
    return [hit.text for hit in ana.recall(question).hits]


def test_what_was_stored_ahead_without_a_start_is_current_at_once(
    engine: perdure.Engine, ana: perdure.Memory, clock: StoppedClock
) -> None:
    clock.move(days=400)
    ana.remember("Ana is allergic to nuts", "PROFILE", pinned=True)
    ana.remember("Ana plays the cello", "PROFILE")
    clock.move(days=-400)
    engine.process()
    assert current(ana) == ["Ana is allergic to nuts", "Ana plays the cello"]
    assert "nuts" in ana.context("What should I cook for dinner?", budget_tokens=500).text
    assert any("cello" in text for text in found(ana, "Which instrument does Ana play?"))


def test_what_was_learned_from_a_message_ahead_is_current_at_once(
    engine: perdure.Engine, ana: perdure.Memory, clock: StoppedClock
) -> None:
    clock.move(days=400)
    ana.append("user", "I live in Lisbon")
    clock.move(days=-400)
    engine.process()
    assert any("Lisbon" in text for text in current(ana))


def test_a_stated_start_is_waited_for(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.remember("Ana works at Acme", "PROFILE", valid_from=clock.now() + timedelta(days=30))
    assert current(ana) == []
    clock.move(days=31)
    assert current(ana) == ["Ana works at Acme"]


def test_saying_it_again_is_a_mention_of_something_visible(ana: perdure.Memory, clock: StoppedClock) -> None:
    clock.move(days=400)
    ana.remember("Ana lives in Minsk", "PROFILE", attribute="lives_in", value="Minsk")
    clock.move(days=-400)
    assert ana.remember("Ana lives in Minsk", "PROFILE", attribute="lives_in", value="Minsk").verdict == "mentioned"
    assert current(ana) == ["Ana lives in Minsk"]


@pytest.mark.parametrize("days", [400, -20_000])
def test_a_newer_word_takes_its_place_whichever_way_the_clock_was_wrong(
    engine: perdure.Engine, ana: perdure.Memory, clock: StoppedClock, days: int
) -> None:
    """The clock is put right between the two, or is wrong for the second one."""
    clock.move(days=days)
    ana.remember("Ana lives in Minsk", "PROFILE", attribute="lives_in", value="Minsk")
    clock.move(days=-days)
    ana.remember("Ana lives in Oslo", "PROFILE", attribute="lives_in", value="Oslo")
    assert current(ana) == ["Ana lives in Oslo"]
    clock.move(days=days)
    ana.remember("Ana lives in Kyiv", "PROFILE", attribute="lives_in", value="Kyiv")
    assert current(ana) == ["Ana lives in Kyiv"]
    clock.move(days=-days)
    engine.process()
    assert current(ana) == ["Ana lives in Kyiv"]
    where = found(ana, "Where does Ana live?")
    assert any("Kyiv" in text for text in where)
    assert not any("Oslo" in text or "Minsk" in text for text in where)
    assert engine.verify().clean


def test_what_was_ended_ahead_has_ended(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.remember("Ana has a dog", "PROFILE")
    clock.move(days=400)
    ana.remember("Ana has a dog", "PROFILE", ended=True)
    clock.move(days=-400)
    assert current(ana) == []


def test_doctor_tells_of_rows_from_the_future_and_repair_brings_them_back(
    engine: perdure.Engine, ana: perdure.Memory, clock: StoppedClock
) -> None:
    ana.remember("Ana has a dog", "PROFILE")
    clock.move(days=400)
    ana.remember("Ana plays the cello", "PROFILE")
    ana.remember("Ana has a dog", "PROFILE", ended=True)
    ana.todos.add("Tune the cello")
    clock.move(days=-400)
    [said] = [one for one in engine.doctor().degraded if one.startswith("clock:")]
    assert "perdure admin repair-clock" in said
    assert "1 user" in said
    report = engine.repair_clock()
    assert report.users == 1
    assert report.rows >= 4
    assert not [one for one in engine.doctor().degraded if one.startswith("clock:")]
    assert engine.repair_clock().rows == 0
    assert engine.verify().clean
    [memory] = [one for one in ana.memories.list() if "cello" in one.content]
    [statement] = memory.statements
    assert statement.valid_from <= clock.now()
    assert statement.recorded_at <= clock.now()
    clock.move(minutes=1)
    assert current(ana) == ["Ana plays the cello"]
    engine.process()
    assert any("cello" in text for text in found(ana, "Which instrument does Ana play?"))
    assert [one.content for one in ana.todos.list()] == ["Tune the cello"]


def test_a_start_or_a_due_time_that_was_stated_is_no_row_from_the_future(
    engine: perdure.Engine, ana: perdure.Memory, clock: StoppedClock
) -> None:
    ana.remember("Ana works at Acme", "PROFILE", valid_from=clock.now() + AHEAD)
    ana.todos.add("Renew the passport", due_at=clock.now() + AHEAD)
    assert not [one for one in engine.doctor().degraded if one.startswith("clock:")]
    assert engine.repair_clock().rows == 0


def test_repair_replaces_the_terms_of_a_row_without_looking_for_them(
    clock: StoppedClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In SQLite they are found by what they say alone: to look for a row's own is to look through all of its kind."""
    searched: list[int] = []
    settle = SqlRecords.settle

    def counted(records: SqlRecords) -> None:
        searched.extend(len(keys) for keys in records._gone.values())
        settle(records)

    monkeypatch.setattr(SqlRecords, "settle", counted)
    with perdure.open(tmp_path / "store.db", clock=clock) as engine:
        clock.move(days=400)
        engine.memory("ana").remember("Ana plays the cello", "PROFILE", pinned=True)
        clock.move(days=-400)
        assert engine.repair_clock().rows == 2
        assert engine.verify().clean
    assert searched == []
