"""State under keys, and time series, in plain dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.errors import Conflict
from perdure.domain.series import CoveredWindow, Entry, EntryQuery, PastEntry, Series
from perdure.domain.state import KeyInfo, Revision
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.spans import Span, span_or_none
from perdure.ports.tables import series as forms
from perdure.ports.tables.series import (
    SERIES,
    SERIES_ENTRIES,
    SERIES_LEASES,
    SERIES_PAST,
    SERIES_WINDOWS,
    STATE_KEYS,
    STATE_REVISIONS,
    FetchLease,
    SeriesPastRow,
)
from perdure.ports.tables.table import Table


class MemoryState:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner

    def find(self, key: str) -> Revision | None:
        return max(self._revisions(key), key=lambda revision: revision.number, default=None)

    def find_revision(self, key: str, number: int) -> Revision | None:
        return next((revision for revision in self._revisions(key) if revision.number == number), None)

    def find_request(self, key: str, request: str) -> Revision | None:
        return next((revision for revision in self._revisions(key) if revision.request == request), None)

    def list_keys(self, *, now: datetime, prefix: str, after: str | None, limit: int) -> list[KeyInfo]:
        found = []
        for row in self._tables.of(STATE_KEYS):
            latest = self.find(row.key)
            if latest is not None and latest.alive(now) and row.key.startswith(prefix) and row.key > (after or ""):
                found.append(forms.to_key_info(row))
        return found[:limit]

    def list_revisions(self, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        newest_first = sorted(self._revisions(key), key=lambda revision: -revision.number)
        return [revision for revision in newest_first if before is None or revision.number < before][:limit]

    def put(self, revision: Revision, *, keep: int) -> None:
        latest = self.find(revision.key)
        if revision.number != (1 if latest is None else latest.number + 1):
            raise Conflict(f"key {revision.key!r:.80} is not at revision {revision.number - 1} any more; load it again")
        self._tables.put(STATE_KEYS, forms.key_row(self._owner, revision))
        self._tables.put(STATE_REVISIONS, forms.revision_row(self._owner, revision))
        for old in self._revisions(revision.key):
            if old.number <= revision.number - keep:
                self._tables.remove(STATE_REVISIONS, forms.revision_row(self._owner, old))

    def remove(self, key: str) -> int:
        gone = self._revisions(key)
        for revision in gone:
            self._tables.remove(STATE_REVISIONS, forms.revision_row(self._owner, revision))
        for row in self._tables.of(STATE_KEYS, key):
            self._tables.remove(STATE_KEYS, row)
        return len(gone)

    def _revisions(self, key: str) -> list[Revision]:
        return [forms.to_revision(row) for row in self._tables.of(STATE_REVISIONS, key)]


PARTS: tuple[Table[Any], ...] = (SERIES_PAST, SERIES_ENTRIES, SERIES_WINDOWS, SERIES_LEASES, SERIES)


class MemorySeries:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner

    def find(self, name: str) -> Series | None:
        row = self._tables.find(SERIES, name)
        return None if row is None else forms.to_series(row)

    def list_series(self, *, after: str | None, limit: int) -> list[Series]:
        return [forms.to_series(row) for row in self._tables.of(SERIES) if row.series > (after or "")][:limit]

    def entries(self, query: EntryQuery) -> list[Entry]:
        def place(entry: Entry) -> tuple[int, str]:
            return (entry.first_seen_us if query.by_first_seen else entry.at_us, entry.id)

        found = [entry for entry in self._entries(query.series) if query.start_us <= place(entry)[0] <= query.end_us]
        if query.after is not None:
            edge = query.after
            found = [entry for entry in found if (place(entry) > edge if query.ascending else place(entry) < edge)]
        return sorted(found, key=place, reverse=not query.ascending)[: query.limit]

    def find_entries(self, series: str, ids: Sequence[str]) -> dict[str, Entry]:
        return {entry.id: entry for entry in self._entries(series) if entry.id in set(ids)}

    def count(self, series: str, start_us: int, end_us: int, *, by_first_seen: bool = False) -> int:
        instants = [entry.first_seen_us if by_first_seen else entry.at_us for entry in self._entries(series)]
        return sum(start_us <= instant <= end_us for instant in instants)

    def extremes(self, series: str) -> tuple[int | None, int | None]:
        instants = [entry.at_us for entry in self._entries(series)]
        return (min(instants), max(instants)) if instants else (None, None)

    def instants(self, series: str, start_us: int, end_us: int) -> Iterator[int]:
        return iter(sorted(entry.at_us for entry in self._entries(series) if start_us <= entry.at_us <= end_us))

    def windows(self, series: str, span: Span) -> list[CoveredWindow]:
        held = [window for window in self._windows(series) if window.span.start_us <= span.end_us]
        first = max((window.span.start_us for window in held if window.span.start_us < span.start_us), default=span.start_us)
        return [window for window in held if window.span.start_us >= first]

    def last_window(self, series: str) -> CoveredWindow | None:
        return max(self._windows(series), key=lambda window: window.span, default=None)

    def history(self, series: str, entry_id: str, *, limit: int) -> list[PastEntry]:
        return [forms.to_past_entry(row) for row in reversed(self._tables.of(SERIES_PAST, series, entry_id))][:limit]

    def leases(self, series: str, span: Span, now_us: int) -> list[FetchLease]:
        found = [forms.to_lease(row) for row in self._tables.of(SERIES_LEASES, series)]
        found = [
            one
            for one in found
            if one.span.start_us < span.end_us and one.span.end_us > span.start_us and one.until_us > now_us
        ]
        return sorted(found, key=lambda lease: (lease.span.start_us, lease.holder))

    # -- writing

    def create(self, series: Series) -> None:
        if self.find(series.name) is not None:
            raise Conflict(f"series {series.name!r:.80} is there already; read again")
        self._tables.put(SERIES, forms.series_row(self._owner, series))

    def put(self, series: Series) -> None:
        held = self.find(series.name)
        if held is None:
            raise Conflict(f"series {series.name!r:.80} is not there any more; read again")
        # When it was first filled never changes.
        self._tables.put(SERIES, forms.series_row(self._owner, replace(series, accumulated_since=held.accumulated_since)))

    def put_entries(self, series: str, entries: Iterable[Entry]) -> None:
        for entry in entries:
            row = forms.entry_row(self._owner, series, entry)
            held = self._tables.find(SERIES_ENTRIES, series, entry.id)
            self._tables.put(SERIES_ENTRIES, row if held is None else row._replace(first_seen_us=held.first_seen_us))

    def add_past(self, series: str, past: Iterable[tuple[str, int, Mapping[str, Json]]], *, seen_us: int) -> None:
        for entry_id, at_us, body in past:
            held = self._tables.of(SERIES_PAST, series, entry_id)
            text = compact_json(body)
            if any((row.at_us, row.body) == (at_us, text) for row in held):
                continue
            row = SeriesPastRow(
                space=self._owner.space,
                user_id=self._owner.user,
                series=series,
                id=entry_id,
                version=1 + max((row.version for row in held), default=0),
                at_us=at_us,
                body=text,
                seen_us=seen_us,
            )
            self._tables.put(SERIES_PAST, row)

    def replace_windows(self, series: str, span: Span, windows: Iterable[CoveredWindow]) -> None:
        for window in self._windows(series):
            if window.span.start_us <= span.end_us and window.span.end_us >= span.start_us:
                self._tables.remove(SERIES_WINDOWS, forms.window_row(self._owner, series, window))
        for window in windows:
            self._tables.put(SERIES_WINDOWS, forms.window_row(self._owner, series, window))

    def remove_before(self, series: str, instant_us: int) -> int:
        return self._remove(series, [entry for entry in self._entries(series) if entry.at_us < instant_us])

    def remove_oldest(self, series: str, count: int) -> int | None:
        oldest = sorted(self._entries(series), key=lambda entry: (entry.at_us, entry.id))[:count]
        self._remove(series, oldest)
        return oldest[-1].at_us if oldest else None

    def trim_windows(self, series: str, before_us: int) -> None:
        kept = [
            CoveredWindow(rest, window.fetched_us)
            for window in self._windows(series)
            if (rest := span_or_none(max(window.span.start_us, before_us), window.span.end_us))
        ]
        self.replace_windows(series, Span(-(2**63), 2**63), kept)

    def put_lease(self, series: str, lease: FetchLease) -> None:
        self._tables.put(SERIES_LEASES, forms.lease_row(self._owner, series, lease))

    def drop_leases(self, series: str, holder: str, now_us: int) -> None:
        for row in self._tables.of(SERIES_LEASES, series):
            if row.holder == holder or row.until_us <= now_us:
                self._tables.remove(SERIES_LEASES, row)

    def remove(self, series: str) -> int:
        removed = len(self._entries(series))
        for table in PARTS:
            for row in self._tables.of(table, series):
                self._tables.remove(table, row)
        return removed

    def _remove(self, series: str, entries: Sequence[Entry]) -> int:
        for entry in entries:
            for row in self._tables.of(SERIES_PAST, series, entry.id):
                self._tables.remove(SERIES_PAST, row)
            self._tables.remove_key(SERIES_ENTRIES, series, entry.id)
        return len(entries)

    def _entries(self, series: str) -> list[Entry]:
        return [forms.to_entry(row) for row in self._tables.of(SERIES_ENTRIES, series)]

    def _windows(self, series: str) -> list[CoveredWindow]:
        return [forms.to_window(row) for row in self._tables.of(SERIES_WINDOWS, series)]
