"""The context of one request: closes what has ended, folds what is over its bounds, then packs what there is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from perdure.domain.context import Context
from perdure.domain.digests import SPINE_ADDRESS, SPINE_SESSION
from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.layers import Layers
from perdure.domain.limits import NUMBER_MAX
from perdure.domain.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.scope import Address, Scope
from perdure.domain.text import brief
from perdure.engine.assembling import Remembered, assemble
from perdure.engine.upkeep import session_job
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.echoing import register_echoes
from perdure.services.folding import Folding, Where
from perdure.services.knowing import Knowing
from perdure.services.summarising import SummaryFailed
from perdure.services.sweeping import JOBS_MAX, OPEN_SESSIONS_MAX, Sweeping, end_if_silent

BUDGET_MIN = 100
FOLD_S = 10.0
"""How long a request waits for a model to fold what is over its bounds; then it goes on without, and a job folds."""
TAIL_MESSAGES = 6
WORKING_SHOWN_MAX = 500
QUESTION_PAGES_MAX = 20


@dataclass(frozen=True, slots=True)
class Assembly:
    store: Store
    clock: Clock
    layers: Layers
    idle: timedelta
    folding: Folding
    sweeping: Sweeping
    count: Callable[[str], int]
    knowing: Knowing

    def context(self, scope: Scope, *, goal: str | None = None, budget_tokens: int | None) -> Context:
        """What the agent should be given now, and for a goal. Never over the budget."""
        budget = self.layers.history_tokens_max if budget_tokens is None else budget_tokens
        if not isinstance(budget, int) or isinstance(budget, bool) or not BUDGET_MIN <= budget <= NUMBER_MAX:
            raise InvalidInput(f"`budget_tokens` = {brief(budget)} must be a whole number of at least {BUDGET_MIN}")
        notes = self._settle(scope)
        known, answer = self.knowing.known(scope, goal, budget)
        remembered, working, unread = self.store.read(scope.owner, lambda view: self._read(view, scope.address))
        packed = assemble(remembered, known, working, budget, self.count, unread=unread)
        notes += [note for one in known.lists for note in one.notes]
        notes += [] if answer is None else answer.uncovered.lines()
        register_echoes(self.store, self.clock, scope.owner, packed.blocks)
        return replace(packed, notes=tuple(notes))

    def _settle(self, scope: Scope) -> list[str]:
        """End a session that is silent for too long, and fold what is due before the agent answers."""
        now = self.clock.now()

        def look(view: View) -> tuple[list[Session], frozenset[str], bool]:
            open_ones = view.conversation.open_sessions(scope.address, limit=OPEN_SESSIONS_MAX)
            return open_ones, *self.sweeping.policies(view, scope.address)

        found, policies, casual = self.store.read(scope.owner, look)
        silent = [session for session in found if now - session.last_at > self.idle]

        def end(tx: Tx) -> None:
            for session in silent:
                end_if_silent(tx, session, now)

        if silent:
            self.store.write(scope.owner, end)
        session = next((session for session in found if session not in silent), None)
        if session is None:
            return []
        where = Where(scope.owner, scope.address, session.number)
        until = time.monotonic() + FOLD_S
        notes: list[str] = []
        if "request_fold" in policies and session.working >= self.layers.fold_messages_min:
            self._tried(where, "request_fold", lambda: self.folding.fold_request(where, casual=casual, until=until), notes)
        number = session.number
        fold = self.store.read(scope.owner, lambda view: view.conversation.latest_digest(scope.address, number, "fold"))
        if "bounded_history" in policies and self.sweeping.is_over(session, fold):
            self._tried(where, "bounded_history", lambda: self.folding.bound(where, casual=casual, until=until), notes)
        return notes

    def _tried(self, where: Where, kind: str, fold: Callable[[], object], notes: list[str]) -> None:
        """Fold now; if that fails, everything stays as it was, and a job tries again.

        While that job is at it, or waits after a failure of its own, no request waits for the same in vain.
        """
        now = self.clock.now()
        job = session_job(kind, where.address, where.number, now)
        held = self.store.read(where.owner, lambda view: view.find_job(job.kind, job.key))
        if held is not None and held.attempts and held.due_at is not None and held.due_at > now:
            notes.append(f"{kind}: left to its job, which is at it or tries again at {held.due_at:%H:%M:%S} UTC")
            return
        try:
            fold()
        except (SummaryFailed, Conflict, NotFound) as error:
            notes.append(f"{kind}: {error}")
            self.store.write(where.owner, lambda tx: tx.enqueue(job, now=now, queue_max=JOBS_MAX))

    def _read(self, view: View, address: Address) -> tuple[Remembered, list[Message], int]:
        talk = view.conversation
        spine = talk.latest_digest(SPINE_ADDRESS, SPINE_SESSION, "spine")
        session = _current(view, address)
        if session is None:
            return Remembered(spine=spine), [], 0
        if session.ended_at is not None:
            # Nothing is open: what comes next is a new session, and this one is the one before it.
            return self._with_previous(view, Remembered(spine=spine), session), [], 0
        number = session.number
        query = MessageQuery(
            address, WORKING_SHOWN_MAX, number,
            # The newest ones: more than these can only be there while a fold is waiting for its job.
            before=Cursor(number + 1, 0) if session.working > WORKING_SHOWN_MAX else None,
            after=Cursor(number, session.boundary_seq) if session.working <= WORKING_SHOWN_MAX else None,
        )  # fmt: skip
        rolling = talk.latest_digest(address, number, "rolling")
        remembered = Remembered(
            spine=spine,
            # What is wholly in the working set needs no words about it.
            rolling=rolling if session.boundary_seq else None,
            fold=talk.latest_digest(address, number, "fold") if session.boundary_seq else None,
        )
        before = _before(view, address, number)
        if before is not None:
            remembered = self._with_previous(view, remembered, before)
            if rolling is not None:
                remembered = replace(remembered, left_off=None)
        working = view.list_messages(query)
        if working and all(message.role != "user" for message in working):
            # A turn so long that its question lies further back: without it, nobody knows what this is about.
            working = [*_question(view, session, working[0].seq), *working]
        return remembered, working, session.working - len(working)

    def _with_previous(self, view: View, remembered: Remembered, before: Session) -> Remembered:
        talk = view.conversation
        digest = talk.latest_digest(before.address, before.number, "session")
        left_off = talk.latest_digest(before.address, before.number, "rolling")
        tail: list[Message] = []
        if digest is None or digest.last_seq < before.messages:
            policies, _ = self.sweeping.policies(view, before.address)
            if "session_digest" in policies:
                tail = view.list_messages(MessageQuery(before.address, TAIL_MESSAGES, before.number))
        return replace(remembered, previous=digest, left_off=left_off, previous_tail=tuple(tail))


def _current(view: View, address: Address) -> Session | None:
    """The session that goes on, or else the newest there is."""
    found = view.conversation.open_sessions(address, limit=1) or view.list_sessions(address, limit=1)
    return found[0] if found else None


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


def _before(view: View, address: Address, number: int) -> Session | None:
    found = view.list_sessions(address, limit=1, before=number)
    return found[0] if found else None
