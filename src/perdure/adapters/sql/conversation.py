"""Counters, open sessions and digests of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from perdure.adapters.sql.knowledge import SqlJournal
from perdure.adapters.sql.statements import SqlStatements
from perdure.domain.conversation.agent_state import AgentState, Failure, TurnLease
from perdure.domain.conversation.digests import Digest, DigestKind
from perdure.domain.conversation.messages import Session
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.scope import Address, Owner
from perdure.domain.times.instants import to_us
from perdure.ports.tables import conversation as forms
from perdure.ports.tables.log import session_row, to_session
from perdure.ports.tables.table import us_or_none

DIGESTS_PER_SESSION_MAX = 1_000_000


class SqlConversation:
    __slots__ = ("_journal", "_owner", "_run")

    def __init__(self, run: SqlStatements, owner: Owner, journal: SqlJournal) -> None:
        self._run = run
        self._owner = owner
        self._journal = journal

    # -- counters

    def find_agent_state(self, address: Address) -> AgentState | None:
        found = self._run.all("find_agent_state", **_at(address))
        return forms.to_agent_state(found[0]) if found else None

    def lock_turn(self, address: Address) -> TurnLease | None:
        # Two who find no row would both believe that nobody has the floor: so there is always one to lock.
        self._run.send("insert_agent_state", **_at(address))
        [row] = self._run.all(self._run.locked("find_agent_state"), **_at(address))
        return forms.to_turn(row)

    def count_turns(self) -> int:
        [(turns,)] = self._run.all("count_turns")
        return int(turns)

    def count_turn(self, address: Address, turns: int, *, at: datetime, text: str) -> None:
        self._run.send("count_turn", **_at(address), turns=turns, last_at_us=to_us(at), last_text=text)

    def forget_said(self, address: Address) -> None:
        self._run.send("forget_said", **_at(address))

    def configure(self, address: Address, *, profile: str | None, casual: bool, private: bool, shared: bool) -> None:
        flags = {"casual": int(casual), "private": int(private), "shared": int(shared)}
        self._change("configure_agent", address, profile=profile, **flags)

    def note_rolling(self, address: Address, *, tried_at: datetime, done_at: datetime | None, error: Failure | None) -> None:
        self._change(
            "note_rolling",
            address,
            rolling_tried_us=to_us(tried_at),
            rolling_done_us=us_or_none(done_at),
            rolling_error=forms.failure_text(error),
        )

    def note_curated(self, address: Address, *, at: datetime, memories: int) -> None:
        self._change("note_curated", address, curated_us=to_us(at), curated_memories=memories)

    def put_turn(self, address: Address, lease: TurnLease | None) -> None:
        holder, until = (None, None) if lease is None else (lease.holder, to_us(lease.until))
        self._change("put_turn", address, turn_holder=holder, turn_until_us=until)

    def _change(self, name: str, address: Address, **values: str | int | None) -> None:
        """Change some columns of the address, whose row is made first if need be."""
        if self._run.change(name, **values, **_at(address)) == 0:
            self._run.send("insert_agent_state", **_at(address))
            self._run.send(name, **values, **_at(address))

    # -- sessions

    def open_sessions(self, address: Address, *, limit: int) -> list[Session]:
        return [to_session(row) for row in self._run.all("open_sessions", **_at(address), limit=limit)]

    def sessions_to_condense(self, *, limit: int) -> list[Session]:
        return [to_session(row) for row in self._run.all("sessions_to_condense", limit=limit)]

    def sessions_by_activity(self, channel_prefix: str, *, limit: int) -> list[Session]:
        found = self._run.all("sessions_by_activity", prefix=channel_prefix, prefix_length=len(channel_prefix), limit=limit)
        return [to_session(row) for row in found]

    def empty_session(self, session: Session, *, by: Attribution) -> None:
        self.remove_digests(self.list_digests(session.address, session.number, None, limit=DIGESTS_PER_SESSION_MAX), by=by)
        self.cut_session(session, by=by)

    def cut_session(self, session: Session, *, by: Attribution) -> None:
        place = {**_at(session.address), "session_number": session.number}
        for row in self._run.all("find_tally", **place):
            self._journal.record(forms.tally_operation(self._journal.next(), forms.to_tally(row), None, by))
        self._run.send("remove_session_tally", **place)
        for name in ("remove_last_results", "remove_last_calls", "remove_last_messages"):
            self._run.send(name, **place, last_seq=session.messages)
        self._run.put("update_session", [session_row(self._owner, session)])

    # -- digests

    def find_digest(self, address: Address, session_number: int, kind: DigestKind, version: int) -> Digest | None:
        return self._digest("find_digest", address, session_number=session_number, kind=kind, version=version)

    def latest_digest(self, address: Address, session_number: int, kind: DigestKind) -> Digest | None:
        return self._digest("latest_digest", address, session_number=session_number, kind=kind)

    def list_digests(
        self, address: Address, session_number: int | None, kind: DigestKind | None, *, limit: int
    ) -> list[Digest]:
        found = self._run.all("list_digests", **_at(address), session_number=session_number, kind=kind, limit=limit)
        return [forms.to_digest(row) for row in found]

    def put_digest(self, digest: Digest, *, by: Attribution) -> None:
        held = self.find_digest(digest.address, digest.session_number, digest.kind, digest.version)
        operation = self._journal.record(forms.digest_operation(self._journal.next(), held, digest, by))
        row = forms.digest_row(self._owner, digest, operation)
        if held is None:
            self._run.put("insert_digest", [row])
        else:
            self._run.put("mark_digest", [row])

    def remove_digests(self, digests: Sequence[Digest], *, by: Attribution) -> None:
        for digest in digests:
            self._journal.record(forms.digest_operation(self._journal.next(), digest, None, by))
            place = {**_at(digest.address), "session_number": digest.session_number}
            self._run.send("remove_digest", **place, kind=digest.kind, version=digest.version)

    def _digest(self, name: str, address: Address, **values: str | int) -> Digest | None:
        found = self._run.all(name, **_at(address), **values)
        return forms.to_digest(found[0]) if found else None


def _at(address: Address) -> dict[str, Any]:
    return {"agent": address.agent, "channel": address.channel}
