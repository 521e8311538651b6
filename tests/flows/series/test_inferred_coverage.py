"""Coverage that nobody asked for is marked in the ledger: it lies between entries that came together, and that is all it says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

import perdure
from lanes import examples
from perdure.testing import StoppedClock

NOON = datetime(2025, 10, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALL = (NOON - 1_000 * HOUR, NOON)


def rows(*hours: int) -> list[dict[str, Any]]:
    return [{"id": str(ago), "timestamp": (NOON - ago * HOUR).isoformat()} for ago in hours]


def ledger(series: Any) -> list[tuple[int, int, bool]]:
    """Each window as hours ago, and whether it is inferred."""
    found = series.windows(*ALL)
    return [((NOON - one.span.start) // HOUR, (NOON - one.span.end) // HOUR, one.inferred) for one in found]


def test_a_batch_without_a_window_is_marked_until_a_window_is_declared(tmp_path: Path) -> None:
    """X-2: only the span of the batch, marked as such; on disk, too."""
    url = f"sqlite:///{tmp_path / 'p.db'}"
    with perdure.open(url, clock=StoppedClock(NOON)) as engine:
        series = engine.memory("ana").series("kudos")
        series.merge(rows(9, 20), infer="batch_span", request="r1")
        assert ledger(series) == [(20, 9, True)]
    with perdure.open(url, clock=StoppedClock(NOON)) as engine:
        series = engine.memory("ana").series("kudos")
        assert ledger(series) == [(20, 9, True)]
        answer = series.query(NOON - 15 * HOUR, NOON - 10 * HOUR)
        assert answer.coverage == "full"
        assert [(one.start, one.end) for one in answer.inferred] == [(NOON - 15 * HOUR, NOON - 10 * HOUR)]
        assert answer.reason.endswith("a part counts as covered only because it lies between entries that came together")
        assert series.merge(rows(9, 20), infer="batch_span", request="r1").duplicates == 0, "the same request, answered again"

        series.merge([], window=(NOON - 15 * HOUR, NOON))
        assert ledger(series) == [(20, 15, True), (15, 0, False)]
        assert series.query(NOON - 15 * HOUR, NOON).inferred == ()
        series.merge(rows(2, 18), infer="batch_span")
        assert [one for one in ledger(series) if one[2]] == [(20, 15, True)], "what was declared stays so"
        assert engine.verify().findings == ()


def test_every_form_of_the_answer_has_the_mark() -> None:
    with perdure.open("memory:", clock=StoppedClock(NOON)) as engine:
        ana = engine.memory("ana")
        ana.tools.merge_timeseries_state("kudos", rows(3, 9), infer="batch_span")
        told = ana.tools.query_timeseries_state("kudos", NOON - 9 * HOUR, NOON - 4 * HOUR)
        assert told["inferred"] == [{"start": (NOON - 9 * HOUR).isoformat(), "end": told["requested_range"]["end"]}]
        kept = ana.after("getLikes", rows(1, 5), "save the likes", mode="auto")
        assert kept.covers == "entries"
        assert ledger(ana.series("likes")) == [(5, 1, True)]


def test_before_does_not_call_inferred_time_all_of_it() -> None:
    """X-2: what lies between entries may miss some; only a declared window ends that."""
    with perdure.open("memory:", clock=StoppedClock(NOON)) as engine:
        ana = engine.memory("ana")
        series = ana.series("kudos_timeseries", description="Kudos that were received")
        series.merge(rows(1, 60), infer="batch_span")
        given_before = ana.before("Which kudos did I get yesterday?").text
        assert (
            "held as far as the answers told, not known to be complete: 2025-10-27T00:00:00Z to 2025-10-28T00:00:00Z"
            in given_before
        )
        assert "all of this time is held" not in given_before
        assert "nothing of it needs fetching" not in given_before

        series.merge([], window=(NOON - 60 * HOUR, NOON))
        assert "all of this time is held" in ana.before("Which kudos did I get yesterday?").text


hours = st.lists(st.integers(0, 200), min_size=1, max_size=6)
merges = st.lists(st.tuples(hours, st.none() | st.tuples(st.integers(101, 200), st.integers(0, 100))), max_size=8)


@settings(max_examples=examples(60), deadline=None)
@given(merges)
def test_the_marks_are_exactly_what_no_declared_window_covers(history: list[tuple[list[int], tuple[int, int] | None]]) -> None:
    """X-1, X-2: hour by hour, covered time is declared if some window covered it, and inferred otherwise."""
    with perdure.open("memory:", clock=StoppedClock(NOON)) as engine:
        series = engine.memory("ana").series("kudos")
        declared: set[int] = set()
        covered: set[int] = set()
        for ago, window in history:
            if window is None:
                series.merge(rows(*ago), infer="batch_span")
                covered |= set(range(min(ago), max(ago)))
            else:
                series.merge([], window=(NOON - window[0] * HOUR, NOON - window[1] * HOUR))
                declared |= set(range(window[1], window[0]))
        told = ledger(series) if history else []
        assert {hour for start, end, inferred in told for hour in range(end, start) if not inferred} == declared
        assert {hour for start, end, inferred in told for hour in range(end, start) if inferred} == covered - declared
