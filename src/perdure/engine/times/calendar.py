"""Stretches of local clock time: days, weeks, months, quarters and years of the calendar, and those near a day.

No zone is known here, and no text: `rules` says which words mean what, `mentions` makes instants of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from typing import Literal

from perdure.domain.values import dataclass

TimeKind = Literal["point", "span", "since", "until", "recurring"]


@dataclass(frozen=True, slots=True)
class Moment:
    """When the text was written, on the writer's clock, and which way its tense points: -1, 0 or 1."""

    now: datetime
    tense: int
    week_start: int = 0
    """The weekday on which weeks begin, Monday is 0."""
    asked: bool = False
    """The words are those of a question, in which parts of a day, month or year are meant widely."""
    cue: int = 0
    """The tense, as far as the words around say it; 0 if it was only assumed."""

    @property
    def today(self) -> date:
        return self.now.date()


@dataclass(frozen=True, slots=True)
class Stretch:
    """What a rule makes of its words: local clock times without a zone."""

    low: datetime
    high: datetime
    kind: TimeKind = "point"
    cron: str | None = None
    clock: bool = False
    """A time of day; on its own, or as the end of a day's words."""
    loose: bool = False
    """The day is not said, only the time of it."""
    twelve: bool = False
    """The hour may be meant before noon or after it."""
    offset_min: int | None = None
    """The zone that the words name, as minutes east of Greenwich; none is the writer's."""
    yearly: Callable[[int], Stretch] | None = None
    """What the words mean in another year, if the year is not said."""
    weekday: bool = False
    """Nothing but the name of a weekday, which a date beside it makes certain."""
    elapsed: tuple[timedelta, timedelta] | None = None
    """Counted from now in real time, whatever the clocks did since."""
    grain: str = ""
    """The unit that was named, where it matters to the words beside it."""

    @property
    def width(self) -> timedelta:
        return self.high - self.low

    def in_year(self, year: int) -> Stretch | None:
        """What the words mean in another year, if it has that day."""
        try:
            return self.yearly(year) if self.yearly else None
        except (ValueError, OverflowError):
            return None  # 29 February, or beyond the calendar


@dataclass(frozen=True, slots=True)
class Shift:
    """Words that make another time of the one that follows them: `the end of`, `two days before`."""

    apply: Callable[[Stretch, Moment], Stretch | None]


def midnight(day: date) -> datetime:
    return datetime.combine(day, time())


def days_from(first: date, count: int = 1) -> Stretch:
    return Stretch(midnight(first), midnight(first + timedelta(days=count)), "point" if count == 1 else "span")


def month_start(day: date, months: int) -> date:
    whole = day.year * 12 + day.month - 1 + months
    return date(whole // 12, whole % 12 + 1, 1)


def week_of(day: date, week_start: int = 0) -> date:
    """The first day of the week that holds `day`."""
    return day - timedelta(days=(day.weekday() - week_start) % 7)


def calendar_unit(unit: str, day: date, offset: int, week_start: int = 0) -> Stretch:
    """The unit of the calendar that holds `day`, or one `offset` units away."""
    if unit == "day":
        return days_from(day + timedelta(days=offset))
    if unit == "week":
        return days_from(week_of(day, week_start) + timedelta(weeks=offset), 7)
    size = {"month": 1, "quarter": 3, "year": 12}[unit]
    start = month_start(day, 0)
    start = month_start(start, -((start.month - 1) % size) + offset * size)
    return Stretch(midnight(start), midnight(month_start(start, size)), "span")


def real_time(now: datetime, start: timedelta, end: timedelta, kind: TimeKind = "span") -> Stretch:
    """The stretch between two distances from now."""
    return Stretch(now + start, now + end, kind, clock=True, elapsed=(start, end))


def same_day(day: date, months: int) -> date:
    """The same day some months away; the last day of a shorter month."""
    start = month_start(day, months)
    length = (month_start(start, 1) - start).days
    return start.replace(day=min(day.day, length))


def shifted(now: datetime, unit: str, count: int) -> datetime:
    if unit in ("day", "week"):
        return now + timedelta(**{f"{unit}s": count})
    size = {"month": 1, "quarter": 3, "year": 12}[unit]
    return datetime.combine(same_day(now.date(), size * count), now.time())


def year_for(month: int, day: int, moment: Moment) -> int:
    """The year of a date without one: before or after now as the tense says, else the nearer one."""
    year = moment.today.year
    this = date(year, month, min(day, 28))
    if moment.tense > 0:
        return year if this >= moment.today.replace(day=min(moment.today.day, 28)) else year + 1
    if moment.tense < 0:
        return year if this <= moment.today else year - 1
    years = (year - 1, year, year + 1)
    return min(years, key=lambda one: abs((date(one, month, min(day, 28)) - moment.today).days))
