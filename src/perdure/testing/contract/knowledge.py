"""What is promised of records, their terms, the operations that wrote them, and the register of echoes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from perdure.domain.conversation.messages import MessageQuery, ToolCall
from perdure.domain.errors import Conflict
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.knowledge.records import (
    RECORD_KINDS,
    TERM_BYTES_MAX,
    Record,
    RecordKind,
    RecordQuery,
    Term,
)
from perdure.domain.scope import MessageId, Owner, ToolCallId
from perdure.domain.state import Revision
from perdure.ports.store import Store, Tx
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.log import tally_at
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, a_message, a_session, fill

BY = Attribution("tester/1", NOW, "because")
KEYS = ("b", "a", "B", "ä", "𝒜", "a|b", "a%", "a_")
IN_ORDER = sorted(KEYS)


def put(
    store: Store,
    key: str,
    body: Mapping[str, Any] | None = None,
    terms: Sequence[Term] = (),
    *,
    kind: RecordKind = "memory",
    owner: Owner = ANA,
    by: Attribution = BY,
) -> int:
    record = Record(kind, key, {"n": 1} if body is None else body)
    return store.write(owner, lambda tx: tx.records.put(record, terms, by=by, action="add"))


def remove(store: Store, key: str, *, kind: RecordKind = "memory", by: Attribution = BY) -> int:
    return store.write(ANA, lambda tx: tx.records.remove(kind, key, by=by, action="gone"))


def find(store: Store, key: str, *, kind: RecordKind = "memory", owner: Owner = ANA) -> Record | None:
    return store.read(owner, lambda view: view.records.find(kind, key))


def listed(
    store: Store, term: Term | None = None, *, limit: int = 100, before: str | None = None, owner: Owner = ANA
) -> list[str]:
    query = RecordQuery("memory", limit, term, before)
    return [record.key for record in store.read(owner, lambda view: view.records.list_(query))]


def count(store: Store, term: Term | None = None, *, owner: Owner = ANA) -> int:
    return store.read(owner, lambda view: view.records.count("memory", term))


def journal(store: Store, owner: Owner = ANA) -> list[Operation]:
    return store.read(owner, lambda view: view.list_operations(limit=1_000))


def put_echoes(store: Store, hashes: Iterable[str], *, at: datetime = NOW, keep: int = 100, owner: Owner = ANA) -> None:
    chosen = list(hashes)
    store.write(owner, lambda tx: tx.records.put_echoes(chosen, at=at, keep=keep))


def echoes(store: Store, hashes: Sequence[str], owner: Owner = ANA) -> set[str]:
    return store.read(owner, lambda view: view.records.find_echoes(hashes))


def everything(store: Store) -> dict[str, list[Any]]:
    with store.snapshot() as snapshot:
        return {table: list(snapshot.rows(table)) for table in TABLES}


class RecordContract:
    # -- one record

    def test_a_record_comes_back_as_it_was_put(self, store: Store) -> None:
        body = {"text": "ü 𝒜 \n", "list": [1, 2.5, None, True], "nested": {"a": {}}}
        number = put(store, "people|person|josé|fact", body)
        assert find(store, "people|person|josé|fact") == Record("memory", "people|person|josé|fact", body, number)
        for other in ("people|person|jose\u0301|fact", "PEOPLE|person|josé|fact", "people|person|josé|fact "):
            assert find(store, other) is None
        assert find(store, "people|person|josé|fact", kind="statement") is None

    def test_putting_again_replaces_body_terms_and_operation(self, store: Store) -> None:
        first = put(store, "k", {"n": 1}, [("color", "red"), ("size", "big")])
        second = put(store, "k", {"m": 2}, [("color", "blue")])
        assert second == first + 1
        assert find(store, "k") == Record("memory", "k", {"m": 2}, second)
        assert (count(store), listed(store, ("color", "red")), listed(store, ("size", "big"))) == (1, [], [])
        assert listed(store, ("color", "blue")) == ["k"]

    def test_a_removed_record_is_gone_with_its_terms_and_may_come_back(self, store: Store) -> None:
        put(store, "k", {"n": 1}, [("color", "red")])
        assert remove(store, "k") == 2
        assert (find(store, "k"), listed(store), listed(store, ("color", "red")), count(store)) == (None, [], [], 0)
        assert put(store, "k", {"n": 2}) == 3
        assert listed(store, ("color", "red")) == []

    def test_removing_what_is_not_held_is_a_conflict_and_leaves_no_operation(self, store: Store) -> None:
        put(store, "k")
        for kind, key in (("memory", "j"), ("statement", "k")):
            with pytest.raises(Conflict):
                remove(store, key, kind=kind)  # type: ignore[arg-type]
        assert (len(journal(store)), find(store, "k") is not None) == (1, True)

    def test_kinds_do_not_see_each_other(self, store: Store) -> None:
        for kind in RECORD_KINDS:
            put(store, "k", {"kind": kind}, [("color", "red")], kind=kind)
        assert store.read(ANA, lambda view: view.records.find("todo", "k")).body == {"kind": "todo"}  # type: ignore[union-attr]
        assert store.read(ANA, lambda view: view.records.count("todo", ("color", "red"))) == 1
        remove(store, "k", kind="todo")
        assert store.read(ANA, lambda view: view.records.count("todo")) == 0
        assert count(store, ("color", "red")) == 1

    # -- many records

    def test_several_are_found_by_key_in_order_each_once(self, store: Store) -> None:
        for key in KEYS:
            put(store, key)
        asked = [*reversed(IN_ORDER), "missing", "a", "a"]
        found = store.read(ANA, lambda view: view.records.find_many("memory", asked))
        assert [record.key for record in found] == IN_ORDER
        assert store.read(ANA, lambda view: view.records.find_many("memory", [])) == []
        assert store.read(ANA, lambda view: view.records.find_many("entity", ["a"])) == []

    def test_a_listing_goes_from_the_highest_key_down_page_by_page(self, store: Store) -> None:
        for key in KEYS:
            put(store, key, terms=[("color", "red")])
        put(store, "other", terms=[("color", "green")])
        for term, keys in ((None, sorted([*KEYS, "other"])), (("color", "red"), IN_ORDER)):
            assert listed(store, term) == keys[::-1]
            assert count(store, term) == len(keys)
            paged: list[str] = []
            while page := listed(store, term, limit=3, before=paged[-1] if paged else None):
                assert len(page) <= 3
                paged += page
            assert paged == keys[::-1]
            assert listed(store, term, before="a") == [key for key in keys[::-1] if key < "a"]

    def test_a_term_is_found_by_exactly_its_field_and_value(self, store: Store) -> None:
        long = "x" * TERM_BYTES_MAX
        values = ("red", "Red", "re", "red ", "r%", "r_d", "", "ä", "a\u0308", "𝒜", "'; --", long)
        for number, value in enumerate(values):
            put(store, f"k{number}", terms=[("color", value)])
        for number, value in enumerate(values):
            assert listed(store, ("color", value)) == [f"k{number}"]
            assert (listed(store, ("colour", value)), count(store, ("Color", value))) == ([], 0)
        assert listed(store, ("color", "%")) == []

    def test_values_of_a_field_lead_to_the_first_record_that_has_them(self, store: Store) -> None:
        put(store, "b", terms=[("alias", "Maria"), ("name", "Erik")], kind="entity")
        put(store, "a", terms=[("alias", "Maria"), ("alias", "Mia")], kind="entity")
        put(store, "c", terms=[("alias", "Maria")])
        put(store, "d", terms=[("alias", "Erik")], kind="entity", owner=BOB)

        def keys_of(*values: str) -> dict[str, str]:
            return store.read(ANA, lambda view: view.records.find_by("entity", "alias", values))

        assert keys_of("Maria", "Mia", "Erik", "maria", "Nobody") == {"Maria": "a", "Mia": "a"}
        assert keys_of() == {}

    def test_a_term_given_twice_counts_once(self, store: Store) -> None:
        put(store, "k", terms=[("color", "red"), ("color", "blue"), ("color", "red")])
        assert (listed(store, ("color", "red")), count(store, ("color", "red"))) == (["k"], 1)

    def test_long_keys_terms_and_owners_fit(self, store: Store) -> None:
        owner = Owner("s" * 400, "u" * 400)
        key, value = "k" * 900, "v" * TERM_BYTES_MAX
        put(store, key, {"n": 1}, [("field", value)], owner=owner)
        assert listed(store, ("field", value), owner=owner) == [key]

    # -- owners, transactions

    def test_records_of_another_owner_are_out_of_reach(self, store: Store) -> None:
        put(store, "k", {"whose": "ana"}, [("color", "red")])
        put_echoes(store, ["h"])
        for other in (
            BOB,
            Owner("elsewhere", "ana"),
            Owner("default", "ANA"),
            Owner("default", "an%"),
            Owner("default", "an_"),
        ):
            assert find(store, "k", owner=other) is None
            assert (listed(store, owner=other), listed(store, ("color", "red"), owner=other)) == ([], [])
            assert (count(store, owner=other), count(store, ("color", "red"), owner=other)) == (0, 0)
            assert store.read(other, lambda view: view.records.find_many("memory", ["k"])) == []
            assert store.read(other, lambda view: view.records.operations_of("memory", "k", limit=10)) == []
            assert store.read(other, lambda view: view.records.operations_in(1)) == []
            assert echoes(store, ["h"], other) == set()
            with pytest.raises(Conflict):
                store.write(other, lambda tx: tx.records.remove("memory", "k", by=BY, action="gone"))
            store.write(other, lambda tx: tx.records.blank_operations("memory", "k", name="x"))
            store.write(other, lambda tx: tx.records.retag("memory", {"k": []}))
            assert store.write(other, lambda tx: tx.records.remove_echoes()) == 0
            store.write(other, lambda tx: tx.rewrite(lambda _: "[]"))
        assert find(store, "k") == Record("memory", "k", {"whose": "ana"}, 1)
        assert (listed(store, ("color", "red")), echoes(store, ["h"])) == (["k"], {"h"})
        assert [(one.key, one.after) for one in journal(store)] == [("k", {"whose": "ana"})]

    def test_failed_work_leaves_no_record_no_term_no_operation_and_no_echo(self, store: Store) -> None:
        put(store, "held", {"n": 1}, [("color", "red")])
        before = everything(store)

        def work(tx: Tx) -> None:
            tx.records.lock()
            tx.records.put(Record("memory", "new", {"n": 2}), [("color", "red")], by=BY, action="add")
            tx.records.put(Record("memory", "held", {"n": 2}), [], by=BY, action="update")
            tx.records.put_echoes(["h"], at=NOW, keep=10)
            tx.records.retag("memory", {"held": [("color", "blue")]})
            tx.records.blank_operations("memory", "held", name="x")
            tx.rewrite(lambda text: text.replace("1", "7"))
            tx.records.remove("memory", "held", by=BY, action="gone")
            raise RuntimeError("power cut")

        with pytest.raises(RuntimeError, match="power cut"):
            store.write(ANA, work)
        assert everything(store) == before

    def test_work_sees_its_own_records(self, store: Store) -> None:
        def work(tx: Tx) -> tuple[Any, ...]:
            number = tx.records.put(Record("memory", "k", {"n": 1}), [("color", "red")], by=BY, action="add")
            seen = tx.records.find("memory", "k"), tx.records.count("memory", ("color", "red"))
            tx.records.remove("memory", "k", by=BY, action="gone")
            return number, *seen, tx.records.find("memory", "k"), len(tx.records.operations_of("memory", "k", limit=9))

        assert store.write(ANA, work) == (1, Record("memory", "k", {"n": 1}, 1), 1, None, 2)

    def test_work_sees_what_became_of_a_record_since_it_looked(self, store: Store) -> None:
        put(store, "k", {"n": "red"})

        def work(tx: Tx) -> list[Any]:
            seen = [tx.records.find("memory", "other"), tx.records.find("memory", "k")]
            number = tx.records.put(Record("memory", "other", {"n": "red"}), [], by=BY, action="add")
            tx.rewrite(lambda text: text.replace("red", "blue"))
            return [*seen, number, *(tx.records.find("memory", key) for key in ("other", "k"))]

        other, held, number, *since = store.write(ANA, work)
        assert (other, held) == (None, Record("memory", "k", {"n": "red"}, 1))
        assert since == [Record("memory", "other", {"n": "blue"}, number), Record("memory", "k", {"n": "blue"}, 1)]

    def test_reading_then_writing_after_a_lock_loses_no_change(self, store: Store) -> None:
        """Every thread adds one to what it read, on rows that may not be there yet."""

        def bump(tx: Tx) -> None:
            tx.records.lock()
            key = f"k{tx.records.count('memory') % 3}"
            held = tx.records.find("memory", key)
            number = 1 if held is None else held.body["n"] + 1
            tx.records.put(Record("memory", key, {"n": number}), [("n", str(number))], by=BY, action="bump")
            total = tx.records.find("memory", "total")
            sums = {"n": 1 if total is None else total.body["n"] + 1}
            tx.records.put(Record("memory", "total", sums), [], by=BY, action="bump")

        threads = [threading.Thread(target=lambda: [store.write(ANA, bump) for _ in range(10)]) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = store.read(ANA, lambda view: view.records.list_(RecordQuery("memory", 100)))
        assert {record.key: record.body["n"] for record in held}["total"] == 60
        assert sum(record.body["n"] for record in held) == 120
        assert [one.seq for one in journal(store)] == list(range(120, 0, -1))

    def test_a_lock_alone_leaves_nothing_to_see(self, store: Store) -> None:
        def twice(tx: Tx) -> None:
            tx.records.lock()
            tx.records.lock()

        store.write(ANA, twice)
        assert (journal(store), listed(store)) == ([], [])
        assert put(store, "k") == 1

    # -- the journal

    def test_each_change_is_an_operation_with_before_after_and_batch(self, store: Store) -> None:
        first = put(store, "k", {"n": 1})
        put(store, "k", {"n": 2}, by=Attribution("other/2", NOW + timedelta(days=1), "again", batch=first))
        last = remove(store, "k")
        newest, middle, oldest = journal(store)
        assert (oldest.seq, oldest.action, oldest.before, oldest.after) == (1, "add", None, {"n": 1})
        assert (middle.before, middle.after, middle.actor, middle.why) == ({"n": 1}, {"n": 2}, "other/2", "again")
        assert (newest.action, newest.before, newest.after) == ("gone", {"n": 2}, None)
        assert [(one.kind, one.key) for one in (oldest, middle, newest)] == [("memory", "k")] * 3
        assert (oldest.batch, middle.batch, newest.batch) == (first, first, last)
        assert (oldest.at, middle.at) == (NOW, NOW + timedelta(days=1))

    def test_operations_of_a_row_come_newest_first_and_those_of_an_action_in_order(self, store: Store) -> None:
        first = put(store, "k", {"n": 1})
        batch = Attribution("tester/1", NOW, "because", batch=first)
        put(store, "j", {"n": 1}, by=batch)
        put(store, "k", {"n": 2}, by=batch)
        put(store, "k", {"n": 3})
        put(store, "k", {"n": 1}, kind="entity")
        of = store.read(ANA, lambda view: view.records.operations_of("memory", "k", limit=10))
        assert [one.seq for one in of] == [4, 3, 1]
        assert [one.seq for one in store.read(ANA, lambda view: view.records.operations_of("memory", "k", limit=2))] == [4, 3]
        inside = store.read(ANA, lambda view: view.records.operations_in(first))
        assert [(one.seq, one.key) for one in inside] == [(1, "k"), (2, "j"), (3, "k")]
        assert [one.seq for one in store.read(ANA, lambda view: view.records.operations_in(4))] == [4]
        assert store.read(ANA, lambda view: view.records.operations_in(2)) == []
        assert store.read(ANA, lambda view: view.records.operations_in(99)) == []
        assert store.read(ANA, lambda view: view.records.operations_of("memory", "K", limit=10)) == []

    def test_the_journal_of_a_row_is_found_whatever_wrote_it(self, store: Store) -> None:
        fill(store, ANA, 1)
        tally = tally_at(store, 1)
        store.write(ANA, lambda tx: tx.put_tally(tally, by=BY))
        put(store, "k")
        newest, oldest = journal(store)
        assert (newest.seq, oldest.seq) == (2, 1), "one count for all that is derived"
        assert store.read(ANA, lambda view: view.records.operations_of("tally", oldest.key, limit=9)) == [oldest]
        assert store.read(ANA, lambda view: view.records.operations_in(1)) == [oldest]

    def test_blanking_keeps_who_and_when_and_takes_the_rest(self, store: Store) -> None:
        put(store, "secret key", {"text": "secret"})
        put(store, "other", {"text": "plain"})
        put(store, "secret key", {"text": "secret"}, kind="entity")
        remove(store, "secret key")
        assert store.write(ANA, lambda tx: tx.records.blank_operations("memory", "secret key", name="forgotten:4")) == 2
        assert store.write(ANA, lambda tx: tx.records.blank_operations("memory", "secret key", name="forgotten:4")) == 0
        assert store.read(ANA, lambda view: view.records.operations_of("memory", "secret key", limit=9)) == []
        blank = store.read(ANA, lambda view: view.records.operations_of("memory", "forgotten:4", limit=9))
        assert [(one.seq, one.before, one.after, one.actor, one.at) for one in blank] == [
            (4, None, None, "tester/1", NOW),
            (1, None, None, "tester/1", NOW),
        ]
        assert "because" not in {one.why for one in blank}
        assert [one.after for one in journal(store) if one.seq in (2, 3)] == [{"text": "secret"}, {"text": "plain"}]

    def test_retagging_changes_the_terms_and_neither_body_nor_journal(self, store: Store) -> None:
        put(store, "k", {"n": 1}, [("color", "red"), ("size", "big")])
        put(store, "j", {"n": 1}, [("color", "red")])
        store.write(ANA, lambda tx: tx.records.retag("memory", {"k": [("color", "blue"), ("color", "blue")]}))
        assert (listed(store, ("color", "red")), listed(store, ("color", "blue"))) == (["j"], ["k"])
        assert listed(store, ("size", "big")) == []
        assert (find(store, "k"), len(journal(store))) == (Record("memory", "k", {"n": 1}, 1), 2)

    # -- echoes

    def test_what_is_in_the_register_is_found(self, store: Store) -> None:
        assert echoes(store, ["a"]) == set()
        put_echoes(store, ["a", "b", "a"])
        put_echoes(store, [])
        assert echoes(store, ["a", "c", "a"]) == {"a"}
        assert echoes(store, ["A", "%", ""]) == set()
        assert echoes(store, []) == set()
        many = [f"h{number}" for number in range(5_000)]
        assert echoes(store, [*many, "b"]) == {"b"}

    def test_what_was_put_into_the_register_later_is_left_out(self, store: Store) -> None:
        put_echoes(store, ["a"])
        put_echoes(store, ["b"], at=NOW + timedelta(seconds=2))

        def registered(seconds: float) -> set[str]:
            until = NOW + timedelta(seconds=seconds)
            return store.read(ANA, lambda view: view.records.find_echoes(["a", "b"], until=until))

        assert [registered(-1), registered(0), registered(1), registered(2)] == [set(), {"a"}, {"a"}, {"a", "b"}]

    def test_beyond_the_newest_the_oldest_echoes_are_forgotten(self, store: Store) -> None:
        for number in range(6):
            put_echoes(store, [f"h{number}"], at=NOW + timedelta(seconds=number), keep=4)
        assert echoes(store, [f"h{number}" for number in range(6)]) == {"h2", "h3", "h4", "h5"}
        put_echoes(store, ["h2"], at=NOW + timedelta(seconds=9), keep=4)
        put_echoes(store, ["h9"], at=NOW + timedelta(seconds=10), keep=4)
        assert echoes(store, [f"h{number}" for number in range(10)]) == {"h2", "h4", "h5", "h9"}, "said again is new again"
        put_echoes(store, ["other"], keep=1, owner=BOB)
        assert len(echoes(store, ["h2", "h4", "h5", "h9"])) == 4

    def test_the_register_can_be_emptied(self, store: Store) -> None:
        put_echoes(store, ["a", "b"])
        put_echoes(store, ["a"], owner=BOB)
        assert store.write(ANA, lambda tx: tx.records.remove_echoes()) == 2
        assert store.write(ANA, lambda tx: tx.records.remove_echoes()) == 0
        assert (echoes(store, ["a", "b"]), echoes(store, ["a"], BOB)) == (set(), {"a"})

    # -- forgetting

    def test_redacting_a_message_changes_its_words_and_not_its_place(self, store: Store) -> None:
        for owner in (ANA, BOB):
            self._write_everywhere(store, owner)
        first, second = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 10)))
        calls = tuple(replace(call, arguments={}) for call in first.tool_calls)
        blank = replace(first, content="[gone]", metadata={}, tool_calls=calls)
        store.write(ANA, lambda tx: tx.redact(blank))
        assert store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 10))) == [blank, second]
        assert store.read(ANA, lambda view: view.find_messages([first.id])) == {first.id: blank}
        assert store.read(BOB, lambda view: view.list_messages(MessageQuery(HERE, 10))) == [first, second]

    def test_rewriting_reaches_every_text_and_no_name(self, store: Store) -> None:
        """Words are struck wherever they stand; what rows are called and found by stays."""
        for owner in (ANA, BOB):
            self._write_everywhere(store, owner)
        kept = [row for rows in everything(store).values() for row in rows if row[1] == "bob"]
        changed = store.write(ANA, lambda tx: tx.rewrite(lambda text: text.replace("zebra", "█████")))
        touched = {table: len(rows) for table, rows in changed.items() if rows}
        assert touched == {"messages": 2, "operations": 2, "state_keys": 1, "state_revisions": 1, "records": 1}
        tables = everything(store)
        for table, rows in changed.items():
            assert set(rows) <= set(tables[table]), "what is told is how the rows are now"
        own = [(table, row) for table, rows in tables.items() for row in rows if row[1] == "ana" and "zebra" in repr(row)]
        # The key of the record, its term, its operation's key, the state key, and the message's id are names.
        names = {"messages", "operations", "records", "record_terms", "state_keys", "state_revisions", "tool_calls"}
        assert {table for table, _ in own} <= names
        found = find(store, "zebra", kind="entity")
        assert found is not None
        assert found.body == {"text": "a █████ is near"}
        call, told = store.read(ANA, lambda view: view.list_messages(MessageQuery(HERE, 10)))
        assert (call.id, call.content, call.metadata) == ("zebra-1", "the █████", {"about": "█████"})
        assert call.tool_calls[0].arguments == {"q": "█████"}
        assert told.content == "█████ found"
        assert [row for rows in tables.values() for row in rows if row[1] == "bob"] == kept

    def test_rewriting_without_a_change_tells_of_no_row(self, store: Store) -> None:
        self._write_everywhere(store, ANA)
        before = everything(store)
        assert not any(store.write(ANA, lambda tx: tx.rewrite(lambda text: text)).values())
        assert everything(store) == before

    def test_erasing_an_owner_takes_records_terms_operations_and_echoes(self, store: Store) -> None:
        for owner in (ANA, BOB):
            put(store, "k", {"n": 1}, [("color", "red")], owner=owner)
            put_echoes(store, ["h"], owner=owner)
        store.erase(ANA)
        assert (listed(store), journal(store), echoes(store, ["h"])) == ([], [], set())
        assert (listed(store, ("color", "red"), owner=BOB), echoes(store, ["h"], BOB)) == (["k"], {"h"})
        assert put(store, "k") == 1, "the journal begins anew"

    def test_records_and_echoes_are_in_a_snapshot_and_restored_from_it(self, store: Store) -> None:
        for key in KEYS:
            put(store, key, {"n": 1}, [("color", "red")])
        put_echoes(store, ["h"])
        saved = everything(store)
        assert (len(saved["records"]), len(saved["record_terms"]), len(saved["echoes"])) == (len(KEYS), len(KEYS), 1)
        with store.snapshot() as snapshot:
            version = snapshot.schema_version
        put(store, "later")
        store.restore(version, ((table, iter(rows)) for table, rows in saved.items()), replace=True)
        assert everything(store) == saved
        assert listed(store, ("color", "red")) == IN_ORDER[::-1]
        assert put(store, "next") == len(KEYS) + 1

    @staticmethod
    def _write_everywhere(store: Store, owner: Owner) -> None:
        call = replace(
            a_message(1, name="zebra-1"),
            role="assistant",
            content="the zebra",
            metadata={"about": "zebra"},
            tool_calls=(ToolCall(ToolCallId("zebra-call"), "look", {"q": "zebra"}),),
        )
        told = replace(a_message(2), role="tool", content="zebra found", tool_call_id=ToolCallId("zebra-call"))

        def work(tx: Tx) -> None:
            tx.put_sessions([a_session(messages=2)])
            tx.append([call, told])
            body = {"text": "a zebra is near"}
            tx.records.put(Record("entity", "zebra", body), [("alias", "zebra")], by=BY, action="add")
            tx.records.put(Record("entity", "zebra", body | {}), [("alias", "zebra")], by=BY, action="update")
            tx.records.put(Record("memory", "plain", {"text": "nothing"}), [], by=BY, action="add")
            tx.state.put(Revision("zebra", 1, '"zebra"', NOW), keep=10)

        store.write(owner, work)
        assert MessageId("zebra-1") in store.read(owner, lambda view: view.find_messages([MessageId("zebra-1")]))
