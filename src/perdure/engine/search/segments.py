"""Segments: a run of index entries as columns, with their postings and vectors. Made from rows, or read from a pack at once.

A segment is never changed. Positions in it are its own: items, and passages of items, count from 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt

from perdure.domain.errors import Corrupt
from perdure.domain.values import dataclass, fields
from perdure.engine.search.entries import HEADER, VERSION

Array = npt.NDArray[Any]
_MAGIC = b"perdure-pack-1\n\0"
_HEAD = np.dtype(
    [
        ("version", "u1"),
        ("kind", "u1"),
        ("role", "u1"),
        ("flags", "u1"),
        ("seq", "<u4"),
        ("at", "<i8"),
        ("valid_from", "<i8"),
        ("valid_to", "<i8"),
        ("known_from", "<i8"),
        ("closed_at", "<i8"),
        ("agent", "<u8"),
        ("session", "<u8"),
        ("times", "<u2"),
        ("passages", "<u2"),
        ("named", "<u2"),
        ("spare", "<u2"),
        ("terms", "<u4"),
    ]
)


@dataclass(frozen=True, slots=True)
class Segment:
    """Columns by item, by passage, by posting and by time that an item speaks of."""

    number: Array
    replaces: Array
    ref: Array
    """The ids of the things, as UTF-8, one after the other, and where each begins."""
    ref_start: Array
    kind: Array
    role: Array
    flags: Array
    seq: Array
    at: Array
    valid_from: Array
    valid_to: Array
    known_from: Array
    closed_at: Array
    agent: Array
    session: Array
    speaker: Array
    """Which of the names below said it; -1: it has no name."""
    name: Array
    name_start: Array
    passage_item: Array
    passage_length: Array
    term: Array
    """The hashes of all terms, ascending."""
    term_start: Array
    """Where the postings of each term begin; one longer than `term`."""
    posting_passage: Array
    posting_count: Array
    time_item: Array
    time_start: Array
    time_end: Array
    vector: Array
    """One row of 8-bit numbers per passage; no columns at all before there are any vectors."""
    scale: Array
    """What each row is to be multiplied with; 0: this passage has no vector yet, or none."""

    @property
    def items(self) -> int:
        return len(self.number)

    @property
    def passages(self) -> int:
        return len(self.passage_item)

    def ref_of(self, item: int) -> str:
        return bytes(self.ref[self.ref_start[item] : self.ref_start[item + 1]]).decode()

    def names(self) -> list[str]:
        """The names of those who speak in it."""
        starts = self.name_start.tolist()
        return [bytes(self.name[low:high]).decode("utf-8", "replace") for low, high in pairwise(starts)]

    @property
    def bytes(self) -> int:
        """What it takes in memory."""
        return sum(getattr(self, one.name).nbytes for one in fields(self))


EntryRow = tuple[int, int, str, bytes]
"""Number, the number it replaces, id and body of an entry."""


def segment_of(rows: Sequence[EntryRow]) -> Segment:
    """Entries as columns, without vectors. A body that cannot be read is `Corrupt`."""
    bodies = [row[3] for row in rows if row[3]]
    gone = np.fromiter((not row[3] for row in rows), dtype=bool, count=len(rows))
    sizes = np.fromiter(map(len, bodies), dtype=np.int64, count=len(bodies))
    data = np.frombuffer(b"".join(bodies), dtype=np.uint8)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.int64) if len(sizes) else np.zeros(0, np.int64)
    if len(sizes) and sizes.min() < HEADER.size:
        raise Corrupt("an entry of the index is cut off; run `perdure admin reindex`")
    heads = data[starts[:, None] + np.arange(HEADER.size)].reshape(-1).view(_HEAD) if len(sizes) else np.zeros(0, _HEAD)
    times, passages, terms = (heads[name].astype(np.int64) for name in ("times", "passages", "terms"))
    expected = HEADER.size + times * 16 + passages * 8 + terms * 9 + heads["named"]
    if (heads["version"] != VERSION).any() or (expected != sizes).any():
        raise Corrupt("an entry of the index is laid out in another way; run `perdure admin reindex`")
    time_at = starts + HEADER.size
    passage_at = time_at + times * 16
    term_at = passage_at + passages * 8
    count_at = term_at + terms * 8
    whole = len(rows)
    # Entries that only say what is gone have no columns of their own: they stay zero, and no kind is 0.
    place = np.flatnonzero(~gone)
    time_pairs = _gathered(data, time_at, times * 16).view("<i8").reshape(-1, 2)
    passage_pairs = _gathered(data, passage_at, passages * 8).view("<u4").reshape(-1, 2)
    counted = np.concatenate(([0], np.cumsum(passage_pairs[:, 0], dtype=np.int64)))
    last = np.cumsum(passages)
    if (counted[last] - counted[last - passages] != terms).any():
        raise Corrupt("an entry of the index miscounts its terms; run `perdure admin reindex`")
    passage_item = np.repeat(place, passages).astype(np.int32)
    posting_passage = np.repeat(np.arange(len(passage_pairs), dtype=np.int32), passage_pairs[:, 0])
    hashes = _gathered(data, term_at, terms * 8).view("<u8")
    counts = _gathered(data, count_at, terms)
    term, term_start, order = _inverted(hashes)
    refs = [row[2].encode() for row in rows]
    said_by = _names(bodies, heads["named"])
    names = list(dict.fromkeys(name for name in said_by if name))
    codes = {name: code for code, name in enumerate(names)}
    return Segment(
        number=np.fromiter((row[0] for row in rows), np.int64, whole),
        replaces=np.fromiter((row[1] for row in rows), np.int64, whole),
        ref=np.frombuffer(b"".join(refs), np.uint8),
        ref_start=np.concatenate(([0], np.cumsum([len(ref) for ref in refs]))).astype(np.int64),
        **{name: _spread(heads[name], place, whole) for name in _ITEM_COLUMNS},
        speaker=_spread(np.array([codes.get(name, -1) for name in said_by], np.int32), place, whole, -1),
        name=np.frombuffer(b"".join(names), np.uint8),
        name_start=np.cumsum([0, *map(len, names)]).astype(np.int64),
        passage_item=passage_item,
        passage_length=passage_pairs[:, 1].astype(np.int32),
        term=term,
        term_start=term_start,
        posting_passage=posting_passage[order],
        posting_count=counts[order],
        time_item=np.repeat(place, times).astype(np.int32),
        time_start=time_pairs[:, 0],
        time_end=time_pairs[:, 1],
        vector=np.zeros((len(passage_item), 0), np.int8),
        scale=np.zeros(len(passage_item), np.float32),
    )


_ITEM_COLUMNS = (
    "kind",
    "role",
    "flags",
    "seq",
    "at",
    "valid_from",
    "valid_to",
    "known_from",
    "closed_at",
    "agent",
    "session",
)


def _names(bodies: Sequence[bytes], sizes: Array) -> list[bytes]:
    return [body[len(body) - size :] if size else b"" for body, size in zip(bodies, sizes.tolist(), strict=True)]


def _spread(values: Array, place: Array, whole: int, empty: int = 0) -> Array:
    column = np.full(whole, empty, values.dtype)
    column[place] = values
    return column


def _gathered(data: Array, starts: Array, sizes: Array) -> Array:
    """The bytes of many runs, one after the other."""
    total = int(sizes.sum())
    if not total:
        return np.zeros(0, np.uint8)
    ends = np.cumsum(sizes)
    found: Array = data[np.arange(total) + np.repeat(starts - (ends - sizes), sizes)]
    return found


def _inverted(hashes: Array) -> tuple[Array, Array, Array]:
    """The distinct terms, where each one's postings begin, and the order that brings the postings there."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    first = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1]))) if len(ordered) else np.zeros(0, np.int64)
    return ordered[first], np.append(first, len(ordered)).astype(np.int64), order


# -- vectors


def packed_vectors(rows: npt.NDArray[np.float32]) -> bytes:
    """The vectors of one entry's passages as they are stored: for each its scale, then 8-bit numbers."""
    steps = np.abs(rows).max(axis=1) / 127
    whole = np.rint(rows / np.where(steps > 0, steps, 1)[:, None]).astype(np.int8)
    # Rounding leaves a vector as long as it was: the cosine of a text with itself is 1.
    rounded = np.linalg.norm(whole.astype(np.float32), axis=1)
    scales = np.linalg.norm(rows, axis=1) / np.where(rounded > 0, rounded, 1)
    return b"".join(scale.astype("<f4").tobytes() + row.tobytes() for scale, row in zip(scales, whole, strict=True))


def with_vectors(segment: Segment, vectors: Mapping[int, bytes], dims: int) -> Segment:
    """`segment` with the vectors of those entries whose numbers are given; others keep what they have."""
    matrix = np.zeros((segment.passages, dims), np.int8)
    scale = np.zeros(segment.passages, np.float32)
    if segment.vector.shape[1] == dims:
        matrix[:], scale[:] = segment.vector, segment.scale
    first = np.searchsorted(segment.passage_item, np.arange(segment.items + 1))
    places = np.searchsorted(segment.number, np.fromiter(vectors, np.int64, len(vectors)))
    size = 4 + dims
    for place, (number, body) in zip(places, vectors.items(), strict=True):
        if place >= segment.items or segment.number[place] != number:
            continue
        start, end = first[place], first[place + 1]
        if len(body) != size * (end - start):
            raise Corrupt("vectors of the index do not fit their entry; run `perdure admin reindex`")
        rows = np.frombuffer(body, np.uint8).reshape(-1, size)
        scale[start:end] = rows[:, :4].copy().view("<f4")[:, 0]
        matrix[start:end] = rows[:, 4:].view(np.int8)
    values = {one.name: getattr(segment, one.name) for one in fields(segment)}
    return Segment(**{**values, "vector": matrix, "scale": scale})


# -- packs


def to_pack(segment: Segment) -> bytes:
    """A segment as bytes: a table of contents, then the columns, each at a multiple of 8."""
    contents, parts, place = [], [], 0
    for one in fields(segment):
        column = np.ascontiguousarray(getattr(segment, one.name))
        raw = column.tobytes()
        contents.append([one.name, column.dtype.str, list(column.shape), place])
        padding = -len(raw) % 8
        parts += [raw, b"\0" * padding]
        place += len(raw) + padding
    head = json.dumps(contents).encode()
    head += b" " * (-len(head) % 8)
    content = b"".join((len(head).to_bytes(8, "little"), head, *parts))
    return _MAGIC + crc32(content).to_bytes(8, "little") + content


def from_pack(body: bytes) -> Segment:
    """The segment that was packed, without copying its columns. Anything else is `Corrupt`."""
    try:
        content = memoryview(body)[len(_MAGIC) + 8 :]
        if not body.startswith(_MAGIC) or int.from_bytes(body[len(_MAGIC) : len(_MAGIC) + 8], "little") != crc32(content):
            raise ValueError("no pack, or another one than was written")
        start = len(_MAGIC) + 16
        end = start + int.from_bytes(body[start - 8 : start], "little")
        columns = {}
        for name, dtype, shape, place in json.loads(body[start:end]):
            kind = np.dtype(dtype)
            size = int(np.prod(shape))
            columns[name] = np.frombuffer(body, kind, size, end + place).reshape(shape)
        return Segment(**columns)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise Corrupt("a pack of the index cannot be read; run `perdure admin reindex`") from error


def joined(segments: Sequence[Segment]) -> Segment:
    """Several segments as one, in their order."""
    if len(segments) == 1:
        return segments[0]
    items = np.cumsum([0, *(one.items for one in segments)])
    passages = np.cumsum([0, *(one.passages for one in segments)])
    dims = max(one.vector.shape[1] for one in segments)
    term = np.concatenate([np.repeat(one.term, np.diff(one.term_start)) for one in segments])
    distinct, starts, order = _inverted(term)
    names_of = ("number", "replaces", *_ITEM_COLUMNS)
    columns = {name: np.concatenate([getattr(one, name) for one in segments]) for name in names_of}
    refs = np.cumsum([0, *(len(one.ref) for one in segments)])
    names = list(dict.fromkeys(name for one in segments for name in one.names()))
    told = [name.encode() for name in names]
    return Segment(
        **columns,
        speaker=recoded(segments, names),
        name=np.frombuffer(b"".join(told), np.uint8),
        name_start=np.cumsum([0, *map(len, told)]).astype(np.int64),
        ref=np.concatenate([one.ref for one in segments]),
        ref_start=np.concatenate([*(one.ref_start[:-1] + at for one, at in zip(segments, refs, strict=False)), refs[-1:]]),
        passage_item=_shifted(segments, "passage_item", items),
        passage_length=np.concatenate([one.passage_length for one in segments]),
        term=distinct,
        term_start=starts,
        posting_passage=_shifted(segments, "posting_passage", passages)[order],
        posting_count=np.concatenate([one.posting_count for one in segments])[order],
        time_item=_shifted(segments, "time_item", items),
        time_start=np.concatenate([one.time_start for one in segments]),
        time_end=np.concatenate([one.time_end for one in segments]),
        vector=np.concatenate([_widened(one.vector, dims) for one in segments]),
        scale=np.concatenate([one.scale for one in segments]),
    )


def recoded(segments: Sequence[Segment], names: Sequence[str]) -> Array:
    """The speakers of all items by their place among `names`."""
    codes = {name: code for code, name in enumerate(names)}
    parts = [np.zeros(0, np.int32)]
    for one in segments:
        # The last place is for -1: said by nobody with a name.
        table = np.array([*(codes[name] for name in one.names()), -1], np.int32)
        parts.append(table[one.speaker])
    return np.concatenate(parts)


def _shifted(segments: Sequence[Segment], name: str, by: Array) -> Array:
    parts = [getattr(one, name) + np.int32(start) for one, start in zip(segments, by, strict=False)]
    return np.concatenate(parts).astype(np.int32)


def _widened(vector: Array, dims: int) -> Array:
    return vector if vector.shape[1] == dims else np.zeros((len(vector), dims), np.int8)
