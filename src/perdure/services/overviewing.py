"""What a user's memory holds, at a glance. Everything is counted within bounds, in one reading of the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from perdure.domain.errors import InvalidInput
from perdure.domain.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.overview import DayActivity, Overview
from perdure.domain.scope import Scope
from perdure.domain.text import brief
from perdure.ports.clock import Clock
from perdure.ports.store import Store, View

DAYS_MAX = 366
ROWS_MAX = 1_000
"""Sessions, keys and series are counted up to here."""
LOOKED_AT_MAX = 5_000
"""So many messages and operations of the last days are looked at, the newest first."""
PAGE = 500


@dataclass(frozen=True, slots=True)
class Overviewing:
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
        **_known(view, scope.address.agent),
        "state": len(keys),
        "series": len(series),
        "jobs_waiting": jobs["ready"] + jobs["running"],
        "jobs_dead": jobs["dead"],
    }
    zone, since, first = days.since.tzinfo, days.since, days.first
    said = Counter(at.astimezone(zone).date() for at in _bounded(_said(view, sessions, since)))
    changed = Counter(at.astimezone(zone).date() for at in _bounded(_changed(view, since)))
    line = tuple(
        DayActivity(day, said[day], changed[day]) for day in (first + timedelta(days=place) for place in range(days.count))
    )
    full = max(sum(said.values()), sum(changed.values())) >= LOOKED_AT_MAX
    return Overview(counts, line, full or max(len(sessions), len(keys), len(series)) >= ROWS_MAX)


def _known(view: View, agent: str) -> Mapping[str, int]:
    count = view.records.count
    return {
        "memories": count("memory", ("status", "ACTIVE")),
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


def _said(view: View, sessions: list[Session], since: datetime) -> Iterator[datetime]:
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


def _changed(view: View, since: datetime) -> Iterator[datetime]:
    before: int | None = None
    while page := view.list_operations(limit=PAGE, before=before):
        for operation in page:
            if operation.at < since:
                return
            yield operation.at
        before = page[-1].seq
