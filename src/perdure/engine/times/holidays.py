"""Rules for holidays and seasons. Part of the grammar of `rules`.

Holidays are days of the month, weekdays of a month, or days counted from Easter; their names and days are data: `holidays.toml`
beside this module. Seasons are three whole months each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from functools import cache, partial

from perdure.domain.values import dataclass, replace
from perdure.engine.times.calendar import Moment, Shift, Stretch, days_from, midnight, month_start, week_of, year_for
from perdure.engine.times.dates import ANY_YEAR, IN, NEAR, full_year
from perdure.engine.times.grammar import BACK, ON, THIS, YEAR, Rule, any_of, ask_rule, compiled, rule, vocabulary, way
from perdure.engine.words import table

_SATURDAY = 5


@dataclass(frozen=True, slots=True)
class Holiday:
    """Its names, its first day in a year, and how many days it has."""

    names: frozenset[str]
    unsure: frozenset[str]
    """Names of other meanings: a holiday where the text is nothing else."""
    first: Callable[[int], date]
    days: int = 1


def easter(year: int) -> date:
    """Easter Sunday (Meeus/Jones/Butcher)."""
    century, rest = divmod(year, 100)
    golden = year % 19
    shift = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - shift - rest % 4) % 7
    late = (golden + 11 * shift + 22 * weekday) // 451
    month, day = divmod(shift + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def nth(year: int, *, month: int, weekday: int, place: int) -> date:
    """That weekday of the month; counted from its end if `place` is negative."""
    if place > 0:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (place - 1))
    last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return last - timedelta(days=(last.weekday() - weekday) % 7 + 7 * (-place - 1))


@cache
def holidays() -> tuple[Holiday, ...]:
    """All that the table has."""
    known = table(__package__, "holidays.toml")
    found = [_holiday(names, partial(_dated, key)) for key, names in known["dates"].items()]
    found += [_holiday(names, partial(_on_weekday, key)) for key, names in known["weekdays"].items()]
    for key, names in known["easter"].items():
        first, last = (int(key.split()[end]) for end in (0, -1))
        found.append(replace(_holiday(names, partial(_from_easter, first)), days=last - first + 1))
    return tuple(found)


def _holiday(names: list[str], first: Callable[[int], date]) -> Holiday:
    sure, unsure = ([name for name in names if name.endswith("?") == so] for so in (False, True))
    return Holiday(_spelled(sure), _spelled(name.rstrip("?") for name in unsure), first)


def _spelled(names: Iterable[str]) -> frozenset[str]:
    """With either apostrophe, and without."""
    return frozenset(name.replace("'", mark) for name in names for mark in ("'", "’", ""))


def _dated(key: str, year: int) -> date:
    month, day = key.split("-")
    return date(year, int(month), int(day))


def _on_weekday(key: str, year: int) -> date:
    month, weekday, place, *after = key.split()
    day = nth(year, month=int(month), weekday=vocabulary().weekdays[weekday], place=int(place))
    return day + timedelta(days=int(after[0]) if after else 0)


def _from_easter(days: int, year: int) -> date:
    return easter(year) + timedelta(days=days)


def _long_weekend(day: date) -> Stretch:
    """`Labor Day weekend`: Saturday and Sunday with the holiday, if that is beside them."""
    early = day.weekday() in (0, 1, 6)
    saturday = day + timedelta(days=(_SATURDAY - day.weekday()) % 7 - (7 if early else 0))
    first, last = min(day, saturday), max(day, saturday + timedelta(days=1))
    return days_from(first, (last - first).days + 1)


def _is_another(match: re.Match[str]) -> bool:
    """Many lands and faiths have a holiday of that name, on other days."""
    others = any_of(table(__package__, "holidays.toml")["words"]["others"].split())
    before = rf"\b(?!american|christian)(?:{others}|[a-z]+(?:[iu]an|ish|ese|ican|utch|reek|rench|wiss|erman)) $"
    return compiled(before).search(match.string, max(0, match.start() - 16), match.start()) is not None


def _read(match: re.Match[str], moment: Moment, *, holiday: Holiday) -> Stretch | None:
    groups = match.groupdict()
    if _is_another(match):
        return None

    def make(year: int) -> Stretch:
        first = holiday.first(year)
        if groups.get("weekend"):
            return _long_weekend(first)
        if groups.get("week"):
            return days_from(week_of(first, moment.week_start), 7)
        return days_from(first, holiday.days)

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
    return replace(make(year), yearly=make, grain="holiday")


def _near(match: re.Match[str], _: Moment) -> Shift:
    """`last Christmas`, `this Thanksgiving`."""
    tense = way(match["rel"]) or 1

    def picked(day: Stretch, moment: Moment) -> Stretch | None:
        if day.grain != "holiday" or day.yearly is None:
            return None
        return replace(_nearest(day.yearly, moment, tense, whole=True), yearly=None, grain="")

    return Shift(picked)


_IN_YEAR = (
    r"(?:,? (?:of |in |de )?(?P<year>(?:19|20)\d\d|['’]\d\d)| (?:of )?(?P<of>this|last|next) year|"
    r"(?P<beyond> (?:before last|after next)))?"
)


# Seasons.


def _season(match: re.Match[str], moment: Moment) -> Stretch:
    groups = match.groupdict()
    start_month, rel = vocabulary().seasons[match["season"].lower()], groups.get("rel") or ""

    def make(year: int) -> Stretch:
        start = date(year, start_month, 1)
        return Stretch(midnight(start), midnight(month_start(start, 3)), "span")

    if groups.get("year"):
        return make(full_year(groups["year"]))
    year = moment.today.year - (1 if start_month == 12 and moment.today.month < 3 else 0)
    this, sign = make(year), way(rel) if rel else moment.tense
    if rel and sign == 0:
        return this
    if sign < 0 and (this.high > moment.now if rel else this.low > moment.now):
        year -= 1
    elif sign > 0 and (this.low <= moment.now if rel else this.high <= moment.now):
        year += 1
    return replace(make(year), yearly=None if rel else make)


def _season_led(match: re.Match[str], moment: Moment) -> Stretch:
    """`since the summer`, `until the winter`: one end is open."""
    since = match["lead"].lower() == "since"
    found = replace(_season(match, replace(moment, tense=-1 if since else 1)), yearly=None)
    return replace(found, kind="since") if since else replace(found, low=midnight(date.min), high=found.low, kind="until")


def _season_near(match: re.Match[str], moment: Moment) -> Stretch:
    start = month_start(moment.today, -(moment.today.month % 3) + 3 * way(match["rel"]))
    return Stretch(midnight(start), midnight(month_start(start, 3)), "span")


_SEASON_SAYS = "three whole months"
_ANY_SEASON = "(?P<season><<seasons>>)"

_SEASONS: tuple[Rule, ...] = (
    ask_rule(
        f"the l el {IN} <<near>>",
        rf"(?:(?:in|during|over|im|en|au) )?(?:the |l['’]|el )?{NEAR} {_ANY_SEASON}",
        _season,
        _SEASON_SAYS,
    ),
    ask_rule("the <<near>>", rf"(?:the )?{NEAR} season", _season_near, _SEASON_SAYS, latent=True),
    ask_rule("l le el la", rf"(?:l['’]|le |el |la ){_ANY_SEASON} (?P<rel>{BACK}|{ON})", _season, _SEASON_SAYS),
    ask_rule(
        f"the l el la {IN} <<seasons>>",
        rf"(?:(?:in|during|over|im|en|au) )?(?:the |l['’]|el |la )?{_ANY_SEASON},? (?:of |in |de )?{ANY_YEAR}"
        r"(?:[/–-](?:20)?\d\d)?",
        _season,
        _SEASON_SAYS,
    ),
    ask_rule(
        IN,
        rf"(?:in the|during the|over the|im|en|en el|au) {_ANY_SEASON}(?! (?:of|down|line|back|asleep)\b)",
        _season,
        _SEASON_SAYS,
    ),
    ask_rule(
        "since until till", rf"(?P<lead>since|until|till) the {_ANY_SEASON}(?:,? (?:of )?{YEAR})?", _season_led, _SEASON_SAYS
    ),
    ask_rule("in <<seasons>>", rf"(?:in )?{_ANY_SEASON}", _season, _SEASON_SAYS, latent=True),
)


@cache
def rules() -> tuple[Rule, ...]:
    """For questions: seasons, one rule per holiday, and one for the words that say which of them."""
    things = any_of(table(__package__, "holidays.toml")["words"]["things"].split())
    found = (
        ask_rule(
            names,
            rf"{any_of(map(re.escape, names))}(?:(?P<weekend> weekend)|(?P<week> week))?{_IN_YEAR}(?! {things}\b)",
            partial(_read, holiday=holiday),
            "a holiday",
            latent=names is holiday.unsure,
        )
        for holiday in holidays()
        for names in (holiday.names, holiday.unsure)
        if names
    )
    return (
        *_SEASONS,
        ask_rule("the <<near>>", rf"(?:the )?(?P<rel>{THIS}|{BACK}|{ON}|upcoming)", _near, "the holiday next to now"),
        *found,
    )


@cache
def said_rules() -> tuple[Rule, ...]:
    """For messages: holidays with a day of the month."""
    dates = table(__package__, "holidays.toml")["dates"]
    # `4th of July` is read as a date.
    sure = {key: [name for name in names if name[0].isalpha() and name[-1] != "?"] for key, names in dates.items()}
    days = {name: key for key, names in sure.items() for name in _spelled(names)}

    def resolve(match: re.Match[str], moment: Moment) -> Stretch | None:
        if _is_another(match):
            return None
        month, day = (int(part) for part in days[match["holiday"].lower()].split("-"))
        year = year_for(month, day, replace(moment, tense=way(match["rel"]) or moment.tense or 1))
        return days_from(date(int(match["year"]) if match["year"] else year, month, day))

    source = rf"(?:(?P<rel><<near.last>>|<<near.next>>) )?(?P<holiday>{any_of(map(re.escape, days))})(?: {YEAR})?"
    return (rule([*days, "<<near.last>>", "<<near.next>>"], source, resolve),)
