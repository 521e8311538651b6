"""Rules for questions: seasons, three whole months each. Part of the grammar of `timerules`."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date

from perdure.engine.calendars import Moment, Stretch, midnight, month_start
from perdure.engine.timedates import ANY_YEAR, IN, NEAR, full_year
from perdure.engine.timegrammar import BACK, NEAR_STARTS, ON, YEAR, Rule, asked, way
from perdure.engine.timetables import SEASONS, any_of


def _season(match: re.Match[str], moment: Moment) -> Stretch:
    groups = match.groupdict()
    start_month, rel = SEASONS[match["season"].lower()], groups.get("rel") or ""

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
_ANY_SEASON = rf"(?P<season>{any_of(SEASONS)})"

RULES: tuple[Rule, ...] = (
    asked(
        f"the l el {IN}{NEAR_STARTS}",
        rf"(?:(?:in|during|over|im|en|au) )?(?:the |l['’]|el )?{NEAR} {_ANY_SEASON}",
        _season,
        _SEASON_SAYS,
    ),
    asked(f"the {NEAR_STARTS}", rf"(?:the )?{NEAR} season", _season_near, _SEASON_SAYS, latent=True),
    asked("l le el la", rf"(?:l['’]|le |el |la ){_ANY_SEASON} (?P<rel>{BACK}|{ON})", _season, _SEASON_SAYS),
    asked(
        f"the l el la {IN}" + " ".join(SEASONS),
        rf"(?:(?:in|during|over|im|en|au) )?(?:the |l['’]|el |la )?{_ANY_SEASON},? (?:of |in |de )?{ANY_YEAR}"
        r"(?:[/–-](?:20)?\d\d)?",
        _season,
        _SEASON_SAYS,
    ),
    asked(
        IN,
        rf"(?:in the|during the|over the|im|en|en el|au) {_ANY_SEASON}(?! (?:of|down|line|back|asleep)\b)",
        _season,
        _SEASON_SAYS,
    ),
    asked(
        "since until till", rf"(?P<lead>since|until|till) the {_ANY_SEASON}(?:,? (?:of )?{YEAR})?", _season_led, _SEASON_SAYS
    ),
    asked(SEASONS.keys() | {"in"}, rf"(?:in )?{_ANY_SEASON}", _season, _SEASON_SAYS, latent=True),
)
