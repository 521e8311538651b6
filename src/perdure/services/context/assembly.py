"""The context of one request, and the combined prompt of an agent.

The context closes what has ended, folds what is over its bounds, then packs what there is. The prompt is the agent's texts,
the lessons that hold where it talks, and the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from zoneinfo import ZoneInfo

from perdure.domain.context.context import Context, PartKind, Prompt
from perdure.domain.conversation.agent_state import Agent
from perdure.domain.conversation.digests import SPINE_ADDRESS, SPINE_SESSION, Digest, Layers, Policy
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.errors import Conflict, Corrupt, InvalidInput, NotFound, Unavailable
from perdure.domain.limits import NUMBER_MAX
from perdure.domain.scope import Address, Scope
from perdure.domain.text.rules import brief, utf8_size
from perdure.domain.values import dataclass, replace
from perdure.engine.context.assemble import ContextKnowledge, SessionLayers, assemble
from perdure.engine.context.prompt import combine, period_of, time_line
from perdure.engine.conversation.jobs import session_job
from perdure.ports.clock import Clock
from perdure.ports.store import ReadOnly, Store, Tx, View
from perdure.services.context.knowledge import GoalKnowledge, KnowledgeReader
from perdure.services.conversation.folds import Folds, SessionKey
from perdure.services.conversation.upkeep import JOBS_MAX, OPEN_SESSIONS_MAX, Sweeper, end_if_silent
from perdure.services.index.writes import register_echoes
from perdure.services.lessons.agents import Agents
from perdure.services.lessons.lessons import Lessons
from perdure.services.models.writer import SummaryFailed

BUDGET_MIN = 100
FOLD_S = 10.0
"""How long a request waits for a model to fold what is over its bounds; then it goes on without, and a job folds."""
TAIL_MESSAGES = 6
WORKING_SHOWN_MAX = 500
QUESTION_PAGES_MAX = 20


@dataclass(frozen=True, slots=True)
class _Moment:
    """What belongs into a context, and what has to be settled before."""

    open: Sequence[Session]
    policies: frozenset[Policy]
    casual: bool
    fold: Digest | None
    """The newest of the session that goes on."""
    known: ContextKnowledge
    remembered: SessionLayers
    working: Sequence[Message]
    unread: int


@dataclass(frozen=True, slots=True)
class ContextAssembly:
    store: Store
    clock: Clock
    layers: Layers
    idle: timedelta
    folds: Folds
    sweeper: Sweeper
    count: Callable[[str], int]
    knowledge: KnowledgeReader
    rolls_on: bool = False
    """A session goes on with the rolling digest of the one before until it has its own."""

    def context(self, scope: Scope, *, goal: str | None = None, budget_tokens: int | None) -> Context:
        """What the agent should be given now, and for a goal. Never over the budget."""
        budget = self.layers.history_tokens_max if budget_tokens is None else budget_tokens
        if not isinstance(budget, int) or isinstance(budget, bool) or not BUDGET_MIN <= budget <= NUMBER_MAX:
            raise InvalidInput(f"`budget_tokens` = {brief(budget)} must be a whole number of at least {BUDGET_MIN}")
        seen, given = self._moment(scope, goal, budget)
        notes, changed = self._settle(scope, seen)
        if changed:
            seen, given = self._moment(scope, goal, budget)
        packed = assemble(seen.remembered, seen.known, seen.working, budget, self.count, unread=seen.unread, goal=goal)
        notes += [note for one in seen.known.lists for note in one.notes]
        notes += [] if given.answer is None else given.answer.uncovered.lines()
        register_echoes(self.store, self.clock, scope.owner, packed.blocks)
        return replace(packed, notes=tuple(notes))

    def _moment(self, scope: Scope, goal: str | None, budget: int) -> tuple[_Moment, GoalKnowledge]:
        """What belongs into a context, all of the user's as of one moment."""
        given = self.knowledge.sought(scope, goal, budget)
        return self.store.read(scope.owner, lambda view: self._moment_in(view, scope, given)), given

    def _moment_in(self, view: View, scope: Scope, given: GoalKnowledge) -> _Moment:
        address = scope.address

        (policies, casual), found, fold, known, (remembered, working, unread) = view.together(
            lambda: self.sweeper.policies(view, address),
            lambda: view.conversation.open_sessions(address, limit=OPEN_SESSIONS_MAX),
            lambda: _fold_of_open(view, address),
            lambda: self.knowledge.known_in(view, scope, given),
            lambda: self._read(view, address),
        )
        return _Moment(
            open=found,
            policies=policies,
            casual=casual,
            fold=fold,
            known=known,
            remembered=remembered,
            working=working,
            unread=unread,
        )

    def _settle(self, scope: Scope, seen: _Moment) -> tuple[list[str], bool]:
        """End a session that is silent for too long, and fold what is due before the agent answers; whether that changed
        anything.
        """
        now = self.clock.now()
        silent = [session for session in seen.open if now - session.last_at > self.idle]

        def end(tx: Tx) -> None:
            for session in silent:
                end_if_silent(tx, session, now)

        changed = False
        if silent:
            with suppress(ReadOnly):
                self.store.write(scope.owner, end)
                changed = True
        session = next((session for session in seen.open if session not in silent), None)
        if session is None:
            return [], changed
        where = SessionKey(scope.owner, scope.address, session.number)
        large = self.folds.takes_steps(session)
        until = time.monotonic() + FOLD_S
        notes: list[str] = []
        casual, number, fold = seen.casual, session.number, seen.fold
        if "request_fold" in seen.policies and session.working >= self.layers.fold_messages_min:
            folded = self._tried(
                where, "request_fold", lambda: self.folds.fold_request(where, casual=casual, until=until), notes, large=large
            )
            changed |= folded
        if changed:
            fold = self.store.read(scope.owner, lambda view: view.conversation.latest_digest(scope.address, number, "fold"))
        if "bounded_history" in seen.policies and self.sweeper.is_over(session, fold):
            changed |= self._tried(
                where, "bounded_history", lambda: self.folds.bound(where, casual=casual, until=until), notes, large=large
            )
        return notes, changed

    def _tried(
        self, where: SessionKey, kind: str, fold: Callable[[], Sequence[Digest]], notes: list[str], *, large: bool
    ) -> bool:
        """Fold now; if that fails, everything stays as it was, and a job tries again. Whether something was folded.

        Of a large working set one step is made now, and the rest by a job: until then, the answer says what is missing.

        While that job is at it, or waits after a failure of its own, no request waits for the same in vain.
        """
        now = self.clock.now()
        job = session_job(kind, where.address, where.number, now)
        held = self.store.read(where.owner, lambda view: view.find_job(job.kind, job.key))
        if held is not None and held.attempts and held.due_at is not None and held.due_at > now:
            notes.append(f"{kind}: left to its job, which is at it or tries again at {held.due_at:%H:%M:%S} UTC")
            return False
        if self.store.describe().read_only:
            notes.append(f"{kind}: left to an engine that may write; this store can only be read")
            return False
        folded = False
        try:
            folded = bool(fold())
        except (SummaryFailed, Conflict, NotFound) as error:
            notes.append(f"{kind}: {error}")
            large = True
        if large:
            self.store.write(where.owner, lambda tx: tx.enqueue(job, now=now, queue_max=JOBS_MAX))
        return folded

    def _read(self, view: View, address: Address) -> tuple[SessionLayers, list[Message], int]:
        talk = view.conversation
        spine, open_ones, newest = view.together(
            lambda: talk.latest_digest(SPINE_ADDRESS, SPINE_SESSION, "spine"),
            lambda: talk.open_sessions(address, limit=OPEN_SESSIONS_MAX),
            lambda: view.list_sessions(address, limit=2),
        )
        # The session that goes on, or else the newest there is.
        session = next(iter((*open_ones, *newest)), None)
        if session is None:
            return SessionLayers(spine=spine), [], 0
        if session.ended_at is not None:
            # Nothing is open: what comes next is a new session, and this one is the one before it.
            return self._with_previous(view, SessionLayers(spine=spine), session), [], 0
        rolling, fold, working, remembered = view.together(
            lambda: talk.latest_digest(address, session.number, "rolling"),
            lambda: talk.latest_digest(address, session.number, "fold"),
            lambda: _working_set(view, session),
            lambda: self._before(view, session, newest),
        )
        if rolling is not None:
            remembered = replace(remembered, left_off=None)
        elif self.rolls_on:
            # As its own, although it tells of the session before.
            return replace(remembered, spine=spine, rolling=remembered.left_off, left_off=None, fold=fold), working, 0
        # What is wholly in the working set needs no words about it.
        shown = {"rolling": rolling, "fold": fold} if session.boundary_seq else {}
        return replace(remembered, spine=spine, **shown), working, session.working - len(working)

    def _before(self, view: View, session: Session, newest: Sequence[Session]) -> SessionLayers:
        """What is told of the session before the one that goes on."""
        earlier = [one for one in newest if one.number < session.number]
        if newest[0].number > session.number:
            earlier = view.list_sessions(session.address, limit=1, before=session.number)
        return self._with_previous(view, SessionLayers(), earlier[0]) if earlier else SessionLayers()

    def _with_previous(self, view: View, remembered: SessionLayers, before: Session) -> SessionLayers:
        talk = view.conversation
        digest, left_off = view.together(
            lambda: talk.latest_digest(before.address, before.number, "session"),
            lambda: talk.latest_digest(before.address, before.number, "rolling"),
        )
        tail: list[Message] = []
        if digest is None or digest.last_seq < before.messages:
            policies, _ = self.sweeper.policies(view, before.address)
            if "session_digest" in policies:
                tail = view.list_messages(MessageQuery(before.address, TAIL_MESSAGES, before.number))
        return replace(remembered, previous=digest, left_off=left_off, previous_tail=tuple(tail))


def _fold_of_open(view: View, address: Address) -> Digest | None:
    """The newest fold of the session that goes on."""
    found = view.conversation.open_sessions(address, limit=OPEN_SESSIONS_MAX)
    return view.conversation.latest_digest(address, found[0].number, "fold") if found else None


def _working_set(view: View, session: Session) -> list[Message]:
    """What of a session is shown as it is; with the question that it answers, if that lies further back."""
    number = session.number
    query = MessageQuery(
        session.address,
        WORKING_SHOWN_MAX,
        number,
        # The newest ones: more than these can only be there while a fold is waiting for its job.
        before=Cursor(number + 1, 0) if session.working > WORKING_SHOWN_MAX else None,
        after=Cursor(number, session.boundary_seq) if session.working <= WORKING_SHOWN_MAX else None,
    )
    working = view.list_messages(query)
    if working and all(message.role != "user" for message in working):
        # A turn so long that its question lies further back: without it, nobody knows what this is about.
        return [*_question(view, session, working[0].seq), *working]
    return working


def _question(view: View, session: Session, before_seq: int) -> list[Message]:
    """The last thing the user said before a place of the working set, looked for in bounded steps."""
    number = session.number
    for _ in range(QUESTION_PAGES_MAX):
        query = MessageQuery(
            session.address,
            WORKING_SHOWN_MAX,
            number,
            before=Cursor(number, before_seq),
        )
        page = [message for message in view.list_messages(query) if message.seq > session.boundary_seq]
        said = [message for message in page if message.role == "user"]
        if said or not page:
            return said[-1:]
        before_seq = page[0].seq
    return []


LESSON_FRAME = 8
"""Tokens that a lesson costs beside its text, at most."""
BUDGET_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class PromptService:
    store: Store
    clock: Clock
    agents: Agents
    lessons: Lessons
    count: Callable[[str], int]
    zone: str
    all_lessons: bool = False
    """Every lesson is shown, beyond the budget."""

    def prompt(self, scope: Scope, request: str, *, budget_tokens: int, lessons: bool = True) -> Prompt:
        """Soul, mood, memory and skill of the agent that answers here, and the time. Never over the budget."""
        utf8_size(request, "`request`")
        if (
            not isinstance(budget_tokens, int)
            or isinstance(budget_tokens, bool)
            or not BUDGET_MIN <= budget_tokens <= NUMBER_MAX
        ):
            raise InvalidInput(f"`budget_tokens` = {brief(budget_tokens)} must be a whole number of at least {BUDGET_MIN}")
        shown = self.lessons.for_address(scope)
        notes = list(shown.notes)
        agent = Agent(shown.agent)
        try:
            agent = self.agents.find(scope.owner.space, shown.agent) or agent
        except (Corrupt, Unavailable) as error:
            notes.append(str(error))
        local = self.clock.now().astimezone(ZoneInfo(self.zone))
        texts: dict[PartKind, str] = {
            "soul": agent.soul,
            "mood": agent.mood,
            "skill": agent.skill,
            "time": time_line(local, self.zone),
        }
        told = shown.lessons if lessons else ()
        room = budget_tokens + (sum(self.count(one.text) + LESSON_FRAME for one in told) * 4 if self.all_lessons else 0)
        parts, dropped = combine(texts, told, request, room, self.count)
        register_echoes(self.store, self.clock, scope.owner, [part for part in parts if part.kind != "time"])
        tokens = sum(part.tokens for part in parts)
        return Prompt(
            parts=parts,
            tokens=tokens,
            budget_tokens=budget_tokens,
            agent=shown.agent,
            period=period_of(local.hour),
            dropped=dropped,
            notes=tuple(notes),
        )
