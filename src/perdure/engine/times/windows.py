"""Rules for questions: windows up to now or from now on, units counted from now, and units of the calendar near now.

Stretches that are counted in seconds to weeks (`last 2 days`) are real time and end or begin now; a unit of the calendar
(`last week`) is the whole of it. Part of the grammar of `rules`; messages are read without these.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial

from perdure.engine.times.calendar import (
    Moment,
    Stretch,
    calendar_unit,
    days_from,
    midnight,
    month_start,
    real_time,
    same_day,
    shifted,
    week_of,
)
from perdure.engine.times.grammar import (
    ASKED_UNIT,
    BACK,
    COUNT,
    GAP,
    ON,
    THIS,
    WEEKDAY,
    WHOLE_UNIT,
    Rule,
    amount,
    ask_rule,
    asked_unit,
    compiled,
    loosely,
    rule,
    vocabulary,
    way,
)

SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400, "week": 604_800, "fortnight": 1_209_600}


def stepped(day: date, unit: str, count: int) -> date:
    """The day some units away."""
    if unit in ("day", "week", "fortnight"):
        return day + timedelta(days=count * SECONDS[unit] // 86_400)
    return same_day(day, count * {"month": 1, "quarter": 3, "year": 12}[unit])


def window(moment: Moment, unit: str, count: float, sign: int) -> Stretch | None:
    """The last or the next so many units, to or from now."""
    if unit in SECONDS:
        width = timedelta(seconds=count * SECONDS[unit])
        return real_time(moment.now, *((-width, timedelta()) if sign < 0 else (timedelta(), width))) if width else None
    if count != int(count) or not count:
        return None
    other = shifted(moment.now, unit, sign * int(count))
    return Stretch(min(other, moment.now), max(other, moment.now), "span", clock=True)


def lasting(start: Stretch, unit: str, count: float) -> Stretch | None:
    """The stretch of that length that begins with `start`."""
    if unit in ("second", "minute", "hour"):
        return (
            replace(start, high=start.low + timedelta(seconds=count * SECONDS[unit]), kind="span")
            if start.clock and count
            else None
        )
    if start.clock or count != int(count) or not count:
        return None
    return replace(start, high=midnight(stepped(start.low.date(), unit, int(count))), kind="span")


def _window(match: re.Match[str], moment: Moment) -> Stretch | None:
    return window(moment, asked_unit(match), amount(match["n"]), way(match["rel"]))


def _within(match: re.Match[str], moment: Moment) -> Stretch | None:
    if moment.cue < 0:
        return None  # `we did it within 48 hours` says how long it took
    return window(moment, asked_unit(match), amount(match["n"]) if match["n"] else 1, 1)


def _one_window(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`past week`, `in the last month`: up to now."""
    return window(moment, asked_unit(match), 1, -1)


def _next_window(match: re.Match[str], moment: Moment) -> Stretch | None:
    return window(moment, asked_unit(match), 1, 1)


def _since_count(match: re.Match[str], moment: Moment) -> Stretch | None:
    found = window(moment, asked_unit(match), amount(match["n"]), -1)
    return replace(found, kind="since") if found else None


def _after_count(match: re.Match[str], moment: Moment) -> Stretch | None:
    found = _away(match, moment, sign=1)
    return replace(found, kind="since") if found else None


def _away(match: re.Match[str], moment: Moment, *, sign: int) -> Stretch | None:
    """`3 hours ago`, `in 2 weeks`, `an hour and a half ago`."""
    unit, count, groups = asked_unit(match), amount(match["n"]), match.groupdict()
    if unit in ("second", "minute", "hour"):
        seconds = count * SECONDS[unit] + float(groups.get("minutes") or 0) * 60
        seconds += SECONDS[unit] / 2 if groups.get("more") else 0
        start = sign * timedelta(seconds=seconds)
        fine = "minute" if groups.get("minutes") or seconds % SECONDS[unit] else unit
        return real_time(moment.now, start, start + timedelta(seconds=SECONDS[fine]), "point")
    if groups.get("more"):
        count += 0.5
    if count != int(count):
        return _fraction_away(unit, sign * count, moment)
    if unit in ("day", "fortnight") or (unit == "week" and sign > 0):
        return replace(days_from(stepped(moment.today, unit, sign * int(count))), grain="" if unit == "day" else "week")
    return calendar_unit(unit, moment.today, sign * int(count), moment.week_start)


def _ahead(match: re.Match[str], moment: Moment) -> Stretch | None:
    # `I read it in two weeks` says how long it took.
    return None if moment.cue < 0 else _away(match, moment, sign=1)


def _away_from_day(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`a week ago today`, `two years ago yesterday`: that very day."""
    unit, count = asked_unit(match), amount(match["n"])
    if unit in ("second", "minute", "hour") or count != int(count):
        return None
    return days_from(stepped(moment.today + timedelta(days=vocabulary().days[match["day"].lower()]), unit, -int(count)))


def _now(match: re.Match[str], moment: Moment) -> Stretch:
    """`right now` is this minute, `from now on` what comes, `until now` what was."""
    minute = replace(real_time(moment.now, timedelta(), timedelta(minutes=1), "point"), grain="minute")
    groups = match.groupdict()
    if groups.get("on"):
        return replace(minute, kind="since")
    return Stretch(midnight(date.min), moment.now, "until", clock=True) if groups.get("to") else minute


def _both_away(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`a year and two months ago`, `in 1 day and 3 hours`: what the smaller unit names."""
    sign = -1 if (match["ago"] or "").lower() in ("ago", "back") else 1
    big, small = (vocabulary().asked_units[match[unit].lower()] for unit in ("unit", "unit2"))
    counts = amount(match["n"]), amount(match["n2"])
    if any(count != int(count) for count in counts) or (not match["ago"] and (not match["lead"] or moment.cue < 0)):
        return None
    if big in SECONDS and small in SECONDS:
        seconds = sum(count * SECONDS[unit] for count, unit in zip(counts, (big, small), strict=True))
        if small in ("day", "week"):
            return days_from(moment.today + sign * timedelta(seconds=seconds))
        start = sign * timedelta(seconds=seconds)
        return real_time(moment.now, start, start + timedelta(seconds=SECONDS[small]), "point")
    day = stepped(moment.today, big, sign * int(counts[0])) if big not in ("second", "minute", "hour") else None
    return calendar_unit(small, day, sign * int(counts[1])) if day and small in ("day", "month") else None


def _apart(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`5 to 10 minutes ago`, `two or three days ago`: from the one to the other."""
    near, far = sorted((amount(match["n"]), amount(match["n2"])))
    return _ago(asked_unit(match), near, far, moment)


def _about_ago(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`a few weeks back`, `a couple of days ago`."""
    loose = loosely(match["n"])
    return _ago(asked_unit(match), *loose, moment) if loose else None


def _ago(unit: str, near: float, far: float, moment: Moment) -> Stretch | None:
    if near != int(near) or far != int(far) or unit == "fortnight":
        return None
    if unit in ("second", "minute", "hour"):
        low, high = (-timedelta(seconds=count * SECONDS[unit]) for count in (far, near))
        return real_time(moment.now, low, high) if low < high else None
    first, last = (calendar_unit(unit, moment.today, -int(count), moment.week_start) for count in (far, near))
    return Stretch(first.low, last.high, "span")


def _fraction_away(unit: str, count: float, moment: Moment) -> Stretch | None:
    """`1.5 days ago`: the hour that begins then; of years and a half, the month."""
    if unit == "year" and count * 2 == int(count * 2):
        return calendar_unit("month", moment.today, int(count * 12))
    if unit not in SECONDS:
        return None
    start = timedelta(seconds=count * SECONDS[unit])
    return real_time(moment.now, start, start + timedelta(hours=1), "point")


def _weekdays_away(match: re.Match[str], moment: Moment, *, sign: int) -> Stretch:
    wanted, count = vocabulary().weekdays[match["wd"].lower()], int(amount(match["n"]))
    near = (wanted - moment.today.weekday()) % 7 or 7
    return days_from(moment.today + timedelta(days=near + 7 * (count - 1) if sign > 0 else near - 7 * count))


def _unit_near(match: re.Match[str], moment: Moment) -> Stretch | None:
    if compiled(r"(?:\d|\b<<numbers>>) $").search(match.string, max(0, match.start() - 10), match.start()):
        return None  # `two upcoming week` is not the coming one
    return calendar_unit(asked_unit(match), moment.today, way(match["rel"]), moment.week_start)


def _unit_beyond(match: re.Match[str], moment: Moment, *, sign: int) -> Stretch:
    """`the week before last`, `the month after next`."""
    return calendar_unit(asked_unit(match), moment.today, 2 * sign, moment.week_start)


def _name_beyond(match: re.Match[str], moment: Moment, *, sign: int) -> Stretch:
    """`Friday before last`, `March after next`: one further than the near one."""
    word, known = match["name"].lower(), vocabulary()
    if word in known.months:
        ahead = (known.months[word] - moment.today.month) % 12 or 12
        return calendar_unit("month", month_start(moment.today, ahead + 12 if sign > 0 else ahead - 24), 0)
    if word.startswith("week"):
        return days_from(week_of(moment.today) + timedelta(days=5, weeks=2 * sign), 2)
    near = (known.weekdays[word] - moment.today.weekday()) % 7 or 7
    return days_from(moment.today + timedelta(days=near + 7 if sign > 0 else near - 14))


def _to_date(match: re.Match[str], moment: Moment) -> Stretch:
    unit = {"y": "year", "m": "month", "q": "quarter", "w": "week"}[match["short"][0].lower()]
    return replace(calendar_unit(unit, moment.today, 0, moment.week_start), high=moment.now, clock=True)


def _decades(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`the last decade` up to now, `two decades ago` that year."""
    if match["rel"]:
        return window(moment, "year", 10, way(match["rel"]))
    count = amount(match["n"])
    return calendar_unit("year", moment.today, -10 * int(count)) if count == int(count) else None


def _so_far(match: re.Match[str], moment: Moment) -> Stretch:
    unit = (match["before"] or match["behind"]).lower()
    return replace(
        calendar_unit("day" if unit == "today" else unit, moment.today, 0, moment.week_start), high=moment.now, clock=True
    )


def _rest(match: re.Match[str], moment: Moment) -> Stretch:
    unit = asked_unit(match) if match["unit"] else "day"
    return replace(calendar_unit(unit, moment.today, 0, moment.week_start), low=moment.now, clock=True)


def _this_unit(match: re.Match[str], moment: Moment) -> Stretch:
    return calendar_unit(asked_unit(match), moment.today, 0, moment.week_start)


# What people say when they do not know the day.

_LATELY, _LONG_AGO, _A_FEW = timedelta(weeks=4), timedelta(weeks=2), 6
_MONTHS_AGO = 3


def _vague(low: date, high: datetime) -> Stretch | None:
    return Stretch(midnight(low), high, "span", grain="vague") if midnight(low) < high else None


def _recently(match: re.Match[str], moment: Moment) -> Stretch | None:
    """Not `as recently as 2019`, and no title: `the song These Days`."""
    text, start, end = match.string, match.start(), match.end()
    if text[max(0, start - 3) : start].lower() == "as " and text[end : end + 3].lower() == " as":
        return None
    title = match[0][0].isupper() and not match[0].isupper() and compiled(r"\w $").search(text, max(0, start - 2), start)
    return None if title else _vague(moment.today - _LATELY, moment.now)


def _these_days(match: re.Match[str], moment: Moment) -> Stretch | None:
    """Not what is to come: `one of these days`, `I will call her these days`."""
    ahead = moment.cue if moment.asked else moment.tense
    return (
        None
        if ahead > 0 or compiled(r"\bone of $").search(match.string, max(0, match.start() - 8), match.start())
        else _recently(match, moment)
    )


def _other_day(_: re.Match[str], moment: Moment) -> Stretch | None:
    return _vague(moment.today - timedelta(weeks=1), midnight(moment.today))


def _while_ago(_: re.Match[str], moment: Moment) -> Stretch | None:
    return _vague(same_day(moment.today, -_MONTHS_AGO), midnight(moment.today - _LONG_AGO))


def _earlier_today(_: re.Match[str], moment: Moment) -> Stretch | None:
    return _vague(moment.today, moment.now)


def _recent_units(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`in recent weeks`, `the last months`: a few of them, up to now."""
    unit = vocabulary().asked_units[match["unit"].lower()]
    if unit == "hour":
        return Stretch(moment.now - timedelta(hours=_A_FEW), moment.now, "span", clock=True, grain="vague")
    return _vague(shifted(moment.now, unit, -_A_FEW).date(), moment.now)


_WINDOW = "a window of real time up to now or from now on"
_COUNTED = "counted from now: the whole unit"
_CALENDAR = "the whole unit of the calendar"
_LEADS = (
    "in over during within for from throughout während innerhalb über binnen aus au durant pendant dans "
    "sur en durante the these "
    "those den der die dem das des les ces los las el la estos estas "
)
_WITHIN = (
    r"(?:(?:in|over|during|within|for|from|throughout|während|innerhalb|über|binnen|aus|au cours|durant|pendant|dans|sur|en|"
    r"durante) )?(?:des )?(?:(?:the|these|those|den|der|die|dem|das|les|ces|la|le|los|las|el|estos|estas) )?"
)
_ABOUT = r"(?:(?:about|around|approximately|exactly|precisely|roughly|some|nearly|almost|etwa|ungefähr|environ|unos|unas) )?"
_FEW = "(?P<n><<vague.few>>|<<vague.couple>>)"
_LOOSE = "a window about that long ago"
_COUNTS = (
    "# half <<vague.few>> <<vague.couple>> about around approximately exactly precisely roughly some nearly almost <<numbers>>"
)
_MORE = r"(?: and (?P<more>a half)|,? (?:and )?(?P<minutes>\d{1,2}) min(?:ute)?s?)?"
_COUNT_2, _UNIT_2 = COUNT.replace("?P<n>", "?P<n2>"), ASKED_UNIT.replace("?P<unit>", "?P<unit2>")
_NAMES = "(?:<<months>>|<<weekdays>>|week-?end)"

_OVER = r"(?:(?:in|over|during|within|während|au cours de|au cours des|pendant|durant|en) )?"
_UNITS = r"(?P<unit><<plurals.units>>)"

VAGUE: tuple[Rule, ...] = (
    rule("<<vague.recently>>", r"<<vague.recently>>", _recently, "the last four weeks, up to now"),
    rule("<<vague.these_days>>", r"<<vague.these_days>>(?! off\b)", _these_days, "the last four weeks, up to now"),
    rule("<<vague.the_other_day>>", r"<<vague.the_other_day>>", _other_day, "the seven days before today"),
    rule("<<vague.a_while_ago>>", r"<<vague.a_while_ago>>", _while_ago, "three months to two weeks ago"),
    rule("<<vague.earlier_today>>", r"<<vague.earlier_today>>", _earlier_today, "up to now"),
    rule("in over during the recent", rf"{_OVER}(?:the )?(?:most )?recent {_UNITS}", _recent_units, "the last few, up to now"),
    rule(
        "en los las <<plurals.units>>", rf"(?:en )?(?:los |las )?{_UNITS} recientes", _recent_units, "the last few, up to now"
    ),
    rule(
        "in over during within während au pendant durant en the these those den die les ces los las estos estas",
        rf"{_OVER}(?:the|these|those|den|die|les|ces|los|las|estos|estas) (?!previous|vorige)<<near.last_asked>> {_UNITS}"
        r"(?! (?:of|in|before|when|vor|der|des|de|du)\b)",
        _recent_units,
        "the last few, up to now",
    ),
)
"""These are read in messages, too."""

RULES: tuple[Rule, ...] = (
    *VAGUE,
    ask_rule(_LEADS + "<<near>>", rf"{_WITHIN}(?P<rel>{BACK}|{ON}) {COUNT}{GAP}{ASKED_UNIT}", _window, _WINDOW),
    ask_rule(
        _LEADS + _COUNTS,
        rf"{_WITHIN}{COUNT} (?P<rel>last|past|previous|next|coming|following|derni[eè]re?s?|prochaine?s?|[úu]ltim[oa]s?|"
        rf"pr[óo]xim[oa]s?) {ASKED_UNIT}",
        _window,
        _WINDOW,
    ),
    ask_rule("within innerhalb", rf"(?:within|innerhalb von)(?: the next)? (?:{COUNT}|the) {ASKED_UNIT}", _within, _WINDOW),
    ask_rule(_LEADS + "past", rf"{_WITHIN}(?:this )?past {ASKED_UNIT}", _one_window, _WINDOW),
    ask_rule(
        _LEADS, rf"(?:in|over|during|within|from|throughout) the last {ASKED_UNIT}(?! (?:of|in|before) )", _one_window, _WINDOW
    ),
    ask_rule(
        "in over during within", rf"(?:in|over|during|within) the next {ASKED_UNIT}(?! (?:of|in) )", _next_window, _WINDOW
    ),
    ask_rule(
        f"in over during the last past next {_COUNTS}",
        rf"(?:(?:in|over|during) )?(?:(?:the )?(?P<rel>last|past|next) decade|{COUNT} decades? ago)",
        _decades,
        _WINDOW,
    ),
    ask_rule("last previous the", r"(?:the )?(?:last|previous) (?P<unit>hour|minute|second)", _one_window, _WINDOW),
    ask_rule("next coming the", r"(?:the )?(?:next|coming) (?P<unit>hour|minute)", _next_window, _WINDOW, latent=True),
    ask_rule("letzte letzten der die in", r"(?:in der |die |der )?letzten? (?P<unit>stunde|minute)", _one_window, _WINDOW),
    ask_rule("la el en", rf"(?:en )?(?:la|el) [úu]ltim[oa] {ASKED_UNIT}", _one_window, _WINDOW),
    ask_rule("seit depuis desde", rf"(?:seit|depuis|desde hace) {COUNT} {ASKED_UNIT}", _since_count, _WINDOW),
    ask_rule(_COUNTS, rf"{_FEW} {ASKED_UNIT} (?:ago|back|before now)", _about_ago, _LOOSE),
    ask_rule("vor il hace", rf"(?:vor|il y a|hace) {_FEW} {ASKED_UNIT}", _about_ago, _LOOSE),
    ask_rule(_COUNTS, rf"{_ABOUT}{COUNT}{GAP}{ASKED_UNIT}{_MORE} (?:ago|back|before now)", partial(_away, sign=-1), _COUNTED),
    ask_rule(_COUNTS, rf"{COUNT} {ASKED_UNIT} ago (?P<day>today|yesterday|tomorrow)", _away_from_day, "counted from that day"),
    ask_rule(
        "now right just from until till up at immediately asap as",
        r"(?P<on>from (?:right )?now on(?:wards?)?|asap|as soon as possible)|\A(?P<to>(?:until|till|up to|up until) now)|"
        r"(?:right |just )?now|at (?:the|this)(?: very)? moment|at present|immediately",
        _now,
        "now",
        latent=True,
    ),
    ask_rule(
        "now",
        r"(?:(?<=until )|(?<=till )|(?<=to )|(?<=and )|(?<=through ))now(?! that)",
        _now,
        "now",
        weak=True,
    ),
    ask_rule(
        f"in {_COUNTS}",
        rf"(?P<lead>in )?{COUNT}{GAP}{ASKED_UNIT}(?: and |, and |, | ){_COUNT_2}{GAP}{_UNIT_2}(?: (?P<ago>ago|back|from now))?",
        _both_away,
        _COUNTED,
    ),
    ask_rule(
        _COUNTS, rf"{_ABOUT}{COUNT}(?: to | or |-| - ){_COUNT_2}{GAP}{ASKED_UNIT} ago", _apart, "a window between the two"
    ),
    ask_rule("vor il hace", rf"(?:vor|il y a|hace) {_ABOUT}{COUNT} {ASKED_UNIT}", partial(_away, sign=-1), _COUNTED),
    ask_rule(
        "in dans en dentro",
        rf"(?:in|dans|en|dentro de) {_ABOUT}{COUNT}{GAP}(?:more )?{ASKED_UNIT}{_MORE}(?:['’]s? time)?(?! ago| back)",
        _ahead,
        _COUNTED,
    ),
    ask_rule(
        _COUNTS,
        rf"{COUNT} (?:more )?{ASKED_UNIT}{_MORE} (?:from (?:right )?(?:now|today)|hence)",
        partial(_away, sign=1),
        _COUNTED,
    ),
    ask_rule("after nach après", rf"(?:after|nach|après) {COUNT} {ASKED_UNIT}", _after_count, _COUNTED, latent=True),
    ask_rule(_COUNTS, rf"{COUNT} {WEEKDAY}s? from (?:now|today)", partial(_weekdays_away, sign=1), "weekdays counted on"),
    ask_rule(_COUNTS, rf"{COUNT} {WEEKDAY}s? (?:ago|back)", partial(_weekdays_away, sign=-1), "weekdays counted back"),
    ask_rule(
        "in im en the around <<near>>",
        rf"(?:(?:in der|in den|in dem|in|im|en) )?(?:the |around )?(?!past)(?P<rel>{THIS}|{BACK}|{ON}|upcoming) "
        rf"{WHOLE_UNIT}(?:-ci|-là)?",
        _unit_near,
        _CALENDAR,
    ),
    ask_rule("la le el l en", rf"(?:en )?(?:la |le |el |l['’]){WHOLE_UNIT} (?P<rel>{BACK}|{ON})", _unit_near, _CALENDAR),
    ask_rule("la el en", rf"(?:en )?(?:la|el) (?P<rel>pr[óo]xim[oa]|pasad[oa]) {WHOLE_UNIT}", _unit_near, _CALENDAR),
    ask_rule("the week month quarter year", rf"(?:the )?{WHOLE_UNIT} before last", partial(_unit_beyond, sign=-1), _CALENDAR),
    ask_rule("the week month quarter year", rf"(?:the )?{WHOLE_UNIT} after next", partial(_unit_beyond, sign=1), _CALENDAR),
    ask_rule(
        "vorletzte vorletzten vorletztes vorletzter vorletztem l in im",
        rf"(?:(?:in der|im) )?(?:vorletzte[nmrs]? |l['’]avant-derni[eè]re? ){WHOLE_UNIT}",
        partial(_unit_beyond, sign=-1),
        _CALENDAR,
    ),
    ask_rule(
        "vorletzten vorletzter",
        r"vorletzte[nr] (?P<name><<weekdays>>)",
        partial(_name_beyond, sign=-1),
        "the one before",
    ),
    ask_rule("la el", rf"(?:la|el) {WHOLE_UNIT} antepasad[oa]", partial(_unit_beyond, sign=-1), _CALENDAR),
    ask_rule(
        "übernächste übernächsten übernächstes übernächster übernächstem in im",
        rf"(?:(?:in der|im) )?übernächste[nmrs]? {WHOLE_UNIT}",
        partial(_unit_beyond, sign=1),
        _CALENDAR,
    ),
    ask_rule(
        "<<months>> <<weekdays>> the weekend week",
        rf"(?:the )?(?P<name>{_NAMES}) before last",
        partial(_name_beyond, sign=-1),
        "the one before",
    ),
    ask_rule(
        "<<months>> <<weekdays>> the weekend week",
        rf"(?:the )?(?P<name>{_NAMES}) after next",
        partial(_name_beyond, sign=1),
        "the one after",
    ),
    ask_rule(
        "year month quarter week ytd mtd qtd wtd",
        r"(?P<short>(?:year|month|quarter|week)[ -]to[ -]date|[ymqw]td)",
        _to_date,
        "up to now",
    ),
    ask_rule(
        "so this today",
        r"so far (?:this )?(?P<before>today|week|month|quarter|year)|"
        r"(?:this )?(?P<behind>today|week|month|quarter|year) so far",
        _so_far,
        "up to now",
    ),
    ask_rule(
        "the rest remainder",
        r"(?:the )?(?:rest|remainder) of (?:today|(?:the|this) (?P<unit>day|week|month|quarter|year))",
        _rest,
        "a window from now to its end",
    ),
    ask_rule(
        "all the",
        r"(?:all|the whole|the entire|all of this) (?P<unit>day|week|month|quarter|year)",
        _this_unit,
        _CALENDAR,
        latent=True,
    ),
    ask_rule(
        "the this der des du del l <<asked_units>>",
        rf"(?!an\b)(?:the |this |der |des |du |del |l['’])?{WHOLE_UNIT}",
        _this_unit,
        _CALENDAR,
        latent=True,
    ),
    ask_rule("the this", r"(?:this|the) (?P<unit>day)", _this_unit, _CALENDAR, latent=True),
)
