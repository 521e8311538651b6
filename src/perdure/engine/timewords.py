"""Times that a text names, resolved against the moment it was written and the zone of its writer.

English, with what is common in German, French and Spanish. A rule is a pattern, the words it can start with, and what it
means on a calendar; which of two readings holds (`on Friday`) is told by the tense around it. Ranges are half-open and in
UTC, computed on local calendars, so a day has 23 or 25 hours where the clocks change. What a text leaves open is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache

from perdure.engine.calendars import Moment, Stretch, TimeKind, midnight
from perdure.engine.instants import zone_named
from perdure.engine.timegrammar import STOPS, Rule, compiled
from perdure.engine.timerules import RULES
from perdure.engine.timetables import MONTHS, any_of


@dataclass(frozen=True, slots=True)
class TimeMention:
    """Words of a text that name a time, and the half-open stretch in UTC that they mean."""

    start: int
    end: int
    words: str
    first: datetime
    last: datetime
    kind: TimeKind
    cron: str | None = None
    """For `recurring`, if a cron line in the writer's zone can say it."""
    exact: bool = False
    """A time of day was named."""


@dataclass(frozen=True, slots=True)
class _Found:
    start: int
    end: int
    what: Stretch


def find_times(text: str, at: datetime, zone: str) -> list[TimeMention]:
    """The times that `text`, written at `at` in `zone`, names: in order, none overlapping another."""
    where = zone_named(zone)
    local = at.astimezone(where).replace(tzinfo=None)
    mentions = []
    for found in _ranges(text, _joined(text, list(_found(text, local)))):
        mention = _mention(text, found, local, where)
        if mention is not None:
            mentions.append(mention)
    return mentions


# Words around a time.

_FUTURE = (
    r"\b(?:will|shall|won['’]t|going to|gonna|plan(?:ning|s)? to|need(?:s)? to|ha(?:ve|s) to|must|should|let['’]s|remind|due|"
    r"deadline|tomorrow|next|upcoming|by|until|till|book|schedule|meeting|appointment|starts?|"
    r"launch(?:es|ing)?|leav(?:e|ing)|moving|"
    r"werde\w*|wird|muss|bis|vais|va|dois|voy a|vamos a|tengo que|would)\b|['’](?:ll|d)\b"
)
_PAST = (
    r"\b(?:was|were|did|didn['’]t|had|went|got|came|saw|met|made|took|bought|left|said|told|sent|gave|"
    r"began|started|used to|ago|"
    r"yesterday|since|been|[a-z]{2,}ed|last|war|waren|hatte\w*|habe|bin|seit|étais|était|ai|depuis|fui|fue|estaba|desde)\b"
)
_TENSE_CHARS = 120


def _tense(text: str, start: int, end: int) -> int:
    """Which way the sentence around points: the cue nearest to the time decides."""
    low = max(0, start - _TENSE_CHARS)
    before = STOPS.split(text[low:start])[-1]
    after = STOPS.split(text[end : end + _TENSE_CHARS])[0]
    ahead = [match.end() for match in compiled(_FUTURE).finditer(before)]
    behind = [match.end() for match in compiled(_PAST).finditer(before)]
    if ahead or behind:
        return 1 if max(ahead, default=-1) > max(behind, default=-1) else -1
    if compiled(_FUTURE).search(after):
        return 1
    return -1 if compiled(_PAST).search(after) else 0


@cache
def _by_first_word() -> dict[str, tuple[Rule, ...]]:
    words: dict[str, list[Rule]] = {}
    for rule in RULES:
        for word in rule.first_words():
            words.setdefault(word, []).append(rule)
    return {word: tuple(rules) for word, rules in words.items()}


_WORD = re.compile(r"[^\W_]+")


# Words that make another time of the one beside them, which no rule here knows: better none than the wrong one.
_TURNED_BEFORE = r"\b(?:first|second|third|fourth|fifth|\d(?:st|nd|rd|th)|black|good|ash|palm|holy)\s+$"
_TURNED_AFTER = (
    rf"\s+(?:(?:of|in)\s+(?:an hour|(?:the )?(?:next|last|this)\b|{any_of(MONTHS)}\b)|after next|from "
    r"now|(?:GMT|UTC|[ECMP][SD]T|CES?T|BST|IST|JST)\b)"
)


def _found(text: str, now: datetime) -> Iterator[_Found]:
    """At each word, the longest rule that matches there; nothing inside what was found before."""
    index, taken = _by_first_word(), 0
    for word in _WORD.finditer(text):
        key = word[0].lower()
        rules = index.get(key) or (index["#"] if key[0].isdecimal() and key[0].isascii() else ())
        if not rules or word.start() < taken:
            continue
        best: _Found | None = None
        for rule in rules:
            match = rule.pattern.match(text, word.start())
            if match and match.end() > match.start() and (best is None or match.end() > best.end):
                what = _resolved(rule, match, now, text)
                best = _Found(match.start(), match.end(), what) if what else best
        if best is None:
            continue
        turned = compiled(_TURNED_AFTER).match(text, best.end)
        taken = turned.end() if turned else best.end
        if turned is None and not compiled(_TURNED_BEFORE).search(text, max(0, best.start - 8), best.start):
            yield best


def _resolved(rule: Rule, match: re.Match[str], now: datetime, text: str) -> Stretch | None:
    try:
        what = rule.resolve(match, Moment(now, _tense(text, match.start(), match.end())))
        return what if isinstance(what, Stretch) else None
    except (ValueError, OverflowError):
        return None  # a date that no calendar has, such as 31 April or the year 12,000


_JOINT = r"\s*(?:,\s*)?(?:at|@|on|um|à|a las|in the|from|around|,)?\s*"


def _joined(text: str, found: list[_Found]) -> list[_Found]:
    """Days and the times of day beside them, made one: `Friday at 3pm`, `9 am every Monday`."""
    joined: list[_Found] = []
    for one in found:
        last = joined[-1] if joined else None
        if last and one.start - last.end <= 12 and compiled(_JOINT).fullmatch(text, last.end, one.start):
            both = _together(last.what, one.what)
            if both:
                joined[-1] = _Found(last.start, one.end, both)
                continue
        joined.append(one)
    return joined


def _together(one: Stretch, two: Stretch) -> Stretch | None:
    if one.loose == two.loose:
        return None
    day, clock = (two, one) if one.loose else (one, two)
    hour, minute = clock.low.hour, clock.low.minute
    if day.kind == "recurring":
        return replace(day, cron=day.cron and f"{minute} {hour} {day.cron.split(' ', 2)[2]}", clock=True)
    if day.high - day.low > timedelta(days=1):
        return None
    low = midnight(day.low.date()) + timedelta(hours=hour, minutes=minute)
    if day.clock and day.low.hour >= 12 > hour:
        low += timedelta(hours=12)
    return Stretch(low, low + timedelta(minutes=1), clock=True)


_LEADS: tuple[tuple[str, TimeKind], ...] = (
    (r"(?:ever )?since|seit(?: dem)?|depuis|desde(?: el)?|as of|starting|beginning", "since"),
    (
        r"until|till|bis(?: zum)?|jusqu['’](?:à|au)|hasta(?: el)?|by|before|no later than|due(?: on| by)?|avant|antes del?",
        "until",
    ),
)
_LEAD_SOURCES = tuple((rf"\b(?:{words})\s+(?:the\s+|early\s+|late\s+)?$", kind) for words, kind in _LEADS)
_FROM = r"\b(?:from|between|von|de|entre)\s+(?:the\s+)?$"
_TO = r"\s*(?:to|until|till|and|through|-|–|bis|à|au|al|y)\s*(?:the\s+)?"
_LEAD_CHARS = 24
_EXCLUDING = ("before", "avant", "antes")
_INCLUDING = ("by", "due", "no later")


def _ranges(text: str, found: list[_Found]) -> Iterator[_Found]:
    """`from Monday to Friday` made one stretch."""
    index = 0
    while index < len(found):
        one = found[index]
        lead = compiled(_FROM).search(text, max(0, one.start - _LEAD_CHARS), one.start)
        two = found[index + 1] if index + 1 < len(found) else None
        if (
            two
            and lead
            and two.start - one.end <= _LEAD_CHARS
            and compiled(_TO).fullmatch(text, one.end, two.start)
            and "recurring" not in (one.what.kind, two.what.kind)
        ):
            # Each was resolved by itself; of two weekdays the second comes after the first.
            late = timedelta(weeks=1) if two.what.high <= one.what.low < two.what.high + timedelta(weeks=1) else timedelta()
            whole = replace(one.what, high=max(two.what.high + late, one.what.high), kind="span", loose=False)
            yield _Found(lead.start(), two.end, whole)
            index += 2
            continue
        yield one
        index += 1


def _mention(text: str, found: _Found, now: datetime, where: tzinfo) -> TimeMention | None:
    what, start = found.what, found.start
    if what.loose:
        what = _anchored(what, now, _tense(text, found.start, found.end))
    low, high, kind = what.low, what.high, what.kind
    if kind in ("point", "span"):
        for source, lead_kind in _LEAD_SOURCES:
            lead = compiled(source).search(text, max(0, start - _LEAD_CHARS), start)
            if lead:
                kind, start = lead_kind, lead.start()
                opening = lead[0].lower()
                # Until a month or a year is until it begins; by a month is within it; until a day is with that day.
                excludes = opening.startswith(_EXCLUDING) or (what.kind == "span" and not opening.startswith(_INCLUDING))
                low, high = (low, max(now, high)) if kind == "since" else (min(now, low), low if excludes else high)
                if kind == "since" and what.low > now:
                    low, high = what.low, what.high
                break
    try:
        first, last = (moment.replace(tzinfo=where).astimezone(UTC) for moment in (low, high))
    except (ValueError, OverflowError):
        return None
    if not first < last:
        return None
    return TimeMention(start, found.end, text[start : found.end], first, last, kind, what.cron, what.clock)


def _anchored(what: Stretch, now: datetime, tense: int) -> Stretch:
    """A time of day without a day: the next such time, or in the past the last one."""
    step = timedelta()
    if tense < 0 and what.low > now:
        step = timedelta(days=-1)
    elif tense >= 0 and what.high <= now:
        step = timedelta(days=1)
    return replace(what, low=what.low + step, high=what.high + step, loose=False)
