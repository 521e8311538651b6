"""Learning from messages: an extractor proposes, outside any transaction; the committer decides, inside one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.errors import InvalidInput, Unavailable
from perdure.domain.jobs import Job, NewJob
from perdure.domain.knowledge.entities import Entity, Todo, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import (
    OWN_WORDS,
    UNTRUSTED,
    Trust,
    Writer,
    actor_of,
    least,
    trust_of_message,
    trust_of_source,
)
from perdure.domain.knowledge.proposals import EntityName, Evidence, Extraction, ExtractionRequest, Proposal, TodoProposal
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.scope import Address, MessageId, Owner, Scope, SessionId
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import utf8_size
from perdure.domain.values import dataclass, replace
from perdure.engine.extraction.predicates import is_single_valued, usual_importance
from perdure.engine.extraction.sentence import as_told
from perdure.engine.knowledge.committer import CLOSE_MIN
from perdure.engine.knowledge.outcomes import OURS, Habits, Outcome, ProposalOrigin
from perdure.engine.text.hygiene import fingerprint
from perdure.engine.text.own_words import own_words
from perdure.engine.text.sentences import sentence_spans
from perdure.ports.clock import Clock
from perdure.ports.models import Extractor
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.access import OwnerVersion
from perdure.services.jobs.worker import Effect, RunLater
from perdure.services.knowledge.commit import Submission, check_proposal, commit_in, reject
from perdure.services.knowledge.instructions import take_order
from perdure.services.knowledge.ledger import Ledger
from perdure.services.knowledge.todos import check_todo, commit_todo
from perdure.services.models.writer import in_short, wanted_pause

MESSAGES_PER_RUN = 50
MESSAGES_BEFORE = 6
KNOWN_NAMES_MAX = 200
PROMISES_MAX = 20
PROPOSALS_PER_RUN = 200
"""What one run may propose; more than that is not knowledge but noise."""
CONFIDENTIAL = pattern(
    r"\b(?:(?:just|only|strictly) )?between (?:you and me|us|the two of us)\b"
    r"|\bkeep (?:this|that|it) (?:private|secret|confidential|to yourself|between us)\b"
    r"|\b(?:do not|don['’]t) tell (?:any(?:one|body)|(?:the )?others|(?:the )?other (?:agents|assistants|bots))\b",
    re.IGNORECASE,
)
SEED = "seeded_profile"
HEADINGS = pattern(r"(?m)^\s*#.*$")
ECHO = "it repeats what was put into a prompt"


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """The result of an extraction."""

    outcomes: tuple[Outcome, ...] = ()
    todos: int = 0
    echoes: int = 0
    refused: int = 0
    """Proposals that could not even be read, were about other messages, or repeat what was put into a prompt."""
    skipped: int = 0
    messages: int = 0


@dataclass(frozen=True, slots=True)
class _UnreadMessages:
    session: Session
    messages: tuple[Message, ...]
    before: tuple[Message, ...]
    known: tuple[EntityName, ...]
    casual: bool
    private: bool
    version: OwnerVersion


@dataclass(frozen=True, slots=True)
class _SortedProposals:
    """What was proposed, sorted into what can be looked at and what cannot."""

    proposals: tuple[Proposal, ...] = ()
    trusts: tuple[Trust, ...] = ()
    todos: tuple[TodoProposal, ...] = ()
    refused: tuple[tuple[Proposal, str], ...] = ()
    orders: tuple[Evidence, ...] = ()
    echoes: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class ExtractionService:
    store: Store
    clock: Clock
    extractor: Extractor
    zone: str
    rules: Extractor | None = None
    """What stands in at the last try of a job, so that nothing said is left unlearned; None: nothing does."""
    writer: Writer = "user"
    """Whose word a seed is."""
    messages_per_run: int = MESSAGES_PER_RUN
    habits: Habits = OURS

    def handle(self, job: Job) -> Effect | RunLater | None:
        """The job of a session with messages that nobody has looked through yet."""
        address, number = Address(job.payload["agent"], job.payload["channel"]), job.payload["session_number"]
        reading = self.store.read(job.owner, lambda view: self._read(view, address, number))
        if reading is None or not reading.messages:
            return None
        extractor, found = self._found_by(job, reading)
        ids = self._ids(found)

        def effect(tx: Tx) -> None:
            self._commit(tx, reading, found, ids, extractor.name)
            if not tx.accesses.version().holds_since(reading.version):
                # Something was forgotten since it was read, so nothing was learned: another run reads again.
                now = self.clock.now()
                tx.enqueue(NewJob(job.kind, job.key, now, job.payload), now=now, queue_max=2**31)

        more = reading.messages[-1].seq < reading.session.messages
        return RunLater(self.clock.now(), effect) if more else effect

    def extract(self, scope: Scope, *, session: Session, dry_run: bool) -> ExtractionReport:
        """Look through what is new in a session, now."""
        learned = ExtractionReport()
        after: int | None = None
        while (page := self._look_through(scope, session.number, after, dry_run=dry_run)) is not None:
            done, seq = page
            after = seq if dry_run else None
            learned = ExtractionReport(
                outcomes=learned.outcomes + done.outcomes,
                todos=learned.todos + done.todos,
                echoes=learned.echoes + done.echoes,
                refused=learned.refused + done.refused,
                skipped=learned.skipped + done.skipped,
                messages=learned.messages + done.messages,
            )
        return learned

    def seed(self, scope: Scope, text: str) -> tuple[Outcome, ...]:
        """Learn from a text about the user that is no message: facts, and in its own words each sentence that tells none.

        What it says rests on no evidence but the text itself.
        """
        utf8_size(text, "`text`")
        now = self.clock.now()
        message = Message(
            id=MessageId("seed"),
            session=SessionId("seed"),
            session_number=1,
            seq=1,
            role="user",
            content=text,
            at=now,
            tokens=0,
            metadata={},
            address=scope.address,
        )
        found = _sorted_out(
            _extract(self.extractor, ExtractionRequest((message,), zone=self.zone, owner=scope.owner)), (message,)
        )
        facts = [proposal for proposal in found.proposals if not proposal.own_words]
        proposals = [replace(fact, evidence=()) for fact in facts] + self._other_sentences(text, facts, now)
        trust = trust_of_source(SEED, self.writer)
        origin = ProposalOrigin(SEED, trust, now, self.clock.new_id, is_single_valued, habits=self.habits)
        ids = [self.clock.new_id() for _ in range(2 * len(proposals))]
        actor = self.extractor.name if self.writer == "user" else actor_of(self.writer, scope.address.agent)
        by = Attribution(actor, now, "a profile was given")
        given = Submission(proposals, origin, by, ids)
        return self.store.write(scope.owner, lambda tx: commit_in(tx, given)).outcomes

    # -- how

    def _other_sentences(self, text: str, facts: Sequence[Proposal], now: datetime) -> list[Proposal]:
        """The sentences of a profile that tell none of the facts, each as if somebody had asked to remember it."""
        read = [one.start for fact in facts for one in fact.evidence]
        stated = HEADINGS.sub(lambda line: " " * len(line[0]), own_words(text))
        rest = [stated[start:end] for start, end in sentence_spans(stated) if not any(start <= place < end for place in read)]
        kept = [sentence for sentence in rest if not sentence.endswith("?")]
        told = [one for sentence in kept for one in as_told(Proposal("PROFILE", "fact", sentence), now, self.zone)]
        return [replace(one, importance=usual_importance(one)) for one in told]

    def _look_through(
        self, scope: Scope, number: int, after: int | None, *, dry_run: bool
    ) -> tuple[ExtractionReport, int] | None:
        """One run's worth of messages; what was learned, and how far it went."""
        reading = self.store.read(scope.owner, lambda view: self._read(view, scope.address, number, after=after))
        if reading is None or not reading.messages:
            return None
        found = self._found_in(scope.owner, reading, self.extractor)
        ids = self._ids(found)

        def work(tx: Tx) -> ExtractionReport:
            done = self._commit(tx, reading, found, ids, self.extractor.name)
            if dry_run:
                raise _Dry(done)  # rolls everything back
            return done

        try:
            done = self.store.write(scope.owner, work)
        except _Dry as dry:
            done = dry.learned
        return done, reading.messages[-1].seq

    def _read(self, view: View, address: Address, number: int, after: int | None = None) -> _UnreadMessages | None:
        session = view.find_session(address, number)
        if session is None or session.deleted_at is not None:
            return None
        start = session.learned_seq if after is None else after
        query = MessageQuery(address, self.messages_per_run, number, after=Cursor(number, start))
        before = MessageQuery(address, MESSAGES_BEFORE, number, before=Cursor(number, start + 1))
        names = view.records.list_(RecordQuery("entity", KNOWN_NAMES_MAX, ("state", "here")))
        entities = [from_body(Entity, record.body) for record in names]
        state = view.conversation.find_agent_state(address)
        promised = _promises(view, address.agent)
        recent = view.list_messages(before) if start else []
        return _UnreadMessages(
            session,
            tuple(view.list_messages(query)),
            tuple(one for one in promised if one not in recent and one.session_number <= number) + tuple(recent),
            tuple(EntityName(one.type, one.label) for one in entities if one.visible_to in (None, address.agent)),
            casual=state is not None and state.casual,
            private=state is not None and state.private,
            version=view.accesses.version(),
        )

    def _found_by(self, job: Job, reading: _UnreadMessages) -> tuple[Extractor, _SortedProposals]:
        """What was found, and by whom: the rules stand in for an extractor that has failed until the last try."""
        try:
            return self.extractor, self._found_in(job.owner, reading, self.extractor)
        except Unavailable:
            if self.rules is None or job.attempts < job.attempts_max:
                raise
            return self.rules, self._found_in(job.owner, reading, self.rules)

    def _found_in(self, owner: Owner, reading: _UnreadMessages, extractor: Extractor) -> _SortedProposals:
        """What the extractor proposes, without what it was told by a prompt of our own."""
        if reading.casual:
            return _SortedProposals()
        request = ExtractionRequest(reading.messages, reading.before, reading.known, self.zone, owner)
        found = _sorted_out(_extract(extractor, request), reading.messages)
        cited = [one.evidence for one in found.proposals] + [one.evidence for one in found.todos]
        echoes = self.store.read(owner, lambda view: [_is_echo(view, one, reading.messages) for one in cited]) if cited else []
        count = len(found.proposals)
        fresh = [index for index in range(count) if not echoes[index]]
        said = [found.proposals[index] for index in range(count) if echoes[index]]
        again = [(proposal, ECHO) for proposal in said if not proposal.own_words]
        return replace(
            found,
            proposals=tuple(found.proposals[index] for index in fresh),
            trusts=tuple(found.trusts[index] for index in fresh),
            todos=tuple(todo for todo, echo in zip(found.todos, echoes[count:], strict=True) if not echo),
            refused=(*found.refused, *again),
            echoes=sum(echoes),
        )

    def _commit(
        self, tx: Tx, reading: _UnreadMessages, found: _SortedProposals, ids: Sequence[str], actor: str
    ) -> ExtractionReport:
        session = tx.find_session(reading.session.address, reading.session.number)
        if session is None or session.deleted_at is not None or session.learned_seq != reading.session.learned_seq:
            return ExtractionReport()  # deleted, or another run was faster
        if not tx.accesses.version().holds_since(reading.version):
            return ExtractionReport()  # what was read may be forgotten by now
        now = self.clock.now()
        by = Attribution(actor, now, "extracted from messages")
        origin = ProposalOrigin(
            "shadow_extraction",
            "user",
            now,
            self.clock.new_id,
            is_single_valued,
            closings_max=CLOSE_MIN,
            habits=self.habits,
        )
        half = 2 * len(found.proposals)
        asked = _in_confidence(reading)
        secret = [reading.private or any(one.message in asked for one in proposal.evidence) for proposal in found.proposals]
        outcomes: list[Outcome] = []
        for is_secret in (False, True):
            chosen = [index for index, told in enumerate(secret) if told is is_secret]
            outcomes += commit_in(
                tx,
                Submission(
                    [found.proposals[index] for index in chosen],
                    replace(origin, visible_to=session.address.agent if is_secret else None),
                    by,
                    [ids[place] for index in chosen for place in (2 * index, 2 * index + 1)],
                    [found.trusts[index] for index in chosen],
                ),
            ).outcomes
        spare = iter(ids[half:])
        ledger = Ledger(tx, by)
        for proposal, reason in found.refused:
            ledger.next_action()
            reject(tx, ledger, next(spare), proposal, reason)
        for todo in found.todos:
            ledger.next_action()
            source = OWN_WORDS if todo.own_words else "shadow_extraction"
            commit_todo(ledger, tx, session.address.agent, todo, (next(spare), now, source))
        for order in found.orders:
            ledger.next_action()
            take_order(tx, ledger, next(one for one in reading.messages if one.id == order.message), order)
        tx.put_sessions([replace(session, learned_seq=reading.messages[-1].seq)])
        return ExtractionReport(
            outcomes=tuple(one for one in outcomes if one.statement is not None or not one.proposal.fleeting),
            todos=len(found.todos),
            echoes=found.echoes,
            refused=len(found.refused),
            skipped=found.skipped,
            messages=len(reading.messages),
        )

    def _ids(self, found: _SortedProposals) -> list[str]:
        return [self.clock.new_id() for _ in range(2 * len(found.proposals) + len(found.todos) + len(found.refused))]


def _extract(extractor: Extractor, request: ExtractionRequest) -> Extraction:
    try:
        found = extractor.extract(request)
        if not isinstance(found, Extraction):
            raise InvalidInput(f"the extractor answered with a `{type(found).__name__}`; return an `Extraction`")
        return replace(found, proposals=tuple(found.proposals), todos=tuple(found.todos), orders=tuple(found.orders))
    except Exception as error:  # the plugin edge: an extractor may be anybody's code
        raise Unavailable(
            f"the extractor failed ({in_short(error).reason}); nothing was learned, nothing is lost",
            retry_after_s=wanted_pause(error),
        ) from error


def _in_confidence(reading: _UnreadMessages) -> set[str]:
    """The messages in which the user asks to keep what they say between the two."""
    return {message.id for message in reading.messages if message.role == "user" and CONFIDENTIAL.search(message.content)}


def _promises(view: View, agent: str) -> list[Message]:
    """The messages in which the agent was told what is still to be done: only who knows them understands that it is done."""
    open_ones = view.records.list_(RecordQuery("todo", PROMISES_MAX, ("open", term_value(agent))))
    cited = [one.message for record in open_ones for one in from_body(Todo, record.body).evidence[:1]]
    found = view.find_messages([MessageId(name) for name in dict.fromkeys(cited)]) if cited else {}
    return sorted(found.values(), key=lambda message: (message.session_number, message.seq))


class _Dry(Exception):
    """Carries the result of a dry run out of the transaction that it rolls back."""

    def __init__(self, learned: ExtractionReport) -> None:
        self.learned = learned


def _sorted_out(found: Extraction, messages: Sequence[Message]) -> _SortedProposals:
    """Proposals that are of the right form and rest on the messages at hand; of the others, why they are not."""
    by_id: dict[str, Message] = {message.id: message for message in messages}
    proposals: list[Proposal] = []
    trusts: list[Trust] = []
    refused: list[tuple[Proposal, str]] = []
    for proposal in found.proposals[:PROPOSALS_PER_RUN]:
        try:
            check_proposal(proposal)
            trusts.append(_trust(proposal.evidence, by_id))
            proposals.append(proposal)
        except InvalidInput as error:
            refused.append((_readable(proposal), str(error)))
    todos = [todo for todo in found.todos[:PROPOSALS_PER_RUN] if _is_todo(todo, by_id)]
    skipped = found.skipped if isinstance(found.skipped, int) else 0
    orders = tuple(one for one in found.orders[:PROPOSALS_PER_RUN] if _is_order(one, by_id))
    return _SortedProposals(tuple(proposals), tuple(trusts), tuple(todos), tuple(refused), orders, skipped=skipped)


def _trust(evidence: Iterable[Evidence], messages: dict[str, Message]) -> Trust:
    """What is derived is trusted no more than the least of its sources; without a source it is not looked at."""
    cited = list(evidence)
    if not cited:
        raise InvalidInput("it rests on no message; an extractor names where something was said")
    for one in cited:
        held = messages.get(one.message)
        if held is None or not _is_place(one, held):
            raise InvalidInput("it rests on words that are not in the messages it was shown")
    said = [messages[one.message] for one in cited]
    return least((trust_of_message(one.role, one.metadata) for one in said), "tool")


def _is_place(evidence: Evidence, message: Message) -> bool:
    """Whether it names words of the message, at the message's own time: when something was said nobody may choose."""
    ends: tuple[object, object] = (evidence.start, evidence.end)
    if not all(isinstance(end, int) and not isinstance(end, bool) for end in ends):
        return False
    return 0 <= evidence.start < evidence.end <= len(message.content) and evidence.at == message.at


def _is_todo(todo: object, messages: dict[str, Message]) -> bool:
    if not isinstance(todo, TodoProposal):
        return False
    try:
        check_todo(todo)
        # Nobody promises anything through a tool.
        return _trust(todo.evidence, messages) not in UNTRUSTED
    except InvalidInput:
        return False


def _is_order(order: object, messages: dict[str, Message]) -> bool:
    """Whether it names words of the user: nobody else gives an agent orders."""
    try:
        return isinstance(order, Evidence) and _trust([order], messages) == "user"
    except InvalidInput:
        return False


def _readable(proposal: object) -> Proposal:
    """What can be shown of something that is no proposal, so that it can be kept with the reason."""
    content = getattr(proposal, "content", None)
    shown = content[:500] if isinstance(content, str) and content.isprintable() else f"a {type(proposal).__name__}"
    return Proposal("PROFILE", "fact", shown)


def _is_echo(view: View, evidence: Iterable[Evidence], messages: Sequence[Message]) -> bool:
    """Whether the words had been put into a prompt before they were said. What was shown only afterwards is no echo:

    a message may be shown to an agent before it is looked through, above all while a model is away.
    """
    held: dict[str, Message] = {message.id: message for message in messages}
    for one in evidence:
        said = held.get(one.message)
        prints = [] if said is None else [fingerprint(piece) for piece in _sentence_and_line(said.content, one.start)]
        if said is not None and prints and view.records.find_echoes(prints, until=said.at):
            return True
    return False


def _sentence_and_line(text: str, place: int) -> list[str]:
    """The sentence and the line at a place of a text."""
    line_start = text.rfind("\n", 0, place) + 1
    line_end = text.find("\n", place)
    found = [text[line_start : len(text) if line_end < 0 else line_end]]
    found += [text[start:end] for start, end in sentence_spans(text) if start <= place < end]
    return found
