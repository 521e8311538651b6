"""The curator, the audit, and the review of proposals against a person's word.

The curator runs when it is due or asked, and reports what it did. The audit reads everything and changes nothing. Proposals are
accepted or rejected by a person; each decision is one action to undo.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from itertools import islice
from typing import cast

from perdure.domain.errors import Conflict, NotFound
from perdure.domain.jobs import Job
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import USER, MemoryRecord, Statement, Writer, only_people, to_memory, to_statement
from perdure.domain.knowledge.proposals import FactType, MemoryType, Proposal
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, Address, MessageId, Owner, Scope
from perdure.domain.text.rules import brief, check_id
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.audit import AuditFinding, AuditItem, audit
from perdure.engine.knowledge.curator import Clash, Fold, clashes, folds, is_due, read_since
from perdure.engine.knowledge.outcomes import REJECTED, Outcome, ProposalOrigin
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.jobs.worker import Effect
from perdure.services.knowledge.commit import PENDING_MAX, Submission, commit_in
from perdure.services.knowledge.entities import entity_names
from perdure.services.knowledge.ledger import Ledger, count_active

ACTOR = "curator/1"
MEMORIES_MAX = 10_000
STATEMENTS_MAX = 50_000
CLASHES_MAX = 100


@dataclass(frozen=True, slots=True)
class Curation:
    """What a curator's run did, or would do."""

    memories: int
    """How many it looked at."""
    folds: tuple[Fold, ...]
    clashes: tuple[Clash, ...]
    replaced: tuple[Statement, ...] = ()
    """What was kept in the user's own words until they said it so that a rule reads it."""
    action: int | None = None
    """By this number the whole run can be undone; None if it changed nothing, or was only tried."""


@dataclass(frozen=True, slots=True)
class Curator:
    store: Store
    clock: Clock

    def handle(self, job: Job) -> Effect | None:
        """The job of an address: curate if a day has passed or enough is new."""
        address = Address(job.payload["agent"], job.payload["channel"])
        if not self.store.read(job.owner, lambda view: self.due(view, address)):
            return None

        def effect(tx: Tx) -> None:
            if self.due(tx, address):
                self._run(tx, address)

        return effect

    def due(self, view: View, address: Address) -> bool:
        state = view.conversation.find_agent_state(address)
        memories = count_active(view.records)
        ran_at, then = (None, None) if state is None else (state.curated_at, state.curated_memories)
        return is_due(self.clock.now(), memories, ran_at, then)

    def curate(self, owner: Owner, address: Address, *, dry_run: bool) -> Curation:
        """Run now, due or not. The report leaves out what only other agents may see."""
        if dry_run:
            return _visible_part(self.store.read(owner, self._plan), address.agent)
        return _visible_part(self.store.write(owner, lambda tx: self._run(tx, address)), address.agent)

    def _plan(self, view: View) -> Curation:
        memories: list[MemoryRecord] = []
        said: dict[str, list[Statement]] = {}
        current: list[Statement] = []
        before: str | None = None
        while len(memories) < MEMORIES_MAX and (page := view.records.list_(RecordQuery("memory", 1_000, None, before))):
            memories += [memory for memory in (to_memory(record.body) for record in page) if memory.status == "ACTIVE"]
            before = page[-1].key
        for memory in memories:
            found = view.records.list_(RecordQuery("statement", 1_000, ("current", term_value(memory.record_key))))
            said[memory.record_key] = [to_statement(record.body) for record in found]
            current += said[memory.record_key] if len(current) < STATEMENTS_MAX else []
        made = folds(memories, said, self.clock.now())
        clashing = tuple(islice(clashes(current), CLASHES_MAX))
        return Curation(len(memories), tuple(made), clashing, tuple(read_since(current, self.clock.now())))

    def _run(self, tx: Tx, address: Address) -> Curation:
        now = self.clock.now()
        ledger = Ledger(tx, Attribution(ACTOR, now, "curated"))
        plan = self._plan(tx)
        for fold in plan.folds:
            ledger.put(fold.into, "fold")
            for statement in fold.statements:
                ledger.put(statement, "fold")
            for original in fold.originals:
                ledger.put(original, "archive")
        for statement in plan.replaced:
            ledger.put(statement, "close")
        for clash in plan.clashes:
            ledger.suggest("contradiction", (clash.one.id, clash.other.id), clash.why)
        tx.conversation.note_curated(address, at=now, memories=count_active(tx.records))
        return replace(plan, action=ledger.action)


def _visible_part(done: Curation, agent: str) -> Curation:
    visible = (None, agent)
    return replace(
        done,
        folds=tuple(fold for fold in done.folds if fold.into.visible_to in visible),
        clashes=tuple(clash for clash in done.clashes if clash.one.visible_to in visible),
        replaced=tuple(one for one in done.replaced if one.visible_to in visible),
    )


ROWS_MAX = 100_000
PAGE = 1_000


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of an audit."""

    checked: int
    findings: tuple[AuditFinding, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by kind of fault."""
        return dict(sorted(Counter(finding.fault for finding in self.findings).items()))


@dataclass(frozen=True, slots=True)
class Auditor:
    store: Store
    clock: Clock

    def audit(self, owner: Owner) -> AuditReport:
        """Look through the current statements of the user."""
        items = self.store.read(owner, _items)
        return self.report(items)

    def report(self, items: list[AuditItem]) -> AuditReport:
        """Look through texts from anywhere."""
        return AuditReport(len(items), tuple(audit(items, self.clock.now())))


def _items(view: View) -> list[AuditItem]:
    found: list[Statement] = []
    before: str | None = None
    while len(found) < ROWS_MAX and (page := view.records.list_(RecordQuery("statement", PAGE, ("state", "current"), before))):
        found += [to_statement(record.body) for record in page]
        before = page[-1].key
    items = []
    for statement in found:
        memory = view.records.find("memory", statement.memory)
        kept = statement.importance >= 2 or (memory is not None and to_memory(memory.body).pinned)
        messages = {MessageId(one.message) for one in statement.evidence}
        sources = len(view.find_messages(list(messages))) if messages else 1
        if memory is None:
            sources = 0
        items.append(
            AuditItem(
                id=statement.id,
                text=statement.content,
                about=statement.subject,
                at=statement.last_mentioned,
                sources=sources,
                keep=kept,
            )
        )
    return items


INSTEAD = "the user does, with `perdure memory review`, on the page under Memories, or by saying so in a message of their own"


@dataclass(frozen=True, slots=True)
class PendingProposal:
    """A proposal that waits for a decision, and what it contradicts."""

    statement: Statement
    against: tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class ProposalReview:
    store: Store
    clock: Clock
    limits: Limits
    writer: Writer = "user"

    def list_(self, scope: Scope, *, limit: int) -> list[PendingProposal]:
        """What waits for a decision, the newest first."""
        rows = self.limits.page(limit)

        def work(view: View) -> list[PendingProposal]:
            waiting = view.records.list_(RecordQuery("statement", PENDING_MAX * 2, ("state", "proposed")))
            found = [to_statement(record.body) for record in waiting]
            visible = [one for one in found if one.visible_to in (None, scope.address.agent)]
            newest = sorted(visible, key=lambda one: (one.recorded_at, one.id), reverse=True)[:rows]
            return [PendingProposal(one, _statements_of(view, one.against)) for one in newest]

        return self.store.read(scope.owner, work)

    def accept(self, scope: Scope, key: str) -> Outcome:
        """Make it the user's own word: it replaces or ends what it speaks against."""
        only_people(self.writer, "accept proposals", INSTEAD)
        now, ids = self.clock.now(), [self.clock.new_id(), self.clock.new_id()]
        by = Attribution("user", now, "accept")

        def work(tx: Tx) -> Outcome:
            made, memory = _pending(tx, scope, key)
            origin = ProposalOrigin(
                made.source, "user", now, self.clock.new_id, is_single_valued, visible_to=made.visible_to, accepts=made
            )
            return commit_in(tx, Submission([_as_proposal(made, memory, now)], origin, by, ids)).outcomes[0]

        return self.store.write(scope.owner, work)

    def reject(self, scope: Scope, key: str) -> Statement:
        """It is not so. The same proposal is refused from then on."""
        only_people(self.writer, "reject proposals", INSTEAD)
        now = self.clock.now()

        def work(tx: Tx) -> Statement:
            ledger = Ledger(tx, Attribution("user", now, "reject"))
            made, _ = _pending(tx, scope, key)
            over = made.decided(at=now, by=None, reason=REJECTED)
            ledger.put(over, "reject")
            return over

        return self.store.write(scope.owner, work)


def _pending(tx: Tx, scope: Scope, key: str) -> tuple[Statement, MemoryRecord]:
    check_id(key, "proposal", bytes_max=ID_BYTES_MAX)
    held = tx.records.find("statement", key)
    made = None if held is None else to_statement(held.body)
    if made is None or made.proposes is None or made.visible_to not in (None, scope.address.agent):
        raise NotFound(f"there is no proposal {brief(key, 60)}; list them with `memories.proposals()`")
    if not made.is_pending:
        raise Conflict(f"proposal {brief(key, 60)} is decided already ({made.reason}); list those that wait again")
    memory = tx.records.find("memory", made.memory)
    if memory is None:
        raise NotFound(f"the memory of proposal {brief(key, 60)} is gone; reject it")
    return made, to_memory(memory.body)


def _as_proposal(made: Statement, memory: MemoryRecord, now: datetime) -> Proposal:
    """What was proposed, as the user says it now."""
    # Since when it is so, unless somebody said: since the user says it.
    since = made.valid_from if made.start_stated else now
    return Proposal(
        type=cast(MemoryType, memory.type),  # checked when it was proposed
        fact_type=cast(FactType, memory.fact_type),
        content=made.content,
        entities=tuple(entity_names(made.entities)),
        subject=None if made.subject == USER else entity_names([made.subject])[0],
        attribute=made.attribute,
        value=made.value,
        confidence=made.confidence,
        importance=made.importance,
        valid_from=since if made.proposes != "correction" or made.start_stated else None,
        time_words=made.time_words,
        ended=made.proposes == "end",
        corrects=made.proposes == "correction",
    )


def _statements_of(view: View, ids: tuple[str, ...]) -> tuple[Statement, ...]:
    return tuple(to_statement(record.body) for record in view.records.find_many("statement", list(ids)))
