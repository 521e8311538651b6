"""Laws of spans, of the coverage ledger, of merging and of reading times, against models that are obviously right.

A span over small integers is modelled by the set of integers in it; the ledger by a dict from integer to when it was last
fetched; a series by a dict from id to its newest version.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis.strategies as st
import pytest
from hypothesis import assume, example, given, settings

from lanes import examples
from perdure.domain.errors import InvalidInput
from perdure.domain.series import CoveredWindow, Entry, FetchRecord, SeriesSpec
from perdure.domain.times.instants import instant_us, to_us, zone_named
from perdure.domain.times.spans import Span, bridged, clipped, gaps, span_or_none, split, union
from perdure.engine.series import SpanCoverage, judge, plan_merge, proven, recorded, settled_and_provisional, sightings

LAST = 24
SECOND = 1_000_000

a_span = st.lists(st.integers(0, LAST), min_size=2, max_size=2, unique=True).map(lambda ends: Span(min(ends), max(ends)))
spans = st.lists(a_span, max_size=6)


def points(some: Iterable[Span], unit: int = 1) -> set[int]:
    """The integers in them; all edges must lie on whole units."""
    found: set[int] = set()
    for span in some:
        assert span.start_us % unit == 0
        assert span.end_us % unit == 0
        found |= set(range(span.start_us // unit, span.end_us // unit))
    return found


def apart(some: Sequence[Span]) -> bool:
    """Sorted, and between two neighbours there is room."""
    return all(one.end_us < other.start_us for one, other in pairwise(some))


# -- spans


@pytest.mark.parametrize("ends", [(0, 0), (1, 0), (5, -5)])
def test_an_empty_span_is_none(ends: tuple[int, int]) -> None:
    assert span_or_none(*ends) is None
    with pytest.raises(ValueError, match="none"):
        Span(*ends)


@settings(deadline=None)
@given(spans)
def test_a_union_has_the_same_instants_in_as_few_spans(held: list[Span]) -> None:
    joined = union(held)
    assert points(joined) == points(held)
    assert apart(joined)
    assert union(joined) == joined
    assert union(reversed(held)) == joined


@settings(deadline=None)
@given(spans, a_span)
def test_held_and_missing_partition_what_was_wanted(held: list[Span], wanted: Span) -> None:
    missing = points(gaps(wanted, held))
    assert missing.isdisjoint(points(held))
    assert missing | (points(held) & points([wanted])) == points([wanted])
    assert apart(gaps(wanted, held))


@settings(deadline=None)
@given(spans, a_span)
def test_fetching_the_gaps_leaves_none(held: list[Span], wanted: Span) -> None:
    assert gaps(wanted, [*held, *gaps(wanted, held)]) == ()


@settings(deadline=None)
@given(spans, a_span)
def test_clipping_keeps_what_is_inside(held: list[Span], within: Span) -> None:
    assert points(clipped(held, within)) == points(held) & points([within])


@settings(deadline=None)
@given(spans, st.integers(0, 8))
def test_bridging_fills_narrow_rooms_and_no_others(some: list[Span], closer_than: int) -> None:
    joined = bridged(some, closer_than)
    before, after = points(some), points(joined)
    assert before <= after
    assert apart(joined) or len(joined) < 2
    rooms = [Span(one.end_us, other.start_us) for one, other in pairwise(union(some))]
    assert after - before == points(room for room in rooms if room.length_us <= closer_than)
    assert all(other.start_us - one.end_us > closer_than for one, other in pairwise(joined))


@settings(deadline=None)
@given(a_span, st.integers(1, 10))
def test_splitting_gives_pieces_in_order_that_miss_nothing_and_share_nothing(span: Span, longest: int) -> None:
    pieces = tuple(split(span, longest))
    assert all(piece.length_us <= longest for piece in pieces)
    assert (pieces[0].start_us, pieces[-1].end_us) == (span.start_us, span.end_us)
    assert all(one.end_us == other.start_us for one, other in pairwise(pieces))
    assert len(pieces) == -(-span.length_us // longest)
    assert tuple(split(span, None)) == (span,)


# -- the ledger

a_fetch = st.tuples(a_span, st.integers(0, 9))
fetches = st.lists(a_fetch, max_size=8)


def ledger(history: Iterable[tuple[Span, int]], unit: int = 1) -> list[CoveredWindow]:
    """The windows after these fetches, as a merge keeps them: all that overlap or touch the new one are replaced."""
    held: list[CoveredWindow] = []
    for span, fetched in history:
        new = Span(span.start_us * unit, span.end_us * unit)
        touching = [one for one in held if one.span.start_us <= new.end_us and one.span.end_us >= new.start_us]
        held = [one for one in held if one not in touching]
        held = sorted([*held, *recorded(touching, new, fetched * unit)], key=lambda one: one.span)
    return held


def fetched_at(history: Iterable[tuple[Span, int]]) -> dict[int, int]:
    """The model: when each instant was last fetched."""
    last: dict[int, int] = {}
    for span, fetched in history:
        for instant in points([span]):
            last[instant] = max(fetched, last.get(instant, fetched))
    return last


@settings(deadline=None)
@given(fetches)
def test_each_instant_keeps_its_latest_fetch_and_none_is_made_up(history: list[tuple[Span, int]]) -> None:
    held = ledger(history)
    assert {instant: one.fetched_us for one in held for instant in points([one.span])} == fetched_at(history)
    assert all(one.span.end_us <= other.span.start_us for one, other in pairwise(held)), "windows do not overlap"
    assert not any(
        one.span.end_us == other.span.start_us and one.fetched_us == other.fetched_us for one, other in pairwise(held)
    ), "what was fetched together and touches is one window"


@settings(deadline=None)
@given(fetches, a_fetch)
def test_a_replay_of_an_old_fetch_takes_nothing_back(history: list[tuple[Span, int]], replay: tuple[Span, int]) -> None:
    before = fetched_at(history)
    after = {instant: one.fetched_us for one in ledger([*history, replay]) for instant in points([one.span])}
    assert all(after[instant] >= fetched for instant, fetched in before.items())
    assert ledger([*history, replay, replay]) == ledger([*history, replay])


@settings(deadline=None)
@given(st.lists(st.integers(0, LAST), min_size=4, max_size=4, unique=True).map(sorted), st.integers(0, 9), st.integers(0, 9))
def test_two_separated_windows_are_never_bridged(edges: list[int], first: int, second: int) -> None:
    one, hole, other = (Span(*ends) for ends in pairwise(edges))
    for history in ([(one, first), (other, second)], [(other, second), (one, first)]):
        assert points(window.span for window in ledger(history)).isdisjoint(points([hole]))
        for fresh in (0, 3, LAST):
            verdict = judged(Span(edges[0], edges[3]), history, lateness=0, fresh=fresh, now=LAST)
            assert points([hole]) <= points(verdict.gaps, SECOND)
            verdict = judged(Span(edges[0], edges[2]), history, lateness=0, fresh=fresh, now=LAST)
            assert points([hole]) <= points(verdict.gaps, SECOND), "also if the question ends where the hole does"


# -- what a fetch proves

instants = st.lists(st.integers(-3, LAST + 3), max_size=6)


@settings(deadline=None)
@given(a_span, instants, st.integers(0, LAST + 3))
def test_a_whole_answer_proves_its_window_up_to_when_it_was_asked(window: Span, seen: list[int], asked: int) -> None:
    credited = proven(FetchRecord(window, fetched_us=asked), seen, asked)
    assert points([credited] if credited else []) == {instant for instant in points([window]) if instant < asked}


@settings(deadline=None)
@given(a_span, instants, st.integers(0, LAST + 3), st.booleans())
def test_a_cut_off_answer_proves_only_what_lies_before_the_cut(
    window: Span, seen: list[int], asked: int, newest_first: bool
) -> None:
    fetch = FetchRecord(window, complete=False, newest_first=newest_first, fetched_us=asked)
    credited = proven(fetch, seen, asked)
    past = {instant for instant in points([window]) if instant < asked}
    inside = sorted(set(seen) & past)
    if not inside:
        assert credited is None, "nothing delivered, nothing proven"
    elif newest_first:
        assert points([credited] if credited else []) == {instant for instant in past if instant > inside[0]}
    else:
        assert points([credited] if credited else []) == {instant for instant in past if instant < inside[-1]}


@settings(deadline=None)
@given(instants, st.integers(0, LAST + 3))
def test_without_a_window_nothing_is_proven_unless_the_batch_is_taken_for_one(seen: list[int], now: int) -> None:
    assert proven(FetchRecord(fetched_us=now), seen, now) is None
    credited = proven(FetchRecord(infer="batch_span", fetched_us=now), seen, now)
    inside = points([credited] if credited else [])
    assert all(min(seen) <= instant <= max(seen) and instant < now for instant in inside)


# -- the verdict


def judged(wanted: Span, history: list[tuple[Span, int]], *, lateness: int, fresh: int, now: int) -> SpanCoverage:
    """The verdict in whole seconds, given what the store would give: what touches, one before it, and the last of all."""
    held = ledger(history, SECOND)
    start, end = wanted.start_us * SECOND, wanted.end_us * SECOND
    first = max((one.span.start_us for one in held if one.span.start_us <= start), default=start)
    given_windows = [one for one in held if first <= one.span.start_us <= end]
    spec = SeriesSpec(settles_after_s=lateness, fresh_for_s=fresh)
    return judge(Span(start, end), given_windows, spec, now * SECOND, held[-1] if held else None)


def model(
    wanted: Span, history: list[tuple[Span, int]], *, lateness: int, fresh: int, now: int
) -> tuple[set[int], set[int], set[int]]:
    """Held, missing and future instants, one by one."""
    last = fetched_at(history)
    future = {instant for instant in points([wanted]) if instant >= now}
    held = {
        instant
        for instant in points([wanted]) - future
        if instant in last and (instant < last[instant] - lateness or now - last[instant] <= fresh)
    }
    return held, points([wanted]) - future - held, future


times = st.integers(0, LAST + 6)
long_fetches = st.lists(st.tuples(a_span, times), max_size=6)


@settings(max_examples=examples(300), deadline=None)
@given(a_span, long_fetches, st.integers(0, 10), times)
def test_the_verdict_is_that_of_every_instant_for_itself(
    wanted: Span, history: list[tuple[Span, int]], lateness: int, now: int
) -> None:
    held, missing, future = model(wanted, history, lateness=lateness, fresh=0, now=now)
    verdict = judged(wanted, history, lateness=lateness, fresh=0, now=now)
    assert points(verdict.gaps, SECOND) == missing
    assert points(verdict.held, SECOND) == held
    assert points([verdict.future] if verdict.future else [], SECOND) == future
    assert apart(verdict.gaps)
    assert verdict.stale_us == 0
    assert (verdict.coverage == "full") == (not missing and not future)
    assert (verdict.coverage == "none") == (not held)


@settings(max_examples=examples(300), deadline=None)
@given(a_span, long_fetches, st.integers(0, 10), st.integers(0, 12), times)
@example(Span(0, 11), [(Span(0, 10), 30), (Span(11, 24), 30)], 0, 3, 30)
def test_freshness_forgives_the_newest_end_and_nothing_else(
    wanted: Span, history: list[tuple[Span, int]], lateness: int, fresh: int, now: int
) -> None:
    held, missing, future = model(wanted, history, lateness=lateness, fresh=fresh, now=now)
    verdict = judged(wanted, history, lateness=lateness, fresh=fresh, now=now)
    told = points(verdict.gaps, SECOND)
    forgiven = missing - told
    assert told <= missing
    assert points(verdict.held, SECOND) == held
    assert (verdict.coverage == "full") == (not told and not future)
    assert bool(forgiven) == (verdict.stale_us > 0)
    if forgiven:
        end = min(wanted.end_us, now)
        assert forgiven == set(range(min(forgiven), end)), "one piece, at the newest end"
        assert verdict.stale_us <= fresh * SECOND
        assert len(forgiven) * SECOND <= verdict.stale_us
        assert not [instant for instant in fetched_at(history) if instant >= min(forgiven)], "nothing was fetched behind it"


@settings(deadline=None)
@given(a_span, st.integers(1, 10), st.integers(0, 12))
def test_a_tip_that_is_young_enough_forces_no_call(window: Span, age: int, fresh: int) -> None:
    """X-3: fetched up to some instant, asked up to now; a gap shorter than the tolerance forces no call."""
    now = window.end_us + age
    verdict = judged(Span(window.start_us, now), [(window, window.end_us)], lateness=0, fresh=fresh, now=now)
    if age < fresh:
        assert (verdict.coverage, verdict.gaps, verdict.stale_us) == ("full", (), age * SECOND)
    else:
        assert (verdict.coverage, points(verdict.gaps, SECOND)) == ("partial", set(range(window.end_us, now)))


@settings(deadline=None)
@given(a_span, long_fetches, st.integers(0, 10), times)
def test_settled_and_provisional_are_all_there_is(
    wanted: Span, history: list[tuple[Span, int]], lateness: int, now: int
) -> None:
    windows = ledger(history, SECOND)
    settled, provisional = settled_and_provisional(windows, SeriesSpec(settles_after_s=lateness))
    last = fetched_at(history)
    assert points(settled, SECOND) == {instant for instant, fetched in last.items() if instant < fetched - lateness}
    assert points((one.span for one in provisional), SECOND) == {i for i, fetched in last.items() if i >= fetched - lateness}
    told = judged(wanted, history, lateness=lateness, fresh=0, now=now).provisional
    assert points(told, SECOND) == {i for i, fetched in last.items() if i >= fetched - lateness and i < now} & points([wanted])


@settings(deadline=None)
@given(a_span, long_fetches, st.integers(0, 10), st.integers(0, 10), times, times)
def test_the_lapse_of_time_makes_nothing_known(
    wanted: Span, history: list[tuple[Span, int]], lateness: int, fresh: int, one: int, other: int
) -> None:
    """What is missing now and was in the past then, was missing then, or has grown stale; never the other way round."""
    early, late = sorted((one, other))
    before = judged(wanted, history, lateness=lateness, fresh=0, now=early)
    after = judged(wanted, history, lateness=lateness, fresh=0, now=late)
    assert points(before.gaps, SECOND) <= points(after.gaps, SECOND)


# -- merging

versions = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 4)), max_size=12)


def merged(batches: Iterable[Sequence[tuple[str, int]]]) -> tuple[dict[str, Entry], list[tuple[str, Any]], int, int]:
    """A series as a dict: the entries, the losing bodies, how many were new and how many known."""
    held: dict[str, Entry] = {}
    past: list[tuple[str, Any]] = []
    added = duplicates = 0
    for now, batch in enumerate(batches):
        raw = [{"id": name, "timestamp": at, "body": f"{name} as of {at}"} for name, at in batch]
        good, bad = sightings(raw, SeriesSpec(), UTC, bytes_max=10_000)
        assert bad == []
        plan = plan_merge(good, {name: held[name] for name in {one.id for one in good} & held.keys()}, now)
        held |= {entry.id: entry for entry in plan.entries}
        past += [(name, body["body"]) for name, _, body in plan.past]
        added += plan.added
        duplicates += plan.duplicates
    return held, past, added, duplicates


@settings(deadline=None)
@given(versions, st.randoms(use_true_random=False), st.lists(st.integers(0, 12), max_size=4))
def test_any_order_and_any_batching_gives_the_same_series(seen: list[tuple[str, int]], chance: Any, cuts: list[int]) -> None:
    """Bodies differ by id and instant; at one instant the last word counts, so there order would matter."""
    shuffled = list(seen)
    chance.shuffle(shuffled)
    edges = sorted({0, len(seen), *(cut for cut in cuts if cut < len(seen))})
    batches = [shuffled[start:end] for start, end in pairwise(edges)]
    one, _, added, duplicates = merged([seen])
    other, past, added_too, duplicates_too = merged(batches)
    assert {name: (entry.at_us, entry.body) for name, entry in one.items()} == {
        name: (entry.at_us, entry.body) for name, entry in other.items()
    }
    assert one.keys() == {name for name, _ in seen}
    assert all(entry.at_us == max(at for name, at in seen if name == entry.id) * SECOND for entry in one.values())
    assert (added, duplicates) == (added_too, duplicates_too) == (len(one), len(seen) - len(one))
    everything = {(name, f"{name} as of {at}") for name, at in seen}
    assert {(entry.id, entry.body["body"]) for entry in other.values()} | set(past) == everything, "no body is lost"


@settings(deadline=None)
@given(st.lists(versions, max_size=5))
def test_first_seen_is_the_first_merge_and_last_seen_the_last(batches: list[list[tuple[str, int]]]) -> None:
    held, *_ = merged(batches)
    for name, entry in held.items():
        seen_in = [number for number, batch in enumerate(batches) if any(one == name for one, _ in batch)]
        assert (entry.first_seen_us, entry.last_seen_us) == (seen_in[0], seen_in[-1])


BAD: list[Any] = [
    None,
    7,
    "text",
    [],
    {},
    {"id": 1},
    {"timestamp": 1},
    {"id": None, "timestamp": 1},
    {"id": "", "timestamp": 1},
    {"id": True, "timestamp": 1},
    {"id": [1], "timestamp": 1},
    {"id": 1, "timestamp": "soon"},
    {"id": 1, "timestamp": None},
    {"id": 1, "timestamp": True},
    {"id": 1, "timestamp": 10**400},
    {"id": 1, "timestamp": 1, "x": object()},
    {1: 1},
    {"id": "x" * 401, "timestamp": 1},
    {"id": "\0", "timestamp": 1},
    {"id": 1, "timestamp": 1, "x": "y" * 20_000},
]


@settings(deadline=None)
@given(st.lists(st.sampled_from([None, *range(len(BAD))]), max_size=8))
def test_bad_entries_are_told_by_their_place_and_spoil_no_other(chosen: list[int | None]) -> None:
    batch = [{"id": f"good{place}", "timestamp": place} if bad is None else BAD[bad] for place, bad in enumerate(chosen)]
    good, rejected = sightings(batch, SeriesSpec(), UTC, bytes_max=10_000)
    assert [one.index for one in good] == [place for place, bad in enumerate(chosen) if bad is None]
    assert [one.index for one in rejected] == [place for place, bad in enumerate(chosen) if bad is not None]
    assert all(one.reason for one in rejected)


@pytest.mark.parametrize("template", ["{", "}", "{}", "{0}", "{a.b}", "{a[0]}", "{a!r}", "{a:>9}", "plain", "", "{a} {"])
def test_a_template_that_is_none_is_refused(template: str) -> None:
    from perdure.engine.series import template_fields

    with pytest.raises(InvalidInput, match="id_template"):
        template_fields(template)


# -- times

HALF_PAST_NINE = to_us(datetime(2025, 10, 25, 9, 30, tzinfo=UTC))


@pytest.mark.parametrize(
    "given_time",
    [
        "2025-10-25T09:30:00Z",
        "2025-10-25T09:30Z",
        "2025-10-25T09:30:00+00:00",
        "2025-10-25T11:30:00+02:00",
        "2025-10-25T15:00:00+05:30",
        "2025-10-25T04:30:00-0500",
        "2025-10-24T23:30:00-10:00",
        "20251025T093000Z",
        "2025-10-25 09:30:00",
        "2025-10-25T09:30:00.000000",
        "2025-10-25T09:30:00.000Z",
        " 2025-10-25T09:30:00Z ",
        "2025-W43-6T09:30:00Z",
        1_761_384_600,
        1_761_384_600.0,
        1_761_384_600_000,
        1_761_384_600_000_000,
        "1761384600",
        "1761384600.0",
        "1761384600000",
        datetime(2025, 10, 25, 9, 30),
        datetime(2025, 10, 25, 9, 30, tzinfo=UTC),
        datetime(2025, 10, 25, 11, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(2025, 10, 25, 4, 30, tzinfo=timezone(-timedelta(hours=5))),
    ],
    ids=str,
)
def test_spellings_of_one_instant(given_time: object) -> None:
    assert instant_us(given_time, UTC, "it") == HALF_PAST_NINE


@pytest.mark.parametrize(
    ("text", "microsecond"),
    [("09:30:00.5Z", 500_000), ("09:30:00,25Z", 250_000), ("09:30:00.123456Z", 123_456), ("09:30:00.123456789Z", 123_456)],
)
def test_fractions_are_kept_to_the_microsecond(text: str, microsecond: int) -> None:
    assert instant_us(f"2025-10-25T{text}", UTC, "it") == HALF_PAST_NINE + microsecond


@pytest.mark.parametrize(
    "nonsense",
    [
        "soon",
        "",
        " ",
        "yesterday",
        "2025-13-01",
        "2025-02-30",
        "2025-10-25T25:00:00Z",
        "25/10/2025",
        "09:30",
        "T09:30Z",
        "inf",
        "nan",
        "1e9",
        "0x10",
        "2025-10-25T09:30:00+99:00",
        "2025-10-25T09:30:00Zulu",
        None,
        True,
        False,
        [],
        {},
        b"2025-10-25",
        Ellipsis,
        float("nan"),
        float("inf"),
        -float("inf"),
        10**400,
        -(10**400),
        10**30,
        1e300,
        "9" * 25,
        timedelta(days=1),
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    ],
    ids=lambda one: ascii(one)[:40],
)
def test_nonsense_is_refused_by_name(nonsense: object) -> None:
    with pytest.raises(InvalidInput, match="start_time"):
        instant_us(nonsense, UTC, "`start_time`")


aware = st.datetimes(
    min_value=datetime(1, 1, 3),
    max_value=datetime(9999, 12, 29),
    timezones=st.timezones() | st.just(UTC),
    allow_imaginary=False,
)


@settings(max_examples=examples(300), deadline=None)
@given(aware)
def test_an_aware_time_is_the_same_instant_as_datetime_and_as_text(moment: datetime) -> None:
    assume(moment.utcoffset() is not None)
    offset = moment.utcoffset()
    assert offset is not None
    expected = to_us(moment.astimezone(UTC))
    assert instant_us(moment, ZoneInfo("Asia/Kathmandu"), "it") == expected
    if offset % timedelta(seconds=1) == timedelta(0):
        assert instant_us(moment.isoformat(), ZoneInfo("Asia/Kathmandu"), "it") == expected


@settings(deadline=None)
@given(st.integers(-62_000_000_000, 99_999_999_999))
@example(20_260_301)
def test_unix_seconds_are_exact(seconds: int) -> None:
    """In a text, too; but for eight digits that are a day: `20260301` is the first of March."""
    assert instant_us(seconds, UTC, "it") == seconds * SECOND
    text = str(seconds)
    try:
        day = datetime.strptime(text, "%Y%m%d") if len(text) == 8 else None
    except ValueError:
        day = None
    assert instant_us(text, UTC, "it") == (seconds * SECOND if day is None else to_us(day.replace(tzinfo=UTC)))


@settings(deadline=None)
@given(st.integers(100_000_000_000, 99_999_999_999_999))
def test_unix_milliseconds_and_microseconds_are_exact(number: int) -> None:
    assert instant_us(number, UTC, "it") == number * 1_000
    assert instant_us(number * 1_000, UTC, "it") == number * 1_000


@settings(deadline=None)
@given(st.datetimes(min_value=datetime(1950, 1, 1), max_value=datetime(2080, 1, 1)), st.timezones())
def test_a_naive_time_is_one_of_the_zone(moment: datetime, zone: tzinfo) -> None:
    """Where the clocks go back a time happens twice, and either is right; where they go forward it still is an instant."""
    read = instant_us(moment.isoformat(), zone, "it")
    assert read == instant_us(moment, zone, "it")
    assert read in {to_us(moment.replace(tzinfo=zone, fold=fold).astimezone(UTC)) for fold in (0, 1)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2025-07-01T12:00:00", {"2025-07-01T10:00:00Z"}),
        ("2025-12-01T12:00:00", {"2025-12-01T11:00:00Z"}),
        ("2025-10-26T02:30:00", {"2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z"}),
        ("2025-03-30T02:30:00", {"2025-03-30T00:30:00Z", "2025-03-30T01:30:00Z"}),
        ("2025-10-26", {"2025-10-25T22:00:00Z"}),
        ("2025-10-26T02:30:00+01:00", {"2025-10-26T01:30:00Z"}),
    ],
)
def test_naive_times_where_the_clocks_change(text: str, expected: set[str]) -> None:
    assert instant_us(text, zone_named("Europe/Berlin"), "it") in {instant_us(one, UTC, "it") for one in expected}


@pytest.mark.parametrize(
    "name",
    ["", "Mars/Olympus", "../etc/passwd", "/etc/localtime", "Europe", "a\0b", "x" * 5_000, "a/" * 5_000, None, 7, ["UTC"]],
)
def test_an_unknown_zone_is_refused(name: Any) -> None:
    with pytest.raises(InvalidInput, match="zone"):
        zone_named(name)
