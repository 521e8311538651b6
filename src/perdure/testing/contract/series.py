"""What is promised of time series.

What is promised of key-value state.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.domain.errors import Conflict
from perdure.domain.series import CoveredWindow, Entry, EntryQuery, Series, SeriesSpec
from perdure.domain.state import Revision
from perdure.domain.times.spans import Span
from perdure.ports.store import Store, Tx
from perdure.ports.tables.series import FetchLease
from perdure.testing.contract.samples import ANA, BOB, NOW

S = "s"


def an_entry(name: str, at: int, *, seen: int = 0, **body: object) -> Entry:
    return Entry(name, at, {"id": name, **body}, seen, seen)


def make(store: Store, entries: Iterable[Entry] = (), *, name: str = S) -> None:
    def work(tx: Tx) -> None:
        tx.series.create(Series(name, SeriesSpec(), NOW, NOW))
        tx.series.put_entries(name, entries)

    store.write(ANA, work)


def cover(store: Store, *windows: tuple[int, int, int]) -> None:
    covered = [CoveredWindow(Span(start, end), fetched) for start, end, fetched in windows]
    store.write(ANA, lambda tx: tx.series.replace_windows(S, Span(-1, 10**6), covered))


def covered(store: Store, start: int, end: int) -> list[tuple[int, int, int]]:
    found = store.read(ANA, lambda view: view.series.windows(S, Span(start, end)))
    return [(window.span.start_us, window.span.end_us, window.fetched_us) for window in found]


class SeriesContract:
    def test_a_series_comes_back_and_keeps_when_it_began(self, store: Store) -> None:
        make(store)
        later = Series(
            name=S,
            spec=SeriesSpec(zone="Europe/Berlin"),
            accumulated_since=NOW.replace(year=2030),
            last_updated=NOW.replace(year=2030),
            count=1,
            api_calls=2,
            fetched=3,
            duplicates=4,
            removed=5,
        )
        store.write(ANA, lambda tx: tx.series.put(later))
        assert store.read(ANA, lambda view: view.series.find(S)) == replace(later, accumulated_since=NOW)
        assert store.read(ANA, lambda view: view.series.find("S")) is None
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.series.create(later))
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.series.put(replace(later, name="other")))
        assert store.read(BOB, lambda view: view.series.find(S)) is None

    def test_series_list_by_name(self, store: Store) -> None:
        for name in ("b", "a", "B"):
            make(store, name=name)
        found = store.read(ANA, lambda view: view.series.list_series(after=None, limit=10))
        assert [one.name for one in found] == ["B", "a", "b"]
        assert [one.name for one in store.read(ANA, lambda view: view.series.list_series(after="a", limit=1))] == ["b"]

    def test_entries_come_by_instant_then_id_with_both_ends_included(self, store: Store) -> None:
        make(store, [an_entry("b", 10), an_entry("a", 10), an_entry("c", -5), an_entry("d", 20)])

        def ids(query: EntryQuery) -> list[str]:
            return [entry.id for entry in store.read(ANA, lambda view: view.series.entries(query))]

        assert ids(EntryQuery(S, -5, 20, 10)) == ["d", "b", "a", "c"]
        assert ids(EntryQuery(S, -5, 10, 10, ascending=True)) == ["c", "a", "b"]
        assert ids(EntryQuery(S, -5, 20, 2, after=(10, "b"))) == ["a", "c"]
        assert ids(EntryQuery(S, -5, 20, 1, after=(10, "a"), ascending=True)) == ["b"]
        assert ids(EntryQuery(S, 11, 19, 10)) == []
        assert store.read(ANA, lambda view: view.series.count(S, -5, 10)) == 3
        assert store.read(ANA, lambda view: view.series.extremes(S)) == (-5, 20)
        assert store.read(ANA, lambda view: view.series.extremes("none")) == (None, None)
        assert store.read(ANA, lambda view: list(view.series.instants(S, -5, 10))) == [-5, 10, 10]
        assert store.read(BOB, lambda view: view.series.count(S, -5, 20)) == 0

    def test_entries_can_be_found_by_when_they_were_first_seen(self, store: Store) -> None:
        make(store, [an_entry("old", 1, seen=50), an_entry("new", 2, seen=10)])
        query = EntryQuery(S, 10, 50, 10, by_first_seen=True)
        assert [entry.id for entry in store.read(ANA, lambda view: view.series.entries(query))] == ["old", "new"]
        query = EntryQuery(S, 10, 50, 10, ascending=True, by_first_seen=True)
        assert [entry.id for entry in store.read(ANA, lambda view: view.series.entries(query))] == ["new", "old"]
        assert store.read(ANA, lambda view: view.series.count(S, 10, 49, by_first_seen=True)) == 1

    def test_an_entry_is_replaced_by_its_id_and_keeps_when_it_was_first_seen(self, store: Store) -> None:
        make(store, [an_entry("a", 1, seen=5, n=1)])
        store.write(ANA, lambda tx: tx.series.put_entries(S, [an_entry("a", 2, seen=9, n=2)]))
        found = store.read(ANA, lambda view: view.series.find_entries(S, ["a", "b"]))
        assert found == {"a": Entry("a", 2, {"id": "a", "n": 2}, 5, 9)}

    def test_losing_bodies_are_numbered_and_listed_newest_first(self, store: Store) -> None:
        make(store, [an_entry("a", 1)])
        store.write(ANA, lambda tx: tx.series.add_past(S, [("a", 1, {"n": 1}), ("a", 2, {"n": 2})], seen_us=7))
        store.write(ANA, lambda tx: tx.series.add_past(S, [("a", 1, {"n": 1})], seen_us=9))
        found = store.read(ANA, lambda view: view.series.history(S, "a", limit=5))
        assert [(one.version, one.at_us, one.body, one.seen_us) for one in found] == [(2, 2, {"n": 2}, 7), (1, 1, {"n": 1}, 7)]

    def test_windows_are_those_that_touch_and_the_one_before(self, store: Store) -> None:
        make(store)
        cover(store, (0, 10, 100), (20, 30, 101), (30, 40, 102), (50, 60, 103))
        assert covered(store, 25, 35) == [(20, 30, 101), (30, 40, 102)]
        assert covered(store, 40, 50) == [(30, 40, 102), (50, 60, 103)]
        assert covered(store, 30, 35) == [(20, 30, 101), (30, 40, 102)]
        assert covered(store, 45, 46) == [(30, 40, 102)]
        assert covered(store, 70, 80) == [(50, 60, 103)]
        assert covered(store, -9, -5) == []
        assert store.read(ANA, lambda view: view.series.last_window(S)) == CoveredWindow(Span(50, 60), 103)
        assert store.read(ANA, lambda view: view.series.last_window("none")) is None

    def test_windows_are_replaced_where_they_touch(self, store: Store) -> None:
        make(store)
        cover(store, (0, 10, 1), (10, 20, 2), (40, 50, 3))
        new = [CoveredWindow(Span(5, 30), 9)]
        store.write(ANA, lambda tx: tx.series.replace_windows(S, Span(20, 30), new))
        assert covered(store, -1, 99) == [(0, 10, 1), (5, 30, 9), (40, 50, 3)]

    def test_trimming_forgets_what_lies_before(self, store: Store) -> None:
        make(store)
        cover(store, (0, 10, 100), (20, 30, 101), (30, 40, 102))
        store.write(ANA, lambda tx: tx.series.trim_windows(S, 25))
        assert covered(store, -1, 99) == [(25, 30, 101), (30, 40, 102)]
        store.write(ANA, lambda tx: tx.series.trim_windows(S, 30))
        assert covered(store, -1, 99) == [(30, 40, 102)]
        store.write(ANA, lambda tx: tx.series.trim_windows(S, 90))
        assert covered(store, -1, 99) == []

    def test_old_entries_go_with_their_past(self, store: Store) -> None:
        make(store, [an_entry("a", 1), an_entry("b", 2), an_entry("c", 2), an_entry("d", 3)])
        store.write(ANA, lambda tx: tx.series.add_past(S, [("a", 0, {}), ("d", 0, {})], seen_us=7))
        assert store.write(ANA, lambda tx: tx.series.remove_before(S, 2)) == 1
        assert store.read(ANA, lambda view: view.series.history(S, "a", limit=5)) == []
        assert store.write(ANA, lambda tx: tx.series.remove_oldest(S, 1)) == 2
        assert sorted(store.read(ANA, lambda view: view.series.find_entries(S, ["a", "b", "c", "d"]))) == ["c", "d"]
        assert store.write(ANA, lambda tx: tx.series.remove_oldest(S, 0)) is None

    def test_leases_run_out_and_are_dropped(self, store: Store) -> None:
        make(store)
        lease = FetchLease(Span(10, 20), "h", 100)
        store.write(ANA, lambda tx: tx.series.put_lease(S, lease))

        def live(start: int, end: int, now: int) -> list[FetchLease]:
            return store.read(ANA, lambda view: view.series.leases(S, Span(start, end), now))

        assert live(19, 30, 99) == [lease]
        assert live(20, 30, 99) == live(0, 10, 99) == live(10, 20, 100) == []
        longer = replace(lease, until_us=200)
        store.write(ANA, lambda tx: tx.series.put_lease(S, longer))
        assert live(10, 20, 150) == [longer]
        store.write(ANA, lambda tx: tx.series.drop_leases(S, "h", 0))
        assert live(10, 20, 0) == []

    def test_a_removed_series_leaves_nothing(self, store: Store) -> None:
        make(store, [an_entry("a", 1), an_entry("b", 2)])
        cover(store, (0, 10, 100))
        store.write(ANA, lambda tx: tx.series.add_past(S, [("a", 0, {})], seen_us=7))
        store.write(ANA, lambda tx: tx.series.put_lease(S, FetchLease(Span(1, 2), "h", 9)))
        assert store.write(ANA, lambda tx: tx.series.remove(S)) == 2
        assert store.write(ANA, lambda tx: tx.series.remove(S)) == 0
        with store.snapshot() as snapshot:
            for table in ("series", "series_entries", "series_past", "series_windows", "series_leases"):
                assert list(snapshot.rows(table)) == []


def put(store: Store, key: str, number: int, body: str | None, *, expires_s: float | None = None, keep: int = 10) -> None:
    expires = None if expires_s is None else NOW + timedelta(seconds=expires_s)
    revision = Revision(key, number, body, NOW, expires)
    store.write(ANA, lambda tx: tx.state.put(revision, keep=keep))


def keys(store: Store, prefix: str = "", after: str | None = None, limit: int = 10) -> list[str]:
    found = store.read(ANA, lambda view: view.state.list_keys(now=NOW, prefix=prefix, after=after, limit=limit))
    return [info.key for info in found]


class StateContract:
    def test_a_value_comes_back_with_its_revision(self, store: Store) -> None:
        put(store, "k", 1, '{"a": "ü"}')
        put(store, "k", 2, "null")
        latest = store.read(ANA, lambda view: view.state.find("k"))
        assert latest == Revision("k", 2, "null", NOW)
        assert store.read(ANA, lambda view: view.state.find_revision("k", 1)) == Revision("k", 1, '{"a": "ü"}', NOW)
        assert store.read(ANA, lambda view: view.state.find_revision("k", 3)) is None
        assert store.read(ANA, lambda view: view.state.find("K")) is None
        assert store.read(BOB, lambda view: view.state.find("k")) is None

    def test_revisions_follow_one_another(self, store: Store) -> None:
        put(store, "k", 1, "1")
        for wrong in (1, 3):
            with pytest.raises(Conflict):
                put(store, "k", wrong, "2")
        assert [one.number for one in store.read(ANA, lambda view: view.state.list_revisions("k", limit=5))] == [1]

    def test_old_revisions_are_forgotten_beyond_the_bound(self, store: Store) -> None:
        for number in range(1, 6):
            put(store, "k", number, str(number), keep=3)
        found = store.read(ANA, lambda view: view.state.list_revisions("k", limit=10))
        assert [(one.number, one.body) for one in found] == [(5, "5"), (4, "4"), (3, "3")]
        older = store.read(ANA, lambda view: view.state.list_revisions("k", limit=1, before=5))
        assert [one.number for one in older] == [4]

    def test_live_keys_are_listed_in_order_without_their_values(self, store: Store) -> None:
        for key in ("b", "a", "a%", "ab", "B", "ä"):
            put(store, key, 1, '"' + "x" * 200 + '"')
        put(store, "gone", 1, "1")
        put(store, "gone", 2, None)
        put(store, "late", 1, "1", expires_s=0)
        put(store, "soon", 1, "1", expires_s=1)
        assert keys(store) == ["B", "a", "a%", "ab", "b", "soon", "ä"]
        assert keys(store, prefix="a") == ["a", "a%", "ab"]
        assert keys(store, prefix="a%") == ["a%"]
        assert keys(store, after="a%", limit=2) == ["ab", "b"]
        [info] = store.read(ANA, lambda view: view.state.list_keys(now=NOW, prefix="B", after=None, limit=1))
        assert (info.size_bytes, info.revision, info.preview) == (202, 1, '"' + "x" * 100)

    def test_a_revision_is_found_by_the_request_that_made_it(self, store: Store) -> None:
        revision = Revision("k", 1, "1", NOW, request="r1")
        store.write(ANA, lambda tx: tx.state.put(revision, keep=10))
        assert store.read(ANA, lambda view: view.state.find_request("k", "r1")) == revision
        assert store.read(ANA, lambda view: view.state.find_request("k", "r2")) is None
        assert store.read(ANA, lambda view: view.state.find_request("j", "r1")) is None

    def test_a_removed_key_leaves_nothing(self, store: Store) -> None:
        put(store, "k", 1, "1")
        put(store, "k", 2, "2")
        assert store.write(ANA, lambda tx: tx.state.remove("k")) == 2
        assert store.write(ANA, lambda tx: tx.state.remove("k")) == 0
        put(store, "k", 1, "1")
