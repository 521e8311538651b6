"""Pieces of a question that belong together, made one: a day and the hour beside it, a feast and its year, two ends."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from perdure.engine.calendars import Stretch, midnight
from perdure.engine.timegrammar import ASKED_UNIT, COUNT, GAP, ORDINAL, amount, compiled, ordinal
from perdure.engine.timepieces import Asking, Piece
from perdure.engine.timetables import ASKED_UNITS
from perdure.engine.timewindows import lasting

_DAY = timedelta(days=1)
_GAP_CHARS = 24
_GLUE = (
    r"(?:['’]s)?\s*,?\s*(?:(?:at|@|on|um|am|à|a las|a la|in the|in|of|from|around|about|gegen|vers|exactly|"
    r"approximately|im|en|le|el|der|des|de|del|du|"
    r"von|for|the|during|by)\s*(?:the|about|around|el|la)?)?\s*,?\s*"
)
_TO = (
    r"\s*(?:-|–|—|/|\.\.+|to|until|till|untill|['’]?til|up ?to|through(?: to)?|thru|bis(?: zum| zur)?|à|au|al|a|hasta|"
    r"jusqu['’](?:à|au)|(?:but|and) (?:before|until))"
    r"\s*(?:the |dem |den |le |el |las |la )?\s*"
)
_AND = r"\s*,?\s*(?:and|und|et|y)\s+(?:the |dem |den |le |el |las |la )?"
_BETWEEN = r"\b(?:between|zwischen|entre)\s+(?:the\s+|dem\s+|den\s+|der\s+|le\s+|el\s+|las\s+|la\s+)?$"
_FROM = (
    r"\b(?:from|between|von|vom|zwischen|ab|du|de|des|entre|desde|del|later than|after)\s+(?:the\s+|dem\s+|"
    r"den\s+|le\s+|el\s+|las\s+|la\s+)?$"
)
_CLOSEST = rf"(?:the )?(?:{ORDINAL} )?(?:closest|nearest) $"
_SIDE = (
    r"\s*,?\s*(?:(?P<after>after|since|from|later than|nach|ab|après|después de)|before|until|till|['’]?til|"
    r"n(?:o|ot) later than|bis|vor|avant|antes de)\s+"
)
_LASTS = rf"\s+(?:for|lang|pendant|durante) {COUNT}{GAP}{ASKED_UNIT}(?![\w-])"


def joined(text: str, found: list[Piece], asking: Asking) -> list[Piece]:
    """The pieces of `text` after everything that belongs together is one."""
    found = _ranges(text, found, loose=True)
    found = _beside(text, _beside(text, found, loose=False), loose=True)
    found = _cut(text, [_lasting(text, piece) for piece in found])
    return _ranges(text, [_anchored(piece, asking) for piece in found], loose=False)


def _beside(text: str, found: list[Piece], *, loose: bool) -> list[Piece]:
    """Dates first, then hours: `7:30 PM on Fri, Sep 20`."""
    done: list[Piece] = []
    for one in found:
        piece = one
        while done and (both := _merged(text, done[-1], piece, loose=loose)):
            done.pop()
            piece = both
        done.append(piece)
    return done


def _merged(text: str, one: Piece, two: Piece, *, loose: bool) -> Piece | None:
    if two.start - one.end > _GAP_CHARS or not compiled(_GLUE).fullmatch(text, one.end, two.start):
        return None
    if not loose and (one.what.loose or two.what.loose):
        return None
    both = together(one.what, two.what)
    return (
        Piece(one.start, two.end, both, f"{one.says}; {two.says}", one.ranged or two.ranged, one.weak and two.weak)
        if both
        else None
    )


def _cut(text: str, found: list[Piece]) -> list[Piece]:
    """`tomorrow after 5pm`, `Friday before lunch`: what of the day lies on that side of the hour."""
    done: list[Piece] = []
    for piece in found:
        last = done[-1] if done else None
        side = compiled(_SIDE).fullmatch(text, last.end, piece.start) if last and piece.start - last.end <= _GAP_CHARS else None
        if last and side and piece.what.loose and not last.what.loose and last.what.width == _DAY and not last.what.clock:
            at = last.what.low + (piece.what.low - midnight(piece.what.low.date()))
            whole = replace(last.what, clock=True, offset_min=piece.what.offset_min)
            part = replace(whole, low=at) if side["after"] else replace(whole, high=at)
            if part.low < part.high:
                done[-1] = Piece(last.start, piece.end, part, "that side of the hour", ranged=True)
                continue
        done.append(piece)
    return done


def together(one: Stretch, two: Stretch) -> Stretch | None:
    """What two times beside one another mean as one, if they do."""
    if "recurring" in (one.kind, two.kind):
        return None
    if one.loose and two.loose:
        return _hour_in_part(one, two)
    if one.loose or two.loose:
        return _on_day(*((two, one) if one.loose else (one, two)))
    return _dated(one, two) or _dated(two, one)


def _hour_in_part(one: Stretch, two: Stretch) -> Stretch | None:
    """`8 in the evening`, `in the evening at 8`."""
    part, clock = (one, two) if one.grain == "part" else (two, one)
    if part.grain != "part" or clock.grain == "part":
        return None
    step = timedelta(hours=12) if clock.twelve and part.low.hour >= 12 > clock.low.hour else timedelta()
    return replace(clock, low=clock.low + step, high=clock.high + step, twelve=False)


def _half_day(part: Stretch, clock: Stretch) -> timedelta:
    """What is added to the hour in that part of a day: `tonight at 8` is 20:00, `tonight at 12` and `1 am` are the next day."""
    hour = clock.low.hour
    if part.low.hour >= 18 and clock.kind == "point" and (hour == 12 if clock.twelve else hour < 5):
        return timedelta(hours=12 if hour == 12 else 24)
    return timedelta(hours=12 if clock.twelve and part.low.hour >= 12 > hour else 0)


def _on_day(day: Stretch, clock: Stretch) -> Stretch | None:
    if day.width > _DAY or (day.clock and (day.grain != "part" or clock.grain == "part")):
        return None
    after_noon = clock.twelve and clock.grain == "hour" and clock.low.hour <= 5
    step = _half_day(day, clock) if day.clock else timedelta(hours=12 if after_noon else 0)
    base = midnight(day.low.date()) - midnight(clock.low.date()) + step
    make = day.yearly
    yearly = make and (lambda year: _on_day(make(year), clock) or make(year))
    return replace(clock, low=clock.low + base, high=clock.high + base, loose=False, twelve=False, yearly=yearly)


def _dated(one: Stretch, two: Stretch) -> Stretch | None:
    """`thanksgiving next year`, `March in a year`, `Tuesday of last week`, `Monday, Feb 18`, `today in an hour`."""
    if one.weekday and two.width == timedelta(weeks=1):
        day = two.low + timedelta(days=(one.low.weekday() - two.low.weekday()) % 7)
        return replace(one, low=day, high=day + _DAY, weekday=False)
    if one.grain == "dom" and two.low.day == 1 and 28 <= two.width.days <= 31 and not two.clock:
        day = two.low + timedelta(days=one.low.day - 1)
        return replace(one, low=day, high=day + _DAY, grain="") if day < two.high else None
    if one.weekday and two.grain == "week":
        day = two.low + timedelta(days=one.low.weekday() - two.low.weekday())
        return replace(one, low=day, high=day + _DAY, weekday=False)
    if one.weekday and two.width == _DAY and not two.clock and not two.weekday:
        return (
            replace(two, weekday=False)
            if two.low.weekday() == one.low.weekday() or two.yearly is None
            else _right_weekday(one, two)
        )
    if one.weekday and two.width >= timedelta(days=28) and not two.yearly and not two.clock:
        return two  # `the Wednesday two months ago`: which one is not said
    if one.yearly and not two.yearly and two.width >= timedelta(days=20) and not two.clock and two.width > one.width:
        made = (one.in_year(year) for year in range(two.low.year - 1, two.high.year + 1))
        inside = next((found for found in made if found and two.low <= found.low < two.high), None)
        return replace(inside, yearly=None) if inside else None
    if one.width == _DAY and not one.clock and two.clock and not two.loose and one.low <= two.low < one.high:
        return two
    return None


def _right_weekday(weekday: Stretch, day: Stretch) -> Stretch:
    """`Sunday, Feb 18` without a year: the nearest year in which that is so, within reach."""
    years = sorted(range(day.low.year - 5, day.low.year + 6), key=lambda year: abs(year - day.low.year))
    made = (day.in_year(year) for year in years)
    return next((one for one in made if one and one.low.weekday() == weekday.low.weekday()), day)


def _lasting(text: str, piece: Piece) -> Piece:
    match = compiled(_LASTS).match(text, piece.end)
    if match is None or piece.ranged or piece.what.kind == "recurring":
        return piece
    what = lasting(piece.what, ASKED_UNITS[match["unit"].lower()], amount(match["n"]))
    return replace(piece, end=match.end(), what=what, says=f"{piece.says}; that long", ranged=True) if what else piece


def _ranges(text: str, found: list[Piece], *, loose: bool) -> list[Piece]:
    """`from Monday to Friday`, `8am - 1pm` made one stretch: hours first, so that a day beside them holds for both."""
    done: list[Piece] = []
    for piece in found:
        last = done[-1] if done else None
        near = None if loose or last is None else _closest(text, last, piece)
        if near:
            done[-1] = near
            continue
        lead = _range_lead(text, last, piece, loose=loose) if last else None
        both = _between(last.what, piece.what) if last and lead is not None else None
        if last and both and lead is not None:
            done[-1] = Piece(lead, piece.end, both, "from the first to the second", ranged=True, weak=last.weak and piece.weak)
        else:
            done.append(piece)
    return done


def _closest(text: str, one: Piece, two: Piece) -> Piece | None:
    """`the second closest Monday to October 5`."""
    lead = compiled(_CLOSEST).search(text, max(0, one.start - _GAP_CHARS), one.start)
    if lead is None or not compiled(r"\s+to\s+(?:the\s+)?").fullmatch(text, one.end, two.start):
        return None
    if one.what.weekday:
        first = two.what.low + timedelta(days=(one.what.low.weekday() - two.what.low.weekday()) % 7)
        found = [
            replace(one.what, low=day, high=day + _DAY) for week in range(-9, 9) for day in (first + timedelta(weeks=week),)
        ]
    elif one.what.yearly:
        made = (one.what.in_year(two.what.low.year + year) for year in range(-9, 10))
        found = [stretch for stretch in made if stretch]
    else:
        return None
    place = ordinal(lead["ord"]) if lead["ord"] else 1
    if not 0 < place <= len(found):
        return None
    found.sort(key=lambda made: abs(made.low - two.what.low))
    what = replace(found[place - 1], weekday=False, yearly=None)
    return Piece(lead.start(), two.end, what, "the nearest to it", ranged=True)


def _range_lead(text: str, one: Piece, two: Piece, *, loose: bool) -> int | None:
    """Where a range of both begins, if their words make one."""
    if two.start - one.end > _GAP_CHARS or one.ranged or two.ranged or "recurring" in (one.what.kind, two.what.kind):
        return None
    if loose and not (one.what.loose and two.what.loose):
        return None
    low = max(0, one.start - _GAP_CHARS)
    between = compiled(_BETWEEN).search(text, low, one.start)
    if between and compiled(_AND).fullmatch(text, one.end, two.start):
        return between.start()
    if compiled(_AND).fullmatch(text, one.end, two.start) and not one.what.clock and one.what.high == two.what.low:
        return one.start  # days that follow one another: `Saturday and Sunday`
    if compiled(_TO).fullmatch(text, one.end, two.start):
        lead = compiled(_FROM).search(text, low, one.start)
        return lead.start() if lead else one.start
    return None


def _between(one: Stretch, two: Stretch) -> Stretch | None:
    if one.loose and two.elapsed:
        return None  # `5 to 10 minutes ago` is no hour
    low, high = one.low, two.high
    if two.clock and two.grain in ("hour", "minute", "second"):
        high = two.low  # `to 5` ends where five o'clock begins
    if high <= low and one.loose:
        high += timedelta(hours=12) if two.twelve and high + timedelta(hours=12) > low else _DAY
    elif high <= low and two.weekday and low - high < timedelta(weeks=1):
        high += timedelta(weeks=1)
    elif one.yearly and not two.yearly:
        made = [one.in_year(year) for year in (two.low.year, two.low.year - 1)]
        low = next((found.low for found in made if found and found.low < high), low)
    elif two.yearly and (high <= low or (one.yearly and high - low > timedelta(days=366))):
        # Of two dates without a year, the second is the first one after the first.
        made = [two.in_year(year) for year in (low.year, low.year + 1)]
        high = next((found.high for found in made if found and found.high > low), high)
    if high <= low:
        return None
    offset = one.offset_min if one.offset_min is not None else two.offset_min
    loose = one.loose and two.loose
    return Stretch(
        low, high, "span", clock=one.clock, loose=loose, twelve=loose and one.twelve and two.twelve, offset_min=offset
    )


def _anchored(piece: Piece, asking: Asking) -> Piece:
    """A time of day without a day: the last such time, or the next one where the words look ahead."""
    what = piece.what
    if not what.loose:
        return piece
    way = asking.cues.tense(piece.start, piece.end, asking.bias)
    starts = [what.low + timedelta(days=day) for day in (-1, 0, 1)]
    if what.twelve and way > 0:
        starts += [start + timedelta(hours=12) for start in starts]
    return replace(
        piece, what=replace(what, low=(low := _nearest(starts, asking.now, way, what)), high=low + what.width, loose=False)
    )


def _nearest(starts: list[datetime], now: datetime, way: int, what: Stretch) -> datetime:
    if way > 0:
        return min(start for start in starts if start > now or (start + what.width > now and what.grain == "part"))
    return max(start for start in starts if start <= now)
