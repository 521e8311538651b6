"""Why a hit was found, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perdure.engine.asking import Asked
from perdure.engine.fusing import Ranking
from perdure.engine.shelf import Ints, Shelf

SAID = {
    "meaning": "means something alike",
    "session": "its session is about it",
    "around": "its neighbours are about it",
    "speaker": "said by one whom the question names",
    "time": "fits the time that is asked about",
}


def reasons(shelf: Shelf, asked: Asked, ranking: Ranking) -> list[tuple[str, ...]]:
    """For each hit the terms that it shares with the question, and what else spoke for it."""
    shared = _shared(shelf, asked, ranking.items)
    found = []
    for place, terms in enumerate(shared):
        named = [said for arm, said in SAID.items() if arm in ranking.arms and ranking.arms[arm][1][place] > 0]
        found.append((*((f"has {', '.join(terms)}",) if terms else ()), *named))
    return found


def _shared(shelf: Shelf, asked: Asked, items: Ints) -> list[Sequence[str]]:
    terms = asked.terms
    found, passages, _ = shelf.postings(np.array([sought.hash for sought in terms], np.uint64))
    held = shelf.passage_item[passages]
    place = {int(item): index for index, item in enumerate(items)}
    sought = np.zeros(shelf.items, bool)
    sought[items] = True
    wanted = sought[held]
    shared: list[dict[str, None]] = [{} for _ in items]
    for item, term in zip(held[wanted].tolist(), found[wanted].tolist(), strict=True):
        sought = terms[term]
        said = sought.term if sought.kin_of < 0 else f"{sought.term} (near {terms[sought.kin_of].term})"
        shared[place[item]][said] = None
    return [tuple(one) for one in shared]
