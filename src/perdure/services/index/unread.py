"""Messages that the index does not know yet: they are appended without being read, and read when somebody asks or works.

Beside a message stands the job that counts it (`tally`); until that job is done, the message may be unread. A session is
read from its beginning on, so that what is unread of it is always its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate

from perdure.domain.conversation.messages import Cursor, Message, MessageQuery
from perdure.domain.jobs import Job
from perdure.domain.scope import Address
from perdure.domain.values import dataclass
from perdure.engine.conversation.jobs import TALLY
from perdure.ports.store import View

SESSIONS_MAX = 50
"""So many sessions with new messages are looked at, those whose messages came last."""

SessionPlace = tuple[Address, int]


@dataclass(frozen=True, slots=True)
class UnreadMessages:
    messages: tuple[Message, ...]
    """In the order in which they were said; those of one session in its order."""
    more: bool
    """Whether there may be others."""


def sessions_of(jobs: Iterable[Job]) -> list[SessionPlace]:
    """The sessions whose messages have still to be counted."""
    return [
        (Address(job.payload["agent"], job.payload["channel"]), job.payload["session_number"])
        for job in jobs
        if job.kind == TALLY
    ]


def unread_messages(view: View, places: Sequence[SessionPlace], *, limit: int) -> UnreadMessages:
    """The first of what is unread in these sessions."""
    looked = places[-SESSIONS_MAX:]
    pages = [unread_of(view, address, number, limit=limit) for address, number in looked]
    found = sorted((one for page in pages for one in _with_turns(page)), key=lambda one: one[0])
    more = len(looked) < len(places) or len(found) > limit or any(len(page) == limit for page in pages)
    return UnreadMessages(tuple(message for _, message in found[:limit]), more)


def newest_unread(view: View, places: Sequence[SessionPlace], *, limit: int) -> UnreadMessages:
    """The last of what is unread in these sessions."""
    looked = places[-SESSIONS_MAX:]
    found: list[tuple[datetime, Message]] = []
    more = len(looked) < len(places)
    for address, number in looked:
        page = view.list_messages(MessageQuery(address, limit, number))
        unread = _unread(view, page)
        more |= len(unread) == limit and unread[0].seq > 1
        found += _with_turns(unread)
    found.sort(key=lambda one: one[0])
    return UnreadMessages(tuple(message for _, message in found[-limit:]), more or len(found) > limit)


def unread_of(view: View, address: Address, number: int, *, limit: int) -> list[Message]:
    """The first of what is unread in a session, in order."""
    last = view.list_messages(MessageQuery(address, 1, number))
    if not last or _unread(view, last) == []:
        return []
    tally = view.find_tally(address, number)
    read = 0 if tally is None else tally.up_to_seq
    page = view.list_messages(MessageQuery(address, limit, number, after=Cursor(number, read)))
    if (found := _unread(view, page)) or page[-1:] == last:
        return found
    low, high = page[-1].seq if page else read, last[0].seq
    while high - low > 1:
        middle = (low + high) // 2
        one = view.list_messages(MessageQuery(address, 1, number, after=Cursor(number, middle - 1)))
        low, high = (low, middle) if _unread(view, one) else (middle, high)
    return _unread(view, view.list_messages(MessageQuery(address, limit, number, after=Cursor(number, low))))


def _unread(view: View, messages: Sequence[Message]) -> list[Message]:
    known = view.index.find_entries("message", [message.id for message in messages])
    return [message for message in messages if message.id not in known]


def _with_turns(page: Sequence[Message]) -> list[tuple[datetime, Message]]:
    """Messages with the time by which they take turns with those of other sessions: never earlier than one before them."""
    return list(zip(accumulate((message.at for message in page), max), page, strict=True))
