"""The `Store` in memory. It holds the same rows as the databases do, so that a backup of one fits all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TypeVar

from perdure.adapters.forking import watch_forks
from perdure.adapters.memory.accesses import MemoryAccesses
from perdure.adapters.memory.conversation import MemoryConversation
from perdure.adapters.memory.held import OwnerRows
from perdure.adapters.memory.index import MemoryIndex
from perdure.adapters.memory.oversight import MemoryOversight
from perdure.adapters.memory.records import MemoryRecords
from perdure.adapters.memory.series import MemorySeries
from perdure.adapters.memory.state import MemoryState
from perdure.domain.errors import Conflict, InvalidInput, Unavailable
from perdure.domain.jobs import (
    Claim,
    Job,
    JobState,
    NewJob,
    QueueReport,
    Settlement,
    claimed,
    holds_lease,
    is_due,
    is_stranded,
    new_job,
    prolonged,
    queue_full,
    requeued,
    revived,
    settled,
)
from perdure.domain.journal import Attribution, Operation
from perdure.domain.messages import CallState, Cursor, Message, MessageQuery, Session, bounds
from perdure.domain.models import Usage
from perdure.domain.reports import Finding, StoreDescription, StoreFile
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.tally import Tally
from perdure.domain.times import from_us
from perdure.ports import rows, tallies
from perdure.ports.index import INDEX_JOB, INDEXED, IndexHead, head_row, index_job, seed_rows
from perdure.ports.oversight import to_usage, usage_sum
from perdure.ports.rewriting import rewritten
from perdure.ports.rows import STAYING, TABLES, AnyRow
from perdure.ports.store import Features, Row, Tx, View

T = TypeVar("T")
SCHEMA_VERSION = 9
MAX_INTEGER = 2**63 - 1


class MemoryTx:
    def __init__(self, held: OwnerRows, owner: Owner) -> None:
        self._held = held
        self._owner = owner
        self._prefix = (owner.space, owner.user)
        self._began = len(held.tables["operations"])
        self.index = MemoryIndex(held, owner)

    def finish(self) -> None:
        """What a transaction does last."""
        changed_at = self.index.flush()
        if changed_at is not None:
            self.enqueue(index_job(changed_at), now=changed_at, queue_max=MAX_INTEGER)

    @property
    def state(self) -> MemoryState:
        return MemoryState(self._held, self._owner)

    @property
    def series(self) -> MemorySeries:
        return MemorySeries(self._held, self._owner)

    @property
    def conversation(self) -> MemoryConversation:
        return MemoryConversation(self._held, self._owner)

    @property
    def records(self) -> MemoryRecords:
        return MemoryRecords(self._held, self._owner)

    @property
    def oversight(self) -> MemoryOversight:
        return MemoryOversight(self._held, self._owner)

    @property
    def accesses(self) -> MemoryAccesses:
        return MemoryAccesses(self._held, self._owner)

    @property
    def journalled(self) -> tuple[int, ...]:
        return tuple(range(self._began + 1, len(self._held.tables["operations"]) + 1))

    # -- the log

    def _messages(self) -> list[Message]:
        names = {row[:5]: row[5] for row in self._held.of("sessions")}
        return [rows.to_message((*row, names[row[:5]])) for row in self._held.of("messages")]

    def find_messages(self, ids: Sequence[MessageId]) -> dict[MessageId, Message]:
        wanted = set(ids)
        return {message.id: message for message in self._messages() if message.id in wanted}

    def list_messages(self, query: MessageQuery) -> list[Message]:
        low, high = bounds(query)
        inside = [
            message
            for message in self._messages()
            if message.address == query.address and low < Cursor(message.session_number, message.seq) < high
        ]
        inside.sort(key=lambda message: (message.session_number, message.seq))
        return inside[: query.limit] if query.after is not None else inside[max(0, len(inside) - query.limit) :]

    def _sessions(self, address: Address | None) -> list[Session]:
        sessions = [rows.to_session(row) for row in self._held.of("sessions")]
        return [session for session in sessions if address is None or session.address == address]

    def latest_session(self, address: Address) -> Session | None:
        return max(self._sessions(address), key=lambda session: session.number, default=None)

    def find_session(self, address: Address, session: SessionId | int) -> Session | None:
        return next((held for held in self._sessions(address) if session in (held.id, held.number)), None)

    def list_sessions(self, address: Address | None, *, limit: int, before: int | None = None) -> list[Session]:
        inside = [
            session
            for session in self._sessions(address)
            if (before is None or session.number < before) and session.deleted_at is None
        ]
        inside.sort(key=lambda session: (-session.number, session.address.agent, session.address.channel))
        return inside[:limit]

    def find_calls(self, address: Address, ids: Sequence[ToolCallId]) -> list[CallState]:
        calls = [rows.to_call(row) for row in self._held.of("tool_calls", address.agent, address.channel)]
        return sorted((call for call in calls if call.id in ids), key=lambda call: (call.session_number, call.id))

    def put_sessions(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            namesake = self.find_session(session.address, session.id)
            if namesake is not None and namesake.number != session.number:
                raise Conflict(f"another session of the address has the id {session.id!r:.80}; read again")
            self._held.put("sessions", rows.session_row(self._owner, session))

    def append(self, messages: Sequence[Message]) -> None:
        for message in messages:
            row = rows.message_row(self._owner, message)
            if row[:6] in self._held.tables["messages"] or self.find_messages([message.id]):
                raise Conflict(f"another message holds the place or id {message.id!r:.80}; read again")
            if row[:5] not in self._held.tables["sessions"]:
                raise Conflict(f"message {message.id!r:.80} names a session that does not exist; read again")
            self._held.put("messages", row)

    def put_calls(self, address: Address, calls: Iterable[CallState]) -> None:
        for call in calls:
            self._held.put("tool_calls", rows.call_row(self._owner, address, call))

    # -- jobs

    def find_job(self, kind: str, key: str) -> Job | None:
        row = self._held.tables["jobs"].get((*self._prefix, kind, key))
        return None if row is None else rows.to_job(row)

    def list_jobs(self, state: JobState | None, *, limit: int) -> list[Job]:
        jobs = [rows.to_job(row) for row in self._held.of("jobs")]
        return [job for job in jobs if state in (None, job.state)][:limit]

    def enqueue(self, job: NewJob, *, now: datetime, queue_max: int) -> bool:
        held = self.find_job(job.kind, job.key)
        if held is not None:
            changed = requeued(held, job, now)
            if changed is not None:
                self._held.put("jobs", rows.job_row(changed))
            return False
        waiting = sum(row[6] is not None for row in self._held.of("jobs"))
        if waiting >= queue_max:
            raise queue_full(waiting)
        self._held.put("jobs", rows.job_row(new_job(self._owner, job, now)))
        return True

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> bool:
        return self._under_lease(job, lambda held: settled(held, settlement, now))

    def extend(self, job: Job, until: datetime) -> bool:
        return self._under_lease(job, lambda held: prolonged(held, until))

    def retry_job(self, kind: str, key: str, *, now: datetime) -> bool:
        held = self.find_job(kind, key)
        if held is None or held.state != "dead":
            return False
        self._held.put("jobs", rows.job_row(revived(held, now)))
        return True

    def remove_jobs(self, *, done_before: datetime) -> int:
        old = [job for job in self.list_jobs("done", limit=2**62) if job.updated_at < done_before]
        for job in old:
            self._held.remove("jobs", (*self._prefix, job.kind, job.key))
        return len(old)

    def _under_lease(self, job: Job, change: Callable[[Job], Job]) -> bool:
        held = self.find_job(job.kind, job.key)
        if held is None or not holds_lease(held, job):
            return False
        self._held.put("jobs", rows.job_row(change(held)))
        return True

    # -- derived rows and their journal

    def find_tally(self, address: Address, session_number: int) -> Tally | None:
        row = self._held.tables["tallies"].get((*self._prefix, address.agent, address.channel, session_number))
        return None if row is None else tallies.to_tally(row)

    def list_operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        operations = [rows.to_operation(row) for row in reversed(self._held.of("operations"))]
        return [operation for operation in operations if before is None or operation.seq < before][:limit]

    def redact(self, message: Message) -> None:
        self._held.put("messages", rows.message_row(self._owner, message))

    def rewrite(self, change: Callable[[str], str]) -> dict[str, list[AnyRow]]:
        changed: dict[str, list[AnyRow]] = {}
        for table, spec in TABLES.items():
            if spec.rebuilt:
                continue
            found = [(row, rewritten(table, row, change)) for row in self._held.of(table)]
            changed[table] = [new for old, new in found if new != old]
            for row in changed[table]:
                self._held.put(table, row)
        return changed

    def put_tally(self, tally: Tally, *, by: Attribution) -> None:
        if self.find_session(tally.address, tally.session_number) is None:
            raise Conflict("the tally counts a session that does not exist; read again")
        seq = len(self._held.tables["operations"]) + 1
        operation = tallies.tally_operation(seq, self.find_tally(tally.address, tally.session_number), tally, by)
        self._held.put("owners", (*self._prefix, seq))
        self._held.put("operations", rows.operation_row(self._owner, operation))
        self._held.put("tallies", tallies.tally_row(self._owner, tally, seq))


class MemorySnapshot:
    schema_version = SCHEMA_VERSION

    def __init__(self, tables: Mapping[str, list[AnyRow]]) -> None:
        self._tables = tables

    def rows(self, table: str, owner: Owner | None = None) -> Iterator[Row]:
        return (row for row in self._tables[table] if owner is None or row[:2] == (owner.space, owner.user))


class MemoryStore:
    features = Features(durable=False, shared=False, row_security=False)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        watch_forks(self)
        self._owners: dict[Owner, OwnerRows] = {}
        self._closed = False

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        with self._open():
            return work(MemoryTx(self._owners.get(owner, OwnerRows()), owner))

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        with self._open():
            held = self._owners.setdefault(owner, OwnerRows())
            try:
                tx = MemoryTx(held, owner)
                result = work(tx)
                tx.finish()
            except BaseException:
                held.roll_back()
                raise
            held.commit()
            return result

    def claim(self, claim: Claim) -> list[Job]:
        with self._open():
            mine = [job for job in self._jobs() if job.kind in claim.kinds and claim.owner in (None, job.owner)]
            due = [job for job in mine if is_due(job, claim.now)]
            due = due or [job for job in mine if is_stranded(job, claim.now)]
            due.sort(key=lambda job: (job.due_at, job.owner.space, job.owner.user, job.kind, job.key))
            taken = [claimed(job, claim) for job in due[: claim.limit]]
            for job in taken:
                self._owners[job.owner].put("jobs", rows.job_row(job))
                self._owners[job.owner].commit()
            return taken

    def queue(self, now: datetime) -> QueueReport:
        with self._open():
            counts: dict[str, tuple[int, int | None, int]] = {}
            for held in self._owners.values():
                for row in held.of("jobs"):
                    count, due, tried = counts.get(row[4], (0, None, 0))
                    # A job of the year 1970 was made by a restore: it is due at once, and never late.
                    late = [one for one in (due, row[6]) if one]
                    counts[row[4]] = (count + 1, min(late, default=None), tried + (row[7] > 0))
            return rows.to_queue_report([(state, *rest) for state, rest in counts.items()], now)

    def list_dead(self, *, limit: int) -> list[Job]:
        with self._open():
            dead = [job for job in self._jobs() if job.state == "dead"]
            dead.sort(key=lambda job: (job.owner.space, job.owner.user, job.kind, job.key))
            dead.sort(key=lambda job: job.updated_at, reverse=True)
            return dead[:limit]

    def usage(self) -> list[Usage]:
        with self._open():
            totals: dict[AnyRow, AnyRow] = {}
            for row in (row for held in self._owners.values() for row in held.of("usage")):
                name = row[2:4]
                totals[name] = usage_sum(totals[name], row) if name in totals else row
            return [to_usage(totals[name]) for name in sorted(totals)]

    def remove_done(self, *, before: datetime) -> int:
        return sum(self.write(owner, lambda tx: tx.remove_jobs(done_before=before)) for owner in list(self._owners))

    def erase(self, owner: Owner) -> int:
        with self._open():
            held = self._owners.pop(owner, OwnerRows())
            return sum(len(table) for table in held.tables.values())

    @contextmanager
    def snapshot(self, owner: Owner | None = None) -> Iterator[MemorySnapshot]:
        with self._open():
            seen = [held for whose, held in self._owners.items() if owner in (None, whose)]
            tables = {
                name: sorted((row for held in seen for row in held.tables[name].values()), key=_by_key(name)) for name in TABLES
            }
        yield MemorySnapshot(tables)

    def restore(self, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        if schema_version != SCHEMA_VERSION:
            raise InvalidInput(f"a store in memory takes backups of schema version {SCHEMA_VERSION}, not {schema_version}")
        with self._open():
            if not replace and any(table for held in self._owners.values() for table in held.tables.values()):
                raise Conflict("the store is not empty; choose a new one, or say that it is to be replaced")
            owners: dict[Owner, OwnerRows] = {}
            counts: dict[str, int] = {}
            for table, content in tables:
                counts[table] = 0
                for row in content:
                    owner = Owner(str(row[0]), str(row[1]))
                    owners.setdefault(owner, OwnerRows()).put(table, row)
                    counts[table] += 1
            for owner, held in owners.items() if "index_heads" not in counts else ():
                _seed_index(owner, held)
            for held in owners.values():
                held.commit()
            self._owners = owners
            return counts

    def refill(self, owner: Owner, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        with self._open():
            before = self._owners.get(owner, OwnerRows()).tables
            if not replace and any(held for name, held in before.items() if not TABLES[name].stays):
                raise rows.holds_rows(owner)
            held, counts = OwnerRows(), dict[str, int]()
            for table, row in ((name, row) for name in STAYING for row in before[name].values()):
                held.put(table, row)
            for table, content in tables:
                counts[table] = 0
                for row in content:
                    held.put(table, rows.owned(owner, row))
                    counts[table] += 1
            for table, row in seed_rows(owner, os.urandom(8).hex(), counts):
                held.put(table, row)
            held.commit()
            self._owners[owner] = held
            return counts

    def check(self) -> Iterator[Finding]:
        return iter(())

    def purge(self) -> None:
        """Nothing to give back: what was deleted is gone."""

    def describe(self) -> StoreDescription:
        return StoreDescription(
            backend="memory",
            location="this process",
            schema_version=SCHEMA_VERSION,
            versions={},
            durability="nothing survives the process",
            bytes=0,
            degraded=("durability: a store in memory is lost with the process",),
        )

    def files(self) -> tuple[StoreFile, ...]:
        return ()

    def close(self) -> None:
        self._closed = True

    def before_fork(self) -> None:
        """Nobody is in the middle of a change while the process forks."""
        self._lock.acquire()

    def after_fork_in_parent(self) -> None:
        self._lock.release()

    def after_fork_in_child(self) -> None:
        self._lock = threading.RLock()

    def _jobs(self) -> list[Job]:
        return [rows.to_job(row) for held in self._owners.values() for row in held.of("jobs")]

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed; open it again")
            yield


def _seed_index(owner: Owner, held: OwnerRows) -> None:
    """The job that makes the index of an owner anew, if there is anything to index."""
    if not any(held.tables[name] for name in INDEXED):
        return
    held.put("index_heads", head_row(owner, IndexHead(os.urandom(8).hex())))
    name = (owner.space, owner.user, INDEX_JOB, INDEX_JOB)
    row = held.tables["jobs"].get(name, rows.job_row(new_job(owner, index_job(from_us(0)), from_us(0))))
    held.put("jobs", (*name, "ready", row[5], 0, 0, *row[8:11], None, *row[12:]))


def _by_key(table: str) -> Callable[[AnyRow], AnyRow]:
    return lambda row: row[: TABLES[table].key]
