"""`ana.series(name)`: one accumulating series of a user, and what is known of its coverage."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict

from perdure.domain.errors import InvalidInput
from perdure.domain.scope import Owner
from perdure.domain.series import CoveredWindow, Entry, FetchRecord, Infer, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.spans import Span
from perdure.domain.text import Json, check_choice
from perdure.engine.instants import instant_us, zone_named
from perdure.services.aggregates import Aggregates, Period, as_csv, as_jsonl, flat, frame
from perdure.services.readthrough import Fetcher, FetchOptions, ReadThrough, Window
from perdure.services.render import answer_dict
from perdure.services.series import Cleanup, QueryOptions, SeriesService
from perdure.services.spans import DELETE, UPSERT, traced

if TYPE_CHECKING:
    from typing import Unpack


class SeriesRules(TypedDict, total=False):
    """The rules of a series, see `domain.series.SeriesSpec`. Fixed at first use; `configure` changes them."""

    id_field: str
    timestamp_field: str
    id_template: str | None
    zone: str
    settles_after_s: float
    fresh_for_s: float
    max_entries: int | None
    keep_days: float | None
    description: str


class MergeExtras(TypedDict, total=False):
    """What else may be said of a merge."""

    api_calls: int
    request: str


class Asking(TypedDict, total=False):
    """Options of `fetch` and `tool`, see `services.readthrough.FetchOptions`."""

    fresh_for_s: float | None
    join_gaps_s: float
    longest_s: float | None
    lease_s: float
    wait_s: float
    limit: int | None


@dataclass(frozen=True, slots=True)
class SeriesServices:
    """What a series handle calls."""

    series: SeriesService
    aggregates: Aggregates
    readthrough: ReadThrough


def refuse_unknown(call: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    """A misspelt option must not pass for one that was left out."""
    for name in given:
        if name not in known:
            raise InvalidInput(f"`{call}` does not take `{name}`; it takes {', '.join(known)}")


class SeriesHandle:
    """One series by name. It comes into being with its first merge or fetch."""

    __slots__ = ("_do", "_owner", "_rules", "name")

    def __init__(self, owner: Owner, name: str, rules: Mapping[str, Any], services: SeriesServices) -> None:
        self.name = name
        self._owner = owner
        self._rules = dict(rules)
        self._do = services

    # -- the series itself

    def about(self) -> Series:
        """Its rules and its books; `NotFound` before the first merge."""
        return self._do.series.get(self._owner, self.name)

    def configure(self, **rules: Unpack[SeriesRules]) -> Series:
        """Make it with these rules, or change them. Entries already held keep their ids and instants."""
        return self._do.series.configure(self._owner, self.name, rules)

    @traced(DELETE)
    def remove(self) -> int:
        """Delete it with everything it holds; how many entries that were."""
        return self._do.series.remove(self._owner, self.name)

    # -- putting in

    @traced(UPSERT)
    def merge(
        self,
        entries: Iterable[object],
        *,
        window: tuple[object, object] | None = None,
        complete: bool = True,
        newest_first: bool = True,
        infer: Infer = "none",
        strict: bool = False,
        **more: Unpack[MergeExtras],
    ) -> MergeResult:
        """Merge what was fetched, by id.

        `window` is what was asked for, from start up to, not including, end: it is recorded as covered, even when nothing
        came. `complete=False` says that the answer was cut off: then only what it proves is recorded. Without a window
        nothing is, unless `infer="batch_span"`. Bad entries are rejected one by one; with `strict` none is stored then.
        `more` is `api_calls` (how many this took, for the books; default 1) and `request` (an id of yours: repeating the
        latest merge with it changes nothing and answers the same; another merge under it is a `Conflict`).
        """
        refuse_unknown("merge", more, MergeExtras.__annotations__)
        span = None if window is None else self._span(window)
        fetch = FetchRecord(span, complete, newest_first, infer, more.get("api_calls", 1), request=more.get("request", ""))
        return self._do.series.merge(self._owner, self.name, entries, fetch=fetch, stated=self._rules, strict=strict)

    def fetch(self, start: object, end: object, fetcher: Fetcher, **options: Unpack[Asking]) -> SeriesAnswer:
        """Answer for the range, calling `fetcher(window)` only for what is not covered.

        The fetcher returns entries, or a `Page` with a cursor, and is then called again as `fetcher(window, cursor)`. It
        may be async. Others who want the same gap wait for this fetch. What fails is named in `failures`.
        """
        refuse_unknown("fetch", options, Asking.__annotations__)
        return self._do.readthrough.fetch(
            self._owner, self.name, (start, end), fetcher, options=FetchOptions(**options), stated=self._rules
        )

    def tool(self, **options: Unpack[Asking]) -> Callable[[Callable[..., Any]], Callable[..., dict[str, Json]]]:
        """Turn a function `f(start, end)` that asks an API into one that asks only for what is not held.

        The new function returns the seed's query result: entries, coverage, gaps, reason.
        """
        refuse_unknown("tool", options, Asking.__annotations__)
        FetchOptions(**options)  # which checks them now, not when the function is called

        def wrap(call: Callable[..., Any]) -> Callable[..., dict[str, Json]]:
            @functools.wraps(call)
            def cached(start: object, end: object) -> dict[str, Json]:
                def fetcher(window: Window, *cursor: object) -> Any:
                    return call(window.start, window.end, *cursor)

                return answer_dict(self.fetch(start, end, fetcher, **options))

            return cached

        return wrap

    def cleanup(self, keep_days: float = 90) -> Cleanup:
        """Remove entries older than this, and the claim to know that time."""
        return self._do.series.cleanup(self._owner, self.name, keep_days, self._rules)

    # -- asking

    def query(
        self,
        start: object,
        end: object,
        *,
        limit: int | None = None,
        page: str | None = None,
        options: QueryOptions | None = None,
    ) -> SeriesAnswer:
        """Entries in the range, both ends included, newest first, and what is covered of it."""
        chosen = options if options is not None else QueryOptions(limit, page)
        if not isinstance(chosen, QueryOptions):
            raise InvalidInput(f"`options` is a `{type(chosen).__name__}`; pass `perdure.QueryOptions`")
        return self._do.series.query(self._owner, self.name, start, end, chosen, stated=self._rules)

    def gaps(self, start: object, end: object) -> tuple[Span, ...]:
        """What would have to be fetched to cover the range."""
        return self._do.series.gaps(self._owner, self.name, start, end)

    def windows(self, start: object, end: object) -> Sequence[CoveredWindow]:
        """What the ledger holds of the range, and when it was fetched."""
        return self._do.series.windows(self._owner, self.name, self._span((start, end)))

    def history(self, id: str, *, limit: int = 100) -> Sequence[PastEntry]:
        """Bodies of an entry that lost against a newer one, latest first."""
        return self._do.series.history(self._owner, self.name, id, limit=limit)

    # -- aggregates

    def count(self, start: object = None, end: object = None) -> int:
        """How many entries lie in the range, both ends included."""
        return self._do.aggregates.count(self._owner, self.name, start, end)

    def first(self) -> Entry | None:
        """The oldest entry."""
        return self._do.aggregates.edge(self._owner, self.name, newest=False)

    def last(self) -> Entry | None:
        """The newest entry."""
        return self._do.aggregates.edge(self._owner, self.name, newest=True)

    def per(self, period: Period, *, zone: str | None = None, start: object = None, end: object = None) -> dict[datetime, int]:
        """Entries per hour, day or week in a zone (default: the series' own)."""
        return self._do.aggregates.per(self._owner, self.name, period, zone=zone, start=start, end=end)

    def group(self, field: str, *, start: object = None, end: object = None) -> dict[str, int]:
        """How many entries have each value of a field, most frequent first."""
        return self._do.aggregates.by_field(self._owner, self.name, field, start=start, end=end)

    def distinct(self, field: str, *, start: object = None, end: object = None) -> Sequence[str]:
        """The values a field has."""
        return sorted(self.group(field, start=start, end=end))

    # -- taking out

    def entries(self, start: object = None, end: object = None) -> Iterator[Entry]:
        """All entries in the range, oldest first, read as they are needed."""
        return self._do.aggregates.entries(self._owner, self.name, start, end)

    def export(self, format: str = "jsonl", *, start: object = None, end: object = None) -> Iterator[str]:
        """Lines of `jsonl` or `csv`."""
        writers = {"jsonl": as_jsonl, "csv": as_csv}
        check_choice(format, "format", writers)
        return writers[format](lambda: self.entries(start, end))

    def rows(self, start: object = None, end: object = None) -> list[dict[str, Json]]:
        """All entries in the range as objects, with `_id`, `_at`, `_first_seen` and `_last_seen` beside their own fields."""
        return [flat(entry) for entry in self.entries(start, end)]

    def to_pandas(self, start: object = None, end: object = None) -> Any:
        """The same as a `pandas.DataFrame`; `Unsupported` if pandas is not installed."""
        return frame("pandas", self.rows(start, end))

    def to_polars(self, start: object = None, end: object = None) -> Any:
        """The same as a `polars.DataFrame`; `Unsupported` if polars is not installed."""
        return frame("polars", self.rows(start, end))

    def to_arrow(self, start: object = None, end: object = None) -> Any:
        """The same as a `pyarrow.Table`; `Unsupported` if pyarrow is not installed."""
        return frame("pyarrow", self.rows(start, end))

    def _span(self, window: tuple[object, object]) -> Span:
        if not isinstance(window, tuple | list) or len(window) != 2:
            raise InvalidInput(f"`window` is a `{type(window).__name__}`; pass its start and its end")
        zone = zone_named(self._rules.get("zone", "UTC"))
        if not all(isinstance(edge, datetime) and edge.tzinfo is not None for edge in window):
            # Only a time without a zone needs to know what the series says of such.
            held = self._do.series.find(self._owner, self.name)
            zone = zone if held is None else zone_named(held.spec.zone)
        start, end = instant_us(window[0], zone, "`window_start`"), instant_us(window[1], zone, "`window_end`")
        if start >= end:
            raise InvalidInput("the window ends no later than it starts; give its start, then its end")
        return Span(start, end)

    def __repr__(self) -> str:
        return f"SeriesHandle(user={self._owner.user!r}, name={self.name!r})"
