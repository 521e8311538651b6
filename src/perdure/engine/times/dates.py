"""Rules for questions: dates as people write them, months, quarters, weekdays and weekends, and stretches of dates.

Part of the grammar of `rules`, which reads the dates that leave no doubt in messages too.
"""

from __future__ import annotations

import re
from calendar import isleap
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

from perdure.engine.times.calendar import Moment, Stretch, calendar_unit, days_from, midnight, month_start, week_of, year_for
from perdure.engine.times.grammar import (
    BACK,
    FULL_WEEKDAY,
    HOUR_WORDS,
    MONTH,
    NAME_TAIL,
    ON,
    ORDINAL,
    THIS,
    WEEKDAY,
    YEAR,
    Rule,
    ask_rule,
    compiled,
    ordinal,
    vocabulary,
    way,
)

_DAY = r"(?:(?P<dom>\d{1,2})(?:st|nd|rd|th|er|\.)?|(?P<word><<ordinals>>))"
_DAY_2 = r"(?P<dom2>\d{1,2})(?:st|nd|rd|th|er|\.)?"
_TO = (
    r"(?:\s?(?:-|–)\s?| (?:to|through(?: to)?|thru|until|till|['’]?til|and|bis(?: zum)?|au|al|y|et|und|a|à) )"
    r"(?:the |dem |den |le |el )?"
)
_FROM = r"(?:(?:from|between|vom|von|zwischen|du|entre|del|desde|de) )?(?:the |dem |den |le |el )?"
_YEAR_2 = r"(?P<year2>(?:19|20)\d\d)"
_SPOKEN_YEAR = rf"(?P<spoken>(?:two thousand|nineteen|twenty)(?: and)?(?:[ -](?:[a-z]+(?:teen|ty)|{HOUR_WORDS})){{1,2}})"


def _in_year(make: Callable[[int], Stretch], match: re.Match[str], moment: Moment, month: int, day: int) -> Stretch:
    """That of the year that is said, or of the one that the tense asks for."""
    groups = match.groupdict()
    if groups.get("year"):
        return make(full_year(groups["year"]))
    year, step = year_for(month, day, moment), -1 if moment.tense < 0 else 1
    if (month, day) == (2, 29):
        year = next(one for one in range(year, year + 9 * step, step) if isleap(one))
    return replace(make(year), yearly=make)


def full_year(digits: str) -> int:
    """`74` is 1974, `25` is 2025."""
    digits = digits.lstrip("'’")
    year = int(digits)
    return year if len(digits) > 2 else year + (1900 if year >= 70 else 2000)


def _date(match: re.Match[str], moment: Moment) -> Stretch:
    month = vocabulary().months[match["month"].lower()]
    day = int(match["dom"]) if match["dom"] else ordinal(match["word"])
    return _in_year(lambda year: days_from(date(year, month, day)), match, moment, month, day)


def _leap_day(match: re.Match[str], moment: Moment) -> Stretch:
    return _in_year(lambda year: days_from(date(year, 2, 29)), match, moment, 2, 29)


def _dates(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`July 13-15`, `from the 13th to the 15th of July`."""
    month, first, last = vocabulary().months[match["month"].lower()], int(match["dom"]), int(match["dom2"])
    if first >= last:
        return None

    def make(year: int) -> Stretch:
        return Stretch(midnight(date(year, month, first)), midnight(date(year, month, last) + timedelta(days=1)), "span")

    return _in_year(make, match, moment, month, first)


def _month(match: re.Match[str], moment: Moment) -> Stretch:
    month = vocabulary().months[match["month"].lower()]
    found = _in_year(lambda year: calendar_unit("month", date(year, month, 1), 0), match, moment, month, 1)
    if not match.groupdict().get("year") and moment.tense != 0 and month == moment.today.month:
        return replace(calendar_unit("month", moment.today, 0), yearly=found.yearly)
    return found


def _near_month(match: re.Match[str], moment: Moment) -> Stretch:
    """`this past March`, `the coming March`: the last one that is over, or the first that is still to begin."""
    month, today = vocabulary().months[match["month"].lower()], moment.today
    ahead = (month - today.month) % 12 or 12
    return calendar_unit("month", month_start(today, ahead if way(match["rel"]) > 0 else ahead % 12 - 12), 0)


def _numeric(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`10/31/74`, `31-10-1974`, `2/15`: only where it is certain which is the month."""
    one, two = int(match["a"]), int(match["b"])
    if one > 12 or (match["sep"] == "." and two <= 12):
        one, two = two, one
    elif two <= 12 and one != two:
        order = _order_beside(match)
        if order is None:
            return None
        one, two = (two, one) if order else (one, two)
    return _in_year(lambda year: days_from(date(year, one, two)), match, moment, one, two)


def _order_beside(match: re.Match[str]) -> bool | None:
    """Whether the day comes first, as another date close by, written alike, makes certain."""
    text, start = match.string, max(0, match.start() - _NEAR_CHARS)
    for other in compiled(_OTHER_DATE).finditer(text, start, match.end() + _NEAR_CHARS):
        if other["sep"] == match["sep"] and (int(other["a"]) > 12) != (int(other["b"]) > 12):
            return int(other["a"]) > 12
    return None


def _iso_week(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`week 46 of 2024`, `2024-W46`: the week of that number in the calendar (ISO 8601)."""
    number = int(match["week"])
    year = int(match["year"]) if match["year"] else moment.today.year
    this = date.fromisocalendar(year, number, 1)
    if not match["year"] and (this > moment.today if moment.tense < 0 else this + timedelta(days=7) <= moment.today):
        this = date.fromisocalendar(year + (-1 if moment.tense < 0 else 1), number, 1)
    return days_from(this, 7)


def _year_first(match: re.Match[str], _: Moment) -> Stretch:
    return days_from(date(int(match["year"]), int(match["m"]), int(match["d"])))


def _year_month(match: re.Match[str], _: Moment) -> Stretch:
    return calendar_unit("month", date(int(match["year"]), int(match["m"]), 1), 0)


def _year(match: re.Match[str], _: Moment) -> Stretch | None:
    words = match.groupdict().get("spoken")
    year = _spoken(words) if words else int(match["year"])
    return calendar_unit("year", date(year, 1, 1), 0) if year else None


def _spoken(words: str) -> int | None:
    """`two thousand eighteen`, `twenty nineteen`."""
    parts = re.split(r"[ -]", words.lower().replace(" and", ""))
    numbers = vocabulary().numbers
    if parts[:2] == ["two", "thousand"]:
        return 2000 + sum(numbers.get(part, 0) for part in parts[2:])
    rest = sum(numbers.get(part, 0) for part in parts[1:])
    return {"nineteen": 1900, "twenty": 2000}[parts[0]] + rest if 10 <= rest <= 99 else None


def _years(match: re.Match[str], _: Moment) -> Stretch | None:
    first, last = int(match["year"]), int(match["year2"])
    return Stretch(midnight(date(first, 1, 1)), midnight(date(last + 1, 1, 1)), "span") if first < last else None


def _day_of_month(match: re.Match[str], moment: Moment) -> Stretch | None:
    groups = match.groupdict()
    wanted = int(groups["dom"]) if groups.get("dom") else ordinal(groups["word"])
    for step in range(4):
        start = month_start(moment.today, -step if moment.tense < 0 else step)
        if wanted <= (month_start(start, 1) - start).days:
            day = start.replace(day=wanted)
            if (day <= moment.today) if moment.tense < 0 else (day >= moment.today):
                return replace(days_from(day), grain="dom")
    return None


def _weekday_of_month(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`Tuesday the 19th`: the nearest such day the way the tense points."""
    wanted, dom = vocabulary().weekdays[match["wd"].lower()], int(match["dom"])
    for step in range(48):
        start = month_start(moment.today, -step if moment.tense < 0 else step)
        if dom <= (month_start(start, 1) - start).days:
            day = start.replace(day=dom)
            if day.weekday() == wanted and ((day <= moment.today) if moment.tense < 0 else (day >= moment.today)):
                return days_from(day)
    return None


def _weekday(match: re.Match[str], moment: Moment) -> Stretch:
    """Alone, the last one or the next; `this` is that of this week, `next` that of the next; `coming` is the nearest."""
    wanted, today = vocabulary().weekdays[match["wd"].lower()], moment.today
    rel = (match.groupdict().get("rel") or "").lower()
    this = week_of(today, moment.week_start) + timedelta(days=(wanted - moment.week_start) % 7)
    sign = way(rel)
    if rel and sign == 0 and rel not in ("upcoming", "coming"):
        return days_from(this + timedelta(weeks=1 if this < today and moment.tense > 0 else 0))
    if sign > 0 and rel not in ("coming", "upcoming", "kommenden", "kommender"):
        return days_from(this + timedelta(weeks=1))
    ahead = (wanted - today.weekday()) % 7 or 7
    back = (sign or moment.tense) < 0
    return replace(days_from(today + timedelta(days=(ahead - 7 or -7) if back else ahead)), weekday=not rel)


def _week_later(match: re.Match[str], moment: Moment) -> Stretch:
    """`Tuesday week`, `a week on Tuesday`, `tomorrow week`: a week after the next such day."""
    weeks = 2 if (match.groupdict().get("n") or "").lower() == "two" else 1
    if match["day"]:
        near = 1 if match["day"].lower() == "tomorrow" else 0
    else:
        near = (vocabulary().weekdays[match["wd"].lower()] - moment.today.weekday()) % 7 or 7
    return days_from(moment.today + timedelta(days=near + 7 * weeks))


def _weekend(match: re.Match[str], moment: Moment) -> Stretch:
    rel = match.groupdict().get("rel") or ""
    saturday = moment.today + timedelta(days=5 - moment.today.weekday())
    back = not rel and moment.tense < 0 and moment.today.weekday() < 5
    if rel.lower() in ("coming", "upcoming") and moment.today.weekday() < 5:
        return days_from(saturday, 2)
    return days_from(saturday + timedelta(weeks=-1 if back else way(rel)), 2)


def _yesterday(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`hier` is yesterday in French and here in German: the words around tell."""
    around = match.string[max(0, match.start() - 60) : match.start()] + " " + match.string[match.end() : match.end() + 60]
    if around.strip(" .?!") and not compiled(r"\b<<languages.french>>\b").search(around):
        return None
    return days_from(moment.today - timedelta(days=1))


def _quarter(match: re.Match[str], moment: Moment) -> Stretch | None:
    groups = match.groupdict()
    number = int(groups["q"]) if groups["q"] else ordinal(groups["ord"])
    if not 1 <= number <= 4:
        return None

    def make(year: int) -> Stretch:
        return calendar_unit("quarter", date(year, 3 * number, 1), 0)

    if groups.get("year"):
        return make(full_year(groups["year"].rstrip(" -")))
    this = make(moment.today.year)
    late = moment.tense < 0 and this.low > moment.now
    return replace(make(moment.today.year - 1) if late else this, yearly=make)


def _half_year(match: re.Match[str], _: Moment) -> Stretch:
    first = date(int(match["year"]), 1 if "1" in (match["half"] or "") or "first" in (match["ord"] or "").lower() else 7, 1)
    return Stretch(midnight(first), midnight(month_start(first, 6)), "span")


def _decade(match: re.Match[str], moment: Moment) -> Stretch | None:
    word = match["decade"].lower()
    tens = int(word) if word.isdecimal() else vocabulary().decades[word]
    if not match["century"] and match[0].lower().lstrip("'’")[0].isdecimal():
        return None  # `20s` alone is twenty seconds or an age
    year = int(match["century"]) * 100 if match["century"] else 1900 if 2000 + 10 * tens > moment.today.year else 2000
    return Stretch(midnight(date(year + 10 * tens, 1, 1)), midnight(date(year + 10 * tens + 10, 1, 1)), "span")


_DATE = "that day"
_STRETCH = "from the first to the end of the last"
_MONTH_SAYS = "the whole month"
_YEAR_SAYS = "the whole year"
_WEEK_SAYS = "the week of that number"
_WEEK_NUMBER = r"(?:week|cw|kw)(?: no\.?| number)? ?(?P<week>\d\d?)"
_QUARTER_SAYS = "the whole quarter"
_WEEKEND_SAYS = "Saturday and Sunday"
_WEEKDAY_SAYS = "a weekday alone is the last one, or the next one if the words look ahead"
ANY_YEAR = r"(?P<year>(?:19|20)\d\d|['’]\d\d)"
_NEAR_CHARS = 48
_OTHER_DATE = r"(?<!\d)(?P<a>\d{1,2})(?P<sep>[./-])(?P<b>\d{1,2})(?P=sep)(?:\d{4}|\d\d)(?!\d)"
_SLASHED = (
    r"(?<![\d./])(?<!\D-)(?P<a>\d{1,2})(?P<sep>[./-])(?P<b>\d{1,2})(?P=sep)(?P<year>(?:19|20)\d\d|\d\d)"
    r"(?![./]?\d|-\d(?!\d?[./]))"
)
_SHORT_SLASHED = r"(?<![\d./-])(?P<a>\d{1,2})\s?(?P<sep>[/-])\s?(?P<b>\d{1,2})(?![./-]?\d)"
_NO_DAY = (
    r"(?!\s+(?:floor|place|row|page|try|attempt|level|day|street|avenue|st\b|ave|birthday|anniversary|time|of\b|grade|version))"
)
_CLOSES = r"(?=\s*(?:$|[?!.,;)]))"
_ALONE = r"(?=\s*(?:$|[?!.,;)–-]|(?:at|to|until|till|through|thru|and|in)\b))"
_REST = r"(?=\s*(?:$|[?!,;)]|(?-i:[a-zäöü])))"
NEAR = rf"(?P<rel>{THIS}|{BACK}|{ON}|upcoming)"
_WEEKEND = "week-?end|wochenende|fin de semana"
_BETWEEN = r"(?:(?<=between )|(?<=from )|(?<=zwischen )|(?<=entre )|(?<=von )|(?<=Between )|(?<=From ))"
IN = "in during throughout over im en au "

RULES: tuple[Rule, ...] = (
    ask_rule(
        "<<months>>",
        rf"{MONTH}\.?,?[ -]?(?:the )?{_DAY}(?!:|\d)(?:(?:,? |-)(?:of |in )?{ANY_YEAR})?",
        _date,
        _DATE,
        tail=NAME_TAIL,
    ),
    ask_rule("leap", rf"leap day(?:,? (?:of |in )?{YEAR})?", _leap_day, _DATE, latent=True),
    ask_rule(
        "# the on am le el den dem <<ordinals>>",
        rf"(?:(?:on|am|den|dem) )?(?:the |le |el )?{_DAY}(?: day)?(?: of| de|[ /-])?[ ]?{MONTH}\.?"
        r"(?:(?:,| of| de| del)?[ /-]?(?P<year>(?:19|20)\d\d|(?<=[/-])\d\d))?",
        _date,
        _DATE,
    ),
    ask_rule(
        "<<months>> from between",
        rf"(?:(?:from|between) )?{MONTH}\.? (?P<dom>\d{{1,2}})(?:st|nd|rd|th)?{_TO}{_DAY_2}(?!:)(?:,? {YEAR})?",
        _dates,
        _STRETCH,
    ),
    ask_rule(
        "# from between vom von zwischen du entre del desde de the",
        rf"{_FROM}(?P<dom>\d{{1,2}})(?:st|nd|rd|th|er|\.)?{_TO}{_DAY_2}(?: of| de)? {MONTH}\.?(?:(?:,| de)? {YEAR})?",
        _dates,
        _STRETCH,
    ),
    ask_rule("<<months>>", rf"{MONTH}\.?(?:(?:,? |/|-)(?:of |in |de )?{ANY_YEAR})(?! ?- ?\d\d?\b(?!:))", _month, _MONTH_SAYS),
    ask_rule(
        IN, rf"(?:in|during|throughout|im|en|en el mes de|au mois de) {MONTH}(?:,? (?:of |de )?{YEAR})?", _month, _MONTH_SAYS
    ),
    ask_rule(
        "the this past coming upcoming previous",
        rf"(?:the |this )?(?P<rel>past|coming|upcoming|previous) {MONTH}",
        _near_month,
        _MONTH_SAYS,
    ),
    ask_rule("<<months>>", rf"{_BETWEEN}{MONTH}(?= (?:and|to|until|through|und|bis|et|à|y|a)\b)", _month, _MONTH_SAYS),
    ask_rule("<<months>>", rf"{MONTH}\.?", _month, _MONTH_SAYS, latent=True, tail=NAME_TAIL),
    ask_rule("#", _SLASHED, _numeric, _DATE),
    ask_rule(
        "#",
        r"(?<![\d./-])(?P<year>(?:19|20)\d\d)(?P<sep>[/.])(?P<m>\d{1,2})(?P=sep)(?P<d>\d{1,2})(?![/.]?\d)",
        _year_first,
        _DATE,
    ),
    ask_rule("#", _SHORT_SLASHED, _numeric, _DATE, latent=True),
    ask_rule("on am", rf"(?:on|am) {_SHORT_SLASHED}", _numeric, _DATE),
    ask_rule("#", r"(?<![\d./-])(?P<year>(?:19|20)\d\d)-(?P<m>0[1-9]|1[0-2])(?![\d-])", _year_month, _MONTH_SAYS),
    ask_rule("#", r"(?<![\d./-])(?P<m>0?[1-9]|1[0-2])/(?P<year>(?:19|20)\d\d)", _year_month, _MONTH_SAYS),
    ask_rule("#", YEAR, _year, _YEAR_SAYS, latent=True),
    ask_rule(
        "in im en of the year",
        rf"(?:(?:in|im|en|of|during) )?(?:(?:the )?(?<!new )year|jahre?|el año|l['’]année) {YEAR}",
        _year,
        _YEAR_SAYS,
    ),
    ask_rule(
        "in en of during",
        rf"(?:in|en|of|during) {YEAR}(?!-(?:0\d|1[0-2])(?!\d)|\s?(?:%|euros?|dollars|people|pieces|units))",
        _year,
        _YEAR_SAYS,
    ),
    ask_rule("two nineteen twenty in", rf"(?:in )?{_SPOKEN_YEAR}", _year, _YEAR_SAYS, latent=True),
    ask_rule(
        "from between von zwischen entre de desde",
        rf"(?:from|between|von|zwischen|entre|de|desde) {YEAR}{_TO}{_YEAR_2}",
        _years,
        _STRETCH,
    ),
    ask_rule("week calendar iso cw kw", rf"(?:(?:calendar|iso) )?{_WEEK_NUMBER},? (?:of |in )?{YEAR}", _iso_week, _WEEK_SAYS),
    ask_rule(
        "week calendar iso cw kw",
        rf"(?:(?:calendar|iso) )?{_WEEK_NUMBER}(?P<year>)",
        _iso_week,
        _WEEK_SAYS,
        latent=True,
    ),
    ask_rule("#", rf"{YEAR}-?W(?P<week>\d\d)", _iso_week, _WEEK_SAYS),
    ask_rule("#", rf"{YEAR}\s?(?:-|–|/|to|through|until|till|bis)\s?{_YEAR_2}", _years, _STRETCH, latent=True),
    ask_rule("on", rf"on (?:the )?(?P<dom>\d{{1,2}})(?:st|nd|rd|th){_NO_DAY}", _day_of_month, _DATE),
    ask_rule("am vom dem den", rf"(?:am|vom|dem|den) (?P<dom>\d{{1,2}})\.(?!\d){_REST}", _day_of_month, _DATE, tail=""),
    ask_rule("le", rf"le (?P<dom>\d{{1,2}})(?:er)?{_CLOSES}", _day_of_month, _DATE),
    ask_rule("el", rf"el (?P<dom>\d{{1,2}}){_CLOSES}", _day_of_month, _DATE),
    ask_rule("el", r"el día (?P<dom>\d{1,2})", _day_of_month, _DATE),
    ask_rule("the #", r"(?:the )?(?P<dom>\d{1,2})(?:st|nd|rd|th)", _day_of_month, _DATE, latent=True),
    ask_rule("the", rf"the (?:(?P<dom>\d{{1,2}})|(?P<word><<ordinals>>){_ALONE})", _day_of_month, _DATE, latent=True),
    ask_rule("on", rf"on the (?P<word><<ordinals>>){_CLOSES}", _day_of_month, _DATE),
    ask_rule(
        "<<full_weekdays>> tomorrow today",
        rf"(?:{FULL_WEEKDAY}|(?P<day>tomorrow|today)) week(?= *(?:$|[?!.,;)]|at\b))",
        _week_later,
        "a week after that",
    ),
    ask_rule(
        "a one two in",
        rf"(?P<n>a|one|two) weeks? (?:on (?:{FULL_WEEKDAY})|(?P<day>tomorrow|today))",
        _week_later,
        "a week after that",
    ),
    ask_rule(
        "<<weekdays>>",
        rf"{WEEKDAY}\.?,? (?:the )?(?P<dom>\d{{1,2}})(?:st|nd|rd|th)(?! of| <<months>>\b)",
        _weekday_of_month,
        _DATE,
    ),
    ask_rule("on <<near>>", rf"(?:on )?(?:this )?{NEAR} {WEEKDAY}(?!s)\.?", _weekday, _DATE),
    ask_rule(
        "<<weekdays>> on am le el",
        rf"(?:(?:on|am|le|el) )?{FULL_WEEKDAY} (?P<rel>dernier|passé|prochain|pasado|próximo|que viene)",
        _weekday,
        _DATE,
    ),
    ask_rule("el", rf"el (?P<rel>pasado|próximo|último) {FULL_WEEKDAY}", _weekday, _DATE),
    ask_rule("on am le el", rf"(?:on|am|le|el) {FULL_WEEKDAY}(?!s)", _weekday, _WEEKDAY_SAYS),
    ask_rule("<<full_weekdays>>", rf"{FULL_WEEKDAY}(?!s)", _weekday, _WEEKDAY_SAYS, tail=NAME_TAIL),
    ask_rule("on", r"on (?-i:(?P<wd><<capital_weekdays>>))\.?", _weekday, _WEEKDAY_SAYS),
    ask_rule("<<short_weekdays>>", r"(?P<wd><<short_weekdays>>)\.?", _weekday, _DATE, latent=True, tail=NAME_TAIL),
    ask_rule("hier", r"hier", _yesterday, _DATE),
    ask_rule("tomorrows tmr", r"tomorrows|tmr", lambda _, moment: days_from(moment.today + timedelta(days=1)), _DATE),
    ask_rule(
        "the at on over during am im en <<near>>",
        rf"(?:(?:(?:at|on|over|during|en) )?(?:the )?(?:this )?{NEAR}|(?:(?:at|on|over|during) )?the|am) (?:{_WEEKEND})(?!s)",
        _weekend,
        _WEEKEND_SAYS,
    ),
    ask_rule("weekend week wochenende fin", rf"(?:{_WEEKEND})(?!s)", _weekend, _WEEKEND_SAYS, latent=True),
    ask_rule("le el", rf"(?:le|el) (?:week-?end|fin de semana) (?P<rel>{BACK}|{ON})", _weekend, _WEEKEND_SAYS),
    ask_rule("el", r"el (?P<rel>próximo|pasado|último) fin de semana", _weekend, _WEEKEND_SAYS),
    ask_rule(
        f"q1 q2 q3 q4 # the le el {IN} <<ordinals>>",
        rf"(?:(?:in|im|au|en) )?(?:the |le |el )?(?:q(?P<q>[1-4])|{ORDINAL} (?:quarter|qtr|quartals?|trimestre))"
        rf"(?:,? (?:of |de |del |in )?{ANY_YEAR})?(?! (?:of|mile|pound|inch|cup))",
        _quarter,
        _QUARTER_SAYS,
        tail=r"(?!\w|-(?!q[1-4]\b)[^\W\d_])",
    ),
    ask_rule("t1 t2 t3 t4", rf"t(?P<q>[1-4])(?P<ord>) {YEAR}", _quarter, _QUARTER_SAYS),
    ask_rule("#", r"(?P<year>(?:(?:19|20)\d\d[ -]?)|\d\d)q(?P<q>[1-4])(?P<ord>)", _quarter, _QUARTER_SAYS),
    ask_rule(
        "h1 h2 the first second in",
        rf"(?:h(?P<half>[12])|(?:in )?(?:the )?(?P<ord>first|second) half of) {YEAR}",
        _half_year,
        "half a year",
    ),
    ask_rule(
        "in the # during",
        r"(?:(?:in|during) )?(?:the )?(?P<century>19|20)?['’]?(?P<decade>[0-9])0['’]?s",
        _decade,
        "ten whole years",
    ),
    ask_rule("in the during", r"(?:(?:in|during) )?the (?P<century>)(?P<decade><<decades>>)", _decade, "ten whole years"),
)
