"""How the arms of a search become one order, and why each hit stands where it stands.

said   = voice · (words + 0.4 · meaning)               each arm brought to 0…1 by the best of this search
around = 0.35 · brevity · (said of the neighbours)     a short message is about what its neighbours are about
score  = (said + around + 0.3 · voice · session) · (1 + 0.4 · speaker) · (1 + 0.2 · telling) · (1 + 0.7 · time)
         + 0.5 · voice · time
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from perdure.engine import arms
from perdure.engine.arms import Hits
from perdure.engine.asking import Asked
from perdure.engine.shelf import BRIEF_TERMS, Flags, Floats, Ints, Longs, Shelf, surroundings


@dataclass(frozen=True, slots=True)
class Weights:
    """What each arm counts for, against 1 for the words.

    Set by hand, as round values. `bench/recall/fit.py`, which sees LongMemEval alone, leaves all it can judge where they are,
    but for `around`: it would take 0.1, as that data has no short messages. Nor has it names of speakers: `around`, `hop`,
    `brief_terms` and `speaker` are reasoned, and were checked on LoCoMo and BEAM. A third more or less of any one moves turn
    recall by 2 points at most, mostly by less than 1.
    """

    meaning: float = 0.4
    session: float = 0.3
    around: float = 0.35
    hop: float = 0.6
    """What is left of a neighbour's neighbour, if the message between them is short."""
    brief_terms: float = 30.0
    """A message of so many terms (some sixty words) gets half as much from its neighbours as one of a single word."""
    speaker: float = 0.4
    telling: float = 0.2
    time_times: float = 0.7
    time_plus: float = 0.5
    machine: float = 0.5
    """What an assistant or a tool said against what a person said, unless the question asks for it."""


WEIGHTS = Weights()
HOPS = 3


@dataclass(frozen=True)
class Measured:
    """What the arms found, a number per item and arm; 0 for items that are not allowed."""

    words: Floats
    meaning: Floats
    session: Floats
    time: Floats
    speaker: Flags
    machine: Flags
    """Items that count less because a machine said them."""
    hits: Hits
    weight: float = 1.0
    """The weight of the heaviest term that was found: less than 1 if only words were that shape a question or name a time."""
    sought: float = 1.0
    """The same of the question itself, found or not."""


@dataclass(frozen=True)
class Ranking:
    """What was found, best first. All else is by place in that order."""

    items: Ints
    scores: Floats
    arms: Mapping[str, tuple[Floats, Floats]]
    """For each arm what it measured, and what that added to the score: the additions sum up to it."""
    hits: Hits
    """Where the terms of the question are."""

    def first(self, count: int) -> Ranking:
        """The best of it."""
        shorter = {name: (raw[:count], added[:count]) for name, (raw, added) in self.arms.items()}
        return Ranking(self.items[:count], self.scores[:count], shorter, self.hits)


def rank(shelf: Shelf, asked: Asked, allowed: Flags, vector: Floats | None, *, limit: int) -> Ranking:
    """The best `limit` of the allowed items, by score, then newest first. Items that nothing speaks for are left out.

    `vector` is the question's, from the embedder that made the shelf's; without one, words decide.
    """
    return fused(shelf, measured(shelf, asked, allowed, vector), allowed, limit=limit)


def measured(shelf: Shelf, asked: Asked, allowed: Flags, vector: Floats | None) -> Measured:
    """Ask every arm."""
    hits = arms.Hits(shelf, asked, allowed)
    return Measured(
        words=arms.words(shelf, hits, allowed),
        meaning=arms.meaning(shelf, vector, allowed),
        session=arms.session(shelf, hits, allowed),
        time=arms.time(shelf, asked, allowed),
        speaker=arms.speaker(shelf, asked),
        machine=np.zeros(shelf.items, np.bool_) if asked.of_the_assistant else arms.machine(shelf),
        hits=hits,
        weight=hits.heaviest(),
        sought=max((one.weight for one in asked.terms if one.kin_of < 0), default=1.0),
    )


def fused(shelf: Shelf, found: Measured, allowed: Flags, *, limit: int, weights: Weights = WEIGHTS) -> Ranking:
    """Weigh what the arms found, and order by it."""
    voice = np.where(found.machine, np.float32(weights.machine), np.float32(1))
    # `What did I say in April?` is asked of a time: its words must not count as if they were what is sought.
    by_words = np.float32(found.weight) * voice * of_best(found.words)
    by_meaning = np.float32(found.sought * weights.meaning) * voice * above_usual(found.meaning, allowed)
    waiting = shelf.unseen & allowed
    if waiting.any() and not np.array_equal(waiting, allowed):
        # What has no vector yet is taken to mean what its words say: it must not stand behind older neighbours.
        by_meaning = np.where(shelf.unseen, np.float32(weights.meaning) * by_words, by_meaning)
    by_session = np.float32(weights.session) * voice * of_best(found.session)
    said = by_words + by_meaning
    around = spread(shelf, said, weights)
    told = said + by_session
    told += around
    parts = {"words": (found.words, by_words), "meaning": (found.meaning, by_meaning), "session": (found.session, by_session)}
    parts["around"] = (around, around)
    if found.speaker.any():
        by_speaker = np.float32(weights.speaker) * found.speaker * told
        parts["speaker"] = (found.speaker.astype(np.float32), by_speaker)
        told += by_speaker
    by_telling = np.float32(weights.telling) * shelf.telling
    by_telling *= told
    parts["telling"] = (shelf.telling, by_telling)
    told += by_telling
    if found.time.any():
        by_time = found.time * (np.float32(weights.time_times) * told + np.float32(weights.time_plus) * voice)
        parts["time"] = (found.time, by_time)
        told += by_time
    score = told * allowed
    items = best(score, shelf.at, limit)
    return Ranking(items, score[items], {name: (raw[items], added[items]) for name, (raw, added) in parts.items()}, found.hits)


def of_best(score: Floats) -> Floats:
    """Scores from 0 up, as shares of the best."""
    top = float(score.max(initial=0.0))
    return score / np.float32(top) if top > 0 else np.zeros_like(score)


def above_usual(near: Floats, allowed: Flags) -> Floats:
    """How far above the mean of the allowed, as a share of the best's way. All texts are a little alike: that counts 0.

    The mean counts one more item that is like nothing, so that the only item there is can be found, too.
    """
    total = int(np.count_nonzero(allowed))
    if not total:
        return np.zeros_like(near)
    usual = np.float32(float(near.sum(where=allowed)) / (total + 1))
    top = near.max(initial=-1.0, where=allowed)
    if top - usual <= 1e-6:
        return np.zeros_like(near)
    return np.where(allowed, np.maximum(np.float32(0), (near - usual) / (top - usual)), np.float32(0))


def spread(shelf: Shelf, said: Floats, weights: Weights = WEIGHTS) -> Floats:
    """What each item gets from those around it in its session: more the shorter it is, less with each hop over long ones."""
    usual = weights.brief_terms == BRIEF_TERMS
    brevity, sides = shelf.surroundings if usual else surroundings(shelf, weights.brief_terms)
    total: Floats = np.zeros(shelf.items, np.float32)
    for beside, has, passing in sides:
        # From one side comes what the neighbour says, and through it, if it is short, what comes to it from behind.
        near = said.take(beside, mode="wrap")
        near *= has
        come = near
        for _ in range(HOPS - 1):
            come = come.take(beside, mode="wrap")
            come *= passing
            come *= np.float32(weights.hop)
            come += near
        total += come
    total *= brevity
    total *= np.float32(weights.around)
    return total


def best(score: Floats, at: Longs, limit: int) -> Ints:
    """The places of the `limit` highest scores above 0, highest first; of equals the newest, then the first."""
    if limit < 1:
        return np.zeros(0, np.int32)
    least = np.partition(score, len(score) - limit)[len(score) - limit] if len(score) > limit else np.float32(0)
    found = np.flatnonzero(score >= least) if least > 0 else np.flatnonzero(score > 0)
    order = np.lexsort((found, -at[found], -score[found]))[:limit]
    return found[order].astype(np.int32)
