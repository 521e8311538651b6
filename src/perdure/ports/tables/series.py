"""Storing state under keys, and time series, of one owner; part of a `View` and a `Tx`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol, cast

from perdure.domain.scope import Owner
from perdure.domain.series import CoveredWindow, Entry, EntryQuery, PastEntry, Series, SeriesSpec
from perdure.domain.state import KeyInfo, Revision, beginning_of
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.times.spans import Span
from perdure.domain.values import asdict, dataclass
from perdure.ports.tables.table import AnyRow, Table, instant_or_none, us_or_none

PREVIEW_KEPT = 101


class StateView(Protocol):
    def find(self, key: str) -> Revision | None:
        """The latest revision, be it a value, a deletion, or expired. In `write`, the key is locked."""

    def find_revision(self, key: str, number: int) -> Revision | None:
        """One revision by its number."""

    def find_request(self, key: str, request: str) -> Revision | None:
        """The revision that a request made, if it is still kept."""

    def list_keys(self, *, now: datetime, prefix: str, after: str | None, limit: int) -> list[KeyInfo]:
        """Keys that hold a live value and start with `prefix`, in code-point order, behind `after`; no value is read.

        `preview` holds the first characters of the JSON, at most `PREVIEW_KEPT`; of a verbatim value or a list, its mark.
        """

    def list_revisions(self, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        """Newest first."""


class StateTx(StateView, Protocol):
    def put(self, revision: Revision, *, keep: int) -> None:
        """Store the next revision of its key, and forget those more than `keep` behind it.

        A number that is not one more than the latest is a `Conflict`.
        """

    def remove(self, key: str) -> int:
        """Forget a key with all its revisions; how many there were."""


# -- the stored form ---------------------------------------------------------------------------------------------------


class StateKeyRow(NamedTuple):
    space: str
    user_id: str
    key: str
    revision: int
    saved_at_us: int
    expires_at_us: int | None
    size_bytes: int | None
    preview: str | None


class StateRevisionRow(NamedTuple):
    space: str
    user_id: str
    key: str
    revision: int
    body: str | None
    saved_at_us: int
    expires_at_us: int | None
    request: str


STATE_KEYS = Table("state_keys", StateKeyRow, 3)
STATE_REVISIONS = Table("state_revisions", StateRevisionRow, 4)


def revision_row(owner: Owner, revision: Revision) -> StateRevisionRow:
    return StateRevisionRow(
        space=owner.space,
        user_id=owner.user,
        key=revision.key,
        revision=revision.number,
        body=revision.body,
        saved_at_us=to_us(revision.saved_at),
        expires_at_us=us_or_none(revision.expires_at),
        request=revision.request,
    )


def to_revision(row: AnyRow) -> Revision:
    return STATE_REVISIONS.read(row, _read_revision)


def _read_revision(row: StateRevisionRow) -> Revision:
    return Revision(
        key=row.key,
        number=row.revision,
        body=row.body,
        saved_at=from_us(row.saved_at_us),
        expires_at=instant_or_none(row.expires_at_us),
        request=row.request,
    )


def key_row(owner: Owner, revision: Revision) -> StateKeyRow:
    """The row that finds a key without reading its value. A deletion has no size and no preview."""
    return StateKeyRow(
        space=owner.space,
        user_id=owner.user,
        key=revision.key,
        revision=revision.number,
        saved_at_us=to_us(revision.saved_at),
        expires_at_us=us_or_none(revision.expires_at),
        size_bytes=None if revision.body is None else len(revision.body.encode()),
        preview=None if revision.body is None else beginning_of(revision.body) or revision.body[:PREVIEW_KEPT],
    )


def to_key_info(row: AnyRow) -> KeyInfo:
    return STATE_KEYS.read(row, _read_key)


def _read_key(row: StateKeyRow) -> KeyInfo:
    # Keys are listed while they hold a value, and then they have a size.
    size = cast(int, row.size_bytes)
    return KeyInfo(row.key, from_us(row.saved_at_us), size, row.revision, row.preview)


@dataclass(frozen=True, slots=True)
class FetchLease:
    """A stretch of a series that somebody is fetching, until when at the latest."""

    span: Span
    holder: str
    until_us: int


class SeriesView(Protocol):
    def find(self, name: str) -> Series | None:
        """The series by its name. In `write`, it is locked until the transaction ends: merges queue up here."""

    def list_series(self, *, after: str | None, limit: int) -> list[Series]:
        """By name in code-point order, behind `after`."""

    def entries(self, query: EntryQuery) -> list[Entry]:
        """Entries in the range, both ends included, by instant and id, newest first unless ascending."""

    def find_entries(self, series: str, ids: Sequence[str]) -> dict[str, Entry]:
        """Those of `ids` that are held."""

    def count(self, series: str, start_us: int, end_us: int, *, by_first_seen: bool = False) -> int:
        """How many entries lie in the range, both ends included, by their instant or by when they were first seen."""

    def extremes(self, series: str) -> tuple[int | None, int | None]:
        """The instants of the oldest and the newest entry."""

    def instants(self, series: str, start_us: int, end_us: int) -> Iterator[int]:
        """The instants of the entries in the range, ascending, without their bodies."""

    def windows(self, series: str, span: Span) -> list[CoveredWindow]:
        """Windows that overlap or touch the span, and the newest one before it, by start."""

    def last_window(self, series: str) -> CoveredWindow | None:
        """The window with the latest start."""

    def history(self, series: str, entry_id: str, *, limit: int) -> list[PastEntry]:
        """Bodies that lost, newest first."""

    def leases(self, series: str, span: Span, now_us: int) -> list[FetchLease]:
        """Fetches under way that overlap the span and have not run out."""


class SeriesTx(SeriesView, Protocol):
    def create(self, series: Series) -> None:
        """Insert; a series that is held already is a `Conflict`."""

    def put(self, series: Series) -> None:
        """Replace by name, all but when it began; a series that is not held is a `Conflict`."""

    def put_entries(self, series: str, entries: Iterable[Entry]) -> None:
        """Insert, or replace by id."""

    def add_past(self, series: str, past: Iterable[tuple[str, int, Mapping[str, Json]]], *, seen_us: int) -> None:
        """Keep bodies that lost: id, instant, body. One that is kept already is not kept twice."""

    def replace_windows(self, series: str, span: Span, windows: Iterable[CoveredWindow]) -> None:
        """Put `windows` in the place of all that overlap or touch the span."""

    def remove_before(self, series: str, instant_us: int) -> int:
        """Delete entries before the instant, with their past bodies; how many there were."""

    def remove_oldest(self, series: str, count: int) -> int | None:
        """Delete the `count` oldest entries (by instant, then id); the newest instant among them."""

    def trim_windows(self, series: str, before_us: int) -> None:
        """Forget coverage of everything before the instant."""

    def put_lease(self, series: str, lease: FetchLease) -> None:
        """Note that somebody fetches this stretch."""

    def drop_leases(self, series: str, holder: str, now_us: int) -> None:
        """The holder fetches nothing of this series any more; leases that ran out go too."""

    def remove(self, series: str) -> int:
        """Delete a series with everything of it; how many entries it had."""


# -- the stored form ---------------------------------------------------------------------------------------------------


class SeriesRow(NamedTuple):
    space: str
    user_id: str
    series: str
    spec: str
    accumulated_since_us: int
    last_updated_us: int
    entries: int
    api_calls: int
    fetched: int
    duplicates: int
    removed: int
    trims: int
    floor_us: int
    incarnation: str
    last_request: str
    last_result: str


class SeriesEntryRow(NamedTuple):
    space: str
    user_id: str
    series: str
    id: str
    at_us: int
    body: str
    first_seen_us: int
    last_seen_us: int


class SeriesPastRow(NamedTuple):
    space: str
    user_id: str
    series: str
    id: str
    version: int
    at_us: int
    body: str
    seen_us: int


class SeriesWindowRow(NamedTuple):
    space: str
    user_id: str
    series: str
    start_us: int
    end_us: int
    fetched_us: int


class SeriesLeaseRow(NamedTuple):
    space: str
    user_id: str
    series: str
    holder: str
    start_us: int
    end_us: int
    until_us: int


SERIES = Table("series", SeriesRow, 3)
SERIES_ENTRIES = Table("series_entries", SeriesEntryRow, 4)
SERIES_PAST = Table("series_past", SeriesPastRow, 5)
SERIES_WINDOWS = Table("series_windows", SeriesWindowRow, 4)
SERIES_LEASES = Table("series_leases", SeriesLeaseRow, 5)


def series_row(owner: Owner, series: Series) -> SeriesRow:
    return SeriesRow(
        space=owner.space,
        user_id=owner.user,
        series=series.name,
        spec=compact_json(asdict(series.spec)),
        accumulated_since_us=to_us(series.accumulated_since),
        last_updated_us=to_us(series.last_updated),
        entries=series.count,
        api_calls=series.api_calls,
        fetched=series.fetched,
        duplicates=series.duplicates,
        removed=series.removed,
        trims=series.trims,
        floor_us=series.floor_us,
        incarnation=series.incarnation,
        last_request=series.last_request,
        last_result=_with_inferred(series),
    )


def to_series(row: AnyRow) -> Series:
    return SERIES.read(row, _read_series)


def _with_inferred(series: Series) -> str:
    """The latest answer, and behind it which covered time is inferred: one list, which earlier versions read as well."""
    if not series.inferred or not series.last_result:
        return series.last_result
    spans = [[one.start_us, one.end_us] for one in series.inferred]
    return compact_json([*json.loads(series.last_result), {"inferred": spans}])


def _read_series(row: SeriesRow) -> Series:
    result, inferred = row.last_result, tuple[Span, ...]()
    if result.endswith("]]}]") and isinstance((last := (parts := json.loads(result))[-1]), dict):
        result, inferred = compact_json(parts[:-1]), tuple(Span(start, end) for start, end in last["inferred"])
    return Series(
        inferred=inferred,
        name=row.series,
        spec=SeriesSpec(**json.loads(row.spec)),
        accumulated_since=from_us(row.accumulated_since_us),
        last_updated=from_us(row.last_updated_us),
        count=row.entries,
        api_calls=row.api_calls,
        fetched=row.fetched,
        duplicates=row.duplicates,
        removed=row.removed,
        trims=row.trims,
        floor_us=row.floor_us,
        incarnation=row.incarnation,
        last_request=row.last_request,
        last_result=result,
    )


def entry_row(owner: Owner, series: str, entry: Entry) -> SeriesEntryRow:
    return SeriesEntryRow(
        space=owner.space,
        user_id=owner.user,
        series=series,
        id=entry.id,
        at_us=entry.at_us,
        body=compact_json(entry.body),
        first_seen_us=entry.first_seen_us,
        last_seen_us=entry.last_seen_us,
    )


def to_entry(row: AnyRow) -> Entry:
    return SERIES_ENTRIES.read(row, _read_entry)


def _read_entry(row: SeriesEntryRow) -> Entry:
    return Entry(row.id, row.at_us, json.loads(row.body), row.first_seen_us, row.last_seen_us)


def to_past_entry(row: AnyRow) -> PastEntry:
    return SERIES_PAST.read(row, _read_past)


def _read_past(row: SeriesPastRow) -> PastEntry:
    return PastEntry(row.id, row.version, row.at_us, json.loads(row.body), row.seen_us)


def window_row(owner: Owner, series: str, window: CoveredWindow) -> SeriesWindowRow:
    return SeriesWindowRow(
        space=owner.space,
        user_id=owner.user,
        series=series,
        start_us=window.span.start_us,
        end_us=window.span.end_us,
        fetched_us=window.fetched_us,
    )


def to_window(row: AnyRow) -> CoveredWindow:
    return SERIES_WINDOWS.read(row, lambda held: CoveredWindow(Span(held.start_us, held.end_us), held.fetched_us))


def lease_row(owner: Owner, series: str, lease: FetchLease) -> SeriesLeaseRow:
    return SeriesLeaseRow(
        space=owner.space,
        user_id=owner.user,
        series=series,
        holder=lease.holder,
        start_us=lease.span.start_us,
        end_us=lease.span.end_us,
        until_us=lease.until_us,
    )


def to_lease(row: AnyRow) -> FetchLease:
    return SERIES_LEASES.read(row, lambda held: FetchLease(Span(held.start_us, held.end_us), held.holder, held.until_us))
