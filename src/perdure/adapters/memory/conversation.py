"""Counters, open sessions and digests in plain dicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from perdure.adapters.memory.held import OwnerRows
from perdure.domain.agents import AgentState, Failure, TurnLease
from perdure.domain.digests import Digest, DigestKind
from perdure.domain.journal import Attribution, Operation
from perdure.domain.messages import Session
from perdure.domain.scope import Address, Owner
from perdure.ports import conversation_rows as forms
from perdure.ports import rows, tallies


class MemoryConversation:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner

    # -- counters

    def find_agent_state(self, address: Address) -> AgentState | None:
        found = self._held.of("agent_states", address.agent, address.channel)
        return forms.to_agent_state(found[0]) if found else None

    def lock_turn(self, address: Address) -> TurnLease | None:
        found = self._held.of("agent_states", address.agent, address.channel)
        return forms.to_turn(found[0]) if found else None

    def count_turns(self) -> int:
        return sum(forms.to_agent_state(row).turns for row in self._held.of("agent_states"))

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
        self._held.put("agent_states", forms.agent_state_row(self._owner, self._state(address), lease))

    def _state(self, address: Address) -> AgentState:
        return self.find_agent_state(address) or AgentState(address)

    def _put(self, state: AgentState) -> None:
        self._held.put("agent_states", forms.agent_state_row(self._owner, state, self.lock_turn(state.address)))

    # -- sessions

    def _sessions(self) -> list[Session]:
        return [rows.to_session(row) for row in self._held.of("sessions")]

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
        place = (session.address.agent, session.address.channel, session.number)
        for row in self._held.of("tallies", *place):
            held = tallies.to_tally(row)
            self._record(tallies.tally_operation(self._next(), held, None, by))
        for row in self._held.of("tool_calls"):
            if (row[2], row[3], row[5]) == place:
                self._held.remove("tool_calls", row[:6])
        for table, key in (("tallies", 5), ("messages", 6)):
            for row in self._held.of(table, *place):
                self._held.remove(table, row[:key])
        self._held.put("sessions", rows.session_row(self._owner, session))

    # -- digests

    def _digests(self) -> list[Digest]:
        return [forms.to_digest(row) for row in self._held.of("digests")]

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
        self._held.put("digests", forms.digest_row(self._owner, digest, operation.seq))

    def remove_digests(self, digests: Sequence[Digest], *, by: Attribution) -> None:
        for digest in digests:
            operation = forms.digest_operation(self._next(), digest, None, by)
            self._record(operation)
            self._held.remove("digests", forms.digest_row(self._owner, digest, operation.seq)[:7])

    # -- the journal

    def _next(self) -> int:
        return len(self._held.tables["operations"]) + 1

    def _record(self, operation: Operation) -> None:
        self._held.put("owners", (self._owner.space, self._owner.user, operation.seq))
        self._held.put("operations", rows.operation_row(self._owner, operation))
