"""Entities: listing them, giving them other names, merging two that are one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from perdure.domain.entities import entity_ref, memory_key, parse_key, parse_ref
from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.journal import Attribution
from perdure.domain.limits import Limits
from perdure.domain.memories import MemoryRecord, Statement, to_memory, to_statement
from perdure.domain.records import RecordQuery
from perdure.domain.scope import Owner
from perdure.domain.things import Entity, Suggestion, from_body
from perdure.engine.indexing import short
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.ledger import Ledger, find_entity

ROWS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Entities:
    store: Store
    clock: Clock
    limits: Limits

    def list_(self, owner: Owner, *, type: str | None, limit: int) -> list[Entity]:  # noqa: A002 - the word of the requirements
        rows = self.limits.page(limit)
        term = ("state", "here") if type is None else ("type", type)
        found = self.store.read(owner, lambda view: view.records.list_(RecordQuery("entity", rows, term)))
        entities = [from_body(Entity, record.body) for record in found]
        return sorted((one for one in entities if one.merged_into is None), key=lambda one: one.ref)

    def get(self, owner: Owner, ref: str) -> Entity:
        """The entity behind a reference, an alias, or a merged one."""
        return self.store.read(owner, lambda view: self._held(view, ref))

    def alias(self, owner: Owner, ref: str, label: str) -> Entity:
        """Let another name mean this entity from now on."""

        def work(tx: Tx) -> Entity:
            ledger = Ledger(tx, self._by("alias"))
            held = self._held(tx, ref)
            other = entity_ref(held.type, label)
            known = ledger.entity(other)
            if known is not None and known.ref != held.ref:
                raise Conflict(f"{other!r:.80} is an entity of its own; merge the two with `entities.merge()`")
            changed = replace(held, aliases=tuple(dict.fromkeys((*held.aliases, other))))
            ledger.put(changed, "alias")
            return changed

        return self.store.write(owner, work)

    def merge(self, owner: Owner, ref: str, into: str) -> int:
        """Make two entities one: all references move, and the old name becomes an alias; the number to undo it by."""

        def work(tx: Tx) -> int:
            ledger = Ledger(tx, self._by("merge"))
            one, other = self._held(tx, ref), self._held(tx, into)
            if one.ref == other.ref:
                raise InvalidInput(f"{ref!r:.80} and {into!r:.80} are the same entity already")
            if one.type != other.type:
                raise InvalidInput(f"a {one.type} and a {other.type} cannot be one; correct the references")
            if other.ref in one.seen_with or one.ref in other.seen_with:
                raise Conflict(f"{one.ref!r:.80} and {other.ref!r:.80} were named side by side: they are two")
            _move(tx, ledger, one, other)
            assert ledger.action is not None  # noqa: S101 - a merge always writes
            return ledger.action

        return self.store.write(owner, work)

    def suggestions(self, owner: Owner, *, limit: int) -> list[Suggestion]:
        """What a person should decide."""
        rows = self.limits.page(limit)
        found = self.store.read(owner, lambda view: view.records.list_(RecordQuery("suggestion", rows, ("state", "open"))))
        return [from_body(Suggestion, record.body) for record in found]

    def dismiss(self, owner: Owner, suggestion: str) -> Suggestion:
        """Do not ask again."""

        def work(tx: Tx) -> Suggestion:
            ledger = Ledger(tx, self._by("dismiss"))
            held = tx.records.find("suggestion", suggestion)
            if held is None:
                raise NotFound(f"there is no suggestion {suggestion!r:.80}; list them with `entities.suggestions()`")
            changed = replace(from_body(Suggestion, held.body), state="dismissed")
            ledger.put(changed, "dismiss")
            return changed

        return self.store.write(owner, work)

    def _by(self, why: str) -> Attribution:
        return Attribution("user", self.clock.now(), why)

    def _held(self, view: View, ref: str) -> Entity:
        held = find_entity(view.records, str(parse_ref(ref)))
        if held is None:
            raise NotFound(f"there is no entity {ref!r:.80}; list them with `entities.list()`")
        return held


def _move(tx: Tx, ledger: Ledger, one: Entity, other: Entity) -> None:
    """Everything about `one` becomes about `other`."""
    for memory in _memories(tx, one.ref):
        moved = _renamed(memory, one.ref, other.ref)
        for statement in _statements(tx, ("memory", short(memory.record_key))):
            ledger.put(replace(_reworded(statement, one.ref, other.ref), memory=moved.record_key), "merge")
        if moved.record_key != memory.record_key:
            held = ledger.memory(moved.record_key)
            ledger.put(moved if held is None else _joined(held, moved), "merge")
            ledger.put(replace(memory, status="ARCHIVED", folded_into=moved.record_key), "merge")
        else:
            ledger.put(moved, "merge")
    for statement in _statements(tx, ("entity", short(one.ref))):
        ledger.put(_reworded(statement, one.ref, other.ref), "merge")
    aliases = tuple(dict.fromkeys((*other.aliases, one.ref, *one.aliases)))
    seen = tuple(dict.fromkeys((*other.seen_with, *one.seen_with)))
    ledger.put(replace(other, aliases=aliases, seen_with=seen), "merge")
    ledger.put(replace(one, merged_into=other.ref), "merge")


def _renamed(memory: MemoryRecord, old: str, new: str) -> MemoryRecord:
    entities = tuple(dict.fromkeys(new if ref == old else ref for ref in memory.entities))
    if not memory.entities or memory.entities[0] != old or memory.key.endswith("|fold"):
        return replace(memory, entities=entities)
    parsed = parse_key(memory.key)
    key = memory_key(parsed.type, parsed.entity_type, new, parsed.fact_type)  # type: ignore[arg-type]
    return replace(memory, key=key, entities=entities)


def _joined(held: MemoryRecord, moved: MemoryRecord) -> MemoryRecord:
    return replace(
        held,
        entities=tuple(dict.fromkeys((*held.entities, *moved.entities))),
        importance=max(held.importance, moved.importance),
        pinned=held.pinned or moved.pinned,
        status="ACTIVE",
    )


def _reworded(statement: Statement, old: str, new: str) -> Statement:
    return replace(
        statement,
        subject=new if statement.subject == old else statement.subject,
        entities=tuple(dict.fromkeys(new if ref == old else ref for ref in statement.entities)),
    )


def _memories(view: View, ref: str) -> list[MemoryRecord]:
    return [to_memory(record.body) for record in view.records.list_(RecordQuery("memory", ROWS_MAX, ("entity", short(ref))))]


def _statements(view: View, term: tuple[str, str]) -> list[Statement]:
    return [to_statement(record.body) for record in view.records.list_(RecordQuery("statement", ROWS_MAX, term))]
