"""A stack: the segments of one owner's index as one shelf, and which of its items a question may be answered from at all.

A stack is never changed. Taking in what is new makes another one, which shares the segments that stay the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from perdure.domain.context.recall import EntryKind
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, field
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.columns import NONE, Flags, Hashes, Ints, ItemColumns, Longs, neighbours
from perdure.engine.search.entries import ARCHIVED, BEGUN, FOREVER, KIND_CODES, ROLE_CODES, TELLING_BIT, TELLING_STEPS
from perdure.engine.search.segments import Segment, joined, recoded

SMALL = 2_048
SMALL_SEGMENTS_MAX = 8
"""Segments that were made from a few rows; when there are more, they become one."""
ITEM_BYTES = 120
"""What the columns of an item take besides its segment, about."""


class Standing(NamedTuple):
    """What may answer from one moment until another."""

    allowed: Allowed
    since: int
    until: int


@dataclass(frozen=True)
class SegmentStack:
    segments: tuple[Segment, ...]
    shelf: ItemColumns
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
    standing: dict[object, Standing] = field(default_factory=dict, compare=False, repr=False)
    """What was found out for questions that were asked of it, by what they are asked of."""
    speakers: dict[int, tuple[str, ...]] = field(default_factory=dict, compare=False, repr=False)

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
        known = self.speakers.get(agent)
        if known is None:
            seen = np.zeros(len(names) + 1, bool)  # the last place is for those without a name
            seen[self.shelf.speaker_code[self.live & ((self.agent == 0) | (self.agent == np.uint64(agent)))]] = True
            known = tuple(name for place, name in enumerate(names) if seen[place])
            if len(self.speakers) >= STANDING_MAX:
                self.speakers.clear()
            self.speakers[agent] = known
        return known

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


def stacked(segments: Sequence[Segment], seen: SegmentStack | None = None) -> SegmentStack:
    """All of `segments` as one. They follow each other by number. `seen` is the stack of all but the last few items."""
    held = _tidied([one for one in segments if one.items])
    items = np.cumsum([0, *(one.items for one in held)])
    number = _column(held, "number", np.int64)
    kind = _column(held, "kind", np.uint8)
    flags = _column(held, "flags", np.uint8)
    live = _live(number, kind, _column(held, "replaces", np.int64))
    session = _column(held, "session", np.uint64)
    return SegmentStack(
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
    held: Sequence[Segment], items: Longs, session: Hashes, live: Flags, flags: NDArray[np.uint8], seen: SegmentStack | None
) -> ItemColumns:
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
    return ItemColumns(
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


def _continues(seen: SegmentStack, live: Flags, seq: Ints) -> bool:
    """Whether what is new leaves the order of what was seen as it is: no message of it was changed or taken out."""
    size = len(seen.number)
    gone = seen.live & ~live[:size]
    return size > 0 and len(live) - size <= AT_ONCE and not bool((seq[:size][gone] > 0).any())


def _more_codes(seen: SegmentStack, session: Hashes) -> tuple[int, Ints]:
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


def _more_neighbours(seen: SegmentStack, code: Ints, live: Flags, seq: Ints) -> tuple[Ints, Ints]:
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


_UNTRUSTED_ROLES = (ROLE_CODES["tool"], ROLE_CODES["system"])


@dataclass(frozen=True, slots=True)
class SearchFilter:
    """What may answer. Times are in microseconds."""

    kinds: tuple[EntryKind, ...]
    agent: int
    """The hash of the agent that asks: it sees what is its own, and what is everybody's."""
    now_us: int
    as_of_us: int | None = None
    known_at_us: int | None = None
    sessions: tuple[int, ...] | None = None
    """Hashes of the sessions it must be from."""
    time_range: Span | None = None
    terms: tuple[frozenset[int], ...] | None = None
    """It must have all terms of one of these sets."""
    places: tuple[int, ...] = ()
    """Hashes of the channel on which it asks: there it sees what is of that channel."""
    trusted: bool = False
    """No messages of tools, and none that came from elsewhere."""

    @property
    def narrows(self) -> bool:
        """Whether it asks for less than all that an agent sees now."""
        return any(one is not None for one in (self.as_of_us, self.known_at_us, self.sessions, self.time_range, self.terms))


STANDING_MAX = 4
"""What so many agents may be answered from is kept with a stack."""


def allowed(stack: SegmentStack, wanted: SearchFilter) -> Allowed:
    """What may answer. Asked of all there is, and of now, it is the same until something begins or ends."""
    if wanted.narrows:
        return Allowed(stack.shelf, _mask(stack, wanted))
    kept, key, now = stack.standing, (wanted.kinds, wanted.agent, wanted.places, wanted.trusted), wanted.now_us
    known = kept.get(key)
    if known is not None and known.since <= now < known.until:
        return known.allowed
    if len(kept) >= STANDING_MAX:
        kept.clear()
    made = Allowed(stack.shelf, _mask(stack, wanted))
    kept[key] = Standing(made, *_between(stack, now))
    return made


def _between(stack: SegmentStack, now: int) -> tuple[int, int]:
    """The moments before and after this one at which something begins or ends."""
    since, until = -FOREVER, FOREVER
    bounded = stack.live & (stack.shelf.kind != KIND_CODES["message"])
    for moments in (stack.valid_from[bounded], stack.valid_to[bounded]):
        past = moments <= now
        since = max(since, int(moments.max(initial=since, where=past)))
        until = min(until, int(moments.min(initial=until, where=~past)))
    return since, until


def _mask(stack: SegmentStack, wanted: SearchFilter) -> Flags:
    kinds = np.zeros(256, bool)
    kinds[[KIND_CODES[kind] for kind in wanted.kinds]] = True
    seen: Flags = (stack.agent == 0) | (stack.agent == np.uint64(wanted.agent))
    for place in wanted.places:
        seen |= stack.agent == np.uint64(place)
    mask: Flags = stack.live & kinds[stack.shelf.kind] & seen
    mask &= (stack.flags & ARCHIVED) == 0
    mask &= _holding(stack, wanted)
    if wanted.sessions is not None:
        mask &= np.isin(stack.session, np.array(wanted.sessions, np.uint64))
    if wanted.time_range is not None:
        # A series holds times of its own: whether it covers the range is told with the answer.
        mask &= in_span(stack, wanted.time_range) | (stack.shelf.kind == KIND_CODES["series"])
    if wanted.terms is not None:
        mask &= _naming(stack, wanted.terms)
    if wanted.trusted:
        mask &= ~((stack.shelf.kind == KIND_CODES["message"]) & np.isin(stack.shelf.role, _UNTRUSTED_ROLES))
    return mask


def without(stack: SegmentStack, given: Allowed, kind: EntryKind, refs: Collection[str]) -> Allowed:
    """The same without the things of one kind that `refs` names."""
    if not refs:
        return given
    items = np.flatnonzero(given.mask & (stack.shelf.kind == KIND_CODES[kind])).astype(np.int32)
    gone = [item for item, ref in zip(items.tolist(), stack.refs_of(items), strict=True) if ref in refs]
    left = given.mask.copy()
    left[gone] = False
    return Allowed(stack.shelf, left)


def _holding(stack: SegmentStack, wanted: SearchFilter) -> Flags:
    """What was so at the moment asked about, as far as was known at the other; as `Statement.holds_at` says for one, and
    `Statement.is_current` for now.
    """
    said = stack.shelf.kind == KIND_CODES["message"]
    if wanted.as_of_us is None and wanted.known_at_us is None:
        # A message stays what was said, whatever the clock of its sender was.
        begun = ((stack.flags & BEGUN) != 0) | (stack.valid_from <= wanted.now_us)
        # What was over when its end was said is over, whatever the clock was then; what has no end has none to compare.
        over = (stack.valid_to <= wanted.now_us) | ((stack.valid_to <= stack.closed_at) & (stack.closed_at < FOREVER))
        current: Flags = said | (begun & ~over)
        return current
    end = stack.valid_to
    holding: Flags = np.ones(len(stack.number), bool)
    if wanted.known_at_us is not None:
        holding = stack.known_from <= wanted.known_at_us
        end = np.where(stack.closed_at > wanted.known_at_us, FOREVER, end)
    moment = wanted.known_at_us if wanted.as_of_us is None else wanted.as_of_us
    return holding & _holds_at(stack, wanted.now_us if moment is None else moment, end)


def _holds_at(stack: SegmentStack, moment: int, end: Longs) -> Flags:
    holds: Flags = (stack.valid_from <= moment) & (moment < end)
    return holds


def in_span(stack: SegmentStack, span: Span) -> Flags:
    """What was said in that time, or speaks of it."""
    shelf = stack.shelf
    mask = (shelf.at >= span.start_us) & (shelf.at < span.end_us)
    speaks = (shelf.time_start < span.end_us) & (shelf.time_end > span.start_us)
    mask[shelf.time_item[speaks]] = True
    return mask


def _naming(stack: SegmentStack, sets: Sequence[frozenset[int]]) -> Flags:
    mask = np.zeros(len(stack.number), bool)
    for terms in sets:
        found, passages, _ = stack.shelf.postings(np.array(sorted(terms), np.uint64))
        pairs = np.unique(np.stack((stack.shelf.passage_item[passages], found)), axis=1)
        mask |= np.bincount(pairs[0], minlength=len(mask)) >= max(1, len(terms))
    return mask
