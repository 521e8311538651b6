"""Erasing, snapshots, restoring."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from perdure.domain.errors import Conflict
from perdure.domain.messages import CallState, MessageQuery
from perdure.domain.scope import Owner, ToolCallId
from perdure.domain.tally import Tally
from perdure.ports.index import INDEX_JOB
from perdure.ports.rows import TABLES
from perdure.ports.store import Row, Store
from perdure.testing.contract.journal import JournalContract
from perdure.testing.contract.samples import (
    ANA,
    BOB,
    HERE,
    a_job,
    enqueue,
    fill,
)


class WholeStoreContract:
    """Erasing, snapshots, restoring."""

    def test_erasing_an_owner_takes_everything_of_theirs_and_nothing_else(self, store: Store) -> None:
        for owner in (ANA, BOB):
            fill(store, owner, 1, 2)
            enqueue(store, a_job(), owner)
            store.write(owner, lambda tx: tx.put_calls(HERE, [CallState(1, ToolCallId("c"), "f", 1, 2)]))
            counted = Tally(HERE, 1)
            store.write(owner, lambda tx, counted=counted: tx.put_tally(counted, by=JournalContract.by))  # type: ignore[misc]
        assert store.erase(ANA) == 8
        assert store.erase(ANA) == 0
        with store.snapshot() as snapshot:
            left = [row for table in TABLES for row in snapshot.rows(table)]
        assert len(left) == 8
        assert {row[:2] for row in left} == {("default", "bob")}

    def test_a_snapshot_stands_still_while_writers_go_on(self, store: Store) -> None:
        fill(store, ANA, 1)
        with store.snapshot() as snapshot:
            before = list(snapshot.rows("messages"))
            thread = threading.Thread(target=fill, args=(store, BOB, 1))
            thread.start()
            thread.join()
            assert list(snapshot.rows("messages")) == before
        with store.snapshot() as snapshot:
            assert len(list(snapshot.rows("messages"))) == 2

    def test_a_snapshot_of_one_owner_holds_nothing_of_others(self, store: Store) -> None:
        for owner in (ANA, BOB):
            fill(store, owner, 1)
        with store.snapshot(ANA) as snapshot:
            assert {row[:2] for table in TABLES for row in snapshot.rows(table)} == {(ANA.space, ANA.user)}
            assert [row[:2] for row in snapshot.rows("messages", ANA)] == [(ANA.space, ANA.user)]

    def test_snapshot_rows_come_by_primary_key(self, store: Store) -> None:
        for user in ("b", "ä", "B", "a", "𝒜"):
            fill(store, Owner("default", user), 1)
        with store.snapshot() as snapshot:
            rows = list(snapshot.rows("messages"))
        assert rows == sorted(rows, key=lambda row: [str(part) for part in row[:4]])
        assert all(len(row) == len(TABLES["messages"].columns) for row in rows)

    def test_a_snapshot_restores_into_an_emptied_store(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        enqueue(store, a_job())
        with store.snapshot() as snapshot:
            version = snapshot.schema_version
            saved = {table: list(snapshot.rows(table)) for table in TABLES}

        def again() -> Iterator[tuple[str, Iterator[Row]]]:
            return ((table, iter(rows)) for table, rows in saved.items())

        with pytest.raises(Conflict):
            store.restore(version, again(), replace=False)
        fill(store, BOB, 1)
        counts = store.restore(version, again(), replace=True)
        assert counts["messages"] == 2
        with store.snapshot() as snapshot:
            assert {table: list(snapshot.rows(table)) for table in TABLES} == saved
        fill(store, BOB, 1)

    def test_rows_of_one_owner_become_all_that_another_has(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        fill(store, BOB, 1, number=3)
        enqueue(store, a_job())
        store.write(ANA, lambda tx: tx.put_calls(HERE, [CallState(1, ToolCallId("c"), "f", 1, 2)]))
        saved = _rows_of(store, ANA)
        assert {row[:2] for rows in saved.values() for row in rows} == {("default", "ana")}

        with pytest.raises(Conflict, match="bob"):
            store.refill(BOB, _again(saved), replace=False)
        assert [row[4] for row in _rows_of(store, BOB)["messages"]] == [3]
        counts = store.refill(BOB, _again(saved), replace=True)
        assert (counts["messages"], counts["jobs"]) == (2, 1)
        theirs = _rows_of(store, BOB)
        assert [row[2:] for row in theirs["messages"]] == [row[2:] for row in saved["messages"]]
        assert [row[2:] for row in theirs["tool_calls"]] == [row[2:] for row in saved["tool_calls"]]
        assert {row[:2] for rows in theirs.values() for row in rows} == {("default", "bob")}
        assert _rows_of(store, ANA) == saved
        index_job = store.read(BOB, lambda view: view.find_job(INDEX_JOB, INDEX_JOB))
        assert index_job is not None
        assert index_job.state == "ready"
        assert store.read(BOB, lambda view: view.index.head()).incarnation
        assert list(store.check()) == []

    def test_filling_an_owner_anew_fails_as_a_whole(self, store: Store) -> None:
        fill(store, BOB, 1, 2)

        def broken() -> Iterator[tuple[str, Iterator[Row]]]:
            yield from ((table, iter(rows)) for table, rows in _rows_of(store, ANA).items())
            raise RuntimeError("the file ends here")

        with pytest.raises(RuntimeError):
            store.refill(BOB, broken(), replace=True)
        assert len(store.read(BOB, lambda view: view.list_messages(MessageQuery(HERE, 10)))) == 2
        assert store.refill(ANA, iter(()), replace=False) == {}

    def test_a_failed_restore_changes_nothing(self, store: Store) -> None:
        fill(store, ANA, 1)

        def broken() -> Iterator[tuple[str, Iterator[Row]]]:
            yield "sessions", iter(())
            raise RuntimeError("the file ends here")

        with store.snapshot() as snapshot:
            version = snapshot.schema_version
        with pytest.raises(RuntimeError):
            store.restore(version, broken(), replace=True)
        assert len(store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 10)))) == 1

    def test_a_sound_store_finds_nothing_wrong_with_itself(self, store: Store) -> None:
        fill(store, ANA, 1)
        assert list(store.check()) == []
        store.purge()
        assert list(store.check()) == []
        assert store.describe().schema_version >= 1
        assert all(file.path.exists() for file in store.files())


def _rows_of(store: Store, owner: Owner) -> dict[str, list[Row]]:
    """What an owner has, but for the index and the job that makes it."""
    with store.snapshot() as snapshot:
        return {
            table: [row for row in snapshot.rows(table, owner) if table != "jobs" or row[2] != INDEX_JOB]
            for table, spec in TABLES.items()
            if not spec.rebuilt
        }


def _again(saved: dict[str, list[Row]]) -> Iterator[tuple[str, Iterator[Row]]]:
    return ((table, iter(rows)) for table, rows in saved.items())
