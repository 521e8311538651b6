"""Which saved things are relevant to a goal: by their names, descriptions and how their values begin, not by the values.

A few weighted features, most of them of the words that goal and thing share or that mean alike, and an affinity of what they
are about: both are projected into a space where goals lie near what they asked for in the worlds that taught it. The weights
are in `weights.json` and `affinity.bin`; `tools/build_before.py` fits them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.extraction.judge import unpacked
from perdure.engine.search.lexicon import NAME_WORDS_MAX, folded, lexemes, name_words
from perdure.engine.words import fitted, raw, sections, word_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Places = NDArray[np.int64]


SavedKind = Literal["state", "series"]
Vectors = Callable[[Sequence[str]], "Floats"]
"""One row of length 1 for each text; a row of zeros for one of which it knows no word."""

MEANING_USUAL, USUAL_WORTH = 0.08, 8
"""How near a goal and a thing usually are. It counts like so many things: a few are not compared with themselves alone."""
NAME_WORDS_MIN = 2
"""So many words of a name, or of a goal, are no chance."""
SOFT_FROM, SOFT_TO, SOFT_WORTH = 0.25, 0.75, 0.8
"""Two words of like meaning count from this cosine on, fully from that one, and never as much as the same word."""
RARITY_MIN = 0.3
PRODUCTS_MAX = 200_000

FEATURES = (
    "begins",
    "goal_cover",
    "said_same",
    "said_share",
    "said_place",
    "meaning_all",
    "meaning_over",
    "meaning_place",
    "is_series",
    "series_in_time",
    "state_in_time",
)
GOAL_CHARS_MAX = 2_000
"""What is wanted is said by then."""
SAID_BEST_MIN = 0.5
AFFINITY = "affinity.bin"
AFFINITY_BITS, AFFINITY_RANK = 9, 32
"""A row for each of the 256 numbers of a goal's vector, and of a thing's; so many columns."""


@dataclass(frozen=True, slots=True)
class SavedItem:
    """Something that was saved, without its value."""

    kind: SavedKind
    id: str
    description: str = ""
    preview: str = ""
    """How its value begins, as JSON."""


class Naming(IntEnum):
    """How a goal names a saved thing in its own words."""

    NOT = 0
    WORD = 1
    """It has the one word that the thing is called."""
    NAME = 2
    """It has all words of the name, and they are several."""
    GOAL = 3
    """The thing has all words of the goal, and they are several."""


_TEXT = pattern(r'"([^"]{1,60})')
_WORD = pattern(r"[^\W_]+")
_SAID = pattern(r"[\w.]+")
_NAMES = pattern(r"(?<![.!?:\"“] )(?<!^)\b[A-Z][a-z]+")


def goal_words(goal: str) -> tuple[str, ...]:
    """The words of a goal by which something can be found."""
    parts = [part for word in _SAID.findall(goal[:10_000]) for part in (word.lower(), *name_words(word))]
    return _text_words(" ".join(dict.fromkeys(parts)))


@lru_cache(maxsize=20_000)
def _text_words(text: str) -> tuple[str, ...]:
    """The words of a text that say something, each once."""
    empty = _empty()
    kept = [word for word in _WORD.findall(folded(text)) if word not in empty and (len(word) > 1 or word.isdigit())]
    return tuple(dict.fromkeys(kept))[:NAME_WORDS_MAX]


@lru_cache(maxsize=20_000)
def _begin_words(preview: str) -> tuple[str, ...]:
    return _text_words(" ".join(part for text in _TEXT.findall(preview) for part in name_words(text)))


class Catalogue:
    """The words of all candidates, taken apart once: what was saved changes less often than goals come."""

    def __init__(self, candidates: Sequence[SavedItem], vectors: Vectors | None) -> None:
        self.candidates = tuple(candidates)
        self.vectors = vectors
        told = [tuple(dict.fromkeys((*name_words(one.id), *_text_words(one.description)))) for one in candidates]
        begins = [_begin_words(one.preview) for one in candidates]
        whole = [tuple(dict.fromkeys((*one, *two))) for one, two in zip(told, begins, strict=True)]
        words = list(dict.fromkeys(word for text in whole for word in text))
        place = {word: index for index, word in enumerate(words)}
        self.words = words
        self.by_stem: dict[str, list[int]] = {}
        for index, word in enumerate(words):
            self.by_stem.setdefault(stem(word), []).append(index)
        self.digits = np.array([word.isdigit() for word in words], np.bool_)
        self.begins, self.all = (_Spread(texts, place, len(words)) for texts in (begins, whole))
        self.names = [_name_stems(one.id) for one in candidates]
        self.stems = [frozenset(map(stem, text)) for text in whole]
        holders = np.zeros(len(words) + 1)
        np.add.at(holders, self.all.flat, 1)
        total = max(2 * len(candidates), 1)
        rarity = np.log1p(total / np.maximum(holders, 1)) / np.log1p(total)
        self.rarity = np.maximum(rarity, RARITY_MIN).astype(np.float32)
        self.is_series = np.array([one.kind == "series" for one in candidates], np.float32)
        self.word_rows = self.told_rows = self.all_rows = None
        if vectors is not None and words:
            self.word_rows = vectors(words)
            self.told_rows = vectors([" ".join(text) for text in told])
            self.all_rows = vectors([" ".join(text) for text in whole])

    @cached_property
    def projected(self) -> Floats | None:
        """Each candidate in the space where it lies near the goals that want it."""
        return None if self.all_rows is None else _products(self.all_rows, _affinity()[1].T)


class _Spread:
    """The places of many texts' words side by side. A text without words has the one place that is like nothing."""

    def __init__(self, texts: Sequence[tuple[str, ...]], place: dict[str, int], nowhere: int) -> None:
        rows = [[place[word] for word in text] or [nowhere] for text in texts]
        self.flat: Places = np.array([one for row in rows for one in row], np.int64)
        self.starts: Places = (
            np.cumsum([0, *(len(row) for row in rows[:-1])]).astype(np.int64) if rows else np.zeros(0, np.int64)
        )

    def most(self, values: Floats) -> Floats:
        """The highest value of each text's words."""
        found: Floats = np.maximum.reduceat(values[..., self.flat], self.starts, axis=-1)
        return found

    def total(self, values: Floats) -> Floats:
        """The sum of them."""
        found: Floats = np.add.reduceat(values[..., self.flat], self.starts, axis=-1)
        return found


def measure(goal: str, catalogue: Catalogue, *, timed: bool) -> Floats:
    """A row per candidate, a column per name in `FEATURES`. `timed`: the goal names a stretch of time."""
    count = len(catalogue.candidates)
    rows = np.zeros((count, len(FEATURES)), np.float32)
    asked = goal_words(goal)
    if asked and catalogue.words:
        same, near = _compared(asked, catalogue)
        rare, texts = catalogue.rarity, catalogue.all
        said = texts.most(rare * near).sum(axis=0)
        rows[:, 0] = np.minimum(catalogue.begins.total(rare * same.max(axis=0)), 2)
        rows[:, 1] = texts.most(near).mean(axis=0)
        rows[:, 2] = texts.most(rare * same).sum(axis=0)
        rows[:, 3] = said / max(float(said.max()), SAID_BEST_MIN)
        rows[:, 4] = _places_of(said)
        if catalogue.told_rows is not None and catalogue.all_rows is not None and catalogue.vectors is not None:
            meant = catalogue.vectors([" ".join(asked)])[0]
            rows[:, 5] = np.einsum("nd,d->n", catalogue.all_rows, meant)
            told = np.einsum("nd,d->n", catalogue.told_rows, meant)
        else:
            rows[:, 5] = told = _alike(same.max(axis=0), texts, len(asked))
        rows[:, 6] = told - (told.sum() + MEANING_USUAL * USUAL_WORTH) / (count + USUAL_WORTH)
        rows[:, 7] = _places_of(rows[:, 5])
    rows[:, 8] = catalogue.is_series
    rows[:, 9] = catalogue.is_series * timed
    rows[:, 10] = (1 - catalogue.is_series) * timed
    return rows


def naming_of(goal: str, catalogue: Catalogue) -> list[Naming]:
    """How the goal names each candidate."""
    asked = frozenset(map(stem, goal_words(goal)))
    return [_naming(asked, name, stems) for name, stems in zip(catalogue.names, catalogue.stems, strict=True)]


def _naming(asked: frozenset[str], name: frozenset[str], stems: frozenset[str]) -> Naming:
    if len(asked) >= NAME_WORDS_MIN and asked <= stems:
        return Naming.GOAL
    if not name or not name <= asked:
        return Naming.NOT
    return Naming.NAME if len(name) >= NAME_WORDS_MIN else Naming.WORD


def _name_stems(name: str) -> frozenset[str]:
    """The words of a name by which it is called: of `meetings_timeseries` the first, of `shopping_list` too."""
    given = frozenset(name_words(name)) - _empty()
    return frozenset(map(stem, given - _kinds() or given))


def _places_of(values: Floats) -> Floats:
    """1 for the highest, a half for the second, and so on."""
    found = np.empty(len(values), np.float32)
    found[np.argsort(-values, kind="stable")] = 1 / np.arange(1, len(values) + 1)
    return found


def _alike(same: Floats, texts: _Spread, asked: int) -> Floats:
    """Where meaning is not compared: the cosines of the goal and the texts, by the words that they share."""
    lengths = np.sqrt(texts.total(np.ones_like(same)) * asked)
    return (texts.total(same) / lengths).astype(np.float32)


def _compared(asked: Sequence[str], catalogue: Catalogue) -> tuple[Floats, Floats]:
    """The words of the goal against all words, literally and by meaning; the last column is like nothing."""
    wide = len(catalogue.words) + 1
    same = np.zeros((len(asked), wide), np.float32)
    for row, word in enumerate(asked):
        same[row, catalogue.by_stem.get(stem(word), [])] = 1
    if catalogue.word_rows is None or catalogue.vectors is None:
        return same, same
    cosine = _products(catalogue.vectors(asked), catalogue.word_rows)
    soft = np.clip((cosine - SOFT_FROM) / (SOFT_TO - SOFT_FROM), 0, 1) * SOFT_WORTH
    soft[:, catalogue.digits] = 0
    near = same.copy()
    near[:, :-1] = np.maximum(same[:, :-1], soft)
    return same, near


def _products(few: Floats, many: Floats) -> Floats:
    """`few @ many.T` in pieces so small that no library makes threads for them: on a busy machine these cost far more."""
    found = np.empty((len(few), len(many)), np.float32)
    step = max(PRODUCTS_MAX // max(few.size, 1), 1)
    for start in range(0, len(many), step):
        found[:, start : start + step] = few @ many[start : start + step].T
    return found


def scores(goal: str, catalogue: Catalogue, *, timed: bool) -> Floats:
    """How likely a goal that needs something needs each candidate."""
    weights = fitted(__package__, "weights.json")["keys"]
    known = measure(goal, catalogue, timed=timed) @ np.array([weights[name] for name in FEATURES], np.float32)
    return squashed(known + affinities(goal, catalogue) + weights["bias"])


def affinities(goal: str, catalogue: Catalogue) -> Floats:
    """How far what each candidate is about belongs to what the goal is about; nought where meaning is not compared."""
    if catalogue.projected is None or catalogue.vectors is None:
        return np.zeros(len(catalogue.candidates), np.float32)
    meant = _affinity()[0].T @ catalogue.vectors([goal[:GOAL_CHARS_MAX]])[0]
    found: Floats = np.einsum("nr,r->n", catalogue.projected, meant)
    return found


@cache
def _affinity() -> tuple[Floats, Floats]:
    """What projects goals, and what projects things."""
    table = unpacked(raw(__package__, AFFINITY), name=AFFINITY, bits=AFFINITY_BITS, columns=AFFINITY_RANK)
    goals, things = np.split(table.weights.astype(np.float32) * np.array(table.scales, np.float32), 2)
    return goals, things


def squashed(values: Floats) -> Floats:
    """From any number to one between 0 and 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))), np.float32)


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The word without its ending."""
    found = lexemes(word)
    return found[0] if found else word


def names_in(goal: str) -> list[str]:
    """Words of a goal that are written as names are, but for those that begin a sentence."""
    return [match[0].lower() for match in _NAMES.finditer(goal[:GOAL_CHARS_MAX])]


@cache
def _empty() -> frozenset[str]:
    """Words that say nothing about what is sought."""
    return word_set(sections(__package__, "words.txt")["empty"])


@cache
def _kinds() -> frozenset[str]:
    """Words in a name that say what kind of thing it is, which a goal leaves out."""
    return word_set(sections(__package__, "words.txt")["kinds"])
