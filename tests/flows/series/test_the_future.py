"""A series never claims what is still to come, whatever was fetched, whichever clock stood where, whoever asks."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import perdure
from lanes import examples
from perdure.domain.series import COVERAGE_RULES
from perdure.handles.registry.shapes import plain
from perdure.testing import StoppedClock

NOON = datetime(2025, 10, 28, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
NAME = "meetings_timeseries"
CLAIMS = re.compile(r"all of this time is held|holds all of|Complete coverage")
WHOLE_CLAIMS = re.compile(r"nothing of it needs fetching")
WHEN = (
    "today",
    "tomorrow",
    "this week",
    "next week",
    "in the next 3 days",
    "yesterday",
    "on Friday",
    "this month",
    "next Monday",
)

hours = st.integers(-96, 96)
ranges = st.tuples(hours, st.integers(1, 96)).map(lambda one: (NOON + one[0] * HOUR, NOON + (one[0] + one[1]) * HOUR))
fetches = st.lists(
    st.tuples(ranges, st.lists(hours, max_size=3), st.booleans(), st.sampled_from([0, 1, 30, -5, -40])), max_size=4
)
specs = st.sampled_from(
    [{}, {"fresh_for_s": 86_400}, {"settles_after_s": 3 * 3600}, {"settles_after_s": 7200, "fresh_for_s": 7200}]
)


def held(clock: StoppedClock, spec: dict[str, Any], history: list[Any]) -> perdure.Memory:
    """A user whose series was fed by fetches with the clock here and there."""
    ana = perdure.open("memory:", clock=clock).memory("ana", agent="coach")
    series = ana.series(NAME, description="Meetings in the calendar", **spec)
    for window, entries, whole, moved in history:
        rows = [{"id": str(one), "timestamp": (NOON + one * HOUR).isoformat(), "with": "Bo"} for one in entries]
        series.merge(rows, window=window, complete=whole)
        clock.move(hours=moved)
    return ana


@settings(max_examples=examples(60), deadline=None)
@given(fetches, ranges, specs)
def test_no_rule_of_coverage_claims_the_future(
    history: list[Any], wanted: tuple[datetime, datetime], spec: dict[str, Any]
) -> None:
    """B-17, S0-47: of a range that reaches beyond now, `full` is never said, and only what is over is called held or provisional."""
    clock = StoppedClock(NOON)
    ana = held(clock, spec, history)
    series, now = ana.series(NAME), clock.now()
    for rule in COVERAGE_RULES:
        answer = series.query(*wanted, coverage=rule)
        told: dict[str, Any] = plain(answer)
        assert all(span.end <= now for span in (*answer.gaps, *answer.provisional))
        if wanted[1] <= now:
            assert answer.future is None
            continue
        assert answer.future is not None
        assert (answer.future.start, answer.future.end) == (max(now, wanted[0]), wanted[1])
        assert answer.coverage != "full"
        assert not CLAIMS.search(answer.reason)
        assert (told["coverage"], told["future"]["end"]) == (answer.coverage, wanted[1].isoformat())
        if wanted[0] >= now:
            assert answer.coverage == "none"
    assert all(span.end <= now for span in series.gaps(*wanted))


@settings(max_examples=examples(40), deadline=None)
@given(fetches, st.sampled_from(WHEN), specs)
def test_no_text_that_an_agent_gets_claims_the_future(history: list[Any], when: str, spec: dict[str, Any]) -> None:
    """S0-30, S0-47: `before`, `context` and `recall` say what is not covered of a time that is still to come."""
    clock = StoppedClock(NOON)
    ana = held(clock, spec, history)
    goal = f"Which meetings do I have {when}?"
    found, injection, context = ana.recall(goal), ana.before(goal), ana.context(goal)
    now, asked = clock.now(), found.understood.time_range
    assert asked is not None
    if asked.end <= now:
        return
    texts = [injection.text, str(injection.values), "\n".join(block.render() for block in context.blocks)]
    for text in texts:
        assert not CLAIMS.search(text), text
        if asked.start >= now:
            assert not WHOLE_CLAIMS.search(text), text
    if any(hit.kind == "series" for hit in found.hits):
        [gap] = found.uncovered.gaps
        assert gap.future is not None
        assert gap.future.end == asked.end
        assert all(span.end <= now for span in gap.spans)
        assert any("still to come" in line for line in found.uncovered.lines())


@pytest.fixture
def ana() -> perdure.Memory:
    """Two days of meetings were fetched, up to now."""
    return held(StoppedClock(NOON), {}, [((NOON - 48 * HOUR, NOON), [-3], True, 0)])


def test_meetings_of_tomorrow_are_not_said_to_be_none(ana: perdure.Memory) -> None:
    """S0-47: a window that was held up to now says nothing about tomorrow."""
    goal = "Which meetings do I have tomorrow?"
    told: Any = ana.before(goal, target="goal").values[NAME]
    assert told["coverage"] == "none"
    assert told["note"] == (
        "nothing is stored for this time; what comes from 2025-10-29T00:00:00Z on is not covered: ask the source about it"
    )
    assert "covers nothing from 2025-10-29T00:00:00+00:00 on" in str(ana.context(goal).blocks)


@pytest.mark.parametrize("when", ["do I have tomorrow", "did I have yesterday", "are there next week"])
def test_nobody_is_told_to_fetch_a_series_that_was_not_asked_about(ana: perdure.Memory, when: str) -> None:
    """S0-3, S0-47."""
    ana.series("runs").merge([{"id": "r", "timestamp": (NOON - HOUR).isoformat()}])
    goal = f"Which meetings {when}?"
    [told] = [block.text for block in ana.context(goal).blocks if block.kind == "series"]
    assert NAME in told
    assert "runs" not in told
    assert "runs" not in "".join(ana.recall(goal).uncovered.lines())


@pytest.mark.parametrize(
    "goal",
    [
        "Which meetings do I have on Friday?",
        "Welche Meetings habe ich am Freitag?",
        "Quels meetings ai-je vendredi ?",
        "¿Qué meetings tengo el viernes?",
    ],
)
def test_the_coming_friday_is_not_taken_for_the_one_that_was_fetched(ana: perdure.Memory, goal: str) -> None:
    """S0-43, S0-47, in each language whose time words are read: of what one has, the day is still to come."""
    told: Any = ana.before(goal, target="goal").values[NAME]
    assert (told["from"], told["coverage"], told["count"]) == ("2025-10-31T00:00:00Z", "none", 0)


def test_of_today_what_is_over_is_held_and_the_rest_is_not(ana: perdure.Memory) -> None:
    told: Any = ana.before("Which meetings do I have today?", target="goal").values[NAME]
    assert told["coverage"] == "partial"
    assert told["note"] == (
        "all of it up to 2025-10-28T12:00:00Z is held (1 entry); nothing of it needs fetching; "
        "what comes from 2025-10-28T12:00:00Z on is not covered: ask the source about it"
    )


def test_entries_of_the_future_are_shown_and_count_for_nothing_that_is_over(ana: perdure.Memory) -> None:
    """S0-47, B-17."""
    ana.series(NAME).merge([{"id": "late", "timestamp": (NOON + 5 * HOUR).isoformat()}])
    told: Any = ana.before("Which meetings do I have today?", target="goal").values[NAME]
    assert told["count"] == 2
    assert told["note"].startswith("all of it up to 2025-10-28T12:00:00Z is held (1 entry); ")
    later = ana.tools.query_timeseries_state(NAME, NOON + HOUR, NOON + 24 * HOUR)
    assert later["reason"] == "The range is in the future, which is never covered; 1 entry is stored, perhaps not all"


def test_a_goal_without_a_time_is_shown_what_is_still_to_come() -> None:
    """S0-47: a meeting of this evening was left out, and counted as none."""
    ana = perdure.open("memory:", clock=StoppedClock(NOON)).memory("ana", agent="coach")
    series = ana.series(NAME, description="Meetings in the calendar")
    series.merge([], window=(NOON - 24 * HOUR, NOON))
    told: Any = ana.before("What is my next meeting?", target="goal").values[NAME]
    assert told == {
        "series": "Meetings in the calendar",
        "count": 0,
        "note": "nothing is stored; ask the source whether there is more",
        "entries": [],
    }
    series.merge([{"id": "late", "timestamp": (NOON + 5 * HOUR).isoformat()}])
    told = ana.before("What is my next meeting?", target="goal").values[NAME]
    assert (told["count"], [one["id"] for one in told["entries"]]) == (1, ["late"])


def test_by_the_seed_rule_too_nothing_is_covered_before_the_oldest_entry() -> None:
    """S0-29, B-17: an entry of the future covers nothing of what is over."""
    ana = perdure.open("memory:", clock=StoppedClock(NOON)).memory("ana", agent="coach")
    ana.series(NAME).merge([{"id": "late", "timestamp": (NOON + 5 * HOUR).isoformat()}])
    answer = ana.tools.query_timeseries_state(NAME, NOON - 24 * HOUR, NOON + 24 * HOUR, coverage="seed_span")
    assert (answer["coverage"], answer["needs_api_call"], answer["count"]) == ("none", True, 1)


def test_entries_without_a_window_are_held_and_not_known_to_be_all() -> None:
    """S0-30, S0-47: eight entries are never "nothing"."""
    ana = perdure.open("memory:", clock=StoppedClock(NOON)).memory("ana", agent="coach")
    rows = [{"id": str(one), "timestamp": (NOON - one * HOUR).isoformat()} for one in range(1, 9)]
    ana.series(NAME, description="Meetings in the calendar").merge(rows)
    told: Any = ana.before("Which meetings did I have in the last 10 hours?", target="goal").values[NAME]
    assert (told["count"], told["coverage"]) == (8, "none")
    assert told["note"] == (
        "8 entries are stored, perhaps not all: no fetch covers this time; fetch 2025-10-28T02:00:00Z to 2025-10-28T12:00:00Z"
    )
    assert "does not hold all of" in str(ana.context("Which meetings did I have in the last 10 hours?").blocks)


def test_of_time_that_was_fetched_before_it_had_settled_nobody_says_that_it_was_not_fetched() -> None:
    """S0-47, X-5."""
    clock = StoppedClock(NOON)
    ana = perdure.open("memory:", clock=clock).memory("ana", agent="coach")
    series = ana.series(NAME, description="Meetings in the calendar", settles_after_s=172_800)
    series.merge([{"id": "1", "timestamp": (NOON - HOUR).isoformat()}], window=(NOON - 24 * HOUR, NOON))
    clock.move(hours=2)
    told: Any = ana.before("Which meetings did I have in the last 10 hours?", target="goal").values[NAME]
    assert (told["count"], told["coverage"]) == (1, "none")
    assert told["note"].startswith("1 entry is stored, perhaps not all: this time was fetched before it had settled; fetch ")
