"""Which of what was found bears on a goal, and the words that say why. Pure: rankings in, choices out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perdure.domain.oversight import Choice
from perdure.domain.recall import Hit
from perdure.engine.bearing import Candidate, goal_words
from perdure.engine.bearing_weights import NEEDS_MIN
from perdure.engine.goal_cues import names_in
from perdure.engine.lexicon import folded, lexemes

if TYPE_CHECKING:
    from perdure.engine.bearing import Floats

SHOWN_MAX = 15
SCORE_MIN = 0.01
SHARES_MIN = ((0.95, 0.25), (0.7, 0.03), (0.0, 0.01))
"""What is shown has at least so much of the best one's score: the surer the best one is, the fewer others are shown."""
SURE_MIN = 0.25
"""From this score on a value is loaded; below, what is known without it is shown."""
RECENCY_DAYS = 14.0
RECENCY_WORTH, USE_WORTH, USES_MAX = 0.2, 0.1, 5
COVER_MIN, NEARNESS_MIN = 0.3, 0.45
"""Where a saved key or series answers the goal already, what was found besides must have so many of its words, or mean it."""
HIT_SHARE_MIN = 0.3
"""Of what was found for a goal, what comes so near the best."""
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


def is_sure(choice: Choice, *, best: bool) -> bool:
    """Whether its value is to be loaded."""
    return best or choice.score >= SURE_MIN


def hits_that_bear(
    goal: str, hits: Sequence[Hit], *, needs: float, named: Collection[str], answered: bool
) -> tuple[list[Hit], list[Choice]]:
    """The best of the hits, if the goal needs something of the user's or names somebody they tell of; and a choice for each.

    `named`: the entities that the goal names. `answered`: something saved bears on it for sure, so that less will do.
    """
    names = set(names_in(goal))
    asked = {term for word in goal_words(goal) for term in lexemes(word)} if answered else set()
    known = bool(named) or any(names & _words_of(hit) for hit in hits)
    opens = needs >= NEEDS_MIN or known
    best = max((hit.score for hit in hits), default=0.0)
    kept: list[Hit] = []
    choices: list[Choice] = []
    for place, hit in enumerate(hits):
        bears = opens and len(kept) < HITS_MAX and hit.score >= HIT_SHARE_MIN * best
        bears = bears and (not answered or _is_near(asked, hit, named))
        if bears:
            kept.append(hit)
            reason = f"found for the goal (place {place + 1}, {hit.score:.2f})"
        elif not opens:
            reason = f"the goal seems to need nothing of the user's ({needs:.2f} < {NEEDS_MIN})"
        else:
            reason = f"far behind the best (place {place + 1}, {hit.score:.2f})"
        choices.append(Choice(hit.kind, hit.id, bears, reason, round(hit.score, 4)))
    return kept, choices


def _is_near(asked: set[str], hit: Hit, named: Collection[str]) -> bool:
    meaning = hit.trace.arms.get("meaning")
    near = meaning is not None and meaning.raw >= NEARNESS_MIN
    about = any(ref in named for ref in hit.entities)
    return near or about or len(asked & set(lexemes(hit.text))) >= COVER_MIN * max(len(asked), 1)


def _words_of(hit: Hit) -> set[str]:
    return set(folded(f"{hit.speaker} {hit.text[:2_000]}").replace("'", " ").split())


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
