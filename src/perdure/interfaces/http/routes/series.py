"""Time series: what is merged into them, what is asked of them, and what is still to be fetched."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from perdure.handles.arguments import an_id
from perdure.handles.memory import Memory
from perdure.handles.operation import describe
from perdure.handles.series import SeriesHandle
from perdure.interfaces.http.derived import ANSWER, Place, Route, listed, table
from perdure.interfaces.http.fields import Body, body_of


def _reach(memory: Memory, given: dict[str, Any]) -> SeriesHandle:
    return memory.series(given.pop("series"), **given.pop("rules", {}))


SERIES = Place(SeriesHandle, _reach, named={"series": an_id("The series' name.", "kudos_timeseries")})
KUDOS = {"id": "k-1", "timestamp": "2026-01-15T08:00:00Z", "athlete": "Ben"}
TIMES = {"start": datetime, "end": datetime}
Rules: type[Body] = body_of("SeriesRules", describe(SeriesHandle, "configure").parameters, {}, ())


router = table(
    "series",
    Route("GET /series", "listSeries", "series.list", page=listed("name")),
    Route("GET /series/{series}", "getSeries", "about", on=SERIES),
    Route(
        "PATCH /series/{series}",
        "configureSeries",
        "configure",
        on=SERIES,
        errors=(),
        examples=({"id_template": "kudos_{activity_id}_{athlete_id}", "timestamp_field": "start_date"},),
        links={"getSeries": "series=/name", "deleteSeries": "series=/name"},
    ),
    Route(
        "DELETE /series/{series}",
        "deleteSeries",
        "remove",
        on=SERIES,
        tells={"name": "series", "removed": ANSWER},
        links={"getSeries": "series=/name"},
    ),
    Route(
        "POST /series/{series}/entries",
        "mergeEntries",
        "merge",
        on=SERIES,
        errors=(409,),
        key="request",
        types={"entries": list[dict[str, Any]]},
        more={"rules": (Rules, Field(default_factory=Rules, description="The rules of a series that is new."))},
        examples=({"entries": [KUDOS], "window": {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"}},),
        links={"getSeries": "series"},
    ),
    Route(
        "GET /series/{series}/entries", "queryEntries", "query", on=SERIES, errors=(), types=TIMES, renamed={"cursor": "page"}
    ),
    Route("GET /series/{series}/gaps", "findGaps", "gaps", on=SERIES, errors=(), types=TIMES, page=listed("start_us")),
)
