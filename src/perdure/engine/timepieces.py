"""Times found in a question, piece by piece: at each word the longest rule, with the words that turn what follows them.

Joining pieces that belong together is left to `timejoins`, instants and the choice among them to `timeranges`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache

from perdure.engine import timeclocks, timedates, timefeasts, timerules, timeturns, timewindows
from perdure.engine.calendars import Moment, Stretch
from perdure.engine.timegrammar import STOPS, Rule, compiled
from perdure.engine.timetables import MONTHS, SEASONS, WEEKDAYS, any_of

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


@dataclass(frozen=True, slots=True)
class Asking:
    """When a question is asked, on the asker's clock; which way it looks if it does not say; when weeks begin."""

    now: datetime
    bias: int = -1
    week_start: int = 0

    def moment(self, tense: int) -> Moment:
        return Moment(self.now, tense, self.week_start, asked=True)


def pieces(text: str, asking: Asking, *, latent: bool) -> list[Piece]:
    """The pieces of `text` in order, none overlapping another; with or without those that are a time only among others."""
    found: list[Piece] = []
    taken = 0
    for word in _WORD.finditer(text):
        if word.start() < taken or _INSIDE.match(text, max(0, word.start() - 2)):
            continue
        piece = _at(text, word.start(), asking, latent=latent)
        if piece:
            found.append(piece)
            taken = piece.end
    return found


@cache
def _index() -> dict[str, tuple[Rule, ...]]:
    words: dict[str, list[Rule]] = {}
    # Of two that match the same words, the one that reads them as a question holds.
    for module in (timewindows, timeturns, timedates, timeclocks, timefeasts, timerules):
        for rule in module.RULES:
            for word in rule.starts:
                words.setdefault(word.lower(), []).append(rule)
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
    moment = asking.moment(tense(match.string, since, match.end(), asking.bias))
    try:
        what = rule.resolve(match, moment)
        if isinstance(what, Stretch):
            if _is_name(match):
                return None
            return Piece(match.start(), match.end(), what, rule.says)
        if what is None or depth >= TURNS_MAX:
            return None
        inner = _inner(match, asking, depth, since)
        turned = what.apply(inner.what, moment) if inner else None
        return Piece(match.start(), inner.end, turned, rule.says) if inner and turned else None
    except (ValueError, OverflowError):
        return None  # a date that no calendar has


# Names of people, streets and films that are those of a day, a month or a season.

_BARE_NAME = rf"(?:(?:to|of|for|from|through|in) )?{any_of(WEEKDAYS.keys() | MONTHS.keys() | SEASONS.keys())}"
_TITLE_BEFORE = r"\b(?:mr|mrs|ms|miss|dr|herr|frau|monsieur|madame|señora?|named|called|name is)\.? $"
_LEAD_BEFORE = (
    r"(?:^|\b(?:on|last|next|this|since|until|till|by|before|after|during|past|every|early|late|mid|am|im|"
    r"seit|bis|depuis|desde|hasta|"
    r"le|el|was|did|happened)[ -])$"
)
_PROPER_AFTER = re.compile(r" (?!I\b)[A-Z][a-z]")
_PLACE_AFTER = (
    r" (?:street|st\b|road|rd\b|lane|avenue|ave\b|square|school|river|park|hill|bridge|court|house|island|beach|club|song)"
)


def _is_name(match: re.Match[str]) -> bool:
    text, words = match.string, match[0]
    if not compiled(_BARE_NAME).fullmatch(words):
        return False
    low = max(0, match.start() - 12)
    if compiled(_TITLE_BEFORE).search(text, low, match.start()) or compiled(_PLACE_AFTER).match(text, match.end()):
        return True
    if not _PROPER_AFTER.match(text, match.end()) or words.lower().startswith("in "):
        return False
    after = _WORD.match(text, match.end() + 1)
    return (after is None or after[0].lower() not in _index()) and not compiled(_LEAD_BEFORE).search(text, low, match.start())


def _inner(match: re.Match[str], asking: Asking, depth: int, since: int) -> Piece | None:
    """The time behind the words that turn it."""
    space = _SPACE.match(match.string, match.end())
    return _at(match.string, space.end() if space else match.end(), asking, latent=True, depth=depth + 1, since=since)


# Which way a question looks.

_AHEAD = (
    r"\b(?:will|shall|won['’]t|going to|gonna|plan(?:ning|ned|s)? (?:to|for)|let['’]s|remind|schedule[ds]?|"
    r"upcoming|tomorrow|next|"
    r"do (?:i|we) have|have (?:i|we) got|what['’]s on|deadline|due|by|"
    r"werde\w*|wird|wirst|nächste\w*|steht|morgen|vais|vas|va|vont|allons|allez|prochaine?s?|voy a|vas a|"
    r"va a|vamos a|van a|próxim\w+|"
    r"habe ich (?:einen?|einem) (?:termin|besprechung|treffen|prüfung|verabredung)|tengo que|dois)\b|['’]ll\b"
)
_BEHIND = (
    r"\b(?:was|were|did|didn['’]t|had|went|got|came|saw|met|made|took|bought|left|said|told|sent|gave|"
    r"began|started|used to|ago|"
    r"yesterday|since|been|last|past|[a-z]{2,}ed|war|waren|hatte\w*|gestern|letzte\w*|seit|étais|était|"
    r"depuis|hier|fui|fue|estaba|desde|ayer)\b"
)
_AROUND_CHARS = 120


def tense(text: str, start: int, end: int, bias: int) -> int:
    """Which way the sentence around a time points: the nearest cue before it, else one after it, else `bias`."""
    before = STOPS.split(text[max(0, start - _AROUND_CHARS) : start])[-1]
    after = STOPS.split(text[end : end + _AROUND_CHARS])[0]
    ahead = max((match.end() for match in compiled(_AHEAD).finditer(before)), default=-1)
    behind = max((match.end() for match in compiled(_BEHIND).finditer(before)), default=-1)
    if ahead != behind:
        return 1 if ahead > behind else -1
    if compiled(_AHEAD).search(after):
        return 1
    return -1 if compiled(_BEHIND).search(after) else bias
