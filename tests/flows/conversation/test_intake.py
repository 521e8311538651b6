"""Appending reads nothing in a message: its words and orders are taken in when somebody reads, or by the job; none is missed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure import NewMessage
from perdure.domain.context.recall import ENTRY_KINDS
from perdure.domain.scope import Address
from perdure.interfaces.access import CallerAccess, Door
from perdure.services.conversation.intake import PAGE
from perdure.services.index.cache import UNREAD_MAX
from perdure.services.index.unread import unread_of
from perdure.testing import StoppedClock

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
FRENCH, GERMAN = "Always answer in French.", "From now on answer in German."


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture
def engine(backend: Any, clock: StoppedClock) -> perdure.Engine:
    engine: perdure.Engine = backend.open(clock=clock)
    return engine


def entries(engine: perdure.Engine, user: str = "ana") -> int:
    owner = engine.memory(user).scope.owner
    return engine._store.read(owner, lambda view: sum(view.index.count_entries(kind) for kind in ENTRY_KINDS))


def orders(memory: perdure.Memory) -> list[str]:
    return [one.content for one in memory.instructions.list()]


def only_reading(engine: perdure.Engine, user: str = "ana") -> perdure.Memory:
    return Door(engine, CallerAccess("reader", None, frozenset({"read"})), "http").memory(user, "read")


def test_appending_writes_the_message_and_its_job_and_reads_nothing(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", f"The harbour is closed. {FRENCH}")
    assert entries(engine) == 0
    assert ana.journal.list() == []
    assert [job.kind for job in ana.admin.jobs()] == ["tally"]
    assert engine.verify().clean, "what is not counted yet need not be indexed"
    engine.process(60)
    assert entries(engine) == 2
    assert engine.verify().clean


@pytest.mark.parametrize("own", [False, True])
def test_an_order_stands_in_the_next_context_whoever_learns(backend: Any, clock: StoppedClock, own: bool) -> None:
    engine = backend.open(clock=clock, catch_up_ms=0 if own else 50)
    ana = engine.memory("ana")
    ana.append("user", f"Hello! {FRENCH}")
    assert FRENCH in ana.context().text
    assert orders(ana) == [FRENCH]
    ana.append("user", "You may answer in English again, no more French.")
    ana.append("user", GERMAN)
    assert GERMAN in ana.before("Say hello").text
    assert GERMAN in orders(ana)


def test_a_key_that_only_reads_finds_new_messages_by_their_words_and_writes_nothing(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", "The harbour is closed.")
    found = only_reading(engine).recall("harbour")
    assert [hit.text for hit in found.hits] == ["The harbour is closed."]
    assert (found.pending, found.uncovered.waiting, found.uncovered.unindexed) == (1, 1, False)
    assert entries(engine) == 0
    assert ana.journal.list() == []
    ana.append("user", "The lighthouse is open.")
    assert {hit.text for hit in only_reading(engine).recall("lighthouse or harbour").hits} == {
        "The harbour is closed.",
        "The lighthouse is open.",
    }
    taken_in = ana.recall("harbour")
    assert (taken_in.pending, taken_in.uncovered.unindexed) == (0, False)
    assert entries(engine) == 2
    assert [hit.id for hit in taken_in.hits] == [hit.id for hit in only_reading(engine).recall("harbour").hits]


def test_of_more_new_messages_than_are_looked_at_the_newest_are_found_and_the_rest_is_told(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append_many([NewMessage("user", f"Parcel p{number}x has arrived.") for number in range(UNREAD_MAX + 5)])
    newest = only_reading(engine).recall(f"p{UNREAD_MAX + 4}x")
    assert newest.hits[0].text == f"Parcel p{UNREAD_MAX + 4}x has arrived."
    assert newest.uncovered.unindexed
    assert "older data is still being indexed" in newest.uncovered.lines()
    engine.process(60)
    oldest = only_reading(engine).recall("p0x")
    assert oldest.hits[0].text == "Parcel p0x has arrived."
    assert not oldest.uncovered.unindexed


def test_a_store_that_cannot_be_written_answers_with_new_messages(
    tmp_path: Path, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with perdure.open(f"sqlite:///{tmp_path / 'a.db'}", clock=clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", f"The harbour is closed. {FRENCH}")
        monkeypatch.setattr(type(engine._store), "write", _refuse)
        found = ana.recall("harbour")
        assert [hit.kind for hit in found.hits] == ["message"]
        assert found.pending == 1


def _refuse(*_args: Any, **_named: Any) -> None:
    raise perdure.Unavailable("the disk is full; make room")


def test_orders_take_effect_in_the_order_in_which_they_were_given_wherever_that_was(
    engine: perdure.Engine, clock: StoppedClock
) -> None:
    desk, phone = (engine.memory("ana", channel=channel) for channel in ("desk", "phone"))
    desk.append("user", "Hello.")
    clock.move(minutes=1)
    phone.append("user", GERMAN)
    clock.move(minutes=1)
    desk.append("user", "From now on answer in French.")
    engine.process(60)
    assert orders(desk) == ["From now on answer in French."]


def test_an_order_that_was_said_does_not_undo_one_that_was_added_after_it(engine: perdure.Engine, clock: StoppedClock) -> None:
    ana = engine.memory("ana")
    ana.append("user", "From now on answer in French.")
    clock.move(minutes=1)
    ana.instructions.add("From now on answer in German.")
    engine.process(60)
    assert orders(ana) == ["From now on answer in German."]


def test_what_is_forgotten_before_it_was_read_is_not_found_and_the_orders_beside_it_stand(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.remember("Zelda is my sister.")
    ana.append("user", f"I have met Zelda today. {FRENCH}")
    ana.forget(entity="person:zelda")
    assert orders(ana) == [FRENCH]
    engine.process(60)
    assert not any("Zelda" in hit.text for hit in ana.recall("Zelda").hits)
    assert engine.verify().clean


def test_what_is_taken_back_before_it_was_read_is_read_when_it_is_put_back(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append_many([NewMessage("user", f"Row number r{number}x.") for number in range(3)])
    ana.append("user", f"The harbour is closed. {FRENCH}")
    ana.conversation.pop()
    assert not any("harbour" in hit.text for hit in ana.recall("harbour").hits)
    assert orders(ana) == []
    taken = next(one for one in ana.journal.list() if one.kind == "withdrawal")
    ana.undo(taken.seq)
    assert ana.recall("harbour").hits[0].text.startswith("The harbour")
    assert orders(ana) == [FRENCH]
    engine.process(60)
    assert engine.verify().clean


def test_what_a_backup_holds_unread_is_read_after_the_restore(tmp_path: Path, clock: StoppedClock) -> None:
    with perdure.open(f"sqlite:///{tmp_path / 'a.db'}", clock=clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", "The lighthouse is open.")
        engine.process(60)
        ana.append("user", f"The harbour is closed. {FRENCH}")
        engine.backup(tmp_path / "b.perdure")
    perdure.restore(tmp_path / "b.perdure", f"sqlite:///{tmp_path / 'c.db'}")
    with perdure.open(f"sqlite:///{tmp_path / 'c.db'}", clock=clock) as engine:
        ana = engine.memory("ana")
        ana.admin.reindex()
        assert orders(ana) == [FRENCH]
        assert {hit.text for hit in ana.recall("lighthouse").hits} >= {"The lighthouse is open."}
        engine.process(60)
        assert engine.verify().clean


def test_a_store_of_a_version_that_indexed_while_appending_is_read_no_second_time(engine: perdure.Engine) -> None:
    from perdure.services.index.writes import enter_messages

    ana = engine.memory("ana")
    said = ana.append("user", "The harbour is closed.")
    owner = ana.scope.owner
    engine._store.write(owner, lambda tx: enter_messages(tx, [said], "UTC", now=START))
    before = engine._store.read(owner, lambda view: view.index.head().last)
    assert ana.recall("harbour").hits[0].id == said.id
    engine.process(60)
    assert engine._store.read(owner, lambda view: view.index.find_entries("message", [said.id])) == {said.id: before}


@pytest.mark.parametrize("read", [0, 1, PAGE - 1, PAGE, 3 * PAGE + 7, 4 * PAGE])
def test_what_is_unread_of_a_session_is_found_however_much_was_read_and_not_counted(
    tmp_path: Path, clock: StoppedClock, read: int
) -> None:
    from perdure.services.index.writes import enter_messages

    with perdure.open(f"sqlite:///{tmp_path / 'a.db'}", clock=clock) as engine:
        ana = engine.memory("ana")
        said = ana.append_many([NewMessage("user", f"Row {number}.") for number in range(4 * PAGE)])
        owner = ana.scope.owner
        engine._store.write(owner, lambda tx: enter_messages(tx, said[:read], "UTC", now=START))
        found = engine._store.read(owner, lambda view: unread_of(view, Address(), 1, limit=PAGE))
        assert [one.seq for one in found] == [one.seq for one in said[read : read + PAGE]][: len(found)]
        assert bool(found) == (read < len(said))


def test_what_the_index_lacks_of_counted_messages_is_told(tmp_path: Path, clock: StoppedClock) -> None:
    with perdure.open(f"sqlite:///{tmp_path / 'a.db'}", clock=clock) as engine:
        ana = engine.memory("ana")
        said = ana.append("user", "The harbour is closed.")
        engine.process(60)
        engine._store.write(ana.scope.owner, lambda tx: tx.index.remove("message", [said.id], now=START))
        assert [finding.seen for finding in engine.verify().findings] == ["1 held, 0 indexed"]
