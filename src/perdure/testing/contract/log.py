"""What is promised of messages and sessions.

Derived rows are written with their operation or not at all.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from perdure.domain.conversation.messages import CallState, Cursor, Message, MessageQuery
from perdure.domain.conversation.tally import Tally, extended
from perdure.domain.errors import Conflict
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.scope import Address, MessageId, SessionId, ToolCallId
from perdure.ports.store import Store, Tx
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, THERE, a_message, a_session, fill


class LogContract:
    """Messages and sessions."""

    def test_a_message_comes_back_as_it_was(self, store: Store) -> None:
        whole = Message(
            id=MessageId("id"),
            session=SessionId("s1"),
            session_number=1,
            seq=1,
            role="assistant",
            content="naïve 🦉\n\ttext",
            at=NOW + timedelta(microseconds=7),
            tokens=5,
            metadata={"a": [1, 2.5, None, True, {"ü": "x"}]},
        )

        def work(tx: Tx) -> None:
            tx.put_sessions([a_session(messages=1)])
            tx.append([replace(whole, address=HERE)])

        store.write(ANA, work)
        assert store.read(ANA, lambda view: view.find_messages([MessageId("id"), MessageId("none")])) == {
            "id": replace(whole, address=HERE)
        }

    def test_a_taken_id_or_place_is_a_conflict(self, store: Store) -> None:
        fill(store, ANA, 1)
        for rival in (a_message(2, name="discord:42/1.1"), a_message(1, name="new")):
            with pytest.raises(Conflict):
                store.write(ANA, lambda tx, rival=rival: tx.append([rival]))  # type: ignore[misc]
        assert len(store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 10)))) == 1

    def test_a_message_needs_its_session(self, store: Store) -> None:
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.append([a_message()]))

    def test_a_session_is_updated_by_its_number_and_keeps_its_id(self, store: Store) -> None:
        store.write(ANA, lambda tx: tx.put_sessions([a_session()]))
        later = replace(a_session(messages=3), last_at=NOW + timedelta(hours=1), ended_at=NOW + timedelta(hours=1))
        store.write(ANA, lambda tx: tx.put_sessions([later]))
        assert store.read(ANA, lambda view: view.find_session(HERE, SessionId("s1"))) == later
        assert store.read(ANA, lambda view: view.find_session(HERE, 1)) == later
        assert store.read(ANA, lambda view: view.find_session(THERE, 1)) is None

    def test_two_sessions_of_an_address_cannot_share_an_id(self, store: Store) -> None:
        store.write(ANA, lambda tx: tx.put_sessions([a_session()]))
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.put_sessions([a_session(2, name="s1")]))

    def test_messages_page_in_log_order_across_sessions(self, store: Store) -> None:
        fill(store, ANA, 1, 2, 3)
        fill(store, ANA, 1, 2, number=2)
        fill(store, ANA, 1, address=THERE)

        def places(query: MessageQuery) -> list[tuple[int, int]]:
            found = store.read(ANA, lambda view: view.list_messages(query))
            return [(message.session_number, message.seq) for message in found]

        assert places(MessageQuery(HERE, 10)) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
        assert places(MessageQuery(HERE, 2)) == [(2, 1), (2, 2)]
        assert places(MessageQuery(HERE, 2, before=Cursor(2, 1))) == [(1, 2), (1, 3)]
        assert places(MessageQuery(HERE, 2, after=Cursor(1, 2))) == [(1, 3), (2, 1)]
        assert places(MessageQuery(HERE, 10, session_number=1)) == [(1, 1), (1, 2), (1, 3)]
        assert places(MessageQuery(HERE, 1, session_number=1, after=Cursor(1, 1))) == [(1, 2)]
        assert places(MessageQuery(HERE, 10, session_number=2, before=Cursor(2, 2))) == [(2, 1)]

    def test_sessions_list_newest_first(self, store: Store) -> None:
        for number in (1, 2, 3):
            store.write(ANA, lambda tx, number=number: tx.put_sessions([a_session(number)]))  # type: ignore[misc]
        store.write(ANA, lambda tx: tx.put_sessions([a_session(address=THERE)]))

        def numbers(address: Address | None, limit: int, before: int | None = None) -> list[int]:
            found = store.read(ANA, lambda view: view.list_sessions(address, limit=limit, before=before))
            return [session.number for session in found]

        assert numbers(HERE, 2) == [3, 2]
        assert numbers(HERE, 10, before=3) == [2, 1]
        assert numbers(None, 10) == [3, 2, 1, 1]

    def test_tool_calls_are_found_by_id_in_every_session(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        fill(store, ANA, 1, 2, number=2)
        first = CallState(1, ToolCallId("c"), "search", 1)
        second = replace(first, session_number=2)

        def calls(address: Address, *names: str) -> list[CallState]:
            return store.read(ANA, lambda view: view.find_calls(address, [ToolCallId(name) for name in names]))

        store.write(ANA, lambda tx: tx.put_calls(HERE, [second, first]))
        assert calls(HERE, "c", "d") == [first, second]
        answered = replace(second, result_seq=2, failed=True)
        store.write(ANA, lambda tx: tx.put_calls(HERE, [answered]))
        assert calls(HERE, "c") == [first, answered]
        assert calls(THERE, "c") == []


class JournalContract:
    """Derived rows are written with their operation or not at all."""

    by = Attribution("tester/1", NOW, "because")

    def test_each_change_is_an_operation_with_before_and_after(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        first, second = tally_at(store, 1), tally_at(store, 2)
        store.write(ANA, lambda tx: tx.put_tally(first, by=self.by))
        store.write(ANA, lambda tx: tx.put_tally(second, by=self.by))
        assert store.read(ANA, lambda view: view.find_tally(HERE, 1)) == second
        newest, oldest = store.read(ANA, lambda view: view.list_operations(limit=10))
        assert (oldest.seq, oldest.action, oldest.before, oldest.after) == (1, "add", None, first.body())
        assert (newest.seq, newest.action, newest.before, newest.after) == (2, "update", first.body(), second.body())
        assert (newest.actor, newest.at, newest.why) == ("tester/1", NOW, "because")
        assert store.read(ANA, lambda view: view.list_operations(limit=10, before=2)) == [oldest]
        assert store.read(BOB, lambda view: view.list_operations(limit=10)) == []
        assert store.read(ANA, lambda view: view.operation_times(since=NOW, limit=1)) == [NOW]
        assert store.read(ANA, lambda view: view.operation_times(since=NOW, limit=9)) == [NOW, NOW]
        assert store.read(ANA, lambda view: view.operation_times(since=NOW + timedelta(seconds=1), limit=9)) == []
        assert store.read(BOB, lambda view: view.operation_times(since=NOW, limit=9)) == []

    def test_an_outdated_change_is_a_conflict_and_leaves_no_operation(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        older = tally_at(store, 1)
        newer = tally_at(store, 2)
        store.write(ANA, lambda tx: tx.put_tally(newer, by=self.by))
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.put_tally(older, by=self.by))
        assert len(store.read(ANA, lambda view: view.list_operations(limit=10))) == 1


def tally_at(store: Store, seq: int) -> Tally:
    """The counts of a session up to one of its messages."""
    found = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 100, 1)))
    return extended(Tally(HERE, 1), [message for message in found if message.seq <= seq])
