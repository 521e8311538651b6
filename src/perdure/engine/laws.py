"""The laws that stored data obeys, checked over a stream of rows. What is wrong is reported, never fixed here.

Rows arrive table by table in the order of `ports.tables.rows.TABLES`, each by primary key, so that a session is known before
its messages and an operation before the row it wrote. Memory grows with sessions and derived rows, not with messages.

`Invariants` has the laws of the log and what is derived from it, `DataInvariants` those of state and series. Those of the
index are in `IndexInvariants`: it can be read, it knows of everything that is held, and of nothing else; but messages that no
job has counted may wait for it. Which things are held and which are indexed is compared by sums of hashes, so that memory
grows only with what waits.
"""

from __future__ import annotations

import json
import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from typing import Any

from perdure.domain.context.recall import LEXICON
from perdure.domain.conversation.agent_state import AgentState
from perdure.domain.conversation.digests import Digest
from perdure.domain.conversation.messages import CallState, Message, Session
from perdure.domain.conversation.tally import Tally, extended
from perdure.domain.errors import Corrupt
from perdure.domain.jobs import Job
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.records import Record
from perdure.domain.reports import Finding
from perdure.domain.scope import Address, Owner
from perdure.domain.series import CoveredWindow, Entry, PastEntry, Series
from perdure.domain.state import Revision
from perdure.domain.text.rules import Json, brief
from perdure.domain.values import dataclass, field
from perdure.engine.conversation.jobs import TALLY
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.terms import NAME_KEY, UNKEYED, terms_of
from perdure.engine.search.entries import HEADER, VERSION, name_hash, passages_in

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
    _name_keys: set[tuple[Owner, str, str]] = field(default_factory=set)
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
            if name == NAME_KEY:
                # They may be missing: entities from before there were such keys get theirs by and by.
                self._name_keys.add((owner, value, record.key))
                continue
            self._terms.add((owner, record.kind, name, value, record.key))
            endless = record.body.get("valid_to") is None
            if name == "slot" and endless and is_single_valued(value.partition("|")[2].partition("@")[0]):
                if (owner, value) in self._slots:
                    yield Finding("a single-valued attribute has one current value", where, "it has two")
                self._slots.add((owner, value))

    def term(self, owner: Owner, term: tuple[str, str, str, str]) -> Iterator[Finding]:
        kind, name, value, key = term
        if kind == "memory" and (name == "type" or (name, value) == ("status", "ACTIVE")):
            return  # an earlier version wrote it
        if (name == NAME_KEY and (owner, value, key) in self._name_keys) or (name, value) == UNKEYED:
            return
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


@dataclass(slots=True)
class DataInvariants:
    _revisions: dict[tuple[Owner, str], tuple[int, bool]] = field(default_factory=dict)
    """Of each key, the latest revision, and whether that is a value and not a deletion."""
    _latest: dict[tuple[Owner, str], tuple[int, bool]] = field(default_factory=dict)
    _series: dict[tuple[Owner, str], int] = field(default_factory=dict)
    _entries: dict[tuple[Owner, str], int] = field(default_factory=dict)
    _versions: dict[tuple[Owner, str, str], int] = field(default_factory=dict)
    _window_ends: dict[tuple[Owner, str], int] = field(default_factory=dict)

    def state_key(self, owner: Owner, key: str, revision: int, *, valued: bool) -> Iterator[Finding]:
        self._revisions[(owner, key)] = (revision, valued)
        return iter(())

    def state_revision(self, owner: Owner, revision: Revision) -> Iterator[Finding]:
        where = f"{whose(owner)}, state key {brief(revision.key)}, revision {revision.number}"
        previous = self._latest.get((owner, revision.key))
        if previous is not None and revision.number != previous[0] + 1:
            yield Finding("revisions of a key follow one another", where, f"the one before is {previous[0]}")
        self._latest[(owner, revision.key)] = (revision.number, revision.body is not None)
        if revision.body is not None and not _is_json(revision.body):
            yield Finding("a stored value is JSON", where, "it is not")

    def series(self, owner: Owner, series: Series) -> Iterator[Finding]:
        self._series[(owner, series.name)] = series.count
        if series.count != series.fetched - series.duplicates - series.removed:
            seen = f"{series.fetched} fetched, {series.duplicates} duplicates, {series.removed} removed, {series.count} held"
            yield Finding("a series' books balance", _of_series(owner, series.name), seen)

    def entry(self, owner: Owner, series: str, entry: Entry) -> Iterator[Finding]:
        self._entries[(owner, series)] = self._entries.get((owner, series), 0) + 1
        if entry.last_seen_us < entry.first_seen_us:
            yield Finding("an entry is last seen no earlier than first", _of_series(owner, series), f"entry {brief(entry.id)}")

    def past_entry(self, owner: Owner, series: str, past: PastEntry) -> Iterator[Finding]:
        expected = self._versions.get((owner, series, past.id), 0) + 1
        if past.version != expected:
            yield Finding("past versions of an entry are numbered from 1", _of_series(owner, series), f"expected {expected}")
        self._versions[(owner, series, past.id)] = past.version

    def window(self, owner: Owner, series: str, window: CoveredWindow) -> Iterator[Finding]:
        previous = self._window_ends.get((owner, series))
        if previous is not None and window.span.start_us < previous:
            yield Finding("covered windows do not overlap", _of_series(owner, series), window.span.start.isoformat())
        self._window_ends[(owner, series)] = window.span.end_us
        if window.span.end_us > window.fetched_us:
            yield Finding("no window covers what was the future", _of_series(owner, series), window.span.end.isoformat())

    def end(self) -> Iterator[Finding]:
        for place, (number, valued) in self._revisions.items():
            if self._latest.get(place) != (number, valued):
                where = f"{whose(place[0])}, state key {brief(place[1])}"
                seen = f"it says {number}, {'a value' if valued else 'a deletion'}"
                yield Finding("a key stands at its latest revision", where, seen)
        for (owner, name), stated in self._series.items():
            held = self._entries.get((owner, name), 0)
            if stated != held:
                yield Finding("a series counts its entries", _of_series(owner, name), f"{stated} stated, {held} held")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _of_series(owner: Owner, name: str) -> str:
    return f"{whose(owner)}, series {name!r:.60}"


_MOST = 2**64


@dataclass(slots=True)
class IndexInvariants:
    _expected: dict[tuple[Owner, str], tuple[int, int]] = field(default_factory=dict)
    _indexed: dict[tuple[Owner, str], tuple[int, int]] = field(default_factory=dict)
    _last: dict[Owner, int] = field(default_factory=dict)
    _built: set[Owner] = field(default_factory=set)
    _numbers: dict[Owner, array[int]] = field(default_factory=dict)
    _passages: dict[Owner, array[int]] = field(default_factory=dict)
    _replaced: dict[Owner, set[int]] = field(default_factory=dict)
    _tallied: dict[tuple[Owner, tuple[Any, ...]], int] = field(default_factory=dict)
    _waiting: dict[Owner, set[int]] = field(default_factory=dict)
    """Messages that may be indexed or not, by hash."""
    _uncounted: set[tuple[Owner, tuple[Any, ...]]] = field(default_factory=set)
    """Sessions that have such messages, and no job that counts them, as far as one has streamed by."""

    def tally(self, owner: Owner, session: tuple[Any, ...], up_to_seq: int) -> None:
        """How far the messages of a session are counted, which they are once they are indexed."""
        self._tallied[owner, session] = up_to_seq

    def expect_message(self, owner: Owner, session: tuple[Any, ...], seq: int, ref: str) -> None:
        if seq <= self._tallied.get((owner, session), 0):
            self.expect(owner, "message", ref)
        else:
            self._waiting.setdefault(owner, set()).add(name_hash(ref))
            self._uncounted.add((owner, session))

    def job(self, job: Job) -> Iterator[Finding]:
        """What waits to be done for an owner."""
        if job.kind == TALLY and job.state != "done":
            told = job.payload
            self._uncounted.discard((job.owner, (told["agent"], told["channel"], told["session_number"])))
        return iter(())

    def expect(self, owner: Owner, kind: str, ref: str) -> None:
        """Something that must be found streams by."""
        _add(self._expected, (owner, kind), ref)

    def head(self, owner: Owner, last: int, lexicon: int, reached: tuple[int, int]) -> Iterator[Finding]:
        self._last[owner] = last
        if lexicon == LEXICON:
            self._built.add(owner)
        if max(reached) > last:
            yield Finding("vectors are made of entries that exist", f"{whose(owner)}, index", f"up to {max(reached)} of {last}")

    def entry(self, owner: Owner, number: int, replaces: int, name: tuple[str, str], body: bytes) -> Iterator[Finding]:
        kind, ref = name
        self._numbers.setdefault(owner, array("q")).append(number)
        if replaces:
            self._replaced.setdefault(owner, set()).add(replaces)
        where = f"{whose(owner)}, index entry {number}"
        if number > self._last.get(owner, 0):
            yield Finding("entries are numbered up to what the head says", where, f"the head says {self._last.get(owner, 0)}")
        self._passages.setdefault(owner, array("H")).append(passages_in(body))
        if body:
            if kind != "message" or name_hash(ref) not in self._waiting.get(owner, ()):
                _add(self._indexed, (owner, kind), ref)
            times, passages, speaker, _, terms = HEADER.unpack_from(body)[-5:] if len(body) >= HEADER.size else (0, 0, 0, 0, -1)
            if HEADER.size + 16 * times + 8 * passages + 9 * terms + speaker != len(body):
                yield Finding("every row can be read", where, "its body is cut off or altered")
            elif body[0] != VERSION or sum(_sizes(body, times, passages)) != terms:
                yield Finding("every row can be read", where, "its body is laid out in another way")

    def vector(self, owner: Owner, number: int, embedder: str, body: bytes) -> Iterator[Finding]:
        where = f"{whose(owner)}, vectors of index entry {number}"
        numbers = self._numbers.get(owner, array("q"))
        place = bisect_left(numbers, number)
        if place == len(numbers) or numbers[place] != number:
            yield Finding("vectors are made of entries that exist", where, "there is no such entry")
            return
        dims = embedder.rpartition("/")[2]
        if not dims.isdecimal() or len(body) != self._passages[owner][place] * (4 + int(dims)):
            yield Finding("every row can be read", where, f"{len(body)} bytes do not fit")

    def pack(self, owner: Owner, first: int, last: int, body: bytes) -> Iterator[Finding]:
        from perdure.engine.search.segments import from_pack

        where = f"{whose(owner)}, index pack {first} to {last}"
        try:
            numbers = from_pack(body).number
        except Corrupt:
            yield Finding("every row can be read", where, "its body is cut off or altered")
            return
        if not len(numbers) or (int(numbers[0]), int(numbers[-1])) != (first, last):
            yield Finding("a pack holds the entries that it says", where, "it holds others")
        gone = set(numbers.tolist()).difference(self._numbers.get(owner, ()), self._replaced.get(owner, ()))
        if gone:
            told = f"entry {min(gone)} is neither"
            yield Finding("what a pack holds is there, or something says that it is gone", where, told)

    def end(self) -> Iterator[Finding]:
        for owner in sorted({owner for owner, _ in self._expected} - self._last.keys(), key=whose):
            yield Finding("everything held is indexed, and nothing else", whose(owner), "there is no index at all")
        for owner, (agent, channel, number) in sorted(self._uncounted, key=lambda place: (whose(place[0]), place[1])):
            yield Finding(
                "messages that are not counted wait with a job", _where(owner, Address(agent, channel), number), "no job"
            )
        for owner in self._built:
            for kind in ("message", "memory", "todo", "instruction"):
                held, indexed = self._expected.get((owner, kind), (0, 0)), self._indexed.get((owner, kind), (0, 0))
                if held != indexed:
                    told = f"{held[0]} held, {indexed[0]} indexed" if held[0] != indexed[0] else "others than are held"
                    yield Finding("everything held is indexed, and nothing else", f"{whose(owner)}, {kind}", told)


def _sizes(body: bytes, times: int, passages: int) -> tuple[int, ...]:
    """How many terms each passage of an entry claims to have."""
    return struct.unpack_from(f"<{2 * passages}I", body, HEADER.size + 16 * times)[::2]


def _add(sums: dict[tuple[Owner, str], tuple[int, int]], place: tuple[Owner, str], ref: str) -> None:
    count, total = sums.get(place, (0, 0))
    sums[place] = (count + 1, (total + name_hash(ref)) % _MOST)
