"""The rules by which words become times: patterns, the words they can start with, and what they mean on a calendar.

Everything here is local clock time without a zone; `mentions` finds, joins and converts. Rules for questions only are apart.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta

from perdure.engine.times.calendar import (
    Moment,
    Stretch,
    calendar_unit,
    days_from,
    midnight,
    month_start,
    shifted,
    week_of,
    year_for,
)
from perdure.engine.times.grammar import (
    FULL_WEEKDAY,
    LONG_UNIT,
    MONTH,
    NUM,
    PART,
    STOPS,
    UNIT,
    WEEKDAY,
    YEAR,
    Resolve,
    Rule,
    amount,
    compiled,
    ordinal,
    rule,
    vocabulary,
    way,
    word_sets,
)

CRON_HOUR = 9
"""The hour of a habit that names none."""


def _named_day(match: re.Match[str], moment: Moment) -> Stretch:
    day = days_from(moment.today + timedelta(days=vocabulary().days[match["day"].lower()]))
    return part_of(day, match["part"], moment) if match["part"] else day


def _offset_day(offset: int) -> Resolve:
    return lambda _, moment: days_from(moment.today + timedelta(days=offset))


def part_of(day: Stretch, part: str, moment: Moment) -> Stretch:
    """That part of the day; who asks for it means it widely."""
    low, high = vocabulary().wide_parts[part.lower()] if moment.asked else vocabulary().parts[part.lower()][:2]
    return replace(
        day, low=day.low + timedelta(hours=low), high=day.low + timedelta(hours=high), kind="point", clock=True, grain="part"
    )


def _this_part(match: re.Match[str], moment: Moment) -> Stretch:
    word = match[0].lower()
    if word == "tonight":
        return part_of(days_from(moment.today), "night", moment)
    if word.startswith("last"):
        day = days_from(moment.today - timedelta(days=1))
        return part_of(day, match["part"], moment)
    return part_of(days_from(moment.today), match["part"], moment)


def _ago(match: re.Match[str], moment: Moment) -> Stretch | None:
    count, unit = int(amount(match["n"])), vocabulary().units[match["unit"].lower()]
    if unit in ("minute", "hour"):
        low = moment.now - timedelta(**{f"{unit}s": count})
        return Stretch(low, low + timedelta(**{f"{unit}s": 1}), clock=True)
    return calendar_unit(unit, moment.today, -count, moment.week_start)


def _half_hour(direction: int) -> Resolve:
    def resolve(_: re.Match[str], moment: Moment) -> Stretch:
        low = moment.now + direction * timedelta(minutes=30)
        return Stretch(low, low + timedelta(minutes=1), clock=True)

    return resolve


def _ahead(match: re.Match[str], moment: Moment) -> Stretch | None:
    count, unit = int(amount(match["n"])), vocabulary().units[match["unit"].lower()]
    if unit in ("minute", "hour"):
        low = moment.now + timedelta(**{f"{unit}s": count})
        return Stretch(low, low + timedelta(**{f"{unit}s": 1}), clock=True)
    if unit == "week":
        return days_from(moment.today + timedelta(weeks=count))
    return calendar_unit(unit, moment.today, count)


def _rolling(match: re.Match[str], moment: Moment) -> Stretch:
    """`the last three weeks`, `the next 5 days`: a stretch that ends or starts with the moment of writing."""
    count, unit = int(amount(match["n"])), vocabulary().units[match["unit"].lower()]
    if unit in ("minute", "hour"):
        width = timedelta(**{f"{unit}s": count})
        other = moment.now - width if way(match["rel"]) < 0 else moment.now + width
    else:
        sign = -1 if way(match["rel"]) < 0 else 1
        other = shifted(moment.now, unit, sign * count)
    return Stretch(min(other, moment.now), max(other, moment.now), "span")


def _relative_unit(match: re.Match[str], moment: Moment) -> Stretch:
    return calendar_unit(vocabulary().units[match["unit"].lower()], moment.today, way(match["rel"]), moment.week_start)


def _edge(match: re.Match[str], moment: Moment) -> Stretch:
    """`end of the month`: its last day; of a year or quarter, its last month. `beginning of`, likewise."""
    unit = vocabulary().units[match["unit"].lower()]
    whole = calendar_unit(unit, moment.today, way(match["rel"]), moment.week_start)
    first, last = whole.low.date(), (whole.high - timedelta(days=1)).date()
    at_end = match["edge"].lower() in word_sets()["edges.last"]
    if unit in ("year", "quarter"):
        return calendar_unit("month", last if at_end else first, 0)
    return days_from(last if at_end else first)


def _weekday(match: re.Match[str], moment: Moment) -> Stretch | None:
    wanted, today = vocabulary().weekdays[match["wd"].lower()], moment.today
    groups = match.groupdict()
    rel = (groups.get("rel") or "").lower()
    this = week_of(today, moment.week_start) + timedelta(days=(wanted - moment.week_start) % 7)
    if groups.get("week"):
        day = this + timedelta(weeks=way(match["week"]))
    elif way(rel) < 0:
        day = today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
    elif way(rel) > 0 and rel not in ("coming", "upcoming"):
        day = this + timedelta(weeks=1)
    elif rel == "this":
        day = this + timedelta(weeks=1 if this < today and moment.tense >= 0 else 0)
    elif moment.tense < 0 and not rel:
        day = today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)
    else:
        day = today + timedelta(days=(wanted - today.weekday()) % 7 or 7)
    found = replace(days_from(day), weekday=not rel and not groups.get("week"))
    return part_of(found, match["part"], moment) if groups.get("part") else found


def _weekend(match: re.Match[str], moment: Moment) -> Stretch:
    monday = moment.today - timedelta(days=moment.today.weekday())
    offset = way(match["rel"])
    if match["rel"].lower() in ("the", "at the", "on the") and moment.tense < 0:
        offset = -1
    return days_from(monday + timedelta(weeks=offset, days=5), 2)


def _month_day(match: re.Match[str], moment: Moment) -> Stretch | None:
    month, day = vocabulary().months[match["month"].lower()], int(match["dom"])
    if match["year"]:
        return days_from(date(int(match["year"]), month, day))
    return replace(
        days_from(date(year_for(month, day, moment), month, day)), yearly=lambda one: days_from(date(one, month, day))
    )


def _whole_month(match: re.Match[str], moment: Moment) -> Stretch | None:
    word, before = match["month"], match.string[max(0, match.start() - 24) : match.start()]
    groups = match.groupdict()
    rel = (groups.get("rel") or "").lower()
    if rel and word.lower() == "may" and compiled(_MAY_DO).match(match.string, match.end()):
        return None  # `this may be so`
    if (
        not groups.get("year")
        and not rel
        and not (compiled(_MONTH_LEAD).search(before) and (word[0].isupper() or len(word) > 5))
    ):
        return None
    month = vocabulary().months[word.lower()]
    if groups.get("year"):
        year = int(match["year"])
    elif rel:
        sign = way(rel)
        year = moment.today.year
        if sign < 0 and month >= moment.today.month:
            year -= 1
        elif sign > 0 and month <= moment.today.month:
            year += 1
    else:
        lead, words = before.rstrip().rpartition(" ")[2].lower(), word_sets()
        back, ahead = words["leads.since"], (*words["leads.until"], *words["leads.by"], *words["leads.before"])
        tense = -1 if lead in back else 1 if lead in ahead else moment.tense
        year = year_for(month, 1, replace(moment, tense=tense))
        if tense > 0 and month == moment.today.month:
            year = moment.today.year
    whole = calendar_unit("month", date(year, month, 1), 0)
    open_year = not groups.get("year") and not rel
    return replace(whole, yearly=lambda one: calendar_unit("month", date(one, month, 1), 0)) if open_year else whole


_MONTH_LEAD = r"\b<<leads.month>>\s+$"
_MAY_DO = r"\s+<<names.may_do>>\b"


def _day_of_month(match: re.Match[str], moment: Moment) -> Stretch | None:
    wanted = int(match["dom"])
    before = match.string[max(0, match.start() - 12) : match.start()]
    if not re.search(r"\b(?:on|by|until|till|since|before|from)\s+$", before, re.IGNORECASE):
        return None
    for step in range(4):
        start = month_start(moment.today, -step if moment.tense < 0 else step)
        length = (month_start(start, 1) - start).days
        if wanted <= length:
            day = start.replace(day=wanted)
            if (day <= moment.today) if moment.tense < 0 else (day >= moment.today):
                return days_from(day)
    return None


def _iso(match: re.Match[str], _: Moment) -> Stretch | None:
    day = days_from(date(int(match["y"]), int(match["m"]), int(match["d"])))
    if match["h"] is None:
        return day
    low = day.low + timedelta(hours=int(match["h"]), minutes=int(match["mi"]))
    return Stretch(low, low + timedelta(minutes=1), clock=True) if int(match["h"]) < 24 and int(match["mi"]) < 60 else None


def _numeric(match: re.Match[str], _: Moment) -> Stretch | None:
    """`13/5/2026`, `5/13/2026`, `13.5.2026`: with slashes only where the order is certain."""
    if re.search(r"\b(?:version|v|release)\s*$", match.string[max(0, match.start() - 10) : match.start()], re.IGNORECASE):
        return None
    one, two, year = int(match["a"]), int(match["b"]), int(match["y"])
    if match["sep"] == "." or one > 12 or one == two:
        return days_from(date(year, two, one))
    return days_from(date(year, one, two)) if two > 12 else None


def _year(match: re.Match[str], _: Moment) -> Stretch | None:
    before = match.string[max(0, match.start() - 12) : match.start()]
    if not compiled(_YEAR_LEAD).search(before):
        return None
    return calendar_unit("year", date(int(match["year"]), 1, 1), 0)


_YEAR_LEAD = r"\b<<leads.year>>\s+$"


def _season(match: re.Match[str], moment: Moment) -> Stretch | None:
    start_month, rel = vocabulary().seasons[match["season"].lower()], (match["rel"] or "").lower()
    if match["year"]:
        year = int(match["year"])
    else:
        lead = match.string[max(0, match.start() - 8) : match.start()]
        if not rel and not re.search(r"\b(?:by|until|till|since|before|in)\s+$", lead, re.IGNORECASE):
            return None
        sign = way(rel) or (moment.tense if not rel.startswith("this") else 0)
        year = moment.today.year - (1 if start_month == 12 and moment.today.month < 3 else 0)
        start = date(year, start_month, 1)
        ended = month_start(start, 3) <= moment.today
        if sign < 0 and not ended:
            year -= 1
        elif sign > 0 and start <= moment.today:
            year += 1
    start = date(year, start_month, 1)
    return Stretch(midnight(start), midnight(month_start(start, 3)), "span")


def _quarter(match: re.Match[str], moment: Moment) -> Stretch:
    number = int(match["q"]) if match["q"] else ordinal(match["ord"])
    year = int(match["year"]) if match["year"] else moment.today.year
    if not match["year"] and moment.tense > 0 and number * 3 < moment.today.month:
        year += 1
    return calendar_unit("quarter", date(year, number * 3, 1), 0)


def _clock(match: re.Match[str], moment: Moment) -> Stretch | None:
    groups = match.groupdict()
    word = match[0].lower()
    if word in ("noon", "midnight"):
        hour, minute = (12, 0) if word == "noon" else (0, 0)
    else:
        hour, minute = int(groups["h"]), int(groups.get("mi") or 0)
        half = (groups.get("half") or "").lower().replace(".", "")
        if half and not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 if half == "pm" else hour % 12 if half == "am" else hour
        if not half and groups.get("bare") and 1 <= hour <= 5:
            hour += 12
    if hour > 23 or minute > 59:
        return None
    low = midnight(moment.today) + timedelta(hours=hour, minutes=minute)
    return Stretch(low, low + timedelta(minutes=1), clock=True, loose=True)


def _every(match: re.Match[str], moment: Moment) -> Stretch | None:
    groups = match.groupdict()
    part = (groups.get("part") or "").lower()
    hour = vocabulary().parts[part][2] if part else CRON_HOUR
    if groups.get("wd"):
        wanted = vocabulary().weekdays[match["wd"].lower()]
        day = days_from(moment.today + timedelta(days=(wanted - moment.today.weekday()) % 7))
        other = (groups.get("other") or "").strip()
        return replace(day, kind="recurring", cron=None if other else f"0 {hour} * * {(wanted + 1) % 7}")
    word = (groups.get("each") or "day").lower()
    if word in ("weekday", "weekdays", "workday"):
        return replace(days_from(moment.today), kind="recurring", cron=f"0 {hour} * * 1-5")
    if word == "weekend":
        return replace(_weekend_from(moment.today), kind="recurring", cron=f"0 {hour} * * 6")
    unit = {"daily": "day", "weekly": "week", "monthly": "month", "nightly": "day"}.get(word) or vocabulary().units.get(
        word, "day"
    )
    cron = {"day": f"0 {hour} * * *", "week": f"0 {hour} * * 1", "month": f"0 {hour} 1 * *", "year": f"0 {hour} 1 1 *"}
    several = (groups.get("other") or groups.get("n") or "").strip()
    if unit not in cron:
        return None
    return replace(calendar_unit(unit, moment.today, 0), kind="recurring", cron=None if several else cron[unit])


def _weekend_from(day: date) -> Stretch:
    return days_from(day + timedelta(days=(5 - day.weekday()) % 7), 2)


def _for_long(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`for three years`, where the sentence says that it lasts: `I have lived here for three years`."""
    before = match.string[max(0, match.start() - 80) : match.start()]
    before = STOPS.split(before)[-1]
    if not re.search(r"\b(?:have|has|been)\b|['’]ve\b", before, re.IGNORECASE):
        return None
    unit = vocabulary().units[match["unit"].lower()]
    if unit in ("minute", "hour"):
        return None
    return Stretch(midnight(shifted(moment.now, unit, -int(amount(match["n"]))).date()), moment.now, "since")


MESSAGES_ONLY: tuple[Resolve, ...] = (_ahead,)
"""What questions have other rules for, which leave more out."""

RULES: tuple[Rule, ...] = (
    rule("<<days>>", rf"(?P<day><<days>>)(?:\s+{PART})?", _named_day),
    rule("the day", r"(?:the )?day before yesterday", _offset_day(-2)),
    rule("the day", r"(?:the )?day after tomorrow", _offset_day(2)),
    rule("morgen", r"(?<!guten )(?<!am )(?-i:morgen)", _offset_day(1)),
    rule("mañana", r"(?<!la )(?<!esta )mañana", _offset_day(1)),
    rule("pasado", r"pasado mañana", _offset_day(2)),
    rule("this last", rf"(?:this|last) {PART}", _this_part),
    rule("tonight", r"tonight(?P<part>)", _this_part),
    rule("# about <<numbers>> <<vague.few>> <<vague.couple>>", rf"(?:about )?{NUM} {UNIT} (?:ago|back)", _ago),
    rule("half", r"half an hour ago", _half_hour(-1)),
    rule("in", r"in half an hour", _half_hour(1)),
    rule("vor il hace", rf"(?:vor|il y a|hace) {NUM} {UNIT}", _ago),
    rule("in dans within", rf"(?:in|within|in about|dans) {NUM} {UNIT}(?:['’]s? time)?(?! ago)", _ahead),
    rule("# <<numbers>>", rf"{NUM} {UNIT} from (?:now|today)", _ahead),
    rule(
        "the <<near.last>> <<near.next>>",
        rf"(?:the )?(?P<rel><<near.last>>|<<near.next>>) (?P<n>\d{{1,3}}|<<numbers>>) {UNIT}",
        _rolling,
    ),
    rule("this <<near.last>> <<near.next>>", rf"(?P<rel>this|<<near.last>>|<<near.next>>) {LONG_UNIT}", _relative_unit),
    rule("diese diesen dieses cette ce esta este", rf"(?P<rel>diese[ns]?|cette|ce|est[ae]) {LONG_UNIT}", _relative_unit),
    rule(
        "la le el l",
        rf"(?:la |le |el |l['’]){LONG_UNIT} (?P<rel>derni[eè]re?|passée?|prochaine?|pasad[oa]|próxim[oa]|"
        r"que viene)",
        _relative_unit,
    ),
    rule("la el", rf"(?:la|el) (?P<rel>próxim[oa]) {LONG_UNIT}", _relative_unit),
    rule(
        "the <<edges.first>> <<edges.last>>",
        r"(?:the )?(?P<edge><<edges.first>>|<<edges.last>>) (?:of |de |des |der )?(?:the |this |du |del "
        rf")?(?:(?P<rel><<near.last>>|<<near.next>>) )?{LONG_UNIT}",
        _edge,
    ),
    rule(
        "<<full_weekdays>>",
        rf"{FULL_WEEKDAY}(?!s)(?P<rel>)(?:,? (?:of )?(?P<week>this|<<near.last>>|<<near.next>>) "
        rf"week)?(?:\s+{PART})?",
        _weekday,
    ),
    rule(
        "this coming upcoming <<near.last>> <<near.next>>",
        rf"(?:this )?(?P<rel>this|coming|upcoming|<<near.last>>|<<near.next>>) {WEEKDAY}(?:\s+{PART})?",
        _weekday,
    ),
    rule("<<full_weekdays>>", rf"{FULL_WEEKDAY} (?P<rel>dernier|prochain|pasado|que viene)", _weekday),
    rule(
        "<<short_weekdays>>",
        r"(?:(?<=on )|(?<=by )|(?<=On )|(?<=By ))(?P<wd>(?-i:<<capital_weekdays>>))\.?"
        r"(?P<rel>)",
        _weekday,
    ),
    rule("this the at on last next", r"(?P<rel>this|(?:at |on )?the|<<near.last>>|<<near.next>>) weekend", _weekend),
    rule("<<months>>", rf"{MONTH}\.? (?:the )?(?P<dom>\d{{1,2}})(?:st|nd|rd|th)?(?!:)(?:,? {YEAR})?", _month_day),
    rule("# the", rf"(?:the )?(?P<dom>\d{{1,2}})(?:st|nd|rd|th|\.|er)?(?: of| de)? {MONTH}(?:(?:,| de)? {YEAR})?", _month_day),
    rule("<<months>>", rf"{MONTH}(?:,? (?:of )?{YEAR})?", _whole_month),
    rule("this <<near.last>> <<near.next>>", rf"(?P<rel>this|<<near.last>>|<<near.next>>) {MONTH}", _whole_month),
    rule(
        "the",
        r"the (?P<dom>\d{1,2})(?:st|nd|rd|th)(?!\s+(?!and\b|at\b|or\b|because\b|but\b|so\b|for\b|in\b|"
        r"with\b|to\b)[a-z])",
        _day_of_month,
    ),
    rule("#", r"(?P<y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})(?:[T ](?P<h>\d{1,2}):(?P<mi>\d\d)(?::\d\d)?Z?)?", _iso),
    rule("#", r"(?P<a>\d{1,2})(?P<sep>[./])(?P<b>\d{1,2})(?P=sep)(?P<y>(?:19|20)\d\d)", _numeric),
    rule("#", YEAR, _year),
    rule(
        "in over during by until since this <<seasons>> <<near.last>> <<near.next>>",
        r"(?:in )?(?:(?P<rel>in the|over the|during the|by the|until the|since the|this|this coming|"
        rf"<<near.last>>|<<near.next>>) )?(?P<season><<seasons>>)(?: (?:of )?{YEAR})?",
        _season,
    ),
    rule(
        "q1 q2 q3 q4 the first second third fourth",
        rf"(?:q(?P<q>[1-4])|(?:the )?(?P<ord>first|second|third|fourth) quarter)(?:,? (?:of )?{YEAR})?",
        _quarter,
    ),
    rule("#", r"(?P<h>\d{1,2})(?::(?P<mi>\d\d))?\s?(?P<half>[ap]\.?m\b\.?)", _clock),
    rule("#", r"(?<![\d:])(?P<h>\d{1,2}):(?P<mi>\d\d)(?!:?\d)", _clock),
    rule("#", r"(?P<h>\d{1,2})(?::(?P<mi>\d\d))? ?(?:Uhr|o['’]clock)(?P<bare>)", _clock),
    rule("#", r"(?:(?<=à )|(?<=À ))(?P<h>\d{1,2}) ?h(?:eures?)?(?: ?(?P<mi>[0-5]\d))?(?! d[e'’])", _clock),
    rule("#", r"(?<=a las )(?P<h>\d{1,2})(?=\s*(?:[.,;!)]|$))", _clock),
    rule(
        "#",
        r"(?:(?<=at )|(?<=At ))(?P<bare>(?P<h>\d{1,2}))(?=\s*(?:[.,;!)]|$|on\b|tomorrow\b|today\b|"
        r"tonight\b|every\b|sharp\b))",
        _clock,
    ),
    rule("noon midnight", r"noon|midnight", _clock),
    rule("every each", rf"(?:every|each) (?P<other>other |second )?{WEEKDAY}(?:\s+{PART})?", _every),
    rule(
        "every each",
        rf"(?:every|each) (?P<other>other |second )?(?:single )?(?:{PART}|(?P<each>weekday|workday|"
        r"weekend|day|week|month|year))",
        _every,
    ),
    rule("every", r"every (?P<n>\d{1,3}|<<numbers>>) (?P<each><<units>>)", _every),
    rule(
        "daily weekly monthly nightly",
        r"(?<!-)(?P<each>daily|weekly|monthly|nightly)(?=\s*(?:[.,;!?)]|$)|\s+(?:at|in|on|before|after|"
        r"and|for|with|by|around|or|to|since)\b)",
        _every,
    ),
    rule(
        "once twice three four # several",
        r"(?P<other>once|twice|(?:three|four|five|several|\d) times) (?:a|per|each|every) (?P<each>day|"
        r"week|month|year)",
        _every,
    ),
    rule("on weekdays", r"(?:on )?(?P<each>weekdays)", _every),
    rule("on <<weekdays>>s", rf"(?:on )?{FULL_WEEKDAY}s(?:\s+{PART}s?)?", _every),
    rule(
        "jeden jede chaque cada todos",
        rf"(?:jede[nrs]?|chaque|cada|todos los) (?:{FULL_WEEKDAY}s?|(?P<each>tag|jour|día|días|woche|"
        r"semaine|semana|monat|mois|mes))",
        _every,
    ),
    rule("for", rf"for (?:the (?:last|past) |about |over |almost |nearly )?{NUM} {UNIT}(?: now)?", _for_long),
)
