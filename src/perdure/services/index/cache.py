"""Keeps the indexes of the users who were asked last in memory, and brings one up to date when it is asked for.

A shelf is read within the transaction that uses it: what it holds and what is read for it are of the same moment.

Work that computes all the time is done by one thread at a time.

Python runs one thread at a time anyway. Several that compute hand the interpreter to and fro at every call that lets go of
it, hundreds of times for one answer: eight of them took three times the processor of one, and answered half as often.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from perdure.domain.reports import IndexCacheReport
from perdure.domain.scope import MessageId, Owner
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import TALLY
from perdure.ports.store import View
from perdure.ports.tables.index import IndexEntry, IndexHead
from perdure.services.index.unread import UnreadMessages, newest_unread, sessions_of
from perdure.services.index.writes import entry_of
from perdure.services.jobs.catch_up import is_read_again

if TYPE_CHECKING:
    from perdure.engine.search.index import SegmentStack
    from perdure.engine.search.segments import Segment


CACHE_BYTES_MAX = 512 * 1024 * 1024
"""What the shelves of all users may take together, where nobody knows how much memory there is."""
CACHE_SHARE = 8
"""Else an eighth of the memory."""
GIANT_SHARE = 2
"""A shelf that alone takes half of that is a giant: one of them is held, and the others keep their half."""
ROWS_MAX = 100_000_000
UNREAD_MAX = 100
"""Messages that were not taken in yet and are found nevertheless; of more, an answer says that they are missing."""
AHEAD_MAX = 4
"""Users whose shelves are kept with such messages: where somebody takes them in, they are needed once."""
WAITING_MAX = 1_000


@dataclass(frozen=True, slots=True)
class CachedIndex:
    """A shelf and the state of the index it shows."""

    stack: SegmentStack
    head: IndexHead
    unread: tuple[MessageId, ...] = ()
    """Messages that are in the stack and not in the index, because nobody has taken them in yet."""
    partial: bool = False
    """Whether there may be more of these, which are not in the stack."""


def usual_bytes() -> int:
    """What shelves may take when no setting says so: a share of the machine's memory."""
    try:
        return max(CACHE_BYTES_MAX // 8, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // CACHE_SHARE)
    except (AttributeError, ValueError, OSError):
        return CACHE_BYTES_MAX


class IndexCache:
    """Safe to share between threads: a shelf is never changed, only replaced.

    Those not asked for the longest are dropped first. A giant takes the place of another giant, and of nobody else beyond half
    of the room.
    """

    def __init__(self, zone: str, bytes_max: int = 0) -> None:
        self._zone = zone
        self._bytes_max = bytes_max or usual_bytes()
        self._hits = self._misses = self._evicted = 0
        self._held: OrderedDict[Owner, CachedIndex] = OrderedDict()
        self._ahead: OrderedDict[Owner, CachedIndex] = OrderedDict()
        self._lock = threading.Lock()

    def current(self, view: View, owner: Owner) -> CachedIndex:
        """The owner's shelf as of the transaction, with what was appended and not yet taken in."""
        waiting = view.ask_waiting((TALLY,), limit=WAITING_MAX)
        held = self._indexed(view, owner)
        places = [] if is_read_again() else sessions_of(waiting())
        unread = newest_unread(view, places, limit=UNREAD_MAX) if places else None
        if unread is None or not unread.messages:
            return held if unread is None or not unread.more else replace(held, partial=True)
        return self._with_unread(owner, held, unread)

    def _with_unread(self, owner: Owner, held: CachedIndex, unread: UnreadMessages) -> CachedIndex:
        from perdure.engine.search.index import stacked
        from perdure.engine.search.segments import segment_of

        ids = tuple(message.id for message in unread.messages)
        with self._lock:
            ahead = self._ahead.get(owner)
        if ahead is None or (ahead.head, ahead.unread) != (held.head, ids):
            entries = [entry_of(message, self._zone) for message in unread.messages]
            rows = [(held.head.last + place, 0, entry.ref, entry.body) for place, entry in enumerate(entries, 1)]
            stack = stacked([*held.stack.segments, segment_of(rows)], held.stack)
            ahead = CachedIndex(stack, held.head, ids)
            with self._lock:
                self._ahead[owner] = ahead
                self._ahead.move_to_end(owner)
                while len(self._ahead) > AHEAD_MAX:
                    self._ahead.popitem(last=False)
        return replace(ahead, partial=unread.more)

    def _indexed(self, view: View, owner: Owner) -> CachedIndex:
        head = view.index.head()
        with self._lock:
            held = self._held.get(owner)
            if held is not None:
                self._held.move_to_end(owner)
                self._hits += 1
            else:
                self._misses += 1
        if held is not None and held.head == head:
            return held
        goes_on = held is not None and _continues(held.head, head)
        made = CachedIndex(_updated_stack(view, held, head) if held is not None and goes_on else _read(view, head), head)
        self._keep(owner, made)
        return made

    def drop(self, owner: Owner) -> None:
        with self._lock:
            self._held.pop(owner, None)
            self._ahead.pop(owner, None)

    def report(self) -> IndexCacheReport:
        """What is held in memory, and how it served so far."""
        with self._lock:
            held = sum(one.stack.bytes for one in self._held.values())
            return IndexCacheReport(
                bytes=held,
                bytes_max=self._bytes_max,
                users=len(self._held),
                hits=self._hits,
                misses=self._misses,
                evicted=self._evicted,
            )

    def _keep(self, owner: Owner, made: CachedIndex) -> None:
        with self._lock:
            rival = self._held.get(owner)
            if rival is not None and rival.head.incarnation == made.head.incarnation and rival.head.last > made.head.last:
                return  # somebody has seen a later moment already
            self._held[owner] = made
            self._held.move_to_end(owner)
            if len(self._held) > 1:
                self._make_room()

    def _make_room(self) -> None:
        """Drop what was not asked for the longest, of the giants all but the last, of the others what exceeds their room."""
        giant = self._bytes_max // GIANT_SHARE
        sizes = {owner: one.stack.bytes for owner, one in self._held.items()}
        giants = [owner for owner, size in sizes.items() if size > giant]
        room = self._bytes_max - giant if giants else self._bytes_max
        others = [owner for owner, size in sizes.items() if size <= giant]
        total = sum(sizes[owner] for owner in others)
        dropped = giants[:-1]
        for owner in others:
            if total <= room:
                break
            dropped.append(owner)
            total -= sizes[owner]
        for owner in dropped:
            del self._held[owner]
        self._evicted += len(dropped)


def _continues(seen: IndexHead, head: IndexHead) -> bool:
    """Whether what was read before is the beginning of what is there now."""
    return (
        seen.incarnation == head.incarnation
        and seen.last <= head.last
        and seen.vectored <= head.vectored
        and seen.embedder in ("", head.embedder)
    )


def _read(view: View, head: IndexHead) -> SegmentStack:
    """Everything: packs where there are any, rows where there are none."""
    from perdure.engine.search.index import stacked
    from perdure.engine.search.segments import from_pack

    segments: list[Segment] = []
    after = 0
    for pack in view.index.packs():
        if pack.embedder != head.embedder:
            continue
        segments += _from_rows(view, head, after, pack.first - 1)
        segments.append(from_pack(pack.body))
        after = pack.last
    segments += _from_rows(view, head, after, head.last)
    return stacked(segments)


def _from_rows(view: View, head: IndexHead, after: int, upto: int) -> list[Segment]:
    from perdure.engine.search.segments import segment_of, with_vectors

    rows = view.index.entries(after, upto=upto, limit=ROWS_MAX) if upto > after else []
    if not rows:
        return []
    segment = segment_of(_plain(rows))
    vectors = dict(view.index.vectors(head.embedder, after, upto=upto)) if head.embedder else {}
    return [with_vectors(segment, vectors, dims_of(head.embedder)) if vectors else segment]


def _updated_stack(view: View, held: CachedIndex, head: IndexHead) -> SegmentStack:
    """What was read before, and what is new."""
    from perdure.engine.search.index import stacked
    from perdure.engine.search.segments import with_vectors

    segments = list(held.stack.segments)
    if head.vectored > held.head.vectored:
        late = dict(view.index.vectors(head.embedder, held.head.vectored, upto=min(head.vectored, held.head.last)))
        for place, segment in enumerate(segments) if late else ():
            if segment.number[-1] > held.head.vectored:
                segments[place] = with_vectors(segment, late, dims_of(head.embedder))
    return stacked([*segments, *_from_rows(view, head, held.head.last, head.last)], held.stack)


def _plain(rows: list[IndexEntry]) -> list[tuple[int, int, str, bytes]]:
    return [(row.number, row.replaces, row.ref, row.body) for row in rows]


def dims_of(embedder: str) -> int:
    """The length of an embedder's vectors, which is the last part of its name."""
    return int(embedder.rpartition("/")[2] or 0)


WAIT_S = 1.0
"""Anyone who has waited so long goes ahead anyway: this is for speed, and nothing may hang on it."""


class ThreadGate:
    """Lets one thread in at a time. Not to be entered twice by one thread."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self._pid != os.getpid():
            self._start()  # after a fork, its holder is no longer there
        lock = self._lock
        held = lock.acquire(timeout=WAIT_S)
        try:
            yield
        finally:
            if held:
                lock.release()
