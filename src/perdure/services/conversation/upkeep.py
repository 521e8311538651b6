"""What follows from messages and from silence: which layers are due, which sessions have ended, and what that causes.

The first derived data: counts per session, brought up to date by a job after messages arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from perdure.domain.conversation.digests import PROFILES, SPINE_ADDRESS, SPINE_SESSION, Digest, Layers, Policy
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.conversation.tally import Tally, extended
from perdure.domain.jobs import Job, NewJob
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.scope import Address, Owner
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import (
    CURATE,
    EXTRACT,
    JUST_AFTER,
    SWEEP,
    TALLY,
    TRANSCRIPT,
    address_job,
    next_slot,
    session_job,
)
from perdure.engine.knowledge.curator import is_due
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.access import OwnerVersion
from perdure.services.conversation.digests import covered, rolling_is_due, spine_is_due
from perdure.services.conversation.folds import Folds, SessionKey, working_tokens
from perdure.services.index.unread import SessionPlace
from perdure.services.jobs.worker import Effect, Handler, RunLater
from perdure.services.knowledge.ledger import count_active
from perdure.services.models.writer import SummaryFailed

OPEN_SESSIONS_MAX = 1_000
JOBS_MAX = 2**31
"""Work that other work causes is not turned away: the messages it is about were accepted."""


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Handlers of the jobs that decide what else is to be done at an address."""

    store: Store
    clock: Clock
    layers: Layers
    idle: timedelta
    profile: str
    folds: Folds
    transcripts: bool
    """Whether transcripts are kept."""
    counted: int = 1
    """What the spine counts for each exchange."""

    def policies(self, view: View, address: Address) -> tuple[frozenset[Policy], bool]:
        """The layers of an address, and whether its talk is casual."""
        state = view.conversation.find_agent_state(address)
        if state is None:
            return PROFILES[self.profile], False
        return PROFILES[state.profile or self.profile], state.casual

    def after_messages(self, address: Address, number: int) -> Effect:
        """Enqueue what the newest messages of a session, or its end, make due. Part of the job that counts them."""
        now = self.clock.now()

        def effect(tx: Tx) -> None:
            session = tx.find_session(address, number)
            if session is None or session.deleted_at is not None:
                return
            for job in self._due(tx, session, now):
                tx.enqueue(job, now=now, queue_max=JOBS_MAX)

        return effect

    def _due(self, view: View, session: Session, now: datetime) -> list[NewJob]:
        address, number = session.address, session.number
        policies, _ = self.policies(view, address)
        talk = view.conversation
        jobs = []
        ended = session.ended_at is not None
        if session.messages > session.learned_seq:
            jobs.append(session_job(EXTRACT, address, number, now))
        state = talk.find_agent_state(address)
        curated = (None, None) if state is None else (state.curated_at, state.curated_memories)
        if is_due(now, count_active(view.records), *curated):
            jobs.append(address_job(CURATE, address, now))
        if not ended:
            # A time in the future, from a clock that was wrong, must not keep a session open until then.
            jobs.append(address_job(SWEEP, address, min(session.last_at, now) + self.idle + JUST_AFTER))
        elif "session_digest" in policies and session.messages > covered(talk.latest_digest(address, number, "session")):
            jobs.append(session_job("session_digest", address, number, now))
        if self.transcripts:
            # A session that is cleared is written down, however short it was.
            always = {"always": True} if ended and "periodic_flush" in policies else None
            jobs.append(session_job(TRANSCRIPT, address, number, now, always))
        if "periodic_flush" in policies and session.working:
            due = now if ended else next_slot(f"every:{self.layers.flush_every_s}", now)
            jobs.append(session_job("periodic_flush", address, number, due))
        if "bounded_history" in policies and self.is_over(session, talk.latest_digest(address, number, "fold")):
            jobs.append(session_job("bounded_history", address, number, now))
        if "rolling_digest" in policies and rolling_is_due(
            session, talk.latest_digest(address, number, "rolling"), self.layers
        ):
            jobs.append(session_job("rolling_digest", address, number, now))
        if "spine" in policies and spine_is_due(
            talk.count_turns(), talk.latest_digest(SPINE_ADDRESS, SPINE_SESSION, "spine"), self.layers, self.counted
        ):
            jobs.append(session_job("spine", SPINE_ADDRESS, SPINE_SESSION, now))
        return jobs

    def is_over(self, session: Session, fold: Digest | None) -> bool:
        """Whether the working set of a session is over its bounds; `fold` is its newest."""
        tokens = working_tokens(session, fold)
        return session.working > self.layers.history_messages_max or tokens > self.layers.history_tokens_max

    # -- silence

    def sweep(self, job: Job) -> Effect | RunLater | None:
        """Close the sessions of an address that have been silent for too long; come back when the next one may be."""
        address = Address(job.payload["agent"], job.payload["channel"])
        now = self.clock.now()
        sessions = self.store.read(job.owner, lambda view: view.conversation.open_sessions(address, limit=OPEN_SESSIONS_MAX))
        silent = [session for session in sessions if now - session.last_at > self.idle]
        waiting = [min(session.last_at, now) + self.idle + JUST_AFTER for session in sessions if session not in silent]

        def effect(tx: Tx) -> None:
            for session in silent:
                end_if_silent(tx, session, now)

        # A clock that was set back must not make it wait for longer than a silence can last.
        return RunLater(min(*waiting, now + self.idle + JUST_AFTER), effect) if waiting else effect

    # -- folds as jobs

    def bound(self, job: Job) -> None:
        self._folded(job, lambda where, casual: self.folds.bound(where, casual=casual))

    def fold_request(self, job: Job) -> None:
        self._folded(job, lambda where, casual: self.folds.fold_request(where, casual=casual))

    def flush(self, job: Job) -> RunLater | None:
        now = self.clock.now()
        self._folded(job, lambda where, casual: self.folds.flush(where, casual=casual, now=now))
        address, number = Address(job.payload["agent"], job.payload["channel"]), job.payload["session_number"]
        session = self.store.read(job.owner, lambda view: view.find_session(address, number))
        if session is None or session.ended_at is not None or session.working == 0:
            return None
        # What is left waits for its silence.
        return RunLater(next_slot(f"every:{self.layers.flush_every_s}", now))

    def _folded(self, job: Job, fold: Callable[[SessionKey, bool], object]) -> None:
        """Run a fold. It is applied by compare-and-set, so a second run finds nothing left to do.

        At the last try it is written offline, as small talk is: a model that is away for long must not leave work undone.
        """
        where = SessionKey(job.owner, Address(job.payload["agent"], job.payload["channel"]), job.payload["session_number"])

        def read(view: View) -> tuple[bool, bool]:
            session = view.find_session(where.address, where.number)
            return session is not None and session.deleted_at is None, self.policies(view, where.address)[1]

        there, casual = self.store.read(where.owner, read)
        if not there:
            return
        try:
            fold(where, casual)
        except SummaryFailed:
            if job.attempts < job.attempts_max:
                raise
            fold(where, True)


def end_if_silent(tx: Tx, seen: Session, now: datetime) -> None:
    """End it, unless somebody spoke since it was seen, or was faster."""
    session = tx.find_session(seen.address, seen.number)
    if session is not None and session.ended_at is None and session.last_at == seen.last_at:
        end_session(tx, session, now)


def end_session(tx: Tx, session: Session, now: datetime) -> Session:
    """End it at its last activity, and have looked at what that makes due."""
    ended = replace(session, ended_at=session.last_at)
    tx.put_sessions([ended])
    tx.enqueue(session_job(TALLY, session.address, session.number, now), now=now, queue_max=JOBS_MAX)
    return ended


ACTOR = "tally/1"
MESSAGES_PER_RUN = 1_000


def tally_handler(
    store: Store,
    clock: Clock,
    read_up_to: Callable[[Owner, SessionPlace, int], None],
    after: Callable[[Address, int], Effect] | None = None,
    *,
    messages_per_run: int = MESSAGES_PER_RUN,
) -> Handler:
    """What it counts is read by `read_up_to` first. `after` gives what else the newest messages of a session cause; it is
    committed together with the count.
    """

    def handle(job: Job) -> Effect | None:
        address = Address(job.payload["agent"], job.payload["channel"])
        number: int = job.payload["session_number"]

        def read(view: View) -> tuple[OwnerVersion, Tally, list[Message]]:
            seen, found = view.together(view.accesses.version, partial(view.find_tally, address, number))
            held = found or Tally(address, number)
            query = MessageQuery(address, messages_per_run, number, after=Cursor(number, held.up_to_seq))
            return seen, held, view.list_messages(query)

        seen, held, messages = store.read(job.owner, read)
        if not messages:
            return None if after is None else after(address, number)
        read_up_to(job.owner, (address, number), messages[-1].seq)
        now = clock.now()
        counted = extended(held, messages)
        by = Attribution(ACTOR, now, f"messages {messages[0].seq} to {messages[-1].seq} arrived")

        def effect(tx: Tx) -> None:
            session = tx.find_session(address, number)
            if session is None or session.deleted_at is not None:
                return  # deleted while this was counted
            # What was counted may be gone by now, and others in its place: a session may go on under the id of a deleted one.
            whole = tx.accesses.version().holds_since(seen)
            if whole:
                tx.put_tally(counted, by=by)
                if after is not None:
                    after(address, number)(tx)
            if not whole or len(messages) == messages_per_run:
                # More may be waiting: the job marks itself to run again.
                tx.enqueue(session_job(TALLY, address, number, now), now=now, queue_max=2**31)

        return effect

    return handle
