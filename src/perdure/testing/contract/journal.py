"""Derived rows are written with their operation or not at all."""

from __future__ import annotations

import pytest

from perdure.domain.errors import Conflict
from perdure.domain.journal import Attribution
from perdure.domain.messages import MessageQuery
from perdure.domain.tally import Tally, extended
from perdure.ports.store import Store
from perdure.testing.contract.samples import (
    ANA,
    BOB,
    HERE,
    NOW,
    fill,
)


class JournalContract:
    """Derived rows are written with their operation or not at all."""

    by = Attribution("tester/1", NOW, "because")

    def _tally(self, store: Store, seq: int) -> Tally:
        found = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 100, 1)))
        return extended(Tally(HERE, 1), [message for message in found if message.seq <= seq])

    def test_each_change_is_an_operation_with_before_and_after(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        first, second = self._tally(store, 1), self._tally(store, 2)
        store.write(ANA, lambda tx: tx.put_tally(first, by=self.by))
        store.write(ANA, lambda tx: tx.put_tally(second, by=self.by))
        assert store.read(ANA, lambda view: view.find_tally(HERE, 1)) == second
        newest, oldest = store.read(ANA, lambda view: view.list_operations(limit=10))
        assert (oldest.seq, oldest.action, oldest.before, oldest.after) == (1, "add", None, first.body())
        assert (newest.seq, newest.action, newest.before, newest.after) == (2, "update", first.body(), second.body())
        assert (newest.actor, newest.at, newest.why) == ("tester/1", NOW, "because")
        assert store.read(ANA, lambda view: view.list_operations(limit=10, before=2)) == [oldest]
        assert store.read(BOB, lambda view: view.list_operations(limit=10)) == []

    def test_an_outdated_change_is_a_conflict_and_leaves_no_operation(self, store: Store) -> None:
        fill(store, ANA, 1, 2)
        older = self._tally(store, 1)
        newer = self._tally(store, 2)
        store.write(ANA, lambda tx: tx.put_tally(newer, by=self.by))
        with pytest.raises(Conflict):
            store.write(ANA, lambda tx: tx.put_tally(older, by=self.by))
        assert len(store.read(ANA, lambda view: view.list_operations(limit=10))) == 1
