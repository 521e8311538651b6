"""The calls that the seeds write down, letter by letter: time words, pages, series among the state keys, lines of the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import perdure
from perdure.testing import StoppedClock

TEN = datetime(2025, 10, 25, 10, 0, tzinfo=UTC)
KUDOS = "kudos_timeseries"


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(TEN)


@pytest.fixture
def engine(clock: StoppedClock) -> Iterator[perdure.Engine]:
    with perdure.open("memory:", clock=clock) as opened:
        yield opened


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    return engine.memory("ana", agent="coach")


def kudos(hours: range) -> list[dict[str, Any]]:
    return [{"id": f"kudos_{hour}", "timestamp": (TEN - timedelta(hours=hour)).isoformat()} for hour in hours]


def merged(ana: perdure.Memory, days: int, hours: range) -> None:
    ana.tools.merge_timeseries_state(KUDOS, kudos(hours), window_start=TEN - timedelta(days=days), window_end=TEN)


# -- time words


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        ("2 days ago", "now", TEN - timedelta(days=2), TEN),
        ("24 hours", "now", TEN - timedelta(days=1), TEN),
        ("an hour ago", "now", TEN - timedelta(hours=1), TEN),
        ("yesterday", "yesterday", datetime(2025, 10, 24, tzinfo=UTC), datetime(2025, 10, 24, 23, 59, 59, 999999, tzinfo=UTC)),
        ("last Monday", "2 hours ago", datetime(2025, 10, 20, tzinfo=UTC), TEN - timedelta(hours=2)),
        ("2025-10-01", "now", datetime(2025, 10, 1, tzinfo=UTC), TEN),
        ("vor 2 Tagen", "jetzt", TEN - timedelta(days=2), TEN),
        ("hace 2 días", "ahora", TEN - timedelta(days=2), TEN),
        ("il y a 2 jours", "maintenant", TEN - timedelta(days=2), TEN),
    ],
)
def test_the_ends_of_a_range_may_be_words(ana: perdure.Memory, start: str, end: str, first: datetime, last: datetime) -> None:
    """B-9, S0-43: `query_timeseries_state(key, start="2 days ago", end="now")`."""
    merged(ana, 3, range(5))
    asked = ana.tools.query_timeseries_state(KUDOS, start=start, end=end)["requested_range"]
    assert asked == {"start": first.isoformat(), "end": last.isoformat()}
    assert ana.tools.query_timeseries_state(KUDOS, start, end)["requested_range"] == asked
    by_tool = ana.tools.call_tool("queryTimeseriesState", {"key": KUDOS, "start_time": start, "end_time": end})
    assert by_tool["requested_range"] == asked
    assert ana.series(KUDOS).query(start, end).wanted.start == first


def test_words_are_read_in_the_zone_of_the_series(ana: perdure.Memory) -> None:
    ana.series("runs", zone="America/New_York").merge([{"id": 1, "timestamp": "2025-10-24T23:00:00"}])
    assert ana.series("runs").query("yesterday", "yesterday").count == 1
    assert ana.series("runs").query("today", "now").count == 0


@pytest.mark.parametrize("words", ["soon", "never", "kudos of the last 2 days", "last", "", "ago", "2 days ago " * 20])
def test_what_is_no_time_is_refused(ana: perdure.Memory, words: str) -> None:
    with pytest.raises(perdure.InvalidInput, match="`start_time` = "):
        ana.tools.query_timeseries_state(KUDOS, words, "now")


def test_an_end_is_given_once(ana: perdure.Memory) -> None:
    with pytest.raises(perdure.InvalidInput, match="`end_time` is missing"):
        ana.tools.query_timeseries_state(KUDOS, "yesterday")
    with pytest.raises(perdure.InvalidInput, match="`start_time` is given twice"):
        ana.tools.query_timeseries_state(KUDOS, TEN, TEN, start=TEN)


def test_a_fetch_takes_words_as_well(ana: perdure.Memory) -> None:
    merged(ana, 1, range(5))
    asked: list[Any] = []
    answer = ana.series(KUDOS).fetch("3 days ago", "now", lambda window: asked.append(window) or [])
    assert [(one.start, one.end) for one in asked] == [(TEN - timedelta(days=3), TEN - timedelta(days=1))]
    assert answer.coverage == "full"


@pytest.mark.parametrize(
    ("start", "end", "first", "last"),
    [
        ("24 hours ago", "now", TEN - timedelta(days=1), TEN),
        ("yesterday", "yesterday", datetime(2025, 10, 24, tzinfo=UTC), datetime(2025, 10, 25, tzinfo=UTC)),
        ("2 days ago", TEN.isoformat(), TEN - timedelta(days=2), TEN),
    ],
)
def test_the_window_of_a_merge_may_be_words(ana: perdure.Memory, start: str, end: str, first: datetime, last: datetime) -> None:
    """X-2: of a day, all of it, so that nothing is missing between two days that were fetched one after the other."""
    calls = (
        lambda: ana.tools.merge_timeseries_state("a", [], window_start=start, window_end=end)["covered"],
        lambda: ana.tools.call_tool(
            "mergeTimeseriesState", {"key": "b", "entries": [], "window_start": start, "window_end": end}
        )["covered"],
    )
    for call in calls:
        covered = call()
        assert (covered["start"], covered["end"]) == (first.isoformat(), last.isoformat())
    done = ana.series("c").merge([], window=(start, end)).covered
    assert done is not None
    assert (done.start, done.end) == (first, last)
    assert [one.span for one in ana.series("c").windows(start, end)] == [done]


@pytest.mark.parametrize(
    ("end", "hours"),
    [("in 1 hour", 1), ("in two days", 48), ("in 2 Stunden", 2), ("dans 2 jours", 48), ("dentro de 3 horas", 3)],
)
def test_an_end_that_is_still_to_come_is_counted_on_from_now(ana: perdure.Memory, end: str, hours: int) -> None:
    """S0-26: as `2 days ago` is counted back."""
    asked = ana.tools.query_timeseries_state(KUDOS, start="1 hour ago", end=end)["requested_range"]
    assert asked == {"start": (TEN - timedelta(hours=1)).isoformat(), "end": (TEN + timedelta(hours=hours)).isoformat()}


def test_counts_of_a_range_take_words_as_well(ana: perdure.Memory) -> None:
    merged(ana, 3, range(30))
    series = ana.series(KUDOS)
    assert series.count("12 hours ago", "now") == len(series.rows("12 hours ago", "now")) == 13
    with pytest.raises(perdure.InvalidInput, match="words such as 2 days ago"):
        series.count("soon")


def test_a_model_is_not_sent_to_fetch_the_last_seconds(ana: perdure.Memory, clock: StoppedClock) -> None:
    """S0-39, X-3: the tool tolerates what `before` tolerates, and says how much; the functions tolerate what they are told to.
    Where nothing at all was fetched, nothing is tolerated."""
    merged(ana, 3, range(5))
    clock.move(minutes=30)
    asked = {"key": KUDOS, "start_time": "2 days ago", "end_time": "now"}
    told = ana.tools.call_tool("queryTimeseriesState", asked)
    assert (told["coverage"], told["needs_api_call"], told["stale_by"]) == ("full", False, 1800)
    assert told["reason"] == "Complete coverage from state, the newest 30 min tolerated as fresh"
    assert ana.tools.query_timeseries_state(KUDOS, "2 days ago", "now")["coverage"] == "partial"
    recent = ana.tools.call_tool("queryTimeseriesState", {**asked, "start_time": "20 minutes ago"})
    assert (recent["coverage"], recent["needs_api_call"]) == ("none", True)
    clock.move(minutes=30)
    assert ana.tools.call_tool("queryTimeseriesState", asked)["needs_api_call"] is True


@pytest.mark.parametrize(("start", "end"), [("24 hours ago", "now"), ("yesterday", "now"), ("2025-10-24T10:00:00Z", TEN)])
def test_the_window_of_a_tools_result_may_be_words(ana: perdure.Memory, start: str, end: Any) -> None:
    """X-2: "every start and end" of docs/seeds/0.md."""
    kept = ana.after("getKudos", kudos(range(5)), "save the kudos", mode="auto", window=(start, end))
    assert kept.covers == "window"
    assert ana.series("kudos").query("24 hours ago", "now").coverage == "full"
    with pytest.raises(perdure.InvalidInput, match="`window_start` = 'soon' is not a time"):
        ana.after("getKudos", [], window=("soon", "now"))


# -- pages


def test_a_range_of_more_than_a_page_says_so_and_how_to_go_on(ana: perdure.Memory) -> None:
    merged(ana, 3, range(30))
    whole = ana.tools.query_timeseries_state(KUDOS, "2 days ago", "now")
    assert (whole["count"], whole["truncated"], whole["reason"]) == (30, False, "Complete coverage from state")
    part = ana.tools.query_timeseries_state(KUDOS, "2 days ago", "now", limit=12)
    assert (part["count"], part["truncated"]) == (30, True)
    assert part["reason"].endswith(
        "; 12 of 30 entries are here: pass `next_page` as `page`, over HTTP as `cursor`, for the next ones"
    )
    rest = ana.tools.query_timeseries_state(KUDOS, "2 days ago", "now", page=part["next_page"])
    assert [*part["entries"], *rest["entries"]] == whole["entries"]


# -- series among the state keys


def test_the_state_tools_know_of_series(ana: perdure.Memory) -> None:
    """S0-41, S0-63, S1-1: the seeds' overseer lists keys and loads a series as any other value."""
    ana.state.save("kudos_givers_2025", ["athlete_123"])
    merged(ana, 1, range(3))
    listed = ana.tools.call_tool("listStateKeys", {"include_values": True})
    assert [one["key"] for one in listed["keys"]] == ["kudos_givers_2025", KUDOS]
    series = listed["keys"][1]
    assert (series["kind"], series["count"], series["updated_at"]) == ("series", 3, TEN.isoformat())
    assert len(series["preview"]) == 103
    loaded = ana.tools.call_tool("loadState", {"key": KUDOS})
    assert (loaded["success"], loaded["found"]) == (True, True)
    value = loaded["value"]
    assert list(value) == ["entity", "accumulated_since", "last_updated", "count", "metadata", "entries"], "S0-10 to S0-19"
    assert (value["entity"], value["count"], value["metadata"]["total_fetched"]) == ("kudos", 3, 3)
    assert [one["id"] for one in value["entries"]] == ["kudos_0", "kudos_1", "kudos_2"], "S0-14: newest first"
    found = ana.tools.call_tool("searchState", {"pattern": "kudos_*"})
    assert found["matches"] == ["kudos_givers_2025", KUDOS]
    assert found["results"] == {"kudos_givers_2025": ["athlete_123"], KUDOS: value}
    assert ana.tools.call_tool("searchState", {"pattern": "*", "limit": 1})["truncated"] is True


def test_a_value_comes_before_a_series_of_its_name(ana: perdure.Memory) -> None:
    merged(ana, 1, range(1))
    ana.state.save(KUDOS, "mine")
    assert ana.tools.call_tool("loadState", {"key": KUDOS})["value"] == "mine"
    assert ana.tools.call_tool("searchState", {"pattern": "*"})["results"] == {KUDOS: "mine"}
    assert [one["key"] for one in ana.tools.call_tool("listStateKeys")["keys"]] == [KUDOS, KUDOS]
    assert ana.tools.call_tool("loadState", {"key": "kudos*"})["found"] is False, "a key is no pattern"


def test_of_a_long_series_the_newest_entries_are_loaded(ana: perdure.Memory) -> None:
    ana.tools.merge_timeseries_state(KUDOS, kudos(range(1_100)))
    value = ana.tools.call_tool("loadState", {"key": KUDOS})["value"]
    assert (len(value["entries"]), value["count"], value["entries"][0]["id"]) == (1_000, 1_100, "kudos_0")
    assert value["note"] == "the newest 1000 of 1100 entries; queryTimeseriesState gives the others"


# -- the log


def test_the_overseer_tells_the_log_what_it_did(ana: perdure.Memory, caplog: pytest.LogCaptureFixture) -> None:
    """S0-45, S1-23."""
    caplog.set_level(logging.INFO, logger="perdure.oversight")
    merged(ana, 1, range(5))
    kept = ana.after("getUserProfile", {"name": "Ana", "city": "Austin"}, "Get my profile and save it", mode="auto")
    assert caplog.messages == [f"Auto-saved to memory: {kept.key} - {kept.reason}"]
    caplog.clear()
    ana.after("getUserProfile", {"name": "Ana", "city": "Oslo"}, "Get my profile", mode="manual")
    assert caplog.messages == []
    ana.before("Who gave me kudos in the last 12 hours?")
    ana.before("Who gave me kudos in the last 3 days?")
    assert caplog.messages == [
        f"Full coverage from state: {KUDOS} (5 entries)",
        f"Partial coverage: {KUDOS} (5 entries, needs API for gaps)",
    ]


def test_a_value_that_speaks_of_coverage_is_no_series(ana: perdure.Memory, caplog: pytest.LogCaptureFixture) -> None:
    """S0-45: what a user saved may have a field of that name."""
    caplog.set_level(logging.INFO, logger="perdure.oversight")
    ana.state.save("insurance", {"coverage": "full", "sum": 5})
    assert ana.before("What does my insurance cover?").values == {"insurance": {"coverage": "full", "sum": 5}}
    assert caplog.messages == []
