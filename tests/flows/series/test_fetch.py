"""Reading through a series: only gaps are fetched, each of them once, and the answer says what is still missing."""

from __future__ import annotations

import asyncio
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import perdure
import perdure.aio
from perdure import InvalidInput
from perdure.domain.scope import Owner
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.ports.tables.series import FetchLease
from perdure.services.series.fetch import Page, Window
from perdure.testing import FailingStore, StoppedClock

NOON = datetime(2025, 10, 25, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
NAME = "kudos_timeseries"
ENOUGH = 25
"""More calls than any of these tests can need: a source that is asked so often makes an end of it."""


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NOON)


@pytest.fixture
def engine(backend, clock: StoppedClock) -> Iterator[perdure.Engine]:  # type: ignore[no-untyped-def]
    """Whatever a test does to it, the store is sound at its end."""
    opened = backend.open(clock=clock)
    yield opened
    assert opened.verify().findings == ()


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    return engine.memory("ana")


def at(hours: float) -> datetime:
    """So many hours after the start of the day before."""
    return datetime(2025, 10, 24, tzinfo=UTC) + timedelta(hours=hours)


def edges(spans: Iterable[Span]) -> list[tuple[datetime, datetime]]:
    return [(span.start, span.end) for span in spans]


class Source:
    """An API with one entry every half hour that remembers which windows it was asked for."""

    def __init__(self, before: Callable[[Window], None] = lambda window: None) -> None:
        self.asked: list[tuple[datetime, datetime]] = []
        self._before = before

    def __call__(self, window: Window, *cursor: object) -> Any:
        self.asked.append((window.start, window.end))
        if len(self.asked) > ENOUGH:
            raise RuntimeError("asked again and again")
        self._before(window)
        return self.answer(window, *cursor)

    def answer(self, window: Window) -> Any:
        return self.inside(window)

    def inside(self, window: Window) -> list[dict[str, Any]]:
        """Newest first."""
        instants = [at(number / 2) for number in reversed(range(200))]
        return [{"id": one.isoformat(), "timestamp": one.isoformat()} for one in instants if window.start <= one < window.end]


# -- what is asked


def test_only_gaps_are_fetched(ana: perdure.Memory) -> None:
    series, source = ana.series(NAME), Source()
    for start, end in ((4, 8), (12, 16)):
        series.merge(source.inside(Window(at(start), at(end))), window=(at(start), at(end)))
    answer = series.fetch(at(2), at(20), source)
    assert source.asked == [(at(2), at(4)), (at(8), at(12)), (at(16), at(20))]
    assert (answer.coverage, answer.gaps, answer.needs_api_call, answer.failures) == ("full", (), False, ())
    assert (answer.count, answer.fetches) == (36, 3)
    about = series.about()
    assert (about.count, about.duplicates) == (36, 0)
    assert series.fetch(at(2), at(20), source).fetches == 0
    assert len(source.asked) == 3


def test_a_store_in_which_somebody_fetches_is_whole(engine: perdure.Engine, ana: perdure.Memory) -> None:
    found: list[object] = []
    ana.series(NAME).fetch(at(2), at(4), Source(before=lambda _window: found.extend(engine.verify().findings)))
    assert found == []


def test_gaps_closer_than_the_setting_are_fetched_with_one_request(ana: perdure.Memory) -> None:
    series, source = ana.series(NAME), Source()
    series.merge([], window=(at(4), at(5)))
    series.merge([], window=(at(8), at(14)))
    answer = series.fetch(at(2), at(20), source, join_gaps_s=2 * 3600)
    assert source.asked == [(at(2), at(8)), (at(14), at(20))]
    assert answer.coverage == "full"


def test_gaps_longer_than_the_source_answers_are_split(ana: perdure.Memory) -> None:
    source = Source()
    answer = ana.series(NAME).fetch(at(0), at(10), source, longest_s=4 * 3600)
    assert source.asked == [(at(0), at(4)), (at(4), at(8)), (at(8), at(10))]
    assert (answer.coverage, answer.count) == ("full", 20)


def test_joined_gaps_are_split_too(ana: perdure.Memory) -> None:
    series, source = ana.series(NAME), Source()
    series.merge([], window=(at(4), at(5)))
    series.fetch(at(0), at(10), source, join_gaps_s=2 * 3600, longest_s=5 * 3600)
    assert source.asked == [(at(0), at(5)), (at(5), at(10))]


@pytest.mark.parametrize("wrong", [{"join_gaps_s": -1}, {"longest_s": 0}, {"lease_s": 0}, {"wait_s": "x"}, {"fresh_for_s": -1}])
def test_options_that_make_no_sense_are_refused_before_anything_is_asked(ana: perdure.Memory, wrong: dict[str, Any]) -> None:
    source = Source()
    with pytest.raises(InvalidInput):
        ana.series(NAME).fetch(at(0), at(1), source, **wrong)
    assert source.asked == []


def test_an_empty_answer_is_recorded_and_not_asked_for_again(ana: perdure.Memory) -> None:
    asked: list[Window] = []

    def nothing(window: Window) -> list[object]:
        asked.append(window)
        return []

    for _ in range(3):
        answer = ana.series(NAME).fetch(at(0), at(1), nothing)
        assert (answer.coverage, answer.count) == ("full", 0)
    assert asked == [Window(at(0), at(1))]


def test_a_fetcher_may_use_the_store_itself(ana: perdure.Memory) -> None:
    """No transaction stays open across a call of the caller's code."""

    def note(window: Window) -> None:
        ana.state.save("asked", window.start.isoformat())
        assert ana.series("another").merge([{"id": 1, "timestamp": 1}]).added == 1

    assert ana.series(NAME).fetch(at(0), at(1), Source(note)).coverage == "full"
    assert ana.state.load("asked") == at(0).isoformat()


def test_other_rules_than_those_fixed_are_a_conflict_before_anything_is_asked(ana: perdure.Memory) -> None:
    source = Source()
    ana.series(NAME, id_field="id").fetch(at(0), at(1), source)
    with pytest.raises(perdure.Conflict):
        ana.series(NAME, id_field="key").fetch(at(0), at(2), source)
    assert len(source.asked) == 1


# -- nothing is written when all is held


class WriteCounting(FailingStore):
    """Counts transactions that may write."""

    writes = 0

    def write(self, *args: Any, **more: Any) -> Any:
        self.writes += 1
        return super().write(*args, **more)


def test_nothing_is_written_when_all_is_held(engine: perdure.Engine, clock: StoppedClock) -> None:
    store = WriteCounting(engine._store)
    ana = perdure.Engine(store, clock, perdure.Settings(url="memory:")).memory("ana")  # type: ignore[arg-type]
    source = Source()
    series = ana.series(NAME, fresh_for_s=60)
    series.fetch(at(0), NOON, source)
    assert store.writes > 0
    store.writes = 0
    clock.move(seconds=59)
    for start, end in ((at(0), NOON), (at(3), at(4)), (at(5), at(5)), (at(5), clock.now())):
        assert not series.fetch(start, end, source).needs_api_call
        assert series.query(start, end).coverage == "full"
    series.fetch(clock.now() + HOUR, clock.now() + DAY, source)
    series.tool()(source)(at(0), at(1))
    assert (store.writes, len(source.asked)) == (0, 1)


def test_a_store_that_cannot_write_still_answers_what_is_held(engine: perdure.Engine, clock: StoppedClock) -> None:
    engine.memory("ana").series(NAME).fetch(at(0), at(4), Source())

    class ReadOnly(FailingStore):
        def write(self, *args: Any, **more: Any) -> Any:
            raise perdure.Unavailable("the disk is full; make room")

    store = ReadOnly(engine._store)
    ana = perdure.Engine(store, clock, perdure.Settings(url="memory:")).memory("ana")  # type: ignore[arg-type]
    assert ana.series(NAME).fetch(at(0), at(4), Source()).count == 8


# -- one fetch for everybody


def test_eight_readers_of_one_gap_make_one_fetch(engine: perdure.Engine) -> None:
    """The issue: 8 concurrent readers of one gap → one fetch."""
    readers = 8
    together = threading.Barrier(readers)
    all_asking = threading.Event()
    source = Source(lambda _: None if all_asking.wait(30) else pytest.fail("the readers never came"))

    def read(number: int) -> Any:
        series = engine.memory("ana", agent=f"agent{number}").series(NAME)
        if together.wait(30) == 0:
            all_asking.set()
        return series.fetch(at(0), at(4), source)

    with ThreadPoolExecutor(readers) as pool:
        answers = list(pool.map(read, range(readers), timeout=60))
    assert source.asked == [(at(0), at(4))]
    assert [(answer.coverage, answer.count) for answer in answers] == [("full", 8)] * readers
    assert sum(answer.fetches for answer in answers) == 1
    assert engine.memory("ana").series(NAME).about().api_calls == 1


def test_readers_of_overlapping_ranges_fetch_no_instant_twice(engine: perdure.Engine) -> None:
    together = threading.Barrier(4)
    source = Source()

    def read(start: int) -> Any:
        together.wait(30)
        return engine.memory("ana").series(NAME).fetch(at(start), at(start + 6), source, longest_s=2 * 3600)

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(read, (0, 2, 4, 6), timeout=60))
    assert {answer.coverage for answer in answers} == {"full"}
    assert sorted(source.asked) == [(at(hour), at(hour + 2)) for hour in range(0, 12, 2)]


def test_who_waits_in_vain_gets_what_is_held(engine: perdure.Engine) -> None:
    """Waiting has an end of its own, and the answer says that something is missing."""
    ana = engine.memory("ana")
    inner = Source()

    def ask_at_the_same_time(_: Window) -> None:
        waited = ana.series(NAME).fetch(at(0), at(4), inner, wait_s=0.05)
        assert (waited.coverage, waited.needs_api_call) == ("none", True)

    assert ana.series(NAME).fetch(at(0), at(4), Source(ask_at_the_same_time)).coverage == "full"
    assert inner.asked == []


def test_a_fetch_that_fails_leaves_the_gap_to_the_next_one(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")

    def broken(window: Window) -> list[object]:
        raise ConnectionError("the network is down")

    answer = ana.series(NAME).fetch(at(0), at(4), broken)
    assert (answer.coverage, edges(answer.gaps), answer.needs_api_call) == ("none", [(at(0), at(4))], True)
    assert "the network is down" in answer.failures[0]
    source = Source()
    assert ana.series(NAME).fetch(at(0), at(4), source, wait_s=0).coverage == "full"
    assert source.asked == [(at(0), at(4))]


def test_several_gaps_that_each_take_less_than_the_lease_are_fetched_once(engine: perdure.Engine, clock: StoppedClock) -> None:
    """Single flight: a lease must last for the fetch it is about, whatever was fetched before it."""
    ana = engine.memory("ana")
    rival = Source()

    def slow(window: Window) -> None:
        clock.move(seconds=40)
        ana.series(NAME).fetch(window.start, window.end, rival, wait_s=0)

    answer = ana.series(NAME).fetch(at(0), at(6), Source(slow), longest_s=2 * 3600, lease_s=60)
    assert answer.coverage == "full"
    assert rival.asked == [], "somebody is fetching that at this very moment"


def test_pages_that_each_take_less_than_the_lease_are_fetched_once(engine: perdure.Engine, clock: StoppedClock) -> None:
    ana = engine.memory("ana")
    rival = Source()

    def paged(window: Window, cursor: int = 0) -> Page:
        clock.move(seconds=40)
        ana.series(NAME).fetch(window.start, window.end, rival, wait_s=0)
        return Page([], cursor + 1 if cursor < 4 else None)

    assert ana.series(NAME).fetch(at(0), at(6), paged, lease_s=60).coverage == "full"
    assert rival.asked == []


def test_a_lease_left_behind_blocks_nobody_after_its_end(engine: perdure.Engine, clock: StoppedClock) -> None:
    ana, source = engine.memory("ana"), Source()
    ana.series(NAME).merge([])
    left = FetchLease(Span(to_us(at(1)), to_us(at(3))), "the dead", to_us(NOON + timedelta(seconds=60)))
    engine._store.write(Owner("default", "ana"), lambda tx: tx.series.put_lease(NAME, left))
    blocked = ana.series(NAME).fetch(at(1), at(3), source, wait_s=0)
    assert (blocked.coverage, source.asked) == ("none", [])
    clock.move(seconds=61)
    assert ana.series(NAME).fetch(at(1), at(3), source, wait_s=0).coverage == "full"
    assert source.asked == [(at(1), at(3))]


def test_an_interrupted_fetcher_interrupts_the_caller(ana: perdure.Memory, clock: StoppedClock) -> None:
    """Ctrl-C is the host's; it is neither swallowed nor taken for a failure of the source."""

    def interrupted(window: Window) -> list[object]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ana.series(NAME).fetch(at(0), at(4), interrupted)
    clock.move(seconds=61)
    assert ana.series(NAME).fetch(at(0), at(4), Source(), wait_s=0).coverage == "full"


HOST = """
import sys
from datetime import UTC, datetime, timedelta
import perdure

url, schema, lease_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
start = datetime(2025, 10, 24, tzinfo=UTC)

def fetcher(window):
    print("fetching", flush=True)
    sys.stdin.readline()
    return [{"id": 1, "timestamp": start.isoformat()}]

with perdure.open(settings=perdure.Settings(url=url, postgres_schema=schema)) as engine:
    series = engine.memory("ana").series("kudos_timeseries")
    print("asking", flush=True)
    answer = series.fetch(start, start + timedelta(hours=4), fetcher, lease_s=lease_s)
    print(answer.coverage, answer.count, answer.fetches, flush=True)
"""


class Host:
    """A process of its own that reads through, and says what it does."""

    def __init__(self, backend: Any, lease_s: float = 60.0) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOST, backend.url, backend.schema, str(lease_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )

    def says(self, seconds: float = 60) -> str | None:
        """Its next line; None if it is silent for that long."""
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], seconds)[0]:
            return None
        return self.process.stdout.readline().decode().rstrip("\n")

    def go_on(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")


@contextmanager
def hosts(*made: Host) -> Iterator[tuple[Host, ...]]:
    try:
        yield made
    finally:
        for host in made:
            host.process.kill()
            host.process.communicate()


@pytest.mark.slow
def test_two_processes_that_want_one_gap_make_one_fetch(backend) -> None:  # type: ignore[no-untyped-def]
    backend.open().close()
    with hosts(Host(backend), Host(backend)) as (one, other):
        assert (one.says(), other.says()) == ("asking", "asking")
        ready, _, _ = select.select([one.process.stdout, other.process.stdout], [], [], 60)
        first, second = (one, other) if one.process.stdout in ready else (other, one)
        assert first.says() == "fetching"
        assert second.says(1.0) is None, "it waits"
        first.go_on()
        assert first.says() == "full 1 1"
        assert second.says() == "full 1 0"


@pytest.mark.slow
def test_a_fetcher_that_was_killed_blocks_nobody_after_its_lease(backend) -> None:  # type: ignore[no-untyped-def]
    engine = backend.open()
    source = Source()
    with hosts(Host(backend, lease_s=1.0)) as (doomed,):
        assert (doomed.says(), doomed.says()) == ("asking", "fetching")
        doomed.process.kill()
        begun = time.monotonic()
        answer = engine.memory("ana").series(NAME).fetch(at(0), at(4), source, wait_s=30)
        assert (answer.coverage, source.asked) == ("full", [(at(0), at(4))])
        assert time.monotonic() - begun < 20


# -- sources that fail, page, or cut off


def test_windows_that_succeeded_are_kept_and_the_answer_names_what_is_missing(ana: perdure.Memory) -> None:
    def fail_in_the_middle(window: Window) -> None:
        if window.start == at(2):
            raise TimeoutError("the source took too long")

    source = Source(fail_in_the_middle)
    answer = ana.series(NAME).fetch(at(0), at(6), source, longest_s=2 * 3600)
    assert source.asked == [(at(0), at(2)), (at(2), at(4)), (at(4), at(6))]
    assert (answer.coverage, answer.needs_api_call, answer.count) == ("partial", True, 8)
    assert edges(answer.gaps) == [(at(2), at(4))]
    [failure] = answer.failures
    assert at(2).isoformat() in failure
    assert "the source took too long" in failure
    mended = Source()
    assert ana.series(NAME).fetch(at(0), at(6), mended, longest_s=2 * 3600).coverage == "full"
    assert mended.asked == [(at(2), at(4))]


@pytest.mark.parametrize("rubbish", [None, 7, "text", {"entries": []}, {"id": 1}])
def test_what_is_no_answer_is_a_failure_and_proves_nothing(ana: perdure.Memory, rubbish: Any) -> None:
    answer = ana.series(NAME).fetch(at(0), at(4), lambda window: rubbish)
    assert (answer.coverage, len(answer.failures)) == ("none", 1)


def test_entries_that_cannot_be_stored_are_named_in_the_answer(ana: perdure.Memory) -> None:
    answer = ana.series(NAME).fetch(
        at(0), at(4), lambda window: [{"id": 1, "timestamp": "soon"}, {"id": 2, "timestamp": at(1)}]
    )
    assert any("soon" in failure for failure in answer.failures)


class Paged(Source):
    """Gives at most three entries at a time, and a cursor for the rest."""

    cursors: list[object]

    def answer(self, window: Window, *cursor: object) -> Page:
        self.cursors = [*getattr(self, "cursors", []), *cursor]
        found = self.inside(window)
        start = 0 if not cursor else int(str(cursor[0]).removeprefix("from "))
        return Page(found[start : start + 3], f"from {start + 3}" if start + 3 < len(found) else None)


def test_pages_are_followed_by_their_cursors(ana: perdure.Memory) -> None:
    source = Paged()
    answer = ana.series(NAME).fetch(at(0), at(4), source)
    assert (answer.coverage, answer.count, answer.fetches) == ("full", 8, 1)
    assert source.cursors == ["from 3", "from 6"]
    assert ana.series(NAME).about().duplicates == 0


def test_a_window_is_credited_only_when_its_last_page_came(ana: perdure.Memory) -> None:
    def break_page_three(_: Window) -> None:
        if len(source.asked) == 3:
            raise ConnectionError("the network is down")

    source = Paged(break_page_three)
    answer = ana.series(NAME).fetch(at(0), at(4), source)
    assert (answer.count, answer.coverage) == (6, "none"), "two pages are kept, but prove nothing yet"
    assert edges(answer.gaps) == [(at(0), at(4))]
    whole = Paged()
    again = ana.series(NAME).fetch(at(0), at(4), whole)
    assert (again.coverage, again.count) == ("full", 8)
    assert len(whole.asked) == 3


def held_or_missing(series: Any, source: Source, start: datetime, end: datetime) -> list[str]:
    """Entries of the source that the series neither holds nor calls missing."""
    held = {entry.id for entry in series.entries()}
    missing = series.gaps(start, end)
    return [
        one["id"]
        for one in source.inside(Window(start, end))
        if one["id"] not in held and not any(gap.start <= datetime.fromisoformat(one["id"]) < gap.end for gap in missing)
    ]


@pytest.mark.parametrize("newest_first", [True, False])
@pytest.mark.parametrize("last_page", ["full", "empty"])
def test_what_was_evicted_between_two_pages_is_not_claimed(ana: perdure.Memory, newest_first: bool, last_page: str) -> None:
    """B-12: pages are merged one by one; the last of them must not claim what an earlier one pushed out."""

    class Ordered(Paged):
        def answer(self, window: Window, *cursor: object) -> Page:
            found = self.inside(window) if newest_first else self.inside(window)[::-1]
            start = 0 if not cursor else int(str(cursor[0]))
            more = start + 3 < len(found) + (3 if last_page == "empty" else 0)
            return Page(found[start : start + 3], start + 3 if more else None, newest_first=newest_first)

    source = Ordered()
    series = ana.series(NAME, max_entries=5)
    answer = series.fetch(at(0), at(8), source)
    assert answer.coverage != "full"
    assert held_or_missing(series, source, at(0), at(8)) == []


def test_what_was_evicted_by_others_between_two_pages_is_not_claimed(ana: perdure.Memory) -> None:
    """B-12: nor what another merge pushed out meanwhile."""
    series = ana.series(NAME, max_entries=8)

    def crowd_out(_: Window) -> None:
        if len(source.asked) == 3:
            series.merge([{"id": f"new{number}", "timestamp": at(30 + number).isoformat()} for number in range(4)])

    source = Paged(crowd_out)
    answer = series.fetch(at(0), at(4), source)
    assert held_or_missing(series, source, at(0), at(4)) == []
    assert answer.coverage != "full"


def test_what_was_cleaned_up_between_two_pages_is_not_claimed(ana: perdure.Memory, clock: StoppedClock) -> None:
    """B-13: nor what a cleanup took away meanwhile."""
    series = ana.series(NAME)
    clock.set(at(8))

    def clean_up(_: Window) -> None:
        if len(source.asked) == 3:
            assert series.cleanup(5 / 24).removed > 0

    class OldestFirst(Paged):
        def inside(self, window: Window) -> list[dict[str, Any]]:
            return super().inside(window)[::-1]

    source = OldestFirst(clean_up)
    series.fetch(at(0), at(8), source)
    assert held_or_missing(series, source, at(0), at(8)) == []


def test_what_was_removed_with_the_series_between_two_pages_is_not_claimed(ana: perdure.Memory) -> None:
    """X-1: nor what went with the whole series."""
    series = ana.series(NAME)

    def remove(_: Window) -> None:
        if len(source.asked) == 3:
            assert series.remove() == 6

    source = Paged(remove)
    series.fetch(at(0), at(4), source)
    assert held_or_missing(series, source, at(0), at(4)) == []


def test_a_cursor_may_be_anything_but_none(ana: perdure.Memory) -> None:
    seen: list[object] = []

    def fetcher(window: Window, *cursor: object) -> Page:
        seen.extend(cursor)
        following: list[object] = ["", 0, {"next": [1]}]
        return Page([], following[len(seen)] if len(seen) < 3 else None)

    assert ana.series(NAME).fetch(at(0), at(4), fetcher).coverage == "full"
    assert seen == ["", 0, {"next": [1]}]


class Truncating(Source):
    """Gives the newest five of what it is asked for, and says that this was not all."""

    def answer(self, window: Window) -> Page:
        found = self.inside(window)
        return Page(found[:5], complete=len(found) <= 5)


def test_a_truncated_answer_is_credited_only_for_what_it_proves(ana: perdure.Memory) -> None:
    """Whether the rest is asked for at once or left to the next call, nothing is claimed that was not delivered."""
    source = Truncating()
    answer = ana.series(NAME).fetch(at(0), at(8), source)
    held = {entry.id for entry in ana.series(NAME).entries()}
    for one in source.inside(Window(at(0), at(8))):
        instant = datetime.fromisoformat(one["timestamp"])
        claimed = not any(gap.start <= instant < gap.end for gap in answer.gaps)
        assert not claimed or one["id"] in held
    for _ in range(10):
        answer = ana.series(NAME).fetch(at(0), at(8), source)
    assert (answer.coverage, answer.count) == ("full", 16), "by and by everything is fetched"
    assert len(source.asked) <= 8


@pytest.mark.parametrize(
    "answer",
    [
        lambda source, window: Page([], complete=False),
        lambda source, window: Page(source.inside(window)[-1:], complete=False),
        lambda source, window: Page(source.inside(Window(at(-9), at(-8))), complete=False),
        lambda source, window: Page([{"id": 1, "timestamp": "soon"}], complete=False),
        lambda source, window: Page(source.inside(window)[:1], complete=False, newest_first=False),
    ],
    ids=["empty", "only the oldest", "outside the window", "unreadable", "oldest first"],
)
def test_a_source_that_never_gives_all_is_not_asked_for_ever(ana: perdure.Memory, answer: Callable[..., Page]) -> None:
    """A truncated answer that proves nothing new leaves a gap in the answer; it is no reason to ask without end."""

    class Stingy(Source):
        def answer(self, window: Window) -> Page:
            return answer(self, window)

    source = Stingy()
    told = ana.series(NAME).fetch(at(0), at(4), source)
    assert len(source.asked) < ENOUGH, "asked again and again"
    assert (told.needs_api_call, told.coverage == "full") == (True, False)


def test_a_range_with_more_entries_than_the_series_keeps_is_not_fetched_for_ever(ana: perdure.Memory) -> None:
    """T-14 through a fetch: what is evicted at once is missing in the answer, and was asked for once."""
    source = Source()
    answer = ana.series(NAME, max_entries=5).fetch(at(0), at(10), source)
    assert len(source.asked) < ENOUGH, "asked again and again"
    assert (answer.coverage, answer.count) == ("partial", 5)
    assert answer.gaps[0].start == at(0)


def test_pages_do_not_run_for_ever(ana: perdure.Memory) -> None:
    """Everything has a bound with a name: a source whose cursors never end is a failure, not a hang."""
    calls = 0

    def endless(window: Window, *cursor: object) -> Page:
        nonlocal calls
        calls += 1
        if calls > 200:
            raise RuntimeError("two hundred pages")
        return Page([], "the same cursor")

    answer = ana.series(NAME).fetch(at(0), at(4), endless)
    assert answer.coverage == "none"
    assert answer.failures


# -- async sources, and the decorator


def test_an_async_fetcher_is_awaited(ana: perdure.Memory) -> None:
    source = Paged()

    async def fetcher(window: Window, *cursor: object) -> Page:
        await asyncio.sleep(0)
        return source(window, *cursor)

    answer = ana.series(NAME).fetch(at(0), at(4), fetcher)
    assert (answer.coverage, answer.count, answer.failures) == ("full", 8, ())

    async def broken(window: Window) -> list[object]:
        await asyncio.sleep(0)
        raise ConnectionError("the network is down")

    assert "the network is down" in ana.series(NAME).fetch(at(4), at(8), broken).failures[0]


def test_an_async_fetcher_works_where_an_event_loop_runs_already(ana: perdure.Memory) -> None:
    """An agent host calls its tools from inside its loop; the fetcher is async because its client is."""
    source = Source()

    async def fetcher(window: Window) -> Any:
        await asyncio.sleep(0)
        return source(window)

    async def host() -> Any:
        return ana.series(NAME).fetch(at(0), at(4), fetcher)

    answer = asyncio.run(host())
    assert (answer.failures, answer.coverage) == ((), "full")


def test_more_awaiting_readers_than_threads_do_not_keep_the_fetcher_from_its_work(backend) -> None:  # type: ignore[no-untyped-def]
    """Single flight through the async face: those who wait must not hold what the one who fetches needs."""
    asked: list[Window] = []

    async def main() -> list[Any]:
        async with await perdure.aio.open(settings=backend.settings) as engine:
            series = engine.memory("ana").series(NAME)

            async def fetcher(window: Window) -> Any:
                asked.append(window)
                await engine.memory("ana").state.save("asked", window.start.isoformat())
                return Source().inside(window)

            return await asyncio.gather(*(series.fetch(at(0), at(4), fetcher, wait_s=3) for _ in range(24)))

    answers = asyncio.run(main())
    assert [(answer.coverage, answer.count, answer.failures) for answer in answers] == [("full", 8, ())] * 24
    assert asked == [Window(at(0), at(4))]


def test_a_tool_function_becomes_one_that_asks_only_for_gaps(ana: perdure.Memory) -> None:
    """The issue: `@ana.series("kudos_timeseries").tool(...)` turns any windowed API function into a gap-aware one."""
    source = Source()

    @ana.series(NAME).tool(longest_s=2 * 3600)
    def get_kudos(start: datetime, end: datetime) -> Any:
        """Kudos between two instants."""
        return source(Window(start, end))

    assert (get_kudos.__name__, get_kudos.__doc__) == ("get_kudos", "Kudos between two instants.")
    first = get_kudos(at(0), at(4))
    assert source.asked == [(at(0), at(2)), (at(2), at(4))]
    assert (first["success"], first["coverage"], first["count"], first["needs_api_call"]) == (True, "full", 8, False)
    assert get_kudos(start=at(0).isoformat(), end=at(4).isoformat())["entries"] == first["entries"]
    assert len(source.asked) == 2
    assert get_kudos(at(3), at(5))["count"] == 4
    assert source.asked[2:] == [(at(4), at(5))]
    assert set(first) == set(ana.tools.query_timeseries_state(NAME, at(0), at(4)))


def test_an_async_tool_function_with_cursors_works_too(ana: perdure.Memory) -> None:
    source = Paged()

    @ana.series(NAME).tool()
    async def get_kudos(start: datetime, end: datetime, *cursor: object) -> Page:
        return source(Window(start, end), *cursor)

    told = get_kudos(at(0), at(4))
    assert (told["coverage"], told["count"], source.cursors) == ("full", 8, ["from 3", "from 6"])


def test_a_tool_function_whose_source_is_down_tells_what_is_missing(ana: perdure.Memory) -> None:
    @ana.series(NAME).tool()
    def get_kudos(start: datetime, end: datetime) -> Any:
        raise ConnectionError("the network is down")

    told = get_kudos(at(0), at(4))
    assert (told["coverage"], told["needs_api_call"], told["entries"]) == ("none", True, [])
    assert "the network is down" in told["failures"][0]


# -- time


def test_the_future_is_never_covered(ana: perdure.Memory, clock: StoppedClock) -> None:
    series, source = ana.series(NAME), Source()
    answer = series.fetch(NOON - HOUR, NOON + HOUR, source)
    assert source.asked == [(NOON - HOUR, NOON)]
    assert (answer.coverage, answer.needs_api_call) == ("partial", False)
    clock.move(hours=1)
    assert series.fetch(NOON - HOUR, NOON + HOUR, source).coverage == "full"
    assert source.asked[1:] == [(NOON, NOON + HOUR)]
    ahead = series.fetch(NOON + DAY, NOON + 2 * DAY, source)
    assert (ahead.coverage, len(source.asked)) == ("none", 2)


def test_a_fetch_counts_from_when_it_was_asked(ana: perdure.Memory, clock: StoppedClock) -> None:
    """While the source was thinking, time went by; what happened meanwhile was not in the question."""
    series = ana.series(NAME)
    series.fetch(NOON - HOUR, NOON + HOUR, Source(lambda _: clock.move(minutes=10) and None))
    source = Source()
    series.fetch(NOON - HOUR, clock.now(), source)
    assert source.asked[0][0] <= NOON


def test_a_clock_that_was_set_back_makes_nothing_known(ana: perdure.Memory, clock: StoppedClock) -> None:
    series, source = ana.series(NAME), Source()
    clock.move(hours=2)
    series.fetch(NOON - HOUR, NOON + HOUR, source)
    clock.move(hours=-2)
    assert series.query(NOON - HOUR, NOON).coverage == "full"
    assert series.query(NOON - HOUR, NOON + HOUR).coverage == "partial", "what the clock calls the future"
    series.fetch(NOON, NOON + HOUR, source)
    assert len(source.asked) == 1


def test_late_arrivals_are_fetched_once_a_window_can_have_them(ana: perdure.Memory, clock: StoppedClock) -> None:
    """X-5: a window fetched before `end + settles_after` is provisional and fetched again; then it is settled."""
    series, source = ana.series(NAME, settles_after_s=2 * 3600), Source()
    first = series.fetch(NOON - 4 * HOUR, NOON, source)
    assert first.coverage == "full"
    clock.move(hours=1)
    again = series.fetch(NOON - 4 * HOUR, NOON, source)
    assert source.asked[1:] == [(NOON - 2 * HOUR, NOON)], "what was older than two hours is settled"
    assert again.coverage == "full"
    clock.move(hours=1)
    series.fetch(NOON - 4 * HOUR, NOON, source)
    assert source.asked[2:] == [(NOON - HOUR, NOON)]
    clock.move(days=1)
    last = series.fetch(NOON - 4 * HOUR, NOON, source)
    assert (last.coverage, last.provisional, len(source.asked)) == ("full", (), 3)


def test_fresh_for_bounds_how_often_a_provisional_window_is_fetched(ana: perdure.Memory, clock: StoppedClock) -> None:
    series, source = ana.series(NAME, settles_after_s=DAY.total_seconds(), fresh_for_s=600), Source()
    for _ in range(12):
        series.fetch(NOON - HOUR, NOON, source)
        clock.move(minutes=5)
    assert len(source.asked) == 4, "at 0, 15, 30 and 45 minutes"
    assert series.query(NOON - HOUR, NOON).provisional != ()


def test_fresh_for_may_be_given_with_a_call(ana: perdure.Memory, clock: StoppedClock) -> None:
    """X-3: "last 24 hours" asked again within the tolerance forces no call; `stale_by` says how old the tip is."""
    series, source = ana.series(NAME), Source()
    series.fetch(NOON - DAY, NOON, source)
    clock.move(minutes=30)
    answer = series.fetch(clock.now() - HOUR, clock.now(), source, fresh_for_s=3600)
    assert (answer.coverage, answer.stale_by_s, len(source.asked)) == ("full", 1800, 1)
    series.fetch(clock.now() - HOUR, clock.now(), source)
    assert source.asked[1:] == [(NOON, NOON + timedelta(minutes=30))]


class Ticking(StoppedClock):
    """A clock that goes on a little whenever it is looked at, as real ones do."""

    def now(self) -> datetime:
        return self.move(milliseconds=3)


@pytest.mark.parametrize(
    ("rules", "end"),
    [({"settles_after_s": 7200}, timedelta(0)), ({}, DAY), ({"settles_after_s": 7200}, DAY)],
    ids=["provisional", "until tomorrow", "both"],
)
def test_while_the_clock_runs_a_call_asks_once(backend, rules: dict[str, Any], end: timedelta) -> None:  # type: ignore[no-untyped-def]
    """A window that is provisional, or a range that ends in the future, is fetched once a call, not for as long as time goes on."""
    clock = Ticking(NOON)
    series, source = backend.open(clock=clock).memory("ana").series(NAME, **rules), Source()
    answer = series.fetch(NOON - HOUR, NOON + end, source)
    assert len(source.asked) == 1
    assert (answer.failures, answer.gaps, answer.needs_api_call) == ((), (), False), "what was asked for has been fetched"
    assert answer.count >= 2
    clock.move(minutes=1)
    series.fetch(NOON - HOUR, NOON + end, source)
    assert len(source.asked) == 2
