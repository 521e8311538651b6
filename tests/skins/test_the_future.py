"""No face says of a time that is still to come that it is covered: not in a flag, a number or a text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, example, given, settings

import perdure
from in_process import InProcess
from lanes import examples
from perdure.interfaces.mcp.callers import LocalCaller
from perdure.interfaces.mcp.sets import offers
from perdure.interfaces.server import Options, build
from perdure.testing import StoppedClock

HOUR = timedelta(hours=1)
NAME = "meetings_timeseries"
CLAIMS = re.compile(r"all of this time is held|holds all of|Complete coverage|the range is covered")
STRETCH = re.compile(r"<title>((?:held|gap)[^:<]*): [^<]*? to (\d+ \w+ \d\d:\d\d) \(")
WHEN = ("tomorrow", "next week", "in the next 3 days", "today")

hours = st.integers(-96, 96)
ranges = st.tuples(hours, st.integers(1, 96)).map(lambda one: (one[0], one[0] + one[1]))
fetches = st.lists(
    st.tuples(ranges, st.lists(hours, max_size=3), st.booleans(), st.sampled_from([0, 1, 30, -40])), min_size=1, max_size=3
)
wanted = st.tuples(hours, st.integers(1, 96)).map(lambda one: (one[0], max(one[0] + one[1], 2)))
"""Ranges that end after now."""


class Faces:
    """Every way to ask for the series of a user, as flags and as text."""

    def __init__(self, engine: perdure.Engine, patch: pytest.MonkeyPatch, client: TestClient) -> None:
        self.engine, self.client, self.users = engine, client, 0
        self.commands = InProcess(patch, engine)
        self.tools = {one.name: one for one in offers(engine.memory("ana").tools, "all")}

    def answers(self, user: str, start: datetime, end: datetime) -> Iterator[dict[str, Any]]:
        """What each face answers to a query."""
        ends = {"start": start.isoformat(), "end": end.isoformat()}
        yield self.client.get(f"/v1/users/{user}/series/{NAME}/entries", params=ends).json()
        yield json.loads(self.commands.run("series", "query", NAME, *ends.values(), "--user", user, "--json").stdout)
        tool = {"key": NAME, "start_time": ends["start"], "end_time": ends["end"]}
        yield self.told("queryTimeseriesState", user, tool).told
        yield self.engine.memory(user).tools.query_timeseries_state(NAME, start, end)

    def texts(self, user: str, start: datetime, end: datetime, goal: str) -> Iterator[str]:
        """What each face shows to a person or a model."""
        ends = (start.isoformat(), end.isoformat())
        lines = (
            ("series", "query", NAME, *ends),
            ("series", "gaps", NAME, *ends),
            ("agent", "before", goal),
            ("recall", goal),
            ("context", goal),
        )
        for done in (self.commands.run(*line, "--user", user) for line in lines):
            assert done.code == 0, done
            yield done.stdout + done.stderr
        for route, field in (("before", "goal"), ("recall", "query"), ("context", "goal")):
            yield self.client.post(f"/v1/users/{user}/{route}", json={field: goal}).text
        for tool, field in (("beforeGoal", "goal"), ("recall", "query"), ("getContext", "goal")):
            yield self.told(tool, user, {field: goal}).text

    def drawn(self, user: str, now: datetime, end: datetime) -> Iterator[tuple[str, datetime]]:
        """What the page of the series draws as held in some way, and until when."""
        page = self.client.get(f"/u/{user}/series/{NAME}", params={"days": 7, "end": end.isoformat()})
        assert page.status_code == 200
        for kind, day in STRETCH.findall(page.text):
            years = (datetime.strptime(f"{year} {day}", "%Y %d %b %H:%M") for year in (now.year - 1, now.year, now.year + 1))
            yield kind, min((one.replace(tzinfo=UTC) for one in years), key=lambda one: abs(one - now))

    def told(self, tool: str, user: str, params: dict[str, Any]) -> Any:
        return self.tools[tool].run(LocalCaller(self.engine, self.engine.memory(user)), params)


@pytest.fixture(scope="module")
def faces() -> Iterator[Faces]:
    with (
        perdure.open("memory:", clock=StoppedClock()) as engine,
        pytest.MonkeyPatch.context() as patch,
        TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1:8765") as client,
    ):
        yield Faces(engine, patch, client)


def held(faces: Faces, history: list[Any]) -> tuple[str, datetime]:
    """A new user whose series was fed by fetches with the clock here and there; and the time it is then."""
    clock: Any = faces.engine._clock
    faces.users += 1
    user, began = f"u{faces.users}", clock.now()
    series = faces.engine.memory(user).series(NAME, description="Meetings in the calendar")
    for window, entries, whole, moved in history:
        rows = [{"id": str(one), "timestamp": (began + one * HOUR).isoformat(), "with": "Bo"} for one in entries]
        series.merge(rows, window=tuple(began + one * HOUR for one in window), complete=whole)
        clock.move(hours=moved)
    return user, clock.now()


@settings(max_examples=examples(8), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fetches, wanted, st.sampled_from(WHEN))
@example([((-96, 0), [-2], True, 0)], (-5, 5), "today")  # all is held up to now
@example([((-96, 0), [], True, 1)], (2, 26), "tomorrow")
def test_no_face_claims_the_future(faces: Faces, history: list[Any], ends: tuple[int, int], when: str) -> None:
    """B-17, S0-29, S0-47."""
    user, now = held(faces, history)
    start, end = now + ends[0] * HOUR, now + ends[1] * HOUR
    for told in faces.answers(user, start, end):
        assert told["coverage"] != "full"
        assert told["coverage"] == "none" or start < now
        assert told["future"]["end"] == end.isoformat()
        assert all(
            datetime.fromisoformat(span["end"]) <= now for name in ("gaps", "provisional", "inferred") for span in told[name]
        )
    drawn = list(faces.drawn(user, now, end))
    assert drawn
    assert all(until <= now for _, until in drawn)
    for text in faces.texts(user, start, end, f"Which meetings do I have {when}?"):
        assert text
        assert not CLAIMS.search(text), text


def test_the_page_of_a_series_marks_what_is_only_inferred(faces: Faces) -> None:
    """X-2: neither a badge nor a sentence calls it all of the time."""
    faces.users += 1
    user, clock = f"u{faces.users}", faces.engine._clock
    series, now = faces.engine.memory(user).series(NAME), clock.now()
    rows = [{"id": str(ago), "timestamp": (now - ago * HOUR).isoformat()} for ago in (0, 200)]
    series.merge(rows, infer="batch_span")
    address = f"/u/{user}/series/{NAME}?days=7"
    page = faces.client.get(address).text
    assert "covered, not known to be complete" in page
    assert "not known to be complete 100 %" in page
    assert "k-inferred" in page
    assert not CLAIMS.search(page)
    assert "all covered" not in page + faces.client.get(f"/u/{user}/series").text.split("<main")[1]

    series.merge([], window=(now - 200 * HOUR, now))
    page = faces.client.get(address).text
    assert "all covered" in page
    assert "k-inferred" not in page


def test_entries_without_a_window_are_never_said_to_be_nothing(faces: Faces) -> None:
    """S0-30, S0-47: eight entries are held, and not known to be all, on the page and on the command line."""
    faces.users += 1
    user, now = f"u{faces.users}", faces.engine._clock.now()
    rows = [{"id": str(ago), "timestamp": (now - ago * HOUR).isoformat()} for ago in range(1, 9)]
    faces.engine.memory(user).series(NAME).merge(rows)
    page = faces.client.get(f"/u/{user}/series/{NAME}?days=7").text.split("<main")[1]
    ends = ((now - 10 * HOUR).isoformat(), now.isoformat())
    windows = faces.commands.run("series", "windows", NAME, *ends, "--user", user).stderr
    assert ("of this time is covered" in page, "No fetch covers this range." in page) == (True, True)
    assert "no fetch covers anything of the range" in windows
    for text in (page, windows, *faces.texts(user, now - 10 * HOUR, now, "Which meetings did I have in the last 10 hours?")):
        assert not re.search(r"nothing (?:of this time is held|was fetched)|0 % of this time is held", text, re.IGNORECASE), (
            text
        )
