"""Times that a text names, resolved against the moment it was written and the zone of its writer.

English, with what is common in German, French and Spanish. A rule is a pattern, the words it can start with, and what it
means on a calendar; which of two readings holds (`on Friday`) is told by the tense around it. Ranges are half-open and in
UTC, computed on local calendars, so a day has 23 or 25 hours where the clocks change. What a text leaves open is not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache

from perdure.domain.times.instants import zone_named
from perdure.domain.values import dataclass, replace
from perdure.engine.times.calendar import Moment, Stretch, TimeKind, midnight
from perdure.engine.times.grammar import Rule, TenseCues, compiled
from perdure.engine.times.holidays import said_rules
from perdure.engine.times.rules import RULES
from perdure.engine.times.windows import VAGUE


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
    vague: bool = False
    """Only about then, as in `recently`: it dates nothing."""


@dataclass(frozen=True, slots=True)
class _RangeMatch:
    start: int
    end: int
    what: Stretch


def find_times(text: str, at: datetime, zone: str) -> list[TimeMention]:
    """The times that `text`, written at `at` in `zone`, names: in order, none overlapping another."""
    where = zone_named(zone)
    cues = TenseCues(text, asked=False)
    try:
        local = at.astimezone(where).replace(tzinfo=None)
        found = _ranges(text, _joined(text, list(_matches(cues, local))))
        return [mention for one in found if (mention := _mention(cues, one, local, where)) is not None]
    except OverflowError:
        return []  # written at the edge of the calendar, where the day before or after is not on it


@cache
def _by_first_word() -> dict[str, tuple[Rule, ...]]:
    words: dict[str, list[Rule]] = {}
    for rule in (*VAGUE, *RULES, *said_rules()):
        for word in rule.first_words():
            words.setdefault(word, []).append(rule)
    return {word: tuple(rules) for word, rules in words.items()}


@cache
def _matchers(word: str) -> tuple[tuple[Rule, Callable[..., re.Match[str] | None]], ...]:
    """The rules that can start with a word that some do, with how each is tried; patterns are compiled when first needed."""
    return tuple((rule, rule.pattern.match) for rule in _by_first_word()[word])


_WORD = re.compile(r"[^\W_]+")


# Words that make another time of the one beside them, which no rule here knows: better none than the wrong one.
_TURNED_BEFORE = r"\b(?:first|second|third|fourth|fifth|\d(?:st|nd|rd|th)|black|good|ash|palm|holy)\s+$"
_TURNED_AFTER = (
    r"\s+(?:(?:of|in)\s+(?:an hour|(?:the )?(?:next|last|this)\b|<<months>>\b)|after next|from "
    r"now|(?:GMT|UTC|[ECMP][SD]T|CES?T|BST|IST|JST)\b)"
)


def _matches(cues: TenseCues, now: datetime) -> Iterator[_RangeMatch]:
    """At each word, the longest rule that matches there; nothing inside what was found before."""
    text, index, taken = cues.text, _by_first_word(), 0
    for word in _WORD.finditer(text):
        key = word[0].lower()
        if key not in index:
            if not (key[0].isdecimal() and key[0].isascii()):
                continue
            key = "#"
        if (start := word.start()) < taken:
            continue
        best: _RangeMatch | None = None
        for rule, matches in _matchers(key):
            match = matches(text, start)
            if match and match.end() > start and (best is None or match.end() > best.end):
                what = _resolved(rule, match, now, cues)
                best = _RangeMatch(match.start(), match.end(), what) if what else best
        if best is None:
            continue
        turned = compiled(_TURNED_AFTER).match(text, best.end)
        taken = turned.end() if turned else best.end
        if turned is None and not compiled(_TURNED_BEFORE).search(text, max(0, best.start - 8), best.start):
            yield best


def _resolved(rule: Rule, match: re.Match[str], now: datetime, cues: TenseCues) -> Stretch | None:
    try:
        what = rule.resolve(match, Moment(now, cues.tense(match.start(), match.end())))
        return what if isinstance(what, Stretch) else None
    except (ValueError, OverflowError):
        return None  # a date that no calendar has, such as 31 April or the year 12,000


_JOINT = r"\s*(?:,\s*)?(?:at|@|on|um|à|a las|in the|from|around|,)?\s*"


def _joined(text: str, found: list[_RangeMatch]) -> list[_RangeMatch]:
    """Days and the times of day beside them, made one: `Friday at 3pm`, `9 am every Monday`."""
    joined: list[_RangeMatch] = []
    for one in found:
        last = joined[-1] if joined else None
        if last and one.start - last.end <= 12 and compiled(_JOINT).fullmatch(text, last.end, one.start):
            both = _together(last.what, one.what)
            if both:
                joined[-1] = _RangeMatch(last.start, one.end, both)
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


_LEAD_TAIL = r"\s+(?:the\s+|early\s+|late\s+)?$"
_LEADS: tuple[tuple[str, TimeKind], ...] = (
    (rf"\b<<leads.since>>{_LEAD_TAIL}", "since"),
    (rf"\b(?:<<leads.until>>|(?P<within><<leads.by>>)|(?P<before><<leads.before>>)){_LEAD_TAIL}", "until"),
)
_FROM = r"\b(?:from|between|von|de|entre)\s+(?:the\s+)?$"
_TO = r"\s*(?:to|until|till|and|through|-|–|bis|à|au|al|y)\s*(?:the\s+)?"
_LEAD_CHARS = 24


def _ranges(text: str, found: list[_RangeMatch]) -> Iterator[_RangeMatch]:
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
            yield _RangeMatch(lead.start(), two.end, whole)
            index += 2
            continue
        yield one
        index += 1


def _mention(cues: TenseCues, found: _RangeMatch, now: datetime, where: tzinfo) -> TimeMention | None:
    text, what, start = cues.text, found.what, found.start
    if what.loose:
        what = _anchored(what, now, cues.tense(found.start, found.end))
    low, high, kind = what.low, what.high, what.kind
    if kind in ("point", "span"):
        for source, lead_kind in _LEADS:
            lead = compiled(source).search(text, max(0, start - _LEAD_CHARS), start)
            if lead:
                kind, start = lead_kind, lead.start()
                words = lead.groupdict()
                # Until a month or a year is until it begins; by a month is within it; until a day is with that day.
                excludes = words.get("before") or (what.kind == "span" and not words.get("within"))
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
    return TimeMention(
        start=start,
        end=found.end,
        words=text[start : found.end],
        first=first,
        last=last,
        kind=kind,
        cron=what.cron,
        exact=what.clock,
        vague=what.grain == "vague",
    )


def _anchored(what: Stretch, now: datetime, tense: int) -> Stretch:
    """A time of day without a day: the next such time, or in the past the last one."""
    step = timedelta()
    if tense < 0 and what.low > now:
        step = timedelta(days=-1)
    elif tense >= 0 and what.high <= now:
        step = timedelta(days=1)
    return replace(what, low=what.low + step, high=what.high + step, loose=False)
