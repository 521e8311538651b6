"""Entities: listing them, giving them other names, merging two that are one.

Which of the entities that are known a question names: by label, by alias, through merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from functools import partial
from heapq import nsmallest
from itertools import combinations, pairwise

from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.knowledge.entities import Entity, Link, Suggestion, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import entity_ref, memory_key, parse_key, parse_ref, slug, term_value
from perdure.domain.knowledge.memories import USER, MemoryRecord, Statement, Writer, only_people, to_memory, to_statement
from perdure.domain.knowledge.proposals import ENTITY_TYPES, EntityName
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.scope import Owner, Scope
from perdure.domain.text.rules import are_several, brief, check_choice, check_no_secret, check_text, utf8_size
from perdure.domain.values import dataclass, field, replace
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.search.entries import entity_hash
from perdure.engine.search.lexicon import QUESTION_CHARS_MAX, folded, lexemes, question_words, term_hash
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.knowledge import RecordView
from perdure.services.knowledge.ledger import Ledger, find_entity, merged_entity

LINKED_BY = ("entities", "subject", "attribute", "visible_to")
ROWS_MAX = 10_000
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Entities:
    store: Store
    clock: Clock
    limits: Limits
    writer: Writer = "user"

    def list_(self, scope: Scope, *, type: str | None, limit: int) -> list[Entity]:  # noqa: A002 - the word of the requirements
        """The first `limit` by reference of those that were not merged into another."""
        rows = self.limits.page(limit)
        if type is not None:
            check_choice(type, "type", ENTITY_TYPES)

        def work(view: View) -> list[Entity]:
            here = (one for one in _entities(view, type) if one.merged_into is None and _is_for(view, one, scope))
            return nsmallest(rows, here, key=lambda one: one.ref)

        return self.store.read(scope.owner, work)

    def get(self, scope: Scope, ref: str) -> Entity:
        """The entity behind a reference, an alias, or a merged one."""

        def work(view: View) -> Entity:
            held = self._get(view, ref)
            if not _is_for(view, held, scope):
                raise NotFound(f"there is no entity {ref!r:.80}; list them with `entities.list()`")
            return held

        return self.store.read(scope.owner, work)

    def alias(self, owner: Owner, ref: str, label: str) -> Entity:
        """Let another name mean this entity from now on."""
        only_people(self.writer, "give names to entities", "tell the user, who may with `perdure entity alias`")
        utf8_size(label, "`label`")
        check_no_secret(label, "label")

        def work(tx: Tx) -> Entity:
            ledger = Ledger(tx, self._by("alias"))
            held = self._get(tx, ref)
            other = entity_ref(held.type, label)
            known = find_entity(tx.records, other)
            if known is not None and known.ref != held.ref:
                raise Conflict(f"{other!r:.80} means {known.ref!r:.80}; if the two are one, merge them with `entities.merge()`")
            if known is not None:
                return held  # its own name, or an alias already
            changed = replace(held, aliases=(*held.aliases, other))
            ledger.put(changed, "alias")
            return changed

        return self.store.write(owner, work)

    def merge(self, owner: Owner, ref: str, into: str) -> int:
        """Make two entities one: all references move, and the old name becomes an alias; the number to undo it by.

        Of two values of what has one at a time the older ends, and a suggestion to merge them is accepted.
        """
        only_people(self.writer, "merge entities", "tell the user, who may with `perdure entity merge`")
        now = self.clock.now()

        def work(tx: Tx) -> int:
            ledger = Ledger(tx, Attribution("user", now, "merge"))
            one, other = self._get(tx, ref), self._get(tx, into)
            if one.ref == other.ref:
                raise InvalidInput(f"{ref!r:.80} and {into!r:.80} are the same entity already")
            if one.type != other.type:
                raise InvalidInput(f"a {one.type} and a {other.type} cannot be one; correct the references")
            if _names(one) & {*other.seen_with} or _names(other) & {*one.seen_with}:
                raise Conflict(f"{one.ref!r:.80} and {other.ref!r:.80} were named side by side: they are two")
            for slot in _move(tx, ledger, one, other):
                for statement in _in_turn(ledger.slot_history(slot), now):
                    ledger.put(statement, "merge")
            _accept(tx, ledger, _names(one) | _names(other))
            assert ledger.action is not None  # noqa: S101 - a merge always writes
            return ledger.action

        return self.store.write(owner, work)

    def links(self, scope: Scope, *, limit: int) -> list[Link]:
        """Which entities current statements name together, and which they tell of the user; the strongest first."""
        rows = self.limits.page(limit)
        agent = scope.address.agent

        def work(view: View) -> list[Link]:
            together: Counter[tuple[str, str]] = Counter()
            for same, count in view.records.tally("statement", LINKED_BY, ("state", "current")):
                entities, subject, attribute, visible_to = same
                if visible_to in (None, agent):
                    named = sorted({*_texts(entities), *(_texts([subject]) - {USER})})
                    linked = [*combinations(named, 2)]
                    if subject == USER or attribute == "relation":
                        linked += [(USER, ref) for ref in named]
                    together.update(dict.fromkeys(linked, count))
            ordered = sorted(together.items(), key=lambda pair: (-pair[1], pair[0]))
            return [Link(one, other, count) for (one, other), count in ordered[:rows]]

        return self.store.read(scope.owner, work)

    def suggestions(self, scope: Scope, *, limit: int) -> list[Suggestion]:
        """What a person should decide, as far as it concerns what the agent may see."""
        rows = self.limits.page(limit)

        def work(view: View) -> list[Suggestion]:
            held = view.records.list_(RecordQuery("suggestion", ROWS_MAX, ("state", "open")))
            found = [from_body(Suggestion, record.body) for record in held]
            return [one for one in found if all(_may_see(view, scope, subject) for subject in one.subjects)][:rows]

        return self.store.read(scope.owner, work)

    def dismiss(self, owner: Owner, suggestion: str) -> Suggestion:
        """Do not ask again."""
        only_people(self.writer, "decide on suggestions", "tell the user, who may on the page under Entities")
        utf8_size(suggestion, "`suggestion`")

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

    def _get(self, view: View, ref: str) -> Entity:
        held = find_entity(view.records, str(parse_ref(ref)))
        if held is None:
            raise NotFound(f"there is no entity {ref!r:.80}; list them with `entities.list()`")
        return held


def _is_for(view: View, entity: Entity, scope: Scope) -> bool:
    """Whether an agent may know of an entity: all may, or it may see something that is said about it."""
    agent = scope.address.agent
    if entity.visible_to in (None, agent):
        return True
    return any(one.visible_to in (None, agent) for one in _statements(view, ("entity", term_value(entity.ref))))


def _may_see(view: View, scope: Scope, subject: str) -> bool:
    """Whether an agent may see what a suggestion is about: an entity or a statement."""
    held = view.records.find("entity", subject) or view.records.find("statement", subject)
    return held is None or held.body.get("visible_to") in (None, scope.address.agent)


def _move(tx: Tx, ledger: Ledger, one: Entity, other: Entity) -> list[str]:
    """Everything about `one` becomes about `other`; the slots, each with one value at a time, that something moved into."""
    slots: dict[str, None] = {}

    def move(statement: Statement, memory: str) -> None:
        ledger.put(moved := replace(_reworded(statement, one.ref, other.ref), memory=memory), "merge")
        if moved.subject != statement.subject and is_single_valued(moved.attribute):
            slots.update((value, None) for field, value in moved.terms() if field in ("slot", "past_slot"))

    for memory in _memories(tx, one.ref):
        moved = _renamed(memory, one.ref, other.ref)
        for statement in _statements(tx, ("memory", term_value(memory.record_key))):
            move(statement, moved.record_key)
        if moved.record_key != memory.record_key:
            held = ledger.memory(moved.record_key)
            ledger.put(moved if held is None else _joined(held, moved), "merge")
            ledger.put(replace(memory, status="ARCHIVED", folded_into=moved.record_key), "merge")
        else:
            ledger.put(moved, "merge")
    for statement in _statements(tx, ("entity", term_value(one.ref))):
        move(statement, statement.memory)
    aliases = tuple(dict.fromkeys((*other.aliases, one.ref, *one.aliases)))
    seen = tuple(dict.fromkeys((*other.seen_with, *one.seen_with)))
    # Anyone who knew one of them knows what they are together.
    told = other.visible_to if one.visible_to == other.visible_to else None
    ledger.put(replace(other, aliases=aliases, seen_with=seen, visible_to=told), "merge")
    ledger.put(replace(one, merged_into=other.ref), "merge")
    return list(slots)


def _in_turn(values: Sequence[Statement], now: datetime) -> list[Statement]:
    """Those of the values that end because the next one begins: at any moment there is one at most."""
    # What ended where it began was never so.
    lasting = [one for one in values if one.valid_to is None or one.valid_to > one.valid_from]
    line = sorted(lasting, key=lambda one: (one.valid_from, one.recorded_at, one.id))
    return [
        held.closed(valid_to=following.valid_from, at=now, by=following.id, reason="merged")
        for held, following in pairwise(line)
        if held.valid_to is None or held.valid_to > following.valid_from
    ]


def _accept(tx: Tx, ledger: Ledger, names: Set[str]) -> None:
    """Suggestions to merge what is one by now are settled."""
    for name in sorted(names):
        for record in tx.records.list_(RecordQuery("suggestion", ROWS_MAX, ("subject", term_value(name)))):
            held = from_body(Suggestion, record.body)
            if held.what != "merge" or held.state != "open":
                continue
            meant = {None if (one := find_entity(tx.records, ref)) is None else one.ref for ref in held.subjects}
            if len(meant) == 1:
                ledger.put(replace(held, state="accepted"), "merge")


def _names(entity: Entity) -> set[str]:
    """Its reference and those of all that it has become one with."""
    return {entity.ref, *entity.aliases}


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


def _entities(view: View, type: str | None) -> Iterator[Entity]:  # noqa: A002 - the word of the requirements
    term = ("state", "here") if type is None else ("type", type)
    before: str | None = None
    while page := view.records.list_(RecordQuery("entity", PAGE, term, before)):
        yield from (from_body(Entity, record.body) for record in page)
        before = page[-1].key


def _memories(view: View, ref: str) -> list[MemoryRecord]:
    return [
        to_memory(record.body) for record in view.records.list_(RecordQuery("memory", ROWS_MAX, ("entity", term_value(ref))))
    ]


def _texts(values: object) -> set[str]:
    return {one for one in values if isinstance(one, str)} if isinstance(values, list) else set()


def _statements(view: View, term: tuple[str, str]) -> list[Statement]:
    return [to_statement(record.body) for record in view.records.list_(RecordQuery("statement", ROWS_MAX, term))]


WORDS_MAX = 40
"""So many words of a question are looked at for names."""
NAME_WORDS_MAX = 3


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """Entities that a question names. `kin` maps a word of a name to the words of its other names."""

    refs: tuple[str, ...] = ()
    kin: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    required: tuple[frozenset[int], ...] = ()
    """The terms by which what names one of the entities asked for is known: all of a set."""


def names_in(view: View, agent: str, text: str, wanted: Sequence[str]) -> NamedEntities:
    """The entities in `text`, and what stands for those that are `wanted`."""
    records = view.records
    named = _entities_named(view, agent, text)
    kin: dict[str, tuple[str, ...]] = {}
    for entity, words in named:
        others = [word for name in _names_of(entity) for word in name.split() if word not in words]
        for word in words:
            kin[word] = tuple(dict.fromkeys((*kin.get(word, ()), *others)))
    required = [terms for ref in wanted for terms in _terms(records, ref)]
    return NamedEntities(tuple(dict.fromkeys(entity.ref for entity, _ in named)), kin, tuple(required))


def _entities_named(view: View, agent: str, text: str) -> list[tuple[Entity, tuple[str, ...]]]:
    records = view.records
    refs: dict[str, tuple[str, ...]] = {}
    for phrase in dict.fromkeys(_phrases(text)):
        with suppress(InvalidInput):  # nothing of it can be seen
            name = slug(" ".join(phrase))
            refs |= {f"{kind}:{name}": phrase for kind in ENTITY_TYPES}
    if not refs:
        return []
    shorter = {term_value(ref): ref for ref in refs}
    known, called = view.together(
        lambda: records.find_many("entity", list(refs)), lambda: records.find_by("entity", "alias", list(shorter))
    )
    keys = {record.key: record.key for record in known}
    # What is a name of its own is no other name of something else.
    keys |= {shorter[value]: key for value, key in called.items() if shorter[value] not in keys}
    found = view.together(*(partial(merged_entity, records, key) for key in keys.values()))
    return [
        (entity, tuple(word.casefold() for word in refs[ref]))
        for ref, entity in zip(keys, found, strict=True)
        if entity is not None and entity.visible_to in (None, agent)
    ]


def _phrases(text: str) -> Iterator[tuple[str, ...]]:
    """Runs of words of which the first begins with a capital; and any other word that says something, by itself."""
    words = [word for part in text.split() if (word := part.strip(".,;:!?\"'()[]’“”").removesuffix("'s").removesuffix("’s"))]
    words = words[:WORDS_MAX]
    anything = not any(word[:1].isupper() for word in words)
    telling = {word for word, _ in question_words(text[:QUESTION_CHARS_MAX])}
    for start, word in enumerate(words):
        if anything or word[:1].isupper():
            for end in range(start + 1, min(start + NAME_WORDS_MAX, len(words)) + 1):
                yield tuple(words[start:end])
        elif folded(word) in telling:
            yield (word,)


def _names_of(entity: Entity) -> list[str]:
    aliases = [alias.partition(":")[2].replace("_", " ") for alias in entity.aliases]
    return [entity.label.casefold(), *aliases]


def _terms(records: RecordView, ref: str) -> list[frozenset[int]]:
    """Either the entity itself is named as such, or all words of one of its names are there."""
    entity = find_entity(records, ref)
    if entity is None:
        return [frozenset((entity_hash(ref),)), _words(ref.partition(":")[2].replace("_", " "))]
    return [frozenset((entity_hash(entity.ref),)), *(_words(name) for name in _names_of(entity))]


def _words(name: str) -> frozenset[int]:
    return frozenset(term_hash(term) for term in lexemes(name))


def entity_names(refs: Iterable[str | EntityName]) -> tuple[EntityName, ...]:
    """Entities as callers give them: values, or texts such as `person:John Doe`."""
    if not are_several(refs):
        raise InvalidInput(f'`entities` = {brief(refs, 80)} must be a list, such as ["person:John Doe"]')
    found = []
    for ref in refs:
        if isinstance(ref, EntityName):
            found.append(ref)
            continue
        parsed = parse_ref(check_text(ref, "entity"))
        if parsed.type is None:
            raise InvalidInput(
                f"entity {brief(ref, 80)} has no type; write it like `person:John Doe` ({', '.join(ENTITY_TYPES)})"
            )
        found.append(EntityName(parsed.type, ref.split(":", 1)[1].strip()))
    return tuple(found)
