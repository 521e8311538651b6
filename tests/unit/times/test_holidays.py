"""Holidays: their days as calendars have them, by day of the month, by weekday and by Easter, in four languages."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import cache

import pytest

from perdure.engine.times.holidays import Holiday, easter, holidays, nth
from perdure.engine.times.mentions import find_times
from perdure.engine.times.question import extract_time_range

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)
KEPT = """
Christmas 2024; Xmas 2024; Weihnachten 2024; Noël 2024; Navidad 2024 | 2024-12-25
Christmas Eve 2024; Heiligabend 2024; Nochebuena 2024 | 2024-12-24
Boxing Day 2024; St Stephen's Day 2024 | 2024-12-26
New Year's Eve; New Years Eve; Silvester; Saint-Sylvestre; Nochevieja; last New Year’s Eve | 2025-12-31
New Year's Day 2025; Neujahr 2025; jour de l'an 2025; Año Nuevo 2025; New Year 2025 | 2025-01-01
Epiphany 2024; Heilige Drei Könige 2024; Épiphanie 2024; día de reyes 2024 | 2024-01-06
Valentine's Day 2024; Valentinstag 2024; Saint-Valentin 2024; San Valentín 2024 | 2024-02-14
International Women's Day 2024; día de la mujer 2024 | 2024-03-08
St. Patrick's Day 2024; Saint Patricks Day 2024 | 2024-03-17
April Fools' Day 2024 | 2024-04-01
May Day 2024; Tag der Arbeit 2024; fête du travail 2024; día del trabajo 2024 | 2024-05-01
Juneteenth 2024 | 2024-06-19
Independence Day 2024; the Fourth of July 2024 | 2024-07-04
Bastille Day 2024; fête nationale 2024 | 2024-07-14
Assumption Day 2024; Mariä Himmelfahrt 2024; Assomption 2024 | 2024-08-15
Tag der Deutschen Einheit 2024 | 2024-10-03
Halloween 2024 | 2024-10-31
All Saints' Day 2024; Allerheiligen 2024; Toussaint 2024; Todos los Santos 2024 | 2024-11-01
Day of the Dead 2024; Día de los Muertos 2024 | 2024-11-02
Veterans Day 2024; Remembrance Day 2024; Martinstag 2024 | 2024-11-11
Saint Nicholas Day 2024; Nikolaustag 2024 | 2024-12-06
MLK day 2025; Martin Luther King Jr. Day 2025 | 2025-01-20
Presidents' Day 2025 | 2025-02-17
Mother's Day 2025; Mothers Day 2025; Muttertag 2025 | 2025-05-11
Memorial Day 2024 | 2024-05-27
Father's Day 2024; fête des pères 2024 | 2024-06-16
Labor Day 2024; Labour Day 2024 | 2024-09-02
Labor Day weekend 2024 | 2024-08-31
Columbus Day 2024; Indigenous Peoples' Day 2024; Canadian Thanksgiving 2024 | 2024-10-14
Thanksgiving 2024; Thanksgiving weekend 2024 | 2024-11-28
Black Friday 2024 | 2024-11-29
Cyber Monday 2024 | 2024-12-02
Karneval 2024; Fasching 2024; carnaval 2024; Carnival 2024 | 2024-02-08
Rosenmontag 2024 | 2024-02-12
Mardi Gras 2024; Shrove Tuesday 2024 | 2024-02-13
Ash Wednesday 2024; Aschermittwoch 2024; miércoles de ceniza 2024 | 2024-02-14
Holy Week 2024; Karwoche 2024; Semana Santa 2024; Palm Sunday 2024 | 2024-03-24
Maundy Thursday 2024; Gründonnerstag 2024; jeudi saint 2024; Jueves Santo 2024 | 2024-03-28
Good Friday 2024; Karfreitag 2024; vendredi saint 2024; Viernes Santo 2024 | 2024-03-29
Easter 2024; Ostern 2024; Pâques 2024; Pascua 2024 | 2024-03-31
Easter Monday 2024; Ostermontag 2024; lundi de Pâques 2024 | 2024-04-01
Ascension Day 2024; Christi Himmelfahrt 2024; Vatertag 2024 | 2024-05-09
Pentecost 2024; Whit Sunday 2024; Pfingsten 2024; Pentecôte 2024; Pentecostés 2024 | 2024-05-19
Whit Monday 2024; Pfingstmontag 2024; lundi de Pentecôte 2024 | 2024-05-20
Corpus Christi 2024; Fronleichnam 2024 | 2024-05-30
last Christmas; Christmas last year | 2025-12-25
this Christmas | 2026-12-25
next Easter | 2027-03-28
last Easter | 2026-04-05
"""


def first_day(words: str) -> str:
    found = extract_time_range(words, NOW, "UTC")
    assert found is not None
    assert found.start is not None
    assert found.words in (words, words.removeprefix("the "))
    return found.start.strftime("%Y-%m-%d")


def rows() -> list[tuple[str, str]]:
    lines = (line.split(" | ") for line in KEPT.strip().splitlines())
    return [(words, day) for names, day in lines for words in names.split("; ")]


@pytest.mark.parametrize(("words", "day"), rows())
def test_a_holiday_begins_on_its_day(words: str, day: str) -> None:
    assert first_day(words) == day


def test_easter_falls_where_calendars_say() -> None:
    days = [str(easter(year)) for year in (1954, 2000, 2019, 2024, 2038)]
    assert days == ["1954-04-18", "2000-04-23", "2019-04-21", "2024-03-31", "2038-04-25"]


def test_weekdays_of_a_month_are_counted_from_both_ends() -> None:
    assert nth(2024, month=11, weekday=3, place=4) == date(2024, 11, 28)
    assert nth(2024, month=12, weekday=1, place=-1) == date(2024, 12, 31)


@cache
def named() -> dict[str, list[Holiday]]:
    names: dict[str, list[Holiday]] = {}
    for holiday in holidays():
        for name in holiday.names | holiday.unsure:
            names.setdefault(name, []).append(holiday)
    return names


def test_no_name_is_that_of_two_holidays() -> None:
    assert [name for name, found in named().items() if len(found) > 1] == []


@pytest.mark.parametrize("year", [1975, 2001, 2024, 2049])
def test_every_holiday_has_a_day_in_its_year(year: int) -> None:
    for holiday in holidays():
        assert holiday.first(year).year == year, holiday.names
        assert 1 <= holiday.days <= 46, holiday.names


@pytest.mark.parametrize("name", sorted(named()))
def test_every_name_is_read(name: str) -> None:
    (holiday,) = named()[name]
    found = extract_time_range(f"{name} 2023", NOW, "UTC")
    assert found is not None
    assert found.start is not None
    assert found.end is not None
    assert (found.start.date(), found.end - found.start) == (holiday.first(2023), timedelta(days=holiday.days))


@pytest.mark.parametrize(
    "text",
    [
        "Ramadan 2024",
        "What did we cook at Diwali?",
        "Chinese New Year 2025",
        "Lunar New Year's Eve 2024",
        "Who came for Rosh Hashanah?",
        "Hanukkah",
        "the first Sunday of Advent 2024",
        "Orthodox Easter 2024",  # by another calendar
        "Greek Easter 2024",
        "Coptic Christmas",
    ],
)
def test_feasts_after_the_moon_and_of_other_calendars_are_not_read(text: str) -> None:
    assert extract_time_range(text, NOW, "UTC") is None
    assert find_times(text, NOW, "UTC") == []


def test_a_year_beside_a_feast_that_is_not_read_is_still_a_time() -> None:
    assert first_day("last year") == "2025-01-01"
    found = extract_time_range("What did we cook at Diwali last year?", NOW, "UTC")
    assert found is not None
    assert found.words == "last year"


@pytest.mark.parametrize("text", ["Who was Martin Luther King?", "We went to the carnival", "Christmas cookies", "he lent it"])
def test_names_of_other_meanings_are_not_always_holidays(text: str) -> None:
    assert extract_time_range(text, NOW, "UTC") is None


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("I was there last Christmas", "2025-12-25"),
        ("We'll meet on New Years Eve.", "2026-12-31"),
        ("we met on Halloween", "2025-10-31"),
        ("die Feier an Silvester", "2026-12-31"),
        ("il est venu à Noël 2024", "2024-12-25"),
        ("Boxing Day was fun", "2025-12-26"),
    ],
)
def test_messages_name_holidays_with_a_day_of_the_month(text: str, day: str) -> None:
    (mention,) = find_times(text, NOW, "UTC")
    assert mention.first.strftime("%Y-%m-%d") == day
