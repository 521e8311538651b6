"""What is promised of counting records that are alike, of memories by their last change, and of terms within a transaction."""

from __future__ import annotations

from perdure.domain.knowledge.memories import MemoryRecord
from perdure.domain.knowledge.records import ChangedMemories, Record, RecordQuery, Term
from perdure.ports.store import Store, Tx
from perdure.testing.contract.knowledge import BY, listed, put
from perdure.testing.contract.samples import ANA, BOB, NOW


class TallyContract:
    def test_records_with_the_same_values_are_counted_together(self, store: Store) -> None:
        put(store, "a", {"of": ["ana"], "n": 1, "e": "ü"}, [("color", "red")])
        put(store, "b", {"of": ["ana"], "n": 1, "e": "ü"}, [("color", "blue")])
        put(store, "c", {"of": ["bob"], "n": None}, [("color", "red")])
        put(store, "d", {"of": ["ana"], "n": 1}, [("color", "red")], owner=BOB)

        def tally(*fields: str, term: Term | None = None) -> list[tuple[tuple[object, ...], int]]:
            return sorted(store.read(ANA, lambda view: view.records.tally("memory", fields, term)), key=str)

        assert tally("of", "n") == [((["ana"], 1), 2), ((["bob"], None), 1)]
        assert tally("of", term=("color", "red")) == [((["ana"],), 1), ((["bob"],), 1)]
        assert tally("missing") == [((None,), 3)]
        assert tally("of", "n", "e", "of", "n", "e")[0] == ((["ana"], 1, "ü", ["ana"], 1, "ü"), 2)
        assert tally("of", term=("color", "green")) == []

    def test_memories_that_state_something_are_counted_apart(self, store: Store) -> None:
        for key in ("a", "b", "c"):
            put(store, key, {"type": "PROFILE"})
        put(store, "s1", terms=[("current", "a")], kind="statement")
        put(store, "s2", terms=[("current", "a")], kind="statement")
        put(store, "s3", terms=[("memory", "b")], kind="statement")
        put(store, "s4", terms=[("current", "c")], kind="statement", owner=BOB)
        assert store.read(ANA, lambda view: view.records.tally_current(["type"])) == [(("PROFILE",), 1)]

    def test_memories_come_by_their_last_change(self, store: Store) -> None:
        def put_one(key: str, at: int, **body: object) -> None:
            of = {"type": "PEOPLE", "fact_type": "fact", "status": "ACTIVE", "visible_to": None, **body}
            made = MemoryRecord(key=key, entity_type=None, entities=(), label=None, created_at=NOW, updated_at=NOW, **of)  # type: ignore[arg-type]
            put(store, key, {**made.body(), "updated_at": at})

        put_one("a", 5)
        put_one("b", 9, fact_type="habit")
        put_one("c", 9, type="PROFILE")
        put_one("d", 7, status="ARCHIVED")
        put_one("e", 8, visible_to="coach")

        def changed(**asked: object) -> list[tuple[str, int]]:
            query = ChangedMemories(**{"agent": "default", **asked})  # type: ignore[arg-type]
            return store.read(ANA, lambda view: view.records.changed_memories(query))

        assert changed() == [("b", 9), ("c", 9), ("a", 5)]
        assert changed(archived=True) == [("b", 9), ("c", 9), ("d", 7), ("a", 5)]
        assert changed(agent="coach") == [("b", 9), ("c", 9), ("e", 8), ("a", 5)]
        assert (changed(type="PROFILE"), changed(fact_type="habit")) == ([("c", 9)], [("b", 9)])
        assert changed(type="PEOPLE", fact_type="fact") == [("a", 5)]

    def test_within_a_transaction_what_was_removed_is_found_by_nothing_and_may_come_back(self, store: Store) -> None:
        put(store, "k", {"n": 1}, [("color", "red"), ("size", "big")])
        put(store, "l", {"n": 2}, [("color", "red")])

        def work(tx: Tx) -> tuple[int, dict[str, str], list[str], list[str]]:
            tx.records.lock()
            tx.records.look_ahead("memory", ["k", "l", "new"], [("color", "red"), ("size", "big")])
            tx.records.remove("memory", "k", by=BY, action="forget")
            red = [one.key for one in tx.records.list_(RecordQuery("memory", 9, ("color", "red")))]
            found = tx.records.count("memory", ("color", "red")), tx.records.find_by("memory", "size", ["big"]), red
            tx.records.put(Record("memory", "k", {"n": 3}), [("size", "big")], by=BY, action="add", was=())
            return *found, [one.key for one in tx.records.list_(RecordQuery("memory", 9, ("size", "big")))]

        assert store.write(ANA, work) == (1, {}, ["l"], ["k"])
        assert (listed(store, ("color", "red")), listed(store, ("size", "big"))) == (["l"], ["k"])

    def test_a_record_that_is_removed_and_put_again_at_once_is_found_by_what_it_says_now(self, store: Store) -> None:
        put(store, "k", {"n": 1}, [("color", "red"), ("size", "big")])

        def work(tx: Tx) -> None:
            tx.records.lock()
            tx.records.remove("memory", "k", by=BY, action="forget")
            tx.records.put(Record("memory", "k", {"n": 2}), [("color", "red")], by=BY, action="add", was=())

        store.write(ANA, work)
        assert (listed(store, ("color", "red")), listed(store, ("size", "big"))) == (["k"], [])

    def test_what_is_looked_up_ahead_is_as_it_is_after_every_change(self, store: Store) -> None:
        put(store, "a", {"n": 1}, [("color", "red")])

        def work(tx: Tx) -> list[list[str]]:
            tx.records.lock()
            tx.records.look_ahead("memory", ["a", "b"], [("color", "red"), ("color", "blue")])
            seen = [[one.key for one in tx.records.list_(RecordQuery("memory", 9, ("color", "red")))]]
            tx.records.put(Record("memory", "b", {"n": 2}), [("color", "red")], by=BY, action="add", was=())
            tx.records.put(Record("memory", "a", {"n": 2}), [("color", "blue")], by=BY, action="update", was=[("color", "red")])
            seen += [
                [one.key for one in tx.records.list_(RecordQuery("memory", 9, ("color", color)))] for color in ("red", "blue")
            ]
            return [*seen, [str(one.body["n"]) for key in "ab" if (one := tx.records.find("memory", key)) is not None]]

        assert store.write(ANA, work) == [["a"], ["b"], ["a"], ["2", "2"]]
