"""Time series of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from perdure.adapters.statements import MAX_INTEGER, Statements
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.series import CoveredWindow, Entry, EntryQuery, PastEntry, Series
from perdure.domain.spans import Span, span_or_none
from perdure.domain.text import Json
from perdure.ports import rows
from perdure.ports.series import FetchLease

PAGE = 5_000
FIRST, LAST = (-MAX_INTEGER, ""), (MAX_INTEGER, "")
IDS_PER_LOOKUP = 5_000


class SqlSeries:
    __slots__ = ("_owner", "_prefix", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)

    def find(self, name: str) -> Series | None:
        found = self._run.all(self._run.locked("find_series"), (*self._prefix, name))
        return rows.to_series(found[0]) if found else None

    def list_series(self, *, after: str | None, limit: int) -> list[Series]:
        return [rows.to_series(row) for row in self._run.all("list_series", (*self._prefix, after or "", limit))]

    def entries(self, query: EntryQuery) -> list[Entry]:
        name = "entries_ascending" if query.ascending else "entries_descending"
        if query.by_first_seen:
            name += "_first_seen"
        edge = query.after or (FIRST if query.ascending else LAST)
        values = (*self._prefix, query.series, query.start_us, query.end_us, *edge, query.limit)
        return [rows.to_entry(row) for row in self._run.all(name, values)]

    def find_entries(self, series: str, ids: Sequence[str]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for start in range(0, len(ids), IDS_PER_LOOKUP):
            wanted = self._run.array(ids[start : start + IDS_PER_LOOKUP])
            for row in self._run.all("find_entries", (*self._prefix, series, wanted)):
                entry = rows.to_entry(row)
                found[entry.id] = entry
        return found

    def count(self, series: str, start_us: int, end_us: int, *, by_first_seen: bool = False) -> int:
        name = "count_entries_first_seen" if by_first_seen else "count_entries"
        [(number,)] = self._run.all(name, (*self._prefix, series, start_us, end_us))
        return int(number)

    def extremes(self, series: str) -> tuple[int | None, int | None]:
        oldest = self._run.all("oldest_entry", (*self._prefix, series))
        newest = self._run.all("newest_entry", (*self._prefix, series))
        return (oldest[0][0], newest[0][0]) if oldest else (None, None)

    def instants(self, series: str, start_us: int, end_us: int) -> Iterator[int]:
        edge: tuple[int, str] = FIRST
        while True:
            page = self._run.all("entry_instants", (*self._prefix, series, start_us, end_us, *edge, PAGE))
            yield from (row[0] for row in page)
            if len(page) < PAGE:
                return
            edge = page[-1]

    def windows(self, series: str, span: Span) -> list[CoveredWindow]:
        place = (*self._prefix, series)
        # From the last window that starts before the span on: it may reach into it or touch it, and tells how stale the tip is.
        values = (*place, span.end_us, *place, span.start_us, span.start_us)
        return [rows.to_window(row) for row in self._run.all("windows_touching", values)]

    def last_window(self, series: str) -> CoveredWindow | None:
        found = self._run.all("last_window", (*self._prefix, series))
        return rows.to_window(found[0]) if found else None

    def history(self, series: str, entry_id: str, *, limit: int) -> list[PastEntry]:
        return [rows.to_past_entry(row) for row in self._run.all("list_past", (*self._prefix, series, entry_id, limit))]

    def leases(self, series: str, span: Span, now_us: int) -> list[FetchLease]:
        values = (*self._prefix, series, span.end_us, span.start_us, now_us)
        return [rows.to_lease(row) for row in self._run.all("list_leases", values)]

    # -- writing

    def create(self, series: Series) -> None:
        self._run.put("insert_series", [rows.series_row(self._owner, series)])

    def put(self, series: Series) -> None:
        row = rows.series_row(self._owner, series)
        if self._run.change("update_series", (row[3], *row[5:], *row[:3])) == 0:
            raise Conflict(f"series {series.name!r:.80} is not there any more; read again")

    def put_entries(self, series: str, entries: Iterable[Entry]) -> None:
        many = [rows.entry_row(self._owner, series, entry) for entry in entries]
        if many:
            self._run.put("put_entry", many)

    def add_past(self, series: str, past: Iterable[tuple[str, int, Mapping[str, Json]]], *, seen_us: int) -> None:
        for entry_id, at_us, body in past:
            self._run.change("insert_past", (*self._prefix, series, entry_id, at_us, rows.dump(body), seen_us))

    def replace_windows(self, series: str, span: Span, windows: Iterable[CoveredWindow]) -> None:
        self._run.change("remove_windows", (*self._prefix, series, span.end_us, span.start_us))
        many = [rows.window_row(self._owner, series, window) for window in windows]
        if many:
            self._run.put("insert_window", many)

    def remove_before(self, series: str, instant_us: int) -> int:
        place = (*self._prefix, series)
        self._run.change("remove_past_before", (*place, *place, instant_us))
        return self._run.change("remove_entries_before", (*place, instant_us))

    def remove_oldest(self, series: str, count: int) -> int | None:
        newest: int | None = None
        while count > 0:
            values = (*self._prefix, series, -MAX_INTEGER, MAX_INTEGER, *FIRST, min(count, IDS_PER_LOOKUP))
            page = self._run.all("entry_instants", values)
            if not page:
                break
            ids = self._run.array([row[1] for row in page])
            self._run.change("remove_past_of", (*self._prefix, series, ids))
            self._run.change("remove_entries_of", (*self._prefix, series, ids))
            newest, count = page[-1][0], count - len(page)
        return newest

    def trim_windows(self, series: str, before_us: int) -> None:
        everything_before = Span(-MAX_INTEGER, before_us)
        kept = [
            CoveredWindow(rest, window.fetched_us)
            for window in self.windows(series, Span(before_us - 1, before_us))
            if (rest := span_or_none(max(window.span.start_us, before_us), window.span.end_us))
        ]
        self.replace_windows(series, everything_before, kept)

    def put_lease(self, series: str, lease: FetchLease) -> None:
        self._run.put("put_lease", [rows.lease_row(self._owner, series, lease)])

    def drop_leases(self, series: str, holder: str, now_us: int) -> None:
        self._run.change("drop_leases", (*self._prefix, series, holder, now_us))

    def remove(self, series: str) -> int:
        place = (*self._prefix, series)
        self._run.change("remove_series_past", place)
        removed = self._run.change("remove_series_entries", place)
        for name in ("remove_series_windows", "remove_series_leases", "remove_series"):
            self._run.change(name, place)
        return removed
