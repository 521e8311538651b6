"""Rules for questions: holidays, by the calendars that fix them. Part of the grammar of `timerules`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import cache, partial

from perdure.engine import timemoons as moons
from perdure.engine.calendars import Moment, Stretch, Turn, days_from, midnight, week_of
from perdure.engine.timedates import full_year
from perdure.engine.timefeastdays import (
    CHINESE,
    EASTER,
    FIXED,
    FRI,
    HINDU,
    ISLAMIC,
    MON,
    ORTHODOX,
    SAT,
    SUN,
    THU,
    TUE,
    UNSURE,
    WEEKDAY_FEASTS,
)
from perdure.engine.timegrammar import BACK, NEAR_STARTS, ON, THIS, Rule, asked, compiled, way

Feast = Callable[[int], date]
Days = int | Callable[[int], int]
Hours = tuple[float, float]


def easter(year: int) -> date:
    """Western Easter Sunday (Meeus/Jones/Butcher)."""
    century, rest = divmod(year, 100)
    golden = year % 19
    shift = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - shift - rest % 4) % 7
    late = (golden + 11 * shift + 22 * weekday) // 451
    month, day = divmod(shift + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def orthodox_easter(year: int) -> date:
    """Eastern Easter Sunday (Meeus, Julian), on the calendar of today."""
    shift = (19 * (year % 19) + 15) % 30
    weekday = (2 * (year % 4) + 4 * (year % 7) - shift + 34) % 7
    month, day = divmod(shift + weekday + 114, 31)
    return date(year, month, day + 1) + timedelta(days=year // 100 - year // 400 - 2)


def nth(year: int, *, month: int, weekday: int, place: int) -> date:
    """That weekday of the month; counted from its end if `place` is negative."""
    if place > 0:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (place - 1))
    last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return last - timedelta(days=(last.weekday() - weekday) % 7 + 7 * (-place - 1))


def _black_friday(year: int) -> date:
    return nth(year, month=11, weekday=THU, place=4) + timedelta(days=1)


def _beside(feast: Feast, days: int, year: int) -> date:
    return feast(year) + timedelta(days=days)


def _nearest_workday(year: int, *, month: int, day: int) -> date:
    wanted = date(year, month, day)
    return wanted + timedelta(days={SAT: -1, SUN: 1}.get(wanted.weekday(), 0))


def _after(weekday: int, feast: Feast, days: int, year: int) -> date:
    """That weekday on or after the feast, and so many days on."""
    first = feast(year)
    return first + timedelta(days=(weekday - first.weekday()) % 7 + days)


def _earth_hour(year: int) -> date:
    """The last Saturday of March, a week earlier on the eve of Easter; in 2025 so too, for Ramadan."""
    day = nth(year, month=3, weekday=SAT, place=-1)
    return day - timedelta(days=7 if year == 2025 or day + timedelta(days=1) == easter(year) else 0)


def _fixed(year: int, *, month: int, day: int) -> date:
    return date(year, month, day)


# From the evening before: names, the day as a function, and with how many days from that evening on.
_PASSOVER = 163


def _spring(days: int) -> Feast:
    return partial(moons.hebrew_spring, days_before_new_year=_PASSOVER - days)


def _autumn(days: int) -> Feast:
    return partial(moons.hebrew, days_after_new_year=days)


_JEWISH: tuple[tuple[str, Feast, int], ...] = (
    ("rosh ha-?shanah|rosh ha-?shana|rosh ha-?shannah?|jewish new year|yom teruah", _autumn(0), 3),
    ("yom kipp?ur|(?:the )?day of atonement", _autumn(9), 2),
    ("sukk?ot[h]?|succoth?|succos|sukkos|feast of (?:tabernacles|booths|the ingathering)", _autumn(14), 9),
    ("she?mini atzeret", _autumn(21), 2),
    ("simc?hat torah?|simchas torah", _autumn(22), 2),
    ("c?hann?ukk?ah?|jewish festival of lights", moons.hanukkah, 9),
    ("tu bi?['’]?sh[e]?vat", moons.tu_bishvat, 2),
    ("purim", _spring(-30), 2),
    ("passover|pesa(?:ch|kh|h)", _spring(0), 9),
    ("yom ha-?shoah?|holocaust(?: remembrance)? day", partial(moons.but_not_on, _spring(12), {FRI: -1, SUN: 1}), 2),
    ("yom ha['’]?atzmaut|israeli independence day", partial(moons.but_not_on, _spring(20), {FRI: -1, SAT: -2, MON: 1}), 2),
    ("yom ha['’]?zikaron", partial(moons.but_not_on, _spring(19), {THU: -1, FRI: -2, SUN: 1}), 2),
    ("yom yerushalayim|jerusalem day", _spring(43), 2),
    ("lag (?:b['’]|ba['’]?|la)[ -]?omer", _spring(33), 2),
    ("shavuot|shavuoth|shavout|shavuos|feast of weeks", _spring(50), 3),
    ("tisha b['’]?av|tish['’]?a b['’]?av", partial(moons.but_not_on, _spring(112), {SAT: 1}), 2),
)


_FROM_EVENING = frozenset(names for names, _, _ in _JEWISH)


def _full_moon(at: str) -> Feast:
    return partial(moons.hindu, month="vaishakha", tithi=15, at=at)


def _agreed(one: Feast, two: Feast, year: int) -> date:
    """The day, where all lands keep the same one."""
    day = one(year)
    if two(year) != day:
        raise ValueError("lands keep different days that year")
    return day


_DISPUTED: tuple[tuple[str, Feast, Days], ...] = (
    ("buddha (?:purnima|jayanti)", partial(_agreed, _full_moon("sunrise"), _full_moon("evening")), 1),
)
"""Feasts that have no day in some years."""


def _parsi_new_year(year: int) -> date:
    return date(2018, 8, 17) + timedelta(days=365 * (year - 2018))


def _kings_day(year: int) -> date:
    day = date(year, 4, 27)
    return day - timedelta(days=1) if day.weekday() == SUN else day


_RAMADAN = "(?:month of )?(?:ramadan|ramadhan|ramazan)"
_LAST_FRIDAY = "jamat[- ]ul[- ]vida|jumu['’]?at[- ]?ul[- ](?:wida|vida)['’]?a?h?|jumatul[- ](?:wida|vida)"


def _lunar() -> list[tuple[str, Feast, Days]]:
    return [
        *((names, partial(moons.islamic_day, month=month, day=day), 1) for names, month, day in ISLAMIC),
        (_RAMADAN, partial(moons.islamic_day, month=9, day=1), partial(moons.islamic_month_days, month=9)),
        (_LAST_FRIDAY, moons.last_friday_of_ramadan, 1),
        *(
            (names, partial(moons.hindu, month=month, tithi=tithi, at=at, days=days), 9 if "navaratri" in names else 1)
            for names, month, tithi, at, days in HINDU
        ),
        *((names, partial(_beside, feast, -1), days) for names, feast, days in _JEWISH),
        ("lohri|bhogi(?: pongal)?", partial(moons.sun_enters, sign=9, days=-1), 1),
        ("(?:thai |surya )?pongal|maghi|makara? sankranti", partial(moons.sun_enters, sign=9), 1),
        ("mattu pongal", partial(moons.sun_enters, sign=9, days=1), 1),
        ("kaanum pongal|kanni pongal", partial(moons.sun_enters, sign=9, days=2), 1),
        ("vaish?akhi|baisakhi|vaisakhadi|vaishakhi|vasakhi", partial(moons.sun_enters, sign=0, sunset=24), 1),
        ("puthandu|tamil new year|vishu", partial(moons.sun_enters, sign=0), 1),
        (
            "(?:chinese|lunar|chinese lunar) new year(?:['’]?s)?(?: day)?|spring festival|chinesisches neujahr",
            moons.chinese_new_year,
            1,
        ),
        (
            "(?:chinese|lunar|chinese lunar) new year(?:['’]?s)? eve",
            partial(_beside, moons.chinese_new_year, -1),
            1,
        ),
        *((names, partial(moons.chinese_day, month=month, day=day), 1) for names, month, day in CHINESE),
        ("(?:thiruv)?onam", partial(moons.moon_in, mansion=21, sign=4, hours=6.25), 1),
        ("thai ?pusam", partial(moons.moon_in, mansion=7, sign=9, hours=12), 1),
        ("parsi new year|jamshedi nav?roz|jamshedi nowruz", _parsi_new_year, 1),
        ("king['’]?s day|koningsdag", _kings_day, 1),
        ("rabindra(?:nath)? jayanti", partial(_fixed, month=5, day=9), 1),
    ]


def _advent(year: int) -> date:
    """The fourth Sunday before Christmas."""
    return _after(SUN, partial(_fixed, month=11, day=27), 0, year)


def _labor_day(year: int) -> date:
    return nth(year, month=9, weekday=MON, place=1)


def _sure() -> dict[str, Callable[[int], bool]]:
    """For feasts that are announced by sight, in which years their day is certain."""
    ramadan = partial(moons.islamic_day_sure, month=9, day=1, whole=True)
    return {
        **{names: partial(moons.islamic_day_sure, month=month, day=day) for names, month, day in ISLAMIC},
        **{names: partial(moons.hindu_sure, month=month, tithi=tithi, at=at) for names, month, tithi, at, _ in HINDU},
        _RAMADAN: ramadan,
        _LAST_FRIDAY: ramadan,
    }


_HOURS_OF_IT: dict[str, Hours] = {"earth hour": (20.5, 21.5)}


@cache
def feasts() -> tuple[tuple[str, Feast, Days], ...]:
    """Names, as patterns; when it begins in a year; and how many days it has."""
    found: list[tuple[str, Feast, Days]] = [
        *((names, partial(_fixed, month=month, day=day), 1) for (month, day), names in FIXED.items()),
        *(
            (names, partial(nth, month=month, weekday=weekday, place=place), 1)
            for names, month, weekday, place in WEEKDAY_FEASTS
        ),
        *((names, partial(_beside, easter, days), 1) for names, days in EASTER),
        *((names, partial(_beside, orthodox_easter, days), 1) for names, days in ORTHODOX),
        ("black friday", _black_friday, 1),
        ("cyber monday", partial(_beside, _black_friday, 3), 1),
        ("boss['’]?s?['’]? day", partial(_nearest_workday, month=10, day=16), 1),
        ("fastenzeit|carême|cuaresma", partial(_beside, easter, -46), 46),
        ("lent", partial(_beside, easter, -46), 46),
        ("epiphany", partial(_fixed, month=1, day=6), 1),
        ("new year", partial(_fixed, month=1, day=1), 1),
        ("nye", partial(_fixed, month=12, day=31), 1),
        ("martin luther king", partial(nth, month=1, weekday=MON, place=3), 1),
        ("the night journey", partial(moons.islamic_day, month=7, day=27), 1),
        ("advent", _advent, lambda year: (date(year, 12, 25) - _advent(year)).days),
        ("advent sunday|(?:the )?first sunday (?:of|in) advent", _advent, 1),
        ("(?:feast of )?christ the king(?: sunday)?", partial(_beside, _advent, -7), 1),
        ("small business saturday", partial(_beside, _black_friday, 1), 1),
        ("giving tuesday", partial(_beside, _black_friday, 4), 1),
        ("kwanzaa", partial(_fixed, month=12, day=26), 7),
        ("(?:national )?grandparents?['’]?s?['’]? day", partial(_beside, _labor_day, 6), 1),
        ("(?:us )?election day", partial(_after, TUE, partial(_fixed, month=11, day=2), 0), 1),
        ("victoria day", partial(_after, MON, partial(_fixed, month=5, day=18), 0), 1),
        (
            "administrative professionals?['’]? day|secretary['’]?s day|secretaries['’]? day|admin(?: professionals)? day",
            partial(_beside, partial(nth, month=4, weekday=SAT, place=-1), -3),
            1,
        ),
        ("earth hour", _earth_hour, 1),
        ("(?:the )?(?:spring|vernal|march) equinox", partial(moons.sun_at, degrees=0), 1),
        ("(?:the )?(?:summer|june) solstice", partial(moons.sun_at, degrees=90), 1),
        ("(?:the )?(?:autumn|autumnal|fall|september) equinox", partial(moons.sun_at, degrees=180), 1),
        ("(?:the )?(?:winter|december) solstice", partial(moons.sun_at, degrees=270), 1),
        *_lunar(),
        ("holy week|karwoche|semana santa|semaine sainte", partial(_beside, easter, -7), 7),
    ]
    return tuple(found)


def _long_weekend(day: date) -> Stretch:
    """`Labor Day weekend`: Saturday and Sunday with the feast, if that is beside them."""
    saturday = day + timedelta(days=(SAT - day.weekday()) % 7 - (7 if day.weekday() in (MON, TUE, SUN) else 0))
    first, last = min(day, saturday), max(day, saturday + timedelta(days=1))
    return days_from(first, (last - first).days + 1)


# Many lands have a feast of that name, on other days.
_ABROAD = r"\b(?!american|christian)[a-z]+(?:[iu]an|ish|ese|ican|utch|reek|rench|wiss|erman) $"


def _feast(
    match: re.Match[str],
    moment: Moment,
    *,
    feast: Feast,
    days: Days,
    hours: Hours | None = None,
    sure: Callable[[int], bool] | None = None,
) -> Stretch | None:
    groups = match.groupdict()
    if compiled(_ABROAD).search(match.string, max(0, match.start() - 16), match.start()):
        return None

    def make(year: int) -> Stretch:
        if sure and not sure(year):
            raise ValueError("reckonings differ in that year")
        first = feast(year)
        if groups.get("weekend"):
            return _long_weekend(first)
        if groups.get("week"):
            return days_from(week_of(first, moment.week_start), 7)
        if hours:
            low, high = (midnight(first) + timedelta(hours=hour) for hour in hours)
            return Stretch(low, high, clock=True)
        return days_from(first, days if isinstance(days, int) else days(year))

    if groups.get("year"):
        return make(full_year(groups["year"]))
    if groups.get("of"):
        return make(moment.today.year + way(match["of"]))
    if groups.get("beyond"):
        sign = -1 if "before" in match["beyond"].lower() else 1
        near = _nearest(make, moment, sign, whole=True)
        return make(near.low.year + sign)
    return _nearest(make, moment, moment.tense or 1, whole=False)


def _nearest(make: Callable[[int], Stretch], moment: Moment, tense: int, *, whole: bool) -> Stretch:
    """The next or the last one; with `whole`, the last one that is over."""
    year, this = moment.today.year, make(moment.today.year)
    if tense > 0 and this.high <= moment.now:
        year += 1
    elif tense < 0 and (this.high if whole else this.low) > moment.now:
        year -= 1
    return replace(make(year), yearly=make, grain="feast")


def _near(match: re.Match[str], _: Moment) -> Turn:
    """`last Christmas`, `this Thanksgiving`."""
    tense = way(match["rel"]) or 1

    def picked(feast: Stretch, moment: Moment) -> Stretch | None:
        if feast.grain != "feast" or feast.yearly is None:
            return None
        return replace(_nearest(feast.yearly, moment, tense, whole=True), yearly=None, grain="")

    return Turn(picked)


def _starts(names: str) -> set[str]:
    """The words that the alternatives of `names` can begin with: each letter and group before `?` may be left out."""
    words: set[str] = set()
    for name in re.split(r"\|(?![^(]*\))", names):
        forms = {""}
        for token in re.findall(r"\(\?:[^)]*\)\??|\[[^]]*\]\??|\\?.\??", name):
            choices = (
                token.rstrip("?")[3:-1].split("|")
                if token.startswith("(")
                else list(token.rstrip("?").strip("[]").lstrip("\\"))
            )
            forms = {form + choice for form in forms for choice in (*choices, *([""] if token.endswith("?") else []))}
            if all(" " in form.strip() for form in forms):
                break
        words.update(re.split(r"[\W_]", form.strip())[0].lower() for form in forms)
    return words


_NOT_OF_IT = (
    r"(?! (?:gifts?|presents?|trees?|cards?|songs?|carols?|costumes?|decorations?|cookies?|markets?|movies?|films?|"
    r"lights|sweaters?|horror|party)\b)"
)
_IN_YEAR = (
    r"(?:,? (?:of |in |de )?(?P<year>(?:19|20)\d\d|['’]\d\d)| (?:of )?(?P<of>this|last|next) year|"
    r"(?P<beyond> (?:before last|after next)))?"
)


@cache
def rules() -> tuple[Rule, ...]:
    """One rule per feast, and one for the words that say which of them."""
    found = (
        asked(
            _starts(names),
            rf"(?:{names})(?:(?P<weekend> weekend)|(?P<week> week))?{_IN_YEAR}{_NOT_OF_IT}",
            partial(_feast, feast=feast, days=days, hours=_HOURS_OF_IT.get(names), sure=_sure().get(names)),
            "a holiday, from the evening before" if names in _FROM_EVENING else "a holiday",
            latent=names in UNSURE,
        )
        for names, feast, days in (*feasts(), *_DISPUTED)
    )
    return (
        asked(f"the {NEAR_STARTS}", rf"(?:the )?(?P<rel>{THIS}|{BACK}|{ON}|upcoming)", _near, "the holiday next to now"),
        *found,
    )
