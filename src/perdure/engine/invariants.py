"""The laws that stored data obeys, checked over a stream of rows. What is wrong is reported, never mended here.

Rows arrive table by table in the order of `ports.rows.TABLES`, each by primary key, so that a session is known before
its messages and an operation before the row it wrote. Memory grows with sessions and derived rows, not with messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.domain.agents import AgentState
from perdure.domain.digests import Digest
from perdure.domain.jobs import Job
from perdure.domain.journal import Operation
from perdure.domain.messages import CallState, Message, Session
from perdure.domain.records import Record
from perdure.domain.reports import Finding
from perdure.domain.scope import Address, Owner
from perdure.domain.tally import Tally, extended
from perdure.domain.text import Json, brief
from perdure.engine.attributes import is_single_valued
from perdure.engine.indexing import terms_of

Place = tuple[Owner, Address, int]


@dataclass(slots=True)
class _Seen:
    """What is known of one session while its messages stream by."""

    session: Session
    messages: int = 0
    tokens: int = 0
    turns: int = 0
    fold_seq: int = 0
    """Where the newest fold that is not undone ends."""
    tally: Tally | None = None
    made: dict[str, int] = field(default_factory=dict)
    answered: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Invariants:
    _sessions: dict[Place, _Seen] = field(default_factory=dict)
    _numbers: dict[tuple[Owner, Address], int] = field(default_factory=dict)
    _operations: dict[Owner, int] = field(default_factory=dict)
    _stated: dict[Owner, int] = field(default_factory=dict)
    _terms: set[tuple[Owner, str, str, str, str]] = field(default_factory=set)
    _slots: set[tuple[Owner, str]] = field(default_factory=set)
    _turns: dict[tuple[Owner, Address], int] = field(default_factory=dict)
    _last: dict[tuple[Owner, str, str], tuple[int, Json]] = field(default_factory=dict)

    def session(self, owner: Owner, session: Session) -> Iterator[Finding]:
        where = _where(owner, session.address, session.number)
        line = (owner, session.address)
        expected = self._numbers.get(line, 0) + 1
        if session.number != expected:
            yield Finding("sessions of an address are numbered from 1 without holes", where, f"expected number {expected}")
        self._numbers[line] = session.number
        if session.last_at < session.opened_at:
            yield Finding("a session's last activity is not before its opening", where, session.last_at.isoformat())
        if session.ended_at is not None and session.ended_at != session.last_at:
            yield Finding("a session ends at its last activity", where, session.ended_at.isoformat())
        if session.deleted_at is not None and (session.messages or session.ended_at is None):
            yield Finding("a deleted session is empty and has ended", where, f"{session.messages} messages")
        if not 0 <= session.boundary_seq <= session.messages or not 0 <= session.spine_seq <= session.messages:
            seqs = f"boundary {session.boundary_seq}, spine {session.spine_seq} of {session.messages}"
            yield Finding("boundary and spine lie within the session", where, seqs)
        tally = Tally(session.address, session.number)
        self._sessions[(owner, session.address, session.number)] = _Seen(session, tally=tally)

    def message(self, owner: Owner, message: Message) -> Iterator[Finding]:
        where = f"{_where(owner, message.address, message.session_number)}, seq {message.seq}"
        seen = self._sessions.get((owner, message.address, message.session_number))
        if seen is None:
            yield Finding("every message belongs to a session", where, "no such session")
            return
        if message.seq != seen.messages + 1:
            yield Finding("messages of a session are numbered from 1 without holes", where, f"expected seq {seen.messages + 1}")
        seen.messages, seen.tokens = message.seq, seen.tokens + message.tokens
        seen.turns += message.role == "user"
        for call in message.tool_calls:
            seen.made[call.id] = message.seq
        if message.tool_call_id is not None:
            seen.answered[message.tool_call_id] = message.seq
        if seen.tally is not None:
            seen.tally = extended(seen.tally, [message])

    def call(self, owner: Owner, address: Address, call: CallState) -> Iterator[Finding]:
        where = f"{_where(owner, address, call.session_number)}, a tool call at seq {call.call_seq}"
        seen = self._sessions.get((owner, address, call.session_number))
        if seen is None or seen.made.pop(call.id, None) != call.call_seq:
            yield Finding("every paired call stands in the message that makes it", where, "it does not")
        if seen is not None and seen.answered.pop(call.id, None) != call.result_seq:
            yield Finding("every paired result stands in the message that answers", where, "it does not")

    def job(self, job: Job) -> Iterator[Finding]:
        where = f"{whose(job.owner)}, job {job.kind}/{job.key}"
        if (job.due_at is None) != (job.state in ("done", "dead")):
            yield Finding("a job has a due time exactly while it is open", where, job.state)
        if job.fence < job.attempts or job.failures > job.runs:
            yield Finding("a job's counters agree", where, f"fence {job.fence}, runs {job.runs}, failures {job.failures}")
        if job.state == "dead" and job.last_error is None:
            yield Finding("a dead job says why", where, "no error")

    def owner(self, owner: Owner, operations: int) -> Iterator[Finding]:
        self._stated[owner] = operations
        return iter(())

    def operation(self, owner: Owner, operation: Operation) -> Iterator[Finding]:
        where = f"{whose(owner)}, operation {operation.seq}"
        expected = self._operations.get(owner, 0) + 1
        if operation.seq != expected:
            yield Finding("operations of an owner are numbered from 1 without holes", where, f"expected {expected}")
        self._operations[owner] = operation.seq
        subject = (owner, operation.kind, operation.key)
        if operation.before != self._last.get(subject, (0, None))[1]:
            yield Finding("an operation starts from what the one before it left", where, operation.action)
        self._last[subject] = (operation.seq, operation.after)

    def tally(self, owner: Owner, tally: Tally, key: str, operation: int) -> Iterator[Finding]:
        where = f"{_where(owner, tally.address, tally.session_number)}, tally"
        if self._last.pop((owner, "tally", key), None) != (operation, tally.body()):
            yield Finding("a derived row is what its last operation left", where, f"operation {operation}")
        seen = self._sessions.get((owner, tally.address, tally.session_number))
        if seen is None or tally.up_to_seq > seen.messages:
            yield Finding("a tally counts messages that exist", where, f"up to seq {tally.up_to_seq}")
        elif tally.up_to_seq == seen.messages and seen.tally is not None and tally.body() != seen.tally.body():
            yield Finding("a tally that is up to date equals a fresh count", where, f"up to seq {tally.up_to_seq}")

    def agent_state(self, owner: Owner, state: AgentState) -> Iterator[Finding]:
        self._turns[(owner, state.address)] = state.turns
        return iter(())

    def digest(self, owner: Owner, digest: Digest, journalled: tuple[str, Json], operation: int) -> Iterator[Finding]:
        key, record = journalled
        where = f"{_where(owner, digest.address, digest.session_number)}, {digest.kind} version {digest.version}"
        if self._last.pop((owner, "digest", key), None) != (operation, record):
            yield Finding("a derived row is what its last operation left", where, f"operation {operation}")
        if digest.based_on >= digest.version:
            yield Finding("a digest continues an earlier version", where, f"version {digest.based_on}")
        for source in digest.sources:
            seen = self._sessions.get((owner, source.address, source.session_number))
            if source.first_seq < 1 or seen is None or source.last_seq > seen.messages:
                told = f"session {source.session_number}, messages {source.first_seq} to {source.last_seq}"
                yield Finding("a digest stands for messages that exist", where, told)
        own = self._sessions.get((owner, digest.address, digest.session_number))
        if digest.kind == "fold" and not digest.undone and own is not None:
            own.fold_seq = digest.last_seq  # versions stream by in order: the last one counts

    def record(self, owner: Owner, record: Record) -> Iterator[Finding]:
        where = f"{whose(owner)}, {record.kind} {record.key!r:.80}"
        if self._last.pop((owner, record.kind, record.key), None) != (record.operation, dict(record.body)):
            yield Finding("a derived row is what its last operation left", where, f"operation {record.operation}")
        for name, value in terms_of(record.kind, record.body):
            self._terms.add((owner, record.kind, name, value, record.key))
            endless = record.body.get("valid_to") is None
            if name == "slot" and endless and is_single_valued(value.partition("|")[2].partition("@")[0]):
                if (owner, value) in self._slots:
                    yield Finding("a single-valued attribute has one current value", where, "it has two")
                self._slots.add((owner, value))

    def term(self, owner: Owner, term: tuple[str, str, str, str]) -> Iterator[Finding]:
        kind, name, value, key = term
        if (owner, kind, name, value, key) in self._terms:
            self._terms.remove((owner, kind, name, value, key))
        else:
            yield Finding("a record is found by what it says", f"{whose(owner)}, {kind} {key!r:.80}", f"not by its {name}")

    def end(self) -> Iterator[Finding]:
        yield from self._end_of_addresses()
        for owner, kind, name, _, key in self._terms:
            yield Finding("a record is found by what it says", f"{whose(owner)}, {kind} {key!r:.80}", f"its {name} is missing")
        for (owner, address, number), seen in self._sessions.items():
            where = _where(owner, address, number)
            if seen.session.turns != seen.turns:
                yield Finding("a session counts its turns", where, f"{seen.session.turns} stated, {seen.turns} held")
            if seen.session.boundary_seq != seen.fold_seq:
                told = f"boundary {seen.session.boundary_seq}, fold up to {seen.fold_seq}"
                yield Finding("what is out of the working set is told by a fold", where, told)
            if seen.session.messages != seen.messages:
                yield Finding("a session counts its messages", where, f"{seen.session.messages} stated, {seen.messages} held")
            if seen.session.tokens != seen.tokens:
                yield Finding("a session counts its tokens", where, f"{seen.session.tokens} stated, {seen.tokens} held")
            if seen.made:
                yield Finding("every tool call is paired", where, f"{len(seen.made)} calls are not")
            if seen.answered:
                yield Finding("every tool result answers a call", where, f"{len(seen.answered)} do not")
        for owner in self._stated.keys() | self._operations.keys():
            if self._stated.get(owner, 0) != self._operations.get(owner, 0):
                yield Finding("an owner counts its operations", whose(owner), f"{self._stated.get(owner, 0)} stated")
        for (owner, kind, _), (seq, after) in self._last.items():
            if after is not None:
                yield Finding("what an operation left is there", f"{whose(owner)}, operation {seq}", f"no such {kind}")

    def _end_of_addresses(self) -> Iterator[Finding]:
        held: dict[tuple[Owner, Address], int] = {}
        for (owner, address, _), seen in self._sessions.items():
            held[(owner, address)] = held.get((owner, address), 0) + seen.turns
        for (owner, address), turns in held.items():
            stated = self._turns.get((owner, address), 0)
            # Deleted sessions stay counted.
            if stated < turns:
                where = f"{whose(owner)}, agent {brief(address.agent)}, channel {brief(address.channel)}"
                yield Finding("an address counts its turns", where, f"{stated} stated, {turns} held")


def whose(owner: Owner) -> str:
    return f"space {brief(owner.space)}, user {brief(owner.user)}"


def _where(owner: Owner, address: Address, number: int) -> str:
    return f"{whose(owner)}, agent {brief(address.agent)}, channel {brief(address.channel)}, session {number}"
