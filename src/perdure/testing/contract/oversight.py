"""What is promised of the overseer's decisions and of the counts of what models were asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from perdure.domain.errors import Conflict
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.scope import Address, Owner
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, THERE, run_together

LATER = NOW + timedelta(minutes=5)


def a_decision(name: str, *, kind: DecisionKind = "before", address: Address = HERE, minutes: int = 0) -> Decision:
    body = {"goal": f"do {name}", "choices": [{"kind": "state", "id": "ünï", "included": True, "score": 0.5}], "nothing": None}
    return Decision(name, NOW + timedelta(minutes=minutes), address, kind, body)


def put(store: Store, *decisions: Decision, owner: Owner = ANA, keep: int = 100) -> list[bool]:
    return store.write(owner, lambda tx: [tx.oversight.put_decision(one, keep=keep) for one in decisions])


def names(
    store: Store,
    *,
    owner: Owner = ANA,
    limit: int = 100,
    kind: DecisionKind | None = None,
    address: Address | None = None,
    before: str | None = None,
) -> list[str]:
    found = store.read(
        owner, lambda view: view.oversight.list_decisions(limit=limit, kind=kind, address=address, before=before)
    )
    return [one.id for one in found]


def a_usage(
    purpose: str,
    outcome: str = "ok",
    *,
    calls: int = 1,
    tokens: tuple[int, int] = (2, 3),
    took_ms: float = 0.5,
    at: datetime = NOW,
) -> Usage:
    read, written = tokens
    return Usage(purpose=purpose, outcome=outcome, calls=calls, tokens_in=read, tokens_out=written, took_ms=took_ms, last_at=at)


def count(store: Store, *usages: Usage, owner: Owner = ANA) -> None:
    def work(tx: Tx) -> None:
        for usage in usages:
            tx.oversight.add_usage(usage)

    store.write(owner, work)


def counted(store: Store, owner: Owner = ANA) -> list[Usage]:
    return list(store.read(owner, lambda view: view.oversight.list_usage()))


class OversightContract:
    def test_a_decision_comes_back_as_it_was_and_belongs_to_its_owner(self, store: Store) -> None:
        decision = a_decision("d1")
        assert put(store, decision) == [True]
        assert store.read(ANA, lambda view: view.oversight.find_decision("d1")) == decision
        assert list(store.read(ANA, lambda view: view.oversight.list_decisions(limit=9))) == [decision]
        assert store.read(ANA, lambda view: view.oversight.find_decision("D1")) is None
        assert store.read(BOB, lambda view: view.oversight.find_decision("d1")) is None
        assert names(store, owner=BOB) == []

    def test_storing_a_decision_twice_is_once_and_another_one_under_its_id_is_a_conflict(self, store: Store) -> None:
        decision = replace(a_decision("d1"), body={"pair": ("a", "b")})
        assert put(store, decision) == [True]
        put(store, a_decision("d2"))
        assert put(store, decision) == [False]
        for other in (
            replace(decision, body={"pair": ["a", "c"]}),
            replace(decision, at=LATER),
            replace(decision, kind="after"),
            replace(decision, address=THERE),
        ):
            with pytest.raises(Conflict):
                put(store, other)
        assert names(store) == ["d2", "d1"], "it stays where it was"
        assert put(store, replace(decision, body={}), owner=BOB) == [True], "ids are an owner's own"

    def test_decisions_are_listed_as_they_were_stored_the_last_one_first(self, store: Store) -> None:
        """Whatever their times and ids say: clocks go back, and ids are made up."""
        for name, minutes in (("b", 3), ("a", 9), ("z", 1), ("ä", 1), ("B", 1)):
            put(store, a_decision(name, minutes=minutes))
        assert names(store) == ["B", "ä", "z", "a", "b"]
        assert names(store, limit=2) == ["B", "ä"]
        assert names(store, before="z") == ["a", "b"]
        assert names(store, before="ä", limit=1) == ["z"]
        assert names(store, before="b") == []
        assert names(store, before="never stored") == []

    def test_decisions_of_one_kind_and_address_are_listed_page_by_page(self, store: Store) -> None:
        for number in range(6):
            put(
                store,
                a_decision(f"b{number}", address=HERE if number % 2 else THERE),
                a_decision(f"a{number}", kind="after", address=HERE),
            )
        assert names(store, kind="before") == ["b5", "b4", "b3", "b2", "b1", "b0"]
        assert names(store, kind="before", address=HERE) == ["b5", "b3", "b1"]
        assert names(store, address=THERE) == ["b4", "b2", "b0"]
        assert names(store, kind="before", address=HERE, before="a3", limit=1) == ["b3"]
        assert names(store, kind="before", address=HERE, before="b3") == ["b1"]
        assert names(store, kind="after", address=THERE) == []
        assert names(store, address=Address("coach", "elsewhere")) == []

    def test_the_oldest_decisions_are_forgotten_beyond_the_bound(self, store: Store) -> None:
        put(store, a_decision("other"), owner=BOB)
        for number in range(8):
            put(store, a_decision(f"d{number}", minutes=-number), keep=3)
            assert len(names(store)) == min(3, number + 1)
        assert names(store) == ["d7", "d6", "d5"]
        assert names(store, before="d2") == []
        put(store, *(a_decision(f"e{number}") for number in range(5)), keep=2)
        assert names(store) == ["e4", "e3"]
        assert names(store, owner=BOB) == ["other"]
        # One that was forgotten is new when it comes again, and the bound holds.
        assert put(store, a_decision("d0"), keep=2) == [True]
        assert names(store) == ["d0", "e4"]

    def test_removed_decisions_are_gone_and_the_others_stay_in_order(self, store: Store) -> None:
        put(store, *(a_decision(name) for name in "abcde"))
        put(store, a_decision("b"), owner=BOB)
        assert store.write(ANA, lambda tx: tx.oversight.remove_decisions(["b", "e", "nobody"])) == 2
        assert store.write(ANA, lambda tx: tx.oversight.remove_decisions(["b", "e"])) == 0
        assert store.write(ANA, lambda tx: tx.oversight.remove_decisions([])) == 0
        assert names(store) == ["d", "c", "a"]
        put(store, a_decision("f"))
        assert names(store) == ["f", "d", "c", "a"]
        assert names(store, before="d") == ["c", "a"]
        assert names(store, owner=BOB) == ["b"]

    def test_decisions_stored_at_the_same_moment_are_all_kept_once_and_in_one_order(self, store: Store) -> None:
        made: list[str] = []

        def decide() -> None:
            for number in range(5):
                made.append(name := f"d{number} of {threading.get_ident()}")
                put(store, a_decision(name), a_decision("of everybody"))

        run_together(decide, threads=6)
        listed = names(store)
        assert sorted(listed) == sorted({*made, "of everybody"})
        pages: list[str] = []
        while page := names(store, limit=4, before=pages[-1] if pages else None):
            pages += page
        assert pages == listed

    def test_what_models_were_asked_adds_up_by_purpose_and_outcome(self, store: Store) -> None:
        count(store, a_usage("fold", tokens=(100, 20), took_ms=1.25, at=LATER))
        count(
            store,
            a_usage("relevance", "timeout", calls=2, tokens=(7, 0), took_ms=60_000.0),
            a_usage("fold", calls=2, tokens=(11, 3)),
        )
        count(
            store,
            a_usage("fold", "unreadable", tokens=(5, 5), took_ms=3.0),
            a_usage("fold", calls=0, tokens=(0, 0), took_ms=0.0, at=LATER),
        )
        count(store, a_usage("fold", tokens=(1, 1), took_ms=1.0), owner=BOB)
        assert counted(store) == [
            a_usage("fold", calls=3, tokens=(111, 23), took_ms=1.75, at=LATER),
            a_usage("fold", "unreadable", tokens=(5, 5), took_ms=3.0),
            a_usage("relevance", "timeout", calls=2, tokens=(7, 0), took_ms=60_000.0),
        ]
        assert counted(store, BOB) == [a_usage("fold", tokens=(1, 1), took_ms=1.0)]
        everybody = a_usage("fold", calls=4, tokens=(112, 24), took_ms=2.75, at=LATER)
        assert list(store.usage()) == [everybody, *counted(store)[1:]]
        store.erase(ANA)
        assert list(store.usage()) == counted(store, BOB)
        assert counted(store) == []

    def test_nothing_is_counted_before_anything_was_asked(self, store: Store) -> None:
        assert counted(store) == []
        assert list(store.usage()) == []

    def test_no_call_is_lost_between_threads(self, store: Store) -> None:
        def ask() -> None:
            for _ in range(10):
                count(store, a_usage("chat"), a_usage("fold", tokens=(0, 0), took_ms=0.0))

        run_together(ask, threads=6)
        assert counted(store) == [
            a_usage("chat", calls=60, tokens=(120, 180), took_ms=30.0),
            a_usage("fold", calls=60, tokens=(0, 0), took_ms=0.0),
        ]

    def test_work_that_fails_counts_and_decides_nothing(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            tx.oversight.put_decision(a_decision("d2"), keep=1)
            tx.oversight.add_usage(a_usage("chat"))
            tx.oversight.remove_decisions(["d1"])
            raise RuntimeError("power cut")

        put(store, a_decision("d1"))
        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert (names(store), counted(store)) == (["d1"], [])

    def test_decisions_and_counts_are_saved_restored_and_erased_with_the_rest(self, store: Store) -> None:
        for owner in (ANA, BOB):
            put(store, a_decision("d1"), a_decision("d2", kind="after"), owner=owner)
            count(store, a_usage("chat"), owner=owner)
        with store.snapshot() as snapshot:
            version = snapshot.schema_version
            saved = {table: list(snapshot.rows(table)) for table in TABLES}
        assert (len(saved["decisions"]), len(saved["usage"])) == (4, 2)

        def again() -> Iterator[tuple[str, Iterator[Row]]]:
            return ((table, iter(rows)) for table, rows in saved.items())

        assert store.erase(ANA) == 3
        assert (names(store), counted(store)) == ([], [])
        assert names(store, owner=BOB) == ["d2", "d1"]
        store.restore(version, again(), replace=True)
        with store.snapshot() as snapshot:
            assert {table: list(snapshot.rows(table)) for table in TABLES} == saved
        put(store, a_decision("d3"))
        assert names(store) == ["d3", "d2", "d1"]

    def test_names_are_struck_out_of_what_decisions_say_and_nothing_else_of_them(self, store: Store) -> None:
        address = Address("Mia", "Mia")
        body = {"goal": "call Mia", "Mia": ["Mia", 1, {"why": "Mia asked"}]}
        put(store, Decision("Mia", NOW, address, "before", body), a_decision("d2"))
        count(store, a_usage("Mia", "Mia"))
        changed = store.write(ANA, lambda tx: tx.rewrite(lambda text: text.replace("Mia", "███")))
        assert (len(changed["decisions"]), len(changed["usage"])) == (1, 0)
        struck = {"goal": "call ███", "Mia": ["███", 1, {"why": "███ asked"}]}
        assert store.read(ANA, lambda view: view.oversight.find_decision("Mia")) == Decision(
            "Mia", NOW, address, "before", struck
        )
        assert [one.purpose for one in counted(store)] == ["Mia"]
        assert store.read(ANA, lambda view: view.oversight.find_decision("d2")) == a_decision("d2")
