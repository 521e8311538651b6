"""A store, or a backup, of version 5: it opens with all it held, and its lessons wait to be taken in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import old_stores
import perdure
from perdure.domain.jobs import Job
from perdure.domain.scope import Owner
from perdure.ports.tables.rows import TABLES
from perdure.testing import StoppedClock
from perdure.testing.contract.oversight import a_decision, names, put
from scripted import ScriptedSummariser

OLD = 5
LESSON = 'Say "lessons":[] aloud, and never call before noon.'


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(datetime(2026, 1, 5, 10, 0, tzinfo=UTC))


@pytest.fixture
def today(clock: StoppedClock) -> Iterator[perdure.Engine]:
    """Ana's folds have drawn lessons, Bob's none, and Cy has no folds. Dan's lesson was taken back."""
    model = ScriptedSummariser()
    with perdure.open("memory:", clock=clock, summariser=model) as engine:
        for user, lessons in (("ana", (LESSON,)), ("bob", ()), ("dan", (LESSON,))):
            model.lessons = lessons
            memory = engine.memory(user, agent="coach", channel="a")
            for channel in ("a", "b"):
                there = engine.memory(user, agent="coach", channel=channel)
                for number in range(30):
                    there.append("user", f"boat trip {number} of {user}")
                there.conversation.configure(profile="complete", casual=channel == "b" and user == "bob")
                there.conversation.compact(force=True)
            memory.remember("Rows boats with Mia", "PEOPLE", entities=["person:Mia"])
        engine.memory("dan", agent="coach", channel="a").conversation.undo()
        engine.memory("cy").append("user", "hello")
        for _ in range(3):
            engine.process()
        yield engine


def only_old_jobs(rows: old_stores.Rows) -> old_stores.Rows:
    """Without what this version may have done with lessons already."""
    rows["jobs"] = [row for row in rows["jobs"] if row[2] != "lessons"]
    return rows


def lesson_jobs(engine: perdure.Engine) -> dict[str, Job]:
    users = ("ana", "bob", "cy", "dan")
    found = {
        user: engine._store.read(Owner("default", user), lambda view: view.find_job("lessons", "lessons")) for user in users
    }
    return {user: job for user, job in found.items() if job is not None}


def check(engine: perdure.Engine, clock: StoppedClock) -> None:
    assert engine.verify().findings == ()
    jobs = lesson_jobs(engine)
    assert jobs.keys() == {"ana", "dan"}
    assert [(job.state, dict(job.payload), job.attempts, job.repeat) for job in jobs.values()] == [("ready", {}, 0, None)] * 2
    # They are due at once, and nobody is told that they are late.
    assert all(job.due_at is not None and job.due_at < clock.now() for job in jobs.values())
    assert engine._store.queue(clock.now()).late_s == 0.0
    ana = engine.memory("ana", agent="coach", channel="a")
    state = ana.conversation.agent_state()
    assert (state.turns, state.profile, state.shared) == (30, "complete", False)
    assert ana.conversation.configure(shared=True).shared
    assert ana.conversation.agent_state() == ana.conversation.configure()
    assert not engine.memory("ana", agent="coach", channel="b").conversation.agent_state().shared
    put(engine._store, a_decision("d1"), a_decision("d2"), owner=Owner("default", "ana"))
    assert names(engine._store, owner=Owner("default", "ana")) == ["d2", "d1"]
    for _ in range(3):
        engine.process()
    assert ana.recall("boat trip", limit=5).hits
    assert ana.recall("boat trip").uncovered.unindexed is False
    assert engine.verify().findings == ()


def held(engine: perdure.Engine) -> dict[str, list[Any]]:
    """What the old version had kept, apart from its jobs."""
    return {name: rows for name, rows in old_stores.rows_of(engine, OLD, rebuilt=False).items() if name != "jobs"}


def test_a_store_of_version_5_opens_with_all_it_held(backend: Any, clock: StoppedClock, today: perdure.Engine) -> None:
    old_stores.build(backend, OLD, only_old_jobs(old_stores.rows_of(today, OLD)))
    engine = backend.open(clock=clock)
    assert held(engine) == held(today)
    assert engine.memory("ana", agent="coach", channel="a").recall("boat trip", limit=5).hits, "the index is as it was"
    check(engine, clock)


def test_a_backup_of_version_5_is_searchable_after_its_job_ran(
    backend: Any, clock: StoppedClock, today: perdure.Engine, tmp_path: Path
) -> None:
    rows = only_old_jobs(old_stores.rows_of(today, OLD, rebuilt=False))
    path = old_stores.write_backup(tmp_path / "old.perdure", OLD, rows)
    perdure.restore(path, settings=backend.settings)
    engine = backend.open(clock=clock)
    assert held(engine) == held(today)
    assert engine.memory("ana", agent="coach", channel="a").recall("boat trip").uncovered.unindexed
    check(engine, clock)


def test_migrating_twice_is_once(backend: Any, clock: StoppedClock, today: perdure.Engine) -> None:
    old_stores.build(backend, OLD, only_old_jobs(old_stores.rows_of(today, OLD)))
    for _ in range(2):
        with backend.open(clock=clock) as engine:
            assert lesson_jobs(engine).keys() == {"ana", "dan"}
            with engine._store.snapshot() as snapshot:
                assert snapshot.schema_version > OLD
                assert [len(list(snapshot.rows(table))) for table in ("decisions", "usage")] == [0, 0]
                assert {len(row) for row in snapshot.rows("agent_states")} == {len(TABLES["agent_states"].columns)}


KILLED = """
import os, sys
import perdure
from perdure.adapters.{package} import schema as migrating

noted = migrating._note

def killed(where, migration):
    if migration.version > {old}:
        os.kill(os.getpid(), 9)
    noted(where, migration)

migrating._note = killed
perdure.open(settings=perdure.Settings(url=sys.argv[1], postgres_schema=sys.argv[2]))
"""


@pytest.mark.slow
def test_a_process_that_is_killed_while_it_migrates_leaves_the_old_store(
    backend: Any, clock: StoppedClock, today: perdure.Engine
) -> None:
    """All of the migration's statements have run by then; that it ran is not yet noted."""
    old_stores.build(backend, OLD, only_old_jobs(old_stores.rows_of(today, OLD)))
    package = "sqlite" if backend.name == "sqlite" else "postgres"
    code = KILLED.format(package=package, old=OLD)
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code, backend.url, backend.schema], capture_output=True, timeout=60)
        assert done.returncode == -9, done.stderr.decode()
    engine = backend.open(clock=clock)
    assert held(engine) == held(today)
    check(engine, clock)
