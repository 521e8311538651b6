"""The laws of the index: it can be read, it knows of everything that is held, and of nothing else.

Which things are held and which are indexed is compared by sums of hashes, so that memory does not grow with them.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from perdure.domain.errors import Corrupt
from perdure.domain.recall import LEXICON
from perdure.domain.reports import Finding
from perdure.domain.scope import Owner
from perdure.engine.entries import HEADER, VERSION, name_hash, passages_in
from perdure.engine.invariants import whose

_MOST = 2**64


@dataclass(slots=True)
class IndexInvariants:
    _held: dict[tuple[Owner, str], tuple[int, int]] = field(default_factory=dict)
    _indexed: dict[tuple[Owner, str], tuple[int, int]] = field(default_factory=dict)
    _last: dict[Owner, int] = field(default_factory=dict)
    _built: set[Owner] = field(default_factory=set)
    _numbers: dict[Owner, array[int]] = field(default_factory=dict)
    _passages: dict[Owner, array[int]] = field(default_factory=dict)
    _replaced: dict[Owner, set[int]] = field(default_factory=dict)

    def held(self, owner: Owner, kind: str, ref: str) -> None:
        """Something that must be found streams by."""
        _add(self._held, (owner, kind), ref)

    def head(self, owner: Owner, last: int, lexicon: int, reached: tuple[int, int]) -> Iterator[Finding]:
        self._last[owner] = last
        if lexicon == LEXICON:
            self._built.add(owner)
        if max(reached) > last:
            yield Finding("vectors are made of entries that exist", f"{whose(owner)}, index", f"up to {max(reached)} of {last}")

    def entry(self, owner: Owner, number: int, replaces: int, name: tuple[str, str], body: bytes) -> Iterator[Finding]:
        kind, ref = name
        self._numbers.setdefault(owner, array("q")).append(number)
        if replaces:
            self._replaced.setdefault(owner, set()).add(replaces)
        where = f"{whose(owner)}, index entry {number}"
        if number > self._last.get(owner, 0):
            yield Finding("entries are numbered up to what the head says", where, f"the head says {self._last.get(owner, 0)}")
        self._passages.setdefault(owner, array("H")).append(passages_in(body))
        if body:
            _add(self._indexed, (owner, kind), ref)
            times, passages, speaker, _, terms = HEADER.unpack_from(body)[-5:] if len(body) >= HEADER.size else (0, 0, 0, 0, -1)
            if HEADER.size + 16 * times + 8 * passages + 9 * terms + speaker != len(body):
                yield Finding("every row can be read", where, "its body is cut off or altered")
            elif body[0] != VERSION or sum(_sizes(body, times, passages)) != terms:
                yield Finding("every row can be read", where, "its body is laid out in another way")

    def vector(self, owner: Owner, number: int, embedder: str, body: bytes) -> Iterator[Finding]:
        where = f"{whose(owner)}, vectors of index entry {number}"
        numbers = self._numbers.get(owner, array("q"))
        place = bisect_left(numbers, number)
        if place == len(numbers) or numbers[place] != number:
            yield Finding("vectors are made of entries that exist", where, "there is no such entry")
            return
        dims = embedder.rpartition("/")[2]
        if not dims.isdecimal() or len(body) != self._passages[owner][place] * (4 + int(dims)):
            yield Finding("every row can be read", where, f"{len(body)} bytes do not fit")

    def pack(self, owner: Owner, first: int, last: int, body: bytes) -> Iterator[Finding]:
        from perdure.engine.segments import from_pack

        where = f"{whose(owner)}, index pack {first} to {last}"
        try:
            numbers = from_pack(body).number
        except Corrupt:
            yield Finding("every row can be read", where, "its body is cut off or altered")
            return
        if not len(numbers) or (int(numbers[0]), int(numbers[-1])) != (first, last):
            yield Finding("a pack holds the entries that it says", where, "it holds others")
        gone = set(numbers.tolist()).difference(self._numbers.get(owner, ()), self._replaced.get(owner, ()))
        if gone:
            told = f"entry {min(gone)} is neither"
            yield Finding("what a pack holds is there, or something says that it is gone", where, told)

    def end(self) -> Iterator[Finding]:
        for owner in sorted({owner for owner, _ in self._held} - self._last.keys(), key=whose):
            yield Finding("everything held is indexed, and nothing else", whose(owner), "there is no index at all")
        for owner in self._built:
            for kind in ("message", "memory", "todo", "instruction"):
                held, indexed = self._held.get((owner, kind), (0, 0)), self._indexed.get((owner, kind), (0, 0))
                if held != indexed:
                    told = f"{held[0]} held, {indexed[0]} indexed" if held[0] != indexed[0] else "others than are held"
                    yield Finding("everything held is indexed, and nothing else", f"{whose(owner)}, {kind}", told)


def _sizes(body: bytes, times: int, passages: int) -> tuple[int, ...]:
    """How many terms each passage of an entry claims to have."""
    return struct.unpack_from(f"<{2 * passages}I", body, HEADER.size + 16 * times)[::2]


def _add(sums: dict[tuple[Owner, str], tuple[int, int]], place: tuple[Owner, str], ref: str) -> None:
    count, total = sums.get(place, (0, 0))
    sums[place] = (count + 1, (total + name_hash(ref)) % _MOST)
