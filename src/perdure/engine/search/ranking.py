"""How a search orders what it may find: each arm measures all allowed items in one way, and the arms become one order.

Statistics (how rare a term is, how long items are) come from the allowed items alone, so that what may not be seen has no
effect on what is. Items that are not allowed get 0. Why each hit stands where it stands is said here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from perdure.domain.context.recall import Hit
from perdure.domain.values import dataclass, replace
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.columns import BRIEF_TERMS, UNKNOWN_US, Flags, Floats, Ints, ItemColumns, Longs, Voice, surroundings
from perdure.engine.search.question import QuestionTime, SearchQuestion

# BM25 with usual values; k1 from 0.5 to 1.5 and b from 0.5 to 0.75 were tried and moved recall by about a point.
TERM_SATURATION = 1.0
LENGTH_CORRECTION = 0.7
SESSION_CELLS_MAX = 1 << 20
MENTION_FIT = 0.5
"""A message that names the time asked for, against one that was written then: how plans are found."""


class TermPostings:
    """The postings of the question's terms among the allowed passages, side by side: gathered once, used by two arms."""

    def __init__(self, shelf: ItemColumns, asked: SearchQuestion, allowed: Allowed) -> None:
        wanted = np.array([sought.hash for sought in asked.terms], np.uint64)
        self.term, self.passage, self.count = shelf.postings(wanted)
        if allowed.passages_count < len(shelf.passage_item):
            seen = allowed.passages[self.passage]
            self.term, self.passage, self.count = self.term[seen], self.passage[seen], self.count[seen]
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


def words_scores(shelf: ItemColumns, hits: TermPostings, allowed: Allowed) -> Floats:
    """BM25 of the terms; of an item with several passages, that of the best."""
    if not len(hits.passage):
        return np.zeros(shelf.items, np.float32)
    holders = np.bincount(hits.term, minlength=hits.terms).astype(np.float64)
    worth = hits.worth(holders, allowed.passages_count)
    correction = LENGTH_CORRECTION / allowed.usual_length
    tempo = TERM_SATURATION * (1 - LENGTH_CORRECTION + correction * shelf.passage_length[hits.passage])
    parts = worth[hits.term] * (TERM_SATURATION + 1) * hits.count / (hits.count + tempo)
    return _best_passage(shelf, np.bincount(hits.passage, parts, len(shelf.passage_item)).astype(np.float32))


def meaning_scores(shelf: ItemColumns, vector: Floats | None, allowed: Allowed) -> Floats:
    """Cosine with the question's vector; of an item with several passages, that of the nearest."""
    if vector is None or not np.any(vector):
        return np.zeros(shelf.items, np.float32)
    near = _best_passage(shelf, shelf.nearness(vector.astype(np.float32)))
    near *= allowed.mask
    return near


def session_scores(shelf: ItemColumns, hits: TermPostings, allowed: Allowed) -> Floats:
    """BM25 of the whole session of an item: what is asked may be spread over its messages."""
    size = shelf.sessions
    code = shelf.session_code[hits.passage if shelf.one_passage_each else shelf.passage_item[hits.passage]]
    inside = code >= 0
    if not size or not inside.any():
        return np.zeros(shelf.items, np.float32)
    within, lengths, total = allowed.sessions
    usual = max(1.0, float(lengths.sum()) / total)
    tempo = TERM_SATURATION * (1 - LENGTH_CORRECTION + LENGTH_CORRECTION / usual * lengths)
    term, inner, count = _per_session(hits.term[inside], code[inside], hits.count[inside], (hits.terms, size))
    worth = hits.worth(np.bincount(term, minlength=hits.terms).astype(np.float64), total)
    score = np.bincount(inner, worth[term] * (TERM_SATURATION + 1) * count / (count + tempo[inner]), size)
    found = score.astype(np.float32).take(shelf.session_code, mode="wrap")
    found *= within
    return found


def time_scores(shelf: ItemColumns, asked: SearchQuestion, allowed: Allowed) -> Floats:
    """How well an item fits the times asked for, 0 to 1, less where most others fit as well; 0 if no time is asked for."""
    fit = np.zeros(shelf.items, np.float32)
    if not asked.stretches or not allowed.items:
        return fit
    known = shelf.at != UNKNOWN_US
    for stretch in asked.stretches:
        at = np.where(known, shelf.at, stretch.start_us)
        beside = np.maximum(0, np.maximum(stretch.start_us - at, at - stretch.end_us)) / stretch.slack_us
        fit = np.maximum(fit, np.where(known, np.exp(-0.5 * beside * beside), 0).astype(np.float32))
        named = _mentioned(shelf, stretch)
        fit[named] = np.maximum(fit[named], MENTION_FIT)
    fit *= allowed.mask
    return fit * np.float32(1 - fit.sum() / allowed.items)


def speaker_scores(shelf: ItemColumns, asked: SearchQuestion) -> Flags:
    """Whether an item was said by one whom the question names."""
    if not asked.named or not shelf.speakers:
        return np.zeros(shelf.items, np.bool_)
    named = np.array([name in asked.named for name in shelf.speakers] + [False])
    return named[shelf.speaker_code]  # `NONE` picks the last one


def machine_scores(shelf: ItemColumns) -> Flags:
    """Whether an item was said by a machine: long, full of words, and seldom what a person asks to be reminded of."""
    return _MACHINES[shelf.role]


_MACHINES: Flags = np.isin(np.arange(256), (Voice.ASSISTANT, Voice.TOOL, Voice.SYSTEM))


def _best_passage(shelf: ItemColumns, score: Floats) -> Floats:
    if shelf.one_passage_each:
        return score
    best = np.zeros(shelf.items, np.float32)
    if len(score):
        firsts = shelf.first_passages
        best[shelf.passage_item[firsts]] = np.maximum.reduceat(score, firsts)
    return best


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


def _mentioned(shelf: ItemColumns, stretch: QuestionTime) -> Ints:
    """Items that name a time inside the stretch, or one not much wider."""
    first, last = shelf.time_start, shelf.time_end
    wide = max(90_000_000_000, (stretch.end_us - stretch.start_us) * 3 // 2)
    return shelf.time_item[(first < stretch.end_us) & (last > stretch.start_us) & (last - first <= wide)]


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
class ArmScores:
    """What the arms found, a number per item and arm; 0 for items that are not allowed."""

    words: Floats
    meaning: Floats
    session: Floats
    time: Floats
    speaker: Flags
    machine: Flags
    """Items that count less because a machine said them."""
    hits: TermPostings
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
    hits: TermPostings
    """Where the terms of the question are."""

    def first(self, count: int) -> Ranking:
        """The best of it."""
        shorter = {name: (raw[:count], added[:count]) for name, (raw, added) in self.arms.items()}
        return Ranking(self.items[:count], self.scores[:count], shorter, self.hits)


def rank(shelf: ItemColumns, asked: SearchQuestion, allowed: Allowed, vector: Floats | None, *, limit: int) -> Ranking:
    """The best `limit` of the allowed items, by score, then newest first. Items that nothing speaks for are left out.

    `vector` is the question's, from the embedder that made the shelf's; without one, words decide.
    """
    return fused(shelf, measured(shelf, asked, allowed, vector), allowed, limit=limit)


def measured(shelf: ItemColumns, asked: SearchQuestion, allowed: Allowed, vector: Floats | None) -> ArmScores:
    """Ask every arm."""
    hits = TermPostings(shelf, asked, allowed)
    return ArmScores(
        words=words_scores(shelf, hits, allowed),
        meaning=meaning_scores(shelf, vector, allowed),
        session=session_scores(shelf, hits, allowed),
        time=time_scores(shelf, asked, allowed),
        speaker=speaker_scores(shelf, asked),
        machine=np.zeros(shelf.items, np.bool_) if asked.of_the_assistant else machine_scores(shelf),
        hits=hits,
        weight=hits.heaviest(),
        sought=max((one.weight for one in asked.terms if one.kin_of < 0), default=1.0),
    )


def fused(shelf: ItemColumns, found: ArmScores, allowed: Allowed, *, limit: int, weights: Weights = WEIGHTS) -> Ranking:
    """Weigh what the arms found, and order by it.

    said   = voice · (words + 0.4 · meaning)               each arm brought to 0…1 by the best of this search
    around = 0.35 · brevity · (said of the neighbours)     a short message is about what its neighbours are about
    score  = (said + around + 0.3 · voice · session) · (1 + 0.4 · speaker) · (1 + 0.2 · telling) · (1 + 0.7 · time)
             + 0.5 · voice · time
    """
    voice = np.where(found.machine, np.float32(weights.machine), np.float32(1))
    # `What did I say in April?` is asked of a time: its words must not count as if they were what is sought.
    by_words = np.float32(found.weight) * voice * of_best(found.words)
    by_meaning = np.float32(found.sought * weights.meaning) * voice * above_usual(found.meaning, allowed)
    if (unseen := allowed.without_vector) is not None:
        # What has no vector yet is taken to mean what its words say: it must not stand behind older neighbours.
        by_meaning = np.where(unseen, np.float32(weights.meaning) * by_words, by_meaning)
    by_session = np.float32(weights.session) * voice * of_best(found.session)
    said = by_words + by_meaning
    around = spread(shelf, said, weights)
    total = said + by_session
    total += around
    parts = {"words": (found.words, by_words), "meaning": (found.meaning, by_meaning), "session": (found.session, by_session)}
    parts["around"] = (around, around)
    if found.speaker.any():
        by_speaker = np.float32(weights.speaker) * found.speaker * total
        parts["speaker"] = (found.speaker.astype(np.float32), by_speaker)
        total += by_speaker
    by_telling = np.float32(weights.telling) * shelf.telling
    by_telling *= total
    parts["telling"] = (shelf.telling, by_telling)
    total += by_telling
    if found.time.any():
        by_time = found.time * (np.float32(weights.time_times) * total + np.float32(weights.time_plus) * voice)
        parts["time"] = (found.time, by_time)
        total += by_time
    score = total * allowed.mask
    items = best(score, shelf.at, limit)
    return Ranking(items, score[items], {name: (raw[items], added[items]) for name, (raw, added) in parts.items()}, found.hits)


def of_best(score: Floats) -> Floats:
    """Scores from 0 up, as shares of the best."""
    top = float(score.max(initial=0.0))
    return score / np.float32(top) if top > 0 else np.zeros_like(score)


def above_usual(near: Floats, allowed: Allowed) -> Floats:
    """How far above the mean of the allowed, as a share of the best's way; all others have 0. All texts are a little alike:
    that counts 0. The mean counts one more item that is like nothing, so that the only item there is can be found, too.
    """
    if not allowed.items:
        return np.zeros_like(near)
    usual = np.float32(float(near.sum()) / (allowed.items + 1))
    top = near.max()
    if top <= 0:
        top = near.max(initial=-1.0, where=allowed.mask)
    if top - usual <= 1e-6:
        return np.zeros_like(near)
    above: Floats = near - usual
    above /= top - usual
    np.maximum(above, np.float32(0), out=above)
    above *= allowed.mask
    return above


def spread(shelf: ItemColumns, said: Floats, weights: Weights = WEIGHTS) -> Floats:
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
    found = np.flatnonzero(score >= _least(score, limit))
    found = found[score[found] > 0]
    order = np.lexsort((found, -at[found], -score[found]))[:limit]
    return found[order].astype(np.int32)


BLOCK = 64


def _least(score: Floats, limit: int) -> np.float32:
    """A score that at least `limit` items reach, and not many more: the `limit`th of the best ones of blocks."""
    whole = len(score) // BLOCK
    if whole <= limit:
        return np.float32(0)
    tops = score[: whole * BLOCK].reshape(whole, BLOCK).max(axis=1)
    least: np.float32 = np.partition(tops, whole - limit)[whole - limit]
    return least


def nearest(
    shelf: ItemColumns, asked: SearchQuestion, allowed: Allowed, vector: Floats | None, *, limit: int
) -> list[tuple[int, float]]:
    """The `limit` of the allowed items that are nearest in meaning, each with its cosine; equals newest first.

    What has no vector counts by its share of the question's words, and is left out if it has none of them.
    """
    blind = shelf.unseen if vector is not None and np.any(vector) else np.ones(shelf.items, np.bool_)
    score = np.where(blind, _word_shares(shelf, asked, allowed), meaning_scores(shelf, vector, allowed))
    found = np.flatnonzero(allowed.mask & (~blind | (score > 0)))
    order = found[np.lexsort((found, -shelf.at[found], -score[found]))[:limit]]
    return list(zip(order.tolist(), score[order].tolist(), strict=True))


def _word_shares(shelf: ItemColumns, asked: SearchQuestion, allowed: Allowed) -> Floats:
    """How much of the question's own words stands in each item, 0 to 1."""
    own = replace(asked, terms=tuple(one for one in asked.terms if one.kin_of < 0))
    weight = np.array([one.weight for one in own.terms], np.float32)
    if not weight.sum():
        return np.zeros(shelf.items, np.float32)
    hits = TermPostings(shelf, own, allowed)
    item, term = np.unique(np.stack((shelf.passage_item[hits.passage], hits.term)), axis=1)
    shares: Floats = (np.bincount(item, weight[term], shelf.items) / weight.sum()).astype(np.float32)
    return shares


def frequencies(entities: Sequence[Sequence[str]]) -> list[float]:
    """For each candidate the mean, over the entities it names, of their count divided by the highest count; 0 without any."""
    counts = Counter(ref for refs in entities for ref in dict.fromkeys(refs))
    most = max(counts.values(), default=1)
    return [
        sum(counts[ref] / most for ref in dict.fromkeys(refs)) / len(dict.fromkeys(refs)) if refs else 0.0 for refs in entities
    ]


SAID = {
    "meaning": "means something alike",
    "session": "its session is about it",
    "around": "its neighbours are about it",
    "speaker": "said by one whom the question names",
    "time": "fits the time that is asked about",
}


def reasons(shelf: ItemColumns, asked: SearchQuestion, ranking: Ranking) -> list[tuple[str, ...]]:
    """For each hit the terms that it shares with the question, and what else spoke for it."""
    shared = _shared(shelf, asked, ranking)
    spoke = [(said, ranking.arms[arm][1].tolist()) for arm, said in SAID.items() if arm in ranking.arms]
    found = []
    for place, terms in enumerate(shared):
        named = [said for said, added in spoke if added[place] > 0]
        found.append((*((f"has {', '.join(terms)}",) if terms else ()), *named))
    return found


def _shared(shelf: ItemColumns, asked: SearchQuestion, ranking: Ranking) -> list[Sequence[str]]:
    hits, terms = ranking.hits, asked.terms
    held = hits.passage if shelf.one_passage_each else shelf.passage_item[hits.passage]
    sought = np.zeros(shelf.items, bool)
    sought[ranking.items] = True
    wanted = np.flatnonzero(sought[held])
    shared: dict[int, dict[str, None]] = {item: {} for item in ranking.items.tolist()}
    for item, place in zip(held[wanted].tolist(), hits.term[wanted].tolist(), strict=True):
        term = terms[place]
        said = term.term if term.kin_of < 0 else f"{term.term} (near {terms[term.kin_of].term})"
        shared[item][said] = None
    return [tuple(one) for one in shared.values()]


def current_first(hits: Sequence[Hit]) -> list[Hit]:
    """The hits with every current value moved up before the first hit that it takes the place of, at that one's score."""
    ordered = list(hits)
    place = 0
    while place < len(ordered):
        if not ordered[place].current:
            place += 1
            continue
        wanted = {name for one in ordered[place].current for name in (one.id, *one.sources)}
        later = next((other for other in range(place + 1, len(ordered)) if ordered[other].id in wanted), None)
        if later is None:
            place += 1
            continue
        newer = ordered.pop(later)
        why = dict.fromkeys((*newer.trace.why, "it holds now, and a hit states an older value"))
        raised = replace(newer, score=ordered[place].score, trace=replace(newer.trace, why=tuple(why)))
        ordered.insert(place, raised)
        place += 1
    return ordered
