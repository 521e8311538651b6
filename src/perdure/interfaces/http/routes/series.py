"""`/v1/users/{user}/series`: time series, what is put into them and taken out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from perdure.domain.series import Infer, MergeResult, PastEntry, Series
from perdure.handles.series import SeriesRules
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import PLAIN, Body, Id, Instant, Json, Paged, Reads, Writes, examples, in_path
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute
from perdure.services.series import Cleanup

PREFIX = "/v1/users/{user:id}/series"
# A merge takes the caller's id of the request itself.
router = APIRouter(prefix=PREFIX, tags=["series"], route_class=StrictRoute)
writes = APIRouter(prefix=PREFIX, tags=["series"], route_class=OnceRoute)

Name = Annotated[str, in_path("The series.", "kudos_timeseries")]
EntryId = Annotated[str, in_path("The entry's id.", "kudos_1")]
Repeated = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=400, pattern=r"^[!-~]+$", description="The same twice is one merge."
    ),
]
TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv"}
CHUNK_LINES = 200


class Rules(Body):
    model_config = examples({"id_template": "kudos_{activity_id}_{athlete_id}", "timestamp_field": "start_date"})

    id_field: Id | None = Field(None, description="The field with an entry's id.")
    timestamp_field: Id | None = Field(None, description="The field with its time.")
    id_template: str | None = Field(
        None, max_length=400, pattern=r"^[^\x00{}]*(\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\x00{}]*)+$",
        description="Makes the id of entries that carry none: `kudos_{activity_id}`.",
    )  # fmt: skip
    zone: str | None = Field(
        None, min_length=1, max_length=100, description="What a time without a zone means: `Europe/Berlin`."
    )
    settles_after_s: float | None = Field(None, ge=0, le=10**9, description="Entries may arrive so long after their time.")
    fresh_for_s: float | None = Field(None, ge=0, le=10**9, description="How old the newest end may be before it is stale.")
    max_entries: int | None = Field(None, ge=1, le=10**9, description="More than so many: the oldest are evicted.")
    keep_days: float | None = Field(None, ge=0, le=10**6, description="What the recurring cleanup keeps.")
    description: str | None = Field(None, max_length=250, pattern=PLAIN, description="What it is about, in words.")

    def stated(self) -> SeriesRules:
        """Those that were given."""
        told = self.model_dump(exclude_unset=True)
        kept = {name: value for name, value in told.items() if value is not None or name in NULLABLE}
        rules: SeriesRules = kept  # type: ignore[assignment]  # the model has the same fields
        return rules


NULLABLE = ("id_template", "max_entries", "keep_days")
"""Rules for which null says something: none, no bound, never."""


class Fetched(Body):
    model_config = examples({"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"})

    start: Instant = Field(description="From here on.")
    end: Instant = Field(description="Up to here, which is not included.")


class Merge(Body):
    model_config = examples(
        {
            "entries": [{"id": "k-1", "timestamp": "2026-01-15T08:00:00Z", "athlete": "Ben"}],
            "window": {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"},
        }
    )

    entries: list[dict[str, Json]] = Field(max_length=100_000, description="What was fetched.")
    window: Fetched | None = Field(None, description="What was asked for: it counts as covered, even when nothing came.")
    complete: bool = Field(True, description="False: the answer was cut off.")
    newest_first: bool = Field(True, description="In which order it was delivered.")
    infer: Infer = Field("none", description="`batch_span`: without a window, what lies between the entries is covered.")
    strict: bool = Field(False, description="Store none if one is bad.")
    api_calls: int = Field(1, ge=0, le=10**9, description="How many calls this took, for the books.")
    rules: Rules | None = Field(None, description="The rules of a series that is new.")


class Keep(Body):
    model_config = examples({"keep_days": 90})

    keep_days: float = Field(90, ge=0, le=10**6, description="Entries older than that are removed.")


@router.get("", summary="List series", **described("listSeries", many(Series)))
def list_series(memory: Reads, page: Paged) -> Response:
    """By name."""
    return page_of(memory.list_series(page.rows), page, lambda one: one.name)


@router.get("/{series:id}", summary="Get a series", **described("getSeries", Series, errors=(404,)))
def get(memory: Reads, series: Name) -> Response:
    """Its books."""
    return answer(memory.series(series).about())


@writes.patch(
    "/{series:id}",
    summary="Configure a series",
    **described("configureSeries", Series, links=(leads_to("getSeries", series="/name"),
                                                  leads_to("deleteSeries", series="/name"))),
)  # fmt: skip
def configure(memory: Writes, series: Name, body: Rules) -> Response:
    """Make it with these rules, or change them. Entries already held keep their ids and instants."""
    return answer(memory.series(series).configure(**body.stated()))


@writes.delete(
    "/{series:id}",
    summary="Delete a series",
    **described("deleteSeries", {"name": str, "removed": int}, errors=(404,), links=(leads_to("getSeries", series="/name"),)),
)
def delete(memory: Writes, series: Name) -> Response:
    """With everything it holds; `removed` is how many entries that were."""
    return answer({"name": series, "removed": memory.series(series).remove()})


@router.post(
    "/{series:id}/entries",
    summary="Merge entries",
    **described("mergeEntries", MergeResult, errors=(409,), links=(
        leads_to("getSeries", series="$request.path.series"), leads_to("countEntries", series="$request.path.series"),
        leads_to("getSeriesEdges", series="$request.path.series"))),
)  # fmt: skip
def merge(memory: Writes, series: Name, body: Merge, request: Repeated = None) -> Response:
    """Merge what was fetched, by id. Bad entries are rejected one by one; the others are stored."""
    rules: SeriesRules = {} if body.rules is None else body.rules.stated()
    window = None if body.window is None else (body.window.start, body.window.end)
    more: dict[str, Any] = {} if request is None else {"request": request}
    done = memory.series(series, **rules).merge(
        body.entries, window=window, complete=body.complete, newest_first=body.newest_first, infer=body.infer,
        strict=body.strict, api_calls=body.api_calls, **more,
    )  # fmt: skip
    return answer(done)


@router.get(
    "/{series:id}/entries/{entry:id}/history",
    summary="List an entry's past bodies",
    **described("getEntryHistory", many(PastEntry)),
)
def history(memory: Reads, page: Paged, series: Name, entry: EntryId) -> Response:
    """Bodies of an entry that lost against a newer one, latest first."""
    return page_of(memory.series(series).history(entry, limit=page.rows), page, lambda one: one.version)


@writes.post("/{series:id}/cleanup", summary="Clean a series up", **described("cleanupSeries", Cleanup))
def cleanup(memory: Writes, series: Name, body: Keep) -> Response:
    """Remove old entries, and the claim to know that time."""
    return answer(memory.series(series).cleanup(body.keep_days))


async def _range(
    start: Annotated[Instant | None, Query(description="From here on.")] = None,
    end: Annotated[Instant | None, Query(description="Up to here, included.")] = None,
) -> dict[str, Any]:
    return {"start": start, "end": end}


Range = Annotated[dict[str, Any], Depends(_range)]


@router.get(
    "/{series:id}/export",
    summary="Export entries",
    response_class=StreamingResponse,
    **described("exportEntries", None, media=dict.fromkeys(TYPES.values(), "A line for each entry, oldest first.")),
)
def export(
    memory: Reads,
    series: Name,
    asked: Range,
    format: Annotated[Literal["jsonl", "csv"], Query(description="Of the lines.")] = "jsonl",  # noqa: A002 - the parameter's name
) -> Response:
    """All entries of the range as lines, oldest first, sent as they are read."""
    lines = memory.series(series).export(format, **asked)
    first = next(lines, None)  # what is wrong with the request is told before anything is sent
    whole = iter(()) if first is None else chain([first], lines)
    return StreamingResponse(_chunks(whole), media_type=TYPES[format])


def _chunks(lines: Iterator[str]) -> Iterator[str]:
    """Lines in portions: each portion costs a hop between threads."""
    held: list[str] = []
    for line in lines:
        held.append(line if line.endswith("\n") else f"{line}\n")
        if len(held) >= CHUNK_LINES:
            yield "".join(held)
            held.clear()
    if held:
        yield "".join(held)
