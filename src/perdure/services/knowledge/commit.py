"""Committing: proposals are checked, decided by the committer, and stored inside one transaction; what is refused is kept."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.entities import Rejection
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Statement, Trust, to_statement
from perdure.domain.knowledge.proposals import (
    ENTITY_TYPES,
    FACT_TYPES,
    IMPORTANCE_MAX,
    MEMORY_TYPES,
    EntityName,
    Evidence,
    NewStatement,
    Proposal,
)
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.text.rules import brief, check_choice, check_flag, check_id, check_text, utf8_size
from perdure.domain.times.instants import check_instant
from perdure.domain.values import dataclass, replace
from perdure.engine.knowledge.committer import ATTRIBUTE, Committer, closings_max
from perdure.engine.knowledge.outcomes import Outcome, ProposalOrigin
from perdure.engine.text.hygiene import hides_something, holds_secret
from perdure.ports.store import Tx
from perdure.services.knowledge.ledger import Ledger

REJECTIONS_MAX = 1_000
PENDING_MAX = 200
"""Proposals that wait for a person; the oldest gives way."""
TOO_MANY = f"more than {PENDING_MAX} waited"
WITHHELD = "(not kept: it may be a secret)"


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of a run's proposals, in their order."""

    outcomes: tuple[Outcome, ...]
    actions: tuple[int | None, ...]
    """The numbers by which each can be undone; None where nothing was changed."""

    def count(self, verdict: str) -> int:
        return sum(outcome.verdict == verdict for outcome in self.outcomes)


@dataclass(frozen=True, slots=True)
class Submission:
    """Proposals with what committing them takes."""

    proposals: Sequence[Proposal]
    origin: ProposalOrigin
    by: Attribution
    ids: Sequence[str]
    """Two for each proposal, made beforehand: the work may run more than once, and must then meet its own rows."""
    trusts: Sequence[Trust | None] = ()
    """The trust of each one's own sources, where that is another than the origin's."""
    wrong: Statement | None = None
    """The statement that the proposal takes the place of, if somebody said which."""


def commit_all_in(tx: Tx, given: Sequence[Submission]) -> list[CommitResult]:
    """Commit submissions, one after the other; what they ask for is looked up together."""
    if len(given) > 1:
        for visible_to in {one.origin.visible_to for one in given}:
            some = [one for one in given if one.origin.visible_to == visible_to]
            proposals = [proposal for one in some for proposal in one.proposals]
            Ledger(tx, some[0].by).look_ahead(proposals, [name for one in some for name in one.ids], visible_to)
    return [commit_in(tx, one) for one in given]


def commit_in(tx: Tx, given: Submission) -> CommitResult:
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
        trust = given.trusts[index] if given.trusts else None
        outcome = committer.commit(proposal, trust) if given.wrong is None else committer.correct(proposal, given.wrong)
        if outcome.verdict == "refused":
            reject(tx, ledger, next(supply), proposal, outcome.reason or "")
        elif outcome.statement is not None:
            ledger.seen_together(outcome.statement.entities)
        actions.append(ledger.action)
    verdicts = {outcome.verdict for outcome in committer.outcomes}
    if "refused" in verdicts:
        _bound_rejections(tx, ledger)
    if "proposed" in verdicts:
        _bound_proposals(tx, ledger)
    return CommitResult(tuple(committer.outcomes), tuple(actions))


def reject(tx: Tx, ledger: Ledger, key: str, proposal: Proposal, reason: str) -> None:
    """Keep a proposal that was not taken over, once; what may be a secret is not kept with it."""
    shown = WITHHELD if holds_secret(proposal.content) or hides_something(proposal.content) else proposal.content[:500]
    made = Rejection(id=key, content=shown, reason=reason, by=ledger.actor, made_at=ledger.at, evidence=proposal.evidence)
    if not tx.records.list_(RecordQuery("rejection", 1, ("told", term_value(made.identity)))):
        ledger.put(made, "reject")


def _bound_rejections(tx: Tx, ledger: Ledger) -> None:
    over = tx.records.count("rejection") - REJECTIONS_MAX
    if over <= 0:
        return
    ledger.next_action("rejections are bounded")
    oldest = tx.records.list_(RecordQuery("rejection", REJECTIONS_MAX + over))[-over:]
    for record in oldest:
        ledger.remove("rejection", record.key, "forget")


def _bound_proposals(tx: Tx, ledger: Ledger) -> None:
    over = tx.records.count("statement", ("state", "proposed")) - PENDING_MAX
    if over <= 0:
        return
    ledger.next_action("proposals are bounded")
    rows = tx.records.list_(RecordQuery("statement", PENDING_MAX + over, ("state", "proposed")))
    waiting = sorted((to_statement(record.body) for record in rows), key=lambda one: (one.recorded_at, one.id))
    for one in waiting[:over]:
        ledger.put(one.decided(at=ledger.at, by=None, reason=TOO_MANY), "close")


def check_statement(given: NewStatement) -> NewStatement:
    """`given` if what it says besides the proposal is of the kinds there are."""
    if not isinstance(given, NewStatement):
        raise InvalidInput(f"a statement is a `{type(given).__name__}`; give `perdure.types.NewStatement` values")
    for name in ("source", "visible_to"):
        if (text := getattr(given, name)) is not None or name == "source":
            check_id(text, name, bytes_max=ID_BYTES_MAX)
    check_flag(given.pinned, "pinned")
    return given


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
        check_text(entity.label, "label")
    return proposal


def _check_words(proposal: Proposal) -> None:
    for name in ("content", "attribute", "value", "time_words", "turn"):
        text = getattr(proposal, name)
        if (text is not None or name == "content") and "\0" in check_text(text, name):
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
    for name in ("ended", "corrects", "fleeting"):
        if not isinstance(getattr(proposal, name), bool):
            raise InvalidInput(f"`{name}` = {brief(getattr(proposal, name))} must be True or False")
