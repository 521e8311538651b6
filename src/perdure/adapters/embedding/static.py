"""The built-in embedder: one vector per piece of a word, and their sum per text; and the words near a word in meaning.

Needs numpy and no model at run time. `static_table.bin` is made by `tools/build_embedder.py`, which also says how the vectors
come about. The file is:

    8 bytes   magic
    4 × 4     version of the format, dims, rows, bytes of the vocabulary (little-endian)
    32        sha256 of all that follows
    …         the vocabulary, a piece a line, in order of row
    4 × rows  scale of each row (float32); it carries the weight of the piece
    rest      rows × dims of int8

`kin_table.bin` is made of it by `tools/build_kin.py`:

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
from typing import TYPE_CHECKING

from perdure.adapters.embedding.wordpiece import WordPiece
from perdure.domain.errors import Corrupt
from perdure.domain.values import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perdure.ports.models import TextKind, Vectors

NAME = "perdure-static-2"
TEXT_CHARS_MAX = 16_384
"""A text is read this far. A sum over more says no longer what the text is about, and the work stays bounded."""

MAGIC = b"PERDSTAT"
FORMAT = 1
HEADER = struct.Struct("<8s4I32s")
KIN_MAGIC = b"PERDKIN1"
KIN_HEADER = struct.Struct("<8s3I32s")
VECTORS_KEPT_MAX = 50_000
_VECTORS: dict[str, Vectors] = {}


@dataclass(frozen=True, slots=True)
class VectorTable:
    """Pieces and their vectors: row `i` is `scales[i] * codes[i]`."""

    vocabulary: dict[str, int]
    scales: NDArray[np.float32]
    codes: NDArray[np.int8]
    digest: str


class StaticEmbedder:
    """Embeds some ten thousand short texts a second. Order of words and the context of a word are not seen.

    Texts are read up to `TEXT_CHARS_MAX` characters. Made without work: the table is read at first use, once a process.
    """

    @property
    def name(self) -> str:
        return NAME

    @property
    def version(self) -> str:
        """The first twelve digits of the table's sha256."""
        return bundled().table.digest[:12]

    @property
    def dims(self) -> int:
        return int(bundled().table.codes.shape[1])

    def embed(self, texts: Sequence[str], *, kind: TextKind = "passage") -> Vectors:
        """As the port says. Never raises for any text; `kind` makes no difference."""
        return bundled().embed(texts)


class VectorLookup:
    """A table with the tokenizer of its vocabulary."""

    def __init__(self, table: VectorTable) -> None:
        self.table = table
        self._pieces = WordPiece(table.vocabulary)

    def embed(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        scales, codes = self.table.scales, self.table.codes
        sums = np.zeros((len(texts), codes.shape[1]), np.float32)
        for row, text in enumerate(texts):
            ids = self._pieces.ids(text[:TEXT_CHARS_MAX])
            if ids:
                at = np.array(ids, np.intp)
                # A product per text: half as fast again as looking up all texts at once and summing by segments.
                sums[row] = scales.take(at) @ codes.take(at, axis=0).astype(np.float32)
        return unit(sums)


@cache
def bundled() -> VectorLookup:
    """The table that comes with the package."""
    from importlib.resources import files

    return VectorLookup(read_table((files(__package__) / "static_table.bin").read_bytes()))


def read_table(content: bytes) -> VectorTable:
    """The table in `content`; anything but the bytes that were written is `Corrupt`."""
    import numpy as np

    if len(content) < HEADER.size:
        raise Corrupt("the embedder's table is cut short; install perdure again")
    magic, version, dims, rows, vocabulary_bytes, digest = HEADER.unpack_from(content)
    if magic != MAGIC or version != FORMAT:
        raise Corrupt("the embedder's table is of another format than this perdure reads; install perdure again")
    body = memoryview(content)[HEADER.size :]
    if len(body) != vocabulary_bytes + 4 * rows + rows * dims or hashlib.sha256(body).digest() != digest:
        raise Corrupt("the embedder's table is damaged; install perdure again")
    pieces = str(body[:vocabulary_bytes], "utf-8").split("\n")
    scales = np.frombuffer(body, "<f4", rows, vocabulary_bytes)
    codes = np.frombuffer(body, np.int8, rows * dims, vocabulary_bytes + 4 * rows).reshape(rows, dims)
    return VectorTable(dict(zip(pieces, range(rows), strict=True)), scales, codes, digest.hex())


def table_bytes(pieces: Sequence[str], vectors: NDArray[np.float32]) -> bytes:
    """The file for `vectors` [rows, dims], each row rounded to 255 steps between its largest numbers."""
    import numpy as np

    scales: NDArray[np.float32] = (np.abs(vectors).max(axis=1) / 127).astype("<f4")
    codes = np.rint(vectors / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    vocabulary = "\n".join(pieces).encode()
    body: bytes = vocabulary + scales.tobytes() + codes.tobytes()
    rows, dims = vectors.shape
    return HEADER.pack(MAGIC, FORMAT, dims, rows, len(vocabulary), hashlib.sha256(body).digest()) + body


def unit(rows: NDArray[np.floating]) -> Vectors:
    """The rows at length 1, as float32; a row of zeros stays one."""
    import numpy as np

    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    lengths[lengths == 0] = 1
    scaled: Vectors = (rows / lengths).astype(np.float32, copy=False)
    return scaled


class KinTable:
    """Made without numpy: a question has a few words, and each is looked up once."""

    def __init__(self, content: bytes) -> None:
        if len(content) < KIN_HEADER.size:
            raise Corrupt("the table of near words is cut short; install perdure again")
        magic, words, pairs, size, digest = KIN_HEADER.unpack_from(content)
        body = memoryview(content)[KIN_HEADER.size :]
        expected = size + 4 * (words + 1) + 3 * pairs
        if magic != KIN_MAGIC or len(body) != expected or hashlib.sha256(body).digest() != digest:
            raise Corrupt("the table of near words is damaged; install perdure again")
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
    from importlib.resources import files

    return KinTable((files(__package__) / "kin_table.bin").read_bytes())


def kin_bytes(near: dict[str, list[tuple[str, float]]]) -> bytes:
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
    return KIN_HEADER.pack(KIN_MAGIC, len(words), len(others), len(vocabulary), hashlib.sha256(body).digest()) + body


def _little(numbers: array[int]) -> array[int]:
    """From or to the byte order of the file."""
    if struct.pack("=H", 1) != struct.pack("<H", 1):
        numbers.byteswap()
    return numbers


def near_words(word: str) -> Sequence[tuple[str, float]]:
    """Words of like meaning, by the built-in table, which is read when it is first asked."""
    return bundled_kin().near(word)


def word_vectors(texts: Sequence[str]) -> Vectors:
    """A row for each text, by the built-in embedder. Words come again and again, so those that were asked for are kept."""
    import numpy as np

    # What is needed is held here meanwhile: another thread may find the store of them full, and empty it.
    held = {text: row for text in texts if (row := _VECTORS.get(text)) is not None}
    missing = [text for text in dict.fromkeys(texts) if text not in held]
    if missing:
        made = dict(zip(missing, StaticEmbedder().embed(missing), strict=True))
        held |= made
        if len(_VECTORS) + len(made) > VECTORS_KEPT_MAX:
            _VECTORS.clear()
        _VECTORS.update(made)
    return np.stack([held[text] for text in texts])
