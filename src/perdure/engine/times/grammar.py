"""What a rule for times is made of: its shape, the words of all languages, the patterns that rules share, what they say, and
which way the words around them point.

Words are data: `words.LANGUAGE.toml` beside this module. A pattern names a set of them as `<<months>>`, which is filled in when
the pattern is first needed, so that importing the grammar reads no file and compiles nothing.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache, cached_property

from perdure.domain.values import dataclass, replace
from perdure.engine.times.calendar import Moment, Shift, Stretch
from perdure.engine.words import tables

# Words.

_PARTS = {"morning": (5, 12, 8), "afternoon": (12, 17, 14), "evening": (17, 22, 19), "night": (20, 24, 21)}
"""First hour, hour after the last, and the hour that a cron line takes for it."""
_WIDE_PARTS = {
    "early": (0, 9),
    "morning": (0, 12),
    "lunch": (12, 14),
    "afternoon": (12, 19),
    "evening": (18, 24),
    "night": (18, 24),
}
"""In a question, a part of the day is what anyone may call so."""


@dataclass(frozen=True, slots=True)
class TimeVocabulary:
    """What the words of all languages mean."""

    numbers: Mapping[str, int]
    ordinals: Mapping[str, int]
    decades: Mapping[str, int]
    units: Mapping[str, str]
    asked_units: Mapping[str, str]
    weekdays: Mapping[str, int]
    months: Mapping[str, int]
    seasons: Mapping[str, int]
    """By their first month."""
    days: Mapping[str, int]
    """Counted from today."""
    parts: Mapping[str, tuple[int, int, int]]
    wide_parts: Mapping[str, tuple[int, int]]
    weekday_parts: Mapping[str, tuple[int, str]]
    """A weekday and a part of it in one word: `Montagmorgen`."""
    zones: Mapping[str, int]
    """Minutes east of Greenwich."""


@cache
def vocabulary() -> TimeVocabulary:
    units, weekdays, parts = (_meanings(section) for section in ("units", "weekdays", "parts"))
    return TimeVocabulary(
        numbers=_counted("numbers"),
        ordinals=_counted("ordinals"),
        decades=_counted("decades"),
        units=units,
        asked_units=units | _meanings("units_asked"),
        weekdays={word: int(day) - 1 for word, day in (weekdays | _meanings("weekdays_short")).items()},
        months=_counted("months"),
        seasons=_counted("seasons"),
        days=_counted("days"),
        parts={word: _PARTS[part] for word, part in parts.items()},
        wide_parts={word: _WIDE_PARTS[part] for word, part in (parts | _meanings("parts_asked")).items()},
        weekday_parts={
            day + part: (int(number) - 1, part)
            for language in tables(__package__, "words").values()
            for number, days in language["weekdays"].items()
            for day in _split(days)
            for parts in language.get("parts_joined", {}).values()
            for part in _split(parts)
        },
        zones=_counted("zones"),
    )


def _counted(section: str) -> dict[str, int]:
    return {word: int(key) for word, key in _meanings(section).items()}


def _meanings(section: str) -> dict[str, str]:
    """The words of a section in all languages, each with the key of its line."""
    return {
        word: key
        for language in tables(__package__, "words").values()
        for key, words in language.get(section, {}).items()
        for word in _split(words)
    }


def _split(words: str | list[str]) -> Iterator[str]:
    """The words of a line, with either apostrophe."""
    for word in words.split() if isinstance(words, str) else words:
        yield word
        if "'" in word and len(word) > 1:
            yield word.replace("'", "’")


@cache
def word_sets() -> Mapping[str, Collection[str]]:
    """The sets of words that patterns name: tables, parts of them, and lists, with `_asked` as they hold for questions."""
    words = vocabulary()
    short = _meanings("weekdays_short").keys()
    whole = {word for word, unit in words.asked_units.items() if unit in ("week", "month", "quarter", "year")}
    lists = {f"{section}.{key}": found for section in _LISTS for key, found in _lists(section).items()}
    near = {"upcoming", *(word for key in ("this", "last", "next") for word in lists[f"near.{key}_asked"])}
    return {
        **lists,
        "near": near - {word for key in ("last_after", "next_after") for word in lists.get(f"near.{key}", ())},
        "numbers": words.numbers,
        "digits": {word for word, number in words.numbers.items() if number < 10 and len(word) > 2},
        "tens": {word for word, number in words.numbers.items() if 10 <= number < 60},
        "ordinals": {word.replace("-", "[ -]") for word in words.ordinals},
        "decades": words.decades,
        "units": words.units,
        "long_units": whole & words.units.keys(),
        "asked_units": words.asked_units,
        "whole_units": whole - set(lists["plurals.units"]),
        "weekdays": words.weekdays,
        "full_weekdays": words.weekdays.keys() - short,
        "short_weekdays": short,
        "capital_weekdays": {word.capitalize() for word in short},
        "months": words.months,
        "seasons": words.seasons,
        "days": words.days,
        "parts": words.parts,
        "weekday_parts": words.weekday_parts,
        "zones": words.zones,
    }


_LISTS = ("near", "edges", "ends", "leads", "tense", "vague", "names", "plurals", "languages")


def _lists(section: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for language in tables(__package__, "words").values():
        for key, words in language.get(section, {}).items():
            base, _, how = key.rpartition("_")
            names = {"said": [base], "asked": [key], "after": [key, f"{base}_asked"]}.get(how, [key, f"{key}_asked"])
            for name in names:
                found.setdefault(name, []).extend(_split(words))
    return found


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of `words`, the longest first."""
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"


def filled(source: str) -> str:
    """The pattern with the words that it names; of a word that ends in `*` any ending."""
    return re.sub(r"<<([\w.]+)>>", lambda name: any_of(word_sets()[name[1]]).replace("*", r"\w*"), source)


@cache
def compiled(source: str) -> re.Pattern[str]:
    """Compiled when it is first needed: all rules together take longer than opening a store."""
    return re.compile(filled(source), re.IGNORECASE)


# Patterns.

STOPS = re.compile(r"[.!?;\n]")
NUM = r"(?P<n>\d{1,4}|<<numbers>>|<<vague.couple>>|<<vague.few>>)"
UNIT = r"(?P<unit><<units>>)"
LONG_UNIT = r"(?P<unit><<long_units>>)"
WEEKDAY = r"(?P<wd><<weekdays>>)"
FULL_WEEKDAY = r"(?P<wd><<full_weekdays>>)"
MONTH = r"(?P<month><<months>>)"
PART = r"(?P<part><<parts>>)"
YEAR = r"(?P<year>(?:19|20)\d\d)"
TAIL = r"(?![\w-])"
OPEN_TAIL = r"(?!\w|-[^\W\d_])"
"""Where a range may go on with a dash and a number."""
NAME_TAIL = r"(?!\w|-(?!(?:<<weekdays>>|<<months>>)\b)[^\W\d_])"
"""Where a range may go on with a dash and a name: `Monday-Friday`."""

# In questions.

COUNT = (
    r"(?P<n>\d{1,3}\.\d|\d{1,4}(?! and an? half| 1/2)|(?:1/2|3/4|1/4)(?: of)?(?: an)?|(?:a )?(?:three[- ])?quarters? of an?|"
    r"half an?|(?:a )?half|"
    r"eine[rms]? halben?|media|<<vague.couple>>|<<vague.few>>|"
    r"(?:twenty|thirty|forty|fifty)[ -]<<digits>>|(?:\d{1,2}|<<digits>>|ten) and an? half|\d{1,2} 1/2|<<numbers>>)"
)
GAP = r"(?: |(?<=\d))"
"""Between a number and its unit: `24 hours`, `24h`."""
ASKED_UNIT = r"(?P<unit><<asked_units>>)"
WHOLE_UNIT = r"(?P<unit><<whole_units>>)"
ORDINAL = r"(?P<ord>\d{1,2}(?:st|nd|rd|th|er|re|ère|e|ème|\.|º|ª)|<<ordinals>>)"
HOUR_WORDS = "(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)"
BACK = "<<near.last_asked>>"
ON = "<<near.next_asked>>"
THIS = "<<near.this_asked>>"

Resolve = Callable[[re.Match[str], Moment], "Stretch | Shift | None"]


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
        """Of a start of several parts, the first one is looked for; `<<weekdays>>s` is each of them with that letter."""
        return {word[0].lower() for start in self.starts for one in _named(start) if (word := _FIRST.match(one))}

    @property
    def pattern(self) -> re.Pattern[str]:
        return compiled(self.source)


_FIRST = re.compile(r"#|[^\W_]+")


def _named(start: str) -> Iterable[str]:
    name, closing, ending = start.removeprefix("<<").partition(">>")
    return [word + ending for word in word_sets()[name]] if closing else [start]


def rule(starts: str | Collection[str], pattern: str, resolve: Resolve, says: str = "", *, latent: bool = False) -> Rule:
    """A rule whose match ends with a word."""
    return Rule(tuple(starts.split() if isinstance(starts, str) else starts), pattern + TAIL, resolve, says, latent)


def ask_rule(
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


# What words that matched say.


def amount(word: str) -> float:
    """The number that `word`, which matched `COUNT`, says."""
    if loose := loosely(word):
        return _A_FEW if loose == _FEW else loose[0]
    word = word.lower().removesuffix(" of").removesuffix(" an").removesuffix(" of").replace(" an half", " a half")
    if word.endswith((" and a half", " 1/2")):
        return amount(word.removesuffix(" and a half").removesuffix(" 1/2")) + 0.5
    if word in ("1/2", "half", "a half", "half a", "media") or "halbe" in word:
        return 0.5
    if "3/4" in word or ("three" in word and "quarter" in word):
        return 0.75
    if "1/4" in word or "quarter" in word:
        return 0.25
    known = vocabulary().numbers
    if word[0].isdecimal():
        return float(word)
    numbers = [known[part] for part in re.split(r"[ -]", word) if part in known]
    return sum(numbers) if numbers and numbers[0] >= 20 else max(numbers, default=1)


_COUPLE, _FEW, _A_FEW = (2, 3), (2, 6), 3


def loosely(word: str) -> tuple[int, int] | None:
    """From how many to how many `a couple` and `a few` are."""
    known = word_sets()
    return _COUPLE if word.lower() in known["vague.couple"] else _FEW if word.lower() in known["vague.few"] else None


def ordinal(word: str) -> int:
    """The place that `word`, which matched `ORDINAL`, says."""
    digits = re.match(r"\d+", word)
    return int(digits[0]) if digits else vocabulary().ordinals[word.lower().replace(" ", "-")]


def asked_unit(match: re.Match[str]) -> str:
    return vocabulary().asked_units[match["unit"].lower()]


def way(word: str | None) -> int:
    """-1 for words like `last`, 1 for words like `next`, 0 for words like `this`."""
    if not word:
        return 0
    return -1 if compiled(BACK).fullmatch(word) else 1 if compiled(rf"{ON}|upcoming").fullmatch(word) else 0


# Which way the words around a time point.

# Each line break may begin one, so that what follows it is looked at once, however many there are.
_ORDERS = r"(?:^\W*+|[.!?;,:\n][^\S\n]*+|\b<<tense.order_leads>>,?\s++)<<tense.orders>>\b"
# What one has (`habe ich Freitag Termine`, `ai-je`) lies ahead; what one has done is told with a participle, and is over.
_HAS = (
    r"\b(?:habe ich|haben wir)\b(?![^.?!;\n]{0,120}\b(?:\w{0,20}ge\w{1,20}(?:t|en)|\w{2,20}iert"
    r"|(?:be|emp|ent|er|miss|ver|zer|über|unter|wieder)\w{1,20}(?:t|en))\s*(?:[.?!;,\n]|(?:und|oder|als|wie)\b|$))"
    r"|\b(?:ai-je|j['’]ai|avons-nous)\b(?!(?: \w{1,20}){0,2} (?!prévu)(?:\w{0,20}(?:é|ée|és|ées)|\w{2,20}(?:u|us|ue|ues)"
    r"|pris|mis|fait|dit|écrit|fini|dormi|choisi|suivi|ouvert|couvert)\b)"
)
_AHEAD = {
    True: rf"(?<!did )\b<<tense.ahead_asked>>\b|['’]ll\b|{_HAS}|{_ORDERS}",
    False: r"\b<<tense.ahead>>\b|['’](?:ll|d)\b",
}
_BEHIND = {
    True: r"\b(?:<<tense.behind_asked>>|"
    r"(?<!half )(?<!quarter )(?<!\d )(?<!five )(?<!ten )(?<!twenty )(?<!minutes )(?<!mins )past|"
    r"(?!(?:need|feed|seed|speed|indeed|hundred|proceed|succeed|exceed)\b)[a-z]{2,}ed)\b",
    False: r"\b(?:<<tense.behind>>|[a-z]{2,}ed)\b",
}
AROUND_CHARS = 120


@dataclass(frozen=True)
class TenseCues:
    """Where in a text words point ahead, where they point back, and where sentences end; looked for when first needed."""

    text: str
    asked: bool
    """Whether the text is a question or a message."""

    @cached_property
    def ahead(self) -> tuple[tuple[int, int], ...]:
        return tuple(match.span() for match in compiled(_AHEAD[self.asked]).finditer(self.text))

    @cached_property
    def behind(self) -> tuple[tuple[int, int], ...]:
        return tuple(match.span() for match in compiled(_BEHIND[self.asked]).finditer(self.text))

    @cached_property
    def stops(self) -> tuple[int, ...]:
        return tuple(match.start() for match in STOPS.finditer(self.text))

    def tense(self, start: int, end: int, bias: int = 0) -> int:
        """1 or -1 for the time that stands there: by the nearest cue before it in its sentence, else after it, else `bias`."""
        place = bisect_left(self.stops, start)
        low = max(start - AROUND_CHARS, self.stops[place - 1] if place else 0)
        ahead, behind = (_last(cues, low, start) for cues in (self.ahead, self.behind))
        if ahead != behind:
            return 1 if ahead > behind else -1
        place = bisect_left(self.stops, end)
        high = min(end + AROUND_CHARS, self.stops[place] if place < len(self.stops) else end + AROUND_CHARS)
        if _any_between(self.ahead, end, high):
            return 1
        return -1 if _any_between(self.behind, end, high) else bias


def _last(cues: tuple[tuple[int, int], ...], low: int, high: int) -> int:
    """The end of the last cue between the two places, or -1."""
    place = bisect_right(cues, high, key=lambda cue: cue[1])
    return cues[place - 1][1] if place and cues[place - 1][0] >= low else -1


def _any_between(cues: tuple[tuple[int, int], ...], low: int, high: int) -> bool:
    place = bisect_left(cues, low, key=lambda cue: cue[0])
    return place < len(cues) and cues[place][1] <= high
