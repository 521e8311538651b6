"""The `Store` in memory. It holds the same rows as the databases do, so that a backup of one fits all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from perdure.adapters.forks import watch_forks
from perdure.adapters.memory.access import MemoryAccesses
from perdure.adapters.memory.conversation import MemoryConversation
from perdure.adapters.memory.index import MemoryIndex
from perdure.adapters.memory.knowledge import MemoryRecords
from perdure.adapters.memory.oversight import MemoryOversight
from perdure.adapters.memory.series import MemorySeries, MemoryState
from perdure.adapters.memory.tables import OwnerTables
from perdure.domain.conversation.messages import CallState, Cursor, Message, MessageQuery, Session, bounds
from perdure.domain.conversation.tally import Tally
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
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.models import Usage
from perdure.domain.reports import DistributionReport, Finding, StoreDescription, StoreFile
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.times.instants import from_us
from perdure.ports.store import Features, Progress, Row, Tx, View, not_distributed
from perdure.ports.tables.conversation import TALLIES, tally_operation, tally_row, to_tally
from perdure.ports.tables.index import INDEX_HEADS, INDEX_JOB, INDEXED, IndexHead, head_row, index_job, seed_rows
from perdure.ports.tables.jobs import JOBS, job_row, to_job, to_queue_report
from perdure.ports.tables.knowledge import OPERATIONS, OWNERS, OwnerRow, operation_row, to_operation
from perdure.ports.tables.log import (
    MESSAGES,
    SESSIONS,
    TOOL_CALLS,
    call_row,
    message_row,
    session_row,
    to_call,
    to_message,
    to_session,
)
from perdure.ports.tables.oversight import USAGE, UsageRow, to_usage, usage_sum
from perdure.ports.tables.redaction import rewritten
from perdure.ports.tables.rows import STAYING, TABLES, holds_rows, owned
from perdure.ports.tables.table import AnyRow

T = TypeVar("T")
SCHEMA_VERSION = 14
MAX_INTEGER = 2**63 - 1


class MemoryTx:
    def __init__(self, tables: OwnerTables) -> None:
        self._tables = tables
        self._owner = tables.owner
        self._began = len(tables.each(OPERATIONS))
        self.index = MemoryIndex(tables)

    def finish(self) -> None:
        """What a transaction does last."""
        changed_at = self.index.flush()
        if changed_at is not None:
            self.enqueue(index_job(changed_at), now=changed_at, queue_max=MAX_INTEGER)

    @property
    def state(self) -> MemoryState:
        return MemoryState(self._tables)

    @property
    def series(self) -> MemorySeries:
        return MemorySeries(self._tables)

    @property
    def conversation(self) -> MemoryConversation:
        return MemoryConversation(self._tables)

    @property
    def records(self) -> MemoryRecords:
        return MemoryRecords(self._tables)

    @property
    def oversight(self) -> MemoryOversight:
        return MemoryOversight(self._tables)

    @property
    def accesses(self) -> MemoryAccesses:
        return MemoryAccesses(self._tables)

    @property
    def journalled(self) -> tuple[int, ...]:
        return tuple(range(self._began + 1, len(self._tables.each(OPERATIONS)) + 1))

    # -- the log

    def _messages(self) -> list[Message]:
        names = {SESSIONS.key_of(row): row.session for row in self._tables.each(SESSIONS)}
        return [to_message((*row, names[SESSIONS.key_of(row)])) for row in self._tables.of(MESSAGES)]

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        return [work() for work in works]

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
        sessions = [to_session(row) for row in self._tables.of(SESSIONS)]
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
        calls = [to_call(row) for row in self._tables.of(TOOL_CALLS, address.agent, address.channel)]
        return sorted((call for call in calls if call.id in ids), key=lambda call: (call.session_number, call.id))

    def put_sessions(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            namesake = self.find_session(session.address, session.id)
            if namesake is not None and namesake.number != session.number:
                raise Conflict(f"another session of the address has the id {session.id!r:.80}; read again")
            self._tables.put(SESSIONS, session_row(self._owner, session))

    def append(self, messages: Sequence[Message]) -> None:
        for message in messages:
            place = (message.address.agent, message.address.channel, message.session_number)
            if self._tables.find(MESSAGES, *place, message.seq) is not None or self.find_messages([message.id]):
                raise Conflict(f"another message holds the place or id {message.id!r:.80}; read again")
            if self._tables.find(SESSIONS, *place) is None:
                raise Conflict(f"message {message.id!r:.80} names a session that does not exist; read again")
            self._tables.put(MESSAGES, message_row(self._owner, message))

    def put_calls(self, address: Address, calls: Iterable[CallState]) -> None:
        for call in calls:
            self._tables.put(TOOL_CALLS, call_row(self._owner, address, call))

    # -- jobs

    def find_job(self, kind: str, key: str) -> Job | None:
        row = self._tables.find(JOBS, kind, key)
        return None if row is None else to_job(row)

    def list_jobs(self, state: JobState | None, *, limit: int) -> list[Job]:
        jobs = [to_job(row) for row in self._tables.of(JOBS)]
        return [job for job in jobs if state in (None, job.state)][:limit]

    def ask_waiting(self, kinds: Sequence[str], *, limit: int) -> Callable[[], list[Job]]:
        def waiting() -> list[Job]:
            jobs = [job for job in self.list_jobs(None, limit=2**62) if job.due_at is not None and job.kind in kinds]
            return sorted(jobs, key=lambda job: (job.due_at or job.updated_at, job.kind, job.key))[:limit]

        return waiting

    def enqueue(self, job: NewJob, *, now: datetime, queue_max: int) -> bool:
        held = self.find_job(job.kind, job.key)
        if held is not None:
            changed = requeued(held, job, now)
            if changed is not None:
                self._tables.put(JOBS, job_row(changed))
            return False
        waiting = sum(row.due_at_us is not None for row in self._tables.each(JOBS))
        if waiting >= queue_max:
            raise queue_full(waiting)
        self._tables.put(JOBS, job_row(new_job(self._owner, job, now)))
        return True

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> bool:
        return self._under_lease(job, lambda held: settled(held, settlement, now))

    def extend(self, job: Job, until: datetime) -> bool:
        return self._under_lease(job, lambda held: prolonged(held, until))

    def retry_job(self, kind: str, key: str, *, now: datetime) -> bool:
        held = self.find_job(kind, key)
        if held is None or held.state != "dead":
            return False
        self._tables.put(JOBS, job_row(revived(held, now)))
        return True

    def remove_jobs(self, *, done_before: datetime) -> int:
        old = [job for job in self.list_jobs("done", limit=2**62) if job.updated_at < done_before]
        for job in old:
            self._tables.remove_key(JOBS, job.kind, job.key)
        return len(old)

    def _under_lease(self, job: Job, change: Callable[[Job], Job]) -> bool:
        held = self.find_job(job.kind, job.key)
        if held is None or not holds_lease(held, job):
            return False
        self._tables.put(JOBS, job_row(change(held)))
        return True

    # -- derived rows and their journal

    def find_tally(self, address: Address, session_number: int) -> Tally | None:
        row = self._tables.find(TALLIES, address.agent, address.channel, session_number)
        return None if row is None else to_tally(row)

    def list_operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        operations = [to_operation(row) for row in reversed(self._tables.of(OPERATIONS))]
        return [operation for operation in operations if before is None or operation.seq < before][:limit]

    def operation_times(self, *, since: datetime, limit: int) -> list[datetime]:
        return [operation.at for operation in self.list_operations(limit=limit) if operation.at >= since]

    def redact(self, message: Message) -> None:
        self._tables.put(MESSAGES, message_row(self._owner, message))

    def rewrite(self, change: Callable[[str], str]) -> dict[str, list[AnyRow]]:
        changed: dict[str, list[AnyRow]] = {}
        for table, spec in TABLES.items():
            if spec.rebuilt:
                continue
            found = [(row, spec.named(rewritten(table, row, change))) for row in self._tables.of(spec)]
            changed[table] = [new for old, new in found if new != old]
            for row in changed[table]:
                self._tables.put(spec, row)
        return changed

    def put_tally(self, tally: Tally, *, by: Attribution) -> None:
        if self.find_session(tally.address, tally.session_number) is None:
            raise Conflict("the tally counts a session that does not exist; read again")
        seq = len(self._tables.each(OPERATIONS)) + 1
        operation = tally_operation(seq, self.find_tally(tally.address, tally.session_number), tally, by)
        self._tables.put(OWNERS, OwnerRow(self._owner.space, self._owner.user, seq))
        self._tables.put(OPERATIONS, operation_row(self._owner, operation))
        self._tables.put(TALLIES, tally_row(self._owner, tally, seq))


class MemorySnapshot:
    schema_version = SCHEMA_VERSION

    def __init__(self, tables: Mapping[str, list[AnyRow]]) -> None:
        self._tables = tables

    def rows(self, table: str, owner: Owner | None = None) -> Iterator[Row]:
        return (row for row in self._tables[table] if owner is None or row[:2] == (owner.space, owner.user))


class MemoryStore:
    features = Features(durable=False, shared=False, erases_in_place=True, row_security=False)

    def __init__(self) -> None:
        self._lock = threading.RLock()
        watch_forks(self)
        self._owners: dict[Owner, OwnerTables] = {}
        self._closed = False

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        with self._open():
            return work(MemoryTx(self._owners.get(owner, OwnerTables(owner))))

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        with self._open():
            tables = self._owners.setdefault(owner, OwnerTables(owner))
            try:
                tx = MemoryTx(tables)
                result = work(tx)
                tx.finish()
            except BaseException:
                tables.roll_back()
                raise
            tables.commit()
            return result

    def claim(self, claim: Claim) -> list[Job]:
        with self._open():
            mine = [job for job in self._jobs() if job.kind in claim.kinds and claim.owner in (None, job.owner)]
            due = [job for job in mine if is_due(job, claim.now)]
            due = due or [job for job in mine if is_stranded(job, claim.now)]
            due.sort(key=lambda job: (job.due_at, job.owner.space, job.owner.user, job.kind, job.key))
            taken = [claimed(job, claim) for job in due[: claim.limit]]
            for job in taken:
                self._owners[job.owner].put(JOBS, job_row(job))
                self._owners[job.owner].commit()
            return taken

    def queue(self, now: datetime) -> QueueReport:
        with self._open():
            counts: dict[str, tuple[int, int | None, int]] = {}
            for row in (row for tables in self._owners.values() for row in tables.each(JOBS)):
                count, due, tried = counts.get(row.state, (0, None, 0))
                # A job of the year 1970 was made by a restore: it is due at once, and never late.
                late = [one for one in (due, row.due_at_us) if one]
                counts[row.state] = (count + 1, min(late, default=None), tried + (row.attempts > 0))
            return to_queue_report([(state, *rest) for state, rest in counts.items()], now)

    def list_dead(self, *, limit: int) -> list[Job]:
        with self._open():
            dead = [job for job in self._jobs() if job.state == "dead"]
            dead.sort(key=lambda job: (job.owner.space, job.owner.user, job.kind, job.key))
            dead.sort(key=lambda job: job.updated_at, reverse=True)
            return dead[:limit]

    def usage(self) -> list[Usage]:
        with self._open():
            totals: dict[tuple[str, str], UsageRow] = {}
            for row in (row for tables in self._owners.values() for row in tables.each(USAGE)):
                name = (row.purpose, row.outcome)
                totals[name] = usage_sum(totals[name], row) if name in totals else row
            return [to_usage(totals[name]) for name in sorted(totals)]

    def remove_done(self, *, before: datetime) -> int:
        return sum(self.write(owner, lambda tx: tx.remove_jobs(done_before=before)) for owner in list(self._owners))

    def erase(self, owner: Owner) -> int:
        with self._open():
            tables = self._owners.pop(owner, OwnerTables(owner))
            return sum(len(rows) for rows in tables.rows.values())

    @contextmanager
    def snapshot(self, owner: Owner | None = None) -> Iterator[MemorySnapshot]:
        with self._open():
            seen = [tables for whose, tables in self._owners.items() if owner in (None, whose)]
            rows = {
                name: sorted((row for tables in seen for row in tables.each(spec)), key=spec.key_of)
                for name, spec in TABLES.items()
            }
        yield MemorySnapshot(rows)

    def restore(self, schema_version: int, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        if schema_version != SCHEMA_VERSION:
            raise InvalidInput(f"a store in memory takes backups of schema version {SCHEMA_VERSION}, not {schema_version}")
        with self._open():
            if not replace and any(rows for held in self._owners.values() for rows in held.rows.values()):
                raise Conflict("the store is not empty; choose a new one, or replace it with `replace=True`")
            owners: dict[Owner, OwnerTables] = {}
            counts: dict[str, int] = {}
            for table, content in tables:
                counts[table] = 0
                for row in content:
                    owner = Owner(str(row[0]), str(row[1]))
                    owners.setdefault(owner, OwnerTables(owner)).put(TABLES[table], TABLES[table].named(row))
                    counts[table] += 1
            for held in owners.values():
                if "index_heads" not in counts:
                    _seed_index(held)
                held.commit()
            self._owners = owners
            return counts

    def refill(self, owner: Owner, tables: Iterable[tuple[str, Iterator[Row]]], *, replace: bool) -> Mapping[str, int]:
        with self._open():
            before = self._owners.get(owner, OwnerTables(owner)).rows
            if not replace and any(rows for name, rows in before.items() if not TABLES[name].stays):
                raise holds_rows(owner)
            held, counts = OwnerTables(owner), dict[str, int]()
            for table, row in ((name, row) for name in STAYING for row in before[name].values()):
                held.put(TABLES[table], row)
            for table, content in tables:
                counts[table] = 0
                for row in content:
                    held.put(TABLES[table], TABLES[table].named(owned(owner, row)))
                    counts[table] += 1
            for table, row in seed_rows(owner, os.urandom(8).hex(), counts):
                held.put(TABLES[table], TABLES[table].named(row))
            held.commit()
            self._owners[owner] = held
            return counts

    def check(self) -> Iterator[Finding]:
        return iter(())

    def overwrite(self) -> str:
        return ""

    def purge(self, progress: Progress | None = None) -> None:
        """Nothing to give back: what was deleted is gone."""

    def distribute(self) -> DistributionReport:
        raise not_distributed("a store in memory")

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
        return [to_job(row) for tables in self._owners.values() for row in tables.of(JOBS)]

    @contextmanager
    def _open(self) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise Unavailable("the store is closed; open it again")
            yield


def _seed_index(tables: OwnerTables) -> None:
    """The job that makes the index of an owner anew, if there is anything to index."""
    if not any(tables.rows[name] for name in INDEXED):
        return
    tables.put(INDEX_HEADS, head_row(tables.owner, IndexHead(os.urandom(8).hex())))
    held = tables.find(JOBS, INDEX_JOB, INDEX_JOB)
    row = held or job_row(new_job(tables.owner, index_job(from_us(0)), from_us(0)))
    tables.put(JOBS, row._replace(state="ready", due_at_us=0, attempts=0, worker=None))
