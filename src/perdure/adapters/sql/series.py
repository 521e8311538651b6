"""State under keys, and time series, of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from perdure.adapters.sql.statements import MAX_INTEGER, SqlStatements
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.series import CoveredWindow, Entry, EntryQuery, PastEntry, Series
from perdure.domain.state import KeyInfo, Revision
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span, span_or_none
from perdure.ports.tables import series as forms
from perdure.ports.tables.series import FetchLease
from perdure.ports.tables.table import AnyRow


class SqlState:
    __slots__ = ("_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner

    def find(self, key: str) -> Revision | None:
        # In two steps: under a lock, the first tells which revision it is now; the second then finds it.
        found = self._run.all(self._run.locked("state_revision"), key=key)
        return self.find_revision(key, found[0][0]) if found else None

    def find_revision(self, key: str, number: int) -> Revision | None:
        return self._one("find_state_revision", key=key, revision=number)

    def find_request(self, key: str, request: str) -> Revision | None:
        return self._one("find_state_request", key=key, request=request)

    def list_keys(self, *, now: datetime, prefix: str, after: str | None, limit: int) -> list[KeyInfo]:
        found = self._run.all(
            "list_state",
            after=after or "",
            prefix=prefix,
            prefix_length=len(prefix),
            now_us=to_us(now),
            limit=limit,
        )
        return [forms.to_key_info(row) for row in found]

    def list_revisions(self, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        top = MAX_INTEGER if before is None else before
        found = self._run.all("list_state_revisions", key=key, before=top, limit=limit)
        return [forms.to_revision(row) for row in found]

    def put(self, revision: Revision, *, keep: int) -> None:
        row = forms.key_row(self._owner, revision)
        if revision.number == 1:
            self._run.put("insert_state_key", [row])
        elif self._run.change("update_state_key", **row._asdict(), held_revision=revision.number - 1) == 0:
            raise Conflict(f"key {revision.key!r:.80} is not at revision {revision.number - 1} any more; load it again")
        self._run.put("insert_state_revision", [forms.revision_row(self._owner, revision)])
        self._run.send("forget_state_revisions", key=revision.key, last=revision.number - keep)

    def remove(self, key: str) -> int:
        removed = self._run.change("remove_state_revisions", key=key)
        self._run.send("remove_state_key", key=key)
        return removed

    def _one(self, name: str, **values: object) -> Revision | None:
        found = self._run.all(name, **values)
        return forms.to_revision(found[0]) if found else None


PAGE = 5_000
FIRST, LAST = (-MAX_INTEGER, ""), (MAX_INTEGER, "")
IDS_PER_LOOKUP = 5_000


class SqlSeries:
    __slots__ = ("_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner

    def find(self, name: str) -> Series | None:
        found = self._run.all(self._run.locked("find_series"), series=name)
        return forms.to_series(found[0]) if found else None

    def list_series(self, *, after: str | None, limit: int) -> list[Series]:
        return [forms.to_series(row) for row in self._run.all("list_series", after=after or "", limit=limit)]

    def entries(self, query: EntryQuery) -> list[Entry]:
        name = "entries_ascending" if query.ascending else "entries_descending"
        if query.by_first_seen:
            name += "_first_seen"
        edge_us, edge_id = query.after or (FIRST if query.ascending else LAST)
        found = self._run.all(
            name,
            series=query.series,
            start_us=query.start_us,
            end_us=query.end_us,
            edge_us=edge_us,
            edge_id=edge_id,
            limit=query.limit,
        )
        return [forms.to_entry(row) for row in found]

    def find_entries(self, series: str, ids: Sequence[str]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for start in range(0, len(ids), IDS_PER_LOOKUP):
            wanted = self._run.array(ids[start : start + IDS_PER_LOOKUP])
            for row in self._run.all("find_entries", series=series, ids=wanted):
                entry = forms.to_entry(row)
                found[entry.id] = entry
        return found

    def count(self, series: str, start_us: int, end_us: int, *, by_first_seen: bool = False) -> int:
        name = "count_entries_first_seen" if by_first_seen else "count_entries"
        [(number,)] = self._run.all(name, series=series, start_us=start_us, end_us=end_us)
        return int(number)

    def extremes(self, series: str) -> tuple[int | None, int | None]:
        oldest = self._run.all("oldest_entry", series=series)
        newest = self._run.all("newest_entry", series=series)
        return (oldest[0][0], newest[0][0]) if oldest else (None, None)

    def instants(self, series: str, start_us: int, end_us: int) -> Iterator[int]:
        edge: AnyRow = FIRST
        while True:
            page = self._page(series, start_us, end_us, edge, PAGE)
            yield from (at_us for at_us, _ in page)
            if len(page) < PAGE:
                return
            edge = page[-1]

    def _page(self, series: str, start_us: int, end_us: int, edge: AnyRow, limit: int) -> list[AnyRow]:
        """Instants and ids of entries in the range, ascending, behind `edge`."""
        edge_us, edge_id = edge
        return self._run.all(
            "entry_instants",
            series=series,
            start_us=start_us,
            end_us=end_us,
            edge_us=edge_us,
            edge_id=edge_id,
            limit=limit,
        )

    def windows(self, series: str, span: Span) -> list[CoveredWindow]:
        # From the last window that starts before the span on: it may reach into it or touch it, and tells how stale the tip is.
        found = self._run.all("windows_touching", series=series, start_us=span.start_us, end_us=span.end_us)
        return [forms.to_window(row) for row in found]

    def last_window(self, series: str) -> CoveredWindow | None:
        found = self._run.all("last_window", series=series)
        return forms.to_window(found[0]) if found else None

    def history(self, series: str, entry_id: str, *, limit: int) -> list[PastEntry]:
        found = self._run.all("list_past", series=series, id=entry_id, limit=limit)
        return [forms.to_past_entry(row) for row in found]

    def leases(self, series: str, span: Span, now_us: int) -> list[FetchLease]:
        found = self._run.all("list_leases", series=series, start_us=span.start_us, end_us=span.end_us, now_us=now_us)
        return [forms.to_lease(row) for row in found]

    # -- writing

    def create(self, series: Series) -> None:
        self._run.put("insert_series", [forms.series_row(self._owner, series)])

    def put(self, series: Series) -> None:
        if self._run.change_row("update_series", forms.series_row(self._owner, series)) == 0:
            raise Conflict(f"series {series.name!r:.80} is not there any more; read again")

    def put_entries(self, series: str, entries: Iterable[Entry]) -> None:
        many = [forms.entry_row(self._owner, series, entry) for entry in entries]
        if many:
            self._run.put("put_entry", many)

    def add_past(self, series: str, past: Iterable[tuple[str, int, Mapping[str, Json]]], *, seen_us: int) -> None:
        for entry_id, at_us, body in past:
            text = compact_json(body)
            self._run.send("insert_past", series=series, id=entry_id, at_us=at_us, body=text, seen_us=seen_us)

    def replace_windows(self, series: str, span: Span, windows: Iterable[CoveredWindow]) -> None:
        self._run.send("remove_windows", series=series, start_us=span.start_us, end_us=span.end_us)
        many = [forms.window_row(self._owner, series, window) for window in windows]
        if many:
            self._run.put("insert_window", many)

    def remove_before(self, series: str, instant_us: int) -> int:
        self._run.send("remove_past_before", series=series, before_us=instant_us)
        return self._run.change("remove_entries_before", series=series, before_us=instant_us)

    def remove_oldest(self, series: str, count: int) -> int | None:
        newest: int | None = None
        while count > 0:
            page = self._page(series, -MAX_INTEGER, MAX_INTEGER, FIRST, min(count, IDS_PER_LOOKUP))
            if not page:
                break
            ids = self._run.array([entry_id for _, entry_id in page])
            self._run.send("remove_past_of", series=series, ids=ids)
            self._run.send("remove_entries_of", series=series, ids=ids)
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
        self._run.put("put_lease", [forms.lease_row(self._owner, series, lease)])

    def drop_leases(self, series: str, holder: str, now_us: int) -> None:
        self._run.send("drop_leases", series=series, holder=holder, now_us=now_us)

    def remove(self, series: str) -> int:
        self._run.send("remove_series_past", series=series)
        removed = self._run.change("remove_series_entries", series=series)
        for name in ("remove_series_windows", "remove_series_leases", "remove_series"):
            self._run.send(name, series=series)
        return removed
