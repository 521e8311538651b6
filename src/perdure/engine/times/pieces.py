"""Times found in a question, piece by piece: at each word the longest rule, with the words that turn what follows them.

Pieces that belong together are made one: a day and the hour beside it, a holiday and its year, two ends. Instants and the
choice among pieces are left to `question`.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache
from itertools import chain

from perdure.domain.values import dataclass, replace
from perdure.engine.times import clock, dates, holidays, offsets, rules, windows
from perdure.engine.times.calendar import Moment, Stretch, midnight
from perdure.engine.times.grammar import ASKED_UNIT, COUNT, GAP, ORDINAL, Rule, TenseCues, amount, asked_unit, compiled, ordinal
from perdure.engine.times.windows import lasting

_WORD = re.compile(r"[^\W_]+")
_INSIDE = re.compile(r"\d[.,]\d")  # a digit behind a point is part of a number
_SPACE = re.compile(r"[\s-]+")
TURNS_MAX = 4
"""`the day after the end of the week before`: deeper is no speech."""


@dataclass(frozen=True, slots=True)
class TimePiece:
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
class QuestionMoment:
    """When a question is asked, on the asker's clock; what in it points ahead or back, and which way it looks if nothing does;
    when weeks begin."""

    now: datetime
    cues: TenseCues
    bias: int = -1
    week_start: int = 0

    def moment(self, start: int, end: int) -> Moment:
        """The moment of asking, as the words around that place see it."""
        cue = self.cues.tense(start, end, 0)
        return Moment(self.now, cue or self.bias, self.week_start, asked=True, cue=cue)


def pieces(text: str, asking: QuestionMoment, *, latent: bool) -> list[TimePiece]:
    """The pieces of `text` in order, none overlapping another; with or without those that are a time only among others."""
    found: list[TimePiece] = []
    taken = 0
    for word in _WORD.finditer(text):
        if word.start() < taken or (word.start() > 1 and _INSIDE.match(text, word.start() - 2)):
            continue
        piece = _piece_at(text, word.start(), asking, latent=latent)
        if piece:
            found.append(piece)
            taken = piece.end
    return found


def _shared() -> list[Rule]:
    return [rule for rule in rules.RULES if rule.resolve not in rules.MESSAGES_ONLY]


@cache
def _index() -> dict[str, tuple[Rule, ...]]:
    words: dict[str, list[Rule]] = {}
    # Of two that match the same words, the one that reads them as a question holds.
    tables = (
        windows.RULES,
        offsets.RULES,
        dates.RULES,
        clock.RULES,
        holidays.rules(),
        _shared(),
    )
    for rule in chain.from_iterable(tables):
        for word in rule.first_words():
            words.setdefault(word, []).append(rule)
    return {word: tuple(rules) for word, rules in words.items()}


def _piece_at(
    text: str, start: int, asking: QuestionMoment, *, latent: bool, depth: int = 0, since: int | None = None
) -> TimePiece | None:
    """The longest piece that begins at `start`; `since` is where the words that turn it begin."""
    word = _WORD.match(text, start)
    if word is None:
        return None
    index, key = _index(), word[0].lower()
    # `Feb13` begins as `Feb` does.
    rules = index.get(key) or index.get(key.rstrip("0123456789"), ())
    if key[0] in "0123456789":
        rules = (*rules, *index["#"])
    best: TimePiece | None = None
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


def _read(rule: Rule, match: re.Match[str], asking: QuestionMoment, depth: int, since: int) -> TimePiece | None:
    moment = asking.moment(since, match.end())
    try:
        what = rule.resolve(match, moment)
        if isinstance(what, Stretch):
            if _is_name(match) or (depth == 0 and _is_holiday_year(match)):
                return None
            return TimePiece(match.start(), match.end(), what, rule.says, weak=rule.weak)
        if what is None or depth >= TURNS_MAX:
            return None
        inner = _inner(match, asking, depth, since)
        turned = what.apply(inner.what, moment) if inner else None
        return TimePiece(match.start(), inner.end, turned, rule.says) if inner and turned else None
    except (ValueError, OverflowError):
        return None  # a date that no calendar has


# Names of people, streets and films that are those of a day, a month or a season.

_NAMES = "(?:<<weekdays>>|<<months>>|<<seasons>>|midnight|noon)"
_HABIT_AFTER = r"(?: (?:mornings|afternoons|evenings|nights)| (?:of|in) advent|[ -](?:series|novel|film))\b"
_BARE_NAME = rf"(?:(?:to|of|for|from|through|in) )?{_NAMES}"
_TITLE_BEFORE = r"\b<<names.titles>>\.? $"
# Words that make another day of a weekday, which no rule knows: better none than the wrong one.
_OTHER_DAY_BEFORE = r"\b<<names.other_days>> $"
_LEAD_BEFORE = r"(?:^|\b<<names.leads>>[ -])$"
_YEAR_AFTER = r",? (?:of |in )?(?:19|20)\d\d\b"
_PROPER_AFTER = re.compile(r" (?!I\b)[A-Z][a-z]")
_PLACE_AFTER = r" <<names.places>>\b"


_HOLIDAY_BEFORE = r"\b(?:<<names.holidays>>|<<weekdays>>),? $"
_BARE_YEAR = r"(?:19|20)\d\d"


def _is_holiday_year(match: re.Match[str]) -> bool:
    """The year of a holiday that no rule knows."""
    if not compiled(_BARE_YEAR).fullmatch(match[0]):
        return False
    return compiled(_HOLIDAY_BEFORE).search(match.string, max(0, match.start() - 16), match.start()) is not None


def _is_name(match: re.Match[str]) -> bool:
    text, words = match.string, match[0]
    follows = compiled(_PLACE_AFTER).match(text, match.end()) or compiled(_HABIT_AFTER).match(text, match.end())
    if follows and compiled(rf"\b{_NAMES}$").search(words):
        return True
    if not compiled(_BARE_NAME).fullmatch(words):
        return False
    if compiled(_YEAR_AFTER).match(text, match.end()) and compiled(r".*<<weekdays>>").fullmatch(words):
        return True
    low = max(0, match.start() - 12)
    if compiled(_TITLE_BEFORE).search(text, low, match.start()) or compiled(_OTHER_DAY_BEFORE).search(text, low, match.start()):
        return True
    if not _PROPER_AFTER.match(text, match.end()) or words.lower().startswith("in "):
        return False
    after = _WORD.match(text, match.end() + 1)
    return (after is None or after[0].lower() not in _index()) and not compiled(_LEAD_BEFORE).search(text, low, match.start())


def _inner(match: re.Match[str], asking: QuestionMoment, depth: int, since: int) -> TimePiece | None:
    """The time behind the words that turn it."""
    space = _SPACE.match(match.string, match.end())
    return _piece_at(match.string, space.end() if space else match.end(), asking, latent=True, depth=depth + 1, since=since)


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


def joined(text: str, found: list[TimePiece], asking: QuestionMoment) -> list[TimePiece]:
    """The pieces of `text` after everything that belongs together is one."""
    found = _ranges(text, found, loose=True)
    found = _beside(text, _beside(text, found, loose=False), loose=True)
    found = _cut(text, [_lasting(text, piece) for piece in found])
    return _ranges(text, [_anchored(piece, asking) for piece in found], loose=False)


def _beside(text: str, found: list[TimePiece], *, loose: bool) -> list[TimePiece]:
    """Dates first, then hours: `7:30 PM on Fri, Sep 20`."""
    done: list[TimePiece] = []
    for one in found:
        piece = one
        while done and (both := _merged(text, done[-1], piece, loose=loose)):
            done.pop()
            piece = both
        done.append(piece)
    return done


def _merged(text: str, one: TimePiece, two: TimePiece, *, loose: bool) -> TimePiece | None:
    if two.start - one.end > _GAP_CHARS or not compiled(_GLUE).fullmatch(text, one.end, two.start):
        return None
    if not loose and (one.what.loose or two.what.loose):
        return None
    both = together(one.what, two.what)
    return (
        TimePiece(
            start=one.start,
            end=two.end,
            what=both,
            says=f"{one.says}; {two.says}",
            ranged=one.ranged or two.ranged,
            weak=one.weak and two.weak,
        )
        if both
        else None
    )


def _cut(text: str, found: list[TimePiece]) -> list[TimePiece]:
    """`tomorrow after 5pm`, `Friday before lunch`: what of the day lies on that side of the hour."""
    done: list[TimePiece] = []
    for piece in found:
        last = done[-1] if done else None
        side = compiled(_SIDE).fullmatch(text, last.end, piece.start) if last and piece.start - last.end <= _GAP_CHARS else None
        if last and side and piece.what.loose and not last.what.loose and last.what.width == _DAY and not last.what.clock:
            at = last.what.low + (piece.what.low - midnight(piece.what.low.date()))
            whole = replace(last.what, clock=True, offset_min=piece.what.offset_min)
            part = replace(whole, low=at) if side["after"] else replace(whole, high=at)
            if part.low < part.high:
                done[-1] = TimePiece(last.start, piece.end, part, "that side of the hour", ranged=True)
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


def _lasting(text: str, piece: TimePiece) -> TimePiece:
    match = compiled(_LASTS).match(text, piece.end)
    if match is None or piece.ranged or piece.what.kind == "recurring":
        return piece
    what = lasting(piece.what, asked_unit(match), amount(match["n"]))
    return replace(piece, end=match.end(), what=what, says=f"{piece.says}; that long", ranged=True) if what else piece


def _ranges(text: str, found: list[TimePiece], *, loose: bool) -> list[TimePiece]:
    """`from Monday to Friday`, `8am - 1pm` made one stretch: hours first, so that a day beside them holds for both."""
    done: list[TimePiece] = []
    for piece in found:
        last = done[-1] if done else None
        near = None if loose or last is None else _closest(text, last, piece)
        if near:
            done[-1] = near
            continue
        lead = _range_lead(text, last, piece, loose=loose) if last else None
        both = _between(last.what, piece.what) if last and lead is not None else None
        if last and both and lead is not None:
            done[-1] = TimePiece(
                lead, piece.end, both, "from the first to the second", ranged=True, weak=last.weak and piece.weak
            )
        else:
            done.append(piece)
    return done


def _closest(text: str, one: TimePiece, two: TimePiece) -> TimePiece | None:
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
    return TimePiece(lead.start(), two.end, what, "the nearest to it", ranged=True)


def _range_lead(text: str, one: TimePiece, two: TimePiece, *, loose: bool) -> int | None:
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


def _anchored(piece: TimePiece, asking: QuestionMoment) -> TimePiece:
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
