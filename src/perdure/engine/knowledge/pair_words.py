"""How a sentence sounds beside a note: runs of its words, where those that the note has, too, stand for themselves alone.

"Sold the Golf" and "sold the boat" are then the same words said of what is known, and "my sister sold the Golf" other ones. A
logistic regression over them, hashed, was taught by labelled pairs; `tools/build_judge.py` fits it and writes `pairs.bin`: the
scale of the weights (float32, little-endian), and an int8 for each place.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from zlib import crc32

from perdure.domain.values import dataclass
from perdure.engine.words import raw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FILE = "pairs.bin"
BITS = 17
MASK = (1 << BITS) - 1
RUN_MAX = 4
BESIDE = 5
"""So many words before and after a word that both share count as said of it."""
NUMBER, SHARED, SHARED_PERSON, PERSON = "0", "#", "#person", "@person"


@dataclass(frozen=True, slots=True)
class PairTable:
    """What `pairs.bin` holds."""

    scale: float
    weights: NDArray[np.int8]


def pair_score(places: Sequence[int], taught: PairTable | None = None) -> float:
    """How much it sounds as if what is noted were over or another now: log odds."""
    held = table() if taught is None else taught
    return float(held.weights[places].sum(dtype="int32")) * held.scale / math.sqrt(len(places))


def masked(words: Sequence[str], shared: Collection[str], people: Collection[str]) -> list[str]:
    """The words, with signs for those that the note has, too, for other people, and for numbers."""
    return [_sign(word, word in shared, word in people) for word in words]


def _sign(word: str, is_shared: bool, is_person: bool) -> str:
    if is_shared:
        return SHARED_PERSON if is_person else SHARED
    if is_person:
        return PERSON
    return NUMBER if word.isdigit() else word


def places(words: Sequence[str], signs: Sequence[str], topics: Collection[str]) -> list[int]:
    """The places of a pair in the table, each once, in ascending order."""
    return sorted(_of_words(tuple(words)) | _of_signs(tuple(signs), frozenset(topics)))


# The same sentence is held against many notes, with most of which it shares no word.
@lru_cache(maxsize=64)
def _of_words(words: tuple[str, ...]) -> frozenset[int]:
    return frozenset(_place(f"W{run}") for run in _runs(words, RUN_MAX - 1))


@lru_cache(maxsize=256)
def _of_signs(signs: tuple[str, ...], topics: frozenset[str]) -> frozenset[int]:
    found = {f"M{run}" for run in _runs(signs, RUN_MAX)}
    for place, sign in enumerate(signs):
        if sign in (SHARED, SHARED_PERSON):
            found |= {f"B{one}" for one in signs[max(0, place - BESIDE) : place]}
            found |= {f"A{one}" for one in signs[place + 1 : place + 1 + BESIDE]}
    found |= {f"T{topic}|{sign}" for topic in topics for sign in set(signs)}
    return frozenset(map(_place, found))


def _place(feature: str) -> int:
    return crc32(feature.encode()) & MASK


def _runs(words: Sequence[str], longest: int) -> set[str]:
    marked = ["^", *words, "$"]
    return {" ".join(marked[start : start + size]) for size in range(1, longest + 1) for start in range(len(marked) - size + 1)}


@cache
def table() -> PairTable:
    """The table as it is shipped, read once."""
    return unpacked(raw(__package__, FILE))


def packed(weights: NDArray[np.float64]) -> bytes:
    """A table as a file."""
    import numpy as np

    scale = float(np.abs(weights).max()) / 127 or 1.0
    return struct.pack("<f", scale) + np.rint(weights / scale).astype(np.int8).tobytes()


def unpacked(data: bytes) -> PairTable:
    """The table of a file."""
    import numpy as np  # loaded with the first pair that is judged

    [scale] = struct.unpack_from("<f", data)
    return PairTable(scale, np.frombuffer(data, np.int8, offset=4))
