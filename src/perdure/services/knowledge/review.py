"""Proposals against a person's word: listed, and accepted or rejected by a person. Each decision is one action to undo."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import cast

from perdure.domain.errors import Conflict, NotFound
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import USER, MemoryRecord, Statement, to_memory, to_statement
from perdure.domain.knowledge.proposals import FactType, MemoryType, Proposal
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.knowledge.writers import Writer, only_people
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, Scope
from perdure.domain.text.rules import brief, check_id
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.outcomes import REJECTED, Outcome, ProposalOrigin
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.commit import PENDING_MAX, Submission, commit_in
from perdure.services.knowledge.entities import entity_names
from perdure.services.knowledge.ledger import Ledger

INSTEAD = "the user does, with `perdure memory review`, on the page under Memories, or by saying so in a message of their own"


@dataclass(frozen=True, slots=True)
class PendingProposal:
    """What a less trusted source proposes, beside what it speaks against."""

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
