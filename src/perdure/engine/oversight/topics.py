"""What texts are about, by the words of `topics.txt`: plumbers and dripping sinks have no word in common, and one topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from perdure.engine.search.lexicon import lexemes
from perdure.engine.words import sections, word_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

Vectors = Callable[[Sequence[str]], "Floats"]
"""One row of length 1 for each text; a row of zeros for one of which it knows no word."""
NEAR_FROM, NEAR_TO, NEAR_WORTH = 0.5, 0.85, 0.7
"""A word that stands nowhere has the topics of those of like meaning: from this cosine on, fully from that one."""


def topics_of(texts: Sequence[Sequence[str]], vectors: Vectors | None) -> Floats:
    """A row for each text, given as its words; a column, from 0 to 1, for each topic."""
    rows = np.zeros((len(texts), len(_lexicon().names)), np.float32)
    for row, words in enumerate(texts):
        if words:
            rows[row] = _topics_of_text(tuple(words), vectors)
    return rows


@lru_cache(maxsize=20_000)
def _topics_of_text(words: tuple[str, ...], vectors: Vectors | None) -> Floats:
    found: Floats = np.max([_topics_of_word(word, vectors) for word in words], axis=0)
    return found


def topic_places(names: Sequence[str]) -> list[int]:
    """The columns of some topics."""
    return [_lexicon().names.index(name) for name in names]


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its ending."""
    found = lexemes(word)
    return found[0] if found else word


@lru_cache(maxsize=20_000)
def _topics_of_word(word: str, vectors: Vectors | None) -> Floats:
    held = _lexicon()
    listed = held.places.get(stem(word))
    if listed is not None:
        own: Floats = held.member[listed]
        return own
    if vectors is None or word.isdigit():
        return np.zeros(len(held.names), np.float32)
    cosine = held.word_rows(vectors) @ vectors([word])[0]
    near = np.clip((cosine - NEAR_FROM) / (NEAR_TO - NEAR_FROM), 0, 1) * NEAR_WORTH
    found: Floats = (held.member * near[:, None]).max(axis=0)
    return found


class _Lexicon:
    """The file: a row per stem, a column per topic."""

    def __init__(self) -> None:
        listed = {name: word_set(entries) for name, entries in sections(__package__, "topics.txt").items()}
        self.names = tuple(listed)
        words = {stem(word): word for entries in listed.values() for word in sorted(entries)}
        self.words = list(words.values())
        self.places = {one: place for place, one in enumerate(words)}
        self.member = np.zeros((len(words), len(listed)), np.float32)
        for column, entries in enumerate(listed.values()):
            self.member[[self.places[stem(word)] for word in entries], column] = 1
        self._rows: tuple[Vectors | None, Floats] = (None, np.zeros((0, 0), np.float32))

    def word_rows(self, vectors: Vectors) -> Floats:
        of, rows = self._rows
        if of is not vectors:
            rows = vectors(self.words)
            self._rows = (vectors, rows)
        return rows


@cache
def _lexicon() -> _Lexicon:
    return _Lexicon()
