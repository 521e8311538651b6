"""Appending messages: one short transaction that stores them together with the job they cause, and never waits on a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.limits import Limits
from perdure.domain.messages import Message, NewMessage, Session
from perdure.domain.scope import MessageId, Scope, SessionId, ToolCallId
from perdure.engine.appending import AppendPlan, Draft, Placing, draft, tally_job
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx


@dataclass(frozen=True, slots=True)
class Ingest:
    store: Store
    clock: Clock
    limits: Limits
    session_idle: timedelta

    def append(self, scope: Scope, messages: Iterable[NewMessage]) -> list[Message]:
        """Store all of `messages`, in order, or none. Those already held are answered as they are, marked `repeated`."""
        now = self.clock.now()
        drafts: list[Draft] = []
        if not hasattr(messages, "__iter__"):
            raise InvalidInput(f"`messages` is a `{type(messages).__name__}`; pass `perdure.NewMessage` values in a list")
        for message in messages:
            if len(drafts) >= self.limits.batch_messages_max:
                raise LimitExceeded(
                    f"the batch has more than `batch_messages_max` = {self.limits.batch_messages_max} messages; split it"
                )
            drafts.append(draft(message, limits=self.limits, now=now, new_id=self.clock.new_id))
        if not drafts:
            return []
        address, queue_max = scope.address, self.limits.queue_jobs_max

        # Ids made here cannot be held yet, except when the work runs again after an answer was lost.
        given = [one.id for one in drafts if one.message.id is not None]
        runs = 0

        def work(tx: Tx) -> list[Message]:
            nonlocal runs
            runs += 1
            suspects = given if runs == 1 else [one.id for one in drafts]
            plan = self._placed(tx, scope, drafts, suspects)
            if plan.messages:
                tx.put_sessions(plan.sessions.values())
                tx.append(plan.messages)
                if plan.calls:
                    tx.put_calls(address, plan.calls.values())
                for number in {message.session_number for message in plan.messages}:
                    tx.enqueue(tally_job(address, number, now), now=now, queue_max=queue_max)
            return plan.results

        return self.store.write(scope.owner, work)

    def _placed(self, tx: Tx, scope: Scope, drafts: Sequence[Draft], suspects: Sequence[MessageId]) -> AppendPlan:
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
        placing = Placing(
            address=address,
            idle=self.session_idle,
            new_id=self.clock.new_id,
            held=held,
            latest=latest,
            named=named,
            calls=calls,
        )
        return placing.place_all(drafts)
