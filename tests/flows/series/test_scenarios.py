"""The acceptance scenarios of time series, by name, with their numbers as written, on every store.

Each docstring opens with the requirement that the test holds us to.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import perdure
from perdure import Conflict, InvalidInput
from perdure.domain.series import Entry
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.services.series.fetch import Window
from perdure.testing import StoppedClock

TEN = datetime(2025, 10, 25, 10, 0, tzinfo=UTC)
ELEVEN = TEN + timedelta(hours=1)
DAY = timedelta(days=1)
KUDOS = "kudos_givers_timeseries"
ANSWER = {"success", "entries", "count", "coverage", "needs_api_call", "reason", "state_range", "gaps", "stale_by"}


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(TEN)


@pytest.fixture
def engine(backend, clock: StoppedClock) -> Iterator[perdure.Engine]:  # type: ignore[no-untyped-def]
    """Whatever a test does to it, the store is sound at its end."""
    opened = backend.open(clock=clock)
    yield opened
    assert opened.verify().findings == ()


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    return engine.memory("ana", agent="coach")


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def october(day: float) -> datetime:
    """The first instant of that day; 1.5 is noon of the first."""
    return datetime(2025, 10, 1, tzinfo=UTC) + timedelta(days=day - 1)


def kudo(name: str | int, at: datetime, **more: Any) -> dict[str, Any]:
    return {"id": f"kudos_{name}", "timestamp": at.isoformat(), "athlete_name": str(name), **more}


def spread(count: int, start: datetime, end: datetime, name: str = "k") -> list[dict[str, Any]]:
    """So many kudos inside a window, newest first as an API gives them."""
    step = (end - start) / count
    return [kudo(f"{name}{number}", start + step * number) for number in reversed(range(count))]


def books(ana: perdure.Memory, name: str = KUDOS) -> tuple[int, int, int]:
    """What the seed calls metadata: API calls, fetched, duplicates avoided."""
    about = ana.series(name).about()
    return about.api_calls, about.fetched, about.duplicates


def ids(entries: Iterable[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def edges(spans: Iterable[Span]) -> list[tuple[datetime, datetime]]:
    return [(span.start, span.end) for span in spans]


class Source:
    """An API that knows everything there is, and remembers what it was asked."""

    def __init__(self, entries: Iterable[dict[str, Any]] = ()) -> None:
        self.entries = list(entries)
        self.asked: list[tuple[datetime, datetime]] = []

    def __call__(self, window: Window) -> list[dict[str, Any]]:
        self.asked.append((window.start, window.end))
        return [one for one in self.entries if window.start <= datetime.fromisoformat(one["timestamp"]) < window.end]


# -- the opening scenario and the seed's examples

ALICE, BOB, CHARLIE, DIANA = (
    kudo("Alice", utc("2025-10-25T09:30")),
    kudo("Bob", utc("2025-10-25T08:00")),
    kudo("Charlie", utc("2025-10-24T11:00")),
    kudo("Diana", utc("2025-10-25T10:30")),
)


def last(ana: perdure.Memory, now: datetime, **ago: float) -> dict[str, Any]:
    return ana.tools.query_timeseries_state(KUDOS, (now - timedelta(**ago)).isoformat(), now.isoformat())


def merge_last_24_hours(ana: perdure.Memory, now: datetime, entries: list[dict[str, Any]]) -> dict[str, Any]:
    return ana.tools.merge_timeseries_state(KUDOS, entries, window_start=now - DAY, window_end=now)


def test_at_ten_the_kudos_of_the_last_24_hours_are_fetched_and_saved(ana: perdure.Memory) -> None:
    """S0-5: 10:00, "Get kudos from last 24 hours": Alice@09:30, Bob@08:00, Charlie@yesterday-11:00; saved (3 entries)."""
    before = last(ana, TEN, hours=24)
    assert (before["coverage"], before["needs_api_call"], before["reason"]) == ("none", True, "No data in state")
    done = merge_last_24_hours(ana, TEN, [ALICE, BOB, CHARLIE])
    assert (done["success"], done["added"], done["duplicates"], done["total_count"]) == (True, 3, 0, 3)
    assert last(ana, TEN, hours=24)["count"] == 3


def test_at_eleven_the_same_query_gives_four_entries_and_three_duplicates(ana: perdure.Memory, clock: StoppedClock) -> None:
    """S0-6: 11:00, same query: those 3 + Diana@10:30; merged by id; 4 entries, 3 duplicates; Charlie is on the boundary."""
    merge_last_24_hours(ana, TEN, [ALICE, BOB, CHARLIE])
    clock.move(hours=1)
    done = merge_last_24_hours(ana, ELEVEN, [ALICE, BOB, CHARLIE, DIANA])
    assert (done["added"], done["duplicates"], done["total_count"]) == (1, 3, 4)
    answer = last(ana, ELEVEN, hours=24)
    assert [entry["athlete_name"] for entry in answer["entries"]] == ["Diana", "Alice", "Bob", "Charlie"]
    assert (answer["coverage"], answer["needs_api_call"]) == ("full", False)


def test_the_next_day_a_range_that_is_held_whole_is_answered_without_a_call(ana: perdure.Memory, clock: StoppedClock) -> None:
    """S0-7: "Get kudos from last 2 days": if the whole range is held, return from state, no API call."""
    clock.set(TEN + DAY)
    ana.series(KUDOS).merge([ALICE, BOB, CHARLIE, DIANA], window=(TEN - DAY, TEN + DAY))
    source = Source()
    answer = ana.series(KUDOS).fetch(TEN - DAY, TEN + DAY, source)
    assert (answer.coverage, answer.count, source.asked) == ("full", 4, [])


def test_the_next_day_of_a_range_that_is_held_in_part_only_the_gaps_are_fetched(
    ana: perdure.Memory, clock: StoppedClock
) -> None:
    """S0-7: "Get kudos from last 2 days": if partial, fetch the gaps only."""
    merge_last_24_hours(ana, TEN, [ALICE, BOB, CHARLIE])
    clock.move(hours=1)
    merge_last_24_hours(ana, ELEVEN, [ALICE, BOB, CHARLIE, DIANA])
    clock.set(TEN + DAY)
    before = last(ana, TEN + DAY, days=2)
    assert (before["coverage"], before["needs_api_call"], before["count"]) == ("partial", True, 4)
    source = Source([ALICE, BOB, CHARLIE, DIANA, kudo("Eve", TEN + timedelta(hours=20))])
    answer = ana.series(KUDOS).fetch(TEN - DAY, TEN + DAY, source)
    assert source.asked == [(ELEVEN, TEN + DAY)]
    assert (answer.coverage, answer.count) == ("full", 5)


def fifteen() -> list[dict[str, Any]]:
    return spread(15, TEN - DAY, TEN)


def two_fell_out_and_two_came() -> list[dict[str, Any]]:
    """What the API gives an hour later: the two oldest of the fifteen are out of its window, two are new."""
    return [kudo("new2", TEN + timedelta(minutes=40)), kudo("new1", TEN + timedelta(minutes=20)), *fifteen()[:13]]


def test_the_first_run_adds_fifteen(ana: perdure.Memory) -> None:
    """S0-36: Example 1, first run: 15 fetched → Added 15, Duplicates 0, Total 15."""
    done = merge_last_24_hours(ana, TEN, fifteen())
    assert (done["added"], done["duplicates"], done["total_count"]) == (15, 0, 15)


def test_the_second_run_adds_two_and_avoids_thirteen(ana: perdure.Memory, clock: StoppedClock) -> None:
    """S0-37: Example 1, second run one hour later: Added 2, Duplicates 13, Total 17; 2 fell out of the window and stay."""
    merge_last_24_hours(ana, TEN, fifteen())
    clock.move(hours=1)
    done = merge_last_24_hours(ana, ELEVEN, two_fell_out_and_two_came())
    assert (done["added"], done["duplicates"], done["total_count"]) == (2, 13, 17)
    held = set(ids(ana.series(KUDOS).entries()))
    assert {"kudos_k0", "kudos_k1", "kudos_new1", "kudos_new2"} <= held


def test_ids_are_made_by_the_recipe_of_the_example(ana: perdure.Memory) -> None:
    """S0-38: ID recipe `kudos_{activity_id}_{athlete_id}`; timestamp = `kudos.created_at`."""
    raw = [{"activity_id": 123, "athlete_id": "456", "created_at": "2025-10-25T09:30:00Z", "athlete_name": "Alice"}]
    recipe = {"timestamp_field": "created_at", "id_template": "kudos_{activity_id}_{athlete_id}"}
    assert ana.tools.merge_timeseries_state(KUDOS, raw, **recipe)["added"] == 1
    assert ana.tools.merge_timeseries_state(KUDOS, raw, **recipe)["duplicates"] == 1
    [entry] = ana.series(KUDOS).entries()
    assert (entry.id, entry.at_us) == ("kudos_123_456", to_us(utc("2025-10-25T09:30")))


def test_an_answer_shows_the_id_that_was_made_for_an_entry(ana: perdure.Memory) -> None:
    """S0-15, X-41: an entry in an answer has its `id`, also if the template made it."""
    recipe = {"timestamp_field": "created_at", "id_template": "kudos_{activity_id}_{athlete_id}"}
    raw = [{"activity_id": 123, "athlete_id": "456", "created_at": "2025-10-25T09:30:00Z"}]
    ana.tools.merge_timeseries_state(KUDOS, raw, **recipe)
    [entry] = last(ana, TEN, days=1)["entries"]
    assert entry.get("id") == "kudos_123_456"


def test_who_gave_me_kudos_in_the_last_2_days_needs_no_call(ana: perdure.Memory) -> None:
    """S0-39: Example 2: state queried, coverage full, 47 kudos returned, no API call."""
    kudos = spread(47, TEN - 2 * DAY, TEN)
    ana.tools.merge_timeseries_state(KUDOS, kudos, window_start=TEN - 2 * DAY, window_end=TEN)
    answer = last(ana, TEN, days=2)
    assert (answer["coverage"], answer["needs_api_call"], answer["count"], len(answer["entries"])) == ("full", False, 47, 47)
    assert answer["reason"] == "Complete coverage from state"


SEVEN_DAYS = spread(30, TEN - 3 * DAY, TEN, "recent") + spread(32, TEN - 7 * DAY, TEN - 3 * DAY, "older")


def three_days_held(ana: perdure.Memory) -> None:
    ana.tools.merge_timeseries_state(KUDOS, SEVEN_DAYS[:30], window_start=TEN - 3 * DAY, window_end=TEN)


def test_show_me_kudos_from_last_7_days_is_partial_and_says_how_far_back_it_goes(ana: perdure.Memory) -> None:
    """S0-40: coverage partial, reason "State only goes back to 3 days ago", 30 kudos from 3 days."""
    three_days_held(ana)
    answer = last(ana, TEN, days=7)
    assert (answer["coverage"], answer["needs_api_call"], answer["count"]) == ("partial", True, 30)
    assert answer["reason"] == f"State only goes back to {(TEN - 3 * DAY).isoformat()}, need API for older data"


def test_fetching_all_7_days_again_gives_62_combined(ana: perdure.Memory) -> None:
    """S0-40: the agent fetches the last 7 days, merges; combined 62."""
    three_days_held(ana)
    done = ana.tools.merge_timeseries_state(KUDOS, SEVEN_DAYS, window_start=TEN - 7 * DAY, window_end=TEN)
    assert (done["added"], done["duplicates"], done["total_count"]) == (32, 30, 62)
    answer = last(ana, TEN, days=7)
    assert (answer["coverage"], answer["count"]) == ("full", 62)


def test_fetching_only_days_4_to_7_gives_62_combined(ana: perdure.Memory) -> None:
    """S0-40: or smart: only days 4–7; merge; combined 62."""
    three_days_held(ana)
    source = Source(SEVEN_DAYS)
    assert ana.series(KUDOS).fetch(TEN - 7 * DAY, TEN, source).count == 62
    assert source.asked == [(TEN - 7 * DAY, TEN - 3 * DAY)]


def test_1_initial_accumulation(ana: perdure.Memory) -> None:
    """S0-54: Test 1: initial accumulation, 15 saved."""
    merge_last_24_hours(ana, TEN, fifteen())
    assert ana.series(KUDOS).count() == 15


def test_2_one_hour_later(ana: perdure.Memory, clock: StoppedClock) -> None:
    """S0-55: Test 2: one hour later, +2 new, 13 duplicates avoided."""
    merge_last_24_hours(ana, TEN, fifteen())
    clock.move(hours=1)
    done = merge_last_24_hours(ana, ELEVEN, two_fell_out_and_two_came())
    assert (done["added"], done["duplicates"]) == (2, 13)
    assert books(ana) == (2, 30, 13)


def test_3_answered_from_state(ana: perdure.Memory) -> None:
    """S0-56, X-4: Test 3: "Who gave me kudos in last 2 days?" answered from state, no API call (state covers 2 days)."""
    source = Source(spread(47, TEN - 2 * DAY, TEN))
    ana.series(KUDOS).fetch(TEN - 2 * DAY, TEN, source)
    source.asked.clear()
    answer = ana.series(KUDOS).fetch(TEN - 2 * DAY, TEN, source)
    assert (answer.count, answer.coverage, source.asked) == (47, "full", [])


def test_4_partial_then_gaps_then_merge(ana: perdure.Memory) -> None:
    """S0-57: Test 4: "Show kudos from last 7 days": partial from state, fetch gaps, merge."""
    three_days_held(ana)
    asked = last(ana, TEN, days=7)
    assert asked["coverage"] == "partial"
    [gap] = asked["gaps"]
    fetched = [one for one in SEVEN_DAYS if gap["start"] <= one["timestamp"] < gap["end"]]
    done = ana.tools.merge_timeseries_state(KUDOS, fetched, window_start=gap["start"], window_end=gap["end"])
    assert (done["added"], done["duplicates"], done["total_count"]) == (32, 0, 62)
    assert (last(ana, TEN, days=7)["coverage"], last(ana, TEN, days=7)["count"]) == ("full", 62)


# -- T-1 to T-16, T-22


def test_first_accumulation(ana: perdure.Memory) -> None:
    """T-1: 15 kudos merged into nothing: added 15, duplicates 0, total 15; metadata (1, 15, 0); each has first_seen."""
    done = ana.tools.merge_timeseries_state(KUDOS, fifteen())
    assert (done["success"], done["added"], done["duplicates"], done["total_count"]) == (True, 15, 0, 15)
    assert done["rejected"] == []
    assert books(ana) == (1, 15, 0)
    about = ana.series(KUDOS).about()
    assert (about.entity, about.accumulated_since, about.last_updated, about.count) == ("kudos_givers", TEN, TEN, 15)
    assert {datetime.fromisoformat(entry["first_seen"]) for entry in last(ana, TEN, days=1)["entries"]} == {TEN}


def test_same_instruction_an_hour_later(ana: perdure.Memory, clock: StoppedClock) -> None:
    """T-2: 15 merged, 13 known: added 2, duplicates 13, total 17; metadata (2, 30, 13); 17 = 30 − 13."""
    ana.tools.merge_timeseries_state(KUDOS, fifteen())
    clock.move(hours=1)
    done = ana.tools.merge_timeseries_state(KUDOS, two_fell_out_and_two_came())
    assert (done["added"], done["duplicates"], done["total_count"]) == (2, 13, 17)
    assert books(ana) == (2, 30, 13)
    about = ana.series(KUDOS).about()
    assert (about.accumulated_since, about.last_updated) == (TEN, ELEVEN)


def test_alice_bob_charlie_diana(ana: perdure.Memory, clock: StoppedClock) -> None:
    """T-3: newest first Diana, Alice, Bob, Charlie; duplicates 3; Charlie at exactly 24 h is in the window."""
    ana.series(KUDOS).merge([ALICE, BOB, CHARLIE], window=(TEN - DAY, TEN))
    clock.move(hours=1)
    done = ana.series(KUDOS).merge([ALICE, BOB, CHARLIE, DIANA], window=(ELEVEN - DAY, ELEVEN))
    assert done.duplicates == 3
    answer = ana.series(KUDOS).query(ELEVEN - DAY, ELEVEN)
    assert ids(answer.entries) == ["kudos_Diana", "kudos_Alice", "kudos_Bob", "kudos_Charlie"]


def test_the_seeds_book_keeping(ana: perdure.Memory) -> None:
    """T-4, S0-20: 5 merges fetch 200 with 44 repeats: count 156, metadata (5, 200, 44)."""
    kudos = spread(156, TEN - 7 * DAY, TEN)
    for start in (0, 29, 58, 87, 116):
        ana.tools.merge_timeseries_state(KUDOS, kudos[start : start + 40])
    assert books(ana) == (5, 200, 44)
    assert ana.series(KUDOS).about().count == ana.series(KUDOS).count() == 156


def test_answer_from_state(ana: perdure.Memory) -> None:
    """T-5: 2 days covered, 47 entries: 47, full, needs_api_call false, fetcher called 0 times."""
    ana.series(KUDOS).merge(spread(47, TEN - 2 * DAY, TEN), window=(TEN - 2 * DAY, TEN))
    source = Source()
    answer = ana.series(KUDOS).fetch(TEN - 2 * DAY, TEN, source)
    assert (answer.count, answer.coverage, answer.needs_api_call, source.asked) == (47, "full", False, [])


def test_fetch_only_the_gap(ana: perdure.Memory) -> None:
    """T-6: 3 of 7 days covered: one gap of 4 days, one call with that window, added 32, duplicates 0, 62; then full."""
    series = ana.series(KUDOS)
    series.merge(SEVEN_DAYS[:30], window=(TEN - 3 * DAY, TEN))
    before = series.query(TEN - 7 * DAY, TEN)
    assert before.coverage == "partial"
    assert [gap.length_us for gap in before.gaps] == [4 * DAY // timedelta(microseconds=1)]
    source = Source(SEVEN_DAYS)
    answer = series.fetch(TEN - 7 * DAY, TEN, source)
    assert source.asked == [(TEN - 7 * DAY, TEN - 3 * DAY)]
    assert (answer.count, answer.coverage) == (62, "full")
    assert books(ana) == (2, 62, 0)
    assert (series.fetch(TEN - 7 * DAY, TEN, source).coverage, len(source.asked)) == ("full", 1)


def test_next_day(ana: perdure.Memory, clock: StoppedClock) -> None:
    """T-7: fetches of 24 h at 10:00 and 11:00; next day 10:00 asks 2 days: the gap is exactly 11:00 → 10:00 = 23 h."""
    series = ana.series(KUDOS)
    for _ in range(2):
        series.merge([], window=(clock.now() - DAY, clock.now()))
        clock.move(hours=1)
    clock.set(TEN + DAY)
    answer = series.query(clock.now() - 2 * DAY, clock.now())
    assert edges(answer.gaps) == [(ELEVEN, TEN + DAY)]
    assert answer.gaps[0].end - answer.gaps[0].start == timedelta(hours=23)


def test_holes_and_upper_end(ana: perdure.Memory) -> None:
    """T-8: windows 1–3 and 8–10 Oct covered, query 1–25 Oct: partial, gaps 3–8 and 10–25; `seed_span` says full."""
    series = ana.series(KUDOS)
    series.merge([kudo("a", october(1)), kudo("b", october(2))], window=(october(1), october(3)))
    series.merge([kudo("c", october(9))], window=(october(8), october(10)))
    answer = series.query(october(1), october(25))
    assert answer.coverage == "partial"
    assert edges(answer.gaps) == [(october(3), october(8)), (october(10), october(25))]
    seed = ana.tools.query_timeseries_state(KUDOS, "2025-10-01T00:00:00Z", "2025-10-25T00:00:00Z", coverage="seed_span")
    assert (seed["coverage"], seed["needs_api_call"], seed["count"]) == ("full", False, 3)


def test_known_empty(ana: perdure.Memory) -> None:
    """T-9: window 2–4 Oct fetched, nothing came: query 2–4 Oct is full, 0 entries, no call."""
    series = ana.series(KUDOS)
    assert series.merge([], window=(october(2), october(4))).success
    answer = series.query(october(2), october(4))
    assert (answer.coverage, answer.count, answer.entries, answer.needs_api_call) == ("full", 0, (), False)
    source = Source()
    series.fetch(october(2), october(4), source)
    assert source.asked == []


def test_offsets(ana: perdure.Memory) -> None:
    """T-10: x at 09:30Z, then x at 10:00+02:00: the 09:30Z version stays; mixed offsets sort by instant."""
    series = ana.series(KUDOS)
    series.merge([{"id": "x", "timestamp": "2025-10-25T09:30:00Z", "version": 1}])
    series.merge([{"id": "x", "timestamp": "2025-10-25T10:00:00+02:00", "version": 2}])
    [held] = series.entries()
    assert held.body["version"] == 1
    series.merge([{"id": "y", "timestamp": "2025-10-25T05:00:00-05:00"}, {"id": "z", "timestamp": "2025-10-25T13:15:00+05:30"}])
    assert ids(series.query(october(25), october(26)).entries) == ["y", "x", "z"]


def test_changed_body_same_time(ana: perdure.Memory, clock: StoppedClock) -> None:
    """T-11: x with 3 kudos, merged with 9: 9, first_seen unchanged, duplicates 1."""
    series = ana.series(KUDOS)
    series.merge([kudo("x", TEN, kudos=3)])
    clock.move(hours=1)
    done = series.merge([kudo("x", TEN, kudos=9)])
    assert (done.added, done.duplicates, done.updated) == (0, 1, 1)
    [held] = series.entries()
    assert (held.body["kudos"], held.first_seen_us, held.last_seen_us) == (9, to_us(TEN), to_us(ELEVEN))
    assert [past.body["kudos"] for past in series.history("kudos_x")] == [3]


def test_bad_entries(ana: perdure.Memory) -> None:
    """T-12: 5 merged, one without id, one with time "soon": added 3, rejected 2 with index and reason, no exception."""
    entries = [kudo(number, TEN) for number in range(5)]
    del entries[1]["id"]
    entries[3]["timestamp"] = "soon"
    done = ana.tools.merge_timeseries_state(KUDOS, entries)
    assert (done["success"], done["added"], done["total_count"]) == (True, 3, 3)
    assert [one["index"] for one in done["rejected"]] == [1, 3]
    assert "id" in done["rejected"][0]["reason"]
    assert "soon" in done["rejected"][1]["reason"]


def test_cleanup(ana: perdure.Memory) -> None:
    """T-13: 100 days of daily entries covered, cleanup keep 90: older ones removed; day 95 is none, never full."""
    series = ana.series(KUDOS)
    series.merge([kudo(day, TEN - day * DAY) for day in range(1, 101)], window=(TEN - 100 * DAY, TEN))
    done = ana.tools.cleanup_old_timeseries(KUDOS, 90)
    assert (done["success"], done["removed"], done["kept"]) == (True, 10, 90)
    assert datetime.fromisoformat(done["cutoff_date"]) == TEN - 90 * DAY
    assert series.first().id == "kudos_90", "the entry exactly at the cutoff is kept"
    answer = series.query(TEN - 95 * DAY, TEN - 94 * DAY)
    assert (answer.coverage, answer.count, answer.needs_api_call) == ("none", 0, True)
    assert series.query(TEN - 90 * DAY, TEN).coverage == "full"
    assert edges(series.gaps(TEN - 100 * DAY, TEN)) == [(TEN - 100 * DAY, TEN - 90 * DAY)]


def test_cap(ana: perdure.Memory) -> None:
    """T-14: max 10,000, 10,050 merged: 10,000 kept, 50 oldest evicted; a query across the edge is partial."""
    start = TEN - timedelta(minutes=10_050)
    kudos = [kudo(f"{number:05}", start + timedelta(minutes=number)) for number in range(10_050)]
    series = ana.series(KUDOS)
    done = series.merge(kudos, window=(start, TEN))
    assert (done.added, done.evicted, done.total_count) == (10_050, 50, 10_000)
    assert series.first().id == "kudos_00050"
    across = series.query(start, TEN, limit=1)
    assert (across.coverage, across.count) == ("partial", 10_000)
    assert series.query(start + timedelta(minutes=50), TEN, limit=1).coverage == "full"
    about = series.about()
    assert about.count == about.fetched - about.duplicates - about.removed == 10_000


MERGE_TOGETHER = """
import sys
import perdure

url, schema, name, count, batch = sys.argv[1:3] + [sys.argv[3]] + [int(one) for one in sys.argv[4:6]]
with perdure.open(settings=perdure.Settings(url=url, postgres_schema=schema)) as engine:
    tools = engine.memory("ana").tools
    entries = [{"id": f"{name}-{n}", "timestamp": 1_760_000_000 + n} for n in range(count)]
    print("ready", flush=True)
    sys.stdin.readline()
    for start in range(0, count, batch):
        done = tools.merge_timeseries_state("kudos_timeseries", entries[start:start + batch])
        assert done["success"] and not done["rejected"], done
"""


@pytest.mark.slow
@pytest.mark.parametrize("batch", [500, 10])
def test_two_processes(backend, batch: int) -> None:  # type: ignore[no-untyped-def]
    """T-15: two processes merge 500 different entries each at once: 1,000. Nobody made the series before."""
    backend.open().close()  # the tables are not what they race for
    hosts = [
        subprocess.Popen(
            [sys.executable, "-c", MERGE_TOGETHER, backend.url, backend.schema, name, "500", str(batch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    try:
        for host in hosts:
            assert host.stdout is not None
            assert host.stdout.readline() == "ready\n"
        for host in hosts:
            assert host.stdin is not None
            host.stdin.write("go\n")
            host.stdin.flush()
        for host in hosts:
            _, errors = host.communicate(timeout=120)
            assert host.returncode == 0, errors
    finally:
        for host in hosts:
            host.kill()
            host.communicate()
    with backend.open() as engine:
        series = engine.memory("ana").series("kudos_timeseries")
        assert series.count() == 1_000
        assert series.about().count == 1_000
        assert (series.about().fetched, series.about().duplicates) == (1_000, 0)
        assert series.about().api_calls == 2 * 500 // batch
        assert engine.verify().findings == ()


def test_late_arrivals(ana: perdure.Memory, clock: StoppedClock) -> None:
    """T-16: settles_after 2 days: a window fetched on its own day is offered again next day; after day 3 it is settled."""
    series = ana.series(KUDOS, settles_after_s=2 * DAY.total_seconds())
    clock.set(october(2))
    series.merge([kudo("early", october(1.5))], window=(october(1), october(2)))
    clock.set(october(3))
    source = Source([kudo("early", october(1.5)), kudo("late", october(1.6))])
    asked = series.query(october(1), october(2))
    assert (asked.coverage, asked.needs_api_call) != ("full", False)
    assert edges(asked.gaps) == edges(asked.provisional) == [(october(1), october(2))]
    assert asked.reason == "Fetched before its entries had settled, need API to fetch it again"
    clock.set(october(4))
    answer = series.fetch(october(1), october(2), source)
    assert (source.asked, answer.count) == ([(october(1), october(2))], 2)
    clock.set(october(20))
    settled = series.fetch(october(1), october(2), source)
    assert (settled.coverage, settled.provisional, len(source.asked)) == ("full", (), 1)


def test_search_and_list(ana: perdure.Memory) -> None:
    """T-22: of 5 keys `kudos*`, `*_givers` match exactly; preview is 100 characters + `...` only when longer; size and time."""
    saved = {"kudos_givers": "x" * 98, "kudos_list": "x" * 99, "route_givers": [1], "Kudos_upper": None, "favorite_routes": {}}
    for key, value in saved.items():
        ana.state.save(key, value)
    found = ana.tools.call_tool("searchState", {"pattern": "kudos*"})
    assert (found["success"], found["pattern"]) == (True, "kudos*")
    assert found["matches"] == ["kudos_givers", "kudos_list"]
    assert found["results"] == {key: saved[key] for key in found["matches"]}
    assert ana.tools.call_tool("searchState", {"pattern": "*_givers"})["matches"] == ["kudos_givers", "route_givers"]
    listed = ana.tools.call_tool("listStateKeys", {"include_values": True})
    assert (listed["success"], listed["count"]) == (True, 5)
    keys = {one["key"]: one for one in listed["keys"]}
    assert keys.keys() == saved.keys()
    assert keys["kudos_givers"]["preview"] == '"' + "x" * 98 + '"', "exactly 100 characters"
    assert keys["kudos_list"]["preview"] == '"' + "x" * 99 + "...", "101 characters"
    assert keys["kudos_list"]["size_bytes"] == 101
    assert keys["Kudos_upper"]["preview"] == "null"
    assert {datetime.fromisoformat(one["updated_at"]) for one in listed["keys"]} == {TEN}
    assert all("preview" not in one for one in ana.tools.call_tool("listStateKeys")["keys"])


# -- the defects of the seeds' sample code, one by one


def test_times_are_compared_as_instants(ana: perdure.Memory) -> None:
    """B-1: `10:00+02:00` is 08:00Z and does not beat `09:30Z`."""
    series = ana.series(KUDOS)
    series.merge([{"id": "x", "timestamp": "2025-10-25T09:30:00Z", "v": "newer"}])
    done = series.merge([{"id": "x", "timestamp": "2025-10-25T10:00:00+02:00", "v": "older"}])
    assert (done.duplicates, done.updated) == (1, 0)
    assert [entry.body["v"] for entry in series.entries()] == ["newer"]
    assert [past.body["v"] for past in series.history("x")] == ["older"], "the losing body stays in history"


def test_order_and_range_are_those_of_instants(ana: perdure.Memory) -> None:
    """B-2: `23:30-05:00` is 04:30Z of the next day and sorts after `01:00Z` of that day."""
    late = {"id": "late", "timestamp": "2025-10-23T23:30:00-05:00"}
    early = {"id": "early", "timestamp": "2025-10-24T01:00:00Z"}
    ana.tools.merge_timeseries_state(KUDOS, [early, late])
    answer = last(ana, TEN, days=7)
    assert [entry["id"] for entry in answer["entries"]] == ["late", "early"]
    newest, oldest = answer["state_range"]["newest"], answer["state_range"]["oldest"]
    assert datetime.fromisoformat(newest) == utc("2025-10-24T04:30")
    assert datetime.fromisoformat(oldest) == utc("2025-10-24T01:00")


def test_at_the_same_instant_the_incoming_body_wins_if_it_differs(ana: perdure.Memory) -> None:
    """B-3: equal time, 3 → 9 kudos: 9 is held; the same body again is a plain duplicate and leaves no history."""
    series = ana.series(KUDOS)
    series.merge([kudo("x", TEN, kudos=3)])
    assert series.merge([kudo("x", TEN, kudos=9)]).updated == 1
    assert series.merge([kudo("x", TEN, kudos=9)]).updated == 0
    assert [entry.body["kudos"] for entry in series.entries()] == [9]
    assert [past.body["kudos"] for past in series.history("kudos_x")] == [3]


@pytest.mark.parametrize(("before", "after"), [(1, True), (0, False), (1, 1.5), ("1", 1), (None, 0)])
def test_another_json_value_is_another_body(ana: perdure.Memory, before: object, after: object) -> None:
    """B-3: what Python calls equal (`1 == True`) may still be another value in JSON."""
    series = ana.series(KUDOS)
    series.merge([kudo("x", TEN, field=before)])
    assert series.merge([kudo("x", TEN, field=after)]).updated == 1
    [held] = series.entries()
    assert (held.body["field"], type(held.body["field"])) == (after, type(after))


def test_first_seen_is_set_once_and_carried_over_for_ever(ana: perdure.Memory, clock: StoppedClock) -> None:
    """B-4: set on first insert, kept when a newer version replaces the entry; last_seen moves on."""
    series = ana.series(KUDOS)
    series.merge([kudo("x", TEN - DAY)])
    for _ in range(3):
        clock.move(hours=1)
        series.merge([kudo("x", clock.now(), kudos=clock.now().hour)])
    [held] = series.entries()
    assert (held.first_seen_us, held.last_seen_us) == (to_us(TEN), to_us(TEN + timedelta(hours=3)))


def test_bad_entries_are_reported_and_the_valid_ones_stored_or_none(ana: perdure.Memory) -> None:
    """B-5: rejected with index and reason; `strict` stores none; the tool never raises."""
    entries = [
        kudo("good", TEN),
        {"timestamp": TEN.isoformat()},
        {"id": "no time"},
        "no object",
        None,
        {"id": [], "timestamp": 1},
    ]
    strict = ana.series(KUDOS).merge(entries, window=(TEN - DAY, TEN), strict=True)
    assert (strict.success, strict.added, strict.total_count) == (False, 0, 0)
    assert [one.index for one in strict.rejected] == [1, 2, 3, 4, 5]
    after = ana.series(KUDOS).query(TEN - DAY, TEN)
    assert (after.count, after.coverage) == (0, "none"), "a merge that stored nothing proves nothing"
    lax = ana.series(KUDOS).merge(entries[1:], window=(TEN - DAY, TEN))
    assert (lax.success, lax.added, lax.covered) == (True, 0, None)
    assert ana.series(KUDOS).query(TEN - DAY, TEN).coverage == "none", "nor does an answer none of which can be stored"
    done = ana.tools.call_tool("mergeTimeseriesState", {"key": KUDOS, "entries": entries})
    assert (done["success"], done["added"]) == (True, 1)
    assert [one["index"] for one in done["rejected"]] == [1, 2, 3, 4, 5]
    assert all(one["reason"] for one in done["rejected"])


@pytest.mark.parametrize("pages", [[["bad"]], [["bad"], []], [[], ["bad"]], [["bad"], [], []]])
def test_a_fetch_of_which_nothing_can_be_stored_covers_nothing(ana: perdure.Memory, pages: list[list[object]]) -> None:
    """S0-3: it was taken for a time without entries."""

    def fetcher(_window: perdure.Window, number: int = 0) -> perdure.Page:
        return perdure.Page(pages[number], next_cursor=number + 1 if number + 1 < len(pages) else None)

    answer = ana.series(KUDOS).fetch(TEN - DAY, TEN, fetcher)
    assert (answer.coverage, answer.count, len(answer.failures)) == ("none", 0, 1)
    assert ana.series(KUDOS).fetch(TEN - DAY, TEN, lambda _window: [kudo("good", TEN - DAY), "bad"]).coverage == "full"


@pytest.mark.parametrize(
    "given",
    [
        "2025-10-25T09:30:00Z",
        "2025-10-25T09:30:00+00:00",
        "2025-10-25T11:30:00+02:00",
        "2025-10-25T15:00:00+05:30",
        "2025-10-25T09:30:00.000Z",
        "2025-10-25T09:30:00",
        "2025-10-25 09:30:00",
        1_761_384_600,
        1_761_384_600.0,
        1_761_384_600_000,
        "1761384600",
        datetime(2025, 10, 25, 9, 30, tzinfo=UTC),
        datetime(2025, 10, 25, 9, 30),
        datetime(2025, 10, 25, 4, 30, tzinfo=timezone(timedelta(hours=-5))),
    ],
    ids=str,
)
def test_every_spelling_of_an_instant_is_accepted_in_entries_and_in_queries(ana: perdure.Memory, given: Any) -> None:
    """B-6: ISO with any offset, `Z`, fractions, unix s/ms, datetime; naive = UTC unless the series says otherwise."""
    done = ana.series(KUDOS).merge([{"id": "x", "timestamp": given}])
    assert [one.reason for one in done.rejected] == []
    instant = to_us(utc("2025-10-25T09:30"))
    assert [entry.at_us for entry in ana.series(KUDOS).entries()] == [instant]
    answer = ana.tools.query_timeseries_state(KUDOS, given, given)
    assert answer["count"] == 1


def test_a_naive_time_means_the_zone_of_the_series(ana: perdure.Memory) -> None:
    """B-6: naive = the series' stated zone, in entries, windows and queries alike."""
    series = ana.series(KUDOS, zone="America/New_York")
    series.merge([{"id": "x", "timestamp": "2025-10-20T09:30:00"}], window=("2025-10-20T00:00:00", "2025-10-21T00:00:00"))
    [held] = series.entries()
    assert held.at_us == to_us(utc("2025-10-20T13:30"))
    assert edges(window.span for window in series.windows(october(1), TEN)) == [
        (utc("2025-10-20T04:00"), utc("2025-10-21T04:00"))
    ]
    assert series.query("2025-10-20T09:30:00", "2025-10-20T09:30:00").count == 1


def test_one_and_the_text_one_are_the_same_id(ana: perdure.Memory) -> None:
    """B-7: ids are compared as text."""
    done = ana.tools.merge_timeseries_state(KUDOS, [{"id": 1, "timestamp": TEN.isoformat()}])
    again = ana.tools.merge_timeseries_state(KUDOS, [{"id": "1", "timestamp": TEN.isoformat()}])
    assert (done["added"], again["added"], again["duplicates"], again["total_count"]) == (1, 0, 1, 1)


def test_answers_have_the_same_fields_always(ana: perdure.Memory) -> None:
    """B-8: also for no data, nothing in range, and a cleanup of nothing."""
    answers = [last(ana, TEN, days=1)]
    cleanups = [ana.tools.cleanup_old_timeseries(KUDOS)]
    merge_last_24_hours(ana, TEN, fifteen())
    answers += [last(ana, TEN, days=1), last(ana, TEN - 30 * DAY, days=1), last(ana, TEN, days=7), last(ana, TEN + DAY, days=2)]
    answers += [
        ana.tools.query_timeseries_state(KUDOS, TEN - DAY, TEN, coverage=rule) for rule in ("seed_span", "two_sided_span")
    ]
    cleanups += [ana.tools.cleanup_old_timeseries(KUDOS), ana.tools.cleanup_old_timeseries(KUDOS, 0)]
    assert {frozenset(answer) for answer in answers} == {frozenset(answers[0])}
    assert answers[0].keys() >= ANSWER
    assert (answers[0]["count"], answers[0]["state_range"]) == (0, {"oldest": None, "newest": None})
    assert {frozenset(cleanup) for cleanup in cleanups} == {frozenset({"success", "removed", "kept", "cutoff_date"})}
    assert (cleanups[0]["removed"], cleanups[0]["kept"]) == (0, 0)
    assert datetime.fromisoformat(cleanups[0]["cutoff_date"]) == TEN - 90 * DAY


def test_tool_and_function_share_their_words_and_the_series_remembers_its_fields(ana: perdure.Memory) -> None:
    """B-9: the tools take what the functions take; the field names need be given once only."""
    raw = [{"activity": 7, "start_date": "2025-10-25T09:00:00Z"}]
    window = {"window_start": "2025-10-25T00:00:00Z", "window_end": "2025-10-25T10:00:00Z"}
    fields = {"id_field": "activity", "timestamp_field": "start_date"}
    done = ana.tools.call_tool("mergeTimeseriesState", {"key": "activities_timeseries", "entries": raw, **fields, **window})
    assert (done["success"], done["added"]) == (True, 1)
    times = {"start_time": "2025-10-25T00:00:00Z", "end_time": "2025-10-25T10:00:00Z"}
    by_tool = ana.tools.call_tool("queryTimeseriesState", {"key": "activities_timeseries", **times})
    named = {"key": "activities_timeseries", **times, "timestamp_field": "start_date"}
    assert by_tool == ana.tools.query_timeseries_state("activities_timeseries", *times.values())
    assert by_tool == ana.tools.call_tool("queryTimeseriesState", named)
    assert by_tool == ana.tools.query_timeseries_state("activities_timeseries", *times.values(), "start_date")
    assert (by_tool["coverage"], by_tool["count"]) == ("full", 1)
    again = ana.tools.merge_timeseries_state("activities_timeseries", raw)
    assert (again["duplicates"], again["rejected"]) == (1, [])


def test_merges_at_once_lose_nothing(engine: perdure.Engine) -> None:
    """B-10: one transaction per merge; merges of one series queue up, also the very first ones."""
    rounds, workers = 12, 4
    start = threading.Barrier(workers)

    def merge(worker: int) -> None:
        for number in range(rounds):
            start.wait(60)
            entries = [{"id": f"{worker}-{one}", "timestamp": 1_760_000_000 + one} for one in range(5)]
            entries.append({"id": "shared", "timestamp": 1_760_000_000 + worker})
            done = engine.memory("ana").series(f"round{number}").merge(entries)
            assert done.success

    with ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(merge, worker) for worker in range(workers)]:
            done.result(120)
    for number in range(rounds):
        series = engine.memory("ana").series(f"round{number}")
        about = series.about()
        assert series.count() == about.count == workers * 5 + 1
        assert (about.fetched, about.duplicates, about.api_calls) == (workers * 6, workers - 1, workers)


class Watched:
    """Passes on to another object and counts how many rows go through chosen methods, in or out."""

    def __init__(self, inner: Any, seen: dict[str, int]) -> None:
        self._inner = inner
        self._seen = seen

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name == "series":
            return Watched(found, self._seen)
        if name not in ("put_entries", "find_entries", "entries", "instants"):
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            if name == "put_entries":
                args = (args[0], list(args[1]))
            result = found(*args, **kwargs)
            self._seen[name] = self._seen.get(name, 0) + len(args[1] if name == "put_entries" else list(result))
            return result

        return counted


class CountingStore:
    """A store that tells how many rows of entries each call touched."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.seen: dict[str, int] = {}

    def write(self, owner: Any, work: Callable[[Any], Any], **more: Any) -> Any:
        return self._inner.write(owner, lambda tx: work(Watched(tx, self.seen)), **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_merge_costs_what_its_batch_costs(engine: perdure.Engine, clock: StoppedClock) -> None:
    """B-11: merging 5 entries into 3,000 reads and writes 5 rows, not 3,000."""
    store = CountingStore(engine._store)
    ana = perdure.Engine(store, clock, perdure.Settings(url="memory:")).memory("ana")  # type: ignore[arg-type]
    kudos = spread(3_000, TEN - 30 * DAY, TEN)
    ana.series(KUDOS).merge(kudos, window=(TEN - 30 * DAY, TEN))
    store.seen.clear()
    done = ana.series(KUDOS).merge([*kudos[:3], kudo("new", TEN), kudo("old", TEN - 20 * DAY)], window=(TEN - DAY, TEN))
    assert (done.added, done.duplicates, done.total_count) == (2, 3, 3_002)
    assert sum(store.seen.values()) <= 10, store.seen


def test_after_an_eviction_the_evicted_range_is_not_claimed(ana: perdure.Memory) -> None:
    """B-12: the oldest by event time go, and the ledger is cut below the newest evicted instant."""
    series = ana.series(KUDOS, max_entries=3)
    series.merge([kudo(day, october(day)) for day in (5, 6, 7)], window=(october(4), october(8)))
    done = series.merge([kudo(9, october(9)), kudo(8, october(8))], window=(october(8), october(10)))
    assert (done.evicted, done.total_count) == (2, 3)
    assert ids(series.entries()) == ["kudos_7", "kudos_8", "kudos_9"]
    assert series.query(october(5), october(10)).coverage == "partial"
    assert series.query(october(4), october(5)).coverage == "none"
    assert series.query(october(6), october(6)).coverage == "none", "the evicted instant itself"
    assert series.query(october(7), october(10)).coverage == "full"


def test_a_cleanup_keeps_the_books_and_trims_the_ledger(ana: perdure.Memory) -> None:
    """B-13: count = fetched − duplicates − removed; what was removed is not claimed."""
    series = ana.series(KUDOS)
    kudos = [kudo(day, TEN - day * DAY) for day in range(1, 11)]
    series.merge(kudos, window=(TEN - 11 * DAY, TEN))
    series.merge(kudos[:4])
    assert ana.tools.cleanup_old_timeseries(KUDOS, 5)["removed"] == 5
    about = series.about()
    assert (about.fetched, about.duplicates, about.removed, about.count) == (14, 4, 5, 5)
    assert edges(series.gaps(TEN - 11 * DAY, TEN)) == [(TEN - 11 * DAY, TEN - 5 * DAY)]


def test_api_calls_are_counted_by_the_caller(ana: perdure.Memory) -> None:
    """B-14: one per merge unless told otherwise; replays and pages can pass 0."""
    ana.tools.merge_timeseries_state(KUDOS, fifteen())
    ana.tools.merge_timeseries_state(KUDOS, fifteen(), api_calls=0)
    ana.series(KUDOS).merge(fifteen(), api_calls=3)
    assert books(ana) == (4, 45, 30)
    for wrong in (-1, "2", None, 1.5):
        with pytest.raises(InvalidInput):
            ana.series(KUDOS).merge([], api_calls=wrong)  # type: ignore[arg-type]
    assert books(ana) == (4, 45, 30)


@pytest.mark.parametrize(
    ("name", "entity"),
    [
        ("kudos_givers_timeseries", "kudos_givers"),
        ("my_timeseries_notes", "my_timeseries_notes"),
        ("plain", "plain"),
        ("a_timeseries_b_timeseries", "a_timeseries_b"),
        ("timeseries", "timeseries"),
    ],
)
def test_only_the_ending_of_the_name_is_dropped(ana: perdure.Memory, name: str, entity: str) -> None:
    """B-15: `_timeseries` is removed at the end of the name and nowhere else."""
    ana.series(name).merge([kudo("x", TEN)])
    assert ana.series(name).about().entity == entity


@pytest.mark.parametrize(
    "params", ["Sure! The relevant key is kudos.", '```json\n{"key": "x"}\n```', "{'key': 'x'}", b"", [], 7, {"prose": "Sure!"}]
)
def test_prose_of_a_model_crashes_nothing(ana: perdure.Memory, params: Any) -> None:
    """B-16: whatever a model sends in place of parameters comes back as an answer with a remedy."""
    for name in ana.tools.names():
        answer = ana.tools.call_tool(name, params)
        assert isinstance(answer["success"], bool)
        if params != [] or not answer["success"]:
            assert answer["error"]
            assert answer["remedy"]


def test_a_range_that_ends_before_it_starts_is_refused_and_the_future_is_never_covered(ana: perdure.Memory) -> None:
    """B-17: start > end rejected with a reason; a zero-length range is one instant; the future part is never covered."""
    series = ana.series(KUDOS)
    with pytest.raises(InvalidInput, match="start"):
        series.query(TEN, TEN - DAY)
    refused = ana.tools.call_tool(
        "queryTimeseriesState", {"key": KUDOS, "start_time": TEN.isoformat(), "end_time": (TEN - DAY).isoformat()}
    )
    assert (refused["success"], bool(refused["error"]), bool(refused["remedy"])) == (False, True, True)
    with pytest.raises(InvalidInput):
        series.merge([], window=(TEN, TEN - DAY))
    series.merge([kudo("tomorrow", TEN + DAY), kudo("x", TEN - DAY)], window=(TEN - DAY, TEN + 2 * DAY))
    assert series.query(TEN - DAY, TEN).coverage == "full"
    assert series.query(TEN - DAY, TEN + DAY).coverage == "partial"
    assert series.query(TEN - DAY, TEN + DAY).count == 2
    ahead = series.query(TEN + timedelta(hours=1), TEN + DAY)
    assert (ahead.coverage, ahead.needs_api_call) == ("none", False), "nothing to fetch there yet"
    at_once = series.query(TEN - DAY, TEN - DAY)
    assert (at_once.coverage, at_once.count) == ("full", 1)


def test_time_that_was_the_future_when_it_was_asked_for_stays_unknown(ana: perdure.Memory, clock: StoppedClock) -> None:
    """B-17: a window that reached beyond now is credited up to now, and the lapse of time adds nothing."""
    series = ana.series(KUDOS)
    series.merge([], window=(TEN - DAY, TEN + DAY))
    clock.move(days=3)
    assert edges(series.gaps(TEN - DAY, TEN + DAY)) == [(TEN, TEN + DAY)]


def test_other_field_names_than_before_are_reported(ana: perdure.Memory) -> None:
    """B-18: field names are part of the series: another mapping is a `Conflict`, changed only by `configure`."""
    raw = [{"id": "a", "start_date": "2025-10-25T09:00:00Z", "timestamp": "2025-10-25T08:00:00Z"}]
    ana.tools.merge_timeseries_state("activities_timeseries", raw, "id", "start_date")
    with pytest.raises(Conflict, match="timestamp_field"):
        ana.series("activities_timeseries", timestamp_field="timestamp").merge(raw)
    with pytest.raises(Conflict, match="id_field"):
        ana.tools.merge_timeseries_state("activities_timeseries", raw, "start_date")
    refused = ana.tools.call_tool(
        "mergeTimeseriesState", {"key": "activities_timeseries", "entries": raw, "timestamp_field": "created_at"}
    )
    assert (refused["success"], bool(refused["remedy"])) == (False, True)
    assert ana.series("activities_timeseries").count() == 1
    ana.series("activities_timeseries").configure(timestamp_field="timestamp")
    assert ana.series("activities_timeseries").merge([{**raw[0], "id": "b"}]).added == 1


def test_a_query_that_names_another_time_field_is_told_so(ana: perdure.Memory) -> None:
    """B-18: the mismatch is reported to whoever queries or cleans up by another field, not ignored."""
    ana.tools.merge_timeseries_state(
        "activities_timeseries", [{"id": "a", "start_date": "2025-10-25T09:00:00Z"}], "id", "start_date"
    )
    with pytest.raises(Conflict, match="timestamp_field"):
        ana.tools.query_timeseries_state("activities_timeseries", TEN - DAY, TEN, "created_at")
    with pytest.raises(Conflict, match="timestamp_field"):
        ana.tools.cleanup_old_timeseries("activities_timeseries", 0, "created_at")
    assert ana.series("activities_timeseries").count() == 1


def test_what_json_cannot_carry_is_named_and_a_preview_is_honest(ana: perdure.Memory) -> None:
    """B-24: dates and bytes give an answer that names the place; `...` only where something was left out."""
    for value, place in (
        ({"a": [1, {"at": TEN}]}, "a[1].at"),
        ({"raw": b"x"}, "raw"),
        ({1: 2}, "value"),
        (float("nan"), "value"),
    ):
        answer = ana.tools.call_tool("saveState", {"key": "k", "value": value})
        assert answer["success"] is False
        assert place in answer["error"]
        assert answer["remedy"]
    assert ana.state.keys() == []
    ana.state.save("short", "é" * 98)
    ana.state.save("long", "é" * 99)
    previews = {one.key: one.preview for one in ana.state.list()}
    assert previews == {"short": '"' + "é" * 98 + '"', "long": '"' + "é" * 99 + "..."}


def test_globs_are_case_exact(ana: perdure.Memory) -> None:
    """B-25: `kudos*` does not find `Kudos`, on any system."""
    for key in ("kudos", "Kudos", "KUDOS", "kudos_x"):
        ana.state.save(key, 1)
    assert ana.state.search("kudos*").matches == ("kudos", "kudos_x")
    assert ana.state.search("[kK]udos").matches == ("Kudos", "kudos")
    assert ana.state.search("K*").matches == ("KUDOS", "Kudos")


def test_a_search_for_everything_is_bounded_and_says_so(ana: perdure.Memory) -> None:
    """B-26: limit and `truncated`."""
    for number in range(101):
        ana.state.save(f"k{number:03}", number)
    everything = ana.tools.call_tool("searchState", {"pattern": "*"})
    assert (len(everything["matches"]), everything["truncated"]) == (100, True)
    some = ana.tools.call_tool("searchState", {"pattern": "*", "limit": 7})
    assert (some["matches"], some["truncated"]) == ([f"k{number:03}" for number in range(7)], True)
    assert ana.tools.call_tool("searchState", {"pattern": "k*", "limit": 101})["truncated"] is False


# -- the ledger, in the words of the contradictions


def test_entries_never_imply_coverage(ana: perdure.Memory) -> None:
    """X-1, X-2: merged without a window nothing is covered; with `infer="batch_span"` the batch's own span is."""
    series = ana.series(KUDOS)
    series.merge([kudo(day, october(day)) for day in (1, 10)])
    answer = series.query(october(1), october(10))
    assert (answer.coverage, answer.count, answer.needs_api_call) == ("none", 2, True)
    ana.tools.merge_timeseries_state(KUDOS, [kudo(day, october(day)) for day in (2, 4)], infer="batch_span")
    assert edges(window.span for window in series.windows(october(1), october(20))) == [(october(2), october(4))]


def test_the_seeds_two_rules_stay_available(ana: perdure.Memory) -> None:
    """X-1, S0-27 to S0-30: `seed_span` looks at the oldest entry, `two_sided_span` at the newest too."""

    def by(rule: str, start: float, end: float) -> tuple[object, ...]:
        answer = ana.tools.query_timeseries_state(KUDOS, october(start), october(end), coverage=rule)
        return answer["coverage"], answer["needs_api_call"], answer["reason"]

    assert by("seed_span", 1, 2) == ("none", True, "No data in state")
    ana.series(KUDOS).merge([kudo(day, october(day)) for day in (1, 10)])
    assert by("seed_span", 5, 25) == ("full", False, "Complete coverage from state")
    assert by("seed_span", 2, 4) == ("none", True, "No entries in requested range")
    older = by("seed_span", 0, 25)
    assert older == ("partial", True, f"State only goes back to {october(1).isoformat()}, need API for older data")
    assert by("two_sided_span", 1, 10)[:2] == ("full", False)
    assert by("two_sided_span", 5, 25)[:2] == ("partial", True)
    with pytest.raises(InvalidInput, match="coverage"):
        ana.tools.query_timeseries_state(KUDOS, october(1), october(2), coverage="by_guess")  # type: ignore[arg-type]


def test_a_truncated_page_credits_only_down_to_its_oldest_entry(ana: perdure.Memory) -> None:
    """X-2: `complete=False` proves what is newer than its oldest entry; an empty one proves nothing."""
    series = ana.series(KUDOS)
    page = [kudo(day, october(day)) for day in (9, 8, 7)]
    ana.tools.merge_timeseries_state(KUDOS, page, window_start=october(1), window_end=october(10), complete=False)
    [gap] = series.gaps(october(1), october(10))
    assert gap.start == october(1)
    assert october(7) <= gap.end <= october(7) + timedelta(seconds=1), "older entries of that very instant may be missing"
    assert series.query(october(7.5), october(10)).coverage == "full"
    series.merge([], window=(october(1), october(5)), complete=False)
    assert series.query(october(1), october(5)).coverage == "none"
    series.merge([kudo(2, october(2))], window=(october(1), october(5)), complete=False, newest_first=False)
    assert series.query(october(1), october(1.9)).coverage == "full"
    assert series.query(october(2), october(5)).coverage == "none"


def test_a_stale_tip_is_tolerated_for_as_long_as_the_series_says(ana: perdure.Memory, clock: StoppedClock) -> None:
    """X-3: a gap at the newest end shorter than `fresh_for` forces no call and is reported as `stale_by`; default 0."""
    series = ana.series(KUDOS, fresh_for_s=3_600)
    series.merge(fifteen(), window=(TEN - DAY, TEN))
    clock.move(minutes=59)
    answer = ana.tools.query_timeseries_state(KUDOS, clock.now() - DAY, clock.now())
    assert (answer["coverage"], answer["needs_api_call"], answer["stale_by"]) == ("full", False, 59 * 60)
    strict = ana.tools.query_timeseries_state(KUDOS, clock.now() - DAY, clock.now(), fresh_for_s=0)
    assert (strict["coverage"], strict["needs_api_call"], strict["stale_by"]) == ("partial", True, 0)
    clock.move(minutes=2)
    late = ana.tools.query_timeseries_state(KUDOS, clock.now() - DAY, clock.now())
    assert (late["coverage"], late["needs_api_call"]) == ("partial", True)
    for_ever = ana.tools.query_timeseries_state(KUDOS, TEN - DAY, clock.now(), fresh_for_s=float("inf"))
    assert (for_ever["coverage"], for_ever["needs_api_call"]) == ("full", False)


def test_what_a_goal_is_told_of_a_stale_tip_is_true(ana: perdure.Memory, clock: StoppedClock) -> None:
    """X-3, S0-28, S0-47: held is what was fetched; of a time in which nothing was fetched, it is not said that it is empty."""
    series = ana.series(KUDOS, description="Kudos that I was given")
    series.merge(fifteen(), window=(TEN - DAY, TEN))
    clock.move(minutes=50)
    day, half_hour = (ana.before(f"Which kudos did I get in the last {span}?") for span in ("24 hours", "30 minutes"))
    told: Any = day.values[KUDOS]
    assert told["coverage"] == "full"
    assert "all of it up to 2025-10-25T10:00:00Z is held (" in told["note"]
    assert "the 50 minutes after that were not fetched, which is recent enough; nothing of it needs fetching" in told["note"]
    missing: Any = half_hour.values[KUDOS]
    assert (missing["coverage"], missing["gaps"]) == ("none", [["2025-10-25T10:20:00Z", "2025-10-25T10:50:00Z"]])
    assert missing["note"] == "nothing is stored for this time; fetch 2025-10-25T10:20:00Z to 2025-10-25T10:50:00Z"
    series.configure(fresh_for_s=7_200)
    tolerated: Any = ana.before("Which kudos did I get in the last 30 minutes?").values[KUDOS]
    assert tolerated["coverage"] == "full"
    assert tolerated["note"].startswith(
        "none of this time was fetched (0 entries); the last fetch, up to 2025-10-25T10:00:00Z, is"
    )


def test_a_hole_between_two_fetches_is_no_stale_tip(ana: perdure.Memory) -> None:
    """X-1, X-3: `fresh_for` tolerates a gap at the newest end only; a hole with covered time behind it stays a gap."""
    series = ana.series(KUDOS, fresh_for_s=3_600)
    noon = october(10.5)
    series.merge([], window=(october(10), noon))
    series.merge([], window=(noon + timedelta(hours=1), october(24)))
    hole = (noon, noon + timedelta(hours=1))
    assert edges(series.gaps(october(10), october(20))) == [hole]
    answer = series.query(october(10), noon + timedelta(hours=1))
    assert (answer.coverage, edges(answer.gaps)) == ("partial", [hole])


def test_a_query_may_go_by_when_entries_were_first_seen(ana: perdure.Memory) -> None:
    """X-5: `first_seen` keeps arrival time; queries may filter by either time, and the count is of what is filtered."""
    series = ana.series(KUDOS)
    series.merge([kudo("old news", october(1)), kudo("older news", october(2))])
    arrived = series.query(TEN - DAY, TEN, by_first_seen=True)
    assert ids(arrived.entries) == ["kudos_older news", "kudos_old news"]
    assert arrived.count == 2
    happened = series.query(october(1), october(3), by_first_seen=True)
    assert (happened.entries, happened.count) == ((), 0)


def test_a_boundary_entry_is_never_lost(ana: perdure.Memory) -> None:
    """S0-26 and the issue: queries include both ends; windows that touch share nothing and miss nothing."""
    series = ana.series(KUDOS)
    noon = kudo("noon", october(2.5))
    source = Source([noon])
    series.fetch(october(2), october(2.5), source)
    assert series.count() == 0, "the window ends before noon"
    answer = series.fetch(october(2.5), october(3), source)
    assert source.asked == [(october(2), october(2.5)), (october(2.5), october(3))]
    assert ids(answer.entries) == ["kudos_noon"]
    assert ids(series.query(october(2), october(2.5)).entries) == ["kudos_noon"]
    assert ids(series.query(october(2.5), october(2.5)).entries) == ["kudos_noon"]


def test_pages_give_every_entry_once_newest_first(ana: perdure.Memory) -> None:
    """The issue, query: newest first, paging, the count of all pages; entries of one instant are told apart by id."""
    kudos = [kudo(f"{number:02}", TEN - timedelta(hours=number // 3)) for number in range(25)]
    ana.series(KUDOS).merge(kudos)
    seen: list[dict[str, Any]] = []
    page: str | None = None
    while True:
        answer = ana.tools.query_timeseries_state(KUDOS, TEN - DAY, TEN, limit=4, page=page)
        assert (answer["count"], answer["truncated"]) == (25, answer["next_page"] is not None)
        seen += answer["entries"]
        page = answer["next_page"]
        if page is None:
            break
    assert len({one["id"] for one in seen}) == len(seen) == 25
    assert [one["timestamp"] for one in seen] == sorted((one["timestamp"] for one in kudos), reverse=True)


@pytest.mark.parametrize("page", ["", "x", "5", ":", "--5:x", "1e3:x", f"{10**30}:x", f"{-(10**30)}:x"])
def test_a_page_that_is_none_is_refused(ana: perdure.Memory, page: str) -> None:
    """The issue: errors are ours; a model may send any text as the page."""
    ana.series(KUDOS).merge([kudo("x", TEN)])
    with pytest.raises(InvalidInput):
        ana.series(KUDOS).query(TEN - DAY, TEN, page=page)


@pytest.mark.parametrize("page", ["5:\0", "5:\ud800", "5:" + "x" * 10_000])
def test_a_page_with_an_odd_id_is_refused_or_empty(ana: perdure.Memory, page: str) -> None:
    """The issue: errors are ours, whatever the text."""
    ana.series(KUDOS).merge([kudo("x", TEN)])
    with suppress(InvalidInput):
        assert ana.series(KUDOS).query(TEN - DAY, TEN, page=page).entries == ()


@pytest.mark.parametrize("limit", [0, -1, 1.5, "5", True, 10**30])
def test_a_limit_that_is_none_is_refused(ana: perdure.Memory, limit: Any) -> None:
    """The issue: errors are ours; a limit is a whole number from 1 to the setting."""
    ana.series(KUDOS).merge([kudo("x", TEN)])
    with pytest.raises((InvalidInput, perdure.LimitExceeded)):
        ana.series(KUDOS).query(TEN - DAY, TEN, limit=limit)


def test_an_absurd_number_is_no_time(ana: perdure.Memory) -> None:
    """B-5, B-6: it is rejected like any other bad time, and spoils no other entry."""
    done = ana.series(KUDOS).merge([{"id": "a", "timestamp": 10**400}, {"id": "b", "timestamp": -(10**40)}, kudo("c", TEN)])
    assert (done.added, [one.index for one in done.rejected]) == (1, [0, 1])
    with pytest.raises(InvalidInput):
        ana.series(KUDOS).query(10**400, TEN)


def test_an_unknown_rule_is_refused_whether_or_not_the_series_exists(ana: perdure.Memory) -> None:
    """The issue, series: rules belong to the series; one that there is not is an error of Python."""
    for _ in range(2):
        with pytest.raises(TypeError, match="colour"):
            ana.series(KUDOS, colour="blue").merge([kudo("x", TEN)])  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="colour"):
            ana.series(KUDOS, colour="blue").fetch(TEN - DAY, TEN, Source())  # type: ignore[call-arg]
        ana.series(KUDOS).merge([kudo("x", TEN)])


def test_a_body_with_a_tuple_is_the_same_body_the_next_time(ana: perdure.Memory) -> None:
    """T-11, B-3: a body is compared as the JSON it is stored as."""
    series = ana.series(KUDOS)
    for _ in range(2):
        done = series.merge([kudo("x", TEN, place=(47.6, -122.3))])
    assert (done.duplicates, done.updated) == (1, 0)


# -- retention


def test_the_recurring_job_cleans_up_series_that_say_how_long_to_keep(engine: perdure.Engine, clock: StoppedClock) -> None:
    """S0-35, S0-60: by hand, or as a recurring job for series with `keep_days`; the others are left alone."""
    ana = engine.memory("ana")
    kudos = [kudo(day, TEN - day * DAY) for day in range(100)]
    ana.series("kept").merge(kudos, window=(TEN - 100 * DAY, TEN))
    ana.series("trimmed", keep_days=30).merge(kudos, window=(TEN - 100 * DAY, TEN))
    engine.process()
    assert (ana.series("kept").count(), ana.series("trimmed").count()) == (100, 100)
    clock.move(days=1)
    engine.process()
    assert (ana.series("kept").count(), ana.series("trimmed").count()) == (100, 30)
    assert ana.series("trimmed").query(TEN - 40 * DAY, TEN - 35 * DAY).coverage == "none"
    assert ana.series("kept").query(TEN - 100 * DAY, TEN).coverage == "full"


@pytest.mark.parametrize("wrong", [-1, "ninety", None, True, float("nan"), float("inf")])
def test_a_cleanup_that_makes_no_sense_removes_nothing(ana: perdure.Memory, wrong: Any) -> None:
    """S0-33: `keep_days` is a number of days."""
    ana.series(KUDOS).merge([kudo("x", TEN - 1_000 * DAY)])
    answer = ana.tools.call_tool("cleanupTimeseriesState", {"key": KUDOS, "keep_days": wrong})
    assert ana.series(KUDOS).count() == 1
    assert (answer["success"], bool(answer["error"]), bool(answer["remedy"])) == (False, True, True)


# -- aggregates and export


def test_aggregates_without_loading(ana: perdure.Memory) -> None:
    """The issue, aggregates: count, first/last, count per hour/day/week in a zone, distinct by field, group by field."""
    series = ana.series("runs", zone="Europe/Berlin")
    assert (series.count(), series.first(), series.last(), series.per("day"), series.group("kind")) == (0, None, None, {}, {})
    times = ["2025-10-06T23:30:00", "2025-10-07T00:30:00", "2025-10-07T00:45:00", "2025-10-09T12:00:00", "2025-10-13T00:00:00"]
    series.merge([{"id": number, "timestamp": at, "kind": "ab"[number % 2]} for number, at in enumerate(times)])
    assert (series.count(), series.count("2025-10-07", "2025-10-09T12:00:00")) == (5, 3)
    assert (series.first().id, series.last().id) == ("0", "4")
    days = {opening.strftime("%d"): count for opening, count in series.per("day").items()}
    assert days == {"06": 1, "07": 2, "08": 0, "09": 1, "10": 0, "11": 0, "12": 0, "13": 1}
    assert [count for count in series.per("day", zone="UTC").values() if count] == [3, 1, 1]
    assert list(series.per("week").values()) == [4, 1]
    assert [opening.strftime("%a %d") for opening in series.per("week")] == ["Mon 06", "Mon 13"]
    assert sum(series.per("hour").values()) == 5
    assert series.group("kind") == {"a": 3, "b": 2}
    assert series.distinct("kind") == ["a", "b"]
    with pytest.raises(InvalidInput):
        series.per("fortnight")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "times",
    [
        ["2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z", "2025-10-26T02:30:00Z"],
        ["2025-10-26T00:30:00Z", "2025-10-26T02:30:00Z"],
        ["2025-03-30T00:30:00Z", "2025-03-30T01:30:00Z"],
    ],
)
def test_hours_are_counted_right_when_the_clocks_change(ana: perdure.Memory, times: list[str]) -> None:
    """The issue, aggregates: per hour in a zone; the hour that happens twice in autumn is two hours."""
    series = ana.series("runs", zone="Europe/Berlin")
    series.merge([{"id": number, "timestamp": at} for number, at in enumerate(times)])
    hours = series.per("hour")
    assert sum(hours.values()) == len(times)
    assert [count for count in hours.values() if count] == [1] * len(times)
    assert sum(series.per("day").values()) == len(times)


def test_exports_hold_every_entry(ana: perdure.Memory) -> None:
    """The issue, export: JSONL and CSV, and rows as data frames take them."""
    series = ana.series(KUDOS)
    series.merge(
        [kudo(number, TEN - timedelta(minutes=number), note='a "quoted",\nbroken line', deep={"x": [1]}) for number in range(3)]
    )
    lines = [json.loads(line) for line in series.export("jsonl")]
    assert [line["id"] for line in lines] == ["kudos_2", "kudos_1", "kudos_0"]
    assert lines == series.rows()
    table = csv.DictReader("\n".join(series.export("csv")).splitlines(keepends=True))
    assert [(row["id"], row["note"], json.loads(row["deep"])) for row in table] == [
        (line["id"], line["note"], line["deep"]) for line in lines
    ]
    with pytest.raises(InvalidInput):
        list(series.export("xml"))


def test_more_than_a_page_of_everything(ana: perdure.Memory) -> None:
    """B-11, S0-61: what is read or removed in pages is read and removed whole."""
    series = ana.series("many")
    series.configure(max_entries=None)
    kudos = [kudo(f"{number:05}", TEN - timedelta(minutes=number + 1), parity=number % 2) for number in range(6_100)]
    series.merge(kudos, window=(TEN - timedelta(minutes=6_100), TEN))
    assert sum(series.per("hour").values()) == sum(series.group("parity").values()) == 6_100
    assert ids(series.entries()) == [one["id"] for one in reversed(kudos)]
    assert len(list(series.export("csv"))) == 6_101
    series.configure(max_entries=40)
    done = series.merge([])
    assert (done.evicted, done.total_count, series.count()) == (6_060, 40, 40)
    assert ids(series.entries()) == [one["id"] for one in reversed(kudos[:40])]
    assert series.query(TEN - timedelta(minutes=40), TEN).coverage == "full"
    assert series.query(TEN - timedelta(minutes=41), TEN).coverage == "partial"


# -- whose


def test_a_series_belongs_to_a_user_and_is_shared_by_their_agents(engine: perdure.Engine) -> None:
    """The issue, names: `ana` is the scoped handle; nobody else sees her series, all her agents do."""
    engine.memory("ana", agent="coach").series(KUDOS).merge([kudo("x", TEN)], window=(TEN - DAY, TEN))
    assert engine.memory("ana", agent="companion", channel="phone").series(KUDOS).query(TEN - DAY, TEN).coverage == "full"
    for other in (engine.memory("bob"), engine.memory("ana", space="elsewhere")):
        answer = other.series(KUDOS).query(TEN - DAY, TEN)
        assert (answer.coverage, answer.count, answer.reason) == ("none", 0, "No data in state")
        assert other.series.list() == []
        assert other.tools.cleanup_old_timeseries(KUDOS, 0)["removed"] == 0
    assert [one.name for one in engine.memory("ana").series.list()] == [KUDOS]


def test_a_removed_series_is_gone_with_its_claims(ana: perdure.Memory) -> None:
    """X-1: what is not held is not claimed."""
    series = ana.series(KUDOS, max_entries=5)
    series.merge([kudo("x", TEN - timedelta(hours=1), v=1)], window=(TEN - DAY, TEN))
    series.merge([kudo("x", TEN - timedelta(hours=1), v=2)])
    assert series.remove() == 1
    with pytest.raises(perdure.NotFound):
        series.about()
    assert series.query(TEN - DAY, TEN).coverage == "none"
    assert list(series.history("kudos_x")) == []
    assert ana.series(KUDOS, max_entries=9).merge([kudo("y", TEN)]).added == 1
