"""A store, or a backup, from before there was an index: everything in it is found once its job has run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import old_stores
import perdure
from perdure.ports.store import Row
from perdure.ports.tables.index import INDEX_JOB
from perdure.testing import StoppedClock
from scripted_embedder import ScriptedEmbedder

OLD = 4
QUESTIONS = ("boat", "who rows with Mia?", "spiders", "chess", "what is Nellie?")


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(datetime(2026, 1, 5, 10, 0, tzinfo=UTC))


@pytest.fixture
def today(clock: StoppedClock) -> Iterator[perdure.Engine]:
    """Something of every kind, of two users, as this version keeps it."""
    with perdure.open("memory:", clock=clock, embedder=ScriptedEmbedder()) as engine:
        for user in ("ana", "bob"):
            memory = engine.memory(user, agent="coach")
            for number in range(30):
                memory.append("user", f"boat trip {number} of {user}", metadata={"name": "Mia"} if number % 2 else {})
            memory.remember("Plays chess", pinned=True)
            memory.remember("Rows boats with Mia", "PEOPLE", entities=["person:Mia"])
            memory.remember("Fears spiders", visible_to="companion")
            memory.todos.add("Paint the boat")
            memory.instructions.add("Always call the boat Nellie")
            memory.state.save("boatName", "Nellie")
            memory.series("boat_trips").merge([{"id": 1, "timestamp": "2025-01-01"}], window=("2025-01-01", "2025-01-02"))
            memory.conversation.replace("in short: boats")
            memory.memories.archive(memory.remember("Sold a boat").statement.memory)  # type: ignore[union-attr]
        engine.memory("cy").state.save("boat", "only state")
        for _ in range(3):
            engine.process()
        yield engine


@pytest.fixture
def old_rows(today: perdure.Engine) -> dict[str, list[Row]]:
    """What the version before had stored of it: no index, and no job that makes one."""
    rows = old_stores.rows_of(today, OLD, rebuilt=False)
    rows["jobs"] = [row for row in rows["jobs"] if row[2] != INDEX_JOB]
    return rows


def answers(engine: perdure.Engine) -> list[Any]:
    """What everybody finds, with scores."""
    return [
        {(hit.kind, hit.id): round(hit.score, 4) for hit in engine.memory(user, agent=agent).recall(question, limit=100).hits}
        for user in ("ana", "bob", "cy")
        for agent in ("coach", "companion")
        for question in QUESTIONS
    ]


def check(engine: perdure.Engine, today: perdure.Engine) -> None:
    assert engine.verify().findings == ()
    before = engine.memory("ana", agent="coach").recall("boat")
    assert (before.hits, before.uncovered.unindexed) == ((), True)
    for _ in range(3):
        engine.process()
    assert answers(engine) == answers(today)
    assert any(answers(engine))
    assert engine.memory("ana", agent="coach").recall("boat").uncovered.nothing
    assert engine.verify().findings == ()
    with engine._store.snapshot() as snapshot, today._store.snapshot() as expected:
        # Numbers and incarnations differ; what is known of each thing does not.
        indexed = [{(row[1], row[3], row[4]): row[6] for row in one.rows("index_entries")} for one in (snapshot, expected)]
    assert indexed[0] == indexed[1]


def opened(backend: Any, clock: StoppedClock) -> perdure.Engine:
    engine = perdure.open(settings=backend.settings, clock=clock, embedder=ScriptedEmbedder())
    backend._opened.append(engine)
    return engine


def test_a_store_of_version_4_is_searchable_after_its_job_ran(
    backend: Any, clock: StoppedClock, today: perdure.Engine, old_rows: dict[str, list[Row]]
) -> None:
    old_stores.build(backend, OLD, old_rows)
    check(opened(backend, clock), today)


def test_a_backup_of_version_4_is_searchable_after_its_job_ran(
    backend: Any, clock: StoppedClock, today: perdure.Engine, old_rows: dict[str, list[Row]], tmp_path: Path
) -> None:
    perdure.restore(old_stores.write_backup(tmp_path / "old.perdure", OLD, old_rows), settings=backend.settings)
    check(opened(backend, clock), today)


def test_an_old_store_in_which_something_new_is_said_first_finds_old_and_new(
    backend: Any, clock: StoppedClock, old_rows: dict[str, list[Row]]
) -> None:
    old_stores.build(backend, OLD, old_rows)
    engine = opened(backend, clock)
    ana = engine.memory("ana", agent="coach")
    new = ana.append("user", "a boat since the migration", session="new")
    assert [hit.id for hit in ana.recall("boat since").hits] == [new.id]
    ana.forget(memory=ana.memories.list(pinned=True)[0].memory.record_key)
    ana.conversation.delete(ana.conversation.sessions()[1].id)
    engine.process()
    found = ana.recall("boat", limit=100)
    assert new.id in {hit.id for hit in found.hits}
    assert not any("boat trip" in hit.text for hit in found.hits if hit.kind == "message")
    assert ana.recall("chess", kinds=["memory"]).hits == ()
    assert found.uncovered.unindexed is False
    assert engine.verify().findings == ()
