"""All or nothing, one owner at a time."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from perdure.domain.errors import Unavailable
from perdure.domain.messages import MessageQuery, Session
from perdure.domain.scope import Address, MessageId, Owner
from perdure.ports.store import Store, Tx
from perdure.testing.contract.samples import (
    ANA,
    BOB,
    HERE,
    a_job,
    a_message,
    a_session,
    enqueue,
    fill,
)


class TransactionContract:
    """All or nothing, one owner at a time."""

    def test_failed_work_leaves_nothing(self, store: Store) -> None:
        def work(tx: Tx) -> None:
            tx.put_sessions([a_session(messages=1)])
            tx.append([a_message()])
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert store.read(ANA, lambda view: view.latest_session(HERE)) is None
        assert store.read(ANA, lambda view: view.find_messages([MessageId("m1.1")])) == {}

    def test_work_sees_its_own_writes(self, store: Store) -> None:
        def work(tx: Tx) -> Session | None:
            tx.put_sessions([a_session()])
            return tx.latest_session(HERE)

        assert store.write(ANA, work) == a_session()

    def test_what_work_returns_is_returned(self, store: Store) -> None:
        assert store.write(ANA, lambda _: 41) == 41
        assert store.read(ANA, lambda _: 42) == 42

    def test_owners_do_not_see_each_other(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        enqueue(store, a_job())
        for other in (BOB, Owner("elsewhere", "ana"), Owner("default", "ANA"), Owner("default", "an%")):
            assert store.read(other, lambda view: view.latest_session(HERE)) is None
            assert store.read(other, lambda view: view.list_sessions(None, limit=10)) == []
            assert store.read(other, lambda view: view.list_messages(MessageQuery(HERE, 10))) == []
            assert store.read(other, lambda view: view.find_messages([MessageId("discord:42/1.1")])) == {}
            assert store.read(other, lambda view: view.list_jobs(None, limit=10)) == []

    def test_two_owners_may_use_the_same_ids(self, store: Store) -> None:
        fill(store, ANA, 1)
        fill(store, BOB, 1)
        assert len(store.read(BOB, lambda view: view.list_messages(MessageQuery(HERE, 10)))) == 1

    @pytest.mark.parametrize("user", ["'; DROP TABLE messages; --", "%", "_", "..", "a:b", "𝒜\u200b🦉", "\n", "x" * 400, "é"])
    def test_any_unicode_id_is_kept_as_it_is(self, store: Store, user: str) -> None:
        owner, place = Owner(user, user), Address(user, user)
        fill(store, owner, 1, address=place)
        [message] = store.read(owner, lambda view: view.list_messages(MessageQuery(place, 10)))
        assert message.address == place
        assert store.read(ANA, lambda view: view.list_sessions(None, limit=10)) == []

    def test_composed_and_decomposed_letters_are_different_ids(self, store: Store) -> None:
        fill(store, Owner("default", "jose\u0301"), 1)
        assert store.read(Owner("default", "jos\u00e9"), lambda view: view.list_sessions(None, limit=1)) == []

    def test_many_threads_may_write_at_once(self, store: Store) -> None:
        def bump(tx: Tx) -> None:
            latest = tx.latest_session(HERE) or a_session()
            seq = latest.messages + 1
            tx.put_sessions([replace(latest, messages=seq)])
            tx.append([a_message(seq)])

        threads = [threading.Thread(target=lambda: [store.write(ANA, bump) for _ in range(10)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 1_000)))
        assert [message.seq for message in found] == list(range(1, 81))

    def test_a_closed_store_is_unavailable(self, store: Store) -> None:
        store.close()
        store.close()
        with pytest.raises(Unavailable):
            store.read(ANA, lambda _: 1)
        with pytest.raises(Unavailable):
            store.write(ANA, lambda _: 1)
