"""All or nothing, one owner at a time.

Erasing, snapshots, restoring.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from perdure.domain.conversation.messages import CallState, MessageQuery, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import Conflict, Unavailable
from perdure.domain.scope import Address, MessageId, Owner, ToolCallId
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.index import INDEX_JOB
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.log import JournalContract
from perdure.testing.contract.samples import ANA, BOB, HERE, a_job, a_message, a_session, enqueue, fill


class TransactionContract:
    """All or nothing, one owner at a time."""

    def test_failed_work_leaves_nothing(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            tx.put_sessions([a_session(messages=1)])
            tx.append([a_message()])
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert store.read(ANA, lambda view: view.latest_session(HERE)) is None
        assert store.read(ANA, lambda view: view.find_messages([MessageId("m1.1")])) == {}

    def test_work_sees_its_own_writes(self, store: Store) -> None:
        def work(tx: Tx) -> Session | None:
            tx.put_sessions([a_session()])
            return tx.latest_session(HERE)

        assert store.write(ANA, work) == a_session()

    def test_what_work_returns_is_returned(self, store: Store) -> None:
        assert store.write(ANA, lambda _: 41) == 41
        assert store.read(ANA, lambda _: 42) == 42

    def test_owners_do_not_see_each_other(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        enqueue(store, a_job())
        for other in (BOB, Owner("elsewhere", "ana"), Owner("default", "ANA"), Owner("default", "an%")):
            assert store.read(other, lambda view: view.latest_session(HERE)) is None
            assert store.read(other, lambda view: view.list_sessions(None, limit=10)) == []
            assert store.read(other, lambda view: view.list_messages(MessageQuery(HERE, 10))) == []
            assert store.read(other, lambda view: view.find_messages([MessageId("discord:42/1.1")])) == {}
            assert store.read(other, lambda view: view.list_jobs(None, limit=10)) == []

    def test_two_owners_may_use_the_same_ids(self, store: Store) -> None:
        fill(store, ANA, 1)
        fill(store, BOB, 1)
        assert len(store.read(BOB, lambda view: view.list_messages(MessageQuery(HERE, 10)))) == 1

    @pytest.mark.parametrize("user", ["'; DROP TABLE messages; --", "%", "_", "..", "a:b", "𝒜\u200b🦉", "\n", "x" * 400, "é"])
    def test_any_unicode_id_is_kept_as_it_is(self, store: Store, user: str) -> None:
        owner, place = Owner(user, user), Address(user, user)
        fill(store, owner, 1, address=place)
        [message] = store.read(owner, lambda view: view.list_messages(MessageQuery(place, 10)))
        assert message.address == place
        assert store.read(ANA, lambda view: view.list_sessions(None, limit=10)) == []

    def test_composed_and_decomposed_letters_are_different_ids(self, store: Store) -> None:
        fill(store, Owner("default", "jose\u0301"), 1)
        assert store.read(Owner("default", "jos\u00e9"), lambda view: view.list_sessions(None, limit=1)) == []

    def test_many_threads_may_write_at_once(self, store: Store) -> None:
        def bump(tx: Tx) -> None:
            latest = tx.latest_session(HERE) or a_session()
            seq = latest.messages + 1
            tx.put_sessions([replace(latest, messages=seq)])
            tx.append([a_message(seq)])

        threads = [threading.Thread(target=lambda: [store.write(ANA, bump) for _ in range(10)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 1_000)))
        assert [message.seq for message in found] == list(range(1, 81))

    def test_a_closed_store_is_unavailable(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(Unavailable):
            store.read(ANA, lambda _: 1)
        with pytest.raises(Unavailable):
            store.write(ANA, lambda _: 1)


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
