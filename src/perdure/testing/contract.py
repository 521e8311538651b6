"""The promises of `perdure.ports.store.Store` as tests. Subclass it and give it a `store` fixture:

class TestMyStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        store = MyStore(tmp_path / "db")
        yield store
        store.close()
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from perdure.domain.errors import Conflict, LimitExceeded, Unavailable
from perdure.domain.jobs import Claim, Job, NewJob, Settlement
from perdure.domain.journal import Attribution
from perdure.domain.messages import CallState, Cursor, Message, MessageQuery, Session
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.tally import Tally, extended
from perdure.ports.rows import TABLES
from perdure.ports.store import Row, Store, Tx

ANA = Owner("default", "ana")
BOB = Owner("default", "bob")
HERE = Address("coach", "discord:42")
THERE = Address("coach", "discord:43")
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
DONE = Settlement("done", None, 1, None, failed=False)


def a_session(number: int = 1, *, address: Address = HERE, messages: int = 0, name: str | None = None) -> Session:
    return Session(address, number, SessionId(name or f"s{number}"), NOW, NOW, None, messages, messages)


def a_message(seq: int = 1, *, number: int = 1, address: Address = HERE, name: str | None = None) -> Message:
    return Message(
        MessageId(name or f"m{number}.{seq}"), SessionId(f"s{number}"), number, seq, "user", f"message {seq}", NOW, 1, {},
        address=address,
    )  # fmt: skip


def fill(store: Store, owner: Owner, *seqs: int, number: int = 1, address: Address = HERE) -> None:
    """Append messages with these seqs to a session, made on the way."""

    def work(tx: Tx) -> None:
        tx.put_sessions([a_session(number, address=address, messages=max(seqs))])
        tx.append([a_message(seq, number=number, address=address, name=f"{address.channel}/{number}.{seq}") for seq in seqs])

    store.write(owner, work)


def a_job(key: str = "k", *, kind: str = "count", due_at: datetime = NOW, repeat: str | None = None) -> NewJob:
    return NewJob(kind, key, due_at, {"n": 1}, attempts_max=3, repeat=repeat)


def enqueue(store: Store, job: NewJob, owner: Owner = ANA, *, now: datetime = NOW, queue_max: int = 100) -> bool:
    return store.write(owner, lambda tx: tx.enqueue(job, now=now, queue_max=queue_max))


def claim(store: Store, *, now: datetime = NOW, limit: int = 1, owner: Owner | None = None, lease_s: float = 60.0) -> list[Job]:
    return store.claim(Claim("w", ("count",), now, lease_s, limit, owner))


def settle(store: Store, job: Job, end: Settlement = DONE, *, now: datetime = NOW) -> bool:
    return store.write(job.owner, lambda tx: tx.settle(job, end, now=now))


def held_job(store: Store, key: str = "k", owner: Owner = ANA) -> Job:
    job = store.read(owner, lambda view: view.find_job("count", key))
    assert job is not None
    return job


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


class LogContract:
    """Messages and sessions."""

    def test_a_message_comes_back_as_it_was(self, store: Store) -> None:
        whole = Message(
            MessageId("id"), SessionId("s1"), 1, 1, "assistant", "naïve 🦉\n\ttext", NOW + timedelta(microseconds=7), 5,
            {"a": [1, 2.5, None, True, {"ü": "x"}]},
        )  # fmt: skip

        def work(tx: Tx) -> None:
            tx.put_sessions([a_session(messages=1)])
            tx.append([replace(whole, address=HERE)])

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.find_messages([MessageId("id"), MessageId("none")])) == {
            "id": replace(whole, address=HERE)
        }

    def test_a_taken_id_or_place_is_a_conflict(self, store: Store) -> None:
        fill(store, ANA, 1)
        for rival in (a_message(2, name="discord:42/1.1"), a_message(1, name="new")):
            with pytest.raises(Conflict):
                store.write(ANA, lambda tx, rival=rival: tx.append([rival]))  # type: ignore[misc]
        assert len(store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 10)))) == 1

    def test_a_message_needs_its_session(self, store: Store) -> None:
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.append([a_message()]))

    def test_a_session_is_updated_by_its_number_and_keeps_its_id(self, store: Store) -> None:
        store.write(ANA, lambda tx: tx.put_sessions([a_session()]))
        later = replace(a_session(messages=3), last_at=NOW + timedelta(hours=1), ended_at=NOW + timedelta(hours=1))
        store.write(ANA, lambda tx: tx.put_sessions([later]))
        assert store.read(ANA, lambda view: view.find_session(HERE, SessionId("s1"))) == later
        assert store.read(ANA, lambda view: view.find_session(HERE, 1)) == later
        assert store.read(ANA, lambda view: view.find_session(THERE, 1)) is None

    def test_two_sessions_of_an_address_cannot_share_an_id(self, store: Store) -> None:
        store.write(ANA, lambda tx: tx.put_sessions([a_session()]))
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.put_sessions([a_session(2, name="s1")]))

    def test_messages_page_in_log_order_across_sessions(self, store: Store) -> None:
        fill(store, ANA, 1, 2, 3)
        fill(store, ANA, 1, 2, number=2)
        fill(store, ANA, 1, address=THERE)

        def places(query: MessageQuery) -> list[tuple[int, int]]:
            found = store.read(ANA, lambda view: view.list_messages(query))
            return [(message.session_number, message.seq) for message in found]

        assert places(MessageQuery(HERE, 10)) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
        assert places(MessageQuery(HERE, 2)) == [(2, 1), (2, 2)]
        assert places(MessageQuery(HERE, 2, before=Cursor(2, 1))) == [(1, 2), (1, 3)]
        assert places(MessageQuery(HERE, 2, after=Cursor(1, 2))) == [(1, 3), (2, 1)]
        assert places(MessageQuery(HERE, 10, session_number=1)) == [(1, 1), (1, 2), (1, 3)]
        assert places(MessageQuery(HERE, 1, session_number=1, after=Cursor(1, 1))) == [(1, 2)]
        assert places(MessageQuery(HERE, 10, session_number=2, before=Cursor(2, 2))) == [(2, 1)]

    def test_sessions_list_newest_first(self, store: Store) -> None:
        for number in (1, 2, 3):
            store.write(ANA, lambda tx, number=number: tx.put_sessions([a_session(number)]))  # type: ignore[misc]
        store.write(ANA, lambda tx: tx.put_sessions([a_session(address=THERE)]))

        def numbers(address: Address | None, limit: int, before: int | None = None) -> list[int]:
            found = store.read(ANA, lambda view: view.list_sessions(address, limit=limit, before=before))
            return [session.number for session in found]

        assert numbers(HERE, 2) == [3, 2]
        assert numbers(HERE, 10, before=3) == [2, 1]
        assert numbers(None, 10) == [3, 2, 1, 1]

    def test_tool_calls_are_found_by_id_newest_session_last_written(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        fill(store, ANA, 1, 2, number=2)
        call = CallState(1, ToolCallId("c"), "search", 1)
        store.write(ANA, lambda tx: tx.put_calls(HERE, [call, replace(call, session_number=2)]))
        assert store.read(ANA, lambda view: view.find_calls(HERE, [ToolCallId("c"), ToolCallId("d")])) == {
            "c": replace(call, session_number=2)
        }
        answered = replace(call, session_number=2, result_seq=2, failed=True)
        store.write(ANA, lambda tx: tx.put_calls(HERE, [answered]))
        assert store.read(ANA, lambda view: view.find_calls(HERE, [ToolCallId("c")])) == {"c": answered}
        assert store.read(ANA, lambda view: view.find_calls(THERE, [ToolCallId("c")])) == {}


class JobContract:
    """Durable work."""

    def test_enqueueing_twice_is_once(self, store: Store) -> None:
        assert enqueue(store, a_job()) is True
        assert enqueue(store, a_job()) is False
        assert store.queue(NOW).ready == 1

    def test_a_job_is_written_with_its_cause_or_not_at_all(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            tx.enqueue(a_job(), now=NOW, queue_max=10)
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError):
            store.write(ANA, work)
        assert store.read(ANA, lambda view: view.find_job("count", "k")) is None

    def test_the_queue_of_an_owner_is_bounded(self, store: Store) -> None:
        enqueue(store, a_job("a"), queue_max=2)
        enqueue(store, a_job("b"), queue_max=2)
        with pytest.raises(LimitExceeded) as caught:
            enqueue(store, a_job("c"), queue_max=2)
        assert caught.value.retriable
        assert enqueue(store, a_job("a"), queue_max=2) is False
        assert enqueue(store, a_job("c"), BOB, queue_max=2) is True

    def test_a_claim_takes_due_jobs_of_known_kinds_earliest_first(self, store: Store) -> None:
        enqueue(store, a_job("late", due_at=NOW - timedelta(seconds=1)))
        enqueue(store, a_job("later", due_at=NOW), BOB)
        enqueue(store, a_job("future", due_at=NOW + timedelta(seconds=1)))
        enqueue(store, a_job("foreign", kind="other"))
        assert [job.key for job in claim(store, limit=10)] == ["late", "later"]
        assert claim(store, limit=10) == []

    def test_a_claim_can_be_for_one_owner(self, store: Store) -> None:
        enqueue(store, a_job("a"))
        enqueue(store, a_job("b"), BOB)
        assert [job.key for job in claim(store, limit=10, owner=BOB)] == ["b"]

    def test_a_claimed_job_is_leased_and_comes_back_when_the_lease_ends(self, store: Store) -> None:
        enqueue(store, a_job())
        [first] = claim(store, lease_s=60)
        assert (first.state, first.attempts, first.fence) == ("running", 1, 1)
        assert claim(store, now=NOW + timedelta(seconds=59)) == []
        [second] = claim(store, now=NOW + timedelta(seconds=60))
        assert (second.attempts, second.fence) == (2, 2)
        assert settle(store, first) is False
        assert settle(store, second) is True
        assert held_job(store).state == "done"

    def test_a_lease_can_be_prolonged_by_its_holder_only(self, store: Store) -> None:
        enqueue(store, a_job())
        [first] = claim(store)
        assert store.write(ANA, lambda tx: tx.extend(first, NOW + timedelta(seconds=300)))
        assert claim(store, now=NOW + timedelta(seconds=299)) == []
        [second] = claim(store, now=NOW + timedelta(seconds=300))
        assert not store.write(ANA, lambda tx: tx.extend(first, NOW + timedelta(days=1)))
        assert store.write(ANA, lambda tx: tx.extend(second, NOW + timedelta(days=1)))

    def test_a_failed_job_waits_then_is_parked_with_its_error(self, store: Store) -> None:
        enqueue(store, a_job())
        [job] = claim(store)
        later = NOW + timedelta(seconds=5)
        assert settle(store, job, Settlement("ready", later, 1, "boom", failed=True))
        assert claim(store, now=NOW + timedelta(seconds=4)) == []
        [job] = claim(store, now=later)
        assert settle(store, job, Settlement("dead", None, 2, "boom again", failed=True))
        assert claim(store, now=NOW + timedelta(days=9)) == []
        [dead] = store.list_dead(limit=5)
        assert (dead.last_error, dead.failures, dead.owner) == ("boom again", 2, ANA)

    def test_a_dead_job_can_be_retried(self, store: Store) -> None:
        enqueue(store, a_job())
        [job] = claim(store)
        settle(store, job, Settlement("dead", None, 3, "boom", failed=True))
        assert store.write(ANA, lambda tx: tx.retry_job("count", "k", now=NOW))
        assert not store.write(ANA, lambda tx: tx.retry_job("count", "k", now=NOW))
        [again] = claim(store)
        assert (again.attempts, again.last_error) == (1, "boom")

    def test_enqueueing_while_running_makes_it_run_once_more(self, store: Store) -> None:
        enqueue(store, a_job())
        [job] = claim(store)
        enqueue(store, a_job())
        enqueue(store, a_job())
        assert settle(store, job)
        [again] = claim(store)
        assert settle(store, again)
        assert claim(store) == []

    def test_enqueueing_a_done_job_makes_it_ready(self, store: Store) -> None:
        enqueue(store, a_job())
        [job] = claim(store)
        settle(store, job)
        assert enqueue(store, a_job(due_at=NOW + timedelta(seconds=9))) is False
        assert claim(store) == []
        [again] = claim(store, now=NOW + timedelta(seconds=9))
        assert again.attempts == 1

    def test_an_earlier_time_wins_unless_the_job_waits_after_a_failure(self, store: Store) -> None:
        enqueue(store, a_job(due_at=NOW + timedelta(hours=1)))
        enqueue(store, a_job(due_at=NOW))
        [job] = claim(store)
        settle(store, job, Settlement("ready", NOW + timedelta(hours=1), 1, "boom", failed=True))
        enqueue(store, a_job(due_at=NOW))
        assert claim(store) == []

    def test_a_repeating_job_is_not_doubled_and_takes_a_new_rhythm(self, store: Store) -> None:
        enqueue(store, a_job(repeat="every:60"))
        [job] = claim(store)
        enqueue(store, a_job(repeat="every:60"))
        assert settle(store, job, Settlement("ready", NOW + timedelta(seconds=60), 0, None, failed=False))
        assert claim(store) == []
        enqueue(store, a_job(repeat="every:10", due_at=NOW + timedelta(seconds=10)))
        [job] = claim(store, now=NOW + timedelta(seconds=10))
        assert job.repeat == "every:10"

    def test_done_jobs_can_be_forgotten(self, store: Store) -> None:
        for key, owner in (("a", ANA), ("b", ANA), ("c", BOB)):
            enqueue(store, a_job(key), owner)
        for job in claim(store, limit=10):
            settle(store, job)
        enqueue(store, a_job("open"))
        assert store.write(ANA, lambda tx: tx.remove_jobs(done_before=NOW)) == 0
        assert store.write(ANA, lambda tx: tx.remove_jobs(done_before=NOW + timedelta(seconds=1))) == 2
        assert store.remove_done(before=NOW + timedelta(seconds=1)) == 1
        assert [job.key for job in store.read(ANA, lambda view: view.list_jobs(None, limit=10))] == ["open"]

    def test_jobs_list_by_state_and_the_queue_is_counted(self, store: Store) -> None:
        for key in ("a", "b", "c"):
            enqueue(store, a_job(key, due_at=NOW - timedelta(seconds=30)))
        claim(store)
        assert [job.key for job in store.read(ANA, lambda view: view.list_jobs("ready", limit=10))] == ["b", "c"]
        assert [job.key for job in store.read(ANA, lambda view: view.list_jobs(None, limit=2))] == ["a", "b"]
        report = store.queue(NOW)
        assert (report.ready, report.running, report.done, report.dead, report.late_s) == (2, 1, 0, 0, 30.0)

    def test_two_workers_never_hold_the_same_job(self, store: Store) -> None:
        for key in range(40):
            enqueue(store, a_job(str(key)))
        taken: list[Job] = []

        def work() -> None:
            while jobs := claim(store, limit=3):
                taken.extend(jobs)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # A worker may find nothing while rivals hold every due row; whoever holds them claims the rest.
        taken.extend(claim(store, limit=100))
        assert sorted(job.key for job in taken) == sorted(str(key) for key in range(40))


class JournalContract:
    """Derived rows are written with their operation or not at all."""

    by = Attribution("tester/1", NOW, "because")

    def _tally(self, store: Store, seq: int) -> Tally:
        found = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 100, 1)))
        return extended(Tally(HERE, 1), [message for message in found if message.seq <= seq])

    def test_each_change_is_an_operation_with_before_and_after(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        first, second = self._tally(store, 1), self._tally(store, 2)
        store.write(ANA, lambda tx: tx.put_tally(first, by=self.by))
        store.write(ANA, lambda tx: tx.put_tally(second, by=self.by))
        assert store.read(ANA, lambda view: view.find_tally(HERE, 1)) == second
        newest, oldest = store.read(ANA, lambda view: view.list_operations(limit=10))
        assert (oldest.seq, oldest.action, oldest.before, oldest.after) == (1, "add", None, first.body())
        assert (newest.seq, newest.action, newest.before, newest.after) == (2, "update", first.body(), second.body())
        assert (newest.actor, newest.at, newest.why) == ("tester/1", NOW, "because")
        assert store.read(ANA, lambda view: view.list_operations(limit=10, before=2)) == [oldest]
        assert store.read(BOB, lambda view: view.list_operations(limit=10)) == []

    def test_an_outdated_change_is_a_conflict_and_leaves_no_operation(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        older = self._tally(store, 1)
        newer = self._tally(store, 2)
        store.write(ANA, lambda tx: tx.put_tally(newer, by=self.by))
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.put_tally(older, by=self.by))
        assert len(store.read(ANA, lambda view: view.list_operations(limit=10))) == 1


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


class StoreContract(TransactionContract, LogContract, JobContract, JournalContract, WholeStoreContract):
    """Everything a store promises."""
