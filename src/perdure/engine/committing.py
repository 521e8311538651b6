"""What becomes of a proposal: a statement is added, mentioned, closed, or the proposal is refused. Deterministic, no I/O.

No proposal can delete or overwrite. The most it can do is close a statement: of the same subject and the same
single-valued attribute, or one that the words themselves say has ended; and only so many in one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol

from perdure.domain.entities import memory_key, slug
from perdure.domain.knowledge import EntityName, Proposal
from perdure.domain.memories import TRUSTS, USER, MemoryRecord, Statement, Trust, record_key, slot
from perdure.engine.hygiene import refusal
from perdure.engine.sameness import is_negative, same_value, says_the_same

CLOSE_SHARE = 0.2
CLOSE_MIN = 5
"""A run may close so many statements, or that share of the current ones if it is more; the rest needs somebody's word."""

Verdict = Literal["added", "mentioned", "known", "superseded", "ended", "past", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done with one proposal, and why."""

    verdict: Verdict
    proposal: Proposal
    statement: Statement | None = None
    closed: tuple[Statement, ...] = ()
    reason: str | None = None


class Known(Protocol):
    """What is known so far, the changes of this run included."""

    def memory(self, key: str) -> MemoryRecord | None:
        """The memory under a record key."""

    def statements(self, memory: str) -> Sequence[Statement]:
        """The current statements of a memory, oldest first."""

    def in_slot(self, name: str) -> Sequence[Statement]:
        """The current statements of a slot, oldest first."""

    def resolve(self, name: EntityName) -> str:
        """The entity that a name means, through aliases; made up from the name if it is new."""

    def put_memory(self, memory: MemoryRecord) -> None:
        """Remember a change."""

    def put_statement(self, statement: Statement) -> None:
        """Remember a change."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where proposals come from, and what holds for all of them."""

    source: str
    trust: Trust
    now: datetime
    new_id: Callable[[], str]
    is_single_valued: Callable[[str | None], bool]
    """Whether a new value of an attribute takes the place of the old one."""
    visible_to: str | None = None
    pinned: bool = False
    closings_max: int | None = None
    """None: a person decided it; there is no limit."""


@dataclass(slots=True)
class Committer:
    """Commits the proposals of one run, one after the other."""

    known: Known
    origin: Origin
    outcomes: list[Outcome] = field(default_factory=list)
    _closings: int = 0

    def commit(self, proposal: Proposal) -> Outcome:
        outcome = self._decided(proposal)
        self.outcomes.append(outcome)
        return outcome

    def _decided(self, proposal: Proposal) -> Outcome:
        reason = refusal(proposal.content)
        if reason is not None:
            return Outcome("refused", proposal, reason=f"the content {reason}")
        new = self._at_home(self._statement(proposal))
        rivals = self.known.in_slot(self._slot(new)) if new.attribute is not None else ()
        same = next((held for held in (*rivals, *self.known.statements(new.memory)) if _same(held, new)), None)
        if proposal.ended:
            return self._end(proposal, new, same)
        if same is not None:
            return self._mention(proposal, new, same)
        if rivals and self.origin.is_single_valued(new.attribute):
            return self._supersede(proposal, new, rivals)
        self._add(proposal, new)
        return Outcome("added", proposal, new)

    # -- the verdicts

    def _mention(self, proposal: Proposal, new: Statement, held: Statement) -> Outcome:
        if new.evidence and set(new.evidence) <= set(held.evidence):
            return Outcome("known", proposal, held)  # the same words of the same message, seen once more
        said = held.mentioned(new.evidence, new.last_mentioned)
        stronger = replace(
            said,
            confidence=max(said.confidence, new.confidence),
            importance=max(said.importance, new.importance),
            trust=max(said.trust, new.trust, key=TRUSTS.index),
        )
        self.known.put_statement(stronger)
        self._touch(held.memory, stronger)
        return Outcome("mentioned", proposal, stronger)

    def _end(self, proposal: Proposal, new: Statement, held: Statement | None) -> Outcome:
        when = proposal.valid_from or new.last_mentioned
        if held is None:
            past = new.closed(valid_to=when, at=self.origin.now, by=None, reason="said to be over")
            self._add(proposal, past)
            return Outcome("past", proposal, past)
        if (refused := self._may_close(proposal, new, [held])) is not None:
            return refused
        over = held.closed(valid_to=when, at=self.origin.now, by=None, reason="said to be over")
        self.known.put_statement(over)
        return Outcome("ended", proposal, over, (over,))

    def _supersede(self, proposal: Proposal, new: Statement, rivals: Sequence[Statement]) -> Outcome:
        newest = max(rivals, key=lambda held: held.valid_from)
        if not proposal.corrects and new.valid_from < newest.valid_from:
            past = new.closed(valid_to=newest.valid_from, at=self.origin.now, by=newest.id, reason="older than what is known")
            self._add(proposal, past)
            return Outcome("past", proposal, past)
        if (refused := self._may_close(proposal, new, rivals)) is not None:
            return refused
        closed = []
        for held in rivals:
            # What was wrong was never so; what has changed was so until now.
            until = held.valid_from if proposal.corrects else new.valid_from
            reason = "corrected" if proposal.corrects else f"another {new.attribute}"
            closed.append(held.closed(valid_to=until, at=self.origin.now, by=new.id, reason=reason))
            self.known.put_statement(closed[-1])
        self._add(proposal, new)
        return Outcome("superseded", proposal, new, tuple(closed))

    def _may_close(self, proposal: Proposal, new: Statement, held: Sequence[Statement]) -> Outcome | None:
        if any(TRUSTS.index(one.trust) > TRUSTS.index(new.trust) for one in held):
            return Outcome("refused", proposal, reason="it contradicts what a more trusted source said")
        most = self.origin.closings_max
        if most is not None and self._closings + len(held) > most:
            return Outcome("refused", proposal, reason=f"this run has closed {self._closings} statements, and may close {most}")
        self._closings += len(held)
        return None

    # -- rows

    def _at_home(self, new: Statement) -> Statement:
        """The statement in the memory that its own was folded into, if it was."""
        held = self.known.memory(new.memory)
        return new if held is None or held.folded_into is None else replace(new, memory=held.folded_into)

    def _statement(self, proposal: Proposal) -> Statement:
        origin = self.origin
        refs = tuple(dict.fromkeys(self.known.resolve(name) for name in proposal.entities))
        subject = USER if proposal.subject is None else self.known.resolve(proposal.subject)
        primary = refs[0] if refs else None
        entity_type = proposal.entities[0].type if proposal.entities else None
        key = memory_key(proposal.type, entity_type, primary, proposal.fact_type, content=proposal.content)
        at = max((one.at for one in proposal.evidence), default=origin.now)
        return Statement(
            id=origin.new_id(),
            memory=record_key(key, origin.visible_to),
            content=proposal.content.strip(),
            subject=subject,
            entities=refs if subject == USER or subject in refs else (*refs, subject),
            valid_from=proposal.valid_from or at,
            recorded_at=origin.now,
            last_mentioned=at,
            attribute=proposal.attribute,
            value=proposal.value,
            time_words=proposal.time_words,
            confidence=proposal.confidence,
            importance=3 if origin.pinned else proposal.importance,
            source=origin.source,
            trust=origin.trust,
            evidence=proposal.evidence,
            mention_days=(at.date().isoformat(),),
            visible_to=origin.visible_to,
        )

    def _add(self, proposal: Proposal, new: Statement) -> None:
        self.known.put_statement(new)
        held = self.known.memory(new.memory)
        if held is None:
            primary = proposal.entities[0] if proposal.entities else None
            held = MemoryRecord(
                key=new.memory if self.origin.visible_to is None else new.memory.removesuffix(f"@{self.origin.visible_to}"),
                type=proposal.type,
                entity_type=None if primary is None else primary.type,
                fact_type=proposal.fact_type,
                entities=new.entities,
                label=None if primary is None else primary.label,
                created_at=self.origin.now,
                updated_at=self.origin.now,
                importance=new.importance,
                pinned=self.origin.pinned,
                source=self.origin.source,
                confidence=proposal.confidence,
                visible_to=self.origin.visible_to,
            )
            self.known.put_memory(held)
        else:
            self._touch(new.memory, new)

    def _touch(self, memory: str, by: Statement) -> None:
        held = self.known.memory(memory)
        if held is None:
            return
        pinned = held.pinned or self.origin.pinned
        self.known.put_memory(
            replace(
                held,
                entities=tuple(dict.fromkeys((*held.entities, *by.entities))),
                importance=3 if pinned else max(held.importance, by.importance),
                pinned=pinned,
                confidence=max(held.confidence, by.confidence),
                # What is said again is remembered again.
                status="ACTIVE",
                updated_at=self.origin.now,
            )
        )

    def _slot(self, statement: Statement) -> str:
        return slot_of(statement)


def slot_of(statement: Statement) -> str:
    """The slot of a statement with an attribute; what only one agent may see has slots of its own."""
    name = slot(statement.subject, statement.attribute or "")
    return name if statement.visible_to is None else f"{name}@{statement.visible_to}"


def closings_max(current: int) -> int:
    """How many of so many current statements one run may close."""
    return max(CLOSE_MIN, int(current * CLOSE_SHARE))


def _same(held: Statement, new: Statement) -> bool:
    if held.attribute is not None and held.attribute == new.attribute and held.subject == new.subject:
        if is_negative(held.content) != is_negative(new.content):
            return False
        if held.value is not None and new.value is not None:
            return same_value(held.value, new.value) or slug(held.value) == slug(new.value)
    return says_the_same(held.content, new.content)
