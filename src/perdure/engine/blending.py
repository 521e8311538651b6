"""The frequency part of the blend: how often the entities of a candidate are named among all candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence


def frequencies(entities: Sequence[Sequence[str]]) -> list[float]:
    """For each candidate the mean, over the entities it names, of their count divided by the highest count; 0 without any."""
    counts = Counter(ref for refs in entities for ref in dict.fromkeys(refs))
    most = max(counts.values(), default=1)
    return [
        sum(counts[ref] / most for ref in dict.fromkeys(refs)) / len(dict.fromkeys(refs)) if refs else 0.0 for refs in entities
    ]
