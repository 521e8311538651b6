"""What a rule for times is made of: its shape, the patterns that rules share, and how their words are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cache

from perdure.engine.calendars import Moment, Stretch, Turn
from perdure.engine.timetables import (
    ASKED_UNITS,
    LAST,
    MONTHS,
    NEXT,
    NUMBERS,
    ORDINAL_WORDS,
    PARTS,
    SHORT_WEEKDAYS,
    UNITS,
    WEEKDAYS,
    any_of,
)

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
OPEN_TAIL = r"(?!\w|-[^\W\d_])"
"""Where a range may go on with a dash and a number."""
PAST_WORDS = any_of(LAST)
NEXT_WORDS = any_of(NEXT)

NAME_TAIL = rf"(?!\w|-(?!(?:{any_of(WEEKDAYS.keys() | MONTHS.keys())})\b)[^\W\d_])"
"""Where a range may go on with a dash and a name: `Monday-Friday`."""

# In questions.

_SMALL = any_of(word for word, number in NUMBERS.items() if number < 10)
COUNT = (
    r"(?P<n>\d{1,3}\.\d|\d{1,4}(?! and an? half| 1/2)|(?:1/2|3/4|1/4)(?: of)?(?: an)?|(?:a )?(?:three[- ])?quarters? of an?|"
    r"half an?|(?:a )?half|"
    r"eine[rms]? halben?|media|a pair of|(?:a )?couple(?: of)?|(?:a )?few|(?:ein )?paar|quelques|(?:un|algun)[oa]s|"
    rf"(?:twenty|thirty|forty|fifty)[ -]{_SMALL}|(?:\d{{1,2}}|{_SMALL}|ten) and an? half|\d{{1,2}} 1/2|{any_of(NUMBERS)})"
)
GAP = r"(?: |(?<=\d))"
"""Between a number and its unit: `24 hours`, `24h`."""
ASKED_UNIT = rf"(?P<unit>{any_of(ASKED_UNITS)})"
_MANY = (
    "weeks|wks|months|quarters|qtrs|years|yrs|wochen|monaten?|quartalen?|jahren?|semaines|ans|années|"
    "annees|trimestres|semanas|meses|años"
)
_WHOLE = any_of(word for word, unit in ASKED_UNITS.items() if unit in ("week", "month", "quarter", "year"))
WHOLE_UNIT = rf"(?P<unit>(?!(?:{_MANY})\b){_WHOLE})"
ORDINAL = (
    rf"(?P<ord>\d{{1,2}}(?:st|nd|rd|th|er|re|ère|e|ème|\.|º|ª)|{any_of(word.replace('-', '[ -]') for word in ORDINAL_WORDS)})"
)
BACK = r"(?:last|past|previous|letzte[nmrs]?|vergangene[nmrs]?|vorige[nmrs]?|derni[eè]re?s?|passée?|[úu]ltim[oa]s?|pasad[oa]s?)"
ON = r"(?:next|coming|following|nächste[nmrs]?|kommende[nmrs]?|folgende[nmrs]?|prochaine?s?|pr[óo]xim[oa]s?|que viene)"
THIS = r"(?:this|current|diese[nmrs]?|laufende[nmrs]?|cette|cet|ce|est[ae])"
NEAR_STARTS = (
    "this current last past previous next coming following upcoming letzte letzten letztem letzter "
    "letztes vergangene vergangenen "
    "vergangenem vergangener vergangenes vorige vorigen vorigem voriger voriges nächste nächsten nächstem "
    "nächster nächstes kommende "
    "kommenden kommendem kommender kommendes folgende folgenden diese diesen diesem dieser dieses laufende laufenden laufendes "
    "cette cet ce esta este dernière dernier dernières derniers dernieres prochaine prochain prochaines "
    "prochains última último "
    "últimas últimos ultimas ultimos próxima próximo próximas próximos"
)

Resolve = Callable[[re.Match[str], Moment], "Stretch | Turn | None"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Where `source` matches, which begins with one of `starts` (`#` is any number), `resolve` says what it means."""

    starts: tuple[str, ...]
    source: str
    resolve: Resolve
    says: str = ""
    """How the words are read, for people."""
    latent: bool = False
    """A time only where the text leaves no doubt: where there is nothing else."""
    weak: bool = False
    """A time only beside another."""

    def first_words(self) -> set[str]:
        """Of a start of several parts, the first one is looked for."""
        return {re.split(r"[\s'’-]", word)[0].lower() for word in self.starts}

    @property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.source)


@cache
def compiled(source: str) -> re.Pattern[str]:
    """Compiled when it is first needed: all rules together take longer than opening a store."""
    return re.compile(source, re.IGNORECASE)


def rule(starts: str | Collection[str], pattern: str, resolve: Resolve, says: str = "", *, latent: bool = False) -> Rule:
    """A rule whose match ends with a word."""
    return Rule(tuple(starts.split() if isinstance(starts, str) else starts), pattern + TAIL, resolve, says, latent)


def asked(
    starts: str | Collection[str],
    pattern: str,
    resolve: Resolve,
    says: str,
    *,
    latent: bool = False,
    weak: bool = False,
    tail: str = OPEN_TAIL,
) -> Rule:
    """A rule for questions."""
    return replace(rule(starts, "", resolve, says, latent=latent), source=pattern + tail, weak=weak)


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


def amount(word: str) -> float:
    """The number that `word`, which matched `COUNT`, says."""
    word = word.lower().removesuffix(" of").removesuffix(" an").removesuffix(" of").replace(" an half", " a half")
    if word.endswith((" and a half", " 1/2")):
        return amount(word.removesuffix(" and a half").removesuffix(" 1/2")) + 0.5
    if word in ("1/2", "half", "a half", "half a", "media") or "halbe" in word:
        return 0.5
    if "3/4" in word or ("three" in word and "quarter" in word):
        return 0.75
    if "1/4" in word or "quarter" in word:
        return 0.25
    if "pair" in word:
        return 2
    if word.endswith(("paar", "quelques", "unos", "unas")):
        return NUMBERS["few"]
    if word[0].isdecimal():
        return float(word)
    numbers = [NUMBERS[part] for part in re.split(r"[ -]", word) if part in NUMBERS]
    return sum(numbers) if numbers and numbers[0] >= 20 else max(numbers, default=1)


def ordinal(word: str) -> int:
    """The place that `word`, which matched `ORDINAL`, says."""
    digits = re.match(r"\d+", word)
    return int(digits[0]) if digits else ORDINAL_WORDS[word.lower().replace(" ", "-")]


def asked_unit(match: re.Match[str]) -> str:
    return ASKED_UNITS[match["unit"].lower()]


def way(word: str | None) -> int:
    """-1 for words like `last`, 1 for words like `next`, 0 for words like `this`."""
    if not word:
        return 0
    return -1 if compiled(BACK).fullmatch(word) else 1 if compiled(rf"{ON}|upcoming").fullmatch(word) else 0
