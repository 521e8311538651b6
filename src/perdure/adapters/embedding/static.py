"""The built-in embedder: one vector per piece of a word, and their sum per text. Needs numpy and no model at run time.

`static_table.bin` is made by `tools/build_embedder.py`, which also says how the vectors come about. The file is:

    8 bytes   magic
    4 × 4     version of the format, dims, rows, bytes of the vocabulary (little-endian)
    32        sha256 of all that follows
    …         the vocabulary, a piece a line, in order of row
    4 × rows  scale of each row (float32); it carries the weight of the piece
    rest      rows × dims of int8
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from perdure.adapters.embedding.rows import unit
from perdure.adapters.embedding.wordpiece import WordPiece
from perdure.domain.errors import Corrupt

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perdure.ports.embedding import TextKind, Vectors

NAME = "perdure-static-2"
TEXT_CHARS_MAX = 16_384
"""A text is read this far. A sum over more says no longer what the text is about, and the work stays bounded."""

MAGIC = b"PERDSTAT"
FORMAT = 1
HEADER = struct.Struct("<8s4I32s")


@dataclass(frozen=True, slots=True)
class Table:
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


class Lookup:
    """A table with the tokenizer of its vocabulary."""

    def __init__(self, table: Table) -> None:
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
def bundled() -> Lookup:
    """The table that comes with the package."""
    return Lookup(read_table((files(__package__) / "static_table.bin").read_bytes()))


def read_table(content: bytes) -> Table:
    """The table in `content`; anything but the bytes that were written is `Corrupt`."""
    import numpy as np

    if len(content) < HEADER.size:
        raise Corrupt("the embedder's table is cut short; install perdure again")
    magic, version, dims, rows, vocabulary_bytes, digest = HEADER.unpack_from(content)
    if magic != MAGIC or version != FORMAT:
        raise Corrupt("the embedder's table is of another format than this perdure reads; install perdure again")
    body = memoryview(content)[HEADER.size :]
    if len(body) != vocabulary_bytes + 4 * rows + rows * dims or hashlib.sha256(body).digest() != digest:
        raise Corrupt("the embedder's table is not as it was built; install perdure again")
    pieces = str(body[:vocabulary_bytes], "utf-8").split("\n")
    scales = np.frombuffer(body, "<f4", rows, vocabulary_bytes)
    codes = np.frombuffer(body, np.int8, rows * dims, vocabulary_bytes + 4 * rows).reshape(rows, dims)
    return Table(dict(zip(pieces, range(rows), strict=True)), scales, codes, digest.hex())


def table_bytes(pieces: Sequence[str], vectors: NDArray[np.float32]) -> bytes:
    """The file for `vectors` [rows, dims], each row rounded to 255 steps between its largest numbers."""
    import numpy as np

    scales: NDArray[np.float32] = (np.abs(vectors).max(axis=1) / 127).astype("<f4")
    codes = np.rint(vectors / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    vocabulary = "\n".join(pieces).encode()
    body: bytes = vocabulary + scales.tobytes() + codes.tobytes()
    rows, dims = vectors.shape
    return HEADER.pack(MAGIC, FORMAT, dims, rows, len(vocabulary), hashlib.sha256(body).digest()) + body
