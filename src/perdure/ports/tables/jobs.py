"""Jobs as rows, and what the store's queries over the jobs of all owners are asked and answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from perdure.domain.jobs import JOB_STATES, Claim, Job, NewJob, QueueReport, stranded_after
from perdure.domain.scope import Owner
from perdure.domain.text.rules import compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.table import AnyRow, Table, instant_or_none, us_or_none


class JobRow(NamedTuple):
    space: str
    user_id: str
    kind: str
    key: str
    state: str
    payload: str
    due_at_us: int | None
    attempts: int
    attempts_max: int
    fence: int
    again: int
    worker: str | None
    repeat: str | None
    last_error: str | None
    runs: int
    failures: int
    created_at_us: int
    updated_at_us: int


JOBS = Table("jobs", JobRow, 4)


def job_row(job: Job) -> JobRow:
    return JobRow(
        space=job.owner.space,
        user_id=job.owner.user,
        kind=job.kind,
        key=job.key,
        state=job.state,
        payload=compact_json(dict(job.payload)),
        due_at_us=us_or_none(job.due_at),
        attempts=job.attempts,
        attempts_max=job.attempts_max,
        fence=job.fence,
        again=int(job.again),
        worker=job.worker,
        repeat=job.repeat,
        last_error=job.last_error,
        runs=job.runs,
        failures=job.failures,
        created_at_us=to_us(job.created_at),
        updated_at_us=to_us(job.updated_at),
    )


def to_job(row: AnyRow) -> Job:
    return JOBS.read(row, _read_job)


def _read_job(row: JobRow) -> Job:
    if row.state not in JOB_STATES:
        raise ValueError("unknown state")
    return Job(
        owner=Owner(row.space, row.user_id),
        kind=row.kind,
        key=row.key,
        state=row.state,
        payload=json.loads(row.payload),
        due_at=instant_or_none(row.due_at_us),
        attempts=row.attempts,
        attempts_max=row.attempts_max,
        fence=row.fence,
        again=bool(row.again),
        worker=row.worker,
        repeat=row.repeat,
        last_error=row.last_error,
        runs=row.runs,
        failures=row.failures,
        created_at=from_us(row.created_at_us),
        updated_at=from_us(row.updated_at_us),
    )


def waits_already(row: AnyRow, job: NewJob) -> bool:
    """Whether the job held under the name of this one is to run no later, and once: then enqueueing it changes nothing.

    Told by the row alone, since every append asks.
    """

    def waits(held: JobRow) -> bool:
        once = held.repeat is None and job.repeat is None
        return once and held.state == "ready" and held.due_at_us is not None and held.due_at_us <= to_us(job.due_at)

    return JOBS.read(row, waits)


def claim_values(claim: Claim, kinds: object) -> dict[str, Any]:
    """The values of the queries `due_jobs` and `stranded_jobs`, with the kinds as the database takes a list."""
    return {
        "now_us": to_us(claim.now),
        "stranded_us": to_us(stranded_after(claim.now)),
        "kinds": kinds,
        "space": None if claim.owner is None else claim.owner.space,
        "user_id": None if claim.owner is None else claim.owner.user,
        "limit": claim.limit,
    }


def to_queue_report(counts: Iterable[AnyRow], now: datetime) -> QueueReport:
    """From rows of (state, count, earliest due, how many were tried)."""
    by_state = {state: (count, due, tried) for state, count, due, tried in counts}
    _, due, tried = by_state.get("ready", (0, None, 0))
    ready, running, done, dead = (by_state.get(state, (0, None, 0))[0] for state in JOB_STATES)
    return QueueReport(
        ready=ready,
        running=running,
        done=done,
        dead=dead,
        late_s=0.0 if due is None else max(0.0, (now - from_us(due)).total_seconds()),
        failing=int(tried),
    )
