"""Appending messages: one short transaction that stores them together with the job they cause. Nothing is read in them here.

A turn holds the lock of a channel: one at a time, by a lease that a crashed holder loses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from perdure.domain.conversation.agent_state import TurnLease, beginning
from perdure.domain.conversation.messages import ClientMessage, Message, NewMessage, Session
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded, PerdureError, Unavailable
from perdure.domain.knowledge.memories import WRITER_KEY, Writer
from perdure.domain.limits import Limits
from perdure.domain.scope import Address, MessageId, Scope, SessionId, ToolCallId
from perdure.domain.text.rules import are_several, brief
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.append import AppendPlan, DraftRules, LogPlacement, MessageDraft, draft
from perdure.engine.conversation.client_forms import client_messages
from perdure.engine.conversation.jobs import TALLY, session_job
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx


@dataclass(frozen=True, slots=True)
class Appender:
    store: Store
    clock: Clock
    limits: Limits
    session_idle: timedelta
    count: Callable[[str], int]
    """Counts the tokens of messages that come without a count."""
    writer: Writer = "user"
    """Who logs: what an agent logs is its word, whatever role it gives."""

    def append(
        self,
        scope: Scope,
        messages: Iterable[NewMessage | Mapping[str, Any] | ClientMessage],
        *,
        holder: str | None = None,
    ) -> list[Message]:
        """Store all of `messages`, in order, or none. Those already held are answered as they are, marked `repeated`.

        With `holder`, only while that holder has the floor of the channel; else it is a `Conflict`.
        """
        drafts: list[MessageDraft] = []
        if not are_several(messages):
            raise InvalidInput(f"`messages` is a `{type(messages).__name__}`; pass a list of messages")
        by = self.drafting(self.clock.now())
        for place, given_one in enumerate(messages, 1):
            drafts += map(self._marked, self._drafts(given_one, f"message {place}", by))
            if len(drafts) > self.limits.batch_messages_max:
                raise LimitExceeded(
                    f"the batch has more than `batch_messages_max` = {self.limits.batch_messages_max} messages; split it"
                )
        if not drafts:
            return []
        # Ids made here cannot be held yet, except when the work runs again after an answer was lost.
        given = [one.id for one in drafts if one.message.id is not None]
        runs = 0

        def work(tx: Tx) -> list[Message]:
            nonlocal runs
            runs += 1
            suspects = given if runs == 1 else [one.id for one in drafts]
            if holder is not None:
                # The session is locked first, as everywhere: in another order, two could wait for each other.
                tx.latest_session(scope.address)
                check_floor(tx, scope.address, holder, self.clock.now())
            return self.put(tx, scope, drafts, suspects, now=by.now)

        return self.store.write(scope.owner, work)

    def _drafts(self, given: NewMessage | Mapping[str, Any] | ClientMessage, where: str, by: DraftRules) -> list[MessageDraft]:
        """A message as it will be placed; one of a client may be several."""
        if isinstance(given, NewMessage):
            return [draft(given, by)]
        # A list of a client may begin after a call whose result it has.
        return [replace(draft(one, by), may_be_stray=True) for one in client_messages(given, where, by.new_id)]

    def drafting(self, now: datetime) -> DraftRules:
        """What makes drafts of messages that arrive now."""
        return DraftRules(self.limits, now, self.clock.new_id, self.count)

    def _marked(self, made: MessageDraft) -> MessageDraft:
        if self.writer == "user" or made.message.role != "user":
            return made
        return replace(made, metadata={**made.metadata, WRITER_KEY: self.writer})

    def put(
        self, tx: Tx, scope: Scope, drafts: Sequence[MessageDraft], suspects: Sequence[MessageId], *, now: datetime
    ) -> list[Message]:
        """`append` as part of a transaction. `suspects` are the ids that may be held already."""
        address, queue_max = scope.address, self.limits.queue_jobs_max
        plan = self._placed(tx, scope, drafts, suspects, now)
        if plan.messages:
            tx.put_sessions(plan.sessions.values())
            tx.append(plan.messages)
            if any(one.seq == 1 for one in plan.messages):
                tx.index.begin()
            if plan.calls:
                tx.put_calls(address, plan.calls.values())
            _count_turns(tx, address, plan.messages)
            for number in {*plan.closed, *(message.session_number for message in plan.messages)}:
                tx.enqueue(session_job(TALLY, address, number, now), now=now, queue_max=queue_max)
        return plan.results

    def _placed(
        self, tx: Tx, scope: Scope, drafts: Sequence[MessageDraft], suspects: Sequence[MessageId], now: datetime
    ) -> AppendPlan:
        address = scope.address
        # The session is read first: on stores with row locks, that is what keeps rivals out until we are done.
        latest = tx.latest_session(address)
        held = tx.find_messages(suspects) if suspects else {}
        call_ids = [ToolCallId(one.message.tool_call_id) for one in drafts if one.message.tool_call_id is not None]
        call_ids += [call.id for one in drafts for call in one.tool_calls]
        calls = tx.find_calls(address, call_ids) if call_ids else []
        wanted: set[SessionId | int] = {SessionId(one.message.session) for one in drafts if one.message.session is not None}
        wanted |= {call.session_number for call in calls}
        # In one order everywhere, so that two writers that lock the same sessions cannot block each other.
        sessions = [tx.find_session(address, name) for name in sorted(wanted, key=str)]
        named: dict[str, Session] = {session.id: session for session in sessions if session is not None}
        resumed = None
        if latest is not None and latest.ended_at is not None:
            for other in tx.conversation.open_sessions(address, limit=1):
                # Looked up once more, because that is what keeps rivals off its row.
                resumed = tx.find_session(address, other.id)
                if resumed is not None:
                    named[resumed.id] = resumed
        placing = LogPlacement(
            address=address,
            idle=self.session_idle,
            new_id=self.clock.new_id,
            held=held,
            latest=latest,
            named=named,
            now=now,
            calls=calls,
            resumed=resumed,
        )
        return placing.place_all(drafts)


def check_floor(tx: Tx, address: Address, holder: str, now: datetime) -> None:
    """`Conflict` unless `holder` has the floor of the channel."""
    lease = tx.conversation.lock_turn(address)
    if lease is None or lease.holder != holder or lease.until <= now:
        raise Conflict("this turn has lost the channel: its lease ended, and another may have begun; start a new turn")


def _count_turns(tx: Tx, address: Address, messages: Sequence[Message]) -> None:
    said = [message for message in messages if message.role == "user"]
    if said:
        latest = max(reversed(said), key=lambda message: message.at)
        tx.conversation.count_turn(address, len(said), at=latest.at, text=beginning(latest.content))


POLL_S = 0.05
LEASE_S = 20.0
WAIT_S = 30.0
"""Longer than a lease: anyone who waits outlives a holder that has died."""
SECONDS_MAX = 86_400.0


@dataclass(frozen=True, slots=True)
class Turns:
    store: Store
    clock: Clock

    def take(self, scope: Scope, *, wait_s: float, lease_s: float) -> HeldTurn:
        """The floor of the channel, waiting for its holder; `Unavailable` when that takes longer than `wait_s`."""
        for name, value in (("wait_s", wait_s), ("lease_s", lease_s)):
            least = 0 if name == "wait_s" else 1
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= SECONDS_MAX:
                raise InvalidInput(f"`{name}` = {brief(value)} must be a number of seconds from {least} to {SECONDS_MAX:g}")
        holder = self.clock.new_id()
        pause = threading.Event()
        waited = 0.0
        while not self._take(scope, holder, lease_s):
            if waited >= wait_s:
                raise Unavailable(
                    f"another turn has held this channel for {wait_s:g} s; wait longer with `wait_s`, or try later",
                    retry_after_s=lease_s,
                )
            pause.wait(POLL_S)
            waited += POLL_S
        return HeldTurn(self, scope, holder, lease_s)

    def _take(self, scope: Scope, holder: str, lease_s: float) -> bool:
        now = self.clock.now()
        until = now + timedelta(seconds=lease_s)

        def work(tx: Tx) -> bool:
            held = tx.conversation.lock_turn(scope.address)
            # A lease that ends later than any could was taken before the clock was set back.
            if held is not None and held.holder != holder and now < held.until <= now + timedelta(seconds=SECONDS_MAX):
                return False
            tx.conversation.put_turn(scope.address, TurnLease(holder, until))
            return True

        return self.store.write(scope.owner, work)

    def prolong(self, scope: Scope, holder: str, lease_s: float) -> bool:
        """False if the floor is another's by now."""
        until = self.clock.now() + timedelta(seconds=lease_s)

        def work(tx: Tx) -> bool:
            held = tx.conversation.lock_turn(scope.address)
            if held is None or held.holder != holder:
                return False
            tx.conversation.put_turn(scope.address, TurnLease(holder, until))
            return True

        return self.store.write(scope.owner, work)

    def give_back(self, scope: Scope, holder: str) -> None:
        def work(tx: Tx) -> None:
            held = tx.conversation.lock_turn(scope.address)
            if held is not None and held.holder == holder:
                tx.conversation.put_turn(scope.address, None)

        self.store.write(scope.owner, work)


class HeldTurn:
    """A taken floor, prolonged by a thread of its own until it is given back or its process ends."""

    def __init__(self, turns: Turns, scope: Scope, holder: str, lease_s: float) -> None:
        self._turns = turns
        self._scope = scope
        self._lease_s = lease_s
        self.holder = holder
        self.missed = 0
        """Prolongations that the store refused or could not make."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="perdure-turn", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Give the floor back."""
        self._stop.set()
        self._thread.join()
        self._turns.give_back(self._scope, self.holder)

    def _keep(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            try:
                if not self._turns.prolong(self._scope, self.holder, self._lease_s):
                    self.missed += 1
                    return
            except PerdureError:
                # Another may take the floor now; the appends of this turn then say so.
                self.missed += 1
