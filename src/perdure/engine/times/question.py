"""The time that a goal or a question is about: one range, or nothing.

One grammar with `mentions`, which reads messages; here the words are those of somebody who asks, so they are read widely and,
where the text leaves it open, as the past; what somebody is told or wants to do (`plan my run for Sunday`) lies ahead. There is
no gate of keywords: what no rule reads gives nothing. How words are read:

| words | range |
|---|---|
| `last 24 hours`, `past 2 days`, `past week`, `in the last month` | a window that ends now; up to weeks in real time |
| `next 3 days` | a window that begins now |
| `last week`, `this month`, `next year`, `the week before last` | the whole calendar unit |
| `2 days ago`, `two years ago` | the whole day, week, month or year; an hour or minute from that moment on |
| `in 3 weeks`, `in 2 months` | as above, but a day for weeks |
| `recently`, `lately`, `these days` | the last four weeks, up to now |
| `the other day`; `earlier today` | the seven days before today; today up to now |
| `a while ago`, `some time ago` | from three months ago to two weeks ago |
| `a few weeks back`, `a couple of days ago` | from six to two whole weeks ago; from three to two days ago |
| `in recent weeks`, `the last months` | six of them, up to now |
| `yesterday`, `on Friday`, `on the 5th`, `March 3` | the whole day: the last one, or the next if the words look ahead |
| `since Monday`, `from Monday on`, `after 2 pm` | open end; `after` a day, month or year starts at its end |
| `kudos from yesterday` | as without `from`; `from tomorrow` has an open end |
| `until March`, `before 2020` | open beginning; `until` a day includes it, `until` anything longer ends at its start |
| `as of September 2023` | open beginning, to the end of it; in the future, as `since` |
| `by Friday` | from now to the end of it; open beginning if it is past |
| `between A and B`, `from A to B` | from the start of A to the end of B; an hour ends at its start |
| `3pm`, `3:15` | the whole hour or minute; without a day the last one |
| morning, afternoon, evening or night, lunch | 0 to 12, 12 to 19, 18 to 24, 12 to 14 |
| weekend; spring, summer, autumn, winter | Saturday and Sunday; three whole months from March, June, September, December |
| early, mid, late (or end of) a month | days 1 to 10, 11 to 20, 21 on |
| early, mid, late (or end of) a year; a week | January to March, May to August, September on; days 1 to 3, 3 to 5, 5 on |
| `24 hours` alone | as `last 24 hours` |
| `Tuesday week`, `a week ago today`, `week 46 of 2024` | that day; that calendar week |
| `an hour after noon`, `the night before Christmas`, `the eve of` | counted from it; of the day before |
| `Easter 2024`, `last Thanksgiving` | that holiday, if it depends on date, weekday or Easter |
| `03/12/2024` | nothing, unless another date shows which number is the month |
| `every Monday`, `for two hours` | nothing: not one range |

Of several times, one with an end of its own (`since`, `from … to …`) is taken, else the first: a question says when before it
goes into details; a vague one (`recently`) only if there is no other. Ranges are half-open and in UTC; days are those of the
asker's zone, 23 or 25 hours long where clocks change.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief, utf8_size
from perdure.domain.times.instants import check_instant, zone_named
from perdure.domain.values import dataclass, replace
from perdure.engine.times.grammar import ASKED_UNIT, COUNT, TenseCues, amount, asked_unit, compiled
from perdure.engine.times.pieces import QuestionMoment, TimePiece, joined, pieces
from perdure.engine.times.windows import window

Weekday = Literal["monday", "sunday"]
Bias = Literal["past", "future"]
TEXT_CHARS_MAX = 8_000
"""Of a pasted document, the beginning is the question."""
TERSE_CHARS_MAX = 80
"""A text that is nothing but a time may leave out more than a sentence; longer ones are sentences."""
_EVER, _NEVER = datetime(1, 1, 1), datetime(9999, 12, 31)  # noqa: DTZ001 local clock time, as everywhere before the zone
_WEEK_STARTS: dict[str, int] = {"monday": 0, "sunday": 6}


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A time range in UTC; `end` is excluded, and `None` is an open end."""

    start: datetime | None
    end: datetime | None
    words: str
    at: tuple[int, int]
    """Where in the text the words stand."""
    explanation: str
    """How the words were read, for people."""

    def bounds(self, now: datetime, *, earliest: datetime) -> tuple[datetime, datetime]:
        """Both ends, the open ones at `earliest` and `now`; of a range that is still to come, the open end is its start."""
        start = earliest if self.start is None else self.start
        return start, max(start, now) if self.end is None else self.end


def extract_time_range(
    text: str, now: datetime, zone: str | tzinfo = "UTC", *, week_start: Weekday = "monday"
) -> TimeRange | None:
    """The time range that `text` names, read at `now` in `zone`; `None` if it names none.

    Deterministic. `now` must be aware. `InvalidInput` for a time without a zone, an unknown zone or start of the week.
    """
    return read_time_range(text, now, zone, week_start=week_start, bias="past")


def read_time_range(text: str, now: datetime, zone: str | tzinfo, *, week_start: Weekday, bias: Bias) -> TimeRange | None:
    """As `extract_time_range`, with the reading of what is left open: an assistant that schedules takes the future."""
    now = check_instant(now, "now")
    utf8_size(text, "`text`")
    if not isinstance(zone, str | tzinfo):
        raise InvalidInput(f"`zone` = {brief(zone)} must be the name of a time zone, such as Europe/Berlin, or a `tzinfo`")
    if not isinstance(week_start, str) or week_start not in _WEEK_STARTS:
        raise InvalidInput(f"`week_start` = {brief(week_start)} is no day on which weeks begin here; use monday or sunday")
    where = zone_named(zone) if isinstance(zone, str) else zone
    try:
        local = now.astimezone(where).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"`now` = {now.isoformat()} is no time in `zone` = {brief(zone)}; use another time or zone"
        ) from None
    text = text[:TEXT_CHARS_MAX]
    asking = QuestionMoment(local, TenseCues(text, asked=True), 1 if bias == "future" else -1, _WEEK_STARTS[week_start])
    try:
        ranges = (_range(text, piece, now, where) for piece in _candidates(text, asking))
        return next((found for found in ranges if found), None)
    except (ValueError, OverflowError):
        return None  # asked at the edge of the calendar, where the day before or after is not on it


def _candidates(text: str, asking: QuestionMoment) -> list[TimePiece]:
    """What the text may be about, the best first."""
    if len(text) <= TERSE_CHARS_MAX:
        terse = _terse(text, asking)
        if terse:
            return [terse]
    found = [
        piece
        for piece in joined(text, pieces(text, asking, latent=False), asking)
        if piece.what.kind != "recurring" and not piece.weak
    ]
    found = [_open_ended(text, piece, asking) for piece in found]
    return sorted(found, key=lambda piece: (not piece.ranged, piece.what.grain == "vague"))


_FILL = (
    r"[\s.,;:!?()\"'“”…]*(?:(?:on|at|the|for|around|about|approximately|exactly|any ?time|some ?times?|"
    r"during|@|de|le|el|am|im|um)\s+)*"
)
_END = r"[\s.,;:!?()\"'“”…]*(?:approximately|ish|sharp|exactly)?[\s.,;:!?()]*"
_BARE = rf"\s*{COUNT} {ASKED_UNIT}\s*[.?!]?\s*"


def _terse(text: str, asking: QuestionMoment) -> TimePiece | None:
    """The time that is all of the text, if one is."""
    bare = compiled(_BARE).fullmatch(text)
    if bare and len(bare["n"]) < 4:
        what = window(asking.moment(0, len(text)), asked_unit(bare), amount(bare["n"]), -1)
        words = bare[0]
        start = len(words) - len(words.lstrip())
        return TimePiece(start, len(words.rstrip(" .?!\n")), what, "a window of real time up to now") if what else None
    found = joined(text, pieces(text, asking, latent=True), asking)
    if len(found) != 1 or found[0].what.kind == "recurring":
        return None
    piece = _open_ended(text, found[0], asking)
    whole = compiled(_FILL).fullmatch(text, 0, piece.start) and compiled(_END).fullmatch(text, piece.end)
    return piece if whole else None


# Words before a time that open one of its ends.

_LEADS = ("since", "from", "as_of", "by", "after", "until", "before")
_LEAD_TAIL = r"(?:(?<=['’])|\s+)(?:the\s+|el\s+|la\s+|le\s+|dem\s+|den\s+|on\s+)?$"
_LEAD_CHARS = 32
_OPEN_AFTER = r"\s+(?:onwards?|forward|and later|or later|and after|und später|or after)"
_FROM_ON = r"\b(?:from|von|vom)\s+(?:the\s+|dem\s+)?$"
_ON = r"\s+(?:on|an)(?![\w-])"
_AT_LATEST = r"\s+at the (?:very )?latest"
_OPEN_BEFORE = r"\s+(?:and earlier|or earlier|and before|or before|und früher)"


def _open_ended(text: str, piece: TimePiece, asking: QuestionMoment) -> TimePiece:
    """`since Monday`, `before 2020`: the piece with the words that open an end, and the end opened."""
    if piece.ranged or piece.what.kind not in ("point", "span"):
        return replace(piece, ranged=piece.ranged or piece.what.kind == "since")
    low = max(0, piece.start - _LEAD_CHARS)
    start, on = compiled(_FROM_ON).search(text, low, piece.start), compiled(_ON).match(text, piece.end)
    if start and on:
        return _opened(replace(piece, start=start.start(), end=on.end()), "since", asking)
    for source, lead in ((_OPEN_AFTER, "since"), (_OPEN_BEFORE, "until"), (_AT_LATEST, "by")):
        behind = compiled(source).match(text, piece.end)
        if behind:
            return _opened(replace(piece, end=behind.end()), lead, asking)
    for lead in _LEADS:
        match = compiled(rf"\b<<leads.{lead}_asked>>{_LEAD_TAIL}").search(text, low, piece.start)
        if match:
            opened = _opened(replace(piece, start=match.start()), lead, asking)
            return opened if opened.ranged else piece
    return piece


def _opened(piece: TimePiece, lead: str, asking: QuestionMoment) -> TimePiece:
    what = piece.what
    if lead == "from":
        # `kudos from yesterday` are those of that day; only what is to come goes on from there.
        return _opened(piece, "since", asking) if what.low >= asking.now else piece
    if lead == "as_of":
        # What holds as of a day that is over was said up to then.
        lead = "since" if what.low >= asking.now else "through"
    if lead in ("since", "after"):
        low = what.high if lead == "after" and not what.clock else what.low
        opened = replace(what, low=low, high=_NEVER, kind="since", elapsed=None)
    elif lead == "by" and what.high > asking.now:
        opened = replace(
            what, low=asking.now, high=what.low if what.clock and what.grain != "end" else what.high, kind="span", elapsed=None
        )
        if opened.high <= opened.low:
            return piece
    else:
        # Until the end of something is until it is over; until a day is with that day.
        excludes = (
            what.grain != "end" and lead != "through" and (lead == "before" or what.clock or what.width > timedelta(days=1))
        )
        opened = replace(what, low=_EVER, high=what.low if excludes else what.high, kind="until", elapsed=None)
    says = {"since": "from its beginning on", "after": "when it is over", "by": "from now to its end"}.get(lead, "up to it")
    return replace(piece, what=opened, says=f"{piece.says}; {says}", ranged=True)


def _range(text: str, piece: TimePiece, now: datetime, where: tzinfo) -> TimeRange | None:
    what = piece.what
    zone = where if what.offset_min is None else timezone(timedelta(minutes=what.offset_min))
    try:
        if what.elapsed:
            start, end = now + what.elapsed[0], now + what.elapsed[1]
            ends: tuple[datetime | None, datetime | None] = (start, None if what.kind == "since" else end)
        else:
            ends = (
                None if what.low == _EVER else _instant(what.low, zone),
                None if what.high == _NEVER or what.kind == "since" else _instant(what.high, zone),
            )
    except (ValueError, OverflowError):
        return None
    if ends[0] and ends[1] and ends[0] >= ends[1]:
        # The clocks were put forward over all of it.
        ends = (ends[0], ends[0] + what.width) if what.width > timedelta() else (None, None)
    if ends == (None, None):
        return None
    at = (piece.start, piece.end)
    return TimeRange(*ends, text[piece.start : piece.end], at, _explained(text[slice(*at)], piece.says, ends, where))


def _instant(local: datetime, zone: tzinfo) -> datetime:
    return local.replace(tzinfo=zone).astimezone(UTC)


def _explained(words: str, says: str, ends: tuple[datetime | None, datetime | None], where: tzinfo) -> str:
    first, last = (end and end.astimezone(where).strftime("%Y-%m-%d %H:%M") for end in ends)
    read = "; ".join(part for part in says.split("; ") if part) or "a time"
    reach = f"from {first}" if first else "everything"
    return f"`{words}`: {read}; {reach}{f' up to {last}' if last else ' on'} ({where})"
