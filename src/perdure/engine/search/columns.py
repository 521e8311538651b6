"""Everything of one owner that can be searched, as columns of numbers: built once, read by every search, never changed.

No text is kept here, and nothing is scored here: `ranking` reads the columns. An item is what a search finds (a message, a
memory); a passage is what is scored (an item, or a part of a long one). Items may come in any order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from perdure.domain.values import dataclass
from perdure.engine.search.entries import Passage

try:
    import simsimd
except ImportError:  # where there is no wheel of it: numpy finds the same, in four times the time
    simsimd = None  # type: ignore[assignment]

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]

BRIEF_TERMS = 30.0
"""An item of so many terms (some sixty words) gets half as much from its neighbours as one of a single word."""
NONE = -1
"""In place of an item or a session where there is none."""
UNKNOWN_US = -(2**63)
"""The time of an item of which no time is known."""


VECTOR_ROWS = 1_024
"""Without a kernel for 8-bit numbers, vectors are scored in blocks that fit into a processor's cache as float32."""


class Voice(IntEnum):
    """Whose words an item is, as far as it matters for what is asked."""

    NONE = 0
    USER = 1
    ASSISTANT = 2
    TOOL = 3
    SYSTEM = 4


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One item as the shelf takes it. `vectors` has a row of 8-bit numbers per passage, `scales` what each is multiplied by."""

    passages: Sequence[Passage]
    kind: int = 0
    role: int = Voice.NONE
    session: str = ""
    seq: int = 0
    speaker: str = ""
    at: int = UNKNOWN_US
    telling: float = 0.0
    times: Sequence[tuple[int, int]] = ()
    """Half-open stretches of time that the text names, in microseconds."""
    vectors: NDArray[np.int8] | None = None
    scales: Floats | None = None


class IndexPart(Protocol):
    """Postings and vectors of some of the passages, which count from 0 in it."""

    @property
    def term(self) -> Hashes:
        """The hashes of all terms, ascending."""

    @property
    def term_start(self) -> Longs:
        """Where the postings of each term begin; one longer than `term`."""

    @property
    def posting_passage(self) -> Ints: ...
    @property
    def posting_count(self) -> NDArray[np.uint8]: ...
    @property
    def vector(self) -> NDArray[np.int8]:
        """A row per passage; no columns at all before there are any vectors."""

    @property
    def scale(self) -> Floats:
        """What each row is multiplied by; 0: this passage has no vector."""


class PartColumns(NamedTuple):
    """A part made of columns."""

    term: Hashes
    term_start: Longs
    posting_passage: Ints
    posting_count: NDArray[np.uint8]
    vector: NDArray[np.int8]
    scale: Floats


@dataclass(frozen=True)
class ItemColumns:
    """Columns by item, by passage and by time that an item speaks of; see `ItemRow` for what they mean."""

    kind: NDArray[np.uint8]
    role: NDArray[np.uint8]
    seq: Ints
    at: Longs
    session_code: Ints
    """From 0 on, each session of the shelf its number; `NONE` for an item outside of any."""
    speaker_code: Ints
    """Places in `speakers`; `NONE` where nobody is named."""
    telling: Floats
    length: Floats
    """Terms of the item in all."""
    before: Ints
    """The item before in the same session, or `NONE`."""
    after: Ints
    passage_item: Ints
    passage_length: Floats
    parts: tuple[IndexPart, ...]
    """Postings and vectors, part by part, in the order of the passages."""
    part_passage: Longs
    """Where the passages of each part begin."""
    time_item: Ints
    time_start: Longs
    time_end: Longs
    speakers: tuple[str, ...]
    sessions: int

    @property
    def items(self) -> int:
        return len(self.session_code)

    @cached_property
    def one_passage_each(self) -> bool:
        """Whether passages are the items, in their order, so that a score per passage is one per item."""
        return len(self.passage_item) == self.items and bool((self.passage_item == np.arange(self.items)).all())

    @cached_property
    def unseen(self) -> Flags:
        """Which items have no vector."""
        scales = [part.scale for part in self.parts]
        seen = np.zeros(self.items, bool)
        if scales:
            seen[self.passage_item[np.concatenate(scales) > 0]] = True
        return ~seen

    @cached_property
    def surroundings(self) -> Surroundings:
        """What depends on the shelf alone when items get something from their neighbours."""
        return surroundings(self, BRIEF_TERMS)

    def postings(self, terms: Hashes) -> tuple[Longs, Ints, Floats]:
        """All postings of `terms` side by side: the place of the term among them, the passage, and how often it is there."""
        held = self.vocabulary
        # Where each term would stand in each part: a row per part.
        at = np.array([part.term.searchsorted(terms) for part in self.parts], np.int64).reshape(len(self.parts), len(terms))
        at += held.first[:, None]
        found = held.term[at] == terms
        rows, places = found.nonzero()
        low = held.start[at[found]]
        sizes = held.end[at[found]] - low
        passages, counts = [np.zeros(0, np.int32)], [np.zeros(0, np.uint8)]
        for row, start, end in zip(rows.tolist(), low.tolist(), (low + sizes).tolist(), strict=True):
            part = self.parts[row]
            passages.append(part.posting_passage[start:end])
            counts.append(part.posting_count[start:end])
        passage = np.concatenate(passages)
        passage += np.repeat(self.part_passage[rows].astype(np.int32), sizes)
        return np.repeat(places, sizes), passage, np.concatenate(counts).astype(np.float32)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The terms of all parts, one part behind the other."""
        # Behind the last term of a part stands one that no text has, so that whatever is looked for stands somewhere.
        sizes = [len(part.term) + 1 for part in self.parts]
        term, start, end = np.zeros(sum(sizes), np.uint64), np.zeros(sum(sizes), np.int64), np.zeros(sum(sizes), np.int64)
        first = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        for part, low, size in zip(self.parts, first.tolist(), sizes, strict=True):
            high = low + size - 1
            term[low:high], start[low:high], end[low:high] = part.term, part.term_start[:-1], part.term_start[1:]
        return Vocabulary(term, start, end, first)

    def nearness(self, vector: Floats) -> Floats:
        """The cosine of each passage with a vector of length 1; 0 where there is nothing to compare."""
        near = np.zeros(len(self.passage_item), np.float32)
        steps, size = in_steps(vector)
        for part, first in zip(self.parts, self.part_passage, strict=True):
            count, dims = part.vector.shape
            if dims == len(vector):
                found = near[first : first + count]
                products(part.vector, steps, found)
                found *= part.scale
        near *= size
        return near

    @cached_property
    def first_passages(self) -> Longs:
        """Of each item that has any, the place of its first passage; those of an item follow each other."""
        return np.flatnonzero(np.diff(self.passage_item, prepend=NONE))


EXACT = 2.0**24
"""Up to here, every whole number is a float32."""
STEPS_MAX = 16_000.0
HIGH = 128


def in_steps(vector: Floats) -> tuple[Ints, np.float32]:
    """A vector in whole numbers, and what one of them stands for.

    They are so small that no sum of products with a row of 8-bit numbers leaves what float32 holds exactly: multiplied
    in any order, they give the same. The direction changes by less than a hundredth of a percent.
    """
    room = math.sqrt(len(vector))
    length = float(np.linalg.norm(vector))
    steps = min(STEPS_MAX, EXACT / (127 * room) - room / 2) / (length or 1.0)
    return np.rint(vector * steps).astype(np.int32), np.float32(1 / steps)


def products(rows: NDArray[np.int8], steps: Ints, out: Floats) -> None:
    """The product of each row with a vector in steps."""
    if simsimd is not None and len(rows):
        high = (steps + HIGH // 2) // HIGH
        both = np.stack((high, steps - high * HIGH)).astype(np.int8)
        found = np.asarray(simsimd.cdist(rows, both, metric="dot"))
        np.add(found[:, 0] * HIGH, found[:, 1], out=out, casting="same_kind")
        return
    floats = steps.astype(np.float32)
    block = np.empty((VECTOR_ROWS, len(steps)), np.float32)
    for low in range(0, len(rows), VECTOR_ROWS):
        some = block[: len(rows) - low]
        some[:] = rows[low : low + VECTOR_ROWS]
        np.dot(some, floats, out=out[low : low + len(some)])


class Vocabulary(NamedTuple):
    term: Hashes
    start: Longs
    """Where the postings of the term begin in its part, and where they end."""
    end: Longs
    first: Longs
    """Where the terms of each part begin."""


class Surroundings(NamedTuple):
    """How much items take from their neighbours, and let through."""

    brevity: Floats
    """How short an item is: 1 for nothing, a half for one of so many terms."""
    sides: tuple[tuple[NDArray[np.intp], Floats, Floats], ...]
    """Before and after: the neighbour, 1 where there is one, and how much comes through it from behind."""


def surroundings(shelf: ItemColumns, brief_terms: float) -> Surroundings:
    brevity: Floats = 1 / (1 + np.square(shelf.length / np.float32(brief_terms)))
    sides = []
    for beside in (shelf.before, shelf.after):
        has = (beside >= 0).astype(np.float32)
        sides.append((np.maximum(beside, 0).astype(np.intp), has, has * brevity[beside]))
    return Surroundings(brevity, tuple(sides))


def item_columns(rows: Sequence[ItemRow], *, dims: int = 0) -> ItemColumns:
    """The shelf of these items, in their order, with vectors of `dims` numbers."""
    sessions = _codes(row.session for row in rows)
    speakers = _codes(row.speaker for row in rows)
    code = np.array([sessions.get(row.session, NONE) for row in rows], np.int32)
    seq = np.array([row.seq for row in rows], np.int32)
    before, after = neighbours(code, seq)
    passages = [passage for row in rows for passage in row.passages]
    times = [(item, start, end) for item, row in enumerate(rows) for start, end in row.times]
    spoken = np.array(times, np.int64).reshape(-1, 3)
    return ItemColumns(
        kind=np.array([row.kind for row in rows], np.uint8),
        role=np.array([row.role for row in rows], np.uint8),
        seq=seq,
        at=np.array([row.at for row in rows], np.int64),
        session_code=code,
        speaker_code=np.array([speakers.get(row.speaker, NONE) for row in rows], np.int32),
        telling=np.array([row.telling for row in rows], np.float32),
        length=np.array([sum(passage.length for passage in row.passages) for row in rows], np.float32),
        before=before,
        after=after,
        passage_item=np.repeat(np.arange(len(rows), dtype=np.int32), [len(row.passages) for row in rows]),
        passage_length=np.array([passage.length for passage in passages], np.float32),
        parts=(PartColumns(*posted([passage.terms for passage in passages]), *_vectors(rows, len(passages), dims)),),
        part_passage=np.zeros(1, np.int64),
        time_item=spoken[:, 0].astype(np.int32),
        time_start=spoken[:, 1],
        time_end=spoken[:, 2],
        speakers=tuple(speakers),
        sessions=len(sessions),
    )


def neighbours(session_code: Ints, seq: Ints) -> tuple[Ints, Ints]:
    """For each item the one before and the one after it in its session, by `seq`."""
    before = np.full(len(session_code), NONE, np.int32)
    after = np.full(len(session_code), NONE, np.int32)
    order = np.lexsort((seq, session_code)).astype(np.int32)
    left, right = order[:-1], order[1:]
    beside = (session_code[left] == session_code[right]) & (session_code[right] != NONE)
    before[right[beside]] = left[beside]
    after[left[beside]] = right[beside]
    return before, after


def posted(counts: Sequence[dict[int, int]]) -> tuple[Hashes, Longs, Ints, NDArray[np.uint8]]:
    """The postings of passages whose terms and counts are given: the four columns of a shelf."""
    sizes = [len(held) for held in counts]
    total = sum(sizes)
    terms = np.fromiter((term for held in counts for term in held), np.uint64, total)
    times = np.fromiter((min(255, times) for held in counts for times in held.values()), np.uint8, total)
    passages = np.repeat(np.arange(len(counts), dtype=np.int32), sizes)
    order = np.argsort(terms, kind="stable")
    distinct, starts = np.unique(terms[order], return_index=True)
    return distinct, np.append(starts, total).astype(np.int64), passages[order], times[order]


def rounded(vectors: Floats) -> tuple[NDArray[np.int8], Floats]:
    """Rows as 8-bit numbers, and what each is multiplied by: a quarter of the memory for an error of half a percent."""
    scale = (np.abs(vectors).max(axis=1, initial=0.0) / 127).astype(np.float32)
    return np.rint(vectors / np.where(scale > 0, scale, 1)[:, None]).astype(np.int8), scale


def _vectors(rows: Sequence[ItemRow], passages: int, dims: int) -> tuple[NDArray[np.int8], Floats]:
    vector = np.zeros((passages, dims), np.int8)
    scale = np.zeros(passages, np.float32)
    start = 0
    for row in rows:
        end = start + len(row.passages)
        if row.vectors is not None and row.scales is not None:
            vector[start:end] = row.vectors
            scale[start:end] = row.scales
        start = end
    return vector, scale


def _codes(names: Iterable[str]) -> dict[str, int]:
    """Each name its number, in the order of their first use; the empty one is no name."""
    return {name: code for code, name in enumerate(dict.fromkeys(filter(None, names)))}
