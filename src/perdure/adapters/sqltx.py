"""One owner's rows in a SQL database: each method is a named query and a mapping.

The two databases differ in how a statement is run, not in which statement is: that difference is `Statements`, and this
is the one `Tx` on top of it. What things mean is decided in `domain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from perdure.adapters.sqlaccesses import SqlAccesses
from perdure.adapters.sqlconversation import SqlConversation
from perdure.adapters.sqlindex import SqlIndex
from perdure.adapters.sqljournal import SqlJournal
from perdure.adapters.sqloversight import SqlOversight
from perdure.adapters.sqlrecords import SqlRecords
from perdure.adapters.sqlseries import SqlSeries
from perdure.adapters.sqlstate import SqlState
from perdure.adapters.statements import MAX_INTEGER, Statements
from perdure.domain.jobs import (
    Job,
    JobState,
    NewJob,
    Settlement,
    holds_lease,
    new_job,
    prolonged,
    queue_full,
    requeued,
    revived,
    settled,
)
from perdure.domain.journal import Attribution, Operation
from perdure.domain.messages import CallState, Message, MessageQuery, Session, bounds
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.tally import Tally
from perdure.domain.times import to_us
from perdure.ports import rows, tallies
from perdure.ports.index import index_job
from perdure.ports.rewriting import rewritten


class SqlTx:
    """A `View`, and a `Tx` if its statements may write."""

    __slots__ = ("_owner", "_prefix", "_run", "index")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._prefix = (owner.space, owner.user)
        self.index = SqlIndex(run, owner)

    def finish(self) -> None:
        """What a transaction does last, so that rivals wait for each other here only."""
        changed_at = self.index.flush()
        if changed_at is not None:
            self.enqueue(index_job(changed_at), now=changed_at, queue_max=MAX_INTEGER)

    @property
    def state(self) -> SqlState:
        return SqlState(self._run, self._owner)

    @property
    def series(self) -> SqlSeries:
        return SqlSeries(self._run, self._owner)

    @property
    def conversation(self) -> SqlConversation:
        return SqlConversation(self._run, self._owner)

    @property
    def records(self) -> SqlRecords:
        return SqlRecords(self._run, self._owner)

    @property
    def oversight(self) -> SqlOversight:
        return SqlOversight(self._run, self._owner)

    @property
    def accesses(self) -> SqlAccesses:
        return SqlAccesses(self._run, self._owner)

    @property
    def journalled(self) -> tuple[int, ...]:
        return tuple(self._run.journalled)

    # -- the log

    def find_messages(self, ids: Sequence[MessageId]) -> dict[MessageId, Message]:
        name, wanted = ("find_message", ids[0]) if len(ids) == 1 else ("find_messages", self._run.array(ids))
        found = self._all(name, wanted)
        return {message.id: message for message in map(rows.to_message, found)}

    def list_messages(self, query: MessageQuery) -> list[Message]:
        low, high = bounds(query)
        name = "messages_from_start" if query.after is not None else "messages_from_end"
        found = self._all(
            name, query.address.agent, query.address.channel, low.session_number, low.seq, high.session_number, high.seq,
            query.limit,
        )  # fmt: skip
        messages = [rows.to_message(row) for row in found]
        return messages if query.after is not None else messages[::-1]

    def latest_session(self, address: Address) -> Session | None:
        return self._session(self._run.locked("latest_session"), address.agent, address.channel)

    def find_session(self, address: Address, session: SessionId | int) -> Session | None:
        name = "find_session_number" if isinstance(session, int) else "find_session"
        return self._session(self._run.locked(name), address.agent, address.channel, session)

    def list_sessions(self, address: Address | None, *, limit: int, before: int | None = None) -> list[Session]:
        top = MAX_INTEGER if before is None else before
        if address is None:
            found = self._all("list_all_sessions", top, limit)
        else:
            found = self._all("list_sessions", address.agent, address.channel, top, limit)
        return [rows.to_session(row) for row in found]

    def find_calls(self, address: Address, ids: Sequence[ToolCallId]) -> list[CallState]:
        found = self._all("find_calls", address.agent, address.channel, self._run.array(ids))
        return [rows.to_call(row) for row in found]

    def put_sessions(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            row = rows.session_row(self._owner, session)
            if self._run.change("update_session", row[7:] + row[:6]) == 0:
                self._run.put("insert_session", [row])

    def append(self, messages: Sequence[Message]) -> None:
        self._run.put("insert_message", [rows.message_row(self._owner, message) for message in messages])

    def put_calls(self, address: Address, calls: Iterable[CallState]) -> None:
        self._run.put("put_call", [rows.call_row(self._owner, address, call) for call in calls])

    # -- jobs

    def find_job(self, kind: str, key: str) -> Job | None:
        found = self._one(self._run.locked("find_job"), kind, key)
        return None if found is None else rows.to_job(found)

    def list_jobs(self, state: JobState | None, *, limit: int) -> list[Job]:
        return [rows.to_job(row) for row in self._all("list_jobs", state, state, limit)]

    def enqueue(self, job: NewJob, *, now: datetime, queue_max: int) -> bool:
        if job.repeat is None and self._one("job_waits", job.kind, job.key, to_us(job.due_at)):
            # The common case of `requeued`: one more message for a session whose job has not run yet.
            return False
        held = self.find_job(job.kind, job.key)
        if held is not None:
            changed = requeued(held, job, now)
            if changed is not None:
                self._put_job(changed)
            return False
        [(waiting,)] = self._all("count_open_jobs", queue_max)
        if waiting >= queue_max:
            raise queue_full(waiting)
        self._run.put("insert_job", [rows.job_row(new_job(self._owner, job, now))])
        return True

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> bool:
        return self._under_lease(job, lambda held: settled(held, settlement, now))

    def extend(self, job: Job, until: datetime) -> bool:
        return self._under_lease(job, lambda held: prolonged(held, until))

    def retry_job(self, kind: str, key: str, *, now: datetime) -> bool:
        held = self.find_job(kind, key)
        if held is None or held.state != "dead":
            return False
        self._put_job(revived(held, now))
        return True

    def remove_jobs(self, *, done_before: datetime) -> int:
        return self._run.change("remove_jobs", (*self._prefix, to_us(done_before)))

    def _under_lease(self, job: Job, change: Callable[[Job], Job]) -> bool:
        held = self.find_job(job.kind, job.key)
        if held is None or not holds_lease(held, job):
            return False
        self._put_job(change(held))
        return True

    def _put_job(self, job: Job) -> None:
        self._run.put("put_job", [rows.job_row(job)])

    # -- derived rows and their journal

    def find_tally(self, address: Address, session_number: int) -> Tally | None:
        found = self._one("find_tally", address.agent, address.channel, session_number)
        return None if found is None else tallies.to_tally(found)

    def list_operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        found = self._all("list_operations", MAX_INTEGER if before is None else before, limit)
        return [rows.to_operation(row) for row in found]

    def redact(self, message: Message) -> None:
        self._run.replace("messages", rows.message_row(self._owner, message))

    def rewrite(self, change: Callable[[str], str]) -> dict[str, list[rows.AnyRow]]:
        changed: dict[str, list[rows.AnyRow]] = {}
        for table, spec in rows.TABLES.items():
            if spec.rebuilt:
                continue
            found = [(row, rewritten(table, row, change)) for row in self._run.whole(table, self._prefix)]
            changed[table] = [new for old, new in found if new != old]
            for row in changed[table]:
                self._run.replace(table, row)
        return changed

    def put_tally(self, tally: Tally, *, by: Attribution) -> None:
        held = self.find_tally(tally.address, tally.session_number)
        journal = SqlJournal(self._run, self._owner)
        operation = journal.record(lambda seq: tallies.tally_operation(seq, held, tally, by))
        self._run.put("put_tally", [tallies.tally_row(self._owner, tally, operation)])

    # -- statements

    def _session(self, name: str, *values: Any) -> Session | None:
        found = self._one(name, *values)
        return None if found is None else rows.to_session(found)

    def _all(self, name: str, *values: Any) -> list[rows.AnyRow]:
        return self._run.all(name, self._prefix + values)

    def _one(self, name: str, *values: Any) -> rows.AnyRow | None:
        found = self._run.all(name, self._prefix + values)
        return found[0] if found else None
