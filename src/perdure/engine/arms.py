"""The arms of a search: each looks at all allowed items in one way and gives a number per item.

Statistics (how rare a term is, how long items are) come from the allowed items alone, so that what may not be seen has no
effect on what is. Items that are not allowed get 0. How the arms are weighed against each other is left to `fusing`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from perdure.engine.asking import Asked, Stretch
from perdure.engine.shelf import UNKNOWN_US, Flags, Floats, Ints, Longs, Shelf, Voice

# BM25 with usual values; k1 from 0.5 to 1.5 and b from 0.5 to 0.75 were tried and moved recall by about a point.
TERM_SATURATION = 1.0
LENGTH_CORRECTION = 0.7
SESSION_CELLS_MAX = 1 << 20
MENTION_FIT = 0.5
"""A message that names the time asked for, against one that was written then: how plans are found."""


class Hits:
    """The postings of the question's terms among the allowed passages, side by side: gathered once, used by two arms."""

    def __init__(self, shelf: Shelf, asked: Asked, allowed: Flags) -> None:
        wanted = np.array([sought.hash for sought in asked.terms], np.uint64)
        terms, passages, counts = shelf.postings(wanted)
        seen = (allowed if shelf.one_passage_each else allowed[shelf.passage_item])[passages]
        self.passage: Ints = passages[seen]
        self.count: Floats = counts[seen]
        self.term = terms[seen]
        self.terms = len(wanted)
        self._weight = np.array([sought.weight for sought in asked.terms])
        self._kin_of = np.array([sought.kin_of for sought in asked.terms], np.int64)

    def heaviest(self) -> float:
        """The highest weight of a term that is anywhere; 1 if none is."""
        return float(self._weight[self.term].max()) if len(self.term) else 1.0

    def worth(self, holders: NDArray[np.float64], total: int) -> NDArray[np.float64]:
        """What a term counts for: its weight by its rarity among `total`. One that stands in for another is no rarer."""
        rarity = np.log1p((total - holders + 0.5) / (holders + 0.5))
        own = np.where(self._kin_of >= 0, rarity[self._kin_of], np.inf)
        return self._weight * np.minimum(rarity, own)


def words(shelf: Shelf, hits: Hits, allowed: Flags) -> Floats:
    """BM25 of the terms; of an item with several passages, that of the best."""
    open_passages = allowed if shelf.one_passage_each else allowed[shelf.passage_item]
    total = int(np.count_nonzero(open_passages))
    if not total or not len(hits.passage):
        return np.zeros(shelf.items, np.float32)
    holders = np.bincount(hits.term, minlength=hits.terms).astype(np.float64)
    worth = hits.worth(holders, total)
    usual = max(1.0, float(np.dot(shelf.passage_length, open_passages)) / total)
    tempo = TERM_SATURATION * (1 - LENGTH_CORRECTION + LENGTH_CORRECTION / usual * shelf.passage_length[hits.passage])
    parts = worth[hits.term] * (TERM_SATURATION + 1) * hits.count / (hits.count + tempo)
    return _best_passage(shelf, np.bincount(hits.passage, parts, len(shelf.passage_item)).astype(np.float32))


def meaning(shelf: Shelf, vector: Floats | None, allowed: Flags) -> Floats:
    """Cosine with the question's vector; of an item with several passages, that of the nearest."""
    if vector is None or not np.any(vector):
        return np.zeros(shelf.items, np.float32)
    near = shelf.nearness(vector.astype(np.float32))
    return np.where(allowed, _best_passage(shelf, near), np.float32(0))


def session(shelf: Shelf, hits: Hits, allowed: Flags) -> Floats:
    """BM25 of the whole session of an item: what is asked may be spread over its messages."""
    size = shelf.sessions
    code = shelf.session_code[hits.passage if shelf.one_passage_each else shelf.passage_item[hits.passage]]
    inside = code >= 0
    if not size or not inside.any():
        return np.zeros(shelf.items, np.float32)
    open_items = allowed & (shelf.session_code >= 0)
    lengths = np.bincount(shelf.session_code[open_items], shelf.length[open_items], size)
    held = np.bincount(shelf.session_code[open_items], minlength=size) > 0
    total = int(np.count_nonzero(held))
    usual = max(1.0, float(lengths.sum()) / total)
    tempo = TERM_SATURATION * (1 - LENGTH_CORRECTION + LENGTH_CORRECTION / usual * lengths)
    term, inner, count = _per_session(hits.term[inside], code[inside], hits.count[inside], (hits.terms, size))
    worth = hits.worth(np.bincount(term, minlength=hits.terms).astype(np.float64), total)
    score = np.bincount(inner, worth[term] * (TERM_SATURATION + 1) * count / (count + tempo[inner]), size)
    return np.where(open_items, score[shelf.session_code], 0).astype(np.float32)


def time(shelf: Shelf, asked: Asked, allowed: Flags) -> Floats:
    """How well an item fits the times asked for, 0 to 1, less where most others fit as well; 0 if no time is asked for."""
    fit = np.zeros(shelf.items, np.float32)
    if not asked.stretches or not allowed.any():
        return fit
    known = shelf.at != UNKNOWN_US
    for stretch in asked.stretches:
        at = np.where(known, shelf.at, stretch.start_us)
        beside = np.maximum(0, np.maximum(stretch.start_us - at, at - stretch.end_us)) / stretch.slack_us
        fit = np.maximum(fit, np.where(known, np.exp(-0.5 * beside * beside), 0).astype(np.float32))
        named = _mentioned(shelf, stretch)
        fit[named] = np.maximum(fit[named], MENTION_FIT)
    fit *= allowed
    return fit * np.float32(1 - fit.sum() / np.count_nonzero(allowed))


def speaker(shelf: Shelf, asked: Asked) -> Flags:
    """Whether an item was said by one whom the question names."""
    if not asked.named or not shelf.speakers:
        return np.zeros(shelf.items, np.bool_)
    named = np.array([name in asked.named for name in shelf.speakers] + [False])
    return named[shelf.speaker_code]  # `NONE` picks the last one


def machine(shelf: Shelf) -> Flags:
    """Whether an item was said by a machine: long, full of words, and seldom what a person asks to be reminded of."""
    return _MACHINES[shelf.role]


_MACHINES: Flags = np.isin(np.arange(256), (Voice.ASSISTANT, Voice.TOOL, Voice.SYSTEM))


def _best_passage(shelf: Shelf, score: Floats) -> Floats:
    if shelf.one_passage_each:
        return score
    best = np.full(shelf.items, -np.inf, np.float32)
    np.maximum.at(best, shelf.passage_item, score)
    return np.where(np.isfinite(best), best, np.float32(0))


def _per_session(term: Longs, code: Ints, count: Floats, shape: tuple[int, int]) -> tuple[Longs, Longs, NDArray[np.float64]]:
    """How often each term occurs in each session: the terms, the sessions and the counts, where there are any."""
    terms, sessions = shape
    cell = term * sessions + code
    # A bucket per cell is the fastest way while there are not many more cells than postings; beyond, sorting is.
    if terms * sessions <= SESSION_CELLS_MAX:
        counts = np.bincount(cell, count).astype(np.float64)
        cells = np.flatnonzero(counts).astype(np.int64)
        return cells // sessions, cells % sessions, counts[cells]
    cells, place = np.unique(cell, return_inverse=True)
    return cells // sessions, cells % sessions, np.bincount(place, count).astype(np.float64)


def _mentioned(shelf: Shelf, stretch: Stretch) -> Ints:
    """Items that name a time inside the stretch, or one not much wider."""
    first, last = shelf.time_start, shelf.time_end
    wide = max(90_000_000_000, (stretch.end_us - stretch.start_us) * 3 // 2)
    return shelf.time_item[(first < stretch.end_us) & (last > stretch.start_us) & (last - first <= wide)]
