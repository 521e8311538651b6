"""What is asked of a series: its entries and coverage, what is to be fetched, counts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response

from perdure.domain.series import CoverageRule, CoveredWindow, Entry, SeriesAnswer
from perdure.domain.spans import Span
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import LIMIT_MAX, PLAIN, Instant, Paged, Reads
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, many
from perdure.interfaces.http.routes.series import PREFIX, Name, Range
from perdure.services.aggregates import Period
from perdure.services.series import QueryOptions

router = APIRouter(prefix=PREFIX, tags=["series"], route_class=StrictRoute)
Start = Annotated[Instant, Query(description="From here on.", examples=["2026-01-01T00:00:00Z"])]
End = Annotated[Instant, Query(description="Up to here.", examples=["2026-02-01T00:00:00Z"])]
FieldName = Annotated[str, Query(min_length=1, max_length=400, pattern=PLAIN, description="The field.", examples=["athlete"])]


async def _options(
    limit: Annotated[int | None, Query(ge=1, le=LIMIT_MAX, description="Entries at most.")] = None,
    cursor: Annotated[
        str | None, Query(min_length=1, max_length=4_000, description="`next_page` of the answer before.")
    ] = None,
    coverage: Annotated[CoverageRule, Query(description="By which rule coverage is judged.")] = "ledger",
    fresh_for_s: Annotated[float | None, Query(ge=0, le=10**9, description="How stale the newest end may be.")] = None,
    by_first_seen: Annotated[bool, Query(description="By when an entry was first seen, not by its own time.")] = False,
) -> QueryOptions:
    return QueryOptions(limit, cursor, coverage, fresh_for_s, by_first_seen)


@router.get("/{series:id}/entries", summary="Query entries", **described("queryEntries", SeriesAnswer))
def query(memory: Reads, series: Name, start: Start, end: End, options: Annotated[QueryOptions, Depends(_options)]) -> Response:
    """Entries in the range, both ends included, newest first, and what is covered of it."""
    return answer(memory.series(series).query(start, end, options=options))


@router.get("/{series:id}/gaps", summary="Find gaps", **described("findGaps", many(Span)))
def gaps(memory: Reads, page: Paged, series: Name, start: Start, end: End) -> Response:
    """What would have to be fetched to cover the range."""
    return page_of(memory.series(series).gaps(start, end), page, lambda one: one.start_us)


@router.get("/{series:id}/windows", summary="List covered windows", **described("listWindows", many(CoveredWindow)))
def windows(memory: Reads, page: Paged, series: Name, start: Start, end: End) -> Response:
    """What the ledger holds of the range, and when it was fetched."""
    return page_of(memory.series(series).windows(start, end), page, lambda one: one.span.start_us)


@router.get("/{series:id}/count", summary="Count entries", **described("countEntries", {"count": int}))
def count(memory: Reads, series: Name, asked: Range) -> Response:
    """How many entries lie in the range, both ends included."""
    return answer({"count": memory.series(series).count(**asked)})


@router.get(
    "/{series:id}/edges",
    summary="Get the first and the last entry",
    **described("getSeriesEdges", {"first": Entry | None, "last": Entry | None}),
)
def edges(memory: Reads, series: Name) -> Response:
    """The oldest and the newest; null if there are none."""
    held = memory.series(series)
    return answer({"first": held.first(), "last": held.last()})


@router.get(
    "/{series:id}/per/{period}",
    summary="Count entries per period",
    **described("countPerPeriod", many({"start": str, "count": int})),
)
def per(
    memory: Reads,
    page: Paged,
    series: Name,
    period: Annotated[Period, Path(description="Of what length.")],
    asked: Range,
    zone: Annotated[str | None, Query(min_length=1, max_length=100, description="The series' own, if left out.")] = None,
) -> Response:
    """Entries per hour, day or week in a zone; empty periods between are there with 0."""
    found = memory.series(series).per(period, zone=zone, **asked)
    items = [{"start": opening.isoformat(), "count": number} for opening, number in found.items()]
    return page_of(items, page, lambda one: one["start"])


@router.get(
    "/{series:id}/group",
    summary="Count entries by a field",
    **described("groupEntries", many({"value": str, "count": int})),
)
def group(memory: Reads, page: Paged, series: Name, field: FieldName, asked: Range) -> Response:
    """How many entries have each value of a field, most frequent first."""
    found = memory.series(series).group(field, **asked)
    return page_of([{"value": value, "count": number} for value, number in found.items()], page, lambda one: one["value"])


@router.get("/{series:id}/distinct", summary="List a field's values", **described("listDistinct", many(str)))
def distinct(memory: Reads, page: Paged, series: Name, field: FieldName, asked: Range) -> Response:
    """The values that a field has, in order."""
    return page_of(memory.series(series).distinct(field, **asked), page, lambda one: one)
