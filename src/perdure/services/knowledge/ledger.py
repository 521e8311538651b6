"""What is known of one owner, inside one transaction: read as values, written as journalled changes of one action."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import Any, Protocol, TypeVar

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.entities import SEEN_WITH_MAX, Entity, Suggestion, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import entity_ref, term_value
from perdure.domain.knowledge.memories import MemoryRecord, Statement, to_memory, to_statement
from perdure.domain.knowledge.proposals import EntityName, Proposal
from perdure.domain.knowledge.records import Record, RecordKind, RecordQuery, Term
from perdure.domain.text.rules import Json
from perdure.engine.knowledge.terms import NAME_KEY, UNKEYED, place_of, terms_in, terms_of
from perdure.engine.names.compare import name_keys, variants_among
from perdure.engine.names.spelling import Same
from perdure.ports.store import Tx
from perdure.ports.tables.knowledge import RecordTx, RecordView
from perdure.services.index.writes import enter_record, enter_statement

STATEMENTS_MAX = 1_000
"""Statements of one memory or one slot that are looked at."""
CURRENT_MAX = 300
"""Current statements, the newest, that a sentence which sounds like a change is held against."""
SHARING_MAX = 20
"""Known names that are looked at of those which share one key with a new name."""
CANDIDATES_MAX = 60
"""Known names that a new one is compared with; those that share the rarest keys come first."""
NAMES_JUDGED_MAX = 100
COMPLETED_AT_ONCE = 200
HOPS_MAX = 20
VARIANTS_MAX = 5

T = TypeVar("T")


class RecordValue(Protocol):
    """A value that is kept as a record."""

    @property
    def kind(self) -> RecordKind:
        """What it is."""

    @property
    def record_key(self) -> str:
        """Its key among the records of its kind."""

    def body(self) -> Mapping[str, Json]:
        """Everything about it, as JSON."""

    def terms(self) -> tuple[Term, ...]:
        """What it is found by."""


class Ledger:
    """Implements `engine.knowledge.committer.KnowledgeLedger` on a transaction.

    Nobody else changes these records while it lives.
    """

    def __init__(self, tx: Tx, by: Attribution) -> None:
        self._tx = tx
        self._records = tx.records
        self._records.lock()
        self._by = replace(by, batch=None)
        self.visible_to: str | None = None
        """The one agent that what is said here is for."""
        self.writes = 0

    # -- actions

    def next_action(self, why: str | None = None) -> None:
        """What is written from here on is another action, which can be undone by itself."""
        if self._by.batch is not None or why is not None:
            self._by = replace(self._by, batch=None, why=self._by.why if why is None else why)

    @property
    def actor(self) -> str:
        """Who changes something here."""
        return self._by.actor

    @property
    def at(self) -> datetime:
        """When."""
        return self._by.at

    @property
    def action(self) -> int | None:
        """The number of the action in hand; None if it has written nothing."""
        return self._by.batch

    def look_ahead(self, proposals: Iterable[Proposal], ids: Sequence[str], visible_to: str | None) -> None:
        """Look up together what deciding these will ask for, one after the other."""
        places = []
        for one in proposals:
            with suppress(InvalidInput):  # it will be refused
                places.append(place_of(one, visible_to))
        self._records.look_ahead("memory", [memory for memory, _ in places])
        terms = [("current", term_value(memory)) for memory, _ in places]
        terms += [(field, term_value(name)) for _, name in places if name is not None for field in ("slot", "past_slot")]
        self._records.look_ahead("statement", ids, terms)

    def put(self, value: RecordValue, action: str) -> None:
        """Write a value as a record, unless it is so already."""
        statement = value if isinstance(value, Statement) else None
        self._put(value.kind, value.record_key, value.body(), action, terms_in(value), statement)

    def put_body(self, kind: RecordKind, key: str, body: Mapping[str, Json], action: str) -> None:
        """Write a record as it is stored, unless it is so already."""
        self._put(kind, key, body, action, terms_of(kind, body), None)

    def _put(
        self,
        kind: RecordKind,
        key: str,
        body: Mapping[str, Json],
        action: str,
        terms: Sequence[Term],
        statement: Statement | None,
    ) -> None:
        held = self._records.find(kind, key)
        if held is not None and held.body == body:
            return
        was = () if held is None else terms_of(kind, held.body)
        self._wrote(self._records.put(Record(kind, key, body), terms, by=self._by, action=action, was=was))
        if statement is not None:
            enter_statement(self._tx, statement, now=self._by.at, new=held is None)
        elif kind != "memory" or body.get("status") != ("ACTIVE" if held is None else held.body.get("status")):
            enter_record(self._tx, kind, key, body, now=self._by.at, new=held is None)

    def remove(self, kind: RecordKind, key: str, action: str) -> None:
        self._wrote(self._records.remove(kind, key, by=self._by, action=action))
        enter_record(self._tx, kind, key, None, now=self._by.at)

    def _wrote(self, seq: int) -> None:
        self.writes += 1
        if self._by.batch is None:
            self._by = replace(self._by, batch=seq)

    # -- what the committer asks

    def memory(self, key: str) -> MemoryRecord | None:
        held = self._records.find("memory", key)
        return None if held is None else to_memory(held.body)

    def current(self) -> Sequence[Statement]:
        query = RecordQuery("statement", CURRENT_MAX, ("state", "current"))
        return [to_statement(record.body) for record in self._records.list_(query)]

    def statements(self, memory: str) -> Sequence[Statement]:
        if self._records.find("memory", memory) is None:
            return ()
        return self._statements(("current", memory))

    def in_slot(self, name: str) -> Sequence[Statement]:
        return self._statements(("slot", name))

    def all_of(self, memory: str) -> Sequence[Statement]:
        return self._statements(("memory", memory))

    def against(self, statement: str) -> Sequence[Statement]:
        return self._statements(("against", statement))

    def slot_history(self, name: str) -> Sequence[Statement]:
        return [*self._statements(("past_slot", name)), *self._statements(("slot", name))]

    def citing(self, message: str) -> Sequence[Statement]:
        return self._statements(("message", message))

    def about(self, ref: str) -> Sequence[Statement]:
        """Statements that name an entity, past ones too."""
        return self._statements(("entity", ref))

    def put_memory(self, memory: MemoryRecord) -> None:
        held = self._records.find("memory", memory.record_key)
        self.put(memory, "add" if held is None else "update")

    def put_statement(self, statement: Statement) -> None:
        held = self._records.find("statement", statement.id)
        self.put(statement, "add" if held is None else _change(to_statement(held.body), statement))

    def _statements(self, term: Term) -> list[Statement]:
        query = RecordQuery("statement", STATEMENTS_MAX, (term[0], term_value(term[1])))
        found = [to_statement(record.body) for record in self._records.list_(query)]
        return sorted(found, key=lambda statement: (statement.recorded_at, statement.id))

    # -- entities

    def entity(self, ref: str) -> Entity | None:
        """The entity behind a reference, through merges."""
        return merged_entity(self._records, ref)

    def resolve(self, name: EntityName) -> str:
        """The entity a name means: itself, by an alias, or by a spelling that is certainly the same; else a new one."""
        ref = entity_ref(name.type, name.label)
        held = find_entity(self._records, ref)
        if held is None:
            return self._new_entity(name, ref)
        if held.visible_to is not None and self.visible_to is None:
            self.put(replace(held, visible_to=None), "show")  # now everybody has heard of it
        return held.ref

    def _new_entity(self, name: EntityName, ref: str) -> str:
        complete_names(self._records)
        known = candidates(self._records, name)
        alike = variants_among(name, known, limit=VARIANTS_MAX)
        certain = next((known[one.name] for one in alike if isinstance(one.likeness, Same)), None)
        if certain is not None:
            self.put(replace(certain, aliases=(*certain.aliases, ref)), "alias")
            return certain.ref
        self.put(Entity(ref, name.type, name.label, self._by.at, visible_to=self.visible_to), "add")
        for one in alike:
            self.suggest("merge", (known[one.name].ref, ref), "; ".join(one.likeness.evidence))
        return ref

    def seen_together(self, refs: Sequence[str]) -> None:
        """Note that these were named side by side: none of them is another one."""
        for ref in refs:
            entity = self.entity(ref)
            if entity is None:
                continue
            others = [other for other in refs if other != ref and other.split(":")[0] == entity.type]
            seen = tuple(dict.fromkeys((*entity.seen_with, *others)))[-SEEN_WITH_MAX:]
            if seen != entity.seen_with:
                self.put(replace(entity, seen_with=seen), "seen")

    def suggest(self, what: Any, subjects: tuple[str, ...], why: str) -> None:
        """Ask a person, once."""
        key = f"{what}|{'|'.join(sorted(subjects))}"[:400]
        if self._records.find("suggestion", key) is None:
            self.put(Suggestion(key, what, subjects, why, self._by.at), "suggest")


def count_active(records: RecordView) -> int:
    """How many memories are not archived."""
    return records.count("memory") - records.count("memory", ("status", "ARCHIVED"))


def candidates(records: RecordView, name: EntityName) -> dict[EntityName, Entity]:
    """Known entities whose names share a key with this one, those that share the rarest first: few, however many there are."""
    sharing = [records.list_(RecordQuery("entity", SHARING_MAX, (NAME_KEY, term_value(key)))) for key in name_keys(name)]
    found: dict[str, Record] = {record.key: record for some in sorted(sharing, key=len) for record in some}
    entities = (from_body(Entity, record.body) for record in islice(found.values(), CANDIDATES_MAX))
    return {EntityName(one.type, one.label): one for one in entities}


def judge_names(view: RecordView, names: Iterable[EntityName]) -> None:
    """Compare new names with known ones before the transaction that asks for the verdicts: these are then at hand."""
    for name in islice(dict.fromkeys(names), NAMES_JUDGED_MAX):
        if find_entity(view, entity_ref(name.type, name.label)) is None:
            variants_among(name, candidates(view, name), limit=VARIANTS_MAX)


def complete_names(records: RecordTx) -> None:
    """Give entities of a store from before there were keys of names theirs, some at a time; then there is nothing to do."""
    unkeyed = records.list_(RecordQuery("entity", COMPLETED_AT_ONCE, UNKEYED))
    records.retag("entity", {record.key: terms_of("entity", record.body) for record in unkeyed})


def find_entity(records: RecordView, ref: str) -> Entity | None:
    """The entity that a reference means: its own, or by an alias; through merges."""
    held = merged_entity(records, ref)
    if held is not None:
        return held
    aliased = records.list_(RecordQuery("entity", 1, ("alias", term_value(ref))))
    return merged_entity(records, aliased[0].key) if aliased else None


def merged_entity(records: RecordView, ref: str) -> Entity | None:
    """The entity under a reference, or the one it was merged into."""
    for _ in range(HOPS_MAX):
        held = records.find("entity", ref)
        if held is None:
            return None
        entity = from_body(Entity, held.body)
        if entity.merged_into is None:
            return entity
        ref = entity.merged_into
    return None


def _change(before: Statement, after: Statement) -> str:
    if before.valid_to is None and after.valid_to is not None:
        return "supersede" if after.closed_by is not None else "close"
    return "mention" if after.mentions != before.mentions else "update"
