"""What is promised of the counters of an address, its open sessions, and the floor of its channel."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from perdure.domain.agents import AgentState, Failure, TurnLease
from perdure.domain.messages import Session
from perdure.domain.scope import Address, Owner, SessionId
from perdure.ports.store import Store, Tx
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, THERE, a_session

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
        expected = AgentState(HERE, 3, NOW, "hello", "complete", True, True, LATER, NOW, failure, NOW, 4, True)
        assert state_of(store) == expected
        assert store.write(ANA, lambda tx: tx.conversation.lock_turn(HERE)) == lease
        store.write(ANA, lambda tx: tx.conversation.put_turn(HERE, None))
        store.write(ANA, lambda tx: tx.conversation.configure(HERE, profile=None, casual=False, private=False, shared=False))
        store.write(ANA, lambda tx: tx.conversation.note_rolling(HERE, tried_at=LATER, done_at=LATER, error=None))
        assert state_of(store) == AgentState(HERE, 3, NOW, "hello", None, False, False, LATER, LATER, None, NOW, 4)
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

        def found(prefix: str, limit: int = 9) -> list[str]:
            listed = store.read(ANA, lambda view: view.conversation.sessions_by_activity(prefix, limit=limit))
            return [session.address.channel for session in listed]

        assert found("") == list(reversed(channels))
        assert found("discord:") == ["discord:2", "discord:1"]
        assert found("discord", limit=2) == ["discordia:1", "discord:2"]
        assert (found("%"), found("_"), found("🦉:"), found("🦉")) == (["%:1"], ["_:1"], ["🦉:1"], ["🦉🦉:1", "🦉:1"])

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


def run_together(work: Callable[[], object], *, threads: int) -> None:
    """The same work in many threads that start at one moment; what any of them raises is raised."""
    start = threading.Barrier(threads)
    trouble: list[BaseException] = []

    def run() -> None:
        start.wait(30)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - handed on below
            trouble.append(error)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if trouble:
        raise trouble[0]
