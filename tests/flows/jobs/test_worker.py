"""Durable jobs, through the engine's own worker, on a stopped clock."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import perdure
from perdure.domain.jobs import Claim, Job, NewJob
from perdure.domain.scope import SYSTEM, Owner
from perdure.services.conversation import upkeep
from perdure.services.jobs.worker import Effect, Worker
from perdure.testing import StoppedClock

ANA = Owner("default", "ana")
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NOW)


@pytest.fixture
def engine(backend: Any, clock: StoppedClock) -> perdure.Engine:
    return backend.open(clock=clock)


def worker(engine: perdure.Engine, clock: StoppedClock, handler: Any, **more: Any) -> Worker:
    return Worker(engine._store, clock, {"test": handler}, more.pop("name", "w"), **more)


def enqueue(engine: perdure.Engine, clock: StoppedClock, key: str = "k", **more: Any) -> None:
    job = NewJob("test", key, clock.now(), **more)
    engine._store.write(ANA, lambda tx: tx.enqueue(job, now=clock.now(), queue_max=100))


def held(engine: perdure.Engine, key: str = "k") -> Job:
    job = engine._store.read(ANA, lambda view: view.find_job("test", key))
    assert job is not None
    return job


def test_messages_cause_counts_and_a_journal(engine: perdure.Engine, clock: StoppedClock) -> None:
    ana = engine.memory("ana")
    ana.append("user", "two words")
    ana.append("assistant", "", tool_calls=[perdure.ToolCall("c", "search")])  # type: ignore[arg-type]
    ana.append("tool", "no", tool_call_id="c", failed=True)
    assert ana.conversation.tally().messages == 0
    assert engine.process().ran == 3, "the messages were counted, looked through for something to learn, and given vectors"
    tally = ana.conversation.tally()
    assert (tally.by_role, tally.by_tool, tally.failures) == ({"user": 1, "assistant": 1, "tool": 1}, {"search": 1}, 1)
    assert tally.tokens_by_role["user"] == 2
    [operation] = ana.journal.list()
    assert (operation.actor, operation.kind, operation.why) == ("tally/1", "tally", "messages 1 to 3 arrived")
    assert engine.process().ran == 0
    ana.append("user", "more")
    engine.process()
    assert [operation.seq for operation in ana.journal.list()] == [2, 1]


def test_a_long_session_is_counted_in_bounded_steps(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MESSAGES_PER_RUN", 100)
    ana = engine.memory("ana")
    ana.append_many(perdure.NewMessage("user", "x") for _ in range(250))
    report = engine.process()
    assert report.ran >= 3
    assert ana.conversation.tally().messages == 250
    assert engine.verify().clean


def test_a_failing_job_backs_off_then_is_parked_with_its_error_and_can_be_retried(
    engine: perdure.Engine, clock: StoppedClock
) -> None:
    enqueue(engine, clock, attempts_max=3)
    waits = []

    def handler(job: Job) -> Effect | None:
        raise ValueError("the user said something private")

    failing = worker(engine, clock, handler)
    for _ in range(2):
        assert failing.process(1).failed == 1
        due = held(engine).due_at
        assert due is not None
        waits.append((due - clock.now()).total_seconds())
        clock.set(due)
    assert waits[1] > waits[0] > 0
    assert failing.process(1).parked == 1
    dead = held(engine)
    assert dead.state == "dead"
    assert dead.last_error is not None
    assert dead.last_error.startswith("ValueError at handler:")
    assert "private" not in dead.last_error
    report = engine.doctor()
    assert any("jobs: 1 failed" in line for line in report.degraded)
    assert report.dead_jobs == (dead,)
    assert engine.memory("ana").admin.jobs("dead") == [dead]
    assert engine.memory("bob").admin.retry_jobs() == 0
    assert engine.memory("ana").admin.retry_jobs() == 1
    assert worker(engine, clock, lambda _: None).process(1).ran == 1


def test_an_error_that_cannot_pass_is_parked_at_once(engine: perdure.Engine, clock: StoppedClock) -> None:
    enqueue(engine, clock)

    def handler(job: Job) -> Effect | None:
        raise perdure.InvalidInput("`x` = 1 is wrong; use 2")

    assert worker(engine, clock, handler).process(1).parked == 1
    assert held(engine).last_error == "invalid_input: `x` = 1 is wrong; use 2"


def test_what_looks_damaged_once_is_read_once_more(engine: perdure.Engine, clock: StoppedClock) -> None:
    """A disk that refuses a page once looks like a damaged file."""
    enqueue(engine, clock)
    answers: list[Exception | None] = [perdure.Corrupt("the SQLite file is damaged"), None]

    def read(_job: Job) -> None:
        if (error := answers.pop(0)) is not None:
            raise error

    assert worker(engine, clock, read).process(10).failed == 1
    assert (held(engine).state, held(engine).attempts) == ("ready", 1)
    clock.move(minutes=1)
    assert worker(engine, clock, read).process(10).ran == 1
    assert held(engine).state == "done"


def test_a_job_whose_repetition_cannot_be_read_is_parked_and_stops_no_other(
    engine: perdure.Engine, clock: StoppedClock
) -> None:
    enqueue(engine, clock, "odd", repeat="every:60")
    enqueue(engine, clock, "even")
    ran: list[str] = []
    worked = worker(engine, clock, lambda job: ran.append(job.key))
    worked.store = _Damaged(worked.store)
    report = worked.process(5)
    assert sorted(ran) == ["even", "odd"]
    assert (report.ran, report.parked) == (1, 1)
    assert held(engine, "odd").state == "dead"


class _Damaged:
    """A store that hands out a job as somebody has altered it."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def claim(self, wanted: Claim) -> list[Job]:
        return [replace(job, repeat="x") if job.key == "odd" else job for job in self._store.claim(wanted)]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def test_what_a_job_writes_is_written_once_though_it_runs_twice(engine: perdure.Engine, clock: StoppedClock) -> None:
    """Two workers hold the same job one after the other; the first one's lease has ended, so its effect is dropped."""
    enqueue(engine, clock)

    def leaving(mark: str) -> Effect:
        trace = NewJob("trace", mark, clock.now())
        return lambda tx: tx.enqueue(trace, now=clock.now(), queue_max=100) and None

    def slow(job: Job) -> Effect:
        clock.move(seconds=61)
        assert worker(engine, clock, lambda _: leaving("second"), name="second").process(1).ran == 1
        return leaving("first")

    report = worker(engine, clock, slow, name="first").process(1)
    assert (report.ran, report.lost) == (0, 1)
    assert (held(engine).state, held(engine).runs) == ("done", 1)
    assert [job.key for job in engine.memory("ana").admin.jobs("ready")] == ["second"]


def test_jobs_may_be_given_any_time_that_is_a_number(engine: perdure.Engine) -> None:
    assert engine.process(10**400).ran == engine.process(float("inf")).ran == 0
    with pytest.raises(perdure.InvalidInput, match=r"`seconds` = nan must be a number of seconds from 0 on"):
        engine.process(float("nan"))


def test_a_job_that_kills_its_worker_is_parked_after_its_tries(engine: perdure.Engine, clock: StoppedClock) -> None:
    enqueue(engine, clock, attempts_max=2)
    for _ in range(2):
        assert engine._store.claim(Claim("doomed", ("test",), clock.now(), 60))
        clock.move(seconds=60)
    report = worker(engine, clock, lambda _: None).process(1)
    assert report.parked == 1
    assert "died or hung" in str(held(engine).last_error)


def test_a_running_job_keeps_its_lease_while_its_worker_lives(engine: perdure.Engine, clock: StoppedClock) -> None:
    enqueue(engine, clock)
    started, finish = threading.Event(), threading.Event()

    def handler(job: Job) -> Effect | None:
        started.set()
        finish.wait(10)
        return None

    thread = threading.Thread(target=worker(engine, clock, handler, lease_s=0.3).process, args=(1,))
    thread.start()
    started.wait(10)
    first = held(engine).due_at
    clock.move(seconds=5)
    until = time.monotonic() + 10
    while held(engine).due_at == first and time.monotonic() < until:
        time.sleep(0.01)
    assert held(engine).due_at > first  # type: ignore[operator]
    finish.set()
    thread.join()
    assert held(engine).state == "done"


class TestRepeating:
    def test_it_runs_at_its_slots_and_a_long_stop_causes_one_run(self, engine: perdure.Engine, clock: StoppedClock) -> None:
        """B-57: single flight, a fixed grid, no stampede."""
        ran: list[datetime] = []

        def handler(job: Job) -> None:
            ran.append(clock.now())

        enqueue(engine, clock, repeat="every:600")
        one = worker(engine, clock, handler)
        assert one.process(1).ran == 1
        assert held(engine).due_at == NOW + timedelta(minutes=10)
        clock.move(minutes=9)
        assert one.process(1).ran == 0
        clock.move(days=3, minutes=5)
        assert one.process(1).ran == 1
        assert held(engine).due_at == NOW + timedelta(days=3, minutes=20)
        assert len(ran) == 2

    def test_cron_text_is_understood(self, engine: perdure.Engine, clock: StoppedClock) -> None:
        enqueue(engine, clock, repeat="30 */2 * * *")
        worker(engine, clock, lambda _: None).process(1)
        assert held(engine).due_at == NOW + timedelta(minutes=30)

    def test_one_that_fails_for_good_waits_for_its_next_slot(self, engine: perdure.Engine, clock: StoppedClock) -> None:
        def handler(job: Job) -> Effect | None:
            raise perdure.InvalidInput("no")

        enqueue(engine, clock, repeat="every:600")
        assert worker(engine, clock, handler).process(1).failed == 1
        job = held(engine)
        assert (job.state, job.due_at, job.last_error) == ("ready", NOW + timedelta(minutes=10), "invalid_input: no")

    def test_two_processes_do_not_run_it_at_once(self, backend: Any, engine: perdure.Engine, clock: StoppedClock) -> None:
        enqueue(engine, clock, repeat="every:600")
        rival = backend.open(clock=clock)

        def handler(job: Job) -> None:
            assert worker(rival, clock, lambda _: None).process(1).ran == 0

        assert worker(engine, clock, handler).process(1).ran == 1

    def test_it_survives_a_restart(self, backend: Any, engine: perdure.Engine, clock: StoppedClock) -> None:
        enqueue(engine, clock, repeat="every:600")
        engine.close()
        assert worker(backend.open(clock=clock), clock, lambda _: None).process(1).ran == 1

    def test_done_jobs_are_tidied_away_after_a_week(self, engine: perdure.Engine, clock: StoppedClock) -> None:
        engine.memory("ana").append("user", "x")
        engine.process()
        assert [job.kind for job in engine.memory("ana").admin.jobs("done")] == ["extract", "index", "tally"]
        clock.move(days=7, hours=1, seconds=1)
        engine.process()
        # What the end of the session caused was done only now.
        assert {job.kind for job in engine.memory("ana").admin.jobs()} == {"index", "session_digest", "sweep", "tally"}
        clock.move(days=7, hours=1, seconds=1)
        engine.process()
        assert engine.memory("ana").admin.jobs() == []
        standing = engine._store.read(SYSTEM, lambda view: view.list_jobs(None, limit=10))
        assert [(job.kind, job.state) for job in standing] == [("series_cleanup", "ready"), ("tidy", "ready")]


@pytest.mark.slow
def test_the_worker_command_runs_jobs_and_stops_cleanly_on_sigterm(backend: Any) -> None:
    ana = backend.open().memory("ana")
    ana.append("user", "count me")
    environment = {**os.environ, "PERDURE_URL": backend.url, "PERDURE_POSTGRES_SCHEMA": backend.schema}
    command = [sys.executable, "-c", "from perdure.interfaces.cli import main; main()", "--json", "worker"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            until = time.monotonic() + 30
            while ana.conversation.tally().messages == 0 and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert ana.conversation.tally().messages == 1
    assert sum(json.loads(line)["ran"] for line in out.splitlines()) >= 1
    assert "worker stopped" in err


def test_a_worker_waits_for_a_store_that_is_away(engine: perdure.Engine, clock: StoppedClock) -> None:
    from perdure.testing import FailingStore

    enqueue(engine, clock)
    away = FailingStore(engine._store)
    away.fail_next(perdure.Unavailable("away", retry_after_s=0.01), perdure.Unavailable("away", retry_after_s=0.01))
    stop = threading.Event()
    patient = Worker(away, clock, {"test": lambda _: stop.set()}, "w", repeating=(replace(_tidy(clock), kind="test"),))  # type: ignore[arg-type]
    thread = threading.Thread(target=patient.run, args=(stop,), kwargs={"poll_s": 0.01})
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert held(engine).state == "done"


def _tidy(clock: StoppedClock) -> NewJob:
    return NewJob("tidy", "tidy", clock.now() + timedelta(hours=1), repeat="every:3600")
