"""Running durable jobs.

A handler decides outside any transaction and returns its effect. The effect and the end of the job are committed
together, under the fence of the claim: a job may run twice, but what it writes is written once.

Prolongs the leases of jobs that run long, so that nobody else takes them while their worker lives.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType

from perdure.domain.errors import InvalidInput, PerdureError, Unavailable, Unsupported
from perdure.domain.jobs import Claim, Job, NewJob, Settlement
from perdure.domain.reports import ProcessReport
from perdure.domain.scope import SYSTEM, Owner
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass, field, replace
from perdure.engine.conversation.jobs import after_failure, after_success, next_slot, spent
from perdure.ports.clock import Clock
from perdure.ports.store import Progress, Store, Tx


class LeaseKeeper:
    """Owns one thread, started when the first job is held and ended with the `with` block."""

    def __init__(self, store: Store, clock: Clock, lease_s: float) -> None:
        self._store = store
        self._clock = clock
        self._lease_s = lease_s
        self._held: Job | None = None
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.missed = 0
        """Prolongations the store refused or could not make."""

    def __enter__(self) -> LeaseKeeper:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def keeping(self, job: Job) -> Iterator[None]:
        with self._lock:
            self._held = job
        if self._thread is None:
            self._thread = threading.Thread(target=self._keep, name="perdure-lease-keeper", daemon=True)
            self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held = None

    def _keep(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            with self._lock:
                job = self._held
            if job is None:
                continue
            self.missed += not self._prolonged(job)

    def _prolonged(self, job: Job) -> bool:
        until = self._clock.now() + timedelta(seconds=self._lease_s)
        try:
            return self._store.write(job.owner, lambda tx: tx.extend(job, until))
        except PerdureError:
            # The lease may now pass to another worker; the fence then stops this run's effect.
            return False


Effect = Callable[[Tx], None]


@dataclass(frozen=True, slots=True)
class RunLater:
    """The answer of a handler whose job is to run once more, at that time."""

    due_at: datetime
    effect: Effect | None = None
    why: str | None = None
    """What kept it from its work, if something did: told with the job, and no try is lost."""


Handler = Callable[[Job], Effect | RunLater | None]

LEASE_S = 60.0
POLL_S = 0.5
REST_MAX_S = 0.2
TROUBLE_WAIT_S = 5.0
BACKGROUND_STOP_S = 10.0
RUNS_PER_TURN_MAX = 100_000
SECONDS_MAX = 1e9
HOPELESS = (InvalidInput, Unsupported)
"""What no later try changes. `Corrupt` is not among them: SQLite says so, too, of a page that the disk refused to read once."""


class LeaseLost(Exception):
    """Another worker has claimed the job meanwhile; this run's effect is rolled back."""


@dataclass(slots=True)
class Worker:
    """Claims due jobs of the kinds it has handlers for. Any number of workers may run, in any number of processes."""

    store: Store
    clock: Clock
    handlers: Mapping[str, Handler]
    name: str
    lease_s: float = LEASE_S
    repeating: tuple[NewJob, ...] = ()
    """Jobs that must exist in the store while any worker runs."""
    owner: Owner | None = None
    """Run only this owner's jobs."""
    rest: float = 0.0
    """How long it rests after a job, in times of what the job took: what leaves the process to those who call it."""
    troubles: int = 0
    """How often a turn of `run` ended with an error of the store, and, if the last one did, what it was."""
    last_trouble: str | None = None
    _counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(("ran", "failed", "parked", "lost"), 0))

    def process(
        self,
        seconds: float,
        stop: threading.Event | None = None,
        *,
        progress: Progress | None = None,
        one_of_each: bool = False,
    ) -> ProcessReport:
        """Run what is due until nothing is, the time is up, or `stop` is set. `progress` is told each kind with its count.
        `one_of_each`: one job of each kind is run even if the time is up, so that a slow machine gets there, too.
        """
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 0:
            raise InvalidInput(f"`seconds` = {brief(seconds)} must be a number of seconds from 0 on")
        self._ensure_repeating()
        self._counts = dict.fromkeys(self._counts, 0)
        seen: dict[str, int] = {}
        until = self.clock.monotonic() + min(seconds, SECONDS_MAX)
        with LeaseKeeper(self.store, self.clock, self.lease_s) as keeper:
            kinds = tuple(self.handlers)
            for _ in range(RUNS_PER_TURN_MAX):
                claim = Claim(self.name, kinds, self.clock.now(), self.lease_s, owner=self.owner)
                jobs = self.store.claim(claim)
                for job in jobs:
                    began = self.clock.monotonic()
                    with keeper.keeping(job):
                        self._run(job)
                    if self.rest and stop is not None:
                        stop.wait(min(REST_MAX_S, self.rest * (self.clock.monotonic() - began)))
                    seen[job.kind] = seen.get(job.kind, 0) + 1
                    if progress is not None:
                        progress(job.kind, seen[job.kind])
                if self.clock.monotonic() >= until:
                    kinds = tuple(kind for kind in kinds if one_of_each and kind not in seen)
                if not jobs or not kinds or (stop is not None and stop.is_set()):
                    break
        return ProcessReport(**self._counts, leases_missed=keeper.missed)

    def run(
        self, stop: threading.Event, *, poll_s: float = POLL_S, report: Callable[[ProcessReport], None] | None = None
    ) -> None:
        """Work until `stop` is set; the job in hand is finished first. Whatever the store says, the next turn is tried."""
        while not stop.is_set():
            try:
                turn = self.process(poll_s, stop)
            except Exception as error:  # noqa: BLE001 - the job loop: a worker that dies quietly would stop everything
                self.troubles += 1
                self.last_trouble = in_words(error)
                stop.wait(error.retry_after_s if isinstance(error, Unavailable) else TROUBLE_WAIT_S)
                continue
            self.last_trouble = None
            if report is not None and (turn.ran or turn.failed or turn.parked or turn.lost):
                report(turn)
            if not turn.ran:
                stop.wait(poll_s)

    def _ensure_repeating(self) -> None:
        if not self.repeating:
            return
        now = self.clock.now()

        def work(tx: Tx) -> None:
            for job in self.repeating:
                tx.enqueue(job, now=now, queue_max=1_000)

        if self.store.read(SYSTEM, lambda view: [view.find_job(job.kind, job.key) for job in self.repeating]).count(None):
            self.store.write(SYSTEM, work)

    def _run(self, job: Job) -> None:
        if spent(job):
            words = f"its lease ended {job.attempts_max} times without an answer: the worker died or hung while running it"
            self._settle(job, after_failure(job, words, self.clock.now(), 0.0))
            return
        try:
            answer = self.handlers[job.kind](job)
            end = after_success(job, self.clock.now())
            if isinstance(answer, RunLater):
                end = replace(
                    end,
                    state="ready",
                    due_at=answer.due_at,
                    attempts=0,
                    error=answer.why,
                    failed=answer.why is not None,
                )
                answer = answer.effect
            self._settle(job, end, answer)
        except LeaseLost:
            self._counts["lost"] += 1
        except Exception as error:  # noqa: BLE001 - the job loop: whatever a handler raises is kept with the job
            try:
                self._settle(job, self._after(job, error))
            except LeaseLost:
                self._counts["lost"] += 1

    def _after(self, job: Job, error: Exception) -> Settlement:
        now, chance = self.clock.now(), self.clock.chance()
        wanted_s = error.retry_after_s if isinstance(error, Unavailable) else 0.0
        try:
            return after_failure(
                job, in_words(error), now, chance, retriable=not isinstance(error, HOPELESS), wanted_s=wanted_s
            )
        except InvalidInput:
            # When it should come again cannot be read: it is parked, and must not keep the others waiting.
            return after_failure(replace(job, repeat=None), in_words(error), now, chance, retriable=False)

    def _settle(self, job: Job, end: Settlement, effect: Effect | None = None) -> None:
        now = self.clock.now()

        def work(tx: Tx) -> None:
            if effect is not None:
                effect(tx)
            if not tx.settle(job, end, now=now):
                raise LeaseLost

        self.store.write(job.owner, work)
        self._counts["parked" if end.state == "dead" else "failed" if end.failed else "ran"] += 1


def in_words(error: Exception) -> str:
    """What is kept of an error. Foreign messages may quote a user's text, so of those only the kind and place are kept."""
    if isinstance(error, PerdureError):
        return f"{error.code}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


TIDY = "tidy"
DONE_KEPT = timedelta(days=7)


def tidy_job(clock: Clock) -> NewJob:
    """The hourly job that forgets finished jobs after a week."""
    return NewJob(TIDY, TIDY, next_slot("every:3600", clock.now()), repeat="every:3600")


def tidy_handler(store: Store, clock: Clock) -> Handler:
    def handle(_job: Job) -> None:
        store.remove_done(before=clock.now() - DONE_KEPT)

    return handle


class BackgroundWorker:
    """A thread that runs jobs until it is stopped, or the process ends."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=worker.run, args=(self._stop,), name="perdure-worker", daemon=True)
        self._thread.start()

    def trouble(self) -> str | None:
        return self._worker.last_trouble if self._thread.is_alive() else "its thread has ended"

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(BACKGROUND_STOP_S)
