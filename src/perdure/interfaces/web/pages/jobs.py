"""`/u/{user}/jobs`: the queue, what failed and why, and another try."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import InvalidInput
from perdure.domain.jobs import JOB_STATES, Job
from perdure.domain.text.rules import brief
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice

router = APIRouter()
COUNTED = 1_000
SHOWN = 100
STATES = {"ready": "waiting", "running": "running", "done": "done", "dead": "failed"}
KINDS = {
    "tally": "Counts messages",
    "sweep": "Ends silent sessions",
    "extract": "Learns from messages",
    "curate": "Tidies memories",
    "index": "Updates the search index",
    "lessons": "Stores lessons from summaries",
    "transcript": "Writes a transcript",
    "bounded_history": "Summarises earlier messages",
    "request_fold": "Summarises before a request",
    "periodic_flush": "Summarises a silent channel",
    "rolling_digest": "Writes the running summary",
    "session_digest": "Writes the session summary",
    "spine": "Writes the story so far",
}


class JobFilter(BaseModel):
    state: str = ""
    start: int = 0


@router.get("/u/{user:id}/jobs")
def index(request: Request, asked: Annotated[JobFilter, Query()]) -> Response:
    if asked.state and asked.state not in JOB_STATES:
        raise InvalidInput(f"`state` = {brief(asked.state)} is unknown; use one of {', '.join(JOB_STATES)}")
    memory = memory_of(request)
    most = min(COUNTED, request.app.state.engine.limits.page_rows_max)
    every = memory.admin.jobs(limit=most)
    counts = Counter(job.state for job in every)
    chosen = memory.admin.jobs(asked.state, limit=most) if asked.state else every
    ordered = sorted(chosen, key=_order)
    start = max(0, asked.start)
    shown = ordered[start : start + SHOWN]
    more = start + SHOWN if len(ordered) > start + SHOWN else None
    return page(
        request,
        "jobs.html",
        jobs=shown,
        counts=counts,
        states=STATES,
        kinds=KINDS,
        asked=asked,
        more=more,
        whole=len(every) < most,
    )


@router.post("/u/{user:id}/jobs/retry")
def retry(request: Request) -> Response:
    revived = memory_of(request, "write").admin.retry_jobs()
    told = f"{revived} {'job gets' if revived == 1 else 'jobs get'} fresh tries." if revived else "No failed jobs."
    return redirect_with_notice(request, PageLinks(request)("jobs"), told)


def _order(job: Job) -> tuple[int, float]:
    """What needs somebody first, then what runs, waits, and is done; the latest first."""
    return (("dead", "running", "ready", "done").index(job.state), -job.updated_at.timestamp())
