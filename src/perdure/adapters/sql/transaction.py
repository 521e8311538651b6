"""One owner's rows in a SQL database: each method is a named query and a mapping.

The two databases differ in how a statement is run, not in which statement is: that difference is `StatementIndex`, and this
is the one `Tx` on top of it. What things mean is decided in `domain`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from perdure.adapters.sql.access import SqlAccesses
from perdure.adapters.sql.conversation import SqlConversation
from perdure.adapters.sql.index import SqlIndex
from perdure.adapters.sql.knowledge import SqlJournal, SqlRecords
from perdure.adapters.sql.oversight import SqlOversight
from perdure.adapters.sql.series import SqlSeries, SqlState
from perdure.adapters.sql.statements import MAX_INTEGER, SqlStatements
from perdure.domain.conversation.messages import CallState, Message, MessageQuery, Session, bounds
from perdure.domain.conversation.tally import Tally
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
from perdure.domain.knowledge.journal import Attribution, Operation
from perdure.domain.scope import Address, MessageId, Owner, SessionId, ToolCallId
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.conversation import tally_operation, tally_row, to_tally
from perdure.ports.tables.index import index_job
from perdure.ports.tables.jobs import job_row, to_job, waits_already
from perdure.ports.tables.knowledge import to_operation
from perdure.ports.tables.log import call_row, message_row, session_row, to_call, to_message, to_session
from perdure.ports.tables.redaction import rewritten
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow


class SqlTx:
    """A `View`, and a `Tx` if its statements may write."""

    __slots__ = ("_index", "_journal", "_owner", "_records", "_run")

    def __init__(self, run: SqlStatements, owner: Owner) -> None:
        self._run = run
        self._owner = owner
        self._journal: SqlJournal | None = None
        self._index: SqlIndex | None = None
        self._records: SqlRecords | None = None

    def finish(self) -> None:
        """What a transaction does last, so that rivals wait for each other here only."""
        if self._records is not None:
            self._records.settle()
        if self._journal is not None:
            self._journal.flush()
        changed_at = None if self._index is None else self._index.flush()
        if changed_at is not None:
            self.enqueue(index_job(changed_at), now=changed_at, queue_max=MAX_INTEGER)

    def together(self, *works: Callable[[], Any]) -> list[Any]:
        return self._run.together(works)

    @property
    def journal(self) -> SqlJournal:
        if self._journal is None:
            self._journal = SqlJournal(self._run, self._owner)
        return self._journal

    @property
    def index(self) -> SqlIndex:
        if self._index is None:
            self._index = SqlIndex(self._run, self._owner)
        return self._index

    @property
    def state(self) -> SqlState:
        return SqlState(self._run, self._owner)

    @property
    def series(self) -> SqlSeries:
        return SqlSeries(self._run, self._owner)

    @property
    def conversation(self) -> SqlConversation:
        return SqlConversation(self._run, self._owner, self.journal)

    @property
    def records(self) -> SqlRecords:
        if self._records is None:
            self._records = SqlRecords(self._run, self._owner, self.journal)
        return self._records

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
        if len(ids) == 1:
            found = self._run.all("find_message", id=ids[0])
        else:
            found = self._run.all("find_messages", ids=self._run.array(ids))
        return {message.id: message for message in map(to_message, found)}

    def list_messages(self, query: MessageQuery) -> list[Message]:
        low, high = bounds(query)
        name = "messages_from_start" if query.after is not None else "messages_from_end"
        found = self._run.all(
            name,
            agent=query.address.agent,
            channel=query.address.channel,
            low_session=low.session_number,
            low_seq=low.seq,
            high_session=high.session_number,
            high_seq=high.seq,
            limit=query.limit,
        )
        messages = [to_message(row) for row in found]
        return messages if query.after is not None else messages[::-1]

    def latest_session(self, address: Address) -> Session | None:
        return self._session(self._run.locked("latest_session"), address)

    def find_session(self, address: Address, session: SessionId | int) -> Session | None:
        if isinstance(session, int):
            return self._session(self._run.locked("find_session_number"), address, session_number=session)
        return self._session(self._run.locked("find_session"), address, session=session)

    def list_sessions(self, address: Address | None, *, limit: int, before: int | None = None) -> list[Session]:
        top = MAX_INTEGER if before is None else before
        if address is None:
            found = self._run.all("list_all_sessions", before=top, limit=limit)
        else:
            place = {"agent": address.agent, "channel": address.channel}
            found = self._run.all("list_sessions", **place, before=top, limit=limit)
        return [to_session(row) for row in found]

    def find_calls(self, address: Address, ids: Sequence[ToolCallId]) -> list[CallState]:
        wanted = self._run.array(ids)
        found = self._run.all("find_calls", agent=address.agent, channel=address.channel, ids=wanted)
        return [to_call(row) for row in found]

    def put_sessions(self, sessions: Iterable[Session]) -> None:
        for session in sessions:
            row = session_row(self._owner, session)
            if self._run.change_row("update_session", row) == 0:
                self._run.put("insert_session", [row])

    def append(self, messages: Sequence[Message]) -> None:
        self._run.put("insert_message", [message_row(self._owner, message) for message in messages])

    def put_calls(self, address: Address, calls: Iterable[CallState]) -> None:
        self._run.put("put_call", [call_row(self._owner, address, call) for call in calls])

    # -- jobs

    def find_job(self, kind: str, key: str) -> Job | None:
        found = self._one(self._run.locked("find_job"), kind=kind, key=key)
        return None if found is None else to_job(found)

    def list_jobs(self, state: JobState | None, *, limit: int) -> list[Job]:
        return [to_job(row) for row in self._run.all("list_jobs", state=state, limit=limit)]

    def ask_waiting(self, kinds: Sequence[str], *, limit: int) -> Callable[[], list[Job]]:
        rows = self._run.ask("waiting_jobs", kinds=self._run.array(kinds), limit=limit)
        return lambda: [to_job(row) for row in rows()]

    def enqueue(self, job: NewJob, *, now: datetime, queue_max: int) -> bool:
        found = self._one(self._run.locked("find_job"), kind=job.kind, key=job.key)
        if found is not None:
            changed = None if waits_already(found, job) else requeued(to_job(found), job, now)
            if changed is not None:
                self._put_job(changed)
            return False
        [(waiting,)] = self._run.all("count_open_jobs", limit=queue_max)
        if waiting >= queue_max:
            raise queue_full(waiting)
        self._run.put("insert_job", [job_row(new_job(self._owner, job, now))])
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
        return self._run.change("remove_jobs", before_us=to_us(done_before))

    def _under_lease(self, job: Job, change: Callable[[Job], Job]) -> bool:
        held = self.find_job(job.kind, job.key)
        if held is None or not holds_lease(held, job):
            return False
        self._put_job(change(held))
        return True

    def _put_job(self, job: Job) -> None:
        self._run.put("put_job", [job_row(job)])

    # -- derived rows and their journal

    def find_tally(self, address: Address, session_number: int) -> Tally | None:
        place = {"agent": address.agent, "channel": address.channel, "session_number": session_number}
        found = self._one("find_tally", **place)
        return None if found is None else to_tally(found)

    def list_operations(self, *, limit: int, before: int | None = None) -> list[Operation]:
        found = self._run.all("list_operations", before=MAX_INTEGER if before is None else before, limit=limit)
        return [to_operation(row) for row in found]

    def operation_times(self, *, since: datetime, limit: int) -> list[datetime]:
        return [from_us(at_us) for (at_us,) in self._run.all("operation_times", since_us=to_us(since), limit=limit)]

    def redact(self, message: Message) -> None:
        self._run.replace("messages", message_row(self._owner, message))

    def rewrite(self, change: Callable[[str], str]) -> dict[str, list[AnyRow]]:
        self.records.settle()
        self.records.look_again()
        changed: dict[str, list[AnyRow]] = {}
        for table, spec in TABLES.items():
            if spec.rebuilt:
                continue
            found = [(row, rewritten(table, row, change)) for row in self._run.whole(table)]
            changed[table] = [new for old, new in found if new != old]
            for row in changed[table]:
                self._run.replace(table, row)
        return changed

    def put_tally(self, tally: Tally, *, by: Attribution) -> None:
        held = self.find_tally(tally.address, tally.session_number)
        operation = self.journal.record(tally_operation(self.journal.next(), held, tally, by))
        self._run.put("put_tally", [tally_row(self._owner, tally, operation)])

    # -- statements

    def _session(self, name: str, address: Address, **values: Any) -> Session | None:
        found = self._one(name, agent=address.agent, channel=address.channel, **values)
        return None if found is None else to_session(found)

    def _one(self, name: str, **values: Any) -> AnyRow | None:
        found = self._run.all(name, **values)
        return found[0] if found else None
