"""Time series: merging what was fetched, answering from what is held, and saying exactly what is not."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Any

from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, Owner
from perdure.domain.series import (
    COVERAGE_RULES,
    INFERS,
    CoverageRule,
    CoveredWindow,
    EntryQuery,
    FetchRecord,
    MergePlan,
    MergeResult,
    PastEntry,
    RejectedEntry,
    Series,
    SeriesAnswer,
    SeriesSpec,
)
from perdure.domain.text.rules import are_several, brief, check_choice, check_id, has_more_parts
from perdure.domain.times.instants import from_us, to_us, zone_named
from perdure.domain.times.spans import Span, clipped, span_or_none
from perdure.domain.values import dataclass, replace
from perdure.engine.search.entries import series_entry
from perdure.engine.series import (
    SpanCoverage,
    assumed,
    changed,
    checked,
    in_words,
    judge,
    judge_by_entries,
    marked,
    new_spec,
    plan_merge,
    sightings,
    with_inferred,
    without,
)
from perdure.engine.times.edges import edge_us, span_of
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.index.writes import ZONE
from perdure.services.series.ledger import credit, distrust_the_future

EVERYTHING = (-(2**62), 2**62)
ENTRY_PARTS_MAX = 2_000_000
"""Of an entry that a fingerprint is made of; its size in bytes is looked at later."""
REJECTED_KEPT = 100
ENTRIES_PER_ANSWER = 1_000
PAGE = re.compile(r"(-?\d{1,18}):(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cleanup:
    """What a cleanup took away and kept."""

    success: bool
    removed: int
    kept: int
    cutoff_date: datetime


FRESH_S = 3_600.0
"""How old the newest end of a series may be for an agent (X-3): one that asks about today need not fetch every second."""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """How to answer a query: how many entries from where, by which rule, and how stale a tip is tolerated."""

    limit: int | None = None
    """How many entries at most; without one, 1,000 or what the settings allow."""
    page: str | None = None
    coverage: CoverageRule = "ledger"
    fresh_for_s: float | None = None
    by_first_seen: bool = False


@dataclass(frozen=True, slots=True)
class SeriesService:
    store: Store
    clock: Clock
    limits: Limits
    max_entries: int | None
    rule: CoverageRule = "ledger"
    """By which coverage is judged where a query names no rule."""

    # -- the series itself

    def find(self, owner: Owner, name: str) -> Series | None:
        check_name(name)
        return self.store.read(owner, lambda view: view.series.find(name))

    def get(self, owner: Owner, name: str) -> Series:
        held = self.find(owner, name)
        if held is None:
            raise NotFound(f"there is no series {brief(name, 80)}; merge something into it first")
        return held

    def agreed(self, owner: Owner, name: str, stated: Mapping[str, Any]) -> Series | None:
        """The series if it is held, with the stated rules; other rules are a `Conflict`."""
        held = self.find(owner, name)
        if held is not None:
            _check_agreement(held, stated)
        return held

    def list_series(self, owner: Owner, *, limit: int) -> list[Series]:
        rows = self.limits.page(limit)
        return self.store.read(owner, lambda view: view.series.list_series(after=None, limit=rows))

    def configure(self, owner: Owner, name: str, changes: Mapping[str, Any]) -> Series:
        """Make the series, or change its rules explicitly. Entries held are not read anew."""
        check_name(name)
        now = self.clock.now()

        def work(tx: Tx) -> Series:
            held = tx.series.find(name)
            spec = new_spec(changes, self.max_entries) if held is None else checked(replace(held.spec, **dict(changes)))
            if held is None:
                series = Series(name, spec, now, now, incarnation=self.clock.new_id())
                tx.series.create(series)
            else:
                series = replace(held, spec=spec)
                tx.series.put(series)
            tx.index.put([series_entry(series, ZONE)], now=now)
            return series

        checked(new_spec(changes, self.max_entries))
        return self.store.write(owner, work)

    def remove(self, owner: Owner, name: str) -> int:
        """Delete the series with its entries and its ledger."""
        check_name(name)
        now = self.clock.now()

        def work(tx: Tx) -> int:
            tx.index.remove("series", [name], now=now)
            return tx.series.remove(name)

        return self.store.write(owner, work)

    # -- merging

    def window(self, owner: Owner, name: str, ends: object, stated: Mapping[str, Any]) -> Span:
        """What a caller says was asked for: a start, and an end that is not included, as times or as words."""
        zone = zone_named(stated.get("zone", "UTC"))
        if not isinstance(ends, tuple | list) or not all(
            isinstance(edge, datetime) and edge.tzinfo is not None for edge in ends
        ):
            # Only words, or a time without a zone, need to know what the series says of such.
            held = self.find(owner, name)
            zone = zone if held is None else zone_named(held.spec.zone)
        return span_of(ends, to_us(self.clock.now()), zone)

    def merge(
        self,
        owner: Owner,
        name: str,
        entries: Iterable[object],
        *,
        fetch: FetchRecord,
        stated: Mapping[str, Any],
        strict: bool = False,
    ) -> MergeResult:
        """Merge a batch and note what it proves, in one transaction that costs what the batch costs."""
        check_name(name)
        batch = self._bounded(entries)
        for flag, given in (("complete", fetch.complete), ("newest_first", fetch.newest_first), ("strict", strict)):
            if not isinstance(given, bool):
                raise InvalidInput(f"`{flag}` = {brief(given)} must be True or False")
        if fetch.infer not in INFERS:
            raise InvalidInput(f"`infer` = {brief(fetch.infer)} is unknown; use {' or '.join(INFERS)}")
        calls = fetch.api_calls
        if isinstance(calls, bool) or not isinstance(calls, int) or not 0 <= calls <= 10**9:
            raise InvalidInput(f"`api_calls` = {brief(calls)} must be a whole number from 0 on")
        now = self.clock.now()
        now_us = to_us(now)
        # An id of ours comes once only; a caller's may come again, with the same batch or, by mistake, with another.
        mark = _fingerprint(batch, fetch) if fetch.request else ""
        request = check_id(fetch.request or self.clock.new_id(), "request", bytes_max=ID_BYTES_MAX)
        fetch = replace(fetch, fetched_us=fetch.fetched_us or now_us, request=request)

        def work(tx: Tx) -> MergeResult:
            held = tx.series.find(name)
            series = self._agreed_or_new(held, name, stated, now)
            if series.last_request == fetch.request:
                return merge_result(series, len(batch), mark)  # done before; only the answer was lost
            good, bad = sightings(batch, series.spec, zone_named(series.spec.zone), bytes_max=self.limits.entry_bytes_max)
            if strict and bad:
                return MergeResult(
                    success=False, added=0, duplicates=0, updated=0, rejected=tuple(bad), total_count=series.count
                )
            if held is None:
                tx.series.create(series)
                tx.index.put([series_entry(series, ZONE)], now=now)
            plan = plan_merge(good, tx.series.find_entries(name, list({one.id for one in good})), now_us)
            series = self._book(series, plan, fetch, now)
            tx.series.put_entries(name, plan.entries)
            tx.series.add_past(name, plan.past, seen_us=now_us)
            distrust_the_future(tx, name, now_us)
            # An answer of which nothing can be stored proves nothing.
            proof = replace(fetch, window=None) if batch and not good else fetch
            covered, fresh = credit(tx, series, proof, [one.at_us for one in good], now_us)
            if covered is not None:
                marks = without(series.inferred, covered) if fetch.window else with_inferred(series.inferred, fresh)
                series = replace(series, inferred=marks)
            series, evicted = _evict(tx, series)
            if covered is not None:
                covered = span_or_none(max(covered.start_us, series.floor_us), covered.end_us)
            done = MergeResult(
                success=True,
                added=plan.added,
                duplicates=plan.duplicates,
                updated=plan.updated,
                rejected=tuple(bad),
                total_count=series.count,
                evicted=evicted,
                covered=covered,
                inferred=covered is not None and fetch.window is None,
            )
            tx.series.put(replace(series, last_request=fetch.request, last_result=merge_text(done, len(batch), mark)))
            return done

        return self.store.write(owner, work)

    def _bounded(self, entries: Iterable[object]) -> list[object]:
        if not are_several(entries):
            raise InvalidInput(f"`entries` is a `{type(entries).__name__}`; pass a list of objects")
        batch: list[object] = []
        for entry in entries:
            if len(batch) >= self.limits.batch_entries_max:
                raise LimitExceeded(
                    f"the batch has more than `batch_entries_max` = {self.limits.batch_entries_max} entries; split it"
                )
            batch.append(entry)
        return batch

    def _agreed_or_new(self, held: Series | None, name: str, stated: Mapping[str, Any], now: datetime) -> Series:
        if held is None:
            return Series(name, new_spec(stated, self.max_entries), now, now, incarnation=self.clock.new_id())
        _check_agreement(held, stated)
        return held

    def _book(self, series: Series, plan: MergePlan, fetch: FetchRecord, now: datetime) -> Series:
        return replace(
            series,
            last_updated=now,
            count=series.count + plan.added,
            api_calls=series.api_calls + fetch.api_calls,
            fetched=series.fetched + plan.added + plan.duplicates,
            duplicates=series.duplicates + plan.duplicates,
        )

    # -- asking

    def query(
        self,
        owner: Owner,
        name: str,
        start: object,
        end: object,
        options: QueryOptions,
        *,
        stated: Mapping[str, Any] | None = None,
        now_us: int | None = None,
    ) -> SeriesAnswer:
        """Entries between two instants, both included, and what is covered of them."""
        check_name(name)
        most = min(ENTRIES_PER_ANSWER, self.limits.page_rows_max) if options.limit is None else self.limits.page(options.limit)
        check_choice(options.coverage, "coverage", COVERAGE_RULES)
        rule = self.rule if options.coverage == "ledger" else options.coverage
        moment = to_us(self.clock.now()) if now_us is None else now_us

        def work(view: View) -> SeriesAnswer:
            series = view.series.find(name)
            if series is not None:
                _check_agreement(series, stated or {})
            return _answer(view, name, series, (start, end), replace(options, limit=most, coverage=rule), moment)

        return self.store.read(owner, work)

    def gaps(self, owner: Owner, name: str, start: object, end: object) -> tuple[Span, ...]:
        """What would have to be fetched to cover the range. Entries are not looked at."""
        return self.coverage(owner, name, start, end).gaps

    def coverage(self, owner: Owner, name: str, start: object, end: object) -> SpanCoverage:
        """What the ledger knows of the range. Entries are not looked at."""
        check_name(name)
        now_us = to_us(self.clock.now())

        def work(view: View) -> SpanCoverage:
            series = view.series.find(name)
            spec = SeriesSpec() if series is None else series.spec
            *_, wanted = wanted_span(start, end, zone_named(spec.zone), now_us)
            return judge(wanted, view.series.windows(name, wanted), spec, now_us, view.series.last_window(name))

        return self.store.read(owner, work)

    def windows(self, owner: Owner, name: str, span: Span) -> list[CoveredWindow]:
        """The covered windows that reach into the span."""
        check_name(name)
        series, found = self.store.read(owner, lambda view: (view.series.find(name), view.series.windows(name, span)))
        inside = [window for window in found if any(clipped([window.span], span))]
        return marked(inside, () if series is None else series.inferred)

    def cleanup(self, owner: Owner, name: str, keep_days: float, stated: Mapping[str, Any] | None = None) -> Cleanup:
        """Remove entries older than `keep_days`, and the claim to know that time. The instant of the cutoff is kept."""
        check_name(name)
        if isinstance(keep_days, bool) or not isinstance(keep_days, int | float) or not 0 <= keep_days <= 10**6:
            raise InvalidInput(f"`keep_days` = {brief(keep_days)} must be a number of days from 0 on")
        now = self.clock.now()
        cutoff = now - timedelta(days=min(keep_days, (now - from_us(-(2**55))).days))

        def work(tx: Tx) -> Cleanup:
            series = tx.series.find(name)
            if series is None:
                return Cleanup(True, 0, 0, cutoff)
            _check_agreement(series, stated or {})
            removed = tx.series.remove_before(name, to_us(cutoff))
            tx.series.trim_windows(name, to_us(cutoff))
            series = _trimmed(series, removed, to_us(cutoff))
            tx.series.put(series)
            return Cleanup(True, removed, series.count, cutoff)

        return self.store.write(owner, work)

    def history(self, owner: Owner, name: str, entry_id: str, *, limit: int) -> list[PastEntry]:
        check_name(name)
        check_id(entry_id, "id", bytes_max=ID_BYTES_MAX)
        rows = self.limits.page(limit)
        return self.store.read(owner, lambda view: view.series.history(name, entry_id, limit=rows))


def merge_text(done: MergeResult, size: int, mark: str) -> str:
    """A merge's answer as it is kept, so that a repeated request gets it again. Of many rejections the first are kept."""
    rejected = [[one.index, one.reason] for one in done.rejected[:REJECTED_KEPT]]
    covered = None if done.covered is None else [done.covered.start_us, done.covered.end_us, done.inferred]
    return json.dumps(
        [size, done.added, done.duplicates, done.updated, rejected, done.total_count, done.evicted, mark, covered]
    )


def merge_result(series: Series, size: int, mark: str) -> MergeResult:
    """The kept answer. Another batch or window under the same id is another merge, and would be lost."""
    held_size, added, duplicates, updated, rejected, total, evicted, *marks = json.loads(series.last_result)
    # Answers that were kept before there were fingerprints have none, nor what they covered.
    if held_size != size or (marks and marks[0] != mark):
        raise Conflict(
            f"request {brief(series.last_request, 80)} has merged other entries already, or for another window "
            f"({held_size} entries then, {size} now); give each merge its own id"
        )
    covered = marks[1] if len(marks) > 1 else None
    return MergeResult(
        success=True,
        added=added,
        duplicates=duplicates,
        updated=updated,
        rejected=tuple(RejectedEntry(*one) for one in rejected),
        total_count=total,
        evicted=evicted,
        covered=None if covered is None else Span(covered[0], covered[1]),
        inferred=covered is not None and covered[2],
    )


def _fingerprint(batch: Sequence[object], fetch: FetchRecord) -> str:
    """What tells one merge from another: its entries, and what they are said to prove. The order of fields does not."""
    window = None if fetch.window is None else (fetch.window.start_us, fetch.window.end_us)
    told = hashlib.sha256(json.dumps([window, fetch.complete, fetch.newest_first, fetch.infer, fetch.api_calls]).encode())
    for entry in batch:
        told.update(_canonical(entry).encode() + b"\n")
    return told.hexdigest()[:32]


def _canonical(entry: object) -> str:
    if has_more_parts(entry, ENTRY_PARTS_MAX):
        return type(entry).__name__  # too large for any entry: it is rejected, whatever it is
    try:
        return json.dumps(entry, sort_keys=True, default=lambda one: type(one).__name__)
    except (TypeError, ValueError, RecursionError):
        return type(entry).__name__  # no JSON: it is rejected, whatever it is


def check_name(name: str) -> None:
    check_id(name, "series", bytes_max=ID_BYTES_MAX)


def _check_agreement(held: Series, stated: Mapping[str, Any]) -> None:
    if different := changed(held.spec, stated):
        field, ours, theirs = different[0]
        raise Conflict(
            f"series {brief(held.name, 80)} has `{field}` = {brief(ours, 60)}, fixed at first use, not {brief(theirs, 60)}; "
            "leave it out, or change it with `configure`"
        )


def _evict(tx: Tx, series: Series) -> tuple[Series, int]:
    """Hold the series to its bound: the oldest go, and with them the claim to know their time."""
    most = series.spec.max_entries
    over = 0 if most is None else max(0, series.count - most)
    if not over:
        return series, 0
    newest_gone = tx.series.remove_oldest(series.name, over)
    if newest_gone is not None:
        tx.series.trim_windows(series.name, newest_gone + 1)
    return _trimmed(series, over, series.floor_us if newest_gone is None else newest_gone + 1), over


def _trimmed(series: Series, removed: int, floor_us: int) -> Series:
    return replace(
        series,
        count=series.count - removed,
        removed=series.removed + removed,
        trims=series.trims + 1,
        floor_us=max(series.floor_us, floor_us),
    )


def wanted_span(start: object, end: object, zone: tzinfo, now_us: int) -> tuple[int, int, Span]:
    """Both ends as instants, and the half-open span that the ledger is asked about."""
    start_us = edge_us(start, now_us, zone, "`start_time`", "first")
    end_us = edge_us(end, now_us, zone, "`end_time`", "last")
    if start_us > end_us:
        raise InvalidInput(
            f"`start_time` {from_us(start_us).isoformat()} is after `end_time` {from_us(end_us).isoformat()}; swap them"
        )
    # Of a single instant, the ledger is asked about just that one.
    return start_us, end_us, Span(start_us, max(end_us, start_us + 1))


def _answer(
    view: View, name: str, series: Series | None, ends: tuple[object, object], options: QueryOptions, now_us: int
) -> SeriesAnswer:
    spec = SeriesSpec() if series is None else series.spec
    if options.fresh_for_s is not None:
        checked(replace(spec, fresh_for_s=options.fresh_for_s))
    start_us, end_us, wanted = wanted_span(*ends, zone_named(spec.zone), now_us)
    limit = options.limit or ENTRIES_PER_ANSWER
    query = EntryQuery(name, start_us, end_us, limit + 1, _cursor(options.page), by_first_seen=options.by_first_seen)
    entries = view.series.entries(query)
    count = len(entries)
    if count > limit or options.page is not None:
        count = view.series.count(name, start_us, end_us, by_first_seen=options.by_first_seen)
    oldest, newest = view.series.extremes(name)
    windows = view.series.windows(name, wanted)
    if options.coverage == "ledger":
        verdict = judge(wanted, windows, spec, now_us, view.series.last_window(name), options.fresh_for_s)
    else:
        verdict = judge_by_entries(wanted, oldest, newest, count, options.coverage, now_us)
    anything = series is not None and (oldest is not None or bool(windows))
    page, more = entries[:limit], len(entries) > limit
    inferred = () if series is None or options.coverage != "ledger" else assumed(series.inferred, verdict.held)
    return SeriesAnswer(
        entries=tuple(page),
        count=count,
        coverage=verdict.coverage,
        gaps=verdict.gaps,
        provisional=verdict.provisional,
        inferred=inferred,
        stale_by_s=verdict.stale_us / 1_000_000,
        future=verdict.future,
        needs_api_call=bool(verdict.gaps),
        reason=in_words(verdict, count=count, anything=anything, wanted=wanted)
        + (INFERRED if inferred else "")
        + (_more_in_words(len(page), count) if more else ""),
        oldest_us=oldest,
        newest_us=newest,
        wanted=wanted,
        next_page=f"{page[-1].first_seen_us if options.by_first_seen else page[-1].at_us}:{page[-1].id}" if more else None,
    )


INFERRED = "; a part counts as covered only because it lies between entries that came together"


def _more_in_words(shown: int, count: int) -> str:
    return f"; {shown} of {count} entries are here: pass `next_page` as `page`, over HTTP as `cursor`, for the next ones"


def _cursor(page: str | None) -> tuple[int, str] | None:
    if page is None:
        return None
    found = PAGE.fullmatch(page) if isinstance(page, str) else None
    if found is None:
        raise InvalidInput(f"`page` = {brief(page, 60)} is no page; pass on `next_page` as it came")
    return int(found[1]), check_id(found[2], "page", bytes_max=ID_BYTES_MAX)
