"""BERT's uncased WordPiece: which numbers of a vocabulary a text is made of. What they mean is left to others.

Equal to the published tokenizer (clean, split at Chinese characters, strip accents, lower, split at punctuation, longest
piece first), except that names of special tokens in a text, such as `[SEP]`, are text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

WORD_CHARS_MAX = 100
"""A longer word is unknown, as in the published tokenizer; it also bounds the search for pieces."""
CHUNKS_KEPT_MAX = 65_536
CHUNK_CHARS_KEPT_MAX = 32
"""Pieces of chunks up to this length are kept: words repeat, long runs do not."""

# Control characters are dropped, not split at, and `str.split` would split at some of them.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
_ASCII_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CHINESE = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Turns text into ids of `vocabulary`. A word that cannot be made of pieces becomes `unknown`, as a model expects it.

    Without `unknown`, only the characters are passed over that no piece has: in `love❤` the love is still known.
    """

    def __init__(self, vocabulary: Mapping[str, int], *, unknown: int | None = None) -> None:
        self._vocabulary = vocabulary
        self._unknown = () if unknown is None else (unknown,)
        self._kept: dict[str, tuple[int, ...]] = {}

    def ids(self, text: str) -> list[int]:
        """The ids in order of reading. Never fails, whatever the text; the time grows with its length and no faster."""
        kept = self._kept
        found: list[int] = []
        for chunk in _CONTROL.sub("", text).split():
            ids = kept.get(chunk)
            found += self._learn(chunk) if ids is None else ids
        return found

    def _learn(self, chunk: str) -> tuple[int, ...]:
        whole = self._vocabulary.get(chunk.lower()) if chunk.isascii() and chunk.isalnum() else None
        ids = (whole,) if whole is not None else tuple(at for word in _words(chunk) for at in self._pieces(word))
        if len(chunk) <= CHUNK_CHARS_KEPT_MAX:
            if len(self._kept) >= CHUNKS_KEPT_MAX:
                self._kept = {}  # a new one: another thread may be reading the old
            self._kept[chunk] = ids
        return ids

    def _pieces(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_CHARS_MAX:
            return self._unknown
        ids: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                at = self._vocabulary.get(prefix + word[start:end])
                if at is not None:
                    ids.append(at)
                    start, prefix = end, "##"
                    break
            else:
                if self._unknown:
                    return self._unknown
                start, prefix = start + 1, ""
        return tuple(ids)


def _words(chunk: str) -> list[str]:
    """The words of a chunk without white space: lower, without accents, each punctuation mark and Chinese character apart."""
    if not chunk.isascii():
        spaced = "".join(f" {char} " if _is_chinese(char) else char for char in chunk if not _is_dropped(char))
        chunk = "".join(char for char in unicodedata.normalize("NFD", spaced) if unicodedata.category(char) != "Mn")
    # One letter at a time: Python's `lower` gives a sigma at the end of a word another form.
    lowered = chunk.replace("Σ", "σ").lower()
    return "".join(f" {char} " if _is_punctuation(char) else char for char in lowered).split()


def _is_dropped(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Co", "Cs"}


def _is_punctuation(char: str) -> bool:
    return char in _ASCII_PUNCTUATION or (not char.isascii() and unicodedata.category(char)[0] == "P")


def _is_chinese(char: str) -> bool:
    return char >= "\u3400" and any(first <= ord(char) <= last for first, last in _CHINESE)
