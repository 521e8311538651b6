"""`/v1`: what concerns the whole store; and reading a time out of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from perdure import TimeRange, extract_time_range
from perdure.domain.accesses import Access
from perdure.domain.reports import DoctorReport, ProcessReport, PurgeReport, VerifyReport
from perdure.interfaces.http.answering import answer, page_behind, page_of, text_cursor
from perdure.interfaces.http.asking import PLAIN, Body, Instant, Paged, Whole, examples
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, many
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1", tags=["store"], route_class=StrictRoute)
writes = APIRouter(prefix="/v1", tags=["store"], route_class=OnceRoute)


@dataclass(frozen=True, slots=True)
class Reindexed:
    """A user whose index was made anew."""

    user: str
    entries: int


class Seconds(Body):
    model_config = examples({"seconds": 2})

    seconds: float = Field(10.0, ge=0, le=60, description="For how long at most.")


@router.get("/users", summary="List users", **described("listUsers", many(str)))
def users(door: Whole, page: Paged) -> Response:
    """The users of the space, in order."""
    return page_of(door.whole("read").users(limit=page.rows), page, lambda one: one)


@router.get("/accesses", summary="List accesses of the space", **described("listSpaceAccesses", many(Access)))
def accesses(door: Whole, page: Paged) -> Response:
    """Who did what that concerned no single user, newest first: exports of all, agents, keys, upkeep, forgetting a user."""
    rows = min(page.limit + 1, page.most)
    return page_behind(door.whole().accesses(rows, before=text_cursor(page)), page, lambda one: one.id)


@writes.post("/doctor", summary="Examine the store", **described("examine", DoctorReport))
def doctor(door: Whole) -> Response:
    """Prove a round trip through the store, and say what is degraded."""
    return answer(door.whole().doctor())


@router.get("/verify", summary="Verify the store", **described("verify", VerifyReport))
def verify(door: Whole) -> Response:
    """Check every invariant, on one consistent snapshot; nothing is changed. Reads everything."""
    return answer(door.whole().verify())


@writes.post("/process", summary="Run jobs", **described("runJobs", ProcessReport))
def process(door: Whole, body: Seconds) -> Response:
    """Run the jobs that are due, until none is or the time is up."""
    return answer(door.whole().process(body.seconds))


@writes.post("/reindex", summary="Reindex everybody", **described("reindexAll", {"users": list[Reindexed], "entries": int}))
def reindex(door: Whole) -> Response:
    """Make the search index of every user of the space anew, while the old ones answer."""
    engine = door.whole()
    done = engine.reindex()
    users = [Reindexed(owner.user, count) for owner, count in done.items() if owner.space == engine.space]
    return answer({"users": users, "entries": sum(one.entries for one in users)})


@writes.post("/purge", summary="Purge the store", **described("purge", PurgeReport))
def purge(door: Whole) -> Response:
    """Forget finished jobs, and give freed space back so that deleted data leaves the disk too."""
    return answer(door.whole().purge())


@router.get("/time-range", summary="Read a time out of words", **described("readTimeRange", {"found": TimeRange | None}))
def time_range(
    text: Annotated[
        str, Query(min_length=1, max_length=10_000, pattern=PLAIN, description="The words.", examples=["last week"])
    ],
    now: Annotated[Instant, Query(description="When it is asked.", examples=["2026-01-31T09:30:00Z"])],
    zone: Annotated[str, Query(min_length=1, max_length=100, description="Where.", examples=["Europe/Berlin"])] = "UTC",
    week_start: Annotated[Literal["monday", "sunday"], Query(description="On which day weeks begin.")] = "monday",
) -> Response:
    """The range of time that a text is about, in UTC; null if it names none."""
    return answer({"found": extract_time_range(text, now, zone, week_start=week_start)})
