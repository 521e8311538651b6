"""Which saved things are relevant to a goal: by their names, descriptions and how their values begin, not by the values;
and what was told, measured by its words.

Two questions, each answered by a few weighted features: does the goal need anything of the user's at all, and if so, which
things? Words that are not alike but belong together are in `topics.txt`, what goals ask for and what tells it in `asks.txt`,
how goals are worded in `goal_cues.txt`; the weights are fitted by `bench/overseer_fit.py` on the part of its goals that is
there to tune on, and stand in `weights.json`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass
from perdure.engine.oversight.topics import Vectors, stem, topics_of
from perdure.engine.search.lexicon import NAME_WORDS_MAX, folded, name_words
from perdure.engine.words import fitted, sections, word_set

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Places = NDArray[np.int64]


SavedKind = Literal["state", "series", "memory"]

SOFT_FROM, SOFT_TO, SOFT_WORTH = 0.25, 0.75, 0.8
"""Two words of like meaning count from this cosine on, fully from that one, and never as much as the same word."""
RARITY_MIN = 0.3
PRODUCTS_MAX = 200_000

FEATURES = (
    "name_cover",
    "name_top",
    "name_same",
    "told_cover",
    "told_same",
    "begins",
    "meaning",
    "meaning_over",
    "goal_cover",
    "meaning_all",
    "is_series",
    "series_in_time",
    "state_in_time",
    "begins_near",
    "said",
    "said_same",
    "said_share",
    "topic",
    "topic_top",
    "topic_name",
    "asked",
    "asked_rare",
    "asked_most",
)
_FURTHER_GOAL_FEATURES = (
    "small_talk_only",
    "terse",
    "long",
    "known_names",
    "unknown_names",
    "timed",
    "best",
    "second",
    "top_cover",
    "top_same",
    "top_told",
    "top_begins",
    "top_meaning",
    "top_goal",
)
GOAL_CHARS_MAX = 2_000
"""What is wanted is said by then."""
BEGINS_TOPIC_WORTH = 0.5
SAID_BEST_MIN = 0.5
ASKED_MAX = 3
_FILE = "asks.txt"


@dataclass(frozen=True, slots=True)
class SavedItem:
    """Something that was saved, without its value."""

    kind: SavedKind
    id: str
    description: str = ""
    preview: str = ""
    """How its value begins, as JSON."""


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
        names = [name_words(one.id) for one in candidates]
        told = [
            tuple(dict.fromkeys((*name, *_text_words(one.description)))) for one, name in zip(candidates, names, strict=True)
        ]
        begins = [_begin_words(one.preview) for one in candidates]
        words = list(dict.fromkeys(word for text in (*told, *begins) for word in text))
        place = {word: index for index, word in enumerate(words)}
        self.words = words
        self.stems = [stem(word) for word in words]
        self.by_stem: dict[str, list[int]] = {}
        for index, root in enumerate(self.stems):
            self.by_stem.setdefault(root, []).append(index)
        self.digits = np.array([word.isdigit() for word in words], np.bool_)
        self.names, self.told, self.begins = (_Spread(texts, place, len(words)) for texts in (names, told, begins))
        self.all = _Spread([(*one, *two) for one, two in zip(told, begins, strict=True)], place, len(words))
        holders = np.zeros(len(words) + 1)
        for spread in (self.names, self.told, self.begins):
            np.add.at(holders, spread.flat, 1)
        total = max(3 * len(candidates), 1)
        rarity = np.log1p(total / np.maximum(holders, 1)) / np.log1p(total)
        self.rarity = np.maximum(rarity, RARITY_MIN).astype(np.float32)
        self.is_series = np.array([one.kind == "series" for one in candidates], np.float32)
        self.topics = np.maximum(topics_of(told, vectors), BEGINS_TOPIC_WORTH * topics_of(begins, vectors))
        self.name_topics = topics_of(names, vectors)
        about = np.log1p(len(candidates) / np.maximum((self.topics >= 0.5).sum(axis=0), 1)) / np.log1p(max(len(candidates), 1))
        self.topic_rarity = np.maximum(about, RARITY_MIN).astype(np.float32)
        self.asks = np.array([_tells(" ".join(text)) for text in told], np.float32).reshape(len(candidates), len(ask_kinds()))
        self.ask_rarity = 1 / np.maximum(self.asks.sum(axis=0), 1)
        self.word_rows = None if vectors is None or not words else vectors(words)
        known = vectors is not None and bool(candidates)
        whole = [tuple(dict.fromkeys((*one, *two))) for one, two in zip(told, begins, strict=True)]
        self.told_rows = vectors([" ".join(text) for text in told]) if known and vectors else None
        self.all_rows = vectors([" ".join(text) for text in whole]) if known and vectors else None


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
    if not count:
        return rows
    if asked and catalogue.words:
        same, near = _compared(asked, catalogue)
        near_best, same_best = near.max(axis=0), same.max(axis=0)
        rare = catalogue.rarity
        names, told = catalogue.names, catalogue.told
        rows[:, 0] = names.total(rare * near_best) / names.total(rare)
        rows[:, 1] = names.most(rare * near_best)
        rows[:, 2] = names.most(rare * same_best)
        rows[:, 3] = told.total(rare * near_best) / told.total(rare)
        rows[:, 4] = told.most(rare * same_best)
        rows[:, 5] = np.minimum(catalogue.begins.total(rare * same_best), 2)
        rows[:, 8] = catalogue.all.most(near).mean(axis=0)
        rows[:, 13] = catalogue.begins.most(rare * near_best)
        rows[:, 14] = catalogue.all.most(rare * near).sum(axis=0)
        rows[:, 15] = catalogue.all.most(rare * same).sum(axis=0)
        rows[:, 16] = rows[:, 14] / max(float(rows[:, 14].max()), SAID_BEST_MIN)
        rows[:, 17:20] = _topical(asked, catalogue)
        if catalogue.told_rows is not None and catalogue.all_rows is not None and catalogue.vectors is not None:
            meant = catalogue.vectors([" ".join(asked)])[0]
            rows[:, 6] = np.einsum("nd,d->n", catalogue.told_rows, meant)
            rows[:, 7] = rows[:, 6] - rows[:, 6].mean()
            rows[:, 9] = np.einsum("nd,d->n", catalogue.all_rows, meant)
        else:
            rows[:, 6], rows[:, 9] = (_alike(same_best, spread, len(asked)) for spread in (told, catalogue.all))
            rows[:, 7] = rows[:, 6] - rows[:, 6].mean()
    rows[:, 20:23] = _asks_met(goal, catalogue)
    rows[:, 10] = catalogue.is_series
    rows[:, 11] = catalogue.is_series * timed
    rows[:, 12] = (1 - catalogue.is_series) * timed
    return rows


def _alike(same: Floats, texts: _Spread, asked: int) -> Floats:
    """Where meaning is not compared: the cosines of the goal and the texts, by the words that they share."""
    lengths = np.sqrt(texts.total(np.ones_like(same)) * asked)
    return (texts.total(same) / lengths).astype(np.float32)


def _topical(asked: Sequence[str], catalogue: Catalogue) -> Floats:
    """How far each candidate is about what the goal is about: altogether, in one thing, and by its name."""
    goal, rare = topics_of([asked], catalogue.vectors)[0], catalogue.topic_rarity
    wanted, held = goal * rare, catalogue.topics * rare
    lengths = np.linalg.norm(held, axis=1) * np.linalg.norm(wanted)
    alike = np.einsum("nt,t->n", held, wanted) / np.maximum(lengths, 1e-6)
    shared = (np.minimum(goal, catalogue.topics) * rare).max(axis=1)
    named = (np.minimum(goal, catalogue.name_topics) * rare).max(axis=1)
    return np.stack([alike, shared, named], axis=1).astype(np.float32)


def _asks_met(goal: str, catalogue: Catalogue) -> Floats:
    """In how many ways a candidate is of the kind that the goal asks for, how few others are, and whether none is more so."""
    wanted = np.array([find_any(_FILE, f"goal {kind}", goal) for kind in ask_kinds()], np.float32)
    shared = catalogue.asks * wanted
    ways = shared.sum(axis=1)
    most = float(ways.max()) if len(ways) else 0.0
    rare = (shared * catalogue.ask_rarity).max(axis=1)
    return np.stack([np.minimum(ways, ASKED_MAX), rare, (ways == most) * (most > 0)], axis=1).astype(np.float32)


@cache
def ask_kinds() -> tuple[str, ...]:
    """What goals can ask for."""
    return tuple(name.removeprefix("goal ") for name in sections(__package__, _FILE) if name.startswith("goal "))


@lru_cache(maxsize=20_000)
def _tells(words: str) -> tuple[bool, ...]:
    return tuple(find_any(_FILE, f"saved {kind}", words) for kind in ask_kinds())


def find_any(file: str, heading: str, text: str) -> bool:
    """Whether an entry of that section of one of our files is in the text."""
    return any_of(file, heading).search(text[:GOAL_CHARS_MAX]) is not None


@cache
def any_of(file: str, heading: str) -> re.Pattern[str]:
    """What finds an entry of that section."""
    found = sections(__package__, file)[heading]
    return re.compile("|".join(one if one[0] == "^" else rf"\b(?:{one})\b" for one in found), re.IGNORECASE)


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


@dataclass(frozen=True, slots=True)
class Relevance:
    """How likely a goal needs anything at all, and how relevant each candidate is (both from 0 to 1)."""

    needs: float
    scores: Floats


def goal_features(goal: str, catalogue: Catalogue, rows: Floats, scores: Floats, *, timed: bool) -> Floats:
    """What speaks for or against the goal needing anything: its own words, and how well the best candidates fit."""
    ranked = np.sort(scores)[::-1]
    best = [float(ranked[0]) if len(ranked) else 0.0, float(ranked[1]) if len(ranked) > 1 else 0.0]
    tops = [float(rows[:, column].max()) if len(rows) else 0.0 for column in (0, 2, 4, 5, 6, 8)]
    names = [stem(name) in catalogue.by_stem for name in names_in(goal)]
    named = [float(any(names)), float(not all(names))]
    return np.array([*goal_cues(goal), *named, float(timed), *best, *tops], np.float32)


def relevance(goal: str, catalogue: Catalogue, *, timed: bool) -> Relevance:
    """What is relevant to the goal."""
    weights = _weights()
    rows = measure(goal, catalogue, timed=timed)
    scores = squashed(rows @ weights.keys + weights.key_bias)
    cues = goal_features(goal, catalogue, rows, scores, timed=timed)
    meant = 0.0 if catalogue.vectors is None else float(catalogue.vectors([goal[:GOAL_CHARS_MAX]])[0] @ weights.meaning)
    needs = float(squashed(np.float32(float(cues @ weights.goal) + meant + weights.goal_bias)))
    return Relevance(needs, scores)


def squashed(values: Floats | np.float32) -> Floats:
    """From any number to one between 0 and 1."""
    return np.asarray(1 / (1 + np.exp(-np.clip(values, -30, 30))), np.float32)


@dataclass(frozen=True, slots=True)
class _Weights:
    """`weights.json`, in the order of the features."""

    keys: Floats
    key_bias: float
    goal: Floats
    goal_bias: float
    meaning: Floats


@cache
def _weights() -> _Weights:
    found = fitted(__package__, "weights.json")
    return _Weights(
        keys=np.array([found["key_weights"].get(name, 0.0) for name in FEATURES], np.float32),
        key_bias=found["key_bias"],
        goal=np.array([found["goal_weights"].get(name, 0.0) for name in goal_feature_names()], np.float32),
        goal_bias=found["goal_bias"],
        meaning=np.array(found["meaning_weights"], np.float32),
    )


def needs_min() -> float:
    """From this on, a goal is taken to need something of the user's."""
    return float(fitted(__package__, "weights.json")["needs_min"])


def goal_feature_names() -> tuple[str, ...]:
    """What the columns of `goal_features` are."""
    return (*_cue_patterns(), *_FURTHER_GOAL_FEATURES)


def goal_cues(goal: str) -> tuple[float, ...]:
    """1 for each cue that is there, and how short or long the goal is."""
    text = " ".join(goal[:GOAL_CHARS_MAX].split())
    words = len(text.split())
    found = {name: cue.search(text) is not None for name, cue in _cue_patterns().items()}
    only = found["small_talk"] and words <= 8 and not found["mine"] and "?" not in text
    return (*map(float, found.values()), float(only), float(words <= 3), float(words >= 15))


def names_in(goal: str) -> list[str]:
    """Words of a goal that are written as names are, but for those that begin a sentence."""
    return [match[0].lower() for match in _NAMES.finditer(goal[:GOAL_CHARS_MAX])]


@cache
def _cue_patterns() -> dict[str, re.Pattern[str]]:
    """The cues of `goal_cues.txt` in its order. They are weighed, none decides alone."""
    listed = sections(__package__, "goal_cues.txt")
    return {name: re.compile("|".join(map(_cue_source, entries)), re.IGNORECASE) for name, entries in listed.items()}


def _cue_source(entry: str) -> str:
    if entry[0] == entry[-1] == "/":
        return entry[1:-1]
    return rf"^(?:{entry[1:]})\b" if entry[0] == "^" else rf"\b(?:{entry})\b"


@cache
def _empty() -> frozenset[str]:
    """Words that say nothing about what is sought."""
    return word_set(sections(__package__, "words.txt")["empty"])
