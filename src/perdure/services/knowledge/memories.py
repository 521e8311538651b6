"""Memories: remembering, listing, looking back, and changing them by hand. Every change can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice
from typing import Any, cast

from perdure.domain.errors import InvalidInput, LimitExceeded, NotFound
from perdure.domain.knowledge.entities import Rejection, from_body
from perdure.domain.knowledge.journal import Attribution, Operation, is_for
from perdure.domain.knowledge.keys import parse_key, parse_ref, slug, term_value
from perdure.domain.knowledge.memories import (
    USER,
    MemoryRecord,
    MemoryWithStatements,
    Statement,
    Status,
    Writer,
    actor_of,
    only_people,
    record_key,
    source_of,
    to_memory,
    to_statement,
    trust_of_source,
)
from perdure.domain.knowledge.proposals import (
    FACT_TYPES,
    MEMORY_TYPES,
    EntityName,
    FactType,
    MemoryType,
    NewStatement,
    Proposal,
)
from perdure.domain.knowledge.records import ChangedMemories, Record, RecordQuery, Term
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, Owner, Scope
from perdure.domain.text.rules import are_several, brief, check_choice, check_flag, check_id, check_text, utf8_size
from perdure.domain.times.instants import check_instant, to_us
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.predicates import is_single_valued, usual_importance
from perdure.engine.extraction.sentence import as_told
from perdure.engine.knowledge.outcomes import OURS, Habits, Outcome, ProposalOrigin
from perdure.engine.knowledge.sameness import corrected_value
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.commit import CommitResult, Submission, check_proposal, check_statement, commit_all_in
from perdure.services.knowledge.entities import entity_names
from perdure.services.knowledge.ledger import Ledger, find_entity, judge_names

MEMORIES_PER_PAGE = 1_000
READ_AT_ONCE = 20
"""Memories whose statements are asked for together."""
FOUNDATION_MAX = 20
GROUPED_BY = ("type", "fact_type", "status", "pinned", "entities", "visible_to")
PROPOSALS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class MemoryGroup:
    """The number of memories of one kind about the same entities."""

    type: str
    fact_type: str
    entities: tuple[str, ...]
    """Whom and what they are about; none: the user alone."""
    status: Status
    pinned: bool
    count: int


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """Which memories to list. Without more: what is current and active, visible to the agent that asks."""

    type: str | None = None
    fact_type: str | None = None
    entity: str | None = None
    pinned: bool | None = None
    archived: bool = False
    as_of: datetime | None = None
    """As it was in the world then."""
    known_at: datetime | None = None
    """As far as was known then."""
    limit: int = 100
    behind: tuple[datetime, str] | None = None
    """Only what comes behind this place of the list: the `updated_at` and the key of a memory, which may be gone by now."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    store: Store
    clock: Clock
    limits: Limits
    zone: str = "UTC"
    """In which `yesterday` is meant."""
    writer: Writer = "user"
    """Whose word is stored."""
    habits: Habits = OURS

    # -- writing

    def commit(self, owner: Owner, proposals: Sequence[Proposal], origin: ProposalOrigin, by: Attribution) -> CommitResult:
        """Have proposals decided and stored, each as an action of its own. Those refused are kept with the reason."""
        if len(proposals) > PROPOSALS_MAX:
            raise LimitExceeded(f"{len(proposals)} proposals at once are more than {PROPOSALS_MAX}; hand them over in parts")
        ids = [self.clock.new_id() for _ in range(2 * len(proposals))]
        self._judge(owner, proposals)
        return self.store.write(owner, lambda tx: commit_all_in(tx, [Submission(proposals, origin, by, ids)])[0])

    def remember(self, scope: Scope, proposal: Proposal, *, source: str, pinned: bool, visible_to: str | None) -> Outcome:
        """Store what somebody says is so. Their word closes what contradicts it, as far as it goes."""
        now = self.clock.now()
        origin = self._origin(source, now, visible_to=visible_to, pinned=pinned)
        done = self.commit(scope.owner, [check_proposal(proposal)], origin, self._by(scope, now, "remember"))
        return done.outcomes[0]

    def _origin(self, source: str, now: datetime, *, visible_to: str | None, pinned: bool = False) -> ProposalOrigin:
        trust, told = trust_of_source(source, self.writer), source_of(source, self.writer)
        return ProposalOrigin(
            told,
            trust,
            now,
            self.clock.new_id,
            is_single_valued,
            visible_to=visible_to,
            pinned=pinned,
            habits=self.habits,
        )

    def _by(self, scope: Scope, now: datetime, why: str) -> Attribution:
        return Attribution(actor_of(self.writer, scope.address.agent), now, why)

    def remember_many(self, scope: Scope, statements: Iterable[NewStatement]) -> list[Outcome]:
        """Store what somebody says is so: all of it in one transaction, or nothing. Each can be undone by itself."""
        given = self.submissions(scope, statements)
        return self.store.write(scope.owner, lambda tx: [_joined(one.outcomes) for one in commit_all_in(tx, given)])

    def submissions(self, scope: Scope, statements: Iterable[NewStatement]) -> list[Submission]:
        """What somebody says is so, ready to be committed in a transaction of the caller's."""
        if not are_several(statements):
            raise InvalidInput(f"`statements` is a `{type(statements).__name__}`; pass `perdure.types.NewStatement` values")
        now = self.clock.now()
        by = self._by(scope, now, "remember")
        given = [self._submission(check_statement(one), now, by) for one in islice(statements, PROPOSALS_MAX + 1)]
        if len(given) > PROPOSALS_MAX:
            raise LimitExceeded(f"more than {PROPOSALS_MAX} statements at once; hand them over in parts")
        self._judge(scope.owner, [proposal for one in given for proposal in one.proposals])
        return given

    def _judge(self, owner: Owner, proposals: Sequence[Proposal]) -> None:
        """Compare new names with known ones while nobody waits; the transaction looks again, and finds most of it judged."""
        names = [name for one in proposals for name in (*one.entities, *filter(None, (one.subject,)))]
        if names:
            self.store.read(owner, lambda view: judge_names(view.records, names))

    def _submission(self, said: NewStatement, now: datetime, by: Attribution) -> Submission:
        proposal = Proposal(
            type=said.type,
            fact_type=said.fact_type,
            content=said.content,
            entities=entity_names(said.entities),
            subject=None if said.subject is None else entity_names([said.subject])[0],
            attribute=said.attribute,
            value=said.value,
            confidence=said.confidence,
            importance=1 if said.importance is None else said.importance,
            valid_from=said.valid_from,
            ended=said.ended,
            corrects=said.corrects,
        )
        origin = self._origin(said.source, now, visible_to=said.visible_to, pinned=said.pinned)
        told = as_told(check_proposal(proposal), now, self.zone)
        if said.importance is None:
            told = [replace(one, importance=usual_importance(one)) for one in told]
        return Submission(told, origin, by, [self.clock.new_id() for _ in range(2 * len(told))])

    def correct(self, scope: Scope, key: str, content: str, *, statement: str | None, value: str | None) -> Outcome:
        """Say a current statement of a memory otherwise: it ends as corrected, and the new words take its place."""
        now, ids = self.clock.now(), [self.clock.new_id(), self.clock.new_id()]
        check_text(content, "content")
        if value is not None:
            check_text(value, "value")
        if statement is not None:
            check_id(statement, "statement", bytes_max=ID_BYTES_MAX)

        def work(tx: Tx) -> Outcome:
            held = _recalled(tx, _key_of(tx, scope, key), now)
            wrong = _chosen(held, statement)
            proposal = check_proposal(_otherwise(held.memory, wrong, content, value))
            visible_to = held.memory.visible_to
            origin, by = self._origin("user", now, visible_to=visible_to), self._by(scope, now, "correct")
            return commit_all_in(tx, [Submission([proposal], origin, by, ids, wrong=wrong)])[0].outcomes[0]

        return self.store.write(scope.owner, work)

    def edit(self, scope: Scope, key: str, change: Callable[[MemoryRecord], MemoryRecord], why: str) -> MemoryWithStatements:
        """Change the row of a memory: pin, archive, importance, visibility of its agent only."""
        now = self.clock.now()

        def work(tx: Tx) -> MemoryWithStatements:
            ledger = Ledger(tx, self._by(scope, now, why))
            held = ledger.memory(_key_of(tx, scope, key))
            if held is None:
                raise NotFound(f"there is no memory {key!r:.120}; list them with `memories.list()`")
            if held.is_kept or any(one.trust == "user" for one in ledger.statements(held.record_key)):
                only_people(self.writer, f"{why} what the user said or keeps", f"the user does: `perdure memory {why} KEY`")
            ledger.put(replace(change(held), updated_at=now, kept_by=self.writer), why)
            return _recalled(tx, held.record_key, now)

        return self.store.write(scope.owner, work)

    # -- reading

    def list_(self, scope: Scope, query: MemoryQuery) -> list[MemoryWithStatements]:
        """Memories with what is current of them (or was, then), the newest change first."""
        rows = self.limits.page(query.limit)
        check_flag(query.archived, "archived")
        if query.pinned is not None:
            check_flag(query.pinned, "pinned")
        for name in ("as_of", "known_at"):
            if (moment := getattr(query, name)) is not None:
                check_instant(moment, name)
        if query.behind is not None:
            if not isinstance(query.behind, tuple | list) or len(query.behind) != 2:
                raise InvalidInput(f"`behind` = {brief(query.behind)} must be a moment and a key, as of the last memory listed")
            check_instant(query.behind[0], "behind")
            utf8_size(query.behind[1], "`behind`")
        if query.type is not None:
            check_choice(query.type, "type", MEMORY_TYPES)
        if query.fact_type is not None:
            check_choice(query.fact_type, "fact_type", FACT_TYPES)
        now = self.clock.now()

        def work(view: View) -> list[MemoryWithStatements]:
            wanted = _wanted(view, scope, query)
            if query.behind is not None:
                last_us, last = to_us(query.behind[0]), query.behind[1]
                wanted = [(key, changed_us) for key, changed_us in wanted if (-changed_us, key) > (-last_us, last)]
            return _first_of(view, [key for key, _ in wanted], rows, now, query)

        return self.store.read(scope.owner, work)

    def groups(self, scope: Scope, *, archived: bool) -> list[MemoryGroup]:
        """How many memories are alike in what they are about and in kind, the largest group first."""

        def work(view: View) -> list[MemoryGroup]:
            counted = view.records.tally_current(GROUPED_BY)
            if archived:
                counted = [(same, count) for same, count in counted if same[2] == "ACTIVE"]
                counted += view.records.tally("memory", GROUPED_BY, ("status", "ARCHIVED"))
            return [group for same, count in counted if (group := _group(same, count, scope, archived)) is not None]

        return sorted(self.store.read(scope.owner, work), key=lambda one: (-one.count, one.entities, one.type, one.fact_type))

    def get(self, scope: Scope, key: str) -> MemoryWithStatements:
        now = self.clock.now()

        def work(view: View) -> MemoryWithStatements:
            found = _key_of(view, scope, key)
            return _recalled(view, found, now)

        return self.store.read(scope.owner, work)

    def history(self, scope: Scope, key: str) -> list[Statement]:
        """All statements of a memory and of what took their place or had it, oldest first."""

        def work(view: View) -> list[Statement]:
            name = _key_of(view, scope, key)
            held = view.records.find("memory", name)
            earlier = [] if held is None else _told_by(view, to_memory(held.body))
            found = {one.id: one for one in (*_statements(view, ("memory", name)), *earlier)}
            # What superseded a statement may stand in another memory: Austin's story goes on in Seattle's.
            slots = {value for one in found.values() for kind, value in one.terms() if kind in ("slot", "past_slot")}
            for slot in slots:
                for field in ("slot", "past_slot"):
                    found |= {other.id: other for other in _statements(view, (field, slot))}
            visible = [one for one in found.values() if one.visible_to in (None, scope.address.agent)]
            return sorted(visible, key=lambda one: (one.valid_from, one.recorded_at, one.id))

        return self.store.read(scope.owner, work)

    def foundation(self, scope: Scope) -> tuple[list[MemoryWithStatements], int]:
        """The first pinned memories by creation, and how many more there are."""
        return self.store.read(scope.owner, lambda view: self.foundation_in(view, scope))

    def foundation_in(self, view: View, scope: Scope) -> tuple[list[MemoryWithStatements], int]:
        """The same, within a transaction."""
        query = MemoryQuery(pinned=True, limit=self.limits.page_rows_max)
        keys = [key for key, _ in _wanted(view, scope, query)]
        pinned = _first_of(view, keys, query.limit, self.clock.now(), query)
        pinned.sort(key=lambda one: one.memory.created_at)
        return pinned[:FOUNDATION_MAX], max(0, len(pinned) - FOUNDATION_MAX)

    def rejections(self, scope: Scope, *, limit: int) -> list[Rejection]:
        rows = self.limits.page(limit)
        found = self.store.read(scope.owner, lambda view: view.records.list_(RecordQuery("rejection", rows)))
        return [from_body(Rejection, record.body) for record in found]

    # -- the journal

    def changes(self, scope: Scope, key: str, *, limit: int) -> list[Operation]:
        """What was done to a memory and to its statements, newest first."""
        rows = self.limits.page(limit)

        def work(view: View) -> list[Operation]:
            name = _key_of(view, scope, key)
            found = view.records.operations_of("memory", name, limit=rows)
            for one in _statements(view, ("memory", name)):
                found += view.records.operations_of("statement", one.id, limit=rows)
            return sorted(found, key=lambda one: -one.seq)[:rows]

        return self.store.read(scope.owner, work)

    def diff(self, scope: Scope, start: datetime, end: datetime) -> list[Operation]:
        """What changed between two moments, one entry per row: what it was before the first change and after the last."""
        check_instant(start, "start")
        check_instant(end, "end")
        if start > end:
            raise InvalidInput("`start` is after `end`; swap them")

        def work(view: View) -> list[Operation]:
            net: dict[tuple[str, str], Operation] = {}
            before: int | None = None
            while page := view.list_operations(limit=1_000, before=before):
                for operation in page:
                    if start < operation.at <= end:
                        row = (operation.kind, operation.key)
                        last = net.get(row)
                        net[row] = operation if last is None else replace(last, before=operation.before)
                before = page[-1].seq
                if page[-1].at < start:
                    break
            changed = [one for one in net.values() if one.before != one.after and is_for(one, scope.address.agent)]
            return sorted(changed, key=lambda one: one.seq)

        return self.store.read(scope.owner, work)


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    """What became of one sentence: of its first fact, with the others beside it."""
    return replace(outcomes[0], also=tuple(outcomes[1:])) if len(outcomes) > 1 else outcomes[0]


# -- reading rows


def _key_of(view: View, scope: Scope, key: str) -> str:
    """The record key of a memory that the agent may see, also if its reference is written with its type, and also the key
    alone of one that only this agent sees."""
    utf8_size(key, "a memory's key")
    names = [key, record_key(key, scope.address.agent)]
    with suppress(InvalidInput):
        names.append(str(parse_key(key)))
    for name in names:
        held = view.records.find("memory", name)
        if held is not None and _visible(to_memory(held.body), scope):
            return name
    raise NotFound(f"there is no memory {key!r:.120}; list them with `memories.list()`")


def _visible(memory: MemoryRecord, scope: Scope) -> bool:
    return memory.visible_to in (None, scope.address.agent)


def _term(view: View, query: MemoryQuery) -> Term | None:
    """What few memories have, if the query asks for it."""
    if query.entity is not None:
        ref = str(parse_ref(query.entity))
        meant = find_entity(view.records, ref)
        return ("entity", term_value(ref if meant is None else meant.ref))
    return ("pinned", "yes") if query.pinned else None


def _group(same: Sequence[Any], count: int, scope: Scope, archived: bool) -> MemoryGroup | None:
    """A group as it was counted; None if the agent may not see it, or archived ones are not asked for."""
    of_type, fact_type, status, pinned, entities, visible_to = same
    if visible_to not in (None, scope.address.agent) or (status == "ARCHIVED" and not archived):
        return None
    return MemoryGroup(
        type=of_type, fact_type=fact_type, entities=tuple(entities), status=status, pinned=bool(pinned), count=count
    )


def _matches_query(memory: MemoryRecord, query: MemoryQuery) -> bool:
    return (
        (query.archived or memory.status == "ACTIVE")
        and query.type in (None, memory.type)
        and query.fact_type in (None, memory.fact_type)
        and query.pinned in (None, memory.pinned)
    )


def _all_of(view: View, term: Term | None) -> Iterable[Record]:
    before: str | None = None
    while True:
        page = view.records.list_(RecordQuery("memory", MEMORIES_PER_PAGE, term, before))
        yield from page
        if len(page) < MEMORIES_PER_PAGE:
            return
        before = page[-1].key


def _statements(view: View, term: Term) -> list[Statement]:
    found = view.records.list_(RecordQuery("statement", 10_000, (term[0], term_value(term[1]))))
    return [to_statement(record.body) for record in found]


def _wanted(view: View, scope: Scope, query: MemoryQuery) -> list[tuple[str, int]]:
    """The keys of the memories that are asked for, each with its last change, the newest first."""
    term = _term(view, query)
    if term is None and query.pinned is None:
        asked = ChangedMemories(scope.address.agent, query.type, query.fact_type, query.archived)
        return view.records.changed_memories(asked)
    held = ((record.key, to_memory(record.body)) for record in _all_of(view, term))
    found = [(key, to_us(one.updated_at)) for key, one in held if _matches_query(one, query) and _visible(one, scope)]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def _first_of(view: View, keys: Sequence[str], rows: int, now: datetime, query: MemoryQuery) -> list[MemoryWithStatements]:
    """The first of these memories that have something to tell, in their order, so that only as many are read as are told."""
    found: list[MemoryWithStatements] = []
    start = 0
    while start < len(keys) and len(found) < rows:
        some = keys[start : start + min(READ_AT_ONCE, rows - len(found))]
        start += len(some)
        read = view.together(*(partial(_recalled, view, key, now, as_of=query.as_of, known_at=query.known_at) for key in some))
        found += [recalled for recalled in read if recalled.statements]
    return found


def _recalled(
    view: View, key: str, now: datetime, *, as_of: datetime | None = None, known_at: datetime | None = None
) -> MemoryWithStatements:
    """A memory with what of it holds at a moment; without one, now."""
    as_it_is = as_of is None and known_at is None
    held, told = view.together(
        lambda: view.records.find("memory", key), lambda: _statements(view, ("current" if as_it_is else "memory", key))
    )
    if held is None:
        raise NotFound(f"there is no memory {key!r:.120}")
    moment = now if as_it_is else as_of or known_at or now
    found = [one for one in told if (one.is_current(now) if as_it_is else one.holds_at(moment, known_at))]
    memory = to_memory(held.body)
    if as_it_is and not found:
        found = _told_by(view, memory)
    return MemoryWithStatements(memory, tuple(sorted(found, key=lambda one: (one.recorded_at, one.id))))


def _told_by(view: View, memory: MemoryRecord) -> list[Statement]:
    """What a memory said before it was folded; its statements belong to the fold since."""
    return [to_statement(one.body) for one in view.records.find_many("statement", memory.told)] if memory.told else []


def _chosen(held: MemoryWithStatements, statement: str | None) -> Statement:
    """The current statement that is meant: the one with the id, or else the only one."""
    found = [one for one in held.statements if statement in (None, one.id)]
    if statement is not None and not found:
        raise NotFound(f"statement {brief(statement, 60)} is not current; get the memory again")
    if len(found) != 1:
        raise InvalidInput(f"the memory has {len(found)} current statements; name the one to correct by its id")
    return found[0]


def _otherwise(memory: MemoryRecord, wrong: Statement, content: str, value: str | None) -> Proposal:
    """A statement in other words. Its value is the one given, or the one that the words have now; an entity that the old value
    named is followed by the new one.
    """
    if value is None and wrong.value is not None:
        value = corrected_value(wrong.content, wrong.value, content)
        if value is None:
            raise InvalidInput(
                f"`value` is missing: the statement holds {wrong.attribute} = {brief(wrong.value)}, which the new words do not"
                f" name; say what it is now"
            )
    return Proposal(
        type=cast(MemoryType, memory.type),  # checked with the rest of the proposal
        fact_type=cast(FactType, memory.fact_type),
        content=content,
        entities=tuple(_followed(name, wrong.value, value) for name in entity_names(wrong.entities)),
        subject=None if wrong.subject == USER else entity_names([wrong.subject])[0],
        attribute=wrong.attribute,
        value=value,
        confidence=1.0,
        importance=wrong.importance,
        corrects=True,
    )


def _followed(name: EntityName, old: str | None, new: str | None) -> EntityName:
    """The entity, or the one that the new value names where the old value named this one."""
    if old is None or new is None or slug(name.label) != slug(old):
        return name
    return replace(name, label=new) if slug(new) != slug(old) else name
