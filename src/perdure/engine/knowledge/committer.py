"""What becomes of a proposal: a statement is added, mentioned, closed, or the proposal is refused. Deterministic, no I/O.

No proposal can delete or overwrite. The most it can do is close a statement: of the same subject and the same
single-valued attribute, or one that the words themselves say has ended; and only so many in one run. What speaks against a
more trusted word closes nothing: it is kept beside it, as proposed, until a person decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.domain.knowledge.keys import memory_key
from perdure.domain.knowledge.memories import (
    OWN_WORDS,
    TRUSTS,
    UNTRUSTED,
    USER,
    MemoryRecord,
    Proposed,
    Statement,
    Trust,
    record_key,
    slot,
    yields_to,
)
from perdure.domain.knowledge.proposals import Proposal
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass, field, replace
from perdure.engine.knowledge.changes import closed_by
from perdure.engine.knowledge.outcomes import (
    ACCEPTED,
    CHANGED,
    DECIDES,
    OVER,
    REFUSED_BEFORE,
    REJECTED,
    SAID_OTHERWISE,
    SAID_SO,
    KnowledgeLedger,
    Outcome,
    ProposalOrigin,
)
from perdure.engine.knowledge.sameness import OPPOSITES, confirmed, denied_by, same_statement, same_value
from perdure.engine.text.hygiene import flaw, refusal

ATTRIBUTE = pattern(r"[a-z][a-z0-9_]{0,59}")
NEW = ("added", "superseded")
"""Verdicts on statements that were not there before."""
PIECE_CHARS_MAX = 300
CLOSE_SHARE = 0.2
CLOSE_MIN = 5
"""A run may close so many statements, or that share of the current ones if it is more; the rest needs somebody's word."""

UNCLEAR = "it corrects nothing: {} current statements may be meant; name one with `memories.correct`"


@dataclass(slots=True)
class Committer:
    """Commits the proposals of one run, one after the other."""

    known: KnowledgeLedger
    origin: ProposalOrigin
    outcomes: list[Outcome] = field(default_factory=list)
    _closings: int = 0

    def commit(self, proposal: Proposal, trust: Trust | None = None) -> Outcome:
        """Decide one proposal and store what that comes to. `trust`: that of its own sources, if it is another."""
        held = self.origin
        if not held.habits.attributes:
            proposal = replace(proposal, attribute=None, value=None)
        self.origin = held if trust is None else replace(held, trust=trust)
        try:
            ended = _ended_by(proposal, self.origin, self.known)
            outcome = Outcome("known", proposal) if proposal.fleeting and ended is None else self._decided(proposal)
            outcome = outcome if ended is None else self._turn(outcome, ended)
            self._settle(outcome)
        finally:
            self.origin = held
        self.outcomes.append(outcome)
        return outcome

    def correct(self, proposal: Proposal, wrong: Statement) -> Outcome:
        """Put a proposal in the place of the current statement that it corrects."""
        outcome = self._corrected(proposal, wrong)
        self._settle(outcome)
        self.outcomes.append(outcome)
        return outcome

    def _corrected(self, proposal: Proposal, wrong: Statement) -> Outcome:
        reason = objection(proposal)
        if reason is not None:
            return Outcome("refused", proposal, reason=reason)
        new = self._at_home(self._statement(proposal))
        if (new.content, new.value) == (wrong.content, wrong.value):
            return self._mention(proposal, new, wrong)
        line = self._line(new) if self.origin.is_single_valued(new.attribute) else [wrong]
        others = [one for one in (*self.known.statements(new.memory), *line) if one.is_live() and one.id != wrong.id]
        same = next((one for one in others if same_statement(one, new, exactly=True)), None)
        return self._correct(proposal, new, line) if same is None else self._give_way(proposal, new, wrong, same)

    def _give_way(self, proposal: Proposal, new: Statement, wrong: Statement, same: Statement) -> Outcome:
        """What is right is known already beside what is wrong."""
        if (refused := self._may_close(proposal, new, [wrong])) is not None:
            return refused
        over = self._closed(wrong, wrong.valid_from, same.id, "corrected")
        self.known.put_statement(over)
        return replace(self._mention(proposal, new, same), verdict="superseded", closed=(over,))

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
        same = next((held for held in held_here if same_statement(held, new, exactly=exactly, ended=proposal.ended)), None)
        if proposal.ended:
            return self._end(proposal, new, same)
        if same is not None and (same.valid_from <= new.valid_from or same.is_ahead(now)):
            return self._mention(proposal, new, same)
        if same is None and (denied := self._denied(new)):
            return self._propose(proposal, new, denied)
        if line and self.origin.is_single_valued(new.attribute):
            return self._take_place(proposal, new, line)
        if opposed := self._opposed(new):
            return self._supersede(proposal, new, opposed, f"now {new.attribute}" if new.attribute in OPPOSITES else CHANGED)
        if same is not None:
            return self._mention(proposal, new, same)
        if self.origin.habits.replaces and (beside := [one for one in self.known.statements(new.memory) if one.is_live()]):
            return self._supersede(proposal, new, beside, "replaced")
        unclear = None
        if proposal.corrects and new.attribute is None:
            meant = self._meant(new)
            if len(meant) == 1:
                return self._correct(proposal, new, meant)
            unclear = UNCLEAR.format(len(meant) or "no")
        self._add(proposal, new)
        return Outcome("added", proposal, new, reason=unclear)

    def _turn(self, outcome: Outcome, ended: Statement) -> Outcome:
        """Close what the words end or replace, unless done or not theirs; a new value of an attribute is all they change."""
        said = outcome.statement
        if said is None or outcome.verdict in ("refused", "proposed", "known"):
            return outcome
        if outcome.closed or ended.id == said.id or self._may_close(outcome.proposal, said, [ended]):
            return outcome
        over = self._closed(ended, max(said.valid_from, ended.valid_from), said.id, CHANGED)
        self.known.put_statement(over)
        return replace(outcome, verdict="superseded", closed=(*outcome.closed, over))

    def _meant(self, new: Statement) -> list[Statement]:
        """The current statements that words without an attribute may correct: of their memory, or else of their entity."""
        now = self.origin.now
        for held in (self.known.statements(new.memory), self._about(new)):
            found = {one.id: one for one in held if one.attribute is None and one.is_current(now)}
            if found:
                return list(found.values())
        return []

    def _denied(self, new: Statement) -> Sequence[Statement]:
        """What these words say is so, and a more trusted source said is over."""
        if new.trust == TRUSTS[-1]:
            return ()
        past = [one for one in self._history(new) if one.proposes is None and not one.is_live()]
        same = [one for one in past if yields_to(new.trust, one.trust) and same_statement(one, new, exactly=False)]
        return [one for one in same if one.closed_by is None and one.reason == OVER]

    def _history(self, new: Statement) -> list[Statement]:
        """All that was ever said under its attribute or in its memory, proposals included."""
        named = [] if new.attribute is None else self.known.slot_history(slot_of(new))
        return list({one.id: one for one in (*named, *self.known.all_of(new.memory))}.values())

    def _seen(self, new: Statement, *, ended: bool) -> Statement | None:
        """The statement that these very words of these very messages have led to before, current or not."""
        if not new.evidence:
            return None
        cited = self.known.citing(new.evidence[-1].message)
        return next(
            (
                one
                for one in cited
                if one.proposes is None
                and set(new.evidence) <= set(one.evidence)
                and same_statement(one, new, exactly=True, ended=ended)
            ),
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
        """Statements that the new one turns around or denies: who dislikes a thing no longer likes it."""
        opposite = OPPOSITES.get(new.attribute or "")
        if opposite is None or new.value is None:
            return denied_by(new, self.known.current)
        value = new.value
        held = self.known.in_slot(slot_of(replace(new, attribute=opposite)))
        return [one for one in held if one.value is not None and same_value(opposite, one.value, value)]

    # -- the verdicts

    def _mention(self, proposal: Proposal, new: Statement, held: Statement) -> Outcome:
        if new.evidence and set(new.evidence) <= set(held.evidence):
            return Outcome("known", proposal, held)  # the same words of the same message, seen once more
        again = held.mentioned(new.evidence, new.last_mentioned, grows=self.origin.habits.grows)
        stronger = confirmed(again, new)
        self.known.put_statement(stronger)
        self._touch(held.memory, stronger)
        return Outcome("mentioned", proposal, stronger)

    def _end(self, proposal: Proposal, new: Statement, held: Statement | None) -> Outcome:
        when = new.valid_from
        if held is None:
            past = self._closed(new, when, None, OVER)
            self._add(proposal, past)
            return Outcome("past", proposal, past)
        if (refused := self._may_close(proposal, new, [held])) is not None:
            return refused
        # What ends already is not prolonged by being told to end.
        until = when if held.valid_to is None else min(when, held.valid_to)
        over = self._closed(held, until, None, OVER).cited(new.evidence)
        self.known.put_statement(over)
        return Outcome("ended", proposal, over, (over,))

    def _take_place(self, proposal: Proposal, new: Statement, line: list[Statement]) -> Outcome:
        """Put a value of a single-valued attribute where it belongs in time: at any moment there is one at most."""
        if proposal.corrects and any(one.is_live() for one in line):
            return self._correct(proposal, new, line)
        before = [one for one in line if one.valid_from <= new.valid_from]
        following = [one for one in line if one.valid_from > new.valid_from]
        # Of what was only said to be so, nobody knows since when: a later word about an earlier time goes before it.
        now = self.origin.now
        outdated = [
            one for one in following if not one.start_stated and (one.last_mentioned <= new.last_mentioned or one.is_ahead(now))
        ]
        after = [one for one in following if one not in outdated]
        overlapped = [one for one in before if one.valid_to is None or one.valid_to > new.valid_from]
        if (refused := self._may_close(proposal, new, [*overlapped, *outdated])) is not None:
            return refused
        closed = []
        for held in (*overlapped, *outdated):
            until, reason = max(new.valid_from, held.valid_from), f"another {new.attribute}"
            closed.append(self._closed(held, until, new.id, reason))
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
            first = min((one for one in line if one.is_live()), key=lambda one: one.valid_from)
            # With the start goes whether it was stated: what was to begin later does not hold yet, put right or not.
            new = replace(new, valid_from=first.valid_from, start_stated=first.start_stated)
        wrong = [one for one in line if one.is_live() or one.valid_from >= new.valid_from]
        cut = [one for one in line if one not in wrong and one.valid_to is not None and one.valid_to > new.valid_from]
        if (refused := self._may_close(proposal, new, [*wrong, *cut])) is not None:
            return refused
        closed = []
        for held in (*wrong, *cut):
            until = new.valid_from if held in cut or held.valid_from < new.valid_from else held.valid_from
            # What ends already, for another that comes then, is not prolonged.
            until = until if held.valid_to is None else min(until, held.valid_to)
            closed.append(self._closed(held, until, new.id, "corrected"))
            self.known.put_statement(closed[-1])
        self._add(proposal, new)
        return Outcome("superseded", proposal, new, tuple(closed))

    def _supersede(self, proposal: Proposal, new: Statement, opposed: Sequence[Statement], why: str) -> Outcome:
        """The new statement turns others around: they end where it begins."""
        if (refused := self._may_close(proposal, new, opposed)) is not None:
            return refused
        closed = []
        for held in opposed:
            closed.append(self._closed(held, new.valid_from, new.id, why))
            self.known.put_statement(closed[-1])
        self._add(proposal, new)
        return Outcome("superseded", proposal, new, tuple(closed))

    def _closed(self, held: Statement, until: datetime, by: str | None, reason: str) -> Statement:
        """The statement, over. What began by a clock that ran ahead is over at once all the same, not when that time comes."""
        at = max(self.origin.now, held.valid_from) if held.is_ahead(self.origin.now) else self.origin.now
        return held.closed(valid_to=until, at=at, by=by, reason=reason)

    def _may_close(self, proposal: Proposal, new: Statement, held: Sequence[Statement]) -> Outcome | None:
        most = self.origin.closings_max
        if stronger := [one for one in held if yields_to(new.trust, one.trust)]:
            if most is not None and new.trust in UNTRUSTED:
                return Outcome("refused", proposal, reason="it contradicts what a more trusted source said")
            return self._propose(proposal, new, stronger)
        if most is not None and any((row := self.known.memory(one.memory)) is not None and row.pinned for one in held):
            return Outcome("refused", proposal, reason="it contradicts a pinned memory, which only a person can close")
        if most is not None and self._closings + len(held) > most:
            return Outcome("refused", proposal, reason=f"this run has closed {self._closings} statements, and may close {most}")
        self._closings += len(held)
        return None

    # -- proposals

    def _propose(self, proposal: Proposal, new: Statement, held: Sequence[Statement]) -> Outcome:
        """Keep it beside what it speaks against. Nothing of that changes; said again, it is the same proposal."""
        kind: Proposed = "end" if proposal.ended else "correction" if proposal.corrects else "value"
        against = tuple(one.id for one in held)
        alike = {one.id: one for name in against for one in self.known.against(name) if one.proposes == kind}
        same = [one for one in alike.values() if same_statement(one, new, exactly=True, ended=proposal.ended)]
        if any(one.reason == REJECTED for one in same):
            return Outcome("refused", proposal, reason=REFUSED_BEFORE)
        if (waiting := next((one for one in same if one.is_pending), None)) is not None:
            again = waiting.mentioned(new.evidence, new.last_mentioned)
            self.known.put_statement(again)
            return Outcome("proposed", proposal, again, reason=DECIDES)
        made = replace(new, proposes=kind, against=against, importance=proposal.importance)
        origin, self.origin = self.origin, replace(self.origin, pinned=False)
        try:
            self._add(proposal, made)
        finally:
            self.origin = origin
        return Outcome("proposed", proposal, made, reason=DECIDES)

    def _settle(self, outcome: Outcome) -> None:
        """What the user says decides what was proposed against it: the same is accepted by that, anything else is not."""
        said = outcome.statement
        if said is None or self.origin.trust != TRUSTS[-1] or outcome.verdict in ("proposed", "refused"):
            return
        accepted = self.origin.accepts
        if accepted is not None:
            self.known.put_statement(accepted.decided(at=self.origin.now, by=said.id, reason=ACCEPTED))
        if outcome.verdict in ("known", "past"):
            return
        closed = {one.id for one in outcome.closed}
        when = max((one.at for one in outcome.proposal.evidence), default=self.origin.now)
        # Nothing can have been proposed against what was not there.
        for name in closed if outcome.verdict in NEW else {said.id, *closed}:
            for one in self.known.against(name):
                # What was said before it was proposed says nothing about it.
                if one != accepted and one.is_pending and when >= one.recorded_at:
                    same = name in closed if one.proposes == "end" else same_statement(said, one, exactly=False)
                    why = SAID_SO if same else SAID_OTHERWISE
                    self.known.put_statement(one.decided(at=self.origin.now, by=said.id if same else None, reason=why))

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
            # It is so already when it is said, whatever the speaker's clock says.
            valid_from=proposal.valid_from or min(at, origin.now),
            recorded_at=origin.now,
            last_mentioned=at,
            attribute=proposal.attribute,
            value=proposal.value,
            time_words=proposal.time_words,
            start_stated=proposal.valid_from is not None,
            confidence=proposal.confidence,
            importance=3 if origin.pinned else proposal.importance,
            source=OWN_WORDS if proposal.own_words else origin.source,
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
                source=new.source,
                confidence=proposal.confidence,
                visible_to=self.origin.visible_to,
                kept_by=new.trust if self.origin.pinned else None,
            )
            self.known.put_memory(held)
        else:
            self._touch(new.memory, new)

    def _touch(self, memory: str, by: Statement) -> None:
        held = self.known.memory(memory)
        if held is None:
            return
        entities = tuple(dict.fromkeys((*held.entities, *by.entities)))
        if self._is_of_people(held):
            self.known.put_memory(replace(held, entities=entities, updated_at=self.origin.now))
            return
        # A pin that an agent set is not one of what the user says there from then on.
        pinned = self.origin.pinned or (held.pinned and (held.is_kept or by.trust != TRUSTS[-1]))
        self.known.put_memory(
            replace(
                held,
                entities=entities,
                importance=3 if pinned else max(held.importance, by.importance),
                pinned=pinned,
                confidence=max(held.confidence, by.confidence),
                # What is said again is remembered again.
                status="ACTIVE",
                updated_at=self.origin.now,
                kept_by=by.trust if self.origin.pinned else held.kept_by if pinned else None,
            )
        )

    def _is_of_people(self, held: MemoryRecord) -> bool:
        """Whether people have the say over a memory, and these words are not theirs."""
        if self.origin.trust == TRUSTS[-1]:
            return False
        return held.is_kept or any(one.trust == TRUSTS[-1] for one in self.known.statements(held.record_key))


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


def _ended_by(proposal: Proposal, origin: ProposalOrigin, known: KnowledgeLedger) -> Statement | None:
    """What the user's words end or replace, as the judge of change has it; nothing that was said since then."""
    if proposal.turn is None or origin.trust != TRUSTS[-1]:
        return None
    messages = {one.message for one in proposal.evidence}
    when = max((one.at for one in proposal.evidence), default=origin.now)
    held = [
        one
        for one in known.current()
        if one.visible_to == origin.visible_to
        and one.last_mentioned <= when
        and messages.isdisjoint(cited.message for cited in one.evidence)
    ]
    place = closed_by(proposal.turn, [one.content for one in held])
    return None if place is None else held[place]
