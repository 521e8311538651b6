"""Storing time series of one owner; part of a `View` and a `Tx`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from perdure.domain.series import CoveredWindow, Entry, EntryQuery, PastEntry, Series
from perdure.domain.spans import Span
from perdure.domain.text import Json


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
