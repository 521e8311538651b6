"""A worker in the background leaves the process to those who call it."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

import perdure
from perdure.domain.jobs import Job
from perdure.services.jobs.worker import REST_MAX_S
from perdure.testing import StoppedClock


class Stop(threading.Event):
    """Does not wait, and keeps how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(round(timeout or 0, 6))
        return False


def rests(rest: float, job_s: float) -> set[float]:
    clock, stop = StoppedClock(datetime(2026, 1, 5, tzinfo=UTC)), Stop()
    with perdure.open("memory:", clock=clock) as engine:
        engine.memory(user="ana").append("user", "I live in Austin.")
        worker = engine.worker()

        def handler(job: Job) -> None:
            clock.move(seconds=job_s)

        worker = replace(worker, handlers=dict.fromkeys(worker.handlers, handler), rest=rest, repeating=())
        assert worker.process(1.0, stop).ran
    return set(stop.waits)


def test_it_rests_as_often_as_it_works_and_as_long_as_it_is_told() -> None:
    assert rests(2.0, 0.05) == {0.1}


def test_a_long_job_is_no_reason_for_a_long_rest() -> None:
    assert rests(1.0, 30.0) == {REST_MAX_S}


def test_a_worker_with_a_process_of_its_own_does_not_rest() -> None:
    assert rests(0.0, 0.05) == set()
