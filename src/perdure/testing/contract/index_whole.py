"""What is promised of what goes with the entries of the index: vectors, packs, owners, erasing and restoring."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.domain.jobs import Settlement
from perdure.domain.scope import Owner
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.index import GONE, IndexEntry, IndexHead, Pack
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.index import (
    ALL,
    A,
    B,
    add,
    an_entry,
    change,
    claim,
    entries,
    finish_job,
    full,
    head,
    index_job,
    numbered,
    put,
    put_packs,
    put_vectors,
    remove,
    rows_of,
    spans,
    vectors,
)
from perdure.testing.contract.samples import ANA, BOB, NOW, fill

INDEX_TABLES = ("index_heads", "index_entries", "index_vectors", "index_packs")


class IndexWholeContract:
    # -- vectors

    def test_vectors_are_kept_by_embedder_and_number(self, store: Store) -> None:
        put(store, *(an_entry(f"m{number}") for number in range(1, 6)))
        put_vectors(store, *((number, bytes([number])) for number in (5, 1, 3)))
        put_vectors(store, (1, b"other"), embedder=B)
        assert vectors(store) == {1: b"\1", 3: b"\3", 5: b"\5"}
        assert (vectors(store, after=1, upto=3), vectors(store, after=3, upto=3)) == ({3: b"\3"}, {})
        put_vectors(store, (3, bytes(range(256)) * 40), (4, b"\4"))
        assert vectors(store, after=1) == {3: bytes(range(256)) * 40, 4: b"\4", 5: b"\5"}
        change(store, lambda index: index.remove_vectors(A))
        assert (vectors(store), vectors(store, B), vectors(store, "unheard of")) == ({}, {1: b"other"}, {})

    def test_vectors_of_what_is_gone_are_left_out(self, store: Store) -> None:
        """They may have been made while somebody replaced or removed the entry."""
        put(store, *(an_entry(f"m{number}") for number in range(1, 5)))
        put(store, an_entry("m2", b"new"))
        remove(store, "m3")
        put_vectors(store, (1, b"v"), (2, b"v"), (3, b"v"), (4, b"v"), (99, b"v"))
        assert sorted(vectors(store)) == [1, 4]
        put_vectors(store)
        put(store, an_entry("m2", b"newer"))
        put(store, an_entry("m2", b"newest"))
        last = head(store).last
        put_vectors(store, *((number, b"v") for number in range(1, last + 1)))
        assert sorted(vectors(store)) == [1, 4, last]

    # -- packs

    def test_a_pack_takes_the_place_of_those_that_overlap_it(self, store: Store) -> None:
        put_packs(store, (1, 4), (5, 8), (9, 12), (20, 30))
        put_packs(store, (4, 5))
        assert spans(store) == [(4, 5), (9, 12), (20, 30)]
        put_packs(store, (13, 19))
        assert spans(store) == [(4, 5), (9, 12), (13, 19), (20, 30)]
        put_packs(store, (9, 12))
        put_packs(store, (25, 26))
        assert spans(store) == [(4, 5), (9, 12), (13, 19), (25, 26)]
        put_packs(store, (1, 40))
        assert spans(store) == [(1, 40)]
        change(store, lambda index: index.remove_packs())
        assert spans(store) == []

    def test_packs_are_dropped_when_the_transaction_ends(self, store: Store) -> None:
        put_packs(store, (1, 4), (5, 8))

        def work(tx: Tx) -> list[tuple[int, int]]:
            tx.index.remove_packs()
            return tx.index.pack_spans()

        assert store.write(ANA, work) == [(1, 4), (5, 8)]
        assert spans(store) == []

    def test_a_pack_comes_back_as_it_was(self, store: Store) -> None:
        pack = Pack(3, 9, B, bytes(range(256)) * 1_000)
        change(store, lambda index: index.put_pack(pack))
        assert store.read(ANA, lambda view: view.index.packs()) == [pack]

    # -- mending

    def test_mending_drops_what_only_says_what_is_gone_and_begins_anew(self, store: Store) -> None:
        full(store)
        put(store, an_entry("m2", b"newer"))
        put(store, an_entry("m9"))
        remove(store, "m9")
        finish_job(store)
        first, held = head(store), {row.number: row for row in entries(store) if row.kind != GONE}
        change(store, lambda index: index.fix())
        now = head(store)
        assert now.incarnation not in ("", first.incarnation)
        assert now == replace(first, incarnation=now.incarnation)
        assert entries(store) == [replace(row, replaces=0) for _, row in sorted(held.items())]
        assert (vectors(store), vectors(store, B), spans(store)) == ({1: b"one"}, {1: b"uno"}, [])
        assert claim(store) == [], "nothing was added"
        put(store, an_entry("m2", b"newest"))
        assert numbered(store)[-1] == (first.last + 1, "m2", 5), "numbers go on"

    def test_mending_takes_back_what_the_head_could_not_know(self, store: Store) -> None:
        put(store, an_entry("m1"), an_entry("m2"))
        change(store, lambda index: index.put_head(replace(index.head(), embedder=A, vectored=99)))
        change(store, lambda index: index.fix())
        assert (head(store).last, head(store).vectored, head(store).embedder) == (2, 0, A)

    def test_mending_nothing_is_nothing_and_others_are_left_alone(self, store: Store) -> None:
        change(store, lambda index: index.fix())
        assert [row for rows in rows_of(store).values() for row in rows] == []
        full(store, BOB)
        full(store)
        theirs = [row for rows in rows_of(store).values() for row in rows if row[1] == "bob"]
        change(store, lambda index: index.fix())
        assert [row for rows in rows_of(store).values() for row in rows if row[1] == "bob"] == theirs

    def test_failed_work_mends_nothing(self, store: Store) -> None:
        full(store)
        before = rows_of(store)

        def work(tx: Tx) -> None:
            tx.index.fix()
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert rows_of(store) == before

    def test_a_pack_that_is_put_while_others_mend_is_never_left_with_something_that_is_over(self, store: Store) -> None:
        """Reading the head keeps rivals off, and so does mending."""
        for number in range(12):
            put(store, an_entry("m1", f"{number}".encode()), an_entry(f"n{number}"))
            seen = head(store)
            rows = entries(store)
            packing = threading.Event()

            def pack(tx: Tx, seen: IndexHead = seen, rows: list[IndexEntry] = rows, begun: threading.Event = packing) -> None:
                same = tx.index.head().incarnation == seen.incarnation
                begun.set()
                if same and tx.index.entries(0, upto=ALL, limit=ALL) == rows:
                    tx.index.put_pack(Pack(rows[0].number, rows[-1].number, A, b"packed"))

            thread = threading.Thread(target=store.write, args=(ANA, pack))
            thread.start()
            packing.wait(5)
            change(store, lambda index: index.fix())
            thread.join()
            assert store.read(ANA, lambda view: view.index.packs()) == []

    # -- owners

    def test_the_index_of_another_owner_is_out_of_reach(self, store: Store) -> None:
        full(store)
        before = rows_of(store)
        others = (BOB, Owner("elsewhere", "ana"), Owner("default", "ANA"), Owner("default", "an%"), Owner("default", "an_"))
        for other in others:
            assert head(store, other) == IndexHead()
            assert (entries(store, other), vectors(store, owner=other), spans(store, other)) == ([], {}, [])
            assert store.read(other, lambda view: view.index.find_entries("message", ["m1"])) == {}
            assert store.read(other, lambda view: view.index.count_entries("message")) == 0
            assert index_job(store, other) is None
            change(store, lambda index: index.remove("message", ["m1"], now=NOW), other)
            put_vectors(store, (1, b"x"), owner=other)
            change(store, lambda index: index.remove_vectors(A), other)
            change(store, lambda index: index.remove_packs(), other)
        now = rows_of(store)
        for table in INDEX_TABLES[1:]:
            assert now[table] == before[table]
        for other in others:
            full(store, other)
            assert head(store, other).incarnation != head(store).incarnation
        assert [row for row in rows_of(store)["index_entries"] if row[:2] == ("default", "ana")] == before["index_entries"]

    # -- the whole store

    def test_an_erased_owner_gets_another_incarnation(self, store: Store) -> None:
        full(store)
        full(store, BOB)
        first, others = head(store), head(store, BOB)
        store.erase(ANA)
        assert head(store) == IndexHead()
        assert (entries(store), vectors(store), vectors(store, B), spans(store), index_job(store)) == ([], {}, {}, [], None)
        add(store, an_entry("m1"))
        assert head(store).incarnation not in ("", first.incarnation)
        assert numbered(store) == [(1, "m1", 0)]
        assert (head(store, BOB), len(entries(store, BOB))) == (others, 3)

    def test_a_restore_with_the_index_keeps_it(self, store: Store) -> None:
        fill(store, ANA, 1)
        full(store)
        finish_job(store)
        saved = self.saved(store)
        self.restore(store, saved)
        assert rows_of(store) == saved[1]
        add(store, an_entry("m9"))
        assert head(store).last == 5

    @pytest.mark.parametrize("state", ["none", "ready", "running", "done", "dead"])
    def test_a_restore_without_the_index_has_it_made_anew(self, store: Store, state: str) -> None:
        """Whatever the job had come to when the backup was made, it will run."""
        for owner in (ANA, BOB):
            fill(store, owner, 1)
        if state != "none":
            full(store)
        if state == "running":
            claim(store)
        elif state == "done":
            finish_job(store)
        elif state == "dead":
            finish_job(store, Settlement("dead", None, 1, "boom", failed=True))
        first = head(store)
        version, saved = self.saved(store)
        self.restore(store, (version, {table: rows for table, rows in saved.items() if not TABLES[table].rebuilt}))
        for owner in (ANA, BOB):
            held = head(store, owner)
            assert held.incarnation not in ("", first.incarnation)
            assert held == IndexHead(held.incarnation), "nothing of what is held is indexed yet"
            assert entries(store, owner) == []
        assert head(store).incarnation != head(store, BOB).incarnation
        # At the latest when the lease of a worker is over that did not live to see the restore.
        assert {job.owner for job in claim(store, now=NOW + timedelta(hours=1))} == {ANA, BOB}
        now = rows_of(store)
        assert now["messages"] == saved["messages"]
        assert [now[table] for table in INDEX_TABLES[1:]] == [[], [], []]
        put(store, an_entry("m1"))
        assert (head(store).last, head(store).lexicon) == (1, 0), "one entry more does not make the index whole"

    def test_a_restore_without_owners_makes_no_heads(self, store: Store) -> None:
        version, saved = self.saved(store)
        self.restore(store, (version, {table: rows for table, rows in saved.items() if not TABLES[table].rebuilt}))
        assert rows_of(store)["index_heads"] == []
        assert claim(store) == []

    @staticmethod
    def saved(store: Store) -> tuple[int, dict[str, list[Row]]]:
        with store.snapshot() as snapshot:
            return snapshot.schema_version, {table: list(snapshot.rows(table)) for table in TABLES}

    @staticmethod
    def restore(store: Store, saved: tuple[int, dict[str, list[Row]]]) -> None:
        version, tables = saved

        def again() -> Iterator[tuple[str, Iterator[Row]]]:
            return ((table, iter(rows)) for table, rows in tables.items())

        store.restore(version, again(), replace=True)
