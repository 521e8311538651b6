"""Why a hit was found, in words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perdure.engine.asking import Asked
from perdure.engine.fusing import Ranking
from perdure.engine.shelf import Shelf

SAID = {
    "meaning": "means something alike",
    "session": "its session is about it",
    "around": "its neighbours are about it",
    "speaker": "said by one whom the question names",
    "time": "fits the time that is asked about",
}


def reasons(shelf: Shelf, asked: Asked, ranking: Ranking) -> list[tuple[str, ...]]:
    """For each hit the terms that it shares with the question, and what else spoke for it."""
    shared = _shared(shelf, asked, ranking)
    spoke = [(said, ranking.arms[arm][1].tolist()) for arm, said in SAID.items() if arm in ranking.arms]
    found = []
    for place, terms in enumerate(shared):
        named = [said for said, added in spoke if added[place] > 0]
        found.append((*((f"has {', '.join(terms)}",) if terms else ()), *named))
    return found


def _shared(shelf: Shelf, asked: Asked, ranking: Ranking) -> list[Sequence[str]]:
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
