"""A store, or a backup, of version 6: it opens with all it held, and with an empty access log."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import old_stores
import perdure
from perdure.adapters.sql.statements import migrations
from perdure.adapters.sqlite.store import PACKAGE
from perdure.domain.scope import Owner
from perdure.testing import StoppedClock
from perdure.testing.contract.access import an_access, listed, put

OLD = 6
ANA = Owner("default", "ana")


@pytest.fixture
def today() -> Iterator[perdure.Engine]:
    with perdure.open("memory:", clock=StoppedClock()) as engine:
        for user in ("ana", "bob"):
            memory = engine.memory(user)
            memory.append("user", f"boat trip of {user}")
            memory.remember("Rows boats with Mia", "PEOPLE", entities=["person:Mia"])
            memory.state.save("k", user)
            memory.before("row a boat")
        engine.process()
        yield engine


def held(engine: perdure.Engine) -> dict[str, list[Any]]:
    """What the old version had kept, apart from its jobs."""
    return {name: rows for name, rows in old_stores.rows_of(engine, OLD, rebuilt=False).items() if name != "jobs"}


def check(engine: perdure.Engine) -> None:
    assert engine.verify().findings == ()
    ana = engine.memory("ana")
    assert ana.journal.accesses() == [] == engine.accesses()
    assert put(engine._store, an_access("a1"), owner=ANA) == [True]
    assert listed(engine._store, owner=ANA) == ["a1"]
    assert [one.id for one in ana.journal.accesses()] == ["a1"]
    assert engine.memory("bob").journal.accesses() == []
    assert engine.verify().findings == ()


def test_a_store_of_version_6_opens_with_all_it_held(backend: Any, today: perdure.Engine) -> None:
    old_stores.build(backend, OLD, old_stores.rows_of(today, OLD))
    engine = backend.open()
    assert held(engine) == held(today)
    assert engine.memory("ana").recall("boat trip", limit=5).hits, "the index is as it was"
    check(engine)


def test_a_backup_of_version_6_is_taken_over(backend: Any, today: perdure.Engine, tmp_path: Path) -> None:
    rows = old_stores.rows_of(today, OLD, rebuilt=False)
    perdure.restore(old_stores.write_backup(tmp_path / "old.perdure", OLD, rows), settings=backend.settings)
    engine = backend.open()
    assert held(engine) == held(today)
    check(engine)


def test_migrating_twice_is_once_and_calls_are_logged_from_then_on(backend: Any, today: perdure.Engine) -> None:
    old_stores.build(backend, OLD, old_stores.rows_of(today, OLD))
    for number in range(2):
        with backend.open(access_log="all") as engine:
            engine.memory("ana").state.save("k", number)
            assert len(listed(engine._store, owner=ANA)) == number + 1
            assert engine.verify().findings == ()


def test_a_store_of_version_8_keeps_its_log_and_takes_what_is_begun(backend: Any, today: perdure.Engine) -> None:
    put(today._store, an_access("a1"), an_access("a2"), owner=ANA)
    old_stores.build(backend, 8, old_stores.rows_of(today, 8))
    with backend.open(access_log="all") as engine:
        assert list(engine._store.read(ANA, lambda view: view.accesses.list_accesses(limit=9))) == [
            an_access("a2"),
            an_access("a1"),
        ]
        engine.memory("ana").export(BytesIO())
        newest = engine.memory("ana").journal.accesses()[0]
        assert (newest.call, newest.outcome) == ("export", "done")
        assert engine.verify().findings == ()


def test_the_store_in_memory_has_the_version_of_the_others(today: perdure.Engine, tmp_path: Path) -> None:
    """A backup goes from any of them to any other."""
    assert today.backup(tmp_path / "b").schema_version == len(migrations(PACKAGE))
