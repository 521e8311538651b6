"""What the web page draws of a series, and how it tells what changed: arithmetic, without a browser."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

import perdure
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span, union
from perdure.interfaces.web.coverage import WIDTH, Axis, shares, stretches
from perdure.interfaces.web.diffs import Field, fields, line_diff, pretty
from perdure.testing import StoppedClock

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
fetches = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 60), st.integers(0, 100)), max_size=6)


@given(fetches, st.integers(0, 72), st.integers(0, 48), st.integers(1, 240), st.integers(-24, 48))
def test_a_range_is_parted_without_holes_and_what_needs_fetching_is_exactly_the_gaps(
    fetched: list[tuple[int, int, int]], settles: int, fresh: int, length: int, ahead: int
) -> None:
    clock = StoppedClock(NOW)
    with perdure.open("memory:", clock=clock) as engine:
        series = engine.memory("ana").series("s", settles_after_s=settles * 3600.0, fresh_for_s=fresh * 3600.0)
        for ago, hours, later in sorted(fetched, key=lambda one: one[0] - one[2], reverse=True):
            start = NOW - ago * HOUR
            clock.set(min(NOW, start + (hours + later) * HOUR))
            if start < clock.now():
                series.merge([], window=(start, start + hours * HOUR))
        clock.set(NOW)
        end = NOW + ahead * HOUR
        answer = series.query(end - length * HOUR, end)
        found = stretches(answer, series.windows(end - length * HOUR, end), to_us(NOW), UTC)
    assert [one.span.start_us for one in found[1:]] == [one.span.end_us for one in found[:-1]]
    assert union(one.span for one in found) == (answer.wanted,)
    assert union(one.span for one in found if one.kind in ("gap", "again")) == union(answer.gaps)
    assert all(one.span.start_us >= to_us(NOW) for one in found if one.kind == "ahead")
    assert sum(shares(found).values()) <= 1 + 1e-9
    placed = Axis(answer.wanted, UTC).placed(found)
    assert all(0 <= one.x <= WIDTH and one.width > 0 for one in placed)


def test_a_curve_does_not_cross_what_is_missing() -> None:
    day = 86_400_000_000
    axis = Axis(Span(0, 10 * day), UTC)
    curve = axis.curve("km", [(0, 1.0), (day, 2.0), (5 * day, 3.0)], [Span(2 * day, 4 * day)], top=0, height=10)
    assert (curve.path.count("M"), curve.path.count("L")) == (2, 1)
    assert (curve.low, curve.high) == ("1", "3")


def test_an_axis_of_any_length_has_a_handful_of_ticks() -> None:
    for days in (1, 7, 30, 90, 101, 365, 2_000, 40_000):
        axis = Axis(Span(to_us(NOW - timedelta(days=days)), to_us(NOW)), UTC)
        assert 1 <= len(axis.ticks()) <= 20, days


def test_lines_are_compared_with_what_stands_near() -> None:
    before, after = pretty({"a": 1, "b": [1, 2]}), pretty({"a": 1, "b": [1, 3]})
    assert ("-", "    2") in line_diff(before, after)
    assert ("+", "    3") in line_diff(before, after)
    assert line_diff(before, before) == []


def test_what_no_eye_sees_is_written_so_that_it_means_the_same() -> None:
    value = {"a": "x\u202ey\x85\u2028\n"}
    assert "\u202e" not in pretty(value)
    assert json.loads(pretty(value)) == value


def test_fields_that_differ_are_told_and_moments_are_moments() -> None:
    before = {"content": "Lives in Porto", "valid_to": None, "mentions": 1, "entities": []}
    after = {"content": "Lives in Porto", "valid_to": to_us(NOW), "mentions": 2, "entities": []}
    assert fields(before, after) == [Field("valid_to", None, "2026-06-15 12:00:00+00:00"), Field("mentions", "1", "2")]
    assert fields(None, {"a": "x", "b": None}) == [Field("a", None, "x")]
    assert fields({"a": True}, None) == [Field("a", "yes", None)]
