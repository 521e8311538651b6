"""What is promised of the counters of an address, its open sessions, and the floor of its channel.

What is promised of digests, and of emptying a session together with what was derived from it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.domain.conversation.agent_state import AgentState, Failure, TurnLease
from perdure.domain.conversation.digests import SPINE_ADDRESS, SPINE_SESSION, Digest, DigestKind, DigestSource
from perdure.domain.conversation.messages import CallState, Cursor, MessageQuery, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import Conflict
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.scope import Address, Owner, SessionId, ToolCallId
from perdure.ports.store import Row, Store, Tx
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, THERE, a_session, fill, run_together

LATER = NOW + timedelta(hours=1)


def state_of(store: Store, address: Address = HERE, owner: Owner = ANA) -> AgentState | None:
    return store.read(owner, lambda view: view.conversation.find_agent_state(address))


def count(
    store: Store, turns: int = 1, *, owner: Owner = ANA, address: Address = HERE, minutes: int = 0, text: str = "x"
) -> None:
    at = NOW + timedelta(minutes=minutes)
    store.write(owner, lambda tx: tx.conversation.count_turn(address, turns, at=at, text=text))


def put_sessions(store: Store, *sessions: Session, owner: Owner = ANA) -> None:
    store.write(owner, lambda tx: tx.put_sessions(sessions))


def deleted(session: Session) -> Session:
    return replace(
        session,
        messages=0,
        tokens=0,
        turns=0,
        boundary_seq=0,
        spine_seq=0,
        ended_at=session.last_at,
        deleted_at=session.last_at,
    )


class ConversationContract:
    """Counters, sessions, the floor."""

    # -- counters

    def test_an_address_has_no_counters_before_the_first_message(self, store: Store) -> None:
        assert state_of(store) is None
        assert store.read(ANA, lambda view: view.conversation.count_turns()) == 0

    def test_turns_are_added_up_per_address_and_per_owner(self, store: Store) -> None:
        count(store, 2, minutes=1, text="first")
        count(store, 3, minutes=2, text="second")
        count(store, 5, address=THERE)
        count(store, 7, owner=BOB)
        assert state_of(store) == AgentState(HERE, 5, NOW + timedelta(minutes=2), "second")
        assert store.read(ANA, lambda view: view.conversation.count_turns()) == 10
        assert store.read(BOB, lambda view: view.conversation.count_turns()) == 7

    def test_an_older_message_is_counted_but_is_not_the_latest(self, store: Store) -> None:
        count(store, minutes=9, text="new")
        count(store, minutes=3, text="imported")
        assert state_of(store) == AgentState(HERE, 2, NOW + timedelta(minutes=9), "new")
        count(store, minutes=9, text="at the same moment")
        assert state_of(store) == AgentState(HERE, 3, NOW + timedelta(minutes=9), "at the same moment")

    def test_no_turn_is_lost_between_threads(self, store: Store) -> None:
        def speak() -> None:
            for _ in range(10):
                count(store)

        run_together(speak, threads=8)
        counted = state_of(store)
        assert counted is not None
        assert counted.turns == 80

    def test_each_writer_changes_its_own_columns_only(self, store: Store) -> None:
        lease = TurnLease("me", LATER)
        failure = Failure("timeout", "after 5 s: ü")
        store.write(ANA, lambda tx: tx.conversation.configure(HERE, profile="complete", casual=True, private=True, shared=True))
        assert state_of(store) == AgentState(HERE, profile="complete", casual=True, private=True, shared=True)
        store.write(ANA, lambda tx: tx.conversation.put_turn(HERE, lease))
        store.write(ANA, lambda tx: tx.conversation.note_rolling(HERE, tried_at=NOW, done_at=NOW, error=None))
        store.write(ANA, lambda tx: tx.conversation.note_rolling(HERE, tried_at=LATER, done_at=None, error=failure))
        store.write(ANA, lambda tx: tx.conversation.note_curated(HERE, at=NOW, memories=4))
        count(store, 3, text="hello")
        expected = AgentState(
            address=HERE,
            turns=3,
            last_at=NOW,
            last_text="hello",
            profile="complete",
            casual=True,
            private=True,
            rolling_tried_at=LATER,
            rolling_done_at=NOW,
            rolling_error=failure,
            curated_at=NOW,
            curated_memories=4,
            shared=True,
        )
        assert state_of(store) == expected
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(HERE)) == lease
        store.write(ANA, lambda tx: tx.conversation.put_turn(HERE, None))
        store.write(ANA, lambda tx: tx.conversation.configure(HERE, profile=None, casual=False, private=False, shared=False))
        store.write(ANA, lambda tx: tx.conversation.note_rolling(HERE, tried_at=LATER, done_at=LATER, error=None))
        plain = replace(expected, profile=None, casual=False, private=False, shared=False)
        assert state_of(store) == replace(plain, rolling_done_at=LATER, rolling_error=None)
        assert state_of(store, THERE) is None
        assert state_of(store, owner=BOB) is None

    def test_what_was_said_last_can_be_forgotten_and_the_counters_stay(self, store: Store) -> None:
        for address in (HERE, THERE):
            count(store, 3, address=address, text="a secret")
        store.write(ANA, lambda tx: tx.conversation.forget_said(HERE))
        held = state_of(store)
        assert held is not None
        assert (held.turns, held.last_text) == (3, None)
        other = state_of(store, THERE)
        assert other is not None
        assert other.last_text == "a secret"
        store.write(ANA, lambda tx: tx.conversation.forget_said(Address("nobody", "nowhere")))
        count(store, minutes=1, text="new")
        assert state_of(store) == AgentState(HERE, 4, NOW + timedelta(minutes=1), "new")

    # -- the floor

    def test_the_floor_is_whose_it_was_given_to(self, store: Store) -> None:
        mine, yours = TurnLease("me", LATER), TurnLease("you", NOW)
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(HERE)) is None
        store.write(ANA, lambda tx: tx.conversation.put_turn(HERE, mine))
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(HERE)) == mine
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(THERE)) is None
        assert store.write(BOB, lambda tx: tx.conversation.lock_turn(HERE)) is None
        store.write(ANA, lambda tx: tx.conversation.put_turn(HERE, yours))
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(HERE)) == yours
        store.write(ANA, lambda tx: tx.conversation.put_turn(HERE, None))
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(HERE)) is None
        assert state_of(store) in (None, AgentState(HERE)), "a lease counts no turns"

    def test_the_floor_is_never_given_to_two_at_once(self, store: Store) -> None:
        """Also where nobody had it before: there may be no row yet to lock."""
        for address in (HERE, THERE):
            speaking: list[str] = []
            taken: list[str] = []

            def take(me: str, address: Address = address) -> bool:
                def work(tx: Tx) -> bool:
                    if tx.conversation.lock_turn(address) is not None:
                        return False
                    tx.conversation.put_turn(address, TurnLease(me, LATER))
                    return True

                return store.write(ANA, work)

            def speak(address: Address = address, speaking: list[str] = speaking, taken: list[str] = taken) -> None:
                me = threading.current_thread().name
                for _ in range(12):
                    if take(me, address):
                        speaking.append(me)
                        taken.append(",".join(speaking))
                        speaking.remove(me)
                        store.write(ANA, lambda tx: tx.conversation.put_turn(address, None))

            run_together(speak, threads=6)
            assert taken, "somebody had the floor"
            assert not [names for names in taken if "," in names]

    # -- sessions

    def test_a_session_keeps_its_counts_and_marks(self, store: Store) -> None:
        whole = replace(a_session(messages=9), turns=4, boundary_seq=6, spine_seq=7)
        put_sessions(store, whole)
        assert store.read(ANA, lambda view: view.find_session(HERE, 1)) == whole
        gone = deleted(whole)
        put_sessions(store, gone)
        assert store.read(ANA, lambda view: view.find_session(HERE, SessionId("s1"))) == gone

    def test_a_deleted_session_keeps_its_number_and_is_not_listed(self, store: Store) -> None:
        put_sessions(store, a_session(1, messages=1), deleted(a_session(2)))
        latest = store.read(ANA, lambda view: view.latest_session(HERE))
        assert latest is not None
        assert latest.number == 2
        for address in (HERE, None):
            listed = store.read(ANA, lambda view, address=address: view.list_sessions(address, limit=9))  # type: ignore[misc]
            assert [session.number for session in listed] == [1]
        active = store.read(ANA, lambda view: view.conversation.sessions_by_activity("", limit=9))
        assert [session.number for session in active] == [1]

    def test_open_sessions_come_highest_first(self, store: Store) -> None:
        ended = replace(a_session(2), ended_at=NOW)
        put_sessions(store, a_session(1), ended, a_session(3), a_session(1, address=THERE))

        def numbers(limit: int, owner: Owner = ANA) -> list[int]:
            found = store.read(owner, lambda view: view.conversation.open_sessions(HERE, limit=limit))
            return [session.number for session in found]

        assert (numbers(9), numbers(1), numbers(9, BOB)) == ([3, 1], [3], [])

    def test_what_no_spine_has_taken_in_comes_by_address_and_number(self, store: Store) -> None:
        other = Address("aunt", "z")
        put_sessions(
            store,
            replace(a_session(1, messages=3), spine_seq=3),
            replace(a_session(2, messages=3), spine_seq=2),
            a_session(3, messages=1),
            a_session(4),
            a_session(1, address=THERE, messages=1),
            a_session(1, address=other, messages=1),
            deleted(a_session(5)),
        )

        def places(limit: int) -> list[tuple[str, str, int]]:
            found = store.read(ANA, lambda view: view.conversation.sessions_to_condense(limit=limit))
            return [(session.address.agent, session.address.channel, session.number) for session in found]

        assert places(9) == [
            ("aunt", "z", 1),
            ("coach", "discord:42", 2),
            ("coach", "discord:42", 3),
            ("coach", "discord:43", 1),
        ]
        assert places(2) == places(9)[:2]
        assert store.read(BOB, lambda view: view.conversation.sessions_to_condense(limit=9)) == []

    def test_sessions_are_found_by_the_beginning_of_their_channel_latest_first(self, store: Store) -> None:
        channels = ("discord:1", "discord:2", "Discord:1", "discordia:1", "%:1", "_:1", "🦉:1", "🦉🦉:1")
        for minute, channel in enumerate(channels):
            session = a_session(address=Address("coach", channel))
            put_sessions(store, replace(session, last_at=NOW + timedelta(minutes=minute)))
        put_sessions(store, a_session(address=Address("coach", "discord:9")), owner=BOB)

        def channels_from(prefix: str, limit: int = 9) -> list[str]:
            listed = store.read(ANA, lambda view: view.conversation.sessions_by_activity(prefix, limit=limit))
            return [session.address.channel for session in listed]

        assert channels_from("") == list(reversed(channels))
        assert channels_from("discord:") == ["discord:2", "discord:1"]
        assert channels_from("discord", limit=2) == ["discordia:1", "discord:2"]
        assert (channels_from("%"), channels_from("_"), channels_from("🦉:"), channels_from("🦉")) == (
            ["%:1"],
            ["_:1"],
            ["🦉:1"],
            ["🦉🦉:1", "🦉:1"],
        )

    def test_sessions_of_the_same_moment_have_one_order(self, store: Store) -> None:
        aunt = Address("aunt", "discord:43")
        put_sessions(store, a_session(1), a_session(2), a_session(1, address=THERE), a_session(1, address=aunt))
        listed = store.read(ANA, lambda view: view.conversation.sessions_by_activity("discord:", limit=9))
        places = [(session.address.agent, session.address.channel, session.number) for session in listed]
        assert places == [
            ("aunt", "discord:43", 1),
            ("coach", "discord:42", 2),
            ("coach", "discord:42", 1),
            ("coach", "discord:43", 1),
        ]


BY = Attribution("test", NOW, "because")


def a_digest(
    version: int = 1, *, number: int = 1, kind: DigestKind = "fold", address: Address = HERE, first: int = 1, last: int = 1
) -> Digest:
    return Digest(
        address=address,
        session_number=number,
        kind=kind,
        version=version,
        policy="clear",
        based_on=version - 1,
        sources=(DigestSource(address, number, first, last),),
        text=f"words {version} ü 🦉",
        pinned=("pinned: /etc/hosts",),
        lessons=("Be brief.",),
        fields={"turns": 3, "people": ["Åsa"], "none": None},
        summariser="test/1",
        fallback=False,
        made_at=NOW,
    )


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
            a_digest(kind="spine"),
            address=SPINE_ADDRESS,
            session_number=SPINE_SESSION,
            fallback=True,
            undone=True,
            made_at=NOW + timedelta(microseconds=1),
            sources=(DigestSource(HERE, 1, 1, 9), DigestSource(THERE, 2, 3, 3)),
            pinned=(),
            lessons=(),
        )
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
            store,
            a_digest(1),
            replace(a_digest(2), undone=True),
            a_digest(10),
            a_digest(1, kind="session"),
            a_digest(1, kind="rolling"),
            a_digest(1, number=2),
            a_digest(1, number=10),
            a_digest(3, address=THERE),
        )
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
            replace(a_digest(), text="other words"),
            replace(a_digest(), sources=(DigestSource(HERE, 1, 1, 2),)),
            replace(a_digest(), pinned=()),
            replace(a_digest(), lessons=()),
            replace(a_digest(), fields={}),
            replace(a_digest(), policy="replace"),
            replace(a_digest(), fallback=True),
            replace(a_digest(), made_at=LATER),
        )
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
            ("digest", "because", False, True),
            ("digest", "undo", False, False),
            ("digest", "because", True, False),
        ]
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

    def test_a_cut_session_loses_its_end_and_nothing_else(self, store: Store) -> None:
        for number in (1, 2):
            fill(store, ANA, 1, 2, 3, number=number)
            calls = [CallState(number, ToolCallId("open"), "look", 1, 3), CallState(number, ToolCallId("gone"), "look", 2)]
            store.write(ANA, lambda tx, calls=calls: tx.put_calls(HERE, calls))  # type: ignore[misc]
            store.write(ANA, lambda tx, number=number: tx.put_tally(Tally(HERE, number), by=BY))  # type: ignore[misc]
        cut = a_session(1, messages=1)
        store.write(ANA, lambda tx: tx.conversation.cut_session(cut, by=BY))

        assert store.read(ANA, lambda view: view.find_session(HERE, 1)) == cut
        for number, left in ((1, [1]), (2, [1, 2, 3])):
            query = MessageQuery(HERE, 99, number)
            assert [one.seq for one in store.read(ANA, lambda view, query=query: view.list_messages(query))] == left  # type: ignore[misc]
        paired = store.read(ANA, lambda view: view.find_calls(HERE, [ToolCallId("open"), ToolCallId("gone")]))
        assert [(one.session_number, one.id, one.result_seq) for one in paired] == [
            (1, "open", None),
            (2, "gone", None),
            (2, "open", 3),
        ]
        assert store.read(ANA, lambda view: view.find_tally(HERE, 1)) is None
        assert store.read(ANA, lambda view: view.find_tally(HERE, 2)) is not None
        fill(store, ANA, 4, number=12)

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
