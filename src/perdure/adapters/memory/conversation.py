"""Counters, open sessions and digests in plain dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.conversation.agent_state import AgentState, Failure, TurnLease
from perdure.domain.conversation.digests import Digest, DigestKind
from perdure.domain.conversation.messages import Session
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.scope import Address
from perdure.ports.tables import conversation as forms
from perdure.ports.tables.conversation import AGENT_STATES, DIGESTS, TALLIES
from perdure.ports.tables.knowledge import OPERATIONS, OWNERS, OwnerRow, operation_row
from perdure.ports.tables.log import MESSAGES, SESSIONS, TOOL_CALLS, session_row, to_session


class MemoryConversation:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner

    # -- counters

    def find_agent_state(self, address: Address) -> AgentState | None:
        row = self._tables.find(AGENT_STATES, address.agent, address.channel)
        return None if row is None else forms.to_agent_state(row)

    def lock_turn(self, address: Address) -> TurnLease | None:
        row = self._tables.find(AGENT_STATES, address.agent, address.channel)
        return None if row is None else forms.to_turn(row)

    def count_turns(self) -> int:
        return sum(forms.to_agent_state(row).turns for row in self._tables.of(AGENT_STATES))

    def count_turn(self, address: Address, turns: int, *, at: datetime, text: str) -> None:
        held = self._state(address)
        if held.last_at is not None and held.last_at > at:
            at, text = held.last_at, held.last_text or ""
        self._put(replace(held, turns=held.turns + turns, last_at=at, last_text=text))

    def forget_said(self, address: Address) -> None:
        held = self.find_agent_state(address)
        if held is not None:
            self._put(replace(held, last_text=None))

    def configure(self, address: Address, *, profile: str | None, casual: bool, private: bool, shared: bool) -> None:
        self._put(replace(self._state(address), profile=profile, casual=casual, private=private, shared=shared))

    def note_rolling(self, address: Address, *, tried_at: datetime, done_at: datetime | None, error: Failure | None) -> None:
        held = self._state(address)
        done = held.rolling_done_at if done_at is None else done_at
        self._put(replace(held, rolling_tried_at=tried_at, rolling_done_at=done, rolling_error=error))

    def note_curated(self, address: Address, *, at: datetime, memories: int) -> None:
        self._put(replace(self._state(address), curated_at=at, curated_memories=memories))

    def put_turn(self, address: Address, lease: TurnLease | None) -> None:
        self._tables.put(AGENT_STATES, forms.agent_state_row(self._owner, self._state(address), lease))

    def _state(self, address: Address) -> AgentState:
        return self.find_agent_state(address) or AgentState(address)

    def _put(self, state: AgentState) -> None:
        self._tables.put(AGENT_STATES, forms.agent_state_row(self._owner, state, self.lock_turn(state.address)))

    # -- sessions

    def _sessions(self) -> list[Session]:
        return [to_session(row) for row in self._tables.of(SESSIONS)]

    def open_sessions(self, address: Address, *, limit: int) -> list[Session]:
        found = [session for session in self._sessions() if session.address == address and session.ended_at is None]
        return sorted(found, key=lambda session: -session.number)[:limit]

    def sessions_to_condense(self, *, limit: int) -> list[Session]:
        return [session for session in self._sessions() if session.messages > session.spine_seq][:limit]

    def sessions_by_activity(self, channel_prefix: str, *, limit: int) -> list[Session]:
        found = [
            session
            for session in self._sessions()
            if session.address.channel.startswith(channel_prefix) and session.deleted_at is None
        ]
        found.sort(key=lambda session: (session.address.agent, session.address.channel, -session.number))
        return sorted(found, key=lambda session: session.last_at, reverse=True)[:limit]

    def empty_session(self, session: Session, *, by: Attribution) -> None:
        self.remove_digests(self.list_digests(session.address, session.number, None, limit=2**62), by=by)
        self.cut_session(session, by=by)

    def cut_session(self, session: Session, *, by: Attribution) -> None:
        place = (session.address.agent, session.address.channel, session.number)
        for tally in self._tables.of(TALLIES, *place):
            self._record(forms.tally_operation(self._next(), forms.to_tally(tally), None, by))
            self._tables.remove(TALLIES, tally)
        for call in self._tables.of(TOOL_CALLS):
            if (call.agent, call.channel, call.session_number) != place:
                continue
            if call.call_seq > session.messages:
                self._tables.remove(TOOL_CALLS, call)
            elif call.result_seq is not None and call.result_seq > session.messages:
                self._tables.put(TOOL_CALLS, call._replace(result_seq=None, failed=0))
        for message in self._tables.of(MESSAGES, *place):
            if message.seq > session.messages:
                self._tables.remove(MESSAGES, message)
        self._tables.put(SESSIONS, session_row(self._owner, session))

    # -- digests

    def _digests(self) -> list[Digest]:
        return [forms.to_digest(row) for row in self._tables.of(DIGESTS)]

    def find_digest(self, address: Address, session_number: int, kind: DigestKind, version: int) -> Digest | None:
        of_kind = self.list_digests(address, session_number, kind, limit=2**62)
        return next((digest for digest in of_kind if digest.version == version), None)

    def latest_digest(self, address: Address, session_number: int, kind: DigestKind) -> Digest | None:
        of_kind = self.list_digests(address, session_number, kind, limit=2**62)
        return next((digest for digest in of_kind if not digest.undone), None)

    def list_digests(
        self, address: Address, session_number: int | None, kind: DigestKind | None, *, limit: int
    ) -> list[Digest]:
        found = [
            digest
            for digest in self._digests()
            if digest.address == address and session_number in (None, digest.session_number) and kind in (None, digest.kind)
        ]
        return sorted(found, key=lambda digest: (-digest.session_number, digest.kind, -digest.version))[:limit]

    def put_digest(self, digest: Digest, *, by: Attribution) -> None:
        held = self.find_digest(digest.address, digest.session_number, digest.kind, digest.version)
        operation = forms.digest_operation(self._next(), held, digest, by)
        self._record(operation)
        self._tables.put(DIGESTS, forms.digest_row(self._owner, digest, operation.seq))

    def remove_digests(self, digests: Sequence[Digest], *, by: Attribution) -> None:
        for digest in digests:
            self._record(forms.digest_operation(self._next(), digest, None, by))
            place = (digest.address.agent, digest.address.channel, digest.session_number)
            self._tables.remove_key(DIGESTS, *place, digest.kind, digest.version)

    # -- the journal

    def _next(self) -> int:
        return len(self._tables.each(OPERATIONS)) + 1

    def _record(self, operation: Operation) -> None:
        self._tables.put(OWNERS, OwnerRow(self._owner.space, self._owner.user, operation.seq))
        self._tables.put(OPERATIONS, operation_row(self._owner, operation))
