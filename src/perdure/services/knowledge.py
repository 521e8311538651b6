"""Memories: remembering, listing, looking back, and changing them by hand. Every change can be undone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.domain.entities import parse_key, parse_ref
from perdure.domain.errors import InvalidInput, LimitExceeded, NotFound
from perdure.domain.journal import Attribution, Operation, is_for
from perdure.domain.knowledge import ENTITY_TYPES, FACT_TYPES, IMPORTANCE_MAX, MEMORY_TYPES, EntityName, Evidence, Proposal
from perdure.domain.limits import Limits
from perdure.domain.memories import MemoryRecord, Statement, Trust, to_memory, to_statement
from perdure.domain.records import Record, RecordQuery, Term
from perdure.domain.scope import Owner, Scope
from perdure.domain.text import brief, check_choice, utf8_size
from perdure.domain.things import Rejection, from_body
from perdure.domain.times import check_instant, to_us
from perdure.engine.attributes import is_single_valued
from perdure.engine.committing import ATTRIBUTE, Committer, Origin, Outcome, closings_max
from perdure.engine.hygiene import hides_something, holds_secret
from perdure.engine.indexing import short
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.ledger import Ledger, find_entity

FOUNDATION_MAX = 20
REJECTIONS_MAX = 1_000
WITHHELD = "(not kept: it may be a secret)"
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
    behind: tuple[datetime, str] | None = None
    """Only what comes behind this place of the list: the `updated_at` and the key of a memory, which may be gone by now."""


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
        ids = [self.clock.new_id() for _ in range(2 * len(proposals))]
        return self.store.write(owner, lambda tx: commit_in(tx, Submission(proposals, origin, by, ids)))

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
            held = ledger.memory(_key_of(tx, scope, key))
            if held is None:
                raise NotFound(f"there is no memory {key!r:.120}; list them with `memories.list()`")
            ledger.put(replace(change(held), updated_at=now), why)
            return _recalled(tx, held.record_key, now)

        return self.store.write(scope.owner, work)

    # -- reading

    def list_(self, scope: Scope, query: MemoryQuery) -> list[Recalled]:
        """Memories with what is current of them (or was, then), the newest change first."""
        rows = self.limits.page(query.limit)
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
        now = self.clock.now()

        def work(view: View) -> list[Recalled]:
            held = ((record.key, to_memory(record.body)) for record in _all_of(view, _term(view, query)))
            wanted = [(key, one) for key, one in held if _wanted(one, query) and _visible(one, scope)]
            wanted.sort(key=lambda pair: _place_of(pair[1]))
            if query.behind is not None:
                wanted = [pair for pair in wanted if _place_of(pair[1]) > (-to_us(query.behind[0]), query.behind[1])]
            found: list[Recalled] = []
            # In their order, so that only as many are read as are told.
            for key, _ in wanted:
                if len(found) == rows:
                    break
                recalled = _recalled(view, key, now, as_of=query.as_of, known_at=query.known_at)
                if recalled.statements:
                    found.append(recalled)
            return found

        return self.store.read(scope.owner, work)

    def get(self, scope: Scope, key: str) -> Recalled:
        now = self.clock.now()

        def work(view: View) -> Recalled:
            found = _key_of(view, scope, key)
            return _recalled(view, found, now)

        return self.store.read(scope.owner, work)

    def history(self, scope: Scope, key: str) -> list[Statement]:
        """All statements of a memory and of what took their place or had it, oldest first."""

        def work(view: View) -> list[Statement]:
            name = _key_of(view, scope, key)
            found = {one.id: one for one in _statements(view, ("memory", name))}
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


@dataclass(frozen=True, slots=True)
class Submission:
    """Proposals with what committing them takes."""

    proposals: Sequence[Proposal]
    origin: Origin
    by: Attribution
    ids: Sequence[str]
    """Two for each proposal, made beforehand: the work may run more than once, and must then meet its own rows."""
    trusts: Sequence[Trust | None] = ()
    """The trust of each one's own sources, where that is another than the origin's."""


def commit_in(tx: Tx, given: Submission) -> Committed:
    """Commit proposals inside a transaction."""
    ledger = Ledger(tx, given.by)
    ledger.visible_to = given.origin.visible_to
    supply = iter(given.ids)
    origin = replace(given.origin, new_id=lambda: next(supply))
    if origin.closings_max is not None:
        origin = replace(origin, closings_max=closings_max(tx.records.count("statement", ("state", "current"))))
    committer = Committer(ledger, origin)
    actions: list[int | None] = []
    for index, proposal in enumerate(given.proposals):
        ledger.next_action()
        outcome = committer.commit(proposal, given.trusts[index] if given.trusts else None)
        if outcome.verdict == "refused":
            reject(tx, ledger, next(supply), proposal, outcome.reason or "")
        elif outcome.statement is not None:
            ledger.seen_together(outcome.statement.entities)
        actions.append(ledger.action)
    _bound_rejections(tx, ledger)
    return Committed(tuple(committer.outcomes), tuple(actions))


def reject(tx: Tx, ledger: Ledger, key: str, proposal: Proposal, reason: str) -> None:
    """Keep a proposal that was not taken over, once; what may be a secret is not kept with it."""
    shown = WITHHELD if holds_secret(proposal.content) or hides_something(proposal.content) else proposal.content[:500]
    made = Rejection(key, shown, reason, ledger.actor, ledger.at, proposal.evidence)
    if not tx.records.list_(RecordQuery("rejection", 1, ("told", short(made.told)))):
        ledger.put(made, "reject")


def _bound_rejections(tx: Tx, ledger: Ledger) -> None:
    over = tx.records.count("rejection") - REJECTIONS_MAX
    if over <= 0:
        return
    ledger.next_action("rejections are bounded")
    oldest = tx.records.list_(RecordQuery("rejection", REJECTIONS_MAX + over))[-over:]
    for record in oldest:
        ledger.remove("rejection", record.key, "forget")


def check_proposal(proposal: Proposal) -> Proposal:
    """`proposal` if its fields are of the kinds there are. Whatever the annotations say: it may be anybody's."""
    if not isinstance(proposal, Proposal):
        raise InvalidInput(f"a proposal is a `{type(proposal).__name__}`; give `Proposal` values")
    for name in ("type", "fact_type"):
        utf8_size(getattr(proposal, name), f"`{name}`")  # also not text that is equal to what it pleases
    if proposal.type not in MEMORY_TYPES:
        raise InvalidInput(f"`type` = {brief(proposal.type)} cannot be written; use one of {', '.join(MEMORY_TYPES)}")
    check_choice(proposal.fact_type, "fact_type", FACT_TYPES)
    _check_words(proposal)
    _check_numbers(proposal)
    for name, kind in (("entities", EntityName), ("evidence", Evidence)):
        items: object = getattr(proposal, name)
        if not isinstance(items, tuple | list) or not all(isinstance(item, kind) for item in items):
            raise InvalidInput(f"`{name}` of a proposal must be a list of `{kind.__name__}` values")
    for entity in (*proposal.entities, *(() if proposal.subject is None else (proposal.subject,))):
        if not isinstance(entity, EntityName) or entity.type not in ENTITY_TYPES:
            raise InvalidInput(f"entity {brief(entity, 80)} is none; use `EntityName` with one of {', '.join(ENTITY_TYPES)}")
        _text(entity.label, "label")
    return proposal


def _check_words(proposal: Proposal) -> None:
    for name in ("content", "attribute", "value", "time_words"):
        text = getattr(proposal, name)
        if (text is not None or name == "content") and "\0" in _text(text, name):
            raise InvalidInput(f"`{name}` contains NUL, which no store keeps; remove it")
    if proposal.attribute is not None and not ATTRIBUTE.fullmatch(proposal.attribute):
        raise InvalidInput(
            f"`attribute` = {brief(proposal.attribute, 60)} must be a name of small letters, digits and underscores, at most 60"
        )


def _check_numbers(proposal: Proposal) -> None:
    importance: object = proposal.importance
    if isinstance(importance, bool) or not isinstance(importance, int) or not 0 <= importance <= IMPORTANCE_MAX:
        raise InvalidInput(f"`importance` = {brief(importance)} must be a whole number from 0 to {IMPORTANCE_MAX}")
    confidence: object = proposal.confidence
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        raise InvalidInput(f"`confidence` = {brief(confidence)} must be a number from 0 to 1")
    if proposal.valid_from is not None:
        check_instant(proposal.valid_from, "valid_from")
    for name in ("ended", "corrects"):
        if not isinstance(getattr(proposal, name), bool):
            raise InvalidInput(f"`{name}` = {brief(getattr(proposal, name))} must be True or False")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"`{name}` = {brief(value)} must be a text")
    utf8_size(value, f"`{name}`")
    return value


def entity_names(refs: Iterable[str | EntityName]) -> tuple[EntityName, ...]:
    """Entities as callers give them: values, or texts such as `person:John Doe`."""
    if isinstance(refs, str) or not hasattr(refs, "__iter__"):
        raise InvalidInput(f'`entities` = {brief(refs, 80)} must be a list, such as ["person:John Doe"]')
    found = []
    for ref in refs:
        if isinstance(ref, EntityName):
            found.append(ref)
            continue
        parsed = parse_ref(_text(ref, "entity"))
        if parsed.type is None:
            raise InvalidInput(
                f"entity {brief(ref, 80)} has no type; write it like `person:John Doe` ({', '.join(ENTITY_TYPES)})"
            )
        found.append(EntityName(parsed.type, ref.split(":", 1)[1].strip()))
    return tuple(found)


# -- reading rows


def _key_of(view: View, scope: Scope, key: str) -> str:
    """The record key of a memory that the agent may see, also if its reference is written with its type."""
    utf8_size(key, "a memory's key")
    names = [key]
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
    if query.entity is not None:
        ref = str(parse_ref(query.entity))
        meant = find_entity(view.records, ref)
        return ("entity", short(ref if meant is None else meant.ref))
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


def _recalled(
    view: View, key: str, now: datetime, *, as_of: datetime | None = None, known_at: datetime | None = None
) -> Recalled:
    """A memory with what of it holds at a moment; without one, now."""
    held = view.records.find("memory", key)
    if held is None:
        raise NotFound(f"there is no memory {key!r:.120}")
    if as_of is None and known_at is None:
        found = [one for one in _statements(view, ("current", key)) if one.holds_at(now)]
    else:
        moment = as_of or known_at or now
        found = [one for one in _statements(view, ("memory", key)) if one.holds_at(moment, known_at)]
    ordered = sorted(found, key=lambda one: (one.recorded_at, one.id))
    return Recalled(to_memory(held.body), tuple(ordered))


def _place_of(memory: MemoryRecord) -> tuple[int, str]:
    """Where it stands in a list, the newest change first."""
    return -to_us(memory.updated_at), memory.record_key
