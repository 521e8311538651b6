"""The laws of state and series, checked over a stream of rows as in `engine.invariants`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.domain.reports import Finding
from perdure.domain.scope import Owner
from perdure.domain.series import CoveredWindow, Entry, PastEntry, Series
from perdure.domain.state import Revision
from perdure.domain.text import brief
from perdure.engine.invariants import whose


@dataclass(slots=True)
class DataInvariants:
    _revisions: dict[tuple[Owner, str], tuple[int, bool]] = field(default_factory=dict)
    """Of each key, the latest revision, and whether that is a value and not a deletion."""
    _latest: dict[tuple[Owner, str], tuple[int, bool]] = field(default_factory=dict)
    _series: dict[tuple[Owner, str], int] = field(default_factory=dict)
    _entries: dict[tuple[Owner, str], int] = field(default_factory=dict)
    _versions: dict[tuple[Owner, str, str], int] = field(default_factory=dict)
    _window_ends: dict[tuple[Owner, str], int] = field(default_factory=dict)

    def state_key(self, owner: Owner, key: str, revision: int, *, valued: bool) -> Iterator[Finding]:
        self._revisions[(owner, key)] = (revision, valued)
        return iter(())

    def state_revision(self, owner: Owner, revision: Revision) -> Iterator[Finding]:
        where = f"{whose(owner)}, state key {brief(revision.key)}, revision {revision.number}"
        previous = self._latest.get((owner, revision.key))
        if previous is not None and revision.number != previous[0] + 1:
            yield Finding("revisions of a key follow one another", where, f"the one before is {previous[0]}")
        self._latest[(owner, revision.key)] = (revision.number, revision.body is not None)
        if revision.body is not None and not _is_json(revision.body):
            yield Finding("a stored value is JSON", where, "it is not")

    def series(self, owner: Owner, series: Series) -> Iterator[Finding]:
        self._series[(owner, series.name)] = series.count
        if series.count != series.fetched - series.duplicates - series.removed:
            seen = f"{series.fetched} fetched, {series.duplicates} duplicates, {series.removed} removed, {series.count} held"
            yield Finding("a series' books balance", _of_series(owner, series.name), seen)

    def entry(self, owner: Owner, series: str, entry: Entry) -> Iterator[Finding]:
        self._entries[(owner, series)] = self._entries.get((owner, series), 0) + 1
        if entry.last_seen_us < entry.first_seen_us:
            yield Finding("an entry is last seen no earlier than first", _of_series(owner, series), f"entry {brief(entry.id)}")

    def past_entry(self, owner: Owner, series: str, past: PastEntry) -> Iterator[Finding]:
        expected = self._versions.get((owner, series, past.id), 0) + 1
        if past.version != expected:
            yield Finding("past versions of an entry are numbered from 1", _of_series(owner, series), f"expected {expected}")
        self._versions[(owner, series, past.id)] = past.version

    def window(self, owner: Owner, series: str, window: CoveredWindow) -> Iterator[Finding]:
        previous = self._window_ends.get((owner, series))
        if previous is not None and window.span.start_us < previous:
            yield Finding("covered windows do not overlap", _of_series(owner, series), window.span.start.isoformat())
        self._window_ends[(owner, series)] = window.span.end_us
        if window.span.end_us > window.fetched_us:
            yield Finding("no window covers what was the future", _of_series(owner, series), window.span.end.isoformat())

    def end(self) -> Iterator[Finding]:
        for place, (number, valued) in self._revisions.items():
            if self._latest.get(place) != (number, valued):
                where = f"{whose(place[0])}, state key {brief(place[1])}"
                seen = f"it says {number}, {'a value' if valued else 'a deletion'}"
                yield Finding("a key stands at its latest revision", where, seen)
        for (owner, name), stated in self._series.items():
            held = self._entries.get((owner, name), 0)
            if stated != held:
                yield Finding("a series counts its entries", _of_series(owner, name), f"{stated} stated, {held} held")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _of_series(owner: Owner, name: str) -> str:
    return f"{whose(owner)}, series {name!r:.60}"
