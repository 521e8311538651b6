"""Learning from messages: an extractor proposes, outside any transaction; the committer decides, inside one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from perdure.domain.errors import Unavailable
from perdure.domain.jobs import Job
from perdure.domain.journal import Attribution
from perdure.domain.knowledge import EntityName, Extraction, ExtractionRequest, Proposal
from perdure.domain.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.records import RecordQuery
from perdure.domain.scope import Address, MessageId, Owner, Scope, SessionId
from perdure.domain.text import utf8_size
from perdure.domain.things import Entity, Rejection, from_body
from perdure.engine.committing import CLOSE_MIN, Origin, Outcome
from perdure.engine.echoes import fingerprint
from perdure.engine.hygiene import refusal
from perdure.engine.predicates import is_single_valued
from perdure.engine.sentences import sentence_spans
from perdure.ports.clock import Clock
from perdure.ports.extract import Extractor
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge import commit_in
from perdure.services.ledger import Ledger
from perdure.services.summarising import in_short
from perdure.services.todos import commit_todo
from perdure.services.work import Effect, Later

MESSAGES_PER_RUN = 50
MESSAGES_BEFORE = 6
KNOWN_NAMES_MAX = 200
PROPOSALS_PER_RUN = 200
"""What one run may propose; more than that is not knowledge but noise."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a run over messages has come to."""

    outcomes: tuple[Outcome, ...] = ()
    todos: int = 0
    echoes: int = 0
    skipped: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class _Reading:
    session: Session
    messages: tuple[Message, ...]
    before: tuple[Message, ...]
    known: tuple[EntityName, ...]
    casual: bool


@dataclass(frozen=True, slots=True)
class Extracting:
    store: Store
    clock: Clock
    extractor: Extractor
    zone: str

    def handle(self, job: Job) -> Effect | Later | None:
        """The job of a session with messages that nobody has looked through yet."""
        address, number = Address(job.payload["agent"], job.payload["channel"]), job.payload["session_number"]
        reading = self.store.read(job.owner, lambda view: self._read(view, address, number))
        if reading is None or not reading.messages:
            return None
        found = Extraction() if reading.casual else self._proposed(reading)
        echoes = self._echoes(job.owner, found, reading)
        ids = self._ids(found)

        def effect(tx: Tx) -> None:
            session = tx.find_session(address, number)
            if session is None or session.deleted_at is not None or session.learned_seq != reading.session.learned_seq:
                return  # deleted, or another run was faster
            self._commit(tx, address.agent, found, echoes, ids)
            tx.put_sessions([replace(session, learned_seq=reading.messages[-1].seq)])

        more = reading.messages[-1].seq < reading.session.messages
        return Later(self.clock.now(), effect) if more else effect

    def extract(self, scope: Scope, *, session: Session, dry_run: bool) -> Learned:
        """Look through a session now, from its beginning; what was learned before is recognised."""
        learned = Learned()
        after = 0
        while (page := self._look_through(scope, session.number, after, dry_run=dry_run)) is not None:
            done, after = page
            learned = Learned(
                learned.outcomes + done.outcomes,
                learned.todos + done.todos,
                learned.echoes + done.echoes,
                learned.skipped + done.skipped,
                learned.messages + done.messages,
            )
        return learned

    def _look_through(self, scope: Scope, number: int, after: int, *, dry_run: bool) -> tuple[Learned, int] | None:
        """One run's worth of messages after a place; what was learned, and how far it went."""
        reading = self.store.read(scope.owner, lambda view: self._read(view, scope.address, number, after=after))
        if reading is None or not reading.messages:
            return None
        found = Extraction() if reading.casual else self._proposed(reading)
        echoes = self._echoes(scope.owner, found, reading)
        ids = self._ids(found)

        def work(tx: Tx) -> Learned:
            done = self._commit(tx, scope.address.agent, found, echoes, ids)
            if dry_run:
                raise _Dry(done)  # rolls everything back
            return done

        try:
            done = self.store.write(scope.owner, work)
        except _Dry as dry:
            done = dry.learned
        return replace(done, skipped=found.skipped, messages=len(reading.messages)), reading.messages[-1].seq

    def seed(self, scope: Scope, text: str) -> tuple[Outcome, ...]:
        """Learn from a text about the user that is no message. What it says rests on no evidence but the text itself."""
        utf8_size(text, "`text`")
        now = self.clock.now()
        message = Message(MessageId("seed"), SessionId("seed"), 1, 1, "user", text, now, 0, {}, address=scope.address)
        found = self._found(ExtractionRequest((message,), zone=self.zone))
        proposals = [replace(proposal, evidence=()) for proposal in found.proposals]
        origin = Origin("seeded_profile", "user", now, self.clock.new_id, is_single_valued)
        ids = [self.clock.new_id() for _ in range(2 * len(proposals))]
        by = Attribution(self.extractor.name, now, "a profile was given")
        return self.store.write(scope.owner, lambda tx: commit_in(tx, proposals, origin, by, ids)).outcomes

    # -- how

    def _read(self, view: View, address: Address, number: int, after: int | None = None) -> _Reading | None:
        session = view.find_session(address, number)
        if session is None or session.deleted_at is not None:
            return None
        start = session.learned_seq if after is None else after
        query = MessageQuery(address, MESSAGES_PER_RUN, number, after=Cursor(number, start))
        before = MessageQuery(address, MESSAGES_BEFORE, number, before=Cursor(number, start + 1))
        names = view.records.list_(RecordQuery("entity", KNOWN_NAMES_MAX, ("state", "here")))
        entities = [from_body(Entity, record.body) for record in names]
        state = view.conversation.find_agent_state(address)
        return _Reading(
            session,
            tuple(view.list_messages(query)),
            tuple(view.list_messages(before)) if start else (),
            tuple(EntityName(one.type, one.label) for one in entities),
            casual=state is not None and state.casual,
        )

    def _proposed(self, reading: _Reading) -> Extraction:
        return self._found(ExtractionRequest(reading.messages, reading.before, reading.known, self.zone))

    def _found(self, request: ExtractionRequest) -> Extraction:
        try:
            found = self.extractor.extract(request)
        except Exception as error:
            raise Unavailable(
                f"the extractor failed ({in_short(error).reason}); nothing was learned, nothing is lost"
            ) from error
        return replace(found, proposals=found.proposals[:PROPOSALS_PER_RUN], todos=found.todos[:PROPOSALS_PER_RUN])

    def _echoes(self, owner: Owner, found: Extraction, reading: _Reading) -> frozenset[int]:
        """Which proposals rest on words that perdure itself had put into a prompt."""
        texts: dict[str, str] = {message.id: message.content for message in reading.messages}
        prints = [
            {fingerprint(piece) for one in proposal.evidence for piece in around(texts.get(one.message, ""), one.start)}
            for proposal in found.proposals
        ]
        wanted = list(set().union(*prints)) if prints else []
        held = self.store.read(owner, lambda view: view.records.find_echoes(wanted)) if wanted else set()
        return frozenset(index for index, one in enumerate(prints) if one & held)

    def _commit(self, tx: Tx, agent: str, found: Extraction, echoes: frozenset[int], ids: Sequence[str]) -> Learned:
        now = self.clock.now()
        by = Attribution(self.extractor.name, now, "extracted from messages")
        fresh = [proposal for index, proposal in enumerate(found.proposals) if index not in echoes]
        origin = Origin("shadow_extraction", "user", now, self.clock.new_id, is_single_valued, closings_max=CLOSE_MIN)
        supply = list(ids)
        done = commit_in(tx, fresh, origin, by, [supply.pop() for _ in range(2 * len(fresh))])
        ledger = Ledger(tx, by)
        for index in sorted(echoes):
            ledger.next_action()
            proposal = found.proposals[index]
            key = f"echo|{fingerprint(proposal.content)}"
            ledger.put(_rejection(key, proposal, self.extractor.name, now), "reject")
        kept = 0
        for todo in found.todos:
            ledger.next_action()
            if refusal(todo.content) is None:
                commit_todo(ledger, tx, agent, todo, (supply.pop(), now, "shadow_extraction"))
                kept += 1
        return Learned(done.outcomes, kept, len(echoes))

    def _ids(self, found: Extraction) -> list[str]:
        return [self.clock.new_id() for _ in range(2 * len(found.proposals) + len(found.todos))]


class _Dry(Exception):
    """Carries the result of a dry run out of the transaction that it rolls back."""

    def __init__(self, learned: Learned) -> None:
        self.learned = learned


def around(text: str, place: int) -> list[str]:
    """The sentence and the line at a place of a text."""
    line_start = text.rfind("\n", 0, place) + 1
    line_end = text.find("\n", place)
    found = [text[line_start : len(text) if line_end < 0 else line_end]]
    found += [text[start:end] for start, end in sentence_spans(text) if start <= place < end]
    return found


def _rejection(key: str, proposal: Proposal, by: str, now: datetime) -> Rejection:
    return Rejection(key, proposal.content[:500], "it repeats what was put into a prompt", by, now, proposal.evidence)
