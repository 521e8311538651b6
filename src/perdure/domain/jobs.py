"""Durable work: a job row is written with what causes it, claimed under a lease, and settled under a fence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Literal

from perdure.domain.errors import LimitExceeded
from perdure.domain.scope import Owner
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, field, replace

JobState = Literal["ready", "running", "done", "dead"]
JOB_STATES: tuple[JobState, ...] = ("ready", "running", "done", "dead")
ATTEMPTS_MAX = 8


STRANDED = timedelta(hours=1)
"""No failure makes a job wait for longer, so that one which is due further ahead may have been left there by a clock."""
LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to be done at or after `due_at`. Kind and key are its identity within the owner: enqueueing twice is once."""

    kind: str
    key: str
    due_at: datetime
    payload: Mapping[str, Json] = field(default_factory=dict)
    attempts_max: int = ATTEMPTS_MAX
    repeat: str | None = None
    """Cron text or `every:SECONDS`; a repeating job returns to `ready` at its next slot instead of ending."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job as held. `fence` grows with every claim: a worker whose fence is old has lost its lease."""

    owner: Owner
    kind: str
    key: str
    state: JobState
    payload: Mapping[str, Json]
    due_at: datetime | None
    """When it may be claimed: its time while ready, the end of its lease while running, never once done or dead."""
    attempts: int
    attempts_max: int
    fence: int
    again: bool
    """Enqueued once more while running: it goes back to `ready` when this run ends."""
    worker: str | None
    repeat: str | None
    last_error: str | None
    runs: int
    failures: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A worker's request for work of the kinds it knows."""

    worker: str
    kinds: tuple[str, ...]
    now: datetime
    lease_s: float
    limit: int = 1
    owner: Owner | None = None
    """Only this owner's jobs; None for everybody's."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """What becomes of a claimed job. `due_at` is set exactly when the state is `ready`."""

    state: JobState
    due_at: datetime | None
    attempts: int
    error: str | None
    failed: bool


@dataclass(frozen=True, slots=True)
class QueueReport:
    """How many jobs stand in which state, and how late the oldest due one is."""

    ready: int
    running: int
    done: int
    dead: int
    late_s: float
    failing: int = 0
    """Of the ready ones, those that have failed and wait to be tried again."""


def new_job(owner: Owner, new: NewJob, now: datetime) -> Job:
    """The row of a job that is not held yet."""
    return Job(
        owner=owner,
        kind=new.kind,
        key=new.key,
        state="ready",
        payload=new.payload,
        due_at=new.due_at,
        attempts=0,
        attempts_max=new.attempts_max,
        fence=0,
        again=False,
        worker=None,
        repeat=new.repeat,
        last_error=None,
        runs=0,
        failures=0,
        created_at=now,
        updated_at=now,
    )


def queue_full(waiting: int) -> LimitExceeded:
    return LimitExceeded(
        f"{waiting} jobs of this user are waiting, as many as `queue_jobs_max` allows; run `perdure worker`, then try again",
        retriable=True,
    )


def requeued(held: Job, new: NewJob, now: datetime) -> Job | None:
    """What enqueueing `new` makes of the job held under its name; None if nothing changes.

    A ready job keeps its turn, but for an earlier time (unless it waits after a failure) or another `repeat`. A running
    one runs once more, unless it repeats anyway. A done or dead one starts afresh; the error of a dead one stays visible.
    """
    if held.state == "running":
        if held.again or new.repeat is not None:
            return None
        return replace(held, again=True, updated_at=now)
    if held.state == "ready":
        if new.repeat != held.repeat:
            return replace(held, repeat=new.repeat, due_at=new.due_at, payload=new.payload, updated_at=now)
        if new.repeat is None and held.attempts == 0 and held.due_at is not None and new.due_at < held.due_at:
            return replace(held, due_at=new.due_at, updated_at=now)
        return None
    return replace(
        held,
        state="ready",
        payload=new.payload,
        due_at=new.due_at,
        attempts=0,
        attempts_max=new.attempts_max,
        repeat=new.repeat,
        updated_at=now,
    )


def claimed(held: Job, claim: Claim) -> Job:
    """`held` under a fresh lease."""
    return replace(
        held,
        state="running",
        due_at=claim.now + timedelta(seconds=claim.lease_s),
        attempts=held.attempts + 1,
        fence=held.fence + 1,
        again=False,
        worker=claim.worker,
        updated_at=claim.now,
    )


def is_due(held: Job, now: datetime) -> bool:
    """Whether its time has come; if it is running, whether its lease has ended."""
    return held.due_at is not None and held.due_at <= now


def is_stranded(held: Job, now: datetime) -> bool:
    """Whether its time may never come: the clock was set back since it was last changed, and it is due far ahead."""
    return held.due_at is not None and held.due_at > stranded_after(now) and held.updated_at > now


def stranded_after(now: datetime) -> datetime:
    return min(now, LATEST - STRANDED) + STRANDED


def holds_lease(held: Job | None, job: Job) -> bool:
    """Whether the run that claimed `job` may still settle it."""
    # One of an owner who was erased, and speaks again, may have the same fence.
    claim = (job.fence, job.created_at)
    return held is not None and held.state == "running" and (held.fence, held.created_at) == claim


def settled(held: Job, end: Settlement, now: datetime) -> Job:
    """`held` after its run ended. If it was enqueued again meanwhile, a run that succeeded is followed by another one."""
    again = held.again and not end.failed
    return replace(
        held,
        state="ready" if again else end.state,
        due_at=now if again else end.due_at,
        attempts=0 if again else end.attempts,
        again=False,
        worker=None,
        last_error=end.error if end.failed else held.last_error,
        runs=held.runs + 1,
        failures=held.failures + end.failed,
        updated_at=now,
    )


def prolonged(held: Job, until: datetime) -> Job:
    """A running job with a longer lease."""
    return replace(held, due_at=until)


def revived(held: Job, now: datetime) -> Job:
    """A dead job made ready with fresh tries."""
    return replace(held, state="ready", due_at=now, attempts=0, updated_at=now)
