"""Times found in a question, piece by piece: at each word the longest rule, with the words that turn what follows them.

Joining pieces that belong together is left to `timejoins`, instants and the choice among them to `timeranges`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import chain

from perdure.engine import timeclocks, timedates, timefeasts, timerules, timeseasons, timeturns, timewindows
from perdure.engine.calendars import Moment, Stretch
from perdure.engine.timegrammar import Rule, compiled
from perdure.engine.timetables import MONTHS, SEASONS, WEEKDAYS, any_of
from perdure.engine.timetense import Cues

_WORD = re.compile(r"[^\W_]+")
_INSIDE = re.compile(r"\d[.,]\d")  # a digit behind a point is part of a number
_SPACE = re.compile(r"[\s-]+")
TURNS_MAX = 4
"""`the day after the end of the week before`: deeper is no speech."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text that names a time."""

    start: int
    end: int
    what: Stretch
    says: str
    ranged: bool = False
    """Its words give an end, or both."""
    weak: bool = False
    """It is a time only beside another."""


@dataclass(frozen=True, slots=True)
class Asking:
    """When a question is asked, on the asker's clock; what in it points ahead or back, and which way it looks if nothing does;
    when weeks begin."""

    now: datetime
    cues: Cues
    bias: int = -1
    week_start: int = 0

    def moment(self, start: int, end: int) -> Moment:
        """The moment of asking, as the words around that place see it."""
        cue = self.cues.tense(start, end, 0)
        return Moment(self.now, cue or self.bias, self.week_start, asked=True, cue=cue)


def pieces(text: str, asking: Asking, *, latent: bool) -> list[Piece]:
    """The pieces of `text` in order, none overlapping another; with or without those that are a time only among others."""
    found: list[Piece] = []
    taken = 0
    for word in _WORD.finditer(text):
        if word.start() < taken or (word.start() > 1 and _INSIDE.match(text, word.start() - 2)):
            continue
        piece = _at(text, word.start(), asking, latent=latent)
        if piece:
            found.append(piece)
            taken = piece.end
    return found


def _shared() -> list[Rule]:
    return [rule for rule in timerules.RULES if rule.resolve not in timerules.MESSAGES_ONLY]


@cache
def _index() -> dict[str, tuple[Rule, ...]]:
    words: dict[str, list[Rule]] = {}
    # Of two that match the same words, the one that reads them as a question holds.
    tables = (
        timewindows.RULES,
        timeturns.RULES,
        timedates.RULES,
        timeseasons.RULES,
        timeclocks.RULES,
        timefeasts.rules(),
        _shared(),
    )
    for rule in chain.from_iterable(tables):
        for word in rule.first_words():
            words.setdefault(word, []).append(rule)
    return {word: tuple(rules) for word, rules in words.items()}


def _at(text: str, start: int, asking: Asking, *, latent: bool, depth: int = 0, since: int | None = None) -> Piece | None:
    """The longest piece that begins at `start`; `since` is where the words that turn it begin."""
    word = _WORD.match(text, start)
    if word is None:
        return None
    index, key = _index(), word[0].lower()
    # `Feb13` begins as `Feb` does.
    rules = index.get(key) or index.get(key.rstrip("0123456789"), ())
    if key[0] in "0123456789":
        rules = (*rules, *index["#"])
    best: Piece | None = None
    for rule in rules:
        if rule.latent and not (latent or depth):
            continue
        match = rule.pattern.match(text, start)
        if match is None or match.end() == start:
            continue
        piece = _read(rule, match, asking, depth, start if since is None else since)
        if piece and (best is None or piece.end > best.end):
            best = piece
    return best


def _read(rule: Rule, match: re.Match[str], asking: Asking, depth: int, since: int) -> Piece | None:
    moment = asking.moment(since, match.end())
    try:
        what = rule.resolve(match, moment)
        if isinstance(what, Stretch):
            if _is_name(match) or (depth == 0 and _is_feast_year(match)):
                return None
            return Piece(match.start(), match.end(), what, rule.says, weak=rule.weak)
        if what is None or depth >= TURNS_MAX:
            return None
        inner = _inner(match, asking, depth, since)
        turned = what.apply(inner.what, moment) if inner else None
        return Piece(match.start(), inner.end, turned, rule.says) if inner and turned else None
    except (ValueError, OverflowError):
        return None  # a date that no calendar has


# Names of people, streets and films that are those of a day, a month or a season.

_NAMES = any_of(WEEKDAYS.keys() | MONTHS.keys() | SEASONS.keys() | {"midnight", "noon"})
_HABIT_AFTER = r"(?: (?:mornings|afternoons|evenings|nights)|[ -](?:series|novel|film))\b"
_BARE_NAME = rf"(?:(?:to|of|for|from|through|in) )?{_NAMES}"
_TITLE_BEFORE = r"\b(?:mr|mrs|ms|miss|dr|herr|frau|monsieur|madame|señora?|named|called|name is)\.? $"
# Words that make another day of a weekday, which no rule knows: better none than the wrong one.
_OTHER_DAY_BEFORE = (
    r"\b(?:black|good|ash|palm|holy|fat|clean|bright|great|cyber|super|giving|shrove|ruby|plough|"
    r"mothering|passion|low|mercy|laetare|gaudete|advent|remembrance|forgiveness|thomas|trinity|lazarus|spy|maundy|ides of|"
    r"eve of) $"
)
_LEAD_BEFORE = (
    r"(?:^|\b(?:on|last|next|this|since|until|till|by|before|after|during|past|every|early|late|mid|am|im|"
    r"seit|bis|depuis|desde|hasta|"
    r"le|el|was|did|happened)[ -])$"
)
_YEAR_AFTER = r",? (?:of |in )?(?:19|20)\d\d\b"
_PROPER_AFTER = re.compile(r" (?!I\b)[A-Z][a-z]")
_PLACE_AFTER = (
    r" (?:street|st\b|road|rd\b|lane|avenue|ave\b|square|school|river|park|hill|bridge|court|house|island|beach|club|song)"
)


_FEAST_BEFORE = (
    rf"\b(?:day|eve|festival|feast|jayanti|puja|pooja|purnima|new year|navami|ashtami|"
    rf"{any_of(WEEKDAYS)}),? $"
)
_BARE_YEAR = r"(?:19|20)\d\d"


def _is_feast_year(match: re.Match[str]) -> bool:
    """The year of a feast that no rule knows."""
    if not compiled(_BARE_YEAR).fullmatch(match[0]):
        return False
    return compiled(_FEAST_BEFORE).search(match.string, max(0, match.start() - 16), match.start()) is not None


def _is_name(match: re.Match[str]) -> bool:
    text, words = match.string, match[0]
    follows = compiled(_PLACE_AFTER).match(text, match.end()) or compiled(_HABIT_AFTER).match(text, match.end())
    if follows and compiled(rf"\b{_NAMES}$").search(words):
        return True
    if not compiled(_BARE_NAME).fullmatch(words):
        return False
    if compiled(_YEAR_AFTER).match(text, match.end()) and compiled(rf".*{any_of(WEEKDAYS)}").fullmatch(words):
        return True
    low = max(0, match.start() - 12)
    if compiled(_TITLE_BEFORE).search(text, low, match.start()) or compiled(_OTHER_DAY_BEFORE).search(text, low, match.start()):
        return True
    if not _PROPER_AFTER.match(text, match.end()) or words.lower().startswith("in "):
        return False
    after = _WORD.match(text, match.end() + 1)
    return (after is None or after[0].lower() not in _index()) and not compiled(_LEAD_BEFORE).search(text, low, match.start())


def _inner(match: re.Match[str], asking: Asking, depth: int, since: int) -> Piece | None:
    """The time behind the words that turn it."""
    space = _SPACE.match(match.string, match.end())
    return _at(match.string, space.end() if space else match.end(), asking, latent=True, depth=depth + 1, since=since)
