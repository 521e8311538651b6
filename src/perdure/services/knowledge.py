"""Memories: remembering, listing, looking back, and changing them by hand. Every change can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.domain.entities import parse_ref
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, NotFound
from perdure.domain.journal import Attribution, Operation
from perdure.domain.knowledge import ENTITY_TYPES, FACT_TYPES, IMPORTANCE_MAX, MEMORY_TYPES, EntityName, Proposal
from perdure.domain.limits import Limits
from perdure.domain.memories import MemoryRecord, Statement, to_memory, to_statement
from perdure.domain.records import Record, RecordQuery, Term, record_kind
from perdure.domain.scope import Owner, Scope
from perdure.domain.text import utf8_size
from perdure.domain.things import Rejection, from_body
from perdure.domain.times import check_instant
from perdure.engine.committing import Committer, Origin, Outcome, closings_max
from perdure.engine.indexing import short
from perdure.engine.predicates import is_single_valued
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.ledger import Ledger

FOUNDATION_MAX = 20
REJECTIONS_MAX = 1_000
UNDO_ACTIONS_MAX = 1_000
PROPOSALS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Recalled:
    """A memory with the statements that were asked for, oldest first."""

    memory: MemoryRecord
    statements: tuple[Statement, ...]

    @property
    def content(self) -> str:
        """What it says, as one line."""
        return "; ".join(statement.content for statement in self.statements)


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """Which memories to list. Without more: what is current and active, visible to the agent that asks."""

    type: str | None = None
    entity: str | None = None
    pinned: bool | None = None
    archived: bool = False
    as_of: datetime | None = None
    """As it was in the world then."""
    known_at: datetime | None = None
    """As far as was known then."""
    limit: int = 100


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a run's proposals, in their order."""

    outcomes: tuple[Outcome, ...]
    actions: tuple[int | None, ...]
    """The numbers by which each can be undone; None where nothing was changed."""

    def count(self, verdict: str) -> int:
        return sum(outcome.verdict == verdict for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Knowledge:
    store: Store
    clock: Clock
    limits: Limits

    # -- writing

    def commit(self, owner: Owner, proposals: Sequence[Proposal], origin: Origin, by: Attribution) -> Committed:
        """Have proposals decided and stored, each as an action of its own. Those refused are kept with the reason."""
        if len(proposals) > PROPOSALS_MAX:
            raise LimitExceeded(f"{len(proposals)} proposals at once are more than {PROPOSALS_MAX}; hand them over in parts")
        # Ids are made here: the work may run more than once, and must then meet its own rows.
        ids = [self.clock.new_id() for _ in range(2 * len(proposals))]

        def work(tx: Tx) -> Committed:
            return commit_in(tx, proposals, origin, by, ids)

        return self.store.write(owner, work)

    def remember(self, scope: Scope, proposal: Proposal, *, source: str, pinned: bool, visible_to: str | None) -> Outcome:
        """Store what a person or program says is so. Its word closes what contradicts it."""
        now = self.clock.now()
        origin = Origin(source, "user", now, self.clock.new_id, is_single_valued, visible_to=visible_to, pinned=pinned)
        done = self.commit(scope.owner, [check_proposal(proposal)], origin, Attribution("user", now, "remember"))
        return done.outcomes[0]

    def edit(self, scope: Scope, key: str, change: Callable[[MemoryRecord], MemoryRecord], why: str) -> Recalled:
        """Change the row of a memory: pin, archive, importance, visibility of its agent only."""
        now = self.clock.now()

        def work(tx: Tx) -> Recalled:
            ledger = Ledger(tx, Attribution("user", now, why))
            held = ledger.memory(key)
            if held is None or not _visible(held, scope):
                raise NotFound(f"there is no memory {key!r:.120}; list them with `memories.list()`")
            ledger.put(replace(change(held), updated_at=now), why)
            return _recalled(tx, held.record_key, None, None)

        return self.store.write(scope.owner, work)

    # -- reading

    def list_(self, scope: Scope, query: MemoryQuery) -> list[Recalled]:
        """Memories with what is current of them (or was, then), the newest change first."""
        rows = self.limits.page(query.limit)
        for name in ("as_of", "known_at"):
            if (moment := getattr(query, name)) is not None:
                check_instant(moment, name)
        term = _term(query)

        def work(view: View) -> list[Recalled]:
            found: list[Recalled] = []
            for record in _all_of(view, term):
                memory = to_memory(record.body)
                if _wanted(memory, query) and _visible(memory, scope):
                    recalled = _recalled(view, record.key, query.as_of, query.known_at)
                    if recalled.statements:
                        found.append(recalled)
            found.sort(key=lambda one: one.memory.updated_at, reverse=True)
            return found[:rows]

        return self.store.read(scope.owner, work)

    def get(self, scope: Scope, key: str) -> Recalled:
        def work(view: View) -> Recalled:
            held = view.records.find("memory", key)
            if held is None or not _visible(to_memory(held.body), scope):
                raise NotFound(f"there is no memory {key!r:.120}; list them with `memories.list()`")
            return _recalled(view, key, None, None)

        return self.store.read(scope.owner, work)

    def history(self, scope: Scope, key: str) -> list[Statement]:
        """All statements of a memory and of what took their place or had it, oldest first."""

        def work(view: View) -> list[Statement]:
            held = view.records.find("memory", key)
            if held is None or not _visible(to_memory(held.body), scope):
                raise NotFound(f"there is no memory {key!r:.120}; list them with `memories.list()`")
            found = {one.id: one for one in _statements(view, ("memory", key))}
            # What superseded a statement may stand in another memory: Austin's story goes on in Seattle's.
            for one in list(found.values()):
                if one.attribute is not None:
                    for field in ("slot", "past_slot"):
                        name = next(value for kind, value in one.terms() if kind in ("slot", "past_slot"))
                        found |= {other.id: other for other in _statements(view, (field, name))}
            visible = [one for one in found.values() if one.visible_to in (None, scope.address.agent)]
            return sorted(visible, key=lambda one: (one.valid_from, one.recorded_at, one.id))

        return self.store.read(scope.owner, work)

    def foundation(self, scope: Scope) -> tuple[list[Recalled], int]:
        """The first pinned memories by creation, and how many more there are."""
        pinned = self.list_(scope, MemoryQuery(pinned=True, limit=self.limits.page_rows_max))
        pinned.sort(key=lambda one: one.memory.created_at)
        return pinned[:FOUNDATION_MAX], max(0, len(pinned) - FOUNDATION_MAX)

    def rejections(self, scope: Scope, *, limit: int) -> list[Rejection]:
        rows = self.limits.page(limit)
        found = self.store.read(scope.owner, lambda view: view.records.list_(RecordQuery("rejection", rows)))
        return [from_body(Rejection, record.body) for record in found]

    # -- the journal

    def undo(self, owner: Owner, number: int, *, cascade: bool) -> int:
        """Take back the action that operation belongs to; the number of the action that does so.

        `Conflict` if later actions changed the same rows, unless `cascade`, which takes those back first.
        """
        now = self.clock.now()

        def work(tx: Tx) -> int:
            ledger = Ledger(tx, Attribution("user", now, f"undo {number}"))
            operations = _to_undo(tx, number, cascade=cascade)
            for operation in operations:
                _restore(tx, ledger, operation)
            if ledger.action is None:
                raise Conflict(f"operation {number} left nothing that could be undone")
            return ledger.action

        return self.store.write(owner, work)

    def diff(self, owner: Owner, start: datetime, end: datetime) -> list[Operation]:
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
            changed = [one for one in net.values() if one.before != one.after]
            return sorted(changed, key=lambda one: one.seq)

        return self.store.read(owner, work)


def commit_in(tx: Tx, proposals: Sequence[Proposal], origin: Origin, by: Attribution, ids: Sequence[str]) -> Committed:
    """Commit proposals inside a transaction. `ids` are two for each proposal, made beforehand."""
    ledger = Ledger(tx, by)
    supply = iter(ids)
    if origin.closings_max is not None:
        origin = replace(origin, closings_max=closings_max(tx.records.count("statement", ("state", "current"))))
    committer = Committer(ledger, replace(origin, new_id=lambda: next(supply)))
    actions: list[int | None] = []
    for proposal in proposals:
        ledger.next_action()
        outcome = committer.commit(proposal)
        if outcome.verdict == "refused":
            key = next(supply)
            ledger.put(
                Rejection(key, proposal.content[:500], outcome.reason or "", by.actor, by.at, proposal.evidence), "reject"
            )
        elif outcome.statement is not None:
            ledger.seen_together(outcome.statement.entities)
        actions.append(ledger.action)
    _bound_rejections(tx, ledger)
    return Committed(tuple(committer.outcomes), tuple(actions))


def _bound_rejections(tx: Tx, ledger: Ledger) -> None:
    over = tx.records.count("rejection") - REJECTIONS_MAX
    if over <= 0:
        return
    ledger.next_action("rejections are bounded")
    oldest = tx.records.list_(RecordQuery("rejection", REJECTIONS_MAX + over))[-over:]
    for record in oldest:
        ledger.remove("rejection", record.key, "forget")


def check_proposal(proposal: Proposal) -> Proposal:
    """`proposal` if its fields are of the kinds there are."""
    if proposal.type not in MEMORY_TYPES:
        raise InvalidInput(f"`type` = {proposal.type!r:.40} cannot be written; use one of {', '.join(MEMORY_TYPES)}")
    if proposal.fact_type not in FACT_TYPES:
        raise InvalidInput(f"`fact_type` = {proposal.fact_type!r:.40} is unknown; use one of {', '.join(FACT_TYPES)}")
    utf8_size(proposal.content, "`content`")
    if isinstance(proposal.importance, bool) or proposal.importance not in range(IMPORTANCE_MAX + 1):
        raise InvalidInput(f"`importance` = {proposal.importance!r:.40} must be a whole number from 0 to {IMPORTANCE_MAX}")
    if isinstance(proposal.confidence, bool) or not isinstance(proposal.confidence, int | float):
        raise InvalidInput(f"`confidence` = {proposal.confidence!r:.40} must be a number from 0 to 1")
    if not 0 <= proposal.confidence <= 1:
        raise InvalidInput(f"`confidence` = {proposal.confidence!r:.40} must be a number from 0 to 1")
    if proposal.valid_from is not None:
        check_instant(proposal.valid_from, "valid_from")
    return proposal


def entity_names(refs: Iterable[str | EntityName]) -> tuple[EntityName, ...]:
    """Entities as callers give them: values, or texts such as `person:John Doe`."""
    found = []
    for ref in refs:
        if isinstance(ref, EntityName):
            found.append(ref)
            continue
        parsed = parse_ref(ref)
        if parsed.type is None:
            raise InvalidInput(f"entity {ref!r:.80} has no type; write it like `person:John Doe` ({', '.join(ENTITY_TYPES)})")
        found.append(EntityName(parsed.type, ref.split(":", 1)[1].strip()))
    return tuple(found)


# -- undoing


def _to_undo(tx: Tx, number: int, *, cascade: bool) -> list[Operation]:
    """The operations to take back, newest first."""
    first = [one for one in tx.list_operations(limit=1, before=number + 1) if one.seq == number]
    if not first:
        raise NotFound(f"there is no operation {number}; the journal lists them")
    actions = {first[0].batch}
    while True:
        operations = [one for action in actions for one in tx.records.operations_in(action)]
        later = set()
        for operation in operations:
            for other in tx.records.operations_of(operation.kind, operation.key, limit=UNDO_ACTIONS_MAX):
                if other.seq > operation.seq and other.batch not in actions:
                    later.add(other.batch)
        if not later:
            return sorted(operations, key=lambda one: -one.seq)
        if not cascade:
            told = ", ".join(map(str, sorted(later)[:5]))
            raise Conflict(f"later actions build on operation {number}: {told}; undo them first, or say `cascade=True`")
        actions |= later
        if len(actions) > UNDO_ACTIONS_MAX:
            raise LimitExceeded(f"undoing operation {number} would take back more than {UNDO_ACTIONS_MAX} actions")


def _restore(tx: Tx, ledger: Ledger, operation: Operation) -> None:
    kind = record_kind(operation.kind)
    if kind is None:
        raise Conflict(f"operation {operation.seq} concerns a {operation.kind}, which is not undone here")
    if isinstance(operation.before, Mapping):
        ledger.put_body(kind, operation.key, operation.before, "undo")
    elif tx.records.find(kind, operation.key) is not None:
        ledger.remove(kind, operation.key, "undo")


# -- reading rows


def _visible(memory: MemoryRecord, scope: Scope) -> bool:
    return memory.visible_to in (None, scope.address.agent)


def _term(query: MemoryQuery) -> Term | None:
    if query.entity is not None:
        return ("entity", short(str(parse_ref(query.entity))))
    if query.pinned:
        return ("pinned", "yes")
    if query.type is not None:
        return ("type", query.type)
    return None


def _wanted(memory: MemoryRecord, query: MemoryQuery) -> bool:
    return (
        (query.archived or memory.status == "ACTIVE")
        and query.type in (None, memory.type)
        and query.pinned in (None, memory.pinned)
    )


def _all_of(view: View, term: Term | None) -> Iterable[Record]:
    before: str | None = None
    while page := view.records.list_(RecordQuery("memory", 1_000, term, before)):
        yield from page
        before = page[-1].key


def _statements(view: View, term: Term) -> list[Statement]:
    found = view.records.list_(RecordQuery("statement", 10_000, (term[0], short(term[1]))))
    return [to_statement(record.body) for record in found]


def _recalled(view: View, key: str, as_of: datetime | None, known_at: datetime | None) -> Recalled:
    held = view.records.find("memory", key)
    if held is None:
        raise NotFound(f"there is no memory {key!r:.120}")
    if as_of is None and known_at is None:
        found = _statements(view, ("current", key))
    else:
        found = _statements(view, ("memory", key))
        if as_of is not None:
            found = [one for one in found if one.holds_at(as_of, known_at)]
        elif known_at is not None:
            found = [
                one for one in found if one.holds_at(max(known_at, one.valid_from), known_at) and one.recorded_at <= known_at
            ]
    ordered = sorted(found, key=lambda one: (one.recorded_at, one.id))
    return Recalled(to_memory(held.body), tuple(ordered))
