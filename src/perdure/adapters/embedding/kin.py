"""Words near a word in meaning, read from a small file: what the built-in embedder's table says of single words.

`kin_table.bin` is made by `tools/build_kin.py` from `static_table.bin`. The file is:

    8 bytes   magic
    2 × 4     words, pairs (little-endian), then the bytes of the vocabulary (4)
    32        sha256 of all that follows
    …         the vocabulary, a word a line, in alphabetical order
    4 × (words + 1)   where the pairs of each word begin
    2 × pairs         the other word of each pair, nearest first
    pairs             the cosine of the two, in 255ths
"""

from __future__ import annotations

import hashlib
import struct
from array import array
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from perdure.domain.errors import Corrupt

MAGIC = b"PERDKIN1"
HEADER = struct.Struct("<8s3I32s")


class KinTable:
    """Made without numpy: a question has a few words, and each is looked up once."""

    def __init__(self, content: bytes) -> None:
        if len(content) < HEADER.size:
            raise Corrupt("the table of near words is cut short; install perdure again")
        magic, words, pairs, size, digest = HEADER.unpack_from(content)
        body = memoryview(content)[HEADER.size :]
        expected = size + 4 * (words + 1) + 3 * pairs
        if magic != MAGIC or len(body) != expected or hashlib.sha256(body).digest() != digest:
            raise Corrupt("the table of near words is not as it was built; install perdure again")
        self._words = str(body[:size], "utf-8").split("\n")
        self._places = dict(zip(self._words, range(words), strict=True))
        at = size + 4 * (words + 1)
        self._starts = _little(array("I", body[size:at].tobytes()))
        self._others = _little(array("H", body[at : at + 2 * pairs].tobytes()))
        self._cosines = body[at + 2 * pairs :]

    def near(self, word: str) -> Sequence[tuple[str, float]]:
        """Words near `word` (lower case, without accents), nearest first, with their cosine; none if it is not known."""
        place = self._places.get(word)
        if place is None:
            return ()
        return [
            (self._words[self._others[pair]], self._cosines[pair] / 255)
            for pair in range(self._starts[place], self._starts[place + 1])
        ]


@cache
def bundled_kin() -> KinTable:
    """The table that comes with the package."""
    return KinTable((files(__package__) / "kin_table.bin").read_bytes())


def table_bytes(near: dict[str, list[tuple[str, float]]]) -> bytes:
    """The file for these words, each with its near ones, nearest first."""
    words = sorted({*near, *(other for found in near.values() for other, _ in found)})
    places = {word: place for place, word in enumerate(words)}
    starts, others, cosines = array("I", [0]), array("H"), bytearray()
    for word in words:
        for other, cosine in near.get(word, ()):
            others.append(places[other])
            cosines.append(max(0, min(255, round(cosine * 255))))
        starts.append(len(others))
    vocabulary = "\n".join(words).encode()
    body = vocabulary + _little(starts).tobytes() + _little(others).tobytes() + bytes(cosines)
    return HEADER.pack(MAGIC, len(words), len(others), len(vocabulary), hashlib.sha256(body).digest()) + body


def _little(numbers: array[int]) -> array[int]:
    """From or to the byte order of the file."""
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        numbers.byteswap()
    return numbers
