"""`ana.series`: the accumulating series of a user, and what is known of their coverage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from perdure.domain.scope import Scope
from perdure.domain.series import (
    CoverageRule,
    CoveredWindow,
    Entry,
    FetchRecord,
    Infer,
    MergeResult,
    PastEntry,
    Series,
    SeriesAnswer,
)
from perdure.domain.text.rules import Json, check_choice
from perdure.domain.times.instants import iso
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass
from perdure.handles import arguments as arg
from perdure.handles.operation import UNSET, Arg, Handle, operation, stated, unlogged
from perdure.services.access.log import DELETE, UPSERT, AccessLog
from perdure.services.access.mentions import Mention
from perdure.services.series.aggregates import Aggregates, Period, as_csv, as_jsonl, flat, frame
from perdure.services.series.fetch import LEASE_S, Fetcher, FetchOptions, ReadThrough, Window
from perdure.services.series.series import Cleanup, QueryOptions, SeriesService, check_name

FromStart = Annotated[object, Arg("Start of the range; the first entry, if left out.")]
UpToEnd = Annotated[object, Arg("End of the range, included; the last entry, if left out.")]
Field = Annotated[str, arg.an_id("The field.", "athlete")]
StaleFor = Annotated[float | None, Arg("Seconds until the newest end counts as stale.", ge=0, le=arg.SECONDS_MAX)]
JoinGaps = Annotated[float, Arg("Fetch gaps closer than this many seconds with one request.", ge=0)]
Longest = Annotated[float | None, Arg("The longest window that the source answers, in seconds.", ge=0.001)]
Lease = Annotated[float, Arg("Seconds after which a fetch that died is abandoned.", ge=0.001)]
Wait = Annotated[float, Arg("Seconds to wait for a fetch that is under way.", ge=0)]
Entries = Annotated[int | None, Arg("Entries at most.", ge=1)]


@dataclass(frozen=True, slots=True)
class SeriesServices:
    """What a series handle calls."""

    series: SeriesService
    aggregates: Aggregates
    readthrough: ReadThrough


class UserSeries(Handle, namespace="series"):
    """The series of one user: `ana.series("runs")` opens one."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, services: SeriesServices, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = services

    @unlogged("it opens a handle, whose calls are logged")
    def __call__(
        self,
        name: str,
        *,
        id_field: arg.IdField = UNSET,
        timestamp_field: arg.TimestampField = UNSET,
        id_template: arg.IdTemplate = UNSET,
        zone: arg.Zone = UNSET,
        settles_after_s: arg.SettlesAfter = UNSET,
        fresh_for_s: arg.FreshFor = UNSET,
        max_entries: arg.MaxEntries = UNSET,
        keep_days: arg.KeepDays = UNSET,
        description: arg.Description = UNSET,
    ) -> SeriesHandle:
        """A time series of this user, shared by their agents and channels. Rules are fixed at its first use."""
        check_name(name)
        rules = stated(
            id_field=id_field,
            timestamp_field=timestamp_field,
            id_template=id_template,
            zone=zone,
            settles_after_s=settles_after_s,
            fresh_for_s=fresh_for_s,
            max_entries=max_entries,
            keep_days=keep_days,
            description=description,
        )
        return SeriesHandle(self.scope, name, rules, self._do, self._log)

    @operation("read")
    def list(self, limit: arg.Limit = 100) -> Sequence[Series]:
        """List series with their counts, by name."""
        return self._do.series.list_series(self.scope.owner, limit=limit)


class SeriesHandle(Handle, namespace="series"):
    """One series by name. It comes into being with its first merge or fetch."""

    __slots__ = ("_do", "_rules", "name")

    def __init__(
        self, scope: Scope, name: str, rules: Mapping[str, Any], services: SeriesServices, log: AccessLog | None = None
    ) -> None:
        super().__init__(scope, log)
        self.name = name
        self._rules = dict(rules)
        self._do = services

    # -- the series itself

    @operation("read")
    def about(self) -> Series:
        """Its rules and its counts; `NotFound` before the first merge."""
        return self._do.series.get(self.scope.owner, self.name)

    @operation("change")
    def configure(
        self,
        *,
        id_field: arg.IdField = UNSET,
        timestamp_field: arg.TimestampField = UNSET,
        id_template: arg.IdTemplate = UNSET,
        zone: arg.Zone = UNSET,
        settles_after_s: arg.SettlesAfter = UNSET,
        fresh_for_s: arg.FreshFor = UNSET,
        max_entries: arg.MaxEntries = UNSET,
        keep_days: arg.KeepDays = UNSET,
        description: arg.Description = UNSET,
    ) -> Series:
        """Make a series with these rules, or change them. Entries that are held keep their ids and instants."""
        rules = stated(
            id_field=id_field,
            timestamp_field=timestamp_field,
            id_template=id_template,
            zone=zone,
            settles_after_s=settles_after_s,
            fresh_for_s=fresh_for_s,
            max_entries=max_entries,
            keep_days=keep_days,
            description=description,
        )
        return self._do.series.configure(self.scope.owner, self.name, rules)

    @operation("erase", span=DELETE)
    def remove(self) -> int:
        """Delete the series; returns how many entries it had."""
        if self._noted is not None:
            self._note(*self._itself())
        return self._do.series.remove(self.scope.owner, self.name)

    # -- putting in

    @operation("change", span=UPSERT)
    def merge(
        self,
        entries: Annotated[Iterable[object], Arg("What was fetched.", max_length=100_000)],
        *,
        window: Annotated[tuple[object, object] | None, Arg("What was asked for, start and end: it counts as covered.")] = None,
        complete: Annotated[bool, Arg("False: the answer was cut off.")] = True,
        newest_first: Annotated[bool, Arg("The order in which it came.")] = True,
        infer: Annotated[Infer, Arg("`batch_span`: without a window, the time between the entries is covered.")] = "none",
        strict: Annotated[bool, Arg("Store none if one is bad.")] = False,
        api_calls: Annotated[int, Arg("How many API calls this took, for the statistics.", ge=0, le=10**9)] = 1,
        request: Annotated[str | None, arg.an_id("Your own id: repeating the merge changes nothing.")] = None,
    ) -> MergeResult:
        """Merge what was fetched, by id.

        `window` is what was asked for, from start up to, not including, end: it is recorded as covered, even when nothing
        came. `complete=False` says that the answer was cut off: then only what it proves is recorded. Without a window
        nothing is, unless `infer="batch_span"`. Bad entries are rejected one by one; with `strict` none is stored then.
        Repeating the latest merge with its `request` changes nothing and answers the same; another merge under it is a
        `Conflict`.
        """
        span = None if window is None else self._window(window)
        fetch = FetchRecord(span, complete, newest_first, infer, api_calls, request="" if request is None else request)
        return self._do.series.merge(self.scope.owner, self.name, entries, fetch=fetch, stated=self._rules, strict=strict)

    @operation("change", first=True)
    def fetch(
        self,
        start: arg.SeriesStart,
        end: arg.SeriesEnd,
        fetcher: Fetcher,
        *,
        fresh_for_s: StaleFor = None,
        join_gaps_s: JoinGaps = 0.0,
        longest_s: Longest = None,
        lease_s: Lease = LEASE_S,
        wait_s: Wait = 120.0,
        limit: Entries = None,
    ) -> SeriesAnswer:
        """Get a range, calling `fetcher(window)` only for gaps.

        The fetcher returns entries, or a `Page` with a cursor, and is then called again as `fetcher(window, cursor)`. It
        may be async. Others who want the same gap wait for this fetch. What fails is named in `failures`.
        """
        options = FetchOptions(
            fresh_for_s=fresh_for_s,
            join_gaps_s=join_gaps_s,
            longest_s=longest_s,
            lease_s=lease_s,
            wait_s=wait_s,
            limit=limit,
        )
        return self._do.readthrough.fetch(
            self.scope.owner, self.name, (start, end), fetcher, options=options, stated=self._rules
        )

    @unlogged("the function that it makes calls `fetch`, which is logged")
    def tool(
        self,
        *,
        fresh_for_s: StaleFor = None,
        join_gaps_s: JoinGaps = 0.0,
        longest_s: Longest = None,
        lease_s: Lease = LEASE_S,
        wait_s: Wait = 120.0,
        limit: Entries = None,
    ) -> Callable[[Callable[..., Any]], Callable[..., dict[str, Json]]]:
        """Wrap a function `f(start, end)` that calls an API, so that it is called only for gaps.

        The new function returns the seed's query result: entries, coverage, gaps, reason.
        """
        options: dict[str, Any] = {
            "fresh_for_s": fresh_for_s,
            "join_gaps_s": join_gaps_s,
            "longest_s": longest_s,
            "lease_s": lease_s,
            "wait_s": wait_s,
            "limit": limit,
        }
        FetchOptions(**options)  # which checks them now, not when the function is called

        def wrap(call: Callable[..., Any]) -> Callable[..., dict[str, Json]]:
            @functools.wraps(call)
            def cached(start: object, end: object) -> dict[str, Json]:
                def fetcher(window: Window, *cursor: object) -> Any:
                    return call(window.start, window.end, *cursor)

                return answer_dict(self.fetch(start, end, fetcher, **options))

            return cached

        return wrap

    @operation("erase")
    def cleanup(
        self, keep_days: Annotated[float, Arg("Remove entries older than this many days.", ge=0, le=10**6)] = 90
    ) -> Cleanup:
        """Remove old entries, and the claim to know that time."""
        return self._do.series.cleanup(self.scope.owner, self.name, keep_days, self._rules)

    # -- asking

    @operation("read")
    def query(
        self,
        start: arg.SeriesStart,
        end: arg.SeriesEnd,
        *,
        limit: Entries = None,
        page: Annotated[str | None, Arg("`next_page` of the answer before.", min_length=1, max_length=4_000)] = None,
        coverage: Annotated[CoverageRule, Arg("The rule by which coverage is judged.")] = "ledger",
        fresh_for_s: StaleFor = None,
        by_first_seen: Annotated[bool, Arg("By when an entry was first seen, not by its own time.")] = False,
    ) -> SeriesAnswer:
        """Show entries of a range, newest first, and whether that is all. Both ends are included."""
        options = QueryOptions(limit, page, coverage, fresh_for_s, by_first_seen)
        return self._do.series.query(self.scope.owner, self.name, start, end, options, stated=self._rules)

    @operation("read")
    def gaps(self, start: arg.SeriesStart, end: arg.SeriesEnd) -> tuple[Span, ...]:
        """Say what would have to be fetched to cover a range."""
        return self._do.series.gaps(self.scope.owner, self.name, start, end)

    @operation("read")
    def windows(self, start: arg.SeriesStart, end: arg.SeriesEnd) -> Sequence[CoveredWindow]:
        """List what was fetched of a range, and when."""
        return self._do.series.windows(self.scope.owner, self.name, self._window((start, end)))

    @operation("read")
    def history(
        self, id: Annotated[str, arg.an_id("The entry's id.", "kudos_1")], *, limit: arg.Limit = 100
    ) -> Sequence[PastEntry]:
        """List earlier versions of an entry, the newest first."""
        return self._do.series.history(self.scope.owner, self.name, id, limit=limit)

    # -- aggregates

    @operation("read")
    def count(self, start: FromStart = None, end: UpToEnd = None) -> int:
        """Count the entries, of a range if one is given. Both ends are included."""
        return self._do.aggregates.count(self.scope.owner, self.name, start, end)

    @operation("read")
    def first(self) -> Entry | None:
        """Give the oldest entry."""
        return self._do.aggregates.edge(self.scope.owner, self.name, newest=False)

    @operation("read")
    def last(self) -> Entry | None:
        """Give the newest entry."""
        return self._do.aggregates.edge(self.scope.owner, self.name, newest=True)

    @operation("read")
    def per(
        self,
        period: Annotated[Period, Arg("The length of a period.")],
        *,
        zone: Annotated[str | None, Arg("The time zone; the series' own, if left out.", min_length=1, max_length=100)] = None,
        start: FromStart = None,
        end: UpToEnd = None,
    ) -> dict[datetime, int]:
        """Count the entries of each hour, day or week. In a zone; by default the series' own."""
        return self._do.aggregates.per(self.scope.owner, self.name, period, zone=zone, start=start, end=end)

    @operation("read")
    def group(self, field: Field, *, start: FromStart = None, end: UpToEnd = None) -> dict[str, int]:
        """Count the entries by the value of a field. The most frequent one first."""
        return self._do.aggregates.by_field(self.scope.owner, self.name, field, start=start, end=end)

    @operation("read")
    def distinct(self, field: Field, *, start: FromStart = None, end: UpToEnd = None) -> Sequence[str]:
        """List the values that a field has."""
        return sorted(self.group(field, start=start, end=end))

    # -- taking out

    @operation("read")
    def entries(self, start: FromStart = None, end: UpToEnd = None) -> Iterator[Entry]:
        """Iterate over the entries of a range, oldest first."""
        return self._do.aggregates.entries(self.scope.owner, self.name, start, end)

    @operation("read")
    def export(
        self,
        format: Annotated[Literal["jsonl", "csv"], Arg("The form of the lines.")] = "jsonl",
        *,
        start: FromStart = None,
        end: UpToEnd = None,
    ) -> Iterator[str]:
        """Lines of `jsonl` or `csv`."""
        writers = {"jsonl": as_jsonl, "csv": as_csv}
        check_choice(format, "format", writers)
        return writers[format](lambda: self.entries(start, end))

    @operation("read")
    def rows(self, start: FromStart = None, end: UpToEnd = None) -> list[dict[str, Json]]:
        """The entries of a range as objects, with `_id`, `_at`, `_first_seen` and `_last_seen` added."""
        return [flat(entry) for entry in self.entries(start, end)]

    @operation("read")
    def to_pandas(self, start: FromStart = None, end: UpToEnd = None) -> Any:
        """The same as a `pandas.DataFrame`; `Unsupported` if pandas is not installed."""
        return frame("pandas", self.rows(start, end))

    @operation("read")
    def to_polars(self, start: FromStart = None, end: UpToEnd = None) -> Any:
        """The same as a `polars.DataFrame`; `Unsupported` if polars is not installed."""
        return frame("polars", self.rows(start, end))

    @operation("read")
    def to_arrow(self, start: FromStart = None, end: UpToEnd = None) -> Any:
        """The same as a `pyarrow.Table`; `Unsupported` if pyarrow is not installed."""
        return frame("pyarrow", self.rows(start, end))

    def _window(self, ends: object) -> Span:
        return self._do.series.window(self.scope.owner, self.name, ends, self._rules)

    def _itself(self) -> Iterable[object]:
        # A handle of a series is made by any name; only a series that there is, is named in the log.
        return () if self._do.series.find(self.scope.owner, self.name) is None else (Mention("series", self.name),)

    def __repr__(self) -> str:
        return f"SeriesHandle(user={self.scope.owner.user!r}, name={self.name!r})"


def merge_dict(done: MergeResult) -> dict[str, Json]:
    return {
        "success": done.success,
        "added": done.added,
        "duplicates": done.duplicates,
        "updated": done.updated,
        "rejected": [{"index": one.index, "reason": one.reason} for one in done.rejected],
        "evicted": done.evicted,
        "total_count": done.total_count,
        "covered": None if done.covered is None else {**span_dict(done.covered), "inferred": done.inferred},
    }


def answer_dict(answer: SeriesAnswer) -> dict[str, Json]:
    return {
        "success": True,
        "entries": [{"id": entry.id, **entry.body, "first_seen": iso(entry.first_seen_us)} for entry in answer.entries],
        "count": answer.count,
        "coverage": answer.coverage,
        "gaps": [span_dict(gap) for gap in answer.gaps],
        "provisional": [span_dict(span) for span in answer.provisional],
        "inferred": [span_dict(span) for span in answer.inferred],
        "future": None if answer.future is None else span_dict(answer.future),
        "stale_by": answer.stale_by_s,
        "needs_api_call": answer.needs_api_call,
        "reason": answer.reason,
        "requested_range": span_dict(answer.wanted),
        "state_range": {
            "oldest": None if answer.oldest_us is None else iso(answer.oldest_us),
            "newest": None if answer.newest_us is None else iso(answer.newest_us),
        },
        "next_page": answer.next_page,
        "truncated": answer.next_page is not None,
        "fetches": answer.fetches,
        "failures": list(answer.failures),
    }


def cleanup_dict(done: Cleanup) -> dict[str, Json]:
    return {"success": done.success, "removed": done.removed, "kept": done.kept, "cutoff_date": done.cutoff_date.isoformat()}


def series_dict(series: Series) -> dict[str, Json]:
    """The seed's stored structure (S0-10 to S0-19) without its entries."""
    return {
        "entity": series.entity,
        "accumulated_since": series.accumulated_since.isoformat(),
        "last_updated": series.last_updated.isoformat(),
        "count": series.count,
        "metadata": {
            "total_api_calls": series.api_calls,
            "total_fetched": series.fetched,
            "duplicates_avoided": series.duplicates,
            "removed": series.removed,
        },
    }


def span_dict(span: Span) -> dict[str, Json]:
    return {"start": iso(span.start_us), "end": iso(span.end_us)}
