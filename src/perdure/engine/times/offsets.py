"""Rules for questions: words that make another time of the one after them.

`the end of`, `the third Tuesday of`, `two days before`, `the week of`. Part of the grammar of `rules`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from functools import partial

from perdure.engine.times.calendar import Moment, Shift, Stretch, calendar_unit, days_from, midnight, month_start, week_of
from perdure.engine.times.grammar import (
    ASKED_UNIT,
    COUNT,
    GAP,
    ORDINAL,
    WEEKDAY,
    WHOLE_UNIT,
    Rule,
    amount,
    ask_rule,
    asked_unit,
    compiled,
    ordinal,
    vocabulary,
)
from perdure.engine.times.windows import SECONDS, lasting, stepped

_FIRST, _MIDDLE, _LAST = "<<edges.first_asked>>", "<<edges.middle_asked>>", "<<edges.last_asked>>"
_EDGE = rf"(?P<edge>{_FIRST}|{_MIDDLE}|{_LAST})"
_DAY_ENDS_AT = 17


def edge_of(whole: Stretch, edge: str) -> Stretch | None:
    """The first, middle or last part of a part of the day, week, month, season or year, as people mean it."""
    third = 0 if compiled(_FIRST).fullmatch(edge) else 1 if compiled(_MIDDLE).fullmatch(edge) else 2
    if whole.grain == "part":
        return _edge_of_part(whole, third)
    length = whole.width.days
    if whole.clock or whole.loose or whole.kind == "recurring" or 1 < length < 5 or 366 < length < 3_000:
        return None
    if length == 1:
        evening = replace(whole, low=whole.low + timedelta(hours=_DAY_ENDS_AT), clock=True, grain="end", yearly=None)
        return evening if third == 2 else None
    low, high = _thirds(whole.low.date(), whole.high.date(), length)[third]
    make = whole.yearly
    yearly = make and (lambda year: edge_of(make(year), edge) or whole)
    return Stretch(midnight(low), midnight(high), "span", yearly=yearly, grain="end" if third == 2 else "")


def _edge_of_part(part: Stretch, third: int) -> Stretch | None:
    """`early morning` is until nine; else the first or the last three hours."""
    if third == 1 or part.width < timedelta(hours=3):
        return None
    if third == 0:
        return replace(part, high=part.low + timedelta(hours=9 if part.low.hour == 0 else 3))
    return replace(part, low=part.high - timedelta(hours=3))


def _thirds(first: date, last: date, length: int) -> tuple[tuple[date, date], ...]:
    if length <= 7:
        third, fifth = first + timedelta(days=3), first + timedelta(days=4)
        return (first, third), (first + timedelta(days=2), first + timedelta(days=5)), (fifth, last)
    if length <= 31:
        return (first, first.replace(day=11)), (first.replace(day=11), first.replace(day=21)), (first.replace(day=21), last)
    if length <= 92:
        return (first, month_start(first, 1)), (month_start(first, 1), month_start(first, 2)), (month_start(first, 2), last)
    if length > 366:
        # Of a decade.
        fourth, seventh = (first.replace(year=first.year + years) for years in (4, 7))
        return (first, fourth), (fourth, seventh), (seventh, last)
    return (first, month_start(first, 3)), (month_start(first, 4), month_start(first, 8)), (month_start(first, 8), last)


def _edge(match: re.Match[str], _: Moment) -> Shift:
    return Shift(lambda whole, __: edge_of(whole, match["edge"]))


def _edge_of_last(match: re.Match[str], moment: Moment) -> Stretch | None:
    return edge_of(calendar_unit(asked_unit(match), moment.today, -1, moment.week_start), match["edge"])


def _short_edge(match: re.Match[str], moment: Moment) -> Stretch | None:
    unit = {"d": "day", "m": "month", "y": "year", "w": "week", "q": "quarter"}[match["short"][-1].lower()]
    edge = "end" if match["short"][0].lower() == "e" else "beginning"
    return edge_of(calendar_unit(unit, moment.today, 0, moment.week_start), edge)


def _day_end(_: re.Match[str], moment: Moment) -> Stretch:
    low = midnight(moment.today) + timedelta(hours=_DAY_ENDS_AT)
    return Stretch(low, midnight(moment.today) + timedelta(days=1), clock=True, loose=True, grain="end")


def _later(match: re.Match[str], _: Moment) -> Shift:
    """`later this week`, `earlier today`: what is left of it, what is over of it."""
    later = match["side"].lower() == "later"

    def cut(whole: Stretch, moment: Moment) -> Stretch | None:
        if not whole.low < moment.now < whole.high or whole.loose:
            return None
        return replace(whole, low=moment.now, clock=True) if later else replace(whole, high=moment.now, clock=True)

    return Shift(cut)


def _pick(match: re.Match[str], _: Moment) -> Shift:
    """`the third Tuesday of`, `the last week of`, `fifth last day of`."""
    groups = match.groupdict()
    place = ordinal(groups["ord"]) if groups["ord"] else 1
    if groups.get("back"):
        place = -place - (1 if compiled(r"penultimate|next.*").fullmatch(groups["back"]) else 0)
    what = (groups.get("wd") or groups.get("unit") or "weekend").lower()
    return Shift(partial(_picked, what=what, place=place))


def _picked(whole: Stretch, moment: Moment, *, what: str, place: int) -> Stretch | None:
    first, last = whole.low.date(), whole.high.date()
    if whole.clock or whole.loose or (last - first).days < 7 or place == 0:
        return None
    known = vocabulary()
    unit = known.asked_units.get(what, "")
    if unit in ("month", "quarter"):
        months = (place - 1 if place > 0 else place) * (1 if unit == "month" else 3)
        return calendar_unit(unit, month_start(first if place > 0 else last, months), 0)
    if unit not in ("day", "week", ""):
        return None
    start = moment.week_start if unit == "week" else known.weekdays.get(what, 5)
    step, size = (1, 1) if unit == "day" else (7, 7 if unit == "week" else 1 if what in known.weekdays else 2)
    one = first if step == 1 else first + timedelta(days=(start - first.weekday()) % 7)
    # Of weeks only those that lie wholly within it are counted.
    count = ((last - one).days - size) // step + 1
    index = place - 1 if place > 0 else count + place
    return days_from(one + timedelta(days=step * index), size) if 0 <= index < count else None


def _several(match: re.Match[str], _: Moment) -> Shift:
    """`the first three days of`, `the last two weeks of`."""
    unit, count, back = asked_unit(match), int(amount(match["n"])), match["side"].lower() == "last"

    def picked(whole: Stretch, __: Moment) -> Stretch | None:
        if whole.clock or whole.loose or unit in ("second", "minute", "hour"):
            return None
        first, last = whole.low.date(), whole.high.date()
        other = stepped(last if back else first, unit, -count if back else count)
        low, high = (other, last) if back else (first, other)
        return Stretch(midnight(low), midnight(high), "span") if first <= low < high <= last else None

    return Shift(picked)


def _day_in(match: re.Match[str], _: Moment) -> Shift:
    """`the 20th of`, a month."""
    day = ordinal(match["ord"])

    def picked(whole: Stretch, __: Moment) -> Stretch | None:
        if not 28 <= whole.width.days <= 31 or whole.low.day != 1 or whole.clock:
            return None
        make = whole.yearly
        yearly = make and (lambda year: days_from(make(year).low.date().replace(day=day)))
        return replace(days_from(whole.low.date().replace(day=day)), yearly=yearly)

    return Shift(picked)


def _beside(match: re.Match[str], _: Moment) -> Shift:
    """`the day before`, `two weeks after`, `the third Tuesday after`, `the weekend before`."""
    groups = match.groupdict()
    sign = -1 if re.match(r"before|prior|vor|avant|antes", match["side"], re.IGNORECASE) else 1
    if groups.get("unit"):
        count = int(amount(groups["n"])) if groups.get("n") else 0
        return Shift(partial(_units_beside, sign=sign, count=count, unit=vocabulary().asked_units[groups["unit"].lower()]))
    weekday = vocabulary().weekdays[groups["wd"].lower()] if groups.get("wd") else 5
    place = ordinal(groups["ord"]) if groups.get("ord") else int(amount(groups["n"])) if groups.get("n") else 1
    return Shift(partial(_weekday_beside, sign=sign, place=place, weekday=weekday, days=1 if groups.get("wd") else 2))


def _weekday_beside(base: Stretch, _: Moment, *, sign: int, place: int, weekday: int, days: int) -> Stretch | None:
    if base.loose:
        return None
    gap = sign * (weekday - base.low.weekday()) % 7 or 7
    if days == 2 and sign < 0 and gap == 1:
        gap = 8  # a Sunday is part of its weekend
    return days_from(base.low.date() + sign * timedelta(days=gap + 7 * (place - 1)), days)


def _units_beside(base: Stretch, moment: Moment, *, sign: int, count: int, unit: str) -> Stretch | None:
    if base.loose and not base.clock:
        return None
    if unit in ("second", "minute", "hour"):
        low = base.low + sign * max(count, 1) * timedelta(seconds=SECONDS[unit])
        return replace(base, low=low, high=low + timedelta(seconds=SECONDS[unit]), grain=unit) if base.clock else None
    if base.loose:
        return None
    if unit == "year" and base.grain == "holiday" and base.yearly:
        # `one year after Christmas` counts from the last one, `one year before` from the next.
        this = base.yearly(moment.today.year)
        over = this.low <= moment.now
        base = this if over == (sign > 0) else base.yearly(moment.today.year - sign)
    if base.width > timedelta(days=1):
        near = base.low.date() if sign < 0 else (base.high - timedelta(days=1)).date()
        return calendar_unit(unit, near, sign * max(count, 1), moment.week_start)
    if not count and unit != "day":
        # `the week after`: that long, beside it.
        other = midnight(stepped(base.low.date() if sign < 0 else base.high.date(), unit, sign))
        return Stretch(other, base.low, "span") if sign < 0 else Stretch(midnight(base.high.date()), other, "span")
    return days_from(stepped(base.low.date(), unit, sign * max(count, 1)))


def _half_of(match: re.Match[str], _: Moment) -> Shift:
    """`the second half of`, a month or a year."""
    first = match["half"].lower() == "first"

    def picked(whole: Stretch, __: Moment) -> Stretch | None:
        if whole.clock or whole.loose or whole.low.day != 1 or whole.width.days < 28:
            return None
        start = whole.low.date()
        middle = midnight(start.replace(day=16) if whole.width.days <= 31 else month_start(start, round(whole.width.days / 61)))
        return Stretch(whole.low, middle, "span") if first else Stretch(middle, whole.high, "span")

    return Shift(picked)


def _week_from(match: re.Match[str], _: Moment) -> Shift:
    """`the week starting`, `the week ending`, a day: seven days."""
    ending = match["side"].lower().startswith("end")

    def picked(day: Stretch, __: Moment) -> Stretch | None:
        if day.loose or day.clock or day.width > timedelta(days=1):
            return None
        return days_from(day.low.date() - timedelta(days=6 if ending else 0), 7)

    return Shift(picked)


def _week_with(_: re.Match[str], __: Moment) -> Shift:
    """`the week of`, a day."""
    return Shift(lambda day, moment: days_from(week_of(day.low.date(), moment.week_start), 7) if not day.loose else None)


def _weekend_with(_: re.Match[str], __: Moment) -> Shift:
    """`the weekend of`, a day: the one that holds it or comes after it."""

    def picked(day: Stretch, __: Moment) -> Stretch | None:
        if day.loose or day.width > timedelta(days=1):
            return None
        saturday = day.low.date() + timedelta(days=-1 if day.low.weekday() == 6 else 5 - day.low.weekday())
        return days_from(saturday, 2)

    return Shift(picked)


def _from_now(_: re.Match[str], __: Moment) -> Shift:
    """`from now until`, a time to come."""

    def reach(end: Stretch, moment: Moment) -> Stretch | None:
        high = end.low if end.clock and end.grain != "part" else end.high
        return Stretch(moment.now, high, "span", clock=True) if high > moment.now and not end.loose else None

    return Shift(reach)


def _lasting(match: re.Match[str], _: Moment) -> Shift:
    """`for 10 days from`, a day or an hour."""
    return Shift(lambda start, __: lasting(start, asked_unit(match), amount(match["n"])))


def _eve(_: re.Match[str], __: Moment) -> Shift:
    """`the eve of`, a day."""

    def picked(day: Stretch, _: Moment) -> Stretch | None:
        return None if day.loose or day.clock else days_from(day.low.date() - timedelta(days=1))

    return Shift(picked)


def _long(_: re.Match[str], ___: Moment) -> Shift:
    """`the month of`, a month."""
    return Shift(lambda whole, __: whole if whole.width.days >= 27 and not whole.clock else None)


def _same(_: re.Match[str], ___: Moment) -> Shift:
    return Shift(lambda whole, __: whole if not whole.loose and whole.kind != "recurring" else None)


_PART = "a part of it, taken widely"
_WITHIN_IT = "counted within it"
_FROM_IT = "counted from it"
_OF = r"(?: of| in| from| im| des| der| de| du| del| d['’])(?: the| el| la| le)?"
_BEFORE_OR_AFTER = r"(?P<side>before|after|prior to|following|from|vor|nach|avant|après|antes del?|después del?)"
_ORDINALS = "# the on in during over im am <<ordinals>>"

RULES: tuple[Rule, ...] = (
    ask_rule(
        f"at the very toward towards around in am a à au im by {_FIRST} {_MIDDLE} {_LAST}",
        rf"(?:(?:at|toward|towards|around|in|am|im|a|à|au) )?(?:the |la |le )?(?:very )?{_EDGE}"
        r"(?:[ -](?:of|in|de|des|der|du|del|d['’]))?(?:[ -](?:the|around|el|la))?",
        _edge,
        _PART,
        tail=r"(?=[ -])",
    ),
    ask_rule(
        "the at end beginning start middle", rf"(?:at )?(?:the )?{_EDGE} of (?:the )?past {WHOLE_UNIT}", _edge_of_last, _PART
    ),
    ask_rule(
        "the at eom eoy eow eoq eod bom boy bow boq", r"(?:at )?(?:the )?(?P<short>EO[MYWQ]|(?-i:BO[MYWQ]))", _short_edge, _PART
    ),
    ask_rule(
        "the at end close eod cob",
        r"(?:at )?(?:the )?(?:end of (?:the )?(?:(?:business )?day|business)|close of (?:business|play)|EOD|(?-i:COB))",
        _day_end,
        _PART,
    ),
    ask_rule("later earlier", r"(?P<side>later|earlier)", _later, "what is left of it, or over"),
    ask_rule("all throughout around", r"(?:all of|all|throughout|around)", _same, "the whole of it", latent=True),
    ask_rule(
        _ORDINALS,
        rf"(?:(?:on|in|during|am|im) )?(?:the )?{ORDINAL} (?P<back>last |to last )?(?:{WEEKDAY}|{ASKED_UNIT}){_OF}",
        _pick,
        _WITHIN_IT,
    ),
    ask_rule(
        "the on in during over last penultimate next letzter letzten letzte der den die le la el dernier dernière "
        "último última",
        r"(?:(?:on|in|during|over) )?(?:the |der |den |die |le |la |el )?"
        r"(?P<ord>)(?P<back>last|penultimate|next[ -]to[ -]last|letzte[nrs]?|derni[eè]re?|últim[oa]) "
        rf"(?:{WEEKDAY}|{ASKED_UNIT}){_OF}",
        _pick,
        _WITHIN_IT,
    ),
    ask_rule(
        f"{_ORDINALS} last",
        rf"(?:(?:on|in|during|over) )?(?:the )?(?:{ORDINAL}|(?P<back>last)) week-?end{_OF}",
        _pick,
        "counted within it: Saturday and Sunday",
    ),
    ask_rule(
        "the in first last",
        rf"(?:in )?(?:the )?(?P<side>first|last) {COUNT} {ASKED_UNIT} (?:of|in)(?: the)?",
        _several,
        _WITHIN_IT,
    ),
    ask_rule(_ORDINALS, rf"(?:on )?(?:the )?{ORDINAL}(?: day)? of(?: the)?", _day_in, "that day of the month"),
    ask_rule("# the on", r"(?:on )?(?:the )?(?P<ord>\d{1,2})(?: day)? of(?: the)?", _day_in, "that day of the month"),
    ask_rule(
        "# the last day week month year hour der tag le la jour el día <<numbers>>",
        rf"(?:the |last |der |le |la |el )?(?:{COUNT} )?{ASKED_UNIT} {_BEFORE_OR_AFTER}",
        _beside,
        _FROM_IT,
    ),
    ask_rule(
        "# the last <<ordinals>> <<weekdays>>",
        rf"(?:the |last )?(?:{ORDINAL} )?{WEEKDAY} (?P<side>before|after)",
        _beside,
        _FROM_IT,
    ),
    ask_rule(
        "the last weekend on over during",
        r"(?:(?:on|over|during) )?(?:the |last )?week-?end (?P<side>before|after|following)",
        _beside,
        _FROM_IT,
    ),
    ask_rule(
        "the in during week", r"(?:(?:in|during) )?(?:the )?(?<!\ba )week of(?: the)?", _week_with, "the week that holds it"
    ),
    ask_rule(
        "the in during week",
        r"(?:(?:in|during) )?(?:the )?week (?P<side>starting|beginning|commencing|ending)(?: on| from)?",
        _week_from,
        "seven days",
    ),
    ask_rule("the month year", r"(?:in )?(?:the )?(?:month|year|quarter) of", _long, "the whole of it"),
    ask_rule("the on eve", r"(?:on )?(?:the )?eve of", _eve, "the day before"),
    ask_rule(
        "the in during first second latter",
        r"(?:(?:in|during) )?(?:the )?(?P<half>first|second|latter) half of(?: the)?",
        _half_of,
        "half of it",
    ),
    ask_rule(
        "# <<numbers>>",
        rf"{COUNT} {WEEKDAY}s? (?P<side>before|after)",
        _beside,
        _FROM_IT,
    ),
    ask_rule("the weekend on", r"(?:on )?(?:the )?week-?end of", _weekend_with, "the weekend that holds it"),
    ask_rule("from between", r"(?:from|between) (?:right )?now (?:and|to|until|till)", _from_now, "from now on"),
    ask_rule(
        "for",
        rf"for {COUNT}{GAP}{ASKED_UNIT},? (?:starting|beginning|from)(?: from| on| at)?",
        _lasting,
        "that long, from then on",
    ),
    ask_rule(
        "# <<numbers>>",
        rf"{COUNT}{GAP}{ASKED_UNIT},? (?:starting|beginning)(?: from| on| at)?",
        _lasting,
        "that long, from then on",
    ),
)
