"""What is promised of digests, and of emptying a session together with what was derived from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.domain.agents import TurnLease
from perdure.domain.digests import SPINE_ADDRESS, SPINE_SESSION, Digest, DigestKind, Source
from perdure.domain.errors import Conflict
from perdure.domain.journal import Attribution
from perdure.domain.messages import CallState, Cursor, MessageQuery
from perdure.domain.scope import Address, Owner, ToolCallId
from perdure.domain.tally import Tally
from perdure.ports.rows import TABLES
from perdure.ports.store import Row, Store, Tx
from perdure.testing.contract.conversation import LATER, count, deleted, state_of
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, THERE, a_session, fill

BY = Attribution("test", NOW, "because")


def a_digest(
    version: int = 1, *, number: int = 1, kind: DigestKind = "fold", address: Address = HERE, first: int = 1, last: int = 1
) -> Digest:
    return Digest(
        address, number, kind, version, "clear", version - 1, (Source(address, number, first, last),), f"words {version} ü 🦉",
        ("pinned: /etc/hosts",), ("Be brief.",), {"turns": 3, "people": ["Åsa"], "none": None}, "test/1", False, NOW,
    )  # fmt: skip


def put_digests(store: Store, *digests: Digest, owner: Owner = ANA, by: Attribution = BY) -> None:
    def work(tx: Tx) -> None:
        for digest in digests:
            tx.conversation.put_digest(digest, by=by)

    store.write(owner, work)


def versions(store: Store, number: int | None, kind: DigestKind | None, *, limit: int = 99) -> list[tuple[int, str, int]]:
    found = store.read(ANA, lambda view: view.conversation.list_digests(HERE, number, kind, limit=limit))
    return [(digest.session_number, digest.kind, digest.version) for digest in found]


class DigestContract:
    """Digests, and what emptying a session takes with it."""

    def test_a_digest_comes_back_as_it_was(self, store: Store) -> None:
        spine = replace(
            a_digest(kind="spine"), address=SPINE_ADDRESS, session_number=SPINE_SESSION, fallback=True, undone=True,
            made_at=NOW + timedelta(microseconds=1), sources=(Source(HERE, 1, 1, 9), Source(THERE, 2, 3, 3)), pinned=(),
            lessons=(),
        )  # fmt: skip
        put_digests(store, a_digest(), spine)
        assert store.read(ANA, lambda view: view.conversation.find_digest(HERE, 1, "fold", 1)) == a_digest()
        assert store.read(ANA, lambda view: view.conversation.find_digest(SPINE_ADDRESS, SPINE_SESSION, "spine", 1)) == spine
        for missing in (("fold", 2, HERE, 1), ("rolling", 1, HERE, 1), ("fold", 1, THERE, 1), ("fold", 1, HERE, 2)):
            kind, version, address, number = missing
            held = store.read(
                ANA,
                lambda view, a=address, n=number, k=kind, v=version: view.conversation.find_digest(a, n, k, v),  # type: ignore[misc]
            )
            assert held is None
        assert store.read(BOB, lambda view: view.conversation.find_digest(HERE, 1, "fold", 1)) is None

    def test_the_latest_digest_is_the_highest_that_stands(self, store: Store) -> None:
        def latest(owner: Owner = ANA) -> int | None:
            found = store.read(owner, lambda view: view.conversation.latest_digest(HERE, 1, "fold"))
            return None if found is None else found.version

        assert latest() is None
        put_digests(
            store, *(a_digest(version) for version in range(1, 12)), a_digest(20, kind="rolling"), a_digest(30, number=2)
        )
        assert (latest(), latest(BOB)) == (11, None)
        put_digests(store, replace(a_digest(11), undone=True))
        assert latest() == 10
        put_digests(store, *(replace(a_digest(version), undone=True) for version in range(1, 11)))
        assert latest() is None

    def test_digests_list_by_session_kind_and_version(self, store: Store) -> None:
        put_digests(
            store, a_digest(1), replace(a_digest(2), undone=True), a_digest(10), a_digest(1, kind="session"),
            a_digest(1, kind="rolling"), a_digest(1, number=2), a_digest(1, number=10), a_digest(3, address=THERE),
        )  # fmt: skip
        put_digests(store, a_digest(7), owner=BOB)
        first = [(1, "fold", 10), (1, "fold", 2), (1, "fold", 1), (1, "rolling", 1), (1, "session", 1)]
        assert versions(store, None, None) == [(10, "fold", 1), (2, "fold", 1), *first]
        assert versions(store, 1, None) == first
        assert versions(store, None, "fold", limit=3) == [(10, "fold", 1), (2, "fold", 1), (1, "fold", 10)]
        assert versions(store, 1, "rolling") == [(1, "rolling", 1)]
        assert versions(store, 3, None) == []

    def test_a_held_version_may_be_undone_and_nothing_else(self, store: Store) -> None:
        put_digests(store, a_digest())
        wrong = (
            replace(a_digest(), text="other words"), replace(a_digest(), sources=(Source(HERE, 1, 1, 2),)),
            replace(a_digest(), pinned=()), replace(a_digest(), lessons=()), replace(a_digest(), fields={}),
            replace(a_digest(), policy="replace"), replace(a_digest(), fallback=True), replace(a_digest(), made_at=LATER),
        )  # fmt: skip
        for digest in wrong:
            with pytest.raises(Conflict):
                put_digests(store, digest)
        put_digests(store, replace(a_digest(), undone=True))
        held = store.read(ANA, lambda view: view.conversation.find_digest(HERE, 1, "fold", 1))
        assert held == replace(a_digest(), undone=True)

    def test_every_change_of_a_digest_is_journalled_without_its_words(self, store: Store) -> None:
        undo = replace(BY, why="undo")
        put_digests(store, a_digest())
        put_digests(store, replace(a_digest(), undone=True), by=undo)
        store.write(ANA, lambda tx: tx.conversation.remove_digests([replace(a_digest(), undone=True)], by=BY))
        assert versions(store, None, None) == []
        journal = store.read(ANA, lambda view: view.list_operations(limit=9))
        assert [(one.kind, one.why, one.before is None, one.after is None) for one in journal] == [
            ("digest", "because", False, True), ("digest", "undo", False, False), ("digest", "because", True, False),
        ]  # fmt: skip
        assert journal[0].before == journal[1].after
        assert journal[1].before == journal[2].after
        assert len({one.key for one in journal}) == 1
        assert not any("words" in str(one) or "pinned" in str(one) for one in journal)

    def test_a_failed_transaction_leaves_no_digest_and_no_journal(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            tx.conversation.put_digest(a_digest(), by=BY)
            tx.conversation.count_turn(HERE, 1, at=NOW, text="x")
            tx.conversation.put_turn(HERE, TurnLease("me", LATER))
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError):
            store.write(ANA, work)
        assert versions(store, None, None) == []
        assert state_of(store) is None
        assert store.read(ANA, lambda view: view.list_operations(limit=9)) == []

    # -- emptying a session

    def test_an_emptied_session_leaves_its_number_and_nothing_of_others(self, store: Store) -> None:
        for address, number in ((HERE, 1), (HERE, 2), (HERE, 11), (THERE, 1)):
            fill(store, ANA, 1, 2, 3, number=number, address=address)
            call = CallState(number, ToolCallId("c"), "look", 1, 2)
            store.write(ANA, lambda tx, address=address, call=call: tx.put_calls(address, [call]))  # type: ignore[misc]
            tally = Tally(address, number)
            store.write(ANA, lambda tx, tally=tally: tx.put_tally(tally, by=BY))  # type: ignore[misc]
            put_digests(
                store, *(a_digest(number=number, address=address, kind=kind) for kind in ("fold", "rolling", "session"))
            )
        fill(store, BOB, 1)
        gone = deleted(a_session(1))
        store.write(ANA, lambda tx: tx.conversation.empty_session(gone, by=replace(BY, why="deleted")))

        assert store.read(ANA, lambda view: view.find_session(HERE, 1)) == gone
        assert store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 99, 1))) == []
        assert store.read(ANA, lambda view: view.find_tally(HERE, 1)) is None
        assert versions(store, 1, None) == []
        assert [call.session_number for call in store.read(ANA, lambda view: view.find_calls(HERE, [ToolCallId("c")]))] == [
            2,
            11,
        ]
        assert len(store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 99, after=Cursor(1, 9))))) == 6
        assert len(store.read(ANA, lambda view: view.list_messages(MessageQuery(THERE, 99)))) == 3
        assert len(store.read(BOB, lambda view: view.list_messages(MessageQuery(HERE, 99)))) == 1
        assert store.read(ANA, lambda view: view.find_tally(HERE, 2)) is not None
        assert len(versions(store, 2, None)) == len(versions(store, 11, None)) == 3
        journal = store.read(ANA, lambda view: view.list_operations(limit=99))
        assert sorted(one.kind for one in journal if one.why == "deleted") == ["digest", "digest", "digest", "tally"]
        assert all(one.after is None for one in journal if one.why == "deleted")
        # Ids of what was deleted are free again; the session's number is not.
        fill(store, ANA, 1, number=12)

    def test_counters_leases_and_digests_are_saved_restored_and_erased_with_the_rest(self, store: Store) -> None:
        for owner in (ANA, BOB):
            count(store, owner=owner)
            store.write(owner, lambda tx: tx.conversation.put_turn(HERE, TurnLease("me", LATER)))
            put_digests(store, a_digest(), owner=owner)
        with store.snapshot() as snapshot:
            version = snapshot.schema_version
            saved = {table: list(snapshot.rows(table)) for table in TABLES}
        assert (len(saved["agent_states"]), len(saved["digests"])) == (2, 2)

        def again() -> Iterator[tuple[str, Iterator[Row]]]:
            return ((table, iter(rows)) for table, rows in saved.items())

        store.erase(ANA)
        assert state_of(store) is None
        assert versions(store, None, None) == []
        assert state_of(store, owner=BOB) is not None
        store.restore(version, again(), replace=True)
        with store.snapshot() as snapshot:
            assert {table: list(snapshot.rows(table)) for table in TABLES} == saved
