"""What becomes of a proposal: a statement is added, mentioned, closed, or the proposal is refused. Deterministic, no I/O.

No proposal can delete or overwrite. The most it can do is close a statement: of the same subject and the same
single-valued attribute, or one that the words themselves say has ended; and only so many in one run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol

from perdure.domain.entities import memory_key
from perdure.domain.knowledge import EntityName, Proposal
from perdure.domain.memories import TRUSTS, USER, MemoryRecord, Statement, Trust, record_key, slot
from perdure.engine.hygiene import flaw, refusal
from perdure.engine.sameness import is_negative, says_the_same
from perdure.engine.values import OPPOSITES, same_value

ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]{0,59}")
PIECE_CHARS_MAX = 300
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

    def slot_history(self, name: str) -> Sequence[Statement]:
        """All statements of a slot, past ones too."""

    def about(self, ref: str) -> Sequence[Statement]:
        """All statements that name an entity, past ones too."""

    def citing(self, message: str) -> Sequence[Statement]:
        """All statements that rest on a message, past ones too."""

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

    def commit(self, proposal: Proposal, trust: Trust | None = None) -> Outcome:
        """Decide one proposal and store what that comes to. `trust`: that of its own sources, if it is another."""
        held = self.origin
        self.origin = held if trust is None else replace(held, trust=trust)
        try:
            outcome = self._decided(proposal)
        finally:
            self.origin = held
        self.outcomes.append(outcome)
        return outcome

    def _decided(self, proposal: Proposal) -> Outcome:
        reason = objection(proposal)
        if reason is not None:
            return Outcome("refused", proposal, reason=reason)
        new = self._at_home(self._statement(proposal))
        if (seen := self._seen(new, ended=proposal.ended)) is not None:
            return Outcome("known", proposal, seen)
        line = self._line(new)
        now = self.origin.now
        current = [one for one in line if one.is_live() and (one.valid_to is None or one.valid_to > now)]
        others = (*self.known.statements(new.memory), *self._about(new))
        held_here = (*current, *(one for one in others if one.valid_to is None or one.valid_to > one.valid_from))
        exactly = proposal.corrects
        same = next((held for held in held_here if _same(held, new, exactly=exactly, ended=proposal.ended)), None)
        if proposal.ended:
            return self._end(proposal, new, same)
        if same is not None and same.valid_from <= new.valid_from:
            return self._mention(proposal, new, same)
        if line and self.origin.is_single_valued(new.attribute):
            return self._take_place(proposal, new, line)
        if opposed := self._opposed(new):
            return self._supersede(proposal, new, opposed)
        if same is not None:
            return self._mention(proposal, new, same)
        self._add(proposal, new)
        return Outcome("added", proposal, new)

    def _seen(self, new: Statement, *, ended: bool) -> Statement | None:
        """The statement that these very words of these very messages have led to before, current or not."""
        if not new.evidence:
            return None
        cited = self.known.citing(new.evidence[-1].message)
        return next(
            (one for one in cited if set(new.evidence) <= set(one.evidence) and _same(one, new, exactly=True, ended=ended)),
            None,
        )

    def _about(self, new: Statement) -> Sequence[Statement]:
        """What else is said of the primary entity, wherever a fold, a merge or another kind of fact has put it."""
        if not new.entities or new.attribute is not None:
            return ()
        held = self.known.about(new.entities[0])
        return [one for one in held if one.is_live() and one.attribute is None and one.visible_to == new.visible_to]

    def _line(self, new: Statement) -> list[Statement]:
        """What fills or has filled the slot of the new statement, by when it began; what was never so is left out."""
        if new.attribute is None:
            return []
        held = [one for one in self.known.slot_history(slot_of(new)) if one.valid_to is None or one.valid_to > one.valid_from]
        return sorted(held, key=lambda one: (one.valid_from, one.recorded_at, one.id))

    def _opposed(self, new: Statement) -> Sequence[Statement]:
        """Statements that the new one turns around: who dislikes a thing no longer likes it."""
        opposite = OPPOSITES.get(new.attribute or "")
        if opposite is None or new.value is None:
            return ()
        value = new.value
        held = self.known.in_slot(slot_of(replace(new, attribute=opposite)))
        return [one for one in held if one.value is not None and same_value(opposite, one.value, value)]

    # -- the verdicts

    def _mention(self, proposal: Proposal, new: Statement, held: Statement) -> Outcome:
        if new.evidence and set(new.evidence) <= set(held.evidence):
            return Outcome("known", proposal, held)  # the same words of the same message, seen once more
        stronger = _confirmed(held.mentioned(new.evidence, new.last_mentioned), new)
        self.known.put_statement(stronger)
        self._touch(held.memory, stronger)
        return Outcome("mentioned", proposal, stronger)

    def _end(self, proposal: Proposal, new: Statement, held: Statement | None) -> Outcome:
        when = proposal.valid_from or new.last_mentioned
        if held is None:
            past = replace(new, valid_from=min(when, new.valid_from))
            past = past.closed(valid_to=when, at=self.origin.now, by=None, reason="said to be over")
            self._add(proposal, past)
            return Outcome("past", proposal, past)
        if (refused := self._may_close(proposal, new, [held])) is not None:
            return refused
        # What ends already is not prolonged by being told to end.
        until = when if held.valid_to is None else min(when, held.valid_to)
        over = held.closed(valid_to=until, at=self.origin.now, by=None, reason="said to be over").cited(new.evidence)
        self.known.put_statement(over)
        return Outcome("ended", proposal, over, (over,))

    def _take_place(self, proposal: Proposal, new: Statement, line: list[Statement]) -> Outcome:
        """Put a value of a single-valued attribute where it belongs in time: at any moment there is one at most."""
        if proposal.corrects and any(one.is_live() for one in line):
            return self._correct(proposal, new, line)
        before = [one for one in line if one.valid_from <= new.valid_from]
        following = [one for one in line if one.valid_from > new.valid_from]
        # Of what was only said to be so, nobody knows since when: a later word about an earlier time goes before it.
        outdated = [one for one in following if not one.start_stated and one.last_mentioned <= new.last_mentioned]
        after = [one for one in following if one not in outdated]
        overlapped = [one for one in before if one.valid_to is None or one.valid_to > new.valid_from]
        if (refused := self._may_close(proposal, new, [*overlapped, *outdated])) is not None:
            return refused
        closed = []
        for held in (*overlapped, *outdated):
            until, reason = max(new.valid_from, held.valid_from), f"another {new.attribute}"
            closed.append(held.closed(valid_to=until, at=self.origin.now, by=new.id, reason=reason))
            self.known.put_statement(closed[-1])
        if after:
            new = new.closed(
                valid_to=after[0].valid_from, at=self.origin.now, by=after[0].id, reason="older than what is known"
            )
        self._add(proposal, new)
        return Outcome("past" if after else "superseded" if closed else "added", proposal, new, tuple(closed))

    def _correct(self, proposal: Proposal, new: Statement, line: list[Statement]) -> Outcome:
        """What was wrong was never so; what is right was so all along."""
        if proposal.valid_from is None:
            new = replace(new, valid_from=min(one.valid_from for one in line if one.is_live()))
        wrong = [one for one in line if one.is_live() or one.valid_from >= new.valid_from]
        cut = [one for one in line if one not in wrong and one.valid_to is not None and one.valid_to > new.valid_from]
        if (refused := self._may_close(proposal, new, [*wrong, *cut])) is not None:
            return refused
        closed = []
        for held in (*wrong, *cut):
            until = new.valid_from if held in cut or held.valid_from < new.valid_from else held.valid_from
            # What ends already, for another that comes then, is not prolonged.
            until = until if held.valid_to is None else min(until, held.valid_to)
            closed.append(held.closed(valid_to=until, at=self.origin.now, by=new.id, reason="corrected"))
            self.known.put_statement(closed[-1])
        self._add(proposal, new)
        return Outcome("superseded", proposal, new, tuple(closed))

    def _supersede(self, proposal: Proposal, new: Statement, opposed: Sequence[Statement]) -> Outcome:
        """The new statement turns others around: they end where it begins."""
        if (refused := self._may_close(proposal, new, opposed)) is not None:
            return refused
        closed = []
        for held in opposed:
            why = f"now {new.attribute}"
            closed.append(held.closed(valid_to=new.valid_from, at=self.origin.now, by=new.id, reason=why))
            self.known.put_statement(closed[-1])
        self._add(proposal, new)
        return Outcome("superseded", proposal, new, tuple(closed))

    def _may_close(self, proposal: Proposal, new: Statement, held: Sequence[Statement]) -> Outcome | None:
        if any(TRUSTS.index(one.trust) > TRUSTS.index(new.trust) for one in held):
            return Outcome("refused", proposal, reason="it contradicts what a more trusted source said")
        most = self.origin.closings_max
        if most is not None and any((row := self.known.memory(one.memory)) is not None and row.pinned for one in held):
            return Outcome("refused", proposal, reason="it contradicts a pinned memory; only somebody's word can close that")
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
            start_stated=proposal.valid_from is not None,
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


def _confirmed(held: Statement, new: Statement) -> Statement:
    """A statement that was said again.

    Its trust is that of whoever's words it has. Said again by a source that is trusted more, it rises to that trust and takes
    over its words: the user who says what a tool said before stands for it from then on, but only for what they said
    themselves, not for the tool's wording. Said again by one that is trusted less, nothing of it changes but the mention.
    """
    rank, other = TRUSTS.index(new.trust), TRUSTS.index(held.trust)
    if rank < other:
        return held
    said = replace(held, importance=max(held.importance, new.importance))
    if rank > other:
        return replace(said, content=new.content, value=new.value, trust=new.trust, confidence=new.confidence)
    return replace(said, confidence=max(held.confidence, new.confidence))


def objection(proposal: Proposal) -> str | None:
    """Why a proposal must not be taken over, whatever is known; None if nothing speaks against it."""
    if (reason := refusal(proposal.content)) is not None:
        return f"the content {reason}"
    if proposal.attribute is not None and not ATTRIBUTE.fullmatch(proposal.attribute):
        return "the attribute is no name of small letters, digits and underscores"
    named = proposal.entities if proposal.subject is None else (*proposal.entities, proposal.subject)
    pieces = [("a name", name.label) for name in named]
    if proposal.value is not None:
        pieces.append(("the value", proposal.value))
    for what, text in pieces:
        if len(text) > PIECE_CHARS_MAX:
            return f"{what} is longer than {PIECE_CHARS_MAX} characters"
        if (reason := flaw(text)) is not None:
            return f"{what} {reason}"
    return None


def slot_of(statement: Statement) -> str:
    """The slot of a statement with an attribute; what only one agent may see has slots of its own."""
    name = slot(statement.subject, statement.attribute or "")
    return name if statement.visible_to is None else f"{name}@{statement.visible_to}"


def closings_max(current: int) -> int:
    """How many of so many current statements one run may close."""
    return max(CLOSE_MIN, int(current * CLOSE_SHARE))


def _same(held: Statement, new: Statement, *, exactly: bool, ended: bool = False) -> bool:
    if held.attribute is not None and held.attribute == new.attribute and held.subject == new.subject:
        # In words that say something is over, the denial is the end, not another statement.
        if not ended and is_negative(held.content) != is_negative(new.content):
            return False
        if held.value is not None and new.value is not None:
            return same_value(held.attribute, held.value, new.value, exactly=exactly)
    return says_the_same(held.content, new.content)
