"""A judge of what lasts: whether a sentence tells something that is worth knowing in three months, and of which kind.

A softmax regression over hashed n-grams of words (one to three) and of letters (three to five in a word, six across words), the
words at its start and end, and its length and signs: the same for every language. It was taught by the labelled sentences of
several writers in English, German, French and Spanish; `tools/build_judge.py` fits it and writes `judge.bin`:

    8 bytes    magic
    4 × 4      version of the format, bits of a place, kinds, known words (little-endian)
    32         sha256 of all that follows
    4 × kinds  scale of each kind (float32), and one more, of what changes something
    4 × words  hashes of the words that the writers used, in ascending order
    rest       a row of int8 for each place, one weight a kind and one more
"""

from __future__ import annotations

import hashlib
import math
import struct
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal, get_args
from zlib import crc32

from perdure.domain.errors import Corrupt
from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.words import raw

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

JudgedKind = Literal["nothing", "fact", "preference", "relationship", "health", "habit", "rule", "todo", "change"]
KINDS: tuple[JudgedKind, ...] = get_args(JudgedKind)
COLUMNS = len(KINDS) + 1
FILE = "judge.bin"
MAGIC = b"PERDJUDG"
FORMAT = 2
HEADER = struct.Struct("<8s4I32s")
BITS = 18
MASK = (1 << BITS) - 1
LETTERS_MIN, LETTERS_MAX, PLAIN_LETTERS_MIN = 3, 5, 2
"""The shortest and longest run of letters of a word that counts."""
ACROSS = 6
"""The length of a run of letters that may reach from a word into the next."""
WORDS_FIRST, WORDS_LAST = 4, 2
"""So many words at the start and at the end of a sentence count as standing there."""
LENGTH_STEP, LENGTH_MAX = 3, 8
SIZE_STEP, SIZE_MAX = 6, 3
"""In such steps the length of a sentence counts, and beside each of its words."""
WORD_CHARS_MAX = 24
SENTENCE_CHARS_MAX = 500
"""A longer sentence is no statement: it is not judged."""

_RULE = KINDS.index("rule")
_WORD = pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Judgement:
    """How likely a sentence tells something that lasts, and what that would be."""

    score: float
    kind: JudgedKind
    """The likeliest but `nothing`."""
    certainty: float
    """How likely it is of that kind."""
    rule: float
    """How likely it is a rule, if it is either that or nothing."""
    unruled: JudgedKind
    """The likeliest but `nothing` and `rule`."""
    turn: float
    """How much it sounds as if something were over or another now, whatever that is: log odds."""


@dataclass(frozen=True, slots=True)
class JudgeTable:
    """What `judge.bin` holds."""

    scales: tuple[float, ...]
    words: frozenset[int]
    weights: NDArray[np.int8]


def judge(sentence: str, taught: JudgeTable | None = None) -> Judgement:
    """The same sentence is always judged the same, by the table that is shipped or by another."""
    return _as_shipped(sentence) if taught is None else _judged(sentence, taught)


@lru_cache(maxsize=64)
def _as_shipped(sentence: str) -> Judgement:
    # One sentence is asked about several times: whether it lasts, whether it turns something, and beside each note.
    return _judged(sentence, table())


def _judged(sentence: str, held: JudgeTable) -> Judgement:
    places = features(sentence)
    sums = held.weights[places].sum(axis=0, dtype="int32").tolist()
    size = math.sqrt(len(places))
    *logits, turn = (scale * one / size for scale, one in zip(held.scales, sums, strict=True))
    kinds = probabilities(logits)
    best = max(range(1, len(KINDS)), key=kinds.__getitem__)
    rule = kinds[_RULE] / (kinds[_RULE] + kinds[0])
    unruled = max((one for one in range(1, len(KINDS)) if one != _RULE), key=kinds.__getitem__)
    return Judgement(
        score=1.0 - kinds[0], kind=KINDS[best], certainty=kinds[best], rule=rule, unruled=KINDS[unruled], turn=turn
    )


def known_share(sentence: str) -> float:
    """The share of the words of a sentence that the writers used, too: low in gibberish and in languages they do not write."""
    found = [hashed(word) for word in words_of(sentence) if word[0].isalpha() and len(word) > 1]
    return sum(one in table().words for one in found) / len(found) if found else 0.0


def probabilities(logits: Sequence[float]) -> list[float]:
    """Softmax."""
    powers = [math.exp(one - max(logits)) for one in logits]
    whole = sum(powers)
    return [one / whole for one in powers]


def features(sentence: str) -> list[int]:
    """The places of a sentence in the table, each once, in ascending order."""
    words = words_of(sentence)
    size = min(len(words) // SIZE_STEP, SIZE_MAX)
    placed = {f"{place} {word}" for place, word in enumerate(words[:WORDS_FIRST])}
    placed |= {f"^{word}" for word in words[:WORDS_FIRST]} | {f"${word}" for word in words[-WORDS_LAST:]}
    placed |= {f"{word}/{size}" for word in words if len(word) > 1} | _shape(sentence, words)
    line = " ".join(words)
    across = {line[start : start + ACROSS] for start in range(len(line) - ACROSS + 1)}
    hashes = _runs(words) | {crc32(one.encode(), 4) for one in placed} | {crc32(one.encode(), 5) for one in across}
    hashes.update(one for word in words for one in _letters(word, LETTERS_MIN))
    return sorted({one & MASK for one in hashes})


def run_places(text: str) -> list[int]:
    """The places of a text in the table of a judge that goes by runs of words and of letters alone."""
    words = words_of(text)
    hashes = _runs(words)
    hashes.update(one for word in words for one in _letters(word, PLAIN_LETTERS_MIN))
    return sorted({one & MASK for one in hashes})


def _runs(words: Sequence[str]) -> set[int]:
    marked = ["^", *words, "$"]
    runs = [(start, size) for size in (1, 2, 3) for start in range(len(marked) - size + 1)]
    return {crc32(" ".join(marked[start : start + size]).encode(), size) for start, size in runs}


def _shape(sentence: str, words: Sequence[str]) -> set[str]:
    """How long a sentence is, and how it is written."""
    written = {
        "asks": "?" in sentence,
        "calls": "!" in sentence,
        "quotes": any(sign in sentence for sign in '"“„«'),
        "stops": sentence.rstrip().endswith("."),
        "no signs": not any(sign in sentence for sign in ",.;!?"),
        "no capitals": sentence.islower(),
    }
    return {f"={min(len(words) // LENGTH_STEP, LENGTH_MAX)}"} | {f"={name}" for name, is_so in written.items() if is_so}


def words_of(sentence: str) -> list[str]:
    """Words, numbers and signs of a sentence, in lower case. Numbers count by their length alone."""
    plain = unicodedata.normalize("NFKC", sentence).lower().replace("’", "'")
    return ["0" * min(len(word), 5) if word[0].isdigit() else word for word in _WORD.findall(plain)]


def hashed(word: str) -> int:
    """A word as the table of known words has it."""
    return crc32(word.encode())


@lru_cache(maxsize=20_000)
def _letters(word: str, shortest: int) -> tuple[int, ...]:
    if len(word) < 2 or word[0] == "0":
        return ()
    marked = f"<{word[:WORD_CHARS_MAX]}>"
    runs = [(start, size) for size in range(shortest, LETTERS_MAX + 1) for start in range(len(marked) - size + 1)]
    return tuple({crc32(marked[start : start + size].encode(), 7) for start, size in runs})


@cache
def table() -> JudgeTable:
    """The table as it is shipped, read once."""
    return unpacked(raw(__package__, FILE))


def packed(scales: Iterable[float], words: Iterable[int], weights: NDArray[np.int8]) -> bytes:
    """A table as a file: of this judge, or of another that is taught in the same way."""
    rows, columns = weights.shape
    known = sorted(set(words))
    body = struct.pack(f"<{columns}f", *scales) + struct.pack(f"<{len(known)}I", *known) + weights.tobytes()
    header = HEADER.pack(MAGIC, FORMAT, rows.bit_length() - 1, columns, len(known), hashlib.sha256(body).digest())
    return header + body


def unpacked(data: bytes, *, name: str = FILE, bits: int = BITS, columns: int = COLUMNS) -> JudgeTable:
    """The table of a file."""
    import numpy as np  # loaded with the first sentence that is judged

    magic, *form, count, digest = HEADER.unpack_from(data)
    body = memoryview(data)[HEADER.size :]
    if (magic, form) != (MAGIC, [FORMAT, bits, columns]) or hashlib.sha256(body).digest() != digest:
        raise Corrupt(f"{name} is damaged or of another version; install perdure again")
    scales = struct.unpack_from(f"<{columns}f", body)
    words = struct.unpack_from(f"<{count}I", body, 4 * columns)
    weights = np.frombuffer(body, np.int8, offset=4 * (columns + count)).reshape(1 << bits, columns)
    return JudgeTable(scales, frozenset(words), weights)
