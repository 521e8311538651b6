"""What is promised of durable work."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest

from perdure.domain.errors import LimitExceeded
from perdure.domain.jobs import Job, Settlement
from perdure.ports.store import Store, Tx, View
from perdure.testing.contract.samples import ANA, BOB, NOW, a_job, claim, enqueue, held_job, settle


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

    def test_a_job_that_a_clock_left_years_ahead_is_found_when_the_clock_is_put_right(self, store: Store) -> None:
        ahead = NOW + timedelta(days=4_000)
        store.write(ANA, lambda tx: tx.enqueue(a_job("left", due_at=ahead), now=ahead, queue_max=10))
        enqueue(store, a_job("planned", due_at=NOW + timedelta(days=30)))
        enqueue(store, a_job("due", due_at=NOW))
        assert [job.key for job in claim(store, limit=10)] == ["due"], "what is due comes first"
        assert [job.key for job in claim(store, limit=10)] == ["left"], "what was planned at this time is not early"
        assert claim(store, limit=10, now=NOW + timedelta(seconds=1)) == [], "and it is leased like any other"

    def test_a_clock_that_is_set_back_by_minutes_makes_no_job_early(self, store: Store) -> None:
        enqueue(store, a_job(due_at=NOW + timedelta(minutes=30)))
        assert claim(store, now=NOW - timedelta(minutes=20)) == []

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

    def test_what_waits_of_some_kinds_is_asked_for_beside_something_else(self, store: Store) -> None:
        for key, minutes in (("later", 5), ("first", -5), ("taken", -9), ("other", 0)):
            kind = "other" if key == "other" else "count"
            enqueue(store, a_job(key, kind=kind, due_at=NOW + timedelta(minutes=minutes)))
        enqueue(store, a_job("bobs"), BOB)
        [taken] = claim(store)
        assert taken.key == "taken"

        def look(view: View, limit: int = 10) -> tuple[list[str], int]:
            waiting = view.ask_waiting(("count", "unheard of"), limit=limit)
            listed = len(view.list_jobs(None, limit=10))
            return [job.key for job in waiting()], listed

        assert store.read(ANA, look) == (["first", "taken", "later"], 4)
        assert store.read(ANA, lambda view: look(view, 1)) == (["first"], 4)
        assert store.read(ANA, lambda view: [job.key for job in view.ask_waiting(("other",), limit=1)()]) == ["other"]
        settle(store, taken)
        assert store.read(ANA, look) == (["first", "later"], 4)

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
        # A worker may find nothing while rivals hold every due row; their holders claim the rest.
        taken.extend(claim(store, limit=100))
        assert sorted(job.key for job in taken) == sorted(str(key) for key in range(40))
