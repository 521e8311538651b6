"""What is promised of the access log."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.domain.access import Access, TouchedRecords
from perdure.domain.errors import Conflict
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.records import Record
from perdure.domain.scope import ERASURES, Address, Owner
from perdure.domain.state import Revision
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.access import OwnerVersion
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.index import add, an_entry
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, fill, run_together

LATER = NOW + timedelta(minutes=5)


def an_access(name: str, *, minutes: int = 0, names: tuple[str, ...] = ("m1", "ünï|x")) -> Access:
    touched = (TouchedRecords("message", 70, names), TouchedRecords("entry", 3))
    return Access(
        id=name,
        at=NOW + timedelta(minutes=minutes),
        actor="key:k1",
        face="http",
        address=HERE,
        call="recall",
        action="read",
        touched=touched,
        operations=(3, 4),
    )


def put(store: Store, *accesses: Access, owner: Owner = ANA, keep: int = 100) -> list[bool]:
    return store.write(owner, lambda tx: [tx.accesses.put_access(one, keep=keep) for one in accesses])


def listed(store: Store, *, owner: Owner = ANA, limit: int = 100, before: str | None = None) -> list[str]:
    return [one.id for one in store.read(owner, lambda view: view.accesses.list_accesses(limit=limit, before=before))]


def standing(store: Store, owner: Owner = ANA) -> OwnerVersion:
    held = store.read(owner, lambda view: view.accesses.standing())
    assert store.read(owner, lambda view: view.accesses.version()) == held
    assert store.write(owner, lambda tx: tx.accesses.version()) == held
    return held


class AccessContract:
    def test_an_access_comes_back_as_it_was_and_belongs_to_its_owner(self, store: Store) -> None:
        refused = replace(an_access("a2"), outcome="refused", error="NotFound", touched=(), operations=(), action="erase")
        assert put(store, an_access("a1"), refused) == [True, True]
        assert list(store.read(ANA, lambda view: view.accesses.list_accesses(limit=9))) == [refused, an_access("a1")]
        assert listed(store, owner=BOB) == []

    def test_storing_an_access_twice_is_once_and_another_one_under_its_id_is_a_conflict(self, store: Store) -> None:
        put(store, an_access("a1"), an_access("a2"))
        assert put(store, an_access("a1")) == [False]
        for other in (replace(an_access("a1"), actor="cli"), replace(an_access("a1"), touched=())):
            with pytest.raises(Conflict):
                put(store, other)
        assert listed(store) == ["a2", "a1"], "it stays where it was"
        assert put(store, replace(an_access("a1"), call="context"), owner=BOB) == [True], "ids are an owner's own"

    def test_the_end_of_a_call_takes_the_place_of_its_beginning_and_nothing_else_does(self, store: Store) -> None:
        begun = replace(an_access("a1"), outcome="begun", touched=(), operations=())
        done, refused = replace(an_access("a1", minutes=2)), replace(begun, outcome="refused", error="Conflict")
        assert put(store, begun, an_access("a2"), begun) == [True, True, False]
        for other in (replace(done, call="context"), replace(done, actor="cli"), replace(begun, at=LATER)):
            with pytest.raises(Conflict):
                put(store, other)
        assert put(store, done) == [True]
        assert put(store, done) == [False], "the answer to the first was lost"
        for late in (begun, refused):
            with pytest.raises(Conflict):
                put(store, late)
        assert list(store.read(ANA, lambda view: view.accesses.list_accesses(limit=9))) == [an_access("a2"), done]
        put(store, begun, owner=BOB)
        assert put(store, refused, owner=BOB) == [True]
        assert list(store.read(BOB, lambda view: view.accesses.list_accesses(limit=9))) == [refused]

    def test_accesses_are_listed_as_they_were_stored_page_by_page(self, store: Store) -> None:
        """Whatever their times and ids say: clocks go back, and ids are made up."""
        for name, minutes in (("b", 3), ("a", 9), ("z", 1), ("ä", 1), ("B", 1)):
            put(store, an_access(name, minutes=minutes))
        assert listed(store) == ["B", "ä", "z", "a", "b"]
        assert listed(store, limit=2) == ["B", "ä"]
        assert listed(store, before="z") == ["a", "b"]
        assert listed(store, before="ä", limit=1) == ["z"]
        assert listed(store, before="never stored") == []

    def test_the_oldest_accesses_go_beyond_the_bound(self, store: Store) -> None:
        put(store, an_access("other"), owner=BOB)
        for number in range(8):
            put(store, an_access(f"a{number}", minutes=-number), keep=3)
            assert len(listed(store)) == min(3, number + 1)
        assert listed(store) == ["a7", "a6", "a5"]
        assert listed(store, owner=BOB) == ["other"]

    def test_accesses_stored_at_the_same_moment_are_all_kept_and_in_one_order(self, store: Store) -> None:
        made: list[str] = []

        def log() -> None:
            for number in range(5):
                made.append(name := f"a{number} of {threading.get_ident()}")
                put(store, an_access(name))

        run_together(log, threads=6)
        found = listed(store)
        assert sorted(found) == sorted(made)
        pages: list[str] = []
        while page := listed(store, limit=4, before=pages[-1] if pages else None):
            pages += page
        assert pages == found

    def test_struck_names_are_gone_and_what_was_counted_stays(self, store: Store) -> None:
        put(store, an_access("a1", names=("mia", "m2")), an_access("a2", names=("m3",)))
        put(store, an_access("a1", names=("mia",)), owner=BOB)
        assert store.write(ANA, lambda tx: tx.accesses.strike_names(lambda name: name == "mia")) == 1
        assert store.write(ANA, lambda tx: tx.accesses.strike_names(lambda name: name == "mia")) == 0
        found = store.read(ANA, lambda view: view.accesses.list_accesses(limit=9))
        assert [one.touched[0] for one in found] == [
            TouchedRecords("message", 70, ("m3",)),
            TouchedRecords("message", 70, ("m2",)),
        ]
        assert store.read(BOB, lambda view: view.accesses.list_accesses(limit=9))[0].touched[0].names == ("mia",)

    def test_rewriting_texts_leaves_the_log_alone(self, store: Store) -> None:
        put(store, an_access("a1", names=("mia",)))
        assert store.write(ANA, lambda tx: tx.rewrite(lambda text: "█" * len(text)))["accesses"] == []

    def test_forgetting_and_erasing_change_the_standing_and_other_writes_do_not(self, store: Store) -> None:
        assert standing(store) == OwnerVersion(0, "")
        add(store, an_entry("a"))
        first = standing(store)
        assert first.incarnation
        assert first.holds_since(OwnerVersion(0, "")), "anyone who had nothing had nothing to forget"
        fill(store, ANA, 1, 2)
        add(store, an_entry("b"))
        assert standing(store) == first == store.write(ANA, lambda tx: tx.accesses.standing())
        store.write(ANA, lambda tx: tx.state.put(Revision(ERASURES, 1, "1", NOW, request="1"), keep=1))
        assert standing(store).erasures == 1
        assert not standing(store).holds_since(first)
        store.erase(ANA)
        assert standing(store) == OwnerVersion(0, "")
        assert not standing(store).holds_since(first)
        add(store, an_entry("a"))
        assert not standing(store).holds_since(first)

    def test_a_transaction_knows_which_operations_it_has_recorded(self, store: Store) -> None:
        def work(tx: Tx, *names: str) -> tuple[int, ...]:
            by = Attribution("user", NOW, "because")
            for name in names:
                tx.records.put(Record("todo", name, {"content": name}), (), by=by, action="add")
            return tuple(tx.journalled)

        assert store.write(ANA, work) == ()
        assert store.write(ANA, lambda tx: work(tx, "t1", "t2")) == (1, 2)
        assert store.write(ANA, lambda tx: work(tx, "t3")) == (3,)
        assert store.write(BOB, lambda tx: work(tx, "t1")) == (1,)

    def test_the_log_is_saved_restored_and_erased_with_the_rest(self, store: Store) -> None:
        for owner in (ANA, BOB):
            put(store, an_access("a1"), an_access("a2"), owner=owner)
        with store.snapshot() as snapshot:
            version = snapshot.schema_version
            saved = {table: list(snapshot.rows(table)) for table in TABLES}
        assert len(saved["accesses"]) == 4

        def again() -> Iterator[tuple[str, Iterator[Row]]]:
            return ((table, iter(rows)) for table, rows in saved.items())

        assert store.erase(ANA) == 2
        assert (listed(store), listed(store, owner=BOB)) == ([], ["a2", "a1"])
        store.restore(version, again(), replace=True)
        with store.snapshot() as snapshot:
            assert {table: list(snapshot.rows(table)) for table in TABLES} == saved

    def test_data_that_comes_in_leaves_the_log_alone(self, store: Store) -> None:
        """Anyone who only looked at an empty memory may still fill it, and what was done before stays told."""
        put(store, an_access("a1"))
        assert store.refill(ANA, iter([("usage", iter([("x", "y", "chat", "ok", 1, 2, 3, 4, 5)]))]), replace=False)
        assert listed(store) == ["a1"]
        with pytest.raises(Conflict):
            store.refill(ANA, iter([]), replace=False)
        store.refill(ANA, iter([]), replace=True)
        assert listed(store) == ["a1"]

    def test_work_that_fails_logs_nothing(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            tx.accesses.put_access(an_access("a2"), keep=1)
            tx.accesses.strike_names(lambda _: True)
            raise RuntimeError("power cut")

        put(store, an_access("a1"))
        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert list(store.read(ANA, lambda view: view.accesses.list_accesses(limit=9))) == [an_access("a1")]

    def test_an_address_is_part_of_an_access(self, store: Store) -> None:
        put(store, replace(an_access("a1"), address=Address("Ünï", "c:1"), at=LATER))
        [found] = store.read(ANA, lambda view: view.accesses.list_accesses(limit=9))
        assert (found.address, found.at) == (Address("Ünï", "c:1"), LATER)
