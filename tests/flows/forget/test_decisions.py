"""Decisions of the overseer quote goals, and goals are what people said: what is forgotten is forgotten there, too."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision
from perdure.domain.scope import Address, Owner
from perdure.testing import StoppedClock

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
HERE = Address("coach", "a")
THERE = Address("planner", "b")
ANA = Owner("default", "ana")
BOB = Owner("default", "bob")


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NOW)


def note(engine: perdure.Engine, name: str, address: Address, owner: Owner = ANA, **body: Any) -> None:
    decision = Decision(name, NOW, address, "before", body)
    engine._store.write(owner, lambda tx: tx.oversight.put_decision(decision, keep=100))


def noted(engine: perdure.Engine, owner: Owner = ANA) -> dict[str, Any]:
    found = engine._store.read(owner, lambda view: view.oversight.list_decisions(limit=100))
    return {one.id: dict(one.body) for one in found}


def on_the_disk(folder: Path, *words: str) -> list[str]:
    held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file()).lower()
    return [word for word in words if word.lower().encode() in held]


def test_forgotten_messages_take_the_decisions_of_their_channel_and_those_that_quote_them_with_them(
    backend: Any, clock: StoppedClock, tmp_path: Path
) -> None:
    engine = backend.open(clock=clock)
    ana = engine.memory("ana", agent="coach", channel="a")
    secret = ana.append("user", "Book the   clinic in Xanadupolis for my KNEE, code pin 4711")
    ana.append("user", "thanks")
    note(engine, "paraphrased here", HERE, goal="find an appointment")
    note(engine, "quoted there", THERE, goal="Plan: book the clinic in xanadupolis for my knee, code PIN 4711 today")
    note(engine, "a part of it there", THERE, choices=[{"why": ["Clinic in Xanadupolis"]}])
    note(engine, "of something else", THERE, goal="Water the plants", outcome="rules", mode="pin", id="code")
    note(engine, "of bob", HERE, BOB, goal="Book the clinic in Xanadupolis")
    report = ana.forget(messages=(secret.id, secret.id))
    assert report.removed["decision"] == 3
    assert list(noted(engine)) == ["of something else"]
    assert list(noted(engine, BOB)) == ["of bob"]
    if backend.name == "sqlite":
        engine._store.erase(BOB)
        engine.purge()
        assert on_the_disk(tmp_path, "xanadupolis", "4711", "appointment") == []
    assert ana.forget(messages=(secret.id, secret.id)).nothing
    note(engine, "since then", HERE, goal="find an appointment")
    assert ana.forget(messages=(secret.id, secret.id)).nothing
    assert "since then" in noted(engine)
    assert engine.verify().clean


def test_a_forgotten_name_is_struck_out_of_the_decisions_that_stay(backend: Any, clock: StoppedClock, tmp_path: Path) -> None:
    engine = backend.open(clock=clock)
    ana = engine.memory("ana", agent="coach", channel="a")
    ana.remember("Rows boats with Zebulon Quarksmith", "PEOPLE", entities=["person:Zebulon Quarksmith"])
    [key] = [one.memory.record_key for one in ana.memories.list()]
    note(
        engine, "names it", THERE, goal="Write to zebulon quarksmith", choices=[{"id": "state:zebulon_quarksmith", "tokens": 3}]
    )
    note(engine, "chose the memory", THERE, goal="Boats", choices=[{"kind": "memory", "id": key}])
    note(engine, "quotes it", THERE, goal="Since she rows boats with Zebulon Quarksmith, buy one")
    note(engine, "of something else", THERE, goal="Water the plants")
    before = noted(engine)["of something else"]
    report = ana.forget(entity="person:Zebulon Quarksmith")
    assert (report.removed["decision"], report.redacted["decisions"]) == (2, 1)
    held = noted(engine)
    assert held.keys() == {"names it", "of something else"}
    assert held["names it"]["goal"].startswith("Write to █")
    assert held["names it"]["choices"][0]["tokens"] == 3
    assert held["of something else"] == before
    if backend.name == "sqlite":
        assert on_the_disk(tmp_path, "zebulon", "quarksmith") == []
    assert ana.forget(entity="person:Zebulon Quarksmith").nothing
    assert engine.verify().clean


def test_a_forgotten_memory_takes_the_decisions_that_chose_or_quoted_it_with_it(backend: Any, clock: StoppedClock) -> None:
    engine = backend.open(clock=clock)
    ana = engine.memory("ana", agent="coach", channel="a")
    ana.append("user", "Good morning. I live in Xanadupolis.")
    engine.process()
    ana.remember("Plays chess on Sundays")
    gone = {one.content: one.memory.record_key for one in ana.memories.list()}
    note(engine, "here", HERE, goal="Find a flat")
    note(engine, "chose it", THERE, goal="Where?", choices=[{"id": gone["Plays chess on Sundays"]}])
    note(engine, "quoted it", THERE, goal="She plays chess on sundays: find a club")
    note(engine, "of something else", THERE, goal="Water the plants")
    assert ana.forget(memory=gone["Plays chess on Sundays"]).removed["decision"] == 2
    assert noted(engine).keys() == {"here", "of something else"}, "nobody said it at a channel"
    [key] = [key for said, key in gone.items() if "Xanadupolis" in said]
    assert ana.forget(memory=key).removed["decision"] == 1
    assert noted(engine).keys() == {"of something else"}
    assert engine.verify().clean


def test_when_very_much_is_forgotten_nobody_compares(sqlite: Any, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch) -> None:
    from perdure.services.forget import choices as forget_decisions

    monkeypatch.setattr(forget_decisions, "QUOTES_MAX", 2)
    engine = sqlite.open(clock=clock)
    ana = engine.memory("ana", agent="coach", channel="a")
    said = [ana.append("user", f"something worth saying, number {number}") for number in range(3)]
    note(engine, "of something else", THERE, goal="Water the plants")
    ana.forget(messages=(said[0].id, said[1].id))
    assert list(noted(engine)) == ["of something else"]
    more = [ana.append("user", f"something else worth saying, number {number}") for number in range(3)]
    ana.forget(messages=(said[2].id, more[-1].id))
    assert noted(engine) == {}


def test_a_forgotten_user_takes_decisions_and_counts_along(backend: Any, clock: StoppedClock) -> None:
    engine = backend.open(clock=clock)
    for owner in (ANA, BOB):
        note(engine, "d", HERE, owner, goal="Water the plants")
        usage = Usage("relevance", "ok", 1, 2, 3, 4.0, NOW)
        engine._store.write(owner, lambda tx, usage=usage: tx.oversight.add_usage(usage))  # type: ignore[misc]
    assert engine.memory("ana").forget(user=True).removed["rows"] == 2
    assert (noted(engine), list(noted(engine, BOB))) == ({}, ["d"])
    assert [one.calls for one in engine._store.usage()] == [1]
