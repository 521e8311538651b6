"""Which of what was found bears on a goal, and the words that say why. Pure: rankings in, choices out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perdure.domain.oversight import Choice
from perdure.domain.recall import Hit
from perdure.engine.bearing import Candidate, goal_words
from perdure.engine.lexicon import lexemes

if TYPE_CHECKING:
    from perdure.engine.bearing import Floats

NEEDS_MIN = 0.55
"""Below this, the goal is taken to need nothing of the user's."""
SHOWN_MAX = 10
SCORE_MIN = 0.012
SHARES_MIN = ((0.95, 0.25), (0.7, 0.03), (0.0, 0.02))
"""What is shown has at least so much of the best one's score: the surer the best one is, the fewer others are shown."""
SURE_MIN = 0.25
"""From this score on a value is loaded; below, what is known without it is shown."""
RECENCY_DAYS = 14.0
RECENCY_WORTH, USE_WORTH, USES_MAX = 0.2, 0.1, 5
COVER_MIN, COVER_CLOSED_MIN = 0.4, 0.75
"""How many of the goal's words a found text must have: of a goal that needs something, and of one that seems not to."""
NEARNESS_MIN, NEARNESS_CLOSED_MIN = 0.45, 0.65
HITS_MAX = 12


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score, and its place among all candidates."""

    candidate: Candidate
    score: float
    place: int


def ranked(candidates: Sequence[Candidate], scores: Floats, ages_days: Floats, uses: Floats, *, limit: int) -> list[Ranked]:
    """The best, best first; of two that bear on the goal alike, the one saved lately, or given to an agent lately."""
    recency = np.exp2(-np.maximum(ages_days, 0) / RECENCY_DAYS)
    use = np.minimum(uses, USES_MAX) / USES_MAX
    weighed = scores * (1 + RECENCY_WORTH * recency + USE_WORTH * use)
    order = np.argsort(-weighed, kind="stable")[:limit]
    return [Ranked(candidates[place], float(scores[place]), int(place)) for place in order]


def chosen_by_rules(order: Sequence[Ranked], needs: float) -> list[Choice]:
    """A choice for each of the ranked: the goal must need something, and a thing must come near the best."""
    best = max((one.score for one in order), default=0.0)
    least = max(best * next(share for score, share in SHARES_MIN if best >= score), SCORE_MIN)
    choices = []
    for place, one in enumerate(order):
        score, candidate = one.score, one.candidate
        if needs < NEEDS_MIN:
            reason, included = f"the goal seems to need nothing of the user's ({needs:.2f} < {NEEDS_MIN})", False
        elif place >= SHOWN_MAX or score < least:
            reason, included = f"bears little on the goal (place {place + 1}, {score:.3f})", False
        else:
            sure = "bears on the goal" if score >= SURE_MIN or place == 0 else "may bear on the goal"
            reason, included = f"{sure} (place {place + 1}, {score:.2f})", True
        choices.append(Choice(candidate.kind, candidate.id, included, reason, round(score, 4)))
    return choices


def chosen_by_model(order: Sequence[Ranked], names: Iterable[str], model: str) -> list[Choice]:
    """The same by the answer of a model, as far as it names what there is."""
    wanted = set(names)
    return [
        Choice(
            one.candidate.kind,
            one.candidate.id,
            one.candidate.id in wanted,
            f"{'chosen' if one.candidate.id in wanted else 'not chosen'} by {model} (place {place + 1} of those offered)",
            round(one.score, 4),
        )
        for place, one in enumerate(order)
    ]


def is_sure(choice: Choice, best: bool) -> bool:
    """Whether its value is to be loaded."""
    return best or choice.score >= SURE_MIN


def hits_that_bear(
    goal: str, hits: Sequence[Hit], *, needs: bool, named: Collection[str] = ()
) -> tuple[list[Hit], list[Choice]]:
    """Those of the hits that have enough of the goal's words, mean what it means, or are about an entity it names; and a
    choice for each."""
    asked = {term for word in goal_words(goal) for term in lexemes(word)}
    cover_min, near_min = (COVER_MIN, NEARNESS_MIN) if needs else (COVER_CLOSED_MIN, NEARNESS_CLOSED_MIN)
    kept: list[Hit] = []
    choices: list[Choice] = []
    for hit in hits:
        cover = len(asked & set(lexemes(hit.text))) / len(asked) if asked else 0.0
        meaning = hit.trace.arms.get("meaning")
        near = 0.0 if meaning is None else meaning.raw
        about = any(ref in named for ref in hit.entities)
        bears = (about or cover >= cover_min or near >= near_min) and len(kept) < HITS_MAX
        if bears:
            kept.append(hit)
        why = f"{cover:.0%} of the goal's words, meaning {near:.2f}{', about an entity that it names' if about else ''}"
        reason = f"bears on the goal: {why}" if bears else f"bears too little on the goal: {why}"
        choices.append(Choice(hit.kind, hit.id, bears, reason, round(hit.score, 4)))
    return kept, choices


def uses_of(bodies: Iterable[Mapping[str, object]]) -> dict[tuple[str, str], int]:
    """How often each thing was given to an agent, by the records of earlier decisions."""
    found: dict[tuple[str, str], int] = {}
    for body in bodies:
        included = body.get("included")
        for one in included if isinstance(included, list) else ():
            if isinstance(one, list) and len(one) >= 2:
                name = (str(one[0]), str(one[1]))
                found[name] = found.get(name, 0) + 1
    return found
