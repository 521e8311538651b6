from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.domain.errors import InvalidInput
from perdure.domain.jobs import (
    JOB_STATES,
    Claim,
    Job,
    JobState,
    NewJob,
    claimed,
    holds_lease,
    new_job,
    prolonged,
    requeued,
    revived,
    settled,
)
from perdure.domain.scope import Owner
from perdure.engine.conversation.jobs import BACKOFF_MOST_S, after_failure, after_success, backoff_s, next_slot, spent
from perdure.ports.tables.jobs import job_row, waits_already

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
instants = st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1), timezones=st.just(UTC))
chances = st.floats(0, 1, exclude_max=True)


def a_job(**more: object) -> Job:
    repeat = more.pop("repeat", None)
    job = new_job(Owner("default", "ana"), NewJob("k", "key", NOW, repeat=repeat), NOW)  # type: ignore[arg-type]
    return claimed(job, Claim("w", ("k",), NOW, 60))


@given(st.integers(1, 1_000), chances)
def test_waits_grow_and_stay_bounded(attempts: int, chance: float) -> None:
    wait = backoff_s(attempts, chance)
    assert 1.0 <= wait <= BACKOFF_MOST_S
    assert backoff_s(attempts + 1, chance) >= wait


@given(instants, st.integers(1, 10_000_000))
def test_the_next_slot_is_the_first_of_the_grid_after_now(now: datetime, seconds: int) -> None:
    slot = next_slot(f"every:{seconds}", now)
    assert now < slot <= now + timedelta(seconds=seconds)
    assert next_slot(f"every:{seconds}", slot - timedelta(microseconds=1)) == slot


@given(instants)
def test_cron_slots_lie_after_now(now: datetime) -> None:
    slot = next_slot("*/15 * * * *", now)
    assert now < slot <= now + timedelta(minutes=15)
    assert (slot.minute % 15, slot.second, slot.tzinfo) == (0, 0, UTC)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "every:",
        "every:0",
        "every:-5",
        "every:nan",
        "every:soon",
        "daily",
        "99 * * * *",
        "every:1e99",
        "0" * 5_000 + " * * * *",
    ],
)
def test_a_rhythm_nobody_understands_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="repeat"):
        next_slot(wrong, NOW)


@given(st.integers(1, 20), st.integers(1, 20), chances, st.booleans())
def test_a_failure_is_tried_again_exactly_while_tries_are_left(tries: int, most: int, chance: float, retriable: bool) -> None:
    job = replace(a_job(), attempts=tries, attempts_max=most)
    end = after_failure(job, "x" * 10_000, NOW, chance, retriable=retriable)
    assert (end.state == "ready") == (retriable and tries < most)
    assert (end.due_at is None) == (end.state == "dead")
    assert end.error is not None
    assert len(end.error) <= 500


def test_success_ends_a_job_unless_it_repeats() -> None:
    assert after_success(a_job(), NOW).state == "done"
    assert after_success(a_job(repeat="every:60"), NOW).due_at == NOW + timedelta(seconds=60)


def test_a_job_is_spent_when_claimed_more_often_than_allowed() -> None:
    assert not spent(replace(a_job(), attempts=8, attempts_max=8))
    assert spent(replace(a_job(), attempts=9, attempts_max=8))


class TestJobLaws:
    def test_a_claim_moves_the_fence_so_that_the_old_holder_has_lost(self) -> None:
        first = a_job()
        second = claimed(first, Claim("v", ("k",), NOW, 60))
        assert holds_lease(first, first)
        assert not holds_lease(second, first)
        assert not holds_lease(None, first)

    def test_a_job_that_was_erased_and_enqueued_anew_is_another_one(self) -> None:
        first = a_job()
        assert not holds_lease(replace(first, created_at=first.created_at + timedelta(microseconds=1)), first)

    def test_only_running_jobs_are_leased(self) -> None:
        first = a_job()
        assert not holds_lease(settled(first, after_success(first, NOW), NOW), first)

    def test_prolonging_changes_only_the_lease(self) -> None:
        later = NOW + timedelta(hours=1)
        assert prolonged(a_job(), later) == replace(a_job(), due_at=later)

    def test_enqueueing_what_is_already_marked_to_run_again_changes_nothing(self) -> None:
        again = requeued(a_job(), NewJob("k", "key", NOW), NOW)
        assert again is not None
        assert again.again
        assert requeued(again, NewJob("k", "key", NOW), NOW) is None

    @given(
        state=st.sampled_from(JOB_STATES),
        due=st.sampled_from((-1, 0, 1)),
        repeats=st.sampled_from(((None, None), ("every:9", None), (None, "every:9"), ("every:9", "every:9"))),
        attempts=st.integers(0, 2),
    )
    def test_what_waits_already_by_its_row_is_what_enqueueing_leaves_alone(
        self, state: JobState, due: int, repeats: tuple[str | None, str | None], attempts: int
    ) -> None:
        held = replace(a_job(), state=state, due_at=NOW + timedelta(seconds=due), repeat=repeats[0], attempts=attempts)
        new = NewJob("k", "key", NOW, repeat=repeats[1])
        waits = waits_already(job_row(held), new)
        assert not waits or requeued(held, new, NOW) is None
        assert waits == (state == "ready" and due <= 0 and repeats == (None, None))

    def test_reviving_gives_fresh_tries(self) -> None:
        job = a_job()
        dead = settled(job, after_failure(job, "boom", NOW, 0.5, retriable=False), NOW)
        assert (dead.state, revived(dead, NOW).state, revived(dead, NOW).attempts) == ("dead", "ready", 0)
        assert revived(dead, NOW).last_error == "boom"
