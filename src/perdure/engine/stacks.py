"""A stack: the segments of one owner's index as one shelf, with what decides who may see which item and when it holds.

A stack is never changed. Taking in what is new makes another one, which shares the segments that stay the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from perdure.engine.entries import TELLING_BIT, TELLING_STEPS
from perdure.engine.segments import Segment, joined, recoded
from perdure.engine.shelf import NONE, Flags, Hashes, Ints, Longs, Shelf, neighbours

SMALL = 2_048
SMALL_SEGMENTS_MAX = 8
"""Segments that were made from a few rows; when there are more, they become one."""
ITEM_BYTES = 120
"""What the columns of an item take besides its segment, about."""


@dataclass(frozen=True)
class Stack:
    segments: tuple[Segment, ...]
    shelf: Shelf
    number: Longs
    flags: NDArray[np.uint8]
    live: Flags
    """Whether the item is still there: not taken out, and not replaced by a newer entry of the same thing."""
    agent: Hashes
    session: Hashes
    valid_from: Longs
    valid_to: Longs
    known_from: Longs
    closed_at: Longs
    segment_item: Longs
    """Where the items of each segment begin; one longer than the segments."""

    @cached_property
    def bytes(self) -> int:
        """What it takes in memory, about."""
        return sum(one.bytes for one in self.segments) + ITEM_BYTES * len(self.number)

    def ref_of(self, item: int) -> str:
        """The id of the thing that an item stands for."""
        place = int(np.searchsorted(self.segment_item, item, side="right")) - 1
        return self.segments[place].ref_of(item - int(self.segment_item[place]))

    def speakers_to(self, agent: int) -> tuple[str, ...]:
        """Who speaks, with a name, in what an agent (by its hash) may see."""
        names = self.shelf.speakers
        if not names:
            return ()
        seen = np.zeros(len(names) + 1, bool)  # the last place is for those without a name
        seen[self.shelf.speaker_code[self.live & ((self.agent == 0) | (self.agent == np.uint64(agent)))]] = True
        return tuple(name for place, name in enumerate(names) if seen[place])

    def refs_of(self, items: Ints) -> list[str]:
        """The ids of the things that items stand for."""
        places = np.searchsorted(self.segment_item, items, side="right") - 1
        inner = (items - self.segment_item[places]).tolist()
        return [self.segments[place].ref_of(item) for place, item in zip(places.tolist(), inner, strict=True)]

    def newer_than(self, number: int) -> int:
        """How many items that are still there have a higher number."""
        return int(np.count_nonzero(self.live[int(np.searchsorted(self.number, number, side="right")) :]))


AT_ONCE = 64
"""With more new items than that, everything is ordered anew."""


def stacked(segments: Sequence[Segment], seen: Stack | None = None) -> Stack:
    """All of `segments` as one. They follow each other by number. `seen` is the stack of all but the last few items."""
    held = _tidied([one for one in segments if one.items])
    items = np.cumsum([0, *(one.items for one in held)])
    number = _column(held, "number", np.int64)
    kind = _column(held, "kind", np.uint8)
    flags = _column(held, "flags", np.uint8)
    live = _live(number, kind, _column(held, "replaces", np.int64))
    session = _column(held, "session", np.uint64)
    return Stack(
        segments=tuple(held),
        shelf=_shelf(held, items, session, live, flags, seen),
        number=number,
        flags=flags,
        live=live,
        agent=_column(held, "agent", np.uint64),
        session=session,
        valid_from=_column(held, "valid_from", np.int64),
        valid_to=_column(held, "valid_to", np.int64),
        known_from=_column(held, "known_from", np.int64),
        closed_at=_column(held, "closed_at", np.int64),
        segment_item=items,
    )


def _shelf(
    held: Sequence[Segment], items: Longs, session: Hashes, live: Flags, flags: NDArray[np.uint8], seen: Stack | None
) -> Shelf:
    seq = _column(held, "seq", np.int32)
    if seen is not None and _continues(seen, live, seq):
        sessions, code = _more_codes(seen, session)
        before, after = _more_neighbours(seen, code, live, seq)
    else:
        sessions, code = _codes(session)
        before, after = neighbours(np.where(live & (seq > 0), code, NONE).astype(np.int32), seq)
    passage_item = _moved(held, "passage_item", items)
    lengths = _column(held, "passage_length", np.float32)
    speakers = tuple(dict.fromkeys(name for one in held for name in one.names()))
    return Shelf(
        kind=_column(held, "kind", np.uint8),
        role=_column(held, "role", np.uint8),
        seq=seq,
        at=_column(held, "at", np.int64),
        session_code=code,
        speaker_code=recoded(held, speakers),
        telling=((flags >> TELLING_BIT) / np.float32(TELLING_STEPS)).astype(np.float32),
        length=np.bincount(passage_item, lengths, len(live)).astype(np.float32),
        before=before,
        after=after,
        passage_item=passage_item,
        passage_length=lengths,
        parts=tuple(held),
        part_passage=np.cumsum([0, *(one.passages for one in held)])[:-1],
        time_item=_moved(held, "time_item", items),
        time_start=_column(held, "time_start", np.int64),
        time_end=_column(held, "time_end", np.int64),
        speakers=speakers,
        sessions=sessions,
    )


def _continues(seen: Stack, live: Flags, seq: Ints) -> bool:
    """Whether what is new leaves the order of what was seen as it is: no message of it was changed or taken out."""
    size = len(seen.number)
    gone = seen.live & ~live[:size]
    return size > 0 and len(live) - size <= AT_ONCE and not bool((seq[:size][gone] > 0).any())


def _more_codes(seen: Stack, session: Hashes) -> tuple[int, Ints]:
    sessions, size = seen.shelf.sessions, len(seen.number)
    code = np.concatenate((seen.shelf.session_code, np.full(len(session) - size, NONE, np.int32)))
    for one in set(session[size:].tolist()) - {0}:
        places = np.flatnonzero(session == np.uint64(one))
        if places[0] < size:
            code[places] = code[places[0]]
        else:
            code[places] = sessions
            sessions += 1
    return sessions, code


def _more_neighbours(seen: Stack, code: Ints, live: Flags, seq: Ints) -> tuple[Ints, Ints]:
    size = len(seen.number)
    none = np.full(len(code) - size, NONE, np.int32)
    before, after = np.concatenate((seen.shelf.before, none)), np.concatenate((seen.shelf.after, none))
    for one in set(code[size:].tolist()) - {NONE}:
        places = np.flatnonzero((code == one) & live & (seq > 0)).astype(np.int32)
        places = places[np.argsort(seq[places], kind="stable")]
        before[places[1:]], after[places[:-1]] = places[:-1], places[1:]
    return before, after


def _tidied(segments: list[Segment]) -> list[Segment]:
    """The same with the small ones at the end joined, when there are many."""
    small = 0
    while small < len(segments) and segments[-1 - small].items < SMALL:
        small += 1
    if small <= SMALL_SEGMENTS_MAX:
        return segments
    return [*segments[: len(segments) - small], joined(segments[len(segments) - small :])]


def _column(segments: Sequence[Segment], name: str, dtype: type) -> NDArray[Any]:
    return np.concatenate([np.zeros(0, dtype), *(getattr(one, name) for one in segments)]).astype(dtype, copy=False)


def _moved(segments: Sequence[Segment], name: str, by: Longs) -> Ints:
    parts = [getattr(one, name) + np.int32(start) for one, start in zip(segments, by, strict=False)]
    return np.concatenate([np.zeros(0, np.int32), *parts]).astype(np.int32, copy=False)


def _live(number: Longs, kind: NDArray[np.uint8], replaces: Longs) -> Flags:
    live: Flags = kind != 0
    gone = replaces[replaces > 0]
    if len(gone) and len(number):
        places = np.minimum(np.searchsorted(number, gone), len(number) - 1)
        live[places[number[places] == gone]] = False
    return live


def _codes(hashes: Hashes) -> tuple[int, Ints]:
    """Sessions by number instead of by hash, and how many there are; hash 0 is no session."""
    known, codes = np.unique(hashes, return_inverse=True)
    none = int(len(known) > 0 and known[0] == 0)
    return len(known) - none, (codes - none).astype(np.int32)
