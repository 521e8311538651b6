"""What is promised of key-value state."""

from __future__ import annotations

from datetime import timedelta

import pytest

from perdure.domain.errors import Conflict
from perdure.domain.state import Revision
from perdure.ports.store import Store
from perdure.testing.contract.samples import ANA, BOB, NOW


def put(store: Store, key: str, number: int, body: str | None, *, expires_s: float | None = None, keep: int = 10) -> None:
    expires = None if expires_s is None else NOW + timedelta(seconds=expires_s)
    revision = Revision(key, number, body, NOW, expires)
    store.write(ANA, lambda tx: tx.state.put(revision, keep=keep))


def keys(store: Store, prefix: str = "", after: str | None = None, limit: int = 10) -> list[str]:
    found = store.read(ANA, lambda view: view.state.list_keys(now=NOW, prefix=prefix, after=after, limit=limit))
    return [info.key for info in found]


class StateContract:
    def test_a_value_comes_back_with_its_revision(self, store: Store) -> None:
        put(store, "k", 1, '{"a": "ü"}')
        put(store, "k", 2, "null")
        latest = store.read(ANA, lambda view: view.state.find("k"))
        assert latest == Revision("k", 2, "null", NOW)
        assert store.read(ANA, lambda view: view.state.find_revision("k", 1)) == Revision("k", 1, '{"a": "ü"}', NOW)
        assert store.read(ANA, lambda view: view.state.find_revision("k", 3)) is None
        assert store.read(ANA, lambda view: view.state.find("K")) is None
        assert store.read(BOB, lambda view: view.state.find("k")) is None

    def test_revisions_follow_one_another(self, store: Store) -> None:
        put(store, "k", 1, "1")
        for wrong in (1, 3):
            with pytest.raises(Conflict):
                put(store, "k", wrong, "2")
        assert [one.number for one in store.read(ANA, lambda view: view.state.list_revisions("k", limit=5))] == [1]

    def test_old_revisions_are_forgotten_beyond_the_bound(self, store: Store) -> None:
        for number in range(1, 6):
            put(store, "k", number, str(number), keep=3)
        found = store.read(ANA, lambda view: view.state.list_revisions("k", limit=10))
        assert [(one.number, one.body) for one in found] == [(5, "5"), (4, "4"), (3, "3")]
        older = store.read(ANA, lambda view: view.state.list_revisions("k", limit=1, before=5))
        assert [one.number for one in older] == [4]

    def test_live_keys_are_listed_in_order_without_their_values(self, store: Store) -> None:
        for key in ("b", "a", "a%", "ab", "B", "ä"):
            put(store, key, 1, '"' + "x" * 200 + '"')
        put(store, "gone", 1, "1")
        put(store, "gone", 2, None)
        put(store, "late", 1, "1", expires_s=0)
        put(store, "soon", 1, "1", expires_s=1)
        assert keys(store) == ["B", "a", "a%", "ab", "b", "soon", "ä"]
        assert keys(store, prefix="a") == ["a", "a%", "ab"]
        assert keys(store, prefix="a%") == ["a%"]
        assert keys(store, after="a%", limit=2) == ["ab", "b"]
        [info] = store.read(ANA, lambda view: view.state.list_keys(now=NOW, prefix="B", after=None, limit=1))
        assert (info.size_bytes, info.revision, info.preview) == (202, 1, '"' + "x" * 100)

    def test_a_revision_is_found_by_the_request_that_made_it(self, store: Store) -> None:
        revision = Revision("k", 1, "1", NOW, request="r1")
        store.write(ANA, lambda tx: tx.state.put(revision, keep=10))
        assert store.read(ANA, lambda view: view.state.find_request("k", "r1")) == revision
        assert store.read(ANA, lambda view: view.state.find_request("k", "r2")) is None
        assert store.read(ANA, lambda view: view.state.find_request("j", "r1")) is None

    def test_a_removed_key_leaves_nothing(self, store: Store) -> None:
        put(store, "k", 1, "1")
        put(store, "k", 2, "2")
        assert store.write(ANA, lambda tx: tx.state.remove("k")) == 2
        assert store.write(ANA, lambda tx: tx.state.remove("k")) == 0
        put(store, "k", 1, "1")
