"""Counters, open sessions and digests of one owner in a SQL database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from perdure.adapters.sqljournal import SqlJournal
from perdure.adapters.statements import Statements
from perdure.domain.agents import AgentState, Failure, TurnLease
from perdure.domain.digests import Digest, DigestKind
from perdure.domain.journal import Attribution
from perdure.domain.messages import Session
from perdure.domain.scope import Address, Owner
from perdure.domain.times import to_us
from perdure.ports import conversation_rows as forms
from perdure.ports import rows, tallies

DIGESTS_PER_SESSION_MAX = 1_000_000


class SqlConversation:
    __slots__ = ("_journal", "_owner", "_prefix", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)
        self._journal = SqlJournal(run, owner)

    def _at(self, address: Address) -> tuple[str, str, str, str]:
        return (*self._prefix, address.agent, address.channel)

    # -- counters

    def find_agent_state(self, address: Address) -> AgentState | None:
        found = self._run.all("find_agent_state", self._at(address))
        return forms.to_agent_state(found[0]) if found else None

    def lock_turn(self, address: Address) -> TurnLease | None:
        # Two who find no row would both believe that nobody has the floor: so there is always one to lock.
        self._run.change("insert_agent_state", self._at(address))
        [row] = self._run.all(self._run.locked("find_agent_state"), self._at(address))
        return forms.to_turn(row)

    def count_turns(self) -> int:
        [(turns,)] = self._run.all("count_turns", self._prefix)
        return int(turns)

    def count_turn(self, address: Address, turns: int, *, at: datetime, text: str) -> None:
        self._run.change("count_turn", (*self._at(address), turns, to_us(at), text))

    def forget_said(self, address: Address) -> None:
        self._run.change("forget_said", self._at(address))

    def configure(self, address: Address, *, profile: str | None, casual: bool, private: bool, shared: bool) -> None:
        self._change("configure_agent", address, profile, int(casual), int(private), int(shared))

    def note_rolling(self, address: Address, *, tried_at: datetime, done_at: datetime | None, error: Failure | None) -> None:
        done = None if done_at is None else to_us(done_at)
        self._change("note_rolling", address, to_us(tried_at), done, forms.failure_text(error))

    def note_curated(self, address: Address, *, at: datetime, memories: int) -> None:
        self._change("note_curated", address, to_us(at), memories)

    def put_turn(self, address: Address, lease: TurnLease | None) -> None:
        self._change(
            "put_turn", address, None if lease is None else lease.holder, None if lease is None else to_us(lease.until)
        )

    def _change(self, name: str, address: Address, *values: str | int | None) -> None:
        """Change some columns of the address, whose row is made first if need be."""
        if self._run.change(name, (*values, *self._at(address))) == 0:
            self._run.change("insert_agent_state", self._at(address))
            self._run.change(name, (*values, *self._at(address)))

    # -- sessions

    def open_sessions(self, address: Address, *, limit: int) -> list[Session]:
        return [rows.to_session(row) for row in self._run.all("open_sessions", (*self._at(address), limit))]

    def sessions_to_condense(self, *, limit: int) -> list[Session]:
        return [rows.to_session(row) for row in self._run.all("sessions_to_condense", (*self._prefix, limit))]

    def sessions_by_activity(self, channel_prefix: str, *, limit: int) -> list[Session]:
        values = (*self._prefix, len(channel_prefix), channel_prefix, limit)
        return [rows.to_session(row) for row in self._run.all("sessions_by_activity", values)]

    def empty_session(self, session: Session, *, by: Attribution) -> None:
        place = (*self._at(session.address), session.number)
        self.remove_digests(self.list_digests(session.address, session.number, None, limit=DIGESTS_PER_SESSION_MAX), by=by)
        for row in self._run.all("find_tally", place):
            self._journal.record(partial(tallies.tally_operation, held=tallies.to_tally(row), tally=None, by=by))
        for name in ("remove_session_calls", "remove_session_tally", "remove_session_messages"):
            self._run.change(name, place)
        row = rows.session_row(self._owner, session)
        self._run.change("update_session", row[7:] + row[:6])

    # -- digests

    def find_digest(self, address: Address, session_number: int, kind: DigestKind, version: int) -> Digest | None:
        return self._digest("find_digest", address, session_number, kind, version)

    def latest_digest(self, address: Address, session_number: int, kind: DigestKind) -> Digest | None:
        return self._digest("latest_digest", address, session_number, kind)

    def list_digests(
        self, address: Address, session_number: int | None, kind: DigestKind | None, *, limit: int
    ) -> list[Digest]:
        values = (*self._at(address), session_number, session_number, kind, kind, limit)
        return [forms.to_digest(row) for row in self._run.all("list_digests", values)]

    def put_digest(self, digest: Digest, *, by: Attribution) -> None:
        held = self.find_digest(digest.address, digest.session_number, digest.kind, digest.version)
        operation = self._journal.record(lambda seq: forms.digest_operation(seq, held, digest, by))
        row = forms.digest_row(self._owner, digest, operation)
        if held is None:
            self._run.put("insert_digest", [row])
        else:
            self._run.change("mark_digest", (int(digest.undone), operation, *row[:7]))

    def remove_digests(self, digests: Sequence[Digest], *, by: Attribution) -> None:
        for digest in digests:
            operation = self._journal.record(partial(forms.digest_operation, held=digest, digest=None, by=by))
            self._run.change("remove_digest", forms.digest_row(self._owner, digest, operation)[:7])

    def _digest(self, name: str, address: Address, *values: str | int) -> Digest | None:
        found = self._run.all(name, (*self._at(address), *values))
        return forms.to_digest(found[0]) if found else None
