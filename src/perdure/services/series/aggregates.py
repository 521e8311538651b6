"""Questions people ask of a series without loading it: counts, by time or by field, first and last, exports."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from importlib import import_module
from typing import Any, Literal

from perdure.domain.errors import InvalidInput, Unsupported
from perdure.domain.scope import ID_BYTES_MAX, Owner
from perdure.domain.series import Entry, EntryQuery, SeriesSpec
from perdure.domain.text.rules import Json, check_choice, check_id
from perdure.domain.times.instants import from_us, to_us, zone_named
from perdure.domain.values import dataclass
from perdure.engine.times.edges import edge_us
from perdure.ports.clock import Clock
from perdure.ports.store import Store, View
from perdure.services.series.series import EVERYTHING, check_name

Period = Literal["hour", "day", "week"]
PERIODS = ("hour", "day", "week")
PAGE = 2_000
GROUPS_MAX = 100_000
SEEN = ("_id", "_at", "_first_seen", "_last_seen")


@dataclass(frozen=True, slots=True)
class Aggregates:
    store: Store
    clock: Clock

    def count(self, owner: Owner, name: str, start: object = None, end: object = None) -> int:
        def work(view: View) -> int:
            low, high = self._range(view, name, start, end)
            return view.series.count(name, low, high)

        return self.store.read(owner, work)

    def edge(self, owner: Owner, name: str, *, newest: bool) -> Entry | None:
        """The first or the last entry."""
        check_name(name)
        query = EntryQuery(name, *EVERYTHING, 1, ascending=not newest)
        return next(iter(self.store.read(owner, lambda view: view.series.entries(query))), None)

    def per(
        self, owner: Owner, name: str, period: Period, *, zone: str | None, start: object, end: object
    ) -> dict[datetime, int]:
        """How many entries fall into each hour, day or week (from Monday) of a zone; empty ones between are there with 0."""
        check_choice(period, "period", PERIODS)

        def work(view: View) -> dict[datetime, int]:
            place = zone_named(zone if zone is not None else _spec(view, name).zone)
            counts: dict[datetime, int] = {}
            try:
                for instant in view.series.instants(name, *self._range(view, name, start, end)):
                    opening = _opening(from_us(instant).astimezone(place), period)
                    counts[opening] = counts.get(opening, 0) + 1
                return _filled(counts, period, place)
            except OverflowError:
                raise InvalidInput(
                    f"an entry at the edge of the calendar has no {period} in that zone; ask with `start` and `end`"
                ) from None

        return self.store.read(owner, work)

    def by_field(self, owner: Owner, name: str, field: str, *, start: object, end: object) -> dict[str, int]:
        """How many entries have each value of a field, most frequent first. Values are told as JSON text unless text."""
        check_id(field, "field", bytes_max=ID_BYTES_MAX)
        counts: dict[str, int] = {}
        for entry in self.entries(owner, name, start, end):
            value = entry.body.get(field)
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
            counts[text] = counts.get(text, 0) + 1
            if len(counts) > GROUPS_MAX:
                raise InvalidInput(f"field `{field:.60}` has more than {GROUPS_MAX} values; group by another one")
        return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))

    def entries(self, owner: Owner, name: str, start: object = None, end: object = None) -> Iterator[Entry]:
        """All entries in the range, oldest first, read page by page; each page is as of its own moment."""
        check_name(name)
        low, high = self.store.read(owner, lambda view: self._range(view, name, start, end))
        after: tuple[int, str] | None = None
        while True:
            query = EntryQuery(name, low, high, PAGE, after, ascending=True)
            page = self._page(owner, query)
            yield from page
            if len(page) < PAGE:
                return
            after = (page[-1].at_us, page[-1].id)

    def _range(self, view: View, name: str, start: object, end: object) -> tuple[int, int]:
        zone, now_us = zone_named(_spec(view, name).zone), to_us(self.clock.now())
        low = EVERYTHING[0] if start is None else edge_us(start, now_us, zone, "`start`", "first")
        high = EVERYTHING[1] if end is None else edge_us(end, now_us, zone, "`end`", "last")
        return low, high

    def _page(self, owner: Owner, query: EntryQuery) -> list[Entry]:
        return self.store.read(owner, lambda view: view.series.entries(query))


def as_jsonl(entries: Callable[[], Iterator[Entry]]) -> Iterator[str]:
    """One line of JSON per entry: the body with its id, instant and when it was seen."""
    for entry in entries():
        yield json.dumps(flat(entry), ensure_ascii=False)


def as_csv(entries: Callable[[], Iterator[Entry]]) -> Iterator[str]:
    """CSV lines with a heading; what nests is JSON text. The entries are read twice: first for their columns."""
    columns = list(dict.fromkeys(name for entry in entries() for name in flat(entry))) or list(SEEN)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    yield buffer.getvalue().removesuffix("\n")
    for entry in entries():
        buffer.seek(0)
        buffer.truncate()
        writer.writerow({name: _cell(value) for name, value in flat(entry).items()})
        yield buffer.getvalue().removesuffix("\n")


def flat(entry: Entry) -> dict[str, Json]:
    """The entry as one object: its body, and what perdure knows of it under names that start with an underscore."""
    return {
        **entry.body,
        "_id": entry.id,
        "_at": from_us(entry.at_us).isoformat(),
        "_first_seen": from_us(entry.first_seen_us).isoformat(),
        "_last_seen": from_us(entry.last_seen_us).isoformat(),
    }


def frame(library: str, rows: list[dict[str, Json]]) -> Any:
    """The rows as a table of another library, with instants as timestamps. Its type is that library's affair."""
    try:
        module = import_module(library)
    except ImportError:
        raise Unsupported(f"`{library}` is not installed; install it with: pip install {library}") from None
    columns = list(dict.fromkeys(name for row in rows for name in row)) or list(SEEN)
    by_column = {name: [_instant(name, row.get(name)) for row in rows] for name in columns}
    if library == "pandas":
        return module.DataFrame(by_column)
    if library == "polars":
        return module.DataFrame(by_column, strict=False)
    return module.table(by_column)


def _instant(name: str, value: Json) -> Json:
    if name in SEEN[1:] and value is not None:
        return datetime.fromisoformat(value)
    # A table has one type per column; what nests stays readable as JSON text.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _cell(value: Json) -> Json:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    # A spreadsheet takes text that starts so for a formula.
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r") else value


def _spec(view: View, name: str) -> SeriesSpec:
    check_name(name)
    held = view.series.find(name)
    return SeriesSpec() if held is None else held.spec


def _opening(instant: datetime, period: str) -> datetime:
    """When the hour, day or week of an instant begins, with its own offset: an hour that comes twice is two hours."""
    if period == "hour":
        return _fixed(instant.replace(minute=0, second=0, microsecond=0))
    day = instant.date() if period == "day" else instant.date() - timedelta(days=instant.weekday())
    return _midnight(day, instant.tzinfo)


def _midnight(day: date, zone: tzinfo | None) -> datetime:
    # Where the clocks skip midnight, the day still begins there, with the offset of the day before.
    return _fixed(datetime.combine(day, time(), zone))


def _fixed(instant: datetime) -> datetime:
    return instant.replace(tzinfo=timezone(instant.utcoffset() or timedelta(0)), fold=0)


def _filled(counts: dict[datetime, int], period: str, zone: tzinfo) -> dict[datetime, int]:
    """The counts in order, with those between that have none."""
    filled: dict[datetime, int] = {}
    at: datetime | None = None
    for opening in sorted(counts):
        while at is not None and (at := _next(at, period, zone)) < opening and len(filled) < GROUPS_MAX:
            filled[at] = 0
        filled[opening] = counts[opening]
        at = opening
    return filled


def _next(at: datetime, period: str, zone: tzinfo) -> datetime:
    if period == "hour":
        return _fixed((at.astimezone(UTC) + timedelta(hours=1)).astimezone(zone))
    # By the calendar: a day on which the clocks change is still one day.
    return _midnight(at.date() + timedelta(days=1 if period == "day" else 7), zone)
