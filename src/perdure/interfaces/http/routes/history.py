"""`/v1/users/{user}/journal`, `/accesses`, `/diff`, `/jobs`, `/audit`: what was done, taking it back; forgetting a user."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from perdure.domain.accesses import Access
from perdure.domain.jobs import Job, JobState
from perdure.domain.journal import Operation
from perdure.domain.overview import Overview
from perdure.interfaces.http.answering import answer, number_cursor, page_behind, page_of, text_cursor
from perdure.interfaces.http.asking import NUMBER_MAX, Body, Instant, Paged, Reads, Rules, Text, Writes, examples
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, many
from perdure.interfaces.http.once import OnceRoute
from perdure.services.auditing import AuditReport
from perdure.services.forgetting import Forgotten
from perdure.services.overviewing import DAYS_MAX

PREFIX = "/v1/users/{user:id}"
router = APIRouter(prefix=PREFIX, tags=["history"], route_class=StrictRoute)
writes = APIRouter(prefix=PREFIX, tags=["history"], route_class=OnceRoute)
Number = Annotated[int, Path(ge=1, le=NUMBER_MAX, description="The operation's number.", examples=[1])]


class Undo(Body):
    model_config = examples({"cascade": False})

    cascade: bool = Field(False, description="Take back also what builds on it.")


class Export(Body):
    model_config = examples({"export": '[{"id": "1", "memory": "Lives in Austin"}]'})

    export: Text = Field(description="The text of another engine's export: mem0's, or that of MCP's memory server.")


@router.get("/overview", summary="Count what is held", **described("getOverview", Overview))
def overview(
    memory: Reads, days: Annotated[int, Query(ge=1, le=DAYS_MAX, description="Of so many days, the last of them today.")] = 30
) -> Response:
    """How much is held of what, and how much came and changed on each of the last days."""
    return answer(memory.overview(days=days))


@router.get("/journal", summary="List operations", **described("listOperations", many(Operation)))
def journal(memory: Reads, page: Paged) -> Response:
    """What was changed in this user's derived data, by whom and why, newest first."""
    rows = min(page.limit + 1, page.most)
    return page_behind(memory.journal(rows, before=number_cursor(page)), page, lambda one: one.seq)


@router.get("/accesses", summary="List accesses", **described("listAccesses", many(Access)))
def accesses(memory: Rules, page: Paged) -> Response:
    """Who read or changed what of this user's data, newest first: ids, never what the records say.

    Needs the permission `admin`. Has what was logged while the setting `access_log` was on.
    """
    rows = min(page.limit + 1, page.most)
    return page_behind(memory.accesses(rows, before=text_cursor(page)), page, lambda one: one.id)


@writes.post(
    "/journal/{operation}/undo",
    summary="Take an action back",
    **described("undo", {"undone": int, "action": int}, errors=(404,)),
)
def undo(memory: Writes, operation: Number, body: Undo) -> Response:
    """Take back the action that an operation belongs to; 409 if later ones build on it, unless `cascade`."""
    return answer({"undone": operation, "action": memory.undo(operation, cascade=body.cascade)})


@router.get("/diff", summary="Compare two moments", **described("diff", many(Operation)))
def diff(
    memory: Reads,
    page: Paged,
    start: Annotated[Instant, Query(description="From here on.", examples=["2026-01-01T00:00:00Z"])],
    end: Annotated[Instant, Query(description="Up to here.", examples=["2030-01-01T00:00:00Z"])],
) -> Response:
    """What changed between two moments, one operation per row: as it was before, and as it was after."""
    return page_of(memory.diff(start, end), page, lambda one: one.seq)


@router.get("/jobs", summary="List jobs", **described("listJobs", many(Job)))
def jobs(
    memory: Reads, page: Paged, state: Annotated[JobState | None, Query(description="In this state only.")] = None
) -> Response:
    """This user's jobs."""
    return page_of(memory.jobs(state, limit=page.rows), page, lambda one: [one.kind, one.key])


@writes.post("/jobs/retry", summary="Retry dead jobs", **described("retryJobs", {"retried": int}))
def retry(memory: Writes) -> Response:
    """Give this user's dead jobs fresh tries."""
    return answer({"retried": memory.retry_jobs()})


@router.get("/audit", summary="Audit memories", **described("audit", AuditReport))
def audit(memory: Reads) -> Response:
    """What is wrong with what is remembered: doubles, junk, stale, clashing, orphaned, too much."""
    return answer(memory.audit())


@router.post("/audit", summary="Audit an export", **described("auditExport", AuditReport))
def audit_export(memory: Reads, body: Export) -> Response:
    """The same for the text of another engine's export; nothing is kept."""
    return answer(memory.audit(body.export))


@writes.post("/reindex", summary="Reindex a user", **described("reindexUser", {"entries": int}))
def reindex(memory: Writes) -> Response:
    """Make the search index of this user anew, while the old one answers."""
    return answer({"entries": memory.reindex()})


@writes.delete("", summary="Forget a user", **described("forgetUser", Forgotten))
def forget(memory: Rules) -> Response:
    """Remove everything that is held of the user, for good. It cannot be undone, and needs the permission `admin`."""
    return answer(memory.forget(user=True))
