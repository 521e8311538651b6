"""Time series: entries merged by id, and a ledger of the windows that were fetched. Entries never imply coverage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.limits import CoverageRule as CoverageRule
from perdure.domain.text.rules import Json
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass

COVERAGE_RULES: tuple[CoverageRule, ...] = get_args(CoverageRule)
Infer = Literal["none", "batch_span"]
INFERS: tuple[Infer, ...] = get_args(Infer)
Coverage = Literal["full", "partial", "none"]
SUFFIX = "_timeseries"


@dataclass(frozen=True, slots=True)
class SeriesSpec:
    """How a series reads its entries and how long it trusts a window. Fixed at first use, changed only explicitly."""

    id_field: str = "id"
    timestamp_field: str = "timestamp"
    id_template: str | None = None
    """Makes the id of entries that carry none, e.g. `kudos_{activity_id}_{athlete_id}`."""
    zone: str = "UTC"
    """What a time without a zone means."""
    settles_after_s: float = 0.0
    """Entries may still arrive this long after their time; a window fetched earlier is provisional until fetched again."""
    fresh_for_s: float = 0.0
    """How old the newest end of the held windows, or a provisional window, may be before it is fetched again."""
    max_entries: int | None = 10_000
    """More than this many: the oldest are evicted, and the ledger is cut with them. None: no bound."""
    keep_days: float | None = None
    """What the recurring cleanup keeps; None: it leaves this series alone."""
    description: str = ""
    """What the series is about, in words: it is found by them."""


@dataclass(frozen=True, slots=True)
class Series:
    """A series as held: its rules and its book-keeping (count = fetched - duplicates - removed)."""

    name: str
    spec: SeriesSpec
    accumulated_since: datetime
    last_updated: datetime
    count: int = 0
    api_calls: int = 0
    fetched: int = 0
    duplicates: int = 0
    removed: int = 0
    trims: int = 0
    """How often entries were evicted or cleaned up, and below which instant at the most: a fetch of several pages that was
    under way meanwhile must not claim that time."""
    floor_us: int = -(2**62)
    incarnation: str = ""
    """Another one each time the series is made anew after it was removed."""
    last_request: str = ""
    """The latest merge and its answer as JSON: repeating it changes nothing and answers the same."""
    last_result: str = ""
    inferred: tuple[Span, ...] = ()
    """Covered time that nobody said was asked for: it lies between entries that came together."""

    @property
    def entity(self) -> str:
        """The name without its `_timeseries` ending; the ending only, wherever else the word stands."""
        return self.name.removesuffix(SUFFIX)


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened, under its id: the newest version of it."""

    id: str
    at_us: int
    body: Mapping[str, Json]
    first_seen_us: int
    last_seen_us: int


@dataclass(frozen=True, slots=True)
class PastEntry:
    """A body that lost against another version of the same entry."""

    id: str
    version: int
    at_us: int
    body: Mapping[str, Json]
    seen_us: int


@dataclass(frozen=True, slots=True)
class CoveredWindow:
    """A stretch of time that was fetched, and when. Windows of a series do not overlap."""

    span: Span
    fetched_us: int
    inferred: bool = False
    """Nobody said that it was asked for: it lies between entries that came together."""


@dataclass(frozen=True, slots=True)
class RejectedEntry:
    """An entry that could not be stored: which one of the batch, and why."""

    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class MergeResult:
    success: bool
    added: int
    duplicates: int
    updated: int
    rejected: tuple[RejectedEntry, ...]
    total_count: int
    evicted: int = 0
    covered: Span | None = None
    """The time that counts as covered by this merge."""
    inferred: bool = False
    """Nobody said that it was asked for: it is the time between the entries."""


@dataclass(frozen=True, slots=True)
class SeriesAnswer:
    """What a query finds: entries, newest first, and exactly what is and is not covered."""

    entries: tuple[Entry, ...]
    count: int
    """Entries in the range, all pages together."""
    coverage: Coverage
    gaps: tuple[Span, ...]
    """What to fetch to know the rest; never the future."""
    provisional: tuple[Span, ...]
    """Parts that are held but may still grow."""
    inferred: tuple[Span, ...]
    """Parts that count as covered only because they lie between entries that came together."""
    stale_by_s: float
    """How far the newest end lags behind, where that is tolerated."""
    needs_api_call: bool
    """Whether a part that is over must be fetched. Of `future` it says nothing."""
    reason: str
    oldest_us: int | None
    newest_us: int | None
    wanted: Span
    next_page: str | None = None
    failures: tuple[str, ...] = ()
    """Of a read-through: which windows could not be fetched, and why."""
    future: Span | None = None
    """The part of the range that is still to come: nothing is known of it, whatever entries are held."""
    fetches: int = 0
    """How many windows were asked of the source for this answer, failures included; each may have had several pages."""


@dataclass(frozen=True, slots=True)
class FetchRecord:
    """What a fetch asked for, and whether the answer was complete. Without a window it proves nothing."""

    window: Span | None = None
    complete: bool = True
    newest_first: bool = True
    """In which order a cut-off answer was delivered, which tells what part of the window it proves."""
    infer: Infer = "none"
    api_calls: int = 1
    fetched_us: int = 0
    request: str = ""
    began: tuple[str, int] | None = None
    """The series' incarnation and `trims` when the first page was asked for; None if this is the only one."""


@dataclass(frozen=True, slots=True)
class EntryQuery:
    """Entries of a series with both ends included, newest first unless `ascending`, after a cursor."""

    series: str
    start_us: int
    end_us: int
    limit: int
    after: tuple[int, str] | None = None
    ascending: bool = False
    by_first_seen: bool = False


@dataclass(frozen=True, slots=True)
class MergePlan:
    """The rows one merge writes."""

    entries: tuple[Entry, ...]
    past: tuple[tuple[str, int, Mapping[str, Json]], ...]
    """Losing bodies: id, instant, body."""
    added: int
    duplicates: int
    updated: int
