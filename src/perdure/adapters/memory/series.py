"""Time series in plain dicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.series import CoveredWindow, Entry, EntryQuery, PastEntry, Series
from perdure.domain.spans import Span, span_or_none
from perdure.domain.text import Json
from perdure.ports import rows
from perdure.ports.series import FetchLease

TABLES = ("series_past", "series_entries", "series_windows", "series_leases", "series")


class MemorySeries:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner
        self._prefix = (owner.space, owner.user)

    def find(self, name: str) -> Series | None:
        return next((rows.to_series(row) for row in self._held.of("series", name)), None)

    def list_series(self, *, after: str | None, limit: int) -> list[Series]:
        return [rows.to_series(row) for row in self._held.of("series") if row[2] > (after or "")][:limit]

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
        return [rows.to_past_entry(row) for row in reversed(self._held.of("series_past", series, entry_id))][:limit]

    def leases(self, series: str, span: Span, now_us: int) -> list[FetchLease]:
        found = [rows.to_lease(row) for row in self._held.of("series_leases", series)]
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
        self._held.put("series", rows.series_row(self._owner, series))

    def put(self, series: Series) -> None:
        held = self.find(series.name)
        if held is None:
            raise Conflict(f"series {series.name!r:.80} is not there any more; read again")
        # When it was first filled never changes.
        self._held.put("series", rows.series_row(self._owner, replace(series, accumulated_since=held.accumulated_since)))

    def put_entries(self, series: str, entries: Iterable[Entry]) -> None:
        for entry in entries:
            row = rows.entry_row(self._owner, series, entry)
            held = self._held.tables["series_entries"].get(row[:4])
            self._held.put("series_entries", row if held is None else (*row[:6], held[6], row[7]))

    def add_past(self, series: str, past: Iterable[tuple[str, int, Mapping[str, Json]]], *, seen_us: int) -> None:
        for entry_id, at_us, body in past:
            held = self._held.of("series_past", series, entry_id)
            if any((row[5], row[6]) == (at_us, rows.dump(body)) for row in held):
                continue
            version = 1 + max((row[4] for row in held), default=0)
            self._held.put("series_past", (*self._prefix, series, entry_id, version, at_us, rows.dump(body), seen_us))

    def replace_windows(self, series: str, span: Span, windows: Iterable[CoveredWindow]) -> None:
        for window in self._windows(series):
            if window.span.start_us <= span.end_us and window.span.end_us >= span.start_us:
                self._held.remove("series_windows", rows.window_row(self._owner, series, window)[:4])
        for window in windows:
            self._held.put("series_windows", rows.window_row(self._owner, series, window))

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
        self._held.put("series_leases", rows.lease_row(self._owner, series, lease))

    def drop_leases(self, series: str, holder: str, now_us: int) -> None:
        for row in self._held.of("series_leases", series):
            if row[3] == holder or row[6] <= now_us:
                self._held.remove("series_leases", row[:5])

    def remove(self, series: str) -> int:
        removed = len(self._entries(series))
        for table in TABLES:
            for row in self._held.of(table, series):
                self._held.remove(table, row[: rows.TABLES[table].key])
        return removed

    def _remove(self, series: str, entries: Sequence[Entry]) -> int:
        for entry in entries:
            for row in self._held.of("series_past", series, entry.id):
                self._held.remove("series_past", row[:5])
            self._held.remove("series_entries", (*self._prefix, series, entry.id))
        return len(entries)

    def _entries(self, series: str) -> list[Entry]:
        return [rows.to_entry(row) for row in self._held.of("series_entries", series)]

    def _windows(self, series: str) -> list[CoveredWindow]:
        return [rows.to_window(row) for row in self._held.of("series_windows", series)]
