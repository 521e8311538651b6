"""Random histories of one series against a model that is a set of seconds: nothing is ever claimed that is not held.

Merges of whole and cut-off answers, empty answers, fetches through the ledger, evictions, cleanups, a clock that goes
forward and back, restarts. The model knows which whole seconds were asked for and answered and have neither been evicted nor
cleaned up since; a query may call exactly those held, and only as far as they are not in the future.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import perdure
import pg
from perdure.app import Engine
from perdure.domain.series import SeriesAnswer
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.services.series.fetch import Page, Window
from perdure.testing import StoppedClock

ZERO = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
LAST = 30
CAP = 4
NAME = "kudos_timeseries"
SECOND = 1_000_000

seconds = st.integers(0, LAST)
ranges = st.lists(seconds, min_size=2, max_size=2, unique=True).map(lambda ends: (min(ends), max(ends)))
names = st.sampled_from("abcdefghijklmnop")
batches = st.lists(st.tuples(names, seconds), max_size=5)


def at(second: float) -> datetime:
    return ZERO + timedelta(seconds=second)


def second(moment: datetime) -> float:
    return (moment - ZERO) / timedelta(seconds=1)


def inside(instant: int, spans: Iterable[Span]) -> bool:
    us = to_us(at(instant))
    return any(span.start_us <= us < span.end_us for span in spans)


@dataclass
class Model:
    """What a series is, in the plainest words."""

    known: set[int]
    """Seconds that were fetched and not thrown away since."""
    entries: dict[str, tuple[int, int]]
    """By id: its second and its version."""
    fetched: int = 0
    duplicates: int = 0
    removed: int = 0
    newest_gone: int = -1
    """The second of the newest entry that the latest eviction took."""

    def distrust(self, now: int) -> None:
        """A clock that was ahead has recorded what had not happened; the next merge after its correction takes that back."""
        self.known = {instant for instant in self.known if instant < now}

    def merge(self, batch: Iterable[tuple[str, int, int]], now: int) -> None:
        self.distrust(now)
        for name, instant, version in batch:
            self.fetched += 1
            held = self.entries.get(name)
            if held is not None:
                self.duplicates += 1
            if held is None or instant >= held[0]:
                self.entries[name] = (instant, version)

    def credit(self, start: int, end: int, now: int) -> None:
        self.distrust(now)
        self.known |= set(range(start, min(end, now)))

    def evict(self) -> int:
        """The oldest go; what is as old as they are, or older, is not known any more."""
        over = len(self.entries) - CAP
        self.newest_gone = -1
        if over > 0:
            for name in sorted(self.entries, key=lambda one: (self.entries[one][0], one))[:over]:
                self.newest_gone = self.entries.pop(name)[0]
            self.known = {instant for instant in self.known if instant > self.newest_gone}
            self.removed += over
        return max(0, over)

    def clean(self, cutoff: int) -> int:
        old = [name for name, (instant, _) in self.entries.items() if instant < cutoff]
        for name in old:
            del self.entries[name]
        self.known = {instant for instant in self.known if instant >= cutoff}
        self.removed += len(old)
        return len(old)


class Fetches(RuleBasedStateMachine):
    """Each rule does something to the series and to the model."""

    open_subject: Callable[[StoppedClock, bool], Engine]

    @initialize(now=st.integers(0, LAST))
    def start(self, now: int) -> None:
        self.clock = StoppedClock(at(now))
        self.engine = type(self).open_subject(self.clock, True)
        self.model = Model(set(), {})
        self.versions = 0

    @property
    def now(self) -> int:
        return int(second(self.clock.now()))

    @property
    def series(self) -> Any:
        return self.engine.memory("ana").series(NAME, max_entries=CAP)

    def raw(self, batch: Iterable[tuple[str, int]]) -> tuple[list[tuple[str, int, int]], list[dict[str, Any]]]:
        """A batch for the model and for the series; every sighting has a body of its own."""
        numbered = []
        for name, instant in batch:
            self.versions += 1
            numbered.append((name, instant, self.versions))
        return numbered, [{"id": name, "timestamp": at(one).isoformat(), "v": version} for name, one, version in numbered]

    # -- what happens to a series

    @rule(batch=batches, window=ranges)
    def a_whole_answer(self, batch: list[tuple[str, int]], window: tuple[int, int]) -> None:
        """Entries need not lie inside the window; only the window is proven."""
        numbered, raw = self.raw(batch)
        done = self.series.merge(raw, window=(at(window[0]), at(window[1])))
        self.model.merge(numbered, self.now)
        self.model.credit(*window, self.now)
        assert (done.success, done.evicted) == (True, self.model.evict())

    @rule(window=ranges)
    def an_empty_answer(self, window: tuple[int, int]) -> None:
        self.series.merge([], window=(at(window[0]), at(window[1])))
        self.model.credit(*window, self.now)

    @rule(batch=batches, window=ranges, newest_first=st.booleans())
    def a_cut_off_answer(self, batch: list[tuple[str, int]], window: tuple[int, int], newest_first: bool) -> None:
        numbered, raw = self.raw(batch)
        done = self.series.merge(raw, window=(at(window[0]), at(window[1])), complete=False, newest_first=newest_first)
        delivered = [instant for _, instant in batch if window[0] <= instant < min(window[1], self.now)]
        self.model.merge(numbered, self.now)
        if delivered and newest_first:
            self.model.credit(min(delivered) + 1, window[1], self.now)
        elif delivered:
            self.model.credit(window[0], max(delivered), self.now)
        assert done.evicted == self.model.evict()

    @rule(batch=batches)
    def an_answer_to_nobody_knows_what(self, batch: list[tuple[str, int]]) -> None:
        numbered, raw = self.raw(batch)
        self.series.merge(raw)
        self.model.merge(numbered, self.now)
        self.model.evict()

    @rule(batch=batches, window=ranges)
    def a_strict_merge_with_a_bad_entry(self, batch: list[tuple[str, int]], window: tuple[int, int]) -> None:
        _, raw = self.raw(batch)
        done = self.series.merge([*raw, {"id": "bad"}], window=(at(window[0]), at(window[1])), strict=True)
        assert (done.success, done.added, len(done.rejected)) == (False, 0, 1)

    @rule(
        wanted=ranges | st.just((0, LAST)),
        source=st.dictionaries(names, seconds, max_size=9),
        fails=st.booleans(),
        longest=st.none() | st.integers(2, 9),
        size=st.sampled_from([1, 2, 99]),
    )
    def a_fetch(self, wanted: tuple[int, int], source: dict[str, int], fails: bool, longest: int | None, size: int) -> None:
        """Only what is unknown is asked for, and no second twice, however it ends and in however many pages it comes."""
        asked: set[int] = set()
        wrong: list[str] = []
        gone: list[int] = []
        pushed_out: list[int] = []

        def first(window: Window) -> Page:
            start, end = second(window.start), second(window.end)
            whole = {instant for instant in range(LAST + 1) if start <= instant < end}
            # An assertion here would be taken for a failure of the source.
            wrong.extend(f"asked twice in one call: {window}" for _ in whole & asked)
            wrong.extend(f"asked for what is held: {window}" for _ in whole & self.model.known)
            wrong.extend([f"asked for the future: {window}"] if end > self.now else [])
            asked.update(whole)
            gone.clear()
            found = sorted((instant, name) for name, instant in source.items() if instant in whole)[::-1]
            return page(whole, [(name, instant) for instant, name in found])

        def page(whole: set[int], left: list[tuple[str, int]]) -> Page:
            if fails and len(asked) > 4:
                raise ConnectionError("the network is down")
            numbered, raw = self.raw(left[:size])
            self.model.merge(numbered, self.now)
            more = left[size:]
            if not more:
                self.model.known |= whole
            self.model.evict()
            gone.append(self.model.newest_gone)
            pushed_out.append(self.model.newest_gone)
            # What any of the pages pushed out is not known, whichever page completes the window.
            self.model.known -= {instant for instant in whole if instant <= max(gone)}
            return Page(raw, (whole, more) if more else None)

        def fetcher(window: Window, cursor: Any = None) -> Page:
            return first(window) if cursor is None else page(*cursor)

        answer = self.series.fetch(at(wanted[0]), at(wanted[1]), fetcher, longest_s=longest)
        assert wrong == []
        if max(pushed_out, default=-1) >= 0 and size < 99:
            # Of a window whose pages pushed entries out, less may be claimed than could be; never more.
            gaps = self.series.gaps(at(0), at(LAST))
            self.model.known -= {one for one in asked & self.model.known if one < self.now and inside(one, gaps)}
        self.check(wanted, answer)

    @rule(keep=st.integers(0, LAST))
    def a_cleanup(self, keep: int) -> None:
        done = self.series.cleanup(keep / 86_400)
        assert done.removed == self.model.clean(self.now - keep)

    @rule(by=st.integers(-15, 15))
    def time_passes_or_is_corrected(self, by: int) -> None:
        self.clock.move(seconds=by)

    @rule()
    def a_restart(self) -> None:
        self.engine.close()
        self.engine = type(self).open_subject(self.clock, False)

    # -- what must hold

    @rule(wanted=ranges)
    def a_question(self, wanted: tuple[int, int]) -> None:
        self.check(wanted, self.series.query(at(wanted[0]), at(wanted[1])))

    @rule(instant=seconds)
    def a_question_about_one_instant(self, instant: int) -> None:
        answer = self.series.query(at(instant), at(instant))
        known = instant in self.model.known and instant < self.now
        assert answer.coverage == ("full" if known else "none")

    @invariant()
    def nothing_is_claimed_that_is_not_held(self) -> None:
        if hasattr(self, "engine"):
            self.check((0, LAST), self.series.query(at(0), at(LAST)))

    @invariant()
    def the_books_balance(self) -> None:
        if not hasattr(self, "engine") or self.engine.memory("ana").series.list() == []:
            return
        about = self.series.about()
        model = self.model
        assert (about.fetched, about.duplicates, about.removed) == (model.fetched, model.duplicates, model.removed)
        assert about.count == model.fetched - model.duplicates - model.removed == len(model.entries) == self.series.count()
        held = {
            one.id: (int(second(ZERO) + (one.at_us - to_us(ZERO)) // SECOND), one.body["v"]) for one in self.series.entries()
        }
        assert held == model.entries

    def check(self, wanted: tuple[int, int], answer: SeriesAnswer) -> None:
        """Every second of the wanted range is held, missing or still to come, and the answer says which."""
        known, missing, future = set(), set(), set()
        for instant in range(*wanted):
            gap, ahead = inside(instant, answer.gaps), instant >= self.now
            assert not (gap and ahead), "nobody can fetch the future"
            (future if ahead else missing if gap else known).add(instant)
        assert known == {instant for instant in self.model.known if wanted[0] <= instant < min(wanted[1], self.now)}
        assert answer.needs_api_call == bool(answer.gaps)
        if answer.coverage == "full":
            assert known == set(range(*wanted))
        elif answer.coverage == "none":
            assert not known
        # A gap may be shorter than a second: the very instant of what was evicted or cut off.
        assert (answer.coverage == "full") == (not answer.gaps and not future)
        assert answer.count == sum(wanted[0] <= instant <= wanted[1] for instant, _ in self.model.entries.values())

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            assert self.engine.verify().findings == ()
            self.engine.close()


def run(open_subject: Callable[[StoppedClock, bool], Engine], examples: int) -> None:
    machine = type("Fetches", (Fetches,), {"open_subject": staticmethod(open_subject)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        ),
    )


def test_sqlite_never_claims_what_it_does_not_hold(tmp_path: Path) -> None:
    def open_subject(clock: StoppedClock, fresh: bool) -> Engine:
        folder = tmp_path / "store"
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        return perdure.open(settings=perdure.Settings(url=f"sqlite:///{folder}/perdure.db", durability="normal"), clock=clock)

    run(open_subject, examples=80)


# A thread of the connection pool rolls dice now and then, which Hypothesis takes for a strategy's doing.
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")
@pytest.mark.slow
def test_postgres_never_claims_what_it_does_not_hold(postgres_url: str) -> None:
    with pg.fresh_schema(postgres_url) as schema:
        base = perdure.Settings(url=postgres_url, postgres_schema=schema)

        def open_subject(clock: StoppedClock, fresh: bool) -> Engine:
            engine = perdure.open(settings=replace(base), clock=clock)
            if fresh:
                engine.memory("ana").series(NAME).remove()
            return engine

        run(open_subject, examples=20)
