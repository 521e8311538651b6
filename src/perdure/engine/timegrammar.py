"""What a rule for times is made of: its shape, the patterns that rules share, and how their words are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache

from perdure.engine.calendars import Moment, Stretch, Turn
from perdure.engine.timetables import LAST, MONTHS, NEXT, NUMBERS, PARTS, SHORT_WEEKDAYS, UNITS, WEEKDAYS, any_of

STOPS = re.compile(r"[.!?;\n]")
NUM = rf"(?P<n>\d{{1,4}}|{any_of(NUMBERS)}|a couple(?: of)?|a few)"
UNIT = rf"(?P<unit>{any_of(UNITS)})"
LONG_UNIT = rf"(?P<unit>{any_of(word for word, unit in UNITS.items() if unit in ('week', 'month', 'quarter', 'year'))})"
WEEKDAY = rf"(?P<wd>{any_of(WEEKDAYS)})"
FULL_WEEKDAY = rf"(?P<wd>{any_of(WEEKDAYS.keys() - SHORT_WEEKDAYS)})"
MONTH = rf"(?P<month>{any_of(MONTHS)})"
PART = rf"(?P<part>{any_of(PARTS)})"
YEAR = r"(?P<year>(?:19|20)\d\d)"
TAIL = r"(?![\w-])"
PAST_WORDS = any_of(LAST)
NEXT_WORDS = any_of(NEXT)

Resolve = Callable[[re.Match[str], Moment], "Stretch | Turn | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Where `source` matches, which begins with one of `starts` (`#` is any number), `resolve` says what it means."""

    starts: frozenset[str]
    source: str
    resolve: Resolve
    says: str = ""
    """How the words are read, for people."""
    latent: bool = False
    """A time only where the text leaves no doubt: beside another time, or where there is nothing else."""

    @property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.source)


@cache
def compiled(source: str) -> re.Pattern[str]:
    """Compiled when it is first needed: all rules together take longer than opening a store."""
    return re.compile(source, re.IGNORECASE)


def rule(starts: str | Collection[str], pattern: str, resolve: Resolve, says: str = "", *, latent: bool = False) -> Rule:
    """A rule whose match ends with a word. Of a start of several words or parts, the first one is looked for."""
    words = starts.split() if isinstance(starts, str) else starts
    return Rule(frozenset(re.split(r"[\s'’-]", word)[0] for word in words), pattern + TAIL, resolve, says, latent)


def number(word: str | None) -> int:
    if not word:
        return 1
    word = word.lower()
    return int(word) if word.isdecimal() else max(NUMBERS.get(part, 1) for part in word.split())


def direction(word: str) -> int:
    """-1 for words like `last`, 1 for words like `next`, else 0."""
    word = word.lower()
    if word in LAST or word.startswith(("derni", "pasad", "passé")):
        return -1
    return 1 if word in NEXT or word.startswith(("prochain", "próxim", "que viene")) else 0
