"""Whether a goal needs anything of the user's, by how it is worded: greetings and what everybody could ask need nothing.

A logistic regression over the n-grams by which sentences are judged (`engine.extraction.judge`), the same for every language,
with three plain features beside them: whether the user is in the goal, whether it names a time, and how long it is. The goals
of several writers taught it; `tools/build_before.py` fits it and writes `needs.bin` and `weights.json`.
"""

from __future__ import annotations

import math
import re
from functools import cache

from perdure.domain.text.patterns import pattern
from perdure.engine.extraction.judge import JudgeTable, run_places, unpacked
from perdure.engine.words import fitted, raw

FILE = "needs.bin"
NEEDS_MIN = 0.5
"""From this on, a goal is taken to need something of the user's."""
MAYBE_MIN = 0.2
"""From this on it may: if it names somebody who is told of, or if something limits it."""
JUDGED_CHARS_MAX, WORDS_MAX = 600, 24
"""What a goal asks for stands at its beginning; what is pasted behind it tells less."""
_OWN = pattern(
    r"\b(?:i|i['’]\w+|me|my|we|us|our|ich|mir|mich|mein\w{0,2}|wir|uns|unser\w{0,2}"
    r"|je|j['’]\w+|moi|mon|ma|mes|nous|notre|nos|yo|m[ií]|mis|conmigo|nuestr[oa]s?)\b",
    re.IGNORECASE,
)


_DATE = pattern(r"(?<![\w-])\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-])")
DAY = "yesterday"
"""Stands for a date in figures: hardly any goal of those that taught the table has one."""


def needs(goal: str, *, timed: bool) -> float:
    """How likely it is, from 0 to 1. `timed`: the goal names a stretch of time."""
    weights = fitted(__package__, "weights.json")["needs"]
    goal = _DATE.sub(DAY, goal[:JUDGED_CHARS_MAX])
    known = sum(weights[name] * value for name, value in plain_features(goal, timed=timed).items())
    whole = worded(goal, table()) + known + weights["bias"]
    return 1 / (1 + math.exp(-max(min(whole, 30.0), -30.0)))


def worded(goal: str, held: JudgeTable) -> float:
    """What its n-grams say: log odds."""
    places = run_places(goal[:JUDGED_CHARS_MAX])
    return held.scales[0] * float(held.weights[places].sum(dtype="int32")) / math.sqrt(len(places))


def plain_features(goal: str, *, timed: bool) -> dict[str, float]:
    """What else is weighed."""
    words = min(len(goal[:JUDGED_CHARS_MAX].split()), WORDS_MAX)
    return {"own": float(speaks_of_oneself(goal)), "timed": float(timed), "length": math.log1p(words)}


def speaks_of_oneself(goal: str) -> bool:
    """Whether the user is in it: what everybody could ask is limited by nothing of theirs."""
    return _OWN.search(goal[:JUDGED_CHARS_MAX]) is not None


@cache
def table() -> JudgeTable:
    """The table as it is shipped, read once."""
    return unpacked(raw(__package__, FILE), name=FILE, columns=1)
