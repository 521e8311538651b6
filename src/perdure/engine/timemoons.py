"""Days that sun and moon decide: the Hebrew, Islamic, Chinese and Hindu calendars, as far as feasts need them.

The Hebrew calendar is arithmetic. The others follow the moon: its place is computed to about a minute of time (Meeus,
Astronomical Algorithms, chapters 25 and 47, main terms), which names the day except where a phase falls near midnight or
sunset; there, and where a month is announced by sight, the day may be one off, which `islamic_day_sure` and `hindu_sure` tell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(2000, 1, 1, 12, tzinfo=UTC)
_LUNATION_DAYS = 29.530588861
_FIRST_NEW_MOON = 5.09766  # days from the epoch to the mean new moon of 6 January 2000
_YEARS_KEPT = 512

# Coefficient in millionths of a degree, and multiples of D, M, M', F: Meeus, table 47.A.
_MOON = (
    (6288774, 0, 0, 1, 0),
    (1274027, 2, 0, -1, 0),
    (658314, 2, 0, 0, 0),
    (213618, 0, 0, 2, 0),
    (-185116, 0, 1, 0, 0),
    (-114332, 0, 0, 0, 2),
    (58793, 2, 0, -2, 0),
    (57066, 2, -1, -1, 0),
    (53322, 2, 0, 1, 0),
    (45758, 2, -1, 0, 0),
    (-40923, 0, 1, -1, 0),
    (-34720, 1, 0, 0, 0),
    (-30383, 0, 1, 1, 0),
    (15327, 2, 0, 0, -2),
    (-12528, 0, 0, 1, 2),
    (10980, 0, 0, 1, -2),
    (10675, 4, 0, -1, 0),
    (10034, 0, 0, 3, 0),
    (8548, 4, 0, -2, 0),
    (-7888, 2, 1, -1, 0),
    (-6766, 2, 1, 0, 0),
    (-5163, 1, 0, -1, 0),
    (4987, 1, 1, 0, 0),
    (4036, 2, -1, 1, 0),
    (3994, 2, 0, 2, 0),
    (3861, 4, 0, 0, 0),
    (3665, 2, 0, -3, 0),
)


def _sun(days: float) -> float:
    """Apparent longitude of the sun in degrees, days after the epoch."""
    century = days / 36525
    anomaly = math.radians(357.5291092 + 35999.0502909 * century)
    centre = (
        (1.914602 - 0.004817 * century) * math.sin(anomaly)
        + 0.019993 * math.sin(2 * anomaly)
        + 0.000289 * math.sin(3 * anomaly)
    )
    return (280.46646 + 36000.76983 * century + centre - 0.00569) % 360


def _arguments(days: float) -> tuple[float, float, float, float]:
    """D, M, M' and F of Meeus, in radians."""
    century = days / 36525
    return (
        math.radians(297.8501921 + 445267.1114034 * century),
        math.radians(357.5291092 + 35999.0502909 * century),
        math.radians(134.9633964 + 477198.8675055 * century),
        math.radians(93.272095 + 483202.0175233 * century),
    )


def _elongation(days: float) -> float:
    """How far the moon is ahead of the sun in degrees: 0 when it is new, 180 when it is full."""
    d, m, mm, f = _arguments(days)
    moon = 218.3164477 + 481267.88123421 * days / 36525
    moon += sum(size * math.sin(a * d + b * m + c * mm + e * f) for size, a, b, c, e in _MOON) / 1e6
    return (moon - _sun(days)) % 360


def _when(degrees: float, near: float) -> float:
    """The day, counted from the epoch, nearest to `near` on which the moon is that far ahead of the sun."""
    for _ in range(8):
        off = (degrees - _elongation(near) + 180) % 360 - 180
        near += off / 360 * _LUNATION_DAYS
    return near


@lru_cache(_YEARS_KEPT * 12)
def new_moon(number: int) -> float:
    """The instant of a new moon, in days after the epoch; they are counted from January 2000."""
    return _when(0, _FIRST_NEW_MOON + number * _LUNATION_DAYS)


def _number_near(day: date) -> int:
    return round(((datetime(day.year, day.month, day.day, tzinfo=UTC) - _EPOCH).days - _FIRST_NEW_MOON) / _LUNATION_DAYS)


def _on_clock(days: float, hours_east: float) -> datetime:
    return _EPOCH + timedelta(days=days, hours=hours_east)


@lru_cache(_YEARS_KEPT)
def sun_at(year: int, *, degrees: int) -> date:
    """The day, in Greenwich, of an equinox or a solstice."""
    days = (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).days + (degrees + 79.5) % 360 * 1.0146
    for _ in range(5):
        days += ((degrees - _sun(days) + 180) % 360 - 180) * 1.0146
    return _on_clock(days, 0).date()


# The Hebrew calendar (Reingold and Dershowitz, Calendrical Calculations).


def _molad_days(year: int) -> int:
    months = (235 * year - 234) // 19
    days = 29 * months + (12084 + 13753 * months) // 25920
    return days + 1 if 3 * (days + 1) % 7 < 3 else days


@lru_cache(_YEARS_KEPT)
def hebrew_new_year(year: int) -> date:
    """The first of Tishri."""
    last, this, following = _molad_days(year - 1), _molad_days(year), _molad_days(year + 1)
    shift = 2 if following - this == 356 else 1 if this - last == 382 else 0
    return date.fromordinal(this + shift - 1373427)


def hebrew(year: int, *, days_after_new_year: int) -> date:
    """A day of the autumn of `year`, counted from Rosh Hashanah."""
    return hebrew_new_year(year + 3761) + timedelta(days=days_after_new_year)


def hebrew_spring(year: int, *, days_before_new_year: int) -> date:
    """A day of the spring or summer of `year`: from Nisan to Elul all months have their length."""
    return hebrew_new_year(year + 3761) - timedelta(days=days_before_new_year)


def tu_bishvat(year: int) -> date:
    """15 Shevat, which comes before one Adar or two."""
    leap = (hebrew_new_year(year + 3761) - hebrew_new_year(year + 3760)).days > 380
    return hebrew_spring(year, days_before_new_year=163 + (89 if leap else 59))


def but_not_on(feast: Callable[[int], date], moved: Mapping[int, int], year: int) -> date:
    """The feast, moved by so many days where it falls on certain weekdays."""
    day = feast(year)
    return day + timedelta(days=moved.get(day.weekday(), 0))


def hanukkah(year: int) -> date:
    """25 Kislev, which comes after Cheshvan of 29 or 30 days."""
    start, end = hebrew_new_year(year + 3761), hebrew_new_year(year + 3762)
    return start + timedelta(days=84 if (end - start).days % 10 == 5 else 83)


# The Islamic calendar.


_MECCA = (21.4225, 39.826)
_ANNOUNCED = 1973, 1999
"""Between these years the calendar of Umm al-Qura went by the day of the conjunction in Greenwich (van Gent); before them,
months are taken to begin after the first evening at six."""


_SEEN = {194: date(2015, 9, 15), 206: date(2016, 9, 3)}
"""Months of pilgrimage that were proclaimed by sight, a day later."""


@lru_cache(_YEARS_KEPT * 12)
def islamic(number: int) -> date:
    """The first day of a month, counted from January 2000, after Umm al-Qura: the day after the evening in Mecca on which the
    moon is past the sun and sets after it."""
    moon = new_moon(number)
    day = _on_clock(moon, 0).date()
    if number in _SEEN:
        return _SEEN[number]
    if _ANNOUNCED[0] <= day.year < _ANNOUNCED[1]:
        return day + timedelta(days=1)
    local = _on_clock(moon, 3)
    day = local.date()
    if day.year < _ANNOUNCED[0]:
        return day + timedelta(days=1 if local.hour < 18 else 2)
    return _after_moonset(moon, 0)


def _after_moonset(moon: float, slack: float) -> date:
    """The day after the evening in Mecca on which the moon is past the sun and sets after it, both by so much."""
    day = _on_clock(moon, 3).date()
    for _ in range(3):
        sunset = _sunset(day)
        day += timedelta(days=1)
        if sunset > moon + slack / 24 and _moon_height(sunset) > _MOONSET + slack:
            return day
    return day


_CHECKED = range(2010, 2026)
_FAR_YEAR = 2031
_SLACK, _FAR_SLACK = 0.75, 2.5
"""Hours of the moon's age, and degrees of its height: closer than that, other reckonings give another day."""


@lru_cache(_YEARS_KEPT * 12)
def islamic_sure(number: int) -> bool:
    """Whether all reckonings in use then begin that month on the same day."""
    moon = new_moon(number)
    year = _on_clock(moon, 0).year
    if year in _CHECKED:
        return True
    slack = _SLACK if year < _FAR_YEAR else _FAR_SLACK
    close = {_after_moonset(moon, slack), _after_moonset(moon, -slack)}
    if year < _ANNOUNCED[1]:
        close |= {_on_clock(moon, 0).date() + timedelta(days=1), islamic(number)}
    return len(close) == 1


_SUNSET, _MOONSET = -0.833, 0.125


def _height(longitude: float, latitude: float, days: float) -> float:
    """Height above the horizon of Mecca in degrees of a point on the sky, given by its ecliptic place."""
    tilt, lam, beta = (math.radians(one) for one in (23.4393, longitude, latitude))
    declination = math.asin(math.sin(beta) * math.cos(tilt) + math.cos(beta) * math.sin(tilt) * math.sin(lam))
    ascension = math.atan2(math.sin(lam) * math.cos(tilt) - math.tan(beta) * math.sin(tilt), math.cos(lam))
    north, east = math.radians(_MECCA[0]), _MECCA[1]
    hour = math.radians(280.46061837 + 360.98564736629 * days + east) - ascension
    return math.degrees(
        math.asin(math.sin(north) * math.sin(declination) + math.cos(north) * math.cos(declination) * math.cos(hour))
    )


def _sunset(day: date) -> float:
    """In days after the epoch."""
    low = (datetime(day.year, day.month, day.day, 13, tzinfo=UTC) - _EPOCH) / timedelta(days=1)
    high = low + 0.25
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if _height(_sun(middle), 0, middle) > _SUNSET else (low, middle)
    return low


def _moon_height(days: float) -> float:
    d, _, mm, f = _arguments(days)
    latitude = (
        5.128122 * math.sin(f) + 0.280602 * math.sin(mm + f) + 0.277693 * math.sin(mm - f) + 0.173237 * math.sin(2 * d - f)
    )
    latitude += 0.055413 * math.sin(2 * d - mm + f) + 0.046271 * math.sin(2 * d - mm - f) + 0.032573 * math.sin(2 * d + f)
    return _height(_sun(days) + _elongation(days), latitude, days)


_RAMADAN_2017 = 215  # its new moon


@lru_cache(_YEARS_KEPT)
def islamic_day(year: int, *, month: int, day: int) -> date:
    """The first such day of the Islamic calendar, whose years are shorter, in `year`."""
    first = _number_near(date(year, 1, 1)) - 1
    numbers = (number for number in range(first, first + 15) if (number - _RAMADAN_2017 + 8) % 12 + 1 == month)
    days = (islamic(number) + timedelta(days=day - 1) for number in numbers)
    return next(found for found in days if found.year == year)


def islamic_day_sure(year: int, *, month: int, day: int, whole: bool = False) -> bool:
    """Whether that day is certain; with `whole`, the end of its month too."""
    number = _number_near(islamic_day(year, month=month, day=day) - timedelta(days=day - 1))
    return islamic_sure(number) and (not whole or islamic_sure(number + 1))


def islamic_month_days(year: int, *, month: int) -> int:
    start = islamic_day(year, month=month, day=1)
    return (islamic(_number_near(start) + 1) - start).days


def last_friday_of_ramadan(year: int) -> date:
    last = islamic_day(year, month=9, day=1) + timedelta(days=islamic_month_days(year, month=9) - 1)
    return last - timedelta(days=(last.weekday() - 4) % 7)


# The Chinese calendar.


@lru_cache(_YEARS_KEPT)
def chinese_new_year(year: int) -> date:
    """The new moon between 21 January and 20 February, in Beijing."""
    number = _number_near(date(year, 1, 21))
    days = (_on_clock(new_moon(one), 8).date() for one in range(number - 1, number + 3))
    return next(day for day in days if day >= date(year, 1, 21))


@lru_cache(_YEARS_KEPT)
def chinese_day(year: int, *, month: int, day: int) -> date:
    """A day of the Chinese year that begins in `year`: a month is the one in which the sun enters its sign."""
    first = _number_near(chinese_new_year(year))
    degrees = (300 + 30 * month) % 360
    for number in range(first, first + 13):
        begin, end = (_on_clock(new_moon(one), 8).date() for one in (number, number + 1))
        low, high = (_sun(_at_midnight(one, 8)) for one in (begin, end))
        if (degrees - low) % 360 < (high - low) % 360:
            return begin + timedelta(days=day - 1)
    return chinese_new_year(year)


def _at_midnight(day: date, hours_east: float) -> float:
    """Days from the epoch to the beginning of that day."""
    return (datetime(day.year, day.month, day.day, tzinfo=UTC) - _EPOCH) / timedelta(days=1) - hours_east / 24


# The Hindu calendar: months from new moon to new moon, named by the sign that the sun enters; days by the moon's twelfths.

_INDIA_HOURS = 5.5
MONTHS = [
    "chaitra",
    "vaishakha",
    "jyeshtha",
    "ashadha",
    "shravana",
    "bhadrapada",
    "ashvina",
    "kartika",
    "margashirsha",
    "pausha",
    "magha",
    "phalguna",
]
_HOURS = {
    "sunrise": 6.25,
    "forenoon": 9.5,
    "noon": 12.0,
    "afternoon": 13.0,
    "dusk": 17.25,
    "evening": 18.25,
    "midnight": 24.0,
    "night": 24.0,
}
_LATER = ("dusk", "night")
"""Where two days in a row have that hour, the later one is kept."""


def _sign(days: float) -> int:
    """The sidereal sign of the sun, Aries is 0 (ayanamsa of Lahiri)."""
    ayanamsa = 23.853 + 0.013969 * days / 365.25
    return int((_sun(days) - ayanamsa) % 360 // 30)


@lru_cache(_YEARS_KEPT)
def _hindu_months(year: int) -> dict[str, int]:
    """The new moon that begins each month whose feasts fall into `year`; of two months of one name the second counts."""
    first = _number_near(date(year, 1, 1)) - 2
    found: dict[str, int] = {}
    for number in range(first, first + 16):
        name = MONTHS[(_sign(new_moon(number)) + 1) % 12]
        middle = _on_clock(new_moon(number), _INDIA_HOURS) + timedelta(days=15)
        if middle.year == year or (middle.year == year - 1 and middle.month == 12 and middle.day > 25):
            found[name] = number
    return found


def hindu_sure(year: int, *, month: str, tithi: int, at: str) -> bool:
    """Whether an hour more or less makes no difference, which it does where lands and schools differ."""
    if year in _CHECKED:
        return True
    return len({hindu(year, month=month, tithi=tithi, at=at, shift=shift) for shift in (-_SLACK, 0, _SLACK)}) == 1


@lru_cache(_YEARS_KEPT * 3)
def hindu(year: int, *, month: str, tithi: int, at: str, days: int = 0, shift: float = 0) -> date:
    """The day in India on which that thirtieth of the month, 1 to 30 from the new moon, prevails at that time of day."""
    start = new_moon(_hindu_months(year)[month])
    begins, ends = (
        _on_clock(_when(12 * one % 360, start + one * _LUNATION_DAYS / 30), _INDIA_HOURS) for one in (tithi - 1, tithi)
    )
    first = begins.replace(hour=0, minute=0, second=0, microsecond=0)
    held = [
        day.date()
        for day in (first + timedelta(days=one) for one in range(3))
        if begins <= day + timedelta(hours=_HOURS[at] + shift) < ends
    ]
    return (held[-1 if at in _LATER else 0] if held else begins.date()) + timedelta(days=days)


@lru_cache(_YEARS_KEPT)
def moon_in(year: int, *, mansion: int, sign: int, hours: float) -> date:
    """The last day in India of the solar month of `sign` on which the moon stands in that one of its 27 mansions then."""
    start = sun_enters(year, sign=sign)
    zero = (datetime(start.year, start.month, start.day, tzinfo=UTC) - _EPOCH) / timedelta(days=1) + (hours - _INDIA_HOURS) / 24
    held = [day for day in range(31) if _mansion(zero + day) == mansion and _sign(zero + day) == sign]
    return start + timedelta(days=held[-1] if held else 0)


def _mansion(days: float) -> int:
    """The sidereal mansion of the moon, Ashvini is 0."""
    ayanamsa = 23.853 + 0.013969 * days / 365.25
    return int((_sun(days) + _elongation(days) - ayanamsa) % 360 * 27 // 360)


@lru_cache(_YEARS_KEPT)
def sun_enters(year: int, *, sign: int, days: int = 0, sunset: int = 18) -> date:
    """The day in India on which the sun enters a sidereal sign; from the hour of `sunset` on, the next one."""
    low = (datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).days + (sign * 30 - 280 + 24) % 360 - 3.0
    while _sign(low) != sign:
        low += 1 / 96
    moment = _on_clock(low, _INDIA_HOURS)
    return moment.date() + timedelta(days=days + (1 if moment.hour >= sunset else 0))
