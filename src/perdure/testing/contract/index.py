"""What is promised of the search index: a numbered log of entries, its head, and the job that goes with it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from perdure.domain.context.recall import LEXICON, NewEntry
from perdure.domain.errors import Conflict
from perdure.domain.jobs import Claim, Job, Settlement
from perdure.domain.scope import Owner
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.index import GONE, INDEX_JOB, IndexEntry, IndexHead, IndexTx, Pack
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.samples import ANA, BOB, DONE, NOW, a_session, settle

ALL = 10**9
A, B = "a/1/2", "b/1/2"
INDEX_TABLES = ("index_heads", "index_entries", "index_vectors", "index_packs")
HEAD = IndexHead(incarnation="another", last=99, lexicon=7, embedder=A, vectored=1, coming=B, coming_upto=2)


def an_entry(ref: str, body: bytes | None = None, *, kind: str = "message") -> NewEntry:
    return NewEntry(kind, ref, f"body of {ref}".encode() if body is None else body)


def change(store: Store, work: Callable[[IndexTx], object], owner: Owner = ANA) -> None:
    store.write(owner, lambda tx: work(tx.index))


def add(store: Store, *entries: NewEntry, owner: Owner = ANA) -> None:
    change(store, lambda index: index.add(entries, now=NOW), owner)


def put(store: Store, *entries: NewEntry, owner: Owner = ANA) -> None:
    change(store, lambda index: index.put(entries, now=NOW), owner)


def remove(store: Store, *refs: str, kind: str = "message") -> None:
    change(store, lambda index: index.remove(kind, refs, now=NOW))


def head(store: Store, owner: Owner = ANA) -> IndexHead:
    return store.read(owner, lambda view: view.index.head())


def entries(store: Store, owner: Owner = ANA, *, after: int = 0, upto: int = ALL, limit: int = ALL) -> list[IndexEntry]:
    return store.read(owner, lambda view: view.index.entries(after, upto=upto, limit=limit))


def numbered(store: Store, owner: Owner = ANA) -> list[tuple[int, str, int]]:
    return [(row.number, row.ref, row.replaces) for row in entries(store, owner)]


def vectors(store: Store, embedder: str = A, *, after: int = 0, upto: int = ALL, owner: Owner = ANA) -> dict[int, bytes]:
    found = store.read(owner, lambda view: view.index.vectors(embedder, after, upto=upto))
    assert [number for number, _ in found] == sorted({number for number, _ in found}), "by number, each once"
    return dict(found)


def put_vectors(store: Store, *vectors: tuple[int, bytes], embedder: str = A, owner: Owner = ANA) -> None:
    change(store, lambda index: index.put_vectors(embedder, vectors), owner)


def put_packs(store: Store, *spans: tuple[int, int], owner: Owner = ANA) -> None:
    for first, last in spans:
        pack = Pack(first, last, A, f"{first}-{last}".encode())
        change(store, lambda index, pack=pack: index.put_pack(pack), owner)  # type: ignore[misc]


def spans(store: Store, owner: Owner = ANA) -> list[tuple[int, int]]:
    held = store.read(owner, lambda view: view.index.packs())
    told = store.read(owner, lambda view: view.index.pack_spans())
    assert told == [(pack.first, pack.last) for pack in held]
    assert all(pack.body == f"{pack.first}-{pack.last}".encode() for pack in held)
    return told


def index_job(store: Store, owner: Owner = ANA) -> Job | None:
    return store.read(owner, lambda view: view.find_job(INDEX_JOB, INDEX_JOB))


def claim(store: Store, *, now: datetime = NOW) -> list[Job]:
    return store.claim(Claim("w", (INDEX_JOB,), now, 60.0, 10))


def finish_job(store: Store, end: Settlement = DONE) -> None:
    """Claim the index job and settle it."""
    [job] = claim(store)
    assert settle(store, job, end)


def rows_of(store: Store) -> dict[str, list[Row]]:
    with store.snapshot() as snapshot:
        return {table: list(snapshot.rows(table)) for table in TABLES}


def full(store: Store, owner: Owner = ANA) -> None:
    """Three entries, of which one was replaced; vectors of two embedders; a pack; a head that says so."""
    put(store, an_entry("m1"), an_entry("m2"), an_entry("t1", kind="todo"), owner=owner)
    put(store, an_entry("m2", b"new words"), owner=owner)
    put_vectors(store, (1, b"one"), (4, b"four"), owner=owner)
    put_vectors(store, (1, b"uno"), embedder=B, owner=owner)
    put_packs(store, (1, 3), owner=owner)
    change(store, lambda index: index.put_head(replace(index.head(), embedder=A, vectored=4)), owner)


class IndexContract:
    # -- numbers

    def test_entries_are_numbered_from_one_in_the_order_they_were_given(self, store: Store) -> None:
        assert head(store) == IndexHead()
        add(store, an_entry("m1"), an_entry("m2"))
        put(store, an_entry("k", kind="state"), an_entry("m3"))
        assert entries(store) == [
            IndexEntry(1, "message", "m1", 0, b"body of m1"),
            IndexEntry(2, "message", "m2", 0, b"body of m2"),
            IndexEntry(3, "state", "k", 0, b"body of k"),
            IndexEntry(4, "message", "m3", 0, b"body of m3"),
        ]
        held = head(store)
        assert held.incarnation
        assert held == IndexHead(held.incarnation, 4, LEXICON)

    def test_what_is_indexed_first_makes_the_head_whole(self, store: Store) -> None:
        """Nothing was held before, so everything is indexed by the rules of today."""
        assert head(store).lexicon == 0
        add(store, an_entry("m1"))
        assert head(store).lexicon == LEXICON

    def test_bodies_and_ids_come_back_byte_by_byte(self, store: Store) -> None:
        body = bytes(range(256)) * 300
        refs = ("ü 𝒜", "a\x1fb\x1f1\x1ffold", "%", "_", "'; --", "x" * 900, "A", "a")
        put(store, *(an_entry(ref, body + ref.encode()) for ref in refs))
        assert [(row.ref, row.body) for row in entries(store)] == [(ref, body + ref.encode()) for ref in refs]
        found = store.read(ANA, lambda view: view.index.find_entries("message", [*refs, "missing"]))
        assert found == {ref: number for number, ref in enumerate(refs, 1)}

    def test_adding_what_is_indexed_is_a_conflict_and_leaves_nothing(self, store: Store) -> None:
        add(store, an_entry("m1"))
        before = rows_of(store)
        with pytest.raises(Conflict):
            add(store, an_entry("m2"), an_entry("m1", b"other"))
        assert rows_of(store) == before
        add(store, an_entry("m1", kind="todo"))
        add(store, an_entry("m1"), owner=BOB)

    def test_adding_what_is_indexed_is_a_conflict_whatever_else_the_transaction_does(self, store: Store) -> None:
        add(store, an_entry("m1"))
        before = rows_of(store)

        def work(index: IndexTx) -> None:
            index.put([an_entry("k", kind="state")], now=NOW)
            index.add([an_entry("m1", b"other")], now=NOW)

        with pytest.raises(Conflict):
            change(store, work)
        assert rows_of(store) == before

    # -- replacing and removing

    def test_putting_replaces_and_names_what_it_replaces(self, store: Store) -> None:
        put(store, an_entry("m1"), an_entry("m2"))
        put_vectors(store, (1, b"one"), (2, b"two"))
        put_vectors(store, (1, b"uno"), embedder=B)
        put(store, an_entry("m1", b"new"), an_entry("m3"))
        assert numbered(store) == [(2, "m2", 0), (3, "m1", 1), (4, "m3", 0)]
        assert store.read(ANA, lambda view: view.index.find_entries("message", ["m1", "m2"])) == {"m1": 3, "m2": 2}
        assert (vectors(store), vectors(store, B)) == ({2: b"two"}, {}), "the vectors of old words are gone"
        put(store, an_entry("m1", b"newer"))
        assert numbered(store) == [(2, "m2", 0), (3, "3", 1), (4, "m3", 0), (5, "m1", 3)]
        assert entries(store, after=2, upto=3) == [IndexEntry(3, GONE, "3", 1, b"")], "it still says that 1 is no more"

    def test_putting_what_says_the_same_changes_nothing(self, store: Store) -> None:
        put(store, an_entry("m1"), an_entry("m2"))
        put_vectors(store, (1, b"one"))
        finish_job(store)
        before = rows_of(store)
        put(store, an_entry("m1"), an_entry("m2"))
        assert rows_of(store) == before
        put(store, an_entry("m1"), an_entry("m2", b"new"))
        assert (numbered(store), vectors(store)) == ([(1, "m1", 0), (3, "m2", 2)], {1: b"one"})
        with pytest.raises(Conflict):
            add(store, an_entry("m1"))

    def test_one_id_of_two_kinds_is_two_things(self, store: Store) -> None:
        put(store, an_entry("x"), an_entry("x", kind="todo"))
        put(store, an_entry("x", b"new", kind="todo"))
        assert [(row.number, row.kind) for row in entries(store)] == [(1, "message"), (3, "todo")]
        remove(store, "x")
        assert store.read(ANA, lambda view: view.index.find_entries("todo", ["x"])) == {"x": 3}

    def test_removing_leaves_a_row_that_says_so_and_takes_vectors_and_packs_along(self, store: Store) -> None:
        put(store, *(an_entry(f"m{number}") for number in range(1, 7)))
        put_vectors(store, *((number, b"v") for number in range(1, 7)))
        put_vectors(store, (3, b"w"), embedder=B)
        put_packs(store, (1, 2), (3, 4), (5, 6))
        remove(store, "m3", "missing")
        assert entries(store, after=6) == [IndexEntry(7, GONE, "7", 3, b"")]
        assert [row.number for row in entries(store)] == [1, 2, 4, 5, 6, 7]
        assert (sorted(vectors(store)), vectors(store, B)) == ([1, 2, 4, 5, 6], {})
        assert spans(store) == [(1, 2), (5, 6)]
        assert store.read(ANA, lambda view: view.index.find_entries("message", ["m3"])) == {}
        assert head(store).last == 7

    def test_removed_and_put_again_is_new(self, store: Store) -> None:
        put(store, an_entry("m1"))
        remove(store, "m1")
        add(store, an_entry("m1", b"again"))
        assert numbered(store) == [(2, "2", 1), (3, "m1", 0)]

    def test_a_thing_that_was_replaced_and_then_removed_is_in_no_pack(self, store: Store) -> None:
        """Anyone who reads the packs and then the rows must not meet an entry that nothing says is over."""
        put(store, *(an_entry(f"m{number}") for number in range(1, 5)))
        put_packs(store, (1, 2), (3, 4))
        put(store, an_entry("m1", b"second"))
        put(store, an_entry("m1", b"third"))
        self.check_readers(store, {"m1": b"third", "m2": b"body of m2"})
        remove(store, "m1")
        self.check_readers(store, {"m2": b"body of m2"})

    @staticmethod
    def check_readers(store: Store, expected: dict[str, bytes]) -> None:
        """Entries that stand in a pack only are over, and some row says so: nothing else tells a reader."""
        held = {row.number: row for row in entries(store)}
        over = {row.replaces for row in held.values()}
        packed = {number for first, last in spans(store) for number in range(first, last + 1)}
        ghosts = packed - held.keys() - over
        assert not ghosts, f"a reader of the packs takes {ghosts} for current"
        assert {row.ref: row.body for row in held.values() if row.kind != GONE and row.ref in ("m1", "m2")} == expected

    def test_the_last_word_of_a_transaction_wins(self, store: Store) -> None:
        put(store, an_entry("held"))

        def work(index: IndexTx) -> None:
            index.put([an_entry("m1", b"first"), an_entry("m2")], now=NOW)
            index.put([an_entry("m1", b"second")], now=NOW)
            index.remove("message", ["m2", "held"], now=NOW)
            index.put([an_entry("held", b"after all")], now=NOW)
            index.add([an_entry("m3")], now=NOW)
            index.remove("message", ["m3"], now=NOW)

        change(store, work)
        assert {row.ref: (row.replaces, row.body) for row in entries(store)} == {
            "m1": (0, b"second"),
            "held": (1, b"after all"),
        }
        assert (len(entries(store)), head(store).last) == (2, 3), "no number is spent on what was taken back"

    # -- transactions

    def test_effects_appear_when_the_transaction_ends(self, store: Store) -> None:
        put(store, an_entry("held"))

        def work(tx: Tx) -> tuple[Any, ...]:
            tx.index.put([an_entry("m1")], now=NOW)
            tx.index.remove("message", ["held"], now=NOW)
            return (
                tx.index.head().last,
                [row.ref for row in tx.index.entries(0, upto=ALL, limit=ALL)],
                tx.index.find_entries("message", ["held", "m1"]),
                tx.index.count_entries("message"),
            )

        assert store.write(ANA, work) == (1, ["held"], {"held": 1}, 1)
        assert numbered(store) == [(2, "m1", 0), (3, "3", 1)]

    def test_failed_work_leaves_nothing_in_the_index_and_no_job(self, store: Store) -> None:
        full(store)
        finish_job(store)
        before = rows_of(store)

        def work(tx: Tx) -> None:
            tx.index.add([an_entry("new")], now=NOW)
            tx.index.put([an_entry("m1", b"x")], now=NOW)
            tx.index.remove("todo", ["t1"], now=NOW)
            tx.index.put_head(replace(HEAD, embedder="x"))
            tx.index.put_vectors(A, [(1, b"x")])
            tx.index.remove_vectors(B)
            tx.index.put_pack(Pack(2, 2, A, b"x"))
            tx.index.remove_packs()
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert rows_of(store) == before

    def test_a_conflict_in_the_end_takes_everything_else_back(self, store: Store) -> None:
        add(store, an_entry("m1"))
        before = rows_of(store)

        def work(tx: Tx) -> None:
            tx.put_sessions([a_session()])
            tx.index.add([an_entry("m1")], now=NOW)

        with pytest.raises(Conflict):
            store.write(ANA, work)
        assert rows_of(store) == before

    def test_the_job_is_there_exactly_when_something_changed(self, store: Store) -> None:
        assert index_job(store) is None
        change(store, lambda index: index.add([], now=NOW))
        change(store, lambda index: index.put([], now=NOW))
        remove(store, "nothing", "of", "this")
        change(store, lambda index: index.remove_packs())
        assert index_job(store) is None
        changes: Sequence[Callable[[], None]] = (
            lambda: add(store, an_entry("m1")),
            lambda: put(store, an_entry("m1", b"new")),
            lambda: put(store, an_entry("m2")),
            lambda: remove(store, "m1"),
        )
        for make in changes:
            make()
            job = index_job(store)
            assert job is not None
            assert (job.state, job.due_at) == ("ready", NOW)
            finish_job(store)
            remove(store, "nothing")
            put_vectors(store, (1, b"v"))
            put_packs(store, (1, 1))
            change(store, lambda index: index.put_head(replace(index.head(), embedder=A)))
            assert claim(store) == []

    def test_where_nothing_changes_no_trace_of_the_owner_is_left(self, store: Store) -> None:
        change(store, lambda index: index.add([], now=NOW))
        remove(store, "nothing", "of", "this")
        change(store, lambda index: index.remove_packs())
        change(store, lambda index: index.remove_vectors(A))
        put_vectors(store, (1, b"v"))
        assert [row for rows in rows_of(store).values() for row in rows] == []

    def test_a_change_while_the_job_runs_makes_it_run_again(self, store: Store) -> None:
        add(store, an_entry("m1"))
        [job] = claim(store)
        add(store, an_entry("m2"))
        settle(store, job)
        [again] = claim(store)
        assert (again.kind, again.attempts) == (INDEX_JOB, 1)

    def test_a_full_queue_does_not_keep_anything_from_being_indexed(self, store: Store) -> None:
        from perdure.testing.contract.samples import a_job, enqueue

        enqueue(store, a_job(), queue_max=1)
        add(store, an_entry("m1"))
        assert index_job(store) is not None

    def test_rivals_get_numbers_without_holes_and_in_the_order_of_their_commits(self, store: Store) -> None:
        """Who has read up to a number has seen everything up to it, for good."""
        stop = threading.Event()
        trouble: list[str] = []

        def watch() -> None:
            while not stop.is_set():
                seen, rows = store.read(ANA, lambda view: (view.index.head(), view.index.entries(0, upto=ALL, limit=ALL)))
                if [row.number for row in rows] != list(range(1, seen.last + 1)):
                    trouble.append(f"{len(rows)} rows up to {seen.last}")

        def write(name: str) -> None:
            for number in range(8):
                add(store, an_entry(f"{name}.{number}"), an_entry(f"{name}.{number}b"))

        watcher = threading.Thread(target=watch)
        writers = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in (watcher, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        stop.set()
        watcher.join()
        assert trouble == []
        assert [row.number for row in entries(store)] == list(range(1, 65))

    def test_rivals_that_put_the_same_thing_leave_one_entry(self, store: Store) -> None:
        def write(name: str) -> None:
            for number in range(8):
                put(store, an_entry("same", f"{name}{number}".encode()))

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        [row] = [row for row in entries(store) if row.kind != GONE]
        assert (row.number, row.replaces) == (32, 31)

    # -- reading

    def test_entries_come_by_number_within_bounds(self, store: Store) -> None:
        put(store, *(an_entry(f"m{number}") for number in range(1, 8)))
        put(store, an_entry("m4", b"new"))

        def numbers(after: int, upto: int, limit: int) -> list[int]:
            return [row.number for row in entries(store, after=after, upto=upto, limit=limit)]

        assert numbers(0, ALL, ALL) == [1, 2, 3, 5, 6, 7, 8]
        assert numbers(2, 6, ALL) == [3, 5, 6]
        assert numbers(2, 6, 2) == [3, 5]
        assert numbers(3, 4, ALL) == []
        assert numbers(6, 6, ALL) == []
        assert numbers(7, 3, ALL) == []
        assert numbers(8, ALL, ALL) == []

    def test_entries_are_counted_by_kind(self, store: Store) -> None:
        put(store, an_entry("m1"), an_entry("m2"), an_entry("t1", kind="todo"))
        put(store, an_entry("m1", b"new"))
        remove(store, "m2")

        def count(kind: str) -> int:
            return store.read(ANA, lambda view: view.index.count_entries(kind))

        assert (count("message"), count("todo"), count(GONE), count("state")) == (1, 1, 1, 0)

    def test_finding_nothing_is_no_error(self, store: Store) -> None:
        assert store.read(ANA, lambda view: view.index.find_entries("message", [])) == {}
        assert store.read(ANA, lambda view: view.index.find_entries("message", ["m1", "m1"])) == {}
        add(store, an_entry("m1"))
        assert store.read(ANA, lambda view: view.index.find_entries("message", ["m1", "m1", "M1", "m"])) == {"m1": 1}

    # -- head

    def test_an_index_that_is_begun_is_there_and_empty_and_asks_for_no_job(self, store: Store) -> None:
        change(store, lambda index: index.begin())
        begun = head(store)
        assert begun == IndexHead(begun.incarnation, lexicon=LEXICON)
        assert begun.incarnation
        assert index_job(store) is None
        add(store, an_entry("m1"))
        change(store, lambda index: index.begin())
        assert head(store) == replace(begun, last=1), "one that is there stays as it is"

    def test_a_head_that_is_put_keeps_incarnation_and_last(self, store: Store) -> None:
        add(store, an_entry("m1"), an_entry("m2"))
        held = head(store)
        change(store, lambda index: index.put_head(HEAD))
        assert head(store) == replace(HEAD, incarnation=held.incarnation, last=2)
        add(store, an_entry("m3"))
        assert head(store) == replace(HEAD, incarnation=held.incarnation, last=3), "adding changes nothing else"

    def test_a_head_is_not_put_where_there_is_none(self, store: Store) -> None:
        """A job that is late must not bring back an owner who was erased."""
        change(store, lambda index: index.put_head(HEAD))
        assert head(store) == IndexHead()
        assert rows_of(store)["index_heads"] == []

    def test_a_transaction_sees_the_head_it_has_put(self, store: Store) -> None:
        add(store, an_entry("m1"))

        def work(tx: Tx) -> IndexHead:
            tx.index.put_head(replace(tx.index.head(), embedder=A, vectored=1))
            return tx.index.head()

        seen = store.write(ANA, work)
        assert (seen, seen.embedder, seen.vectored) == (head(store), A, 1)

    def test_heads_that_are_read_and_put_by_rivals_lose_nothing(self, store: Store) -> None:
        """In a transaction that writes, reading the head keeps rivals off."""
        add(store, an_entry("m1"))

        def count() -> None:
            for _ in range(10):
                change(store, lambda index: index.put_head(replace(index.head(), vectored=index.head().vectored + 1)))

        threads = [threading.Thread(target=count) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert head(store).vectored == 40
