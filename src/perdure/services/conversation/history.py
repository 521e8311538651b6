"""Reading back: messages, sessions, counts, jobs, decisions and the journal of one scope.

What a user's memory holds, at a glance. Everything is counted within bounds, in one reading of the store.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.jobs import JOB_STATES, Job, JobState
from perdure.domain.knowledge.journal import Operation, is_for
from perdure.domain.limits import Limits
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind
from perdure.domain.reports import DayActivity, Overview
from perdure.domain.scope import ID_BYTES_MAX, MessageId, Scope, SessionId
from perdure.domain.text.rules import brief, check_choice, check_id, utf8_size
from perdure.domain.values import dataclass
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.ledger import count_active


@dataclass(frozen=True, slots=True)
class LogReader:
    store: Store
    limits: Limits

    def messages(
        self, scope: Scope, *, limit: int, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> list[Message]:
        """Oldest first: the latest `limit`, or those next to the message named by `before` or `after`."""
        rows = self.limits.page(limit)
        if before is not None and after is not None:
            raise InvalidInput("`before` and `after` are both given; page in one direction at a time")

        def work(view: View) -> list[Message]:
            number = None if session is None else self._session(view, scope, session).number
            query = MessageQuery(
                address=scope.address,
                limit=rows,
                session_number=number,
                before=None if before is None else self._place(view, scope, before),
                after=None if after is None else self._place(view, scope, after),
            )
            return view.list_messages(query)

        return self.store.read(scope.owner, work)

    def message(self, scope: Scope, message_id: str) -> Message:
        check_id(message_id, "id", bytes_max=ID_BYTES_MAX)
        return self.store.read(scope.owner, lambda view: self._message(view, scope, message_id))

    def sessions(self, scope: Scope, *, limit: int) -> list[Session]:
        rows = self.limits.page(limit)
        return self.store.read(scope.owner, lambda view: view.list_sessions(scope.address, limit=rows))

    def tally(self, scope: Scope, session: str | None) -> Tally:
        """Counts of one session, by default the newest. They may lag behind the log until the job has run."""

        def work(view: View) -> Tally:
            if session is None:
                latest = view.latest_session(scope.address)
                if latest is None:
                    raise NotFound("nothing was said at this address yet; append a message first")
            else:
                latest = self._session(view, scope, session)
            held = view.find_tally(scope.address, latest.number)
            return held if held is not None else Tally(scope.address, latest.number)

        return self.store.read(scope.owner, work)

    def journal(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Operation]:
        rows = self.limits.page(limit)
        top = self.limits.before(before)
        found = self.store.read(scope.owner, lambda view: view.list_operations(limit=rows, before=top))
        return [operation for operation in found if is_for(operation, scope.address.agent)]

    def jobs(self, scope: Scope, state: JobState | None, *, limit: int) -> list[Job]:
        if state is not None:
            check_choice(state, "state", JOB_STATES)
        rows = self.limits.page(limit)
        return self.store.read(scope.owner, lambda view: view.list_jobs(state, limit=rows))

    def retry_jobs(self, scope: Scope, now: datetime) -> int:
        def work(tx: Tx) -> int:
            dead = tx.list_jobs("dead", limit=self.limits.page_rows_max)
            return sum(tx.retry_job(job.kind, job.key, now=now) for job in dead)

        return self.store.write(scope.owner, work)

    def decisions(self, scope: Scope, kind: DecisionKind | None, *, limit: int, before: str | None) -> list[Decision]:
        """What was decided at this address before goals and after tools, newest first."""
        rows = self.limits.page(limit)
        if before is not None:
            check_id(before, "before", bytes_max=ID_BYTES_MAX)
        if kind is not None and (utf8_size(kind, "`kind`") == 0 or kind not in ("before", "after")):
            raise InvalidInput(f"`kind` = {brief(kind)} is unknown; use before or after")
        return self.store.read(
            scope.owner,
            lambda view: list(view.oversight.list_decisions(limit=rows, kind=kind, address=scope.address, before=before)),
        )

    def usage(self, scope: Scope) -> list[Usage]:
        """What models were asked on behalf of a user."""
        return self.store.read(scope.owner, lambda view: list(view.oversight.list_usage()))

    def _session(self, view: View, scope: Scope, session: str) -> Session:
        check_id(session, "session", bytes_max=ID_BYTES_MAX)
        held = view.find_session(scope.address, SessionId(session))
        if held is None:
            raise NotFound(f"no session {brief(session, 80)} at this address; list them with `sessions()`")
        return held

    def _place(self, view: View, scope: Scope, message_id: str) -> Cursor:
        check_id(message_id, "message id", bytes_max=ID_BYTES_MAX)
        message = self._message(view, scope, message_id)
        return Cursor(message.session_number, message.seq)

    def _message(self, view: View, scope: Scope, message_id: str) -> Message:
        message = view.find_messages([MessageId(message_id)]).get(MessageId(message_id))
        if message is None or message.address != scope.address:
            raise NotFound(f"no message {brief(message_id, 80)} at this address")
        return message


DAYS_MAX = 366
ROWS_MAX = 1_000
"""Sessions, keys and series are counted up to here."""
LOOKED_AT_MAX = 5_000
"""So many messages and operations of the last days are looked at, the newest first."""
PAGE = 500


@dataclass(frozen=True, slots=True)
class OverviewService:
    store: Store
    clock: Clock
    zone: str

    def overview(self, scope: Scope, *, days: int) -> Overview:
        """Counts, and the activity of the last `days` days, today included."""
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= DAYS_MAX:
            raise InvalidInput(f"`days` = {brief(days)} must be a whole number from 1 to {DAYS_MAX}")
        zone, now = ZoneInfo(self.zone), self.clock.now()
        today = now.astimezone(zone).date()
        first = today - timedelta(days=days - 1)
        since = datetime.combine(first, time(), zone)
        return self.store.read(scope.owner, lambda view: _overview(view, scope, _Days(first, since, days, now)))


@dataclass(frozen=True, slots=True)
class _Days:
    first: date
    since: datetime
    count: int
    now: datetime


def _overview(view: View, scope: Scope, days: _Days) -> Overview:
    sessions = view.conversation.sessions_by_activity("", limit=ROWS_MAX)
    keys = view.state.list_keys(now=days.now, prefix="", after=None, limit=ROWS_MAX)
    series = view.series.list_series(after=None, limit=ROWS_MAX)
    jobs = Counter(job.state for job in view.list_jobs(None, limit=ROWS_MAX))
    counts = {
        "messages": sum(one.messages for one in sessions),
        "sessions": len(sessions),
        **_knowledge_counts(view, scope.address.agent),
        "state": len(keys),
        "series": len(series),
        "jobs_waiting": jobs["ready"] + jobs["running"],
        "jobs_dead": jobs["dead"],
    }
    zone, since, first = days.since.tzinfo, days.since, days.first
    said = Counter(at.astimezone(zone).date() for at in _bounded(_message_times(view, sessions, since)))
    changed = Counter(at.astimezone(zone).date() for at in view.operation_times(since=since, limit=LOOKED_AT_MAX))
    line = tuple(
        DayActivity(day, said[day], changed[day]) for day in (first + timedelta(days=place) for place in range(days.count))
    )
    full = max(sum(said.values()), sum(changed.values())) >= LOOKED_AT_MAX
    return Overview(counts, line, full or max(len(sessions), len(keys), len(series)) >= ROWS_MAX)


def _knowledge_counts(view: View, agent: str) -> Mapping[str, int]:
    count = view.records.count
    return {
        "memories": count_active(view.records),
        "pinned": count("memory", ("pinned", "yes")),
        "archived": count("memory", ("status", "ARCHIVED")),
        "entities": count("entity", ("state", "here")),
        "todos": count("todo", ("open", agent)),
        "instructions": count("instruction", ("open", agent)),
        "suggestions": count("suggestion", ("state", "open")),
    }


def _bounded(moments: Iterator[datetime]) -> Iterator[datetime]:
    for place, moment in enumerate(moments):
        if place >= LOOKED_AT_MAX:
            return
        yield moment


def _message_times(view: View, sessions: list[Session], since: datetime) -> Iterator[datetime]:
    """When the messages of the sessions that were active since then were said."""
    for session in sessions:
        if session.last_at < since:
            return
        before: Cursor | None = None
        while page := _page(view, session, before):
            yield from (message.at for message in page if message.at >= since)
            before = Cursor(page[0].session_number, page[0].seq)
            if page[0].at < since:
                break


def _page(view: View, session: Session, before: Cursor | None) -> list[Message]:
    return view.list_messages(MessageQuery(session.address, PAGE, session.number, before=before))
