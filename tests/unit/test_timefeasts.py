"""Holidays: their days as calendars have them, by rule, by the moon and by the sun."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from perdure.engine import timemoons as moons
from perdure.engine.timefeasts import easter, feasts, nth, orthodox_easter
from perdure.engine.timeranges import extract_time_range

NOW = datetime(2026, 5, 13, 12, tzinfo=UTC)


def first_day(words: str) -> str:
    found = extract_time_range(words, NOW, "UTC")
    assert found is not None
    assert found.start is not None
    assert found.words == words
    return found.start.strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    ("words", "day"),
    [
        ("Christmas 2024", "2024-12-25"),
        ("New Year's Eve", "2025-12-31"),
        ("last Christmas", "2025-12-25"),
        ("this Christmas", "2026-12-25"),
        ("next Easter", "2027-03-28"),
        ("last Easter", "2026-04-05"),
        ("Thanksgiving 2024", "2024-11-28"),
        ("Black Friday 2024", "2024-11-29"),
        ("Cyber Monday 2024", "2024-12-02"),
        ("Memorial Day 2024", "2024-05-27"),
        ("Labor Day weekend 2024", "2024-08-31"),
        ("Thanksgiving weekend 2024", "2024-11-28"),
        ("MLK day 2025", "2025-01-20"),
        ("Mother's Day 2025", "2025-05-11"),
        ("Good Friday 2024", "2024-03-29"),
        ("Ash Wednesday 2024", "2024-02-14"),
        ("Pentecost 2024", "2024-05-19"),
        ("orthodox Easter 2024", "2024-05-05"),
        ("Karfreitag 2024", "2024-03-29"),
        ("Boss's Day 2021", "2021-10-15"),
        ("King's Day 2025", "2025-04-26"),
        ("Ramadan 2024", "2024-03-11"),
        ("Eid al-Adha 2024", "2024-06-16"),
        ("Yom Kippur 2024", "2024-10-11"),
        ("Passover 2024", "2024-04-22"),
        ("Purim 2024", "2024-03-23"),
        ("Holi 2024", "2024-03-25"),
        ("Diwali last year", "2025-10-20"),
        ("Lunar New Year 2024", "2024-02-10"),
        ("Pongal 2024", "2024-01-15"),
        ("Vaisakhi 2024", "2024-04-13"),
    ],
)
def test_a_holiday_begins_on_its_day(words: str, day: str) -> None:
    assert first_day(words) == day


def test_easter_of_the_west_and_of_the_east() -> None:
    assert [easter(year) for year in (1954, 2000, 2019, 2024, 2038)] == [
        date(1954, 4, 18), date(2000, 4, 23), date(2019, 4, 21), date(2024, 3, 31), date(2038, 4, 25)
    ]  # fmt: skip
    assert [orthodox_easter(year) for year in (2018, 2020, 2021, 2025)] == [
        date(2018, 4, 8), date(2020, 4, 19), date(2021, 5, 2), date(2025, 4, 20)
    ]  # fmt: skip


def test_weekdays_of_a_month_are_counted_from_both_ends() -> None:
    assert nth(2024, month=11, weekday=3, place=4) == date(2024, 11, 28)
    assert nth(2024, month=12, weekday=1, place=-1) == date(2024, 12, 31)


def test_the_hebrew_year_begins_where_calendars_say() -> None:
    wanted = ["2020-09-19", "2021-09-07", "2022-09-26", "2023-09-16", "2024-10-03", "2025-09-23"]
    assert [str(moons.hebrew(year, days_after_new_year=0)) for year in range(2020, 2026)] == wanted
    assert [str(moons.hanukkah(year)) for year in (2023, 2024, 2025)] == ["2023-12-08", "2024-12-26", "2025-12-15"]
    assert [str(moons.tu_bishvat(year)) for year in (2024, 2025)] == ["2024-01-25", "2025-02-13"]


def test_the_islamic_year_follows_the_calendar_of_mecca() -> None:
    wanted = ["2019-06-04", "2020-05-24", "2021-05-13", "2022-05-02", "2023-04-21", "2024-04-10", "2025-03-30"]
    assert [str(moons.islamic_day(year, month=10, day=1)) for year in range(2019, 2026)] == wanted
    assert moons.islamic_month_days(2024, month=9) == 30
    assert moons.last_friday_of_ramadan(2024) == date(2024, 4, 5)


def test_every_year_has_every_day_of_the_islamic_year() -> None:
    for year in range(1930, 2090):
        for month in range(1, 13):
            assert moons.islamic_day(year, month=month, day=29).year == year


def test_the_chinese_year_begins_where_calendars_say() -> None:
    wanted = ["2020-01-25", "2021-02-12", "2022-02-01", "2023-01-22", "2024-02-10", "2025-01-29", "2026-02-17"]
    assert [str(moons.chinese_new_year(year)) for year in range(2020, 2027)] == wanted


def test_hindu_feasts_fall_where_calendars_say() -> None:
    wanted = ["2020-11-14", "2021-11-04", "2022-10-24", "2023-11-12", "2024-10-31", "2025-10-20"]
    assert [str(moons.hindu(year, month="ashvina", tithi=30, at="evening")) for year in range(2020, 2026)] == wanted


def test_moons_are_new_about_every_month() -> None:
    instants = [moons.new_moon(number) for number in range(-300, 600)]
    assert all(29.2 < later - earlier < 29.9 for earlier, later in pairwise(instants))


@pytest.mark.parametrize("year", [1975, 2001, 2024, 2049])
def test_every_feast_has_a_day_in_or_beside_its_year(year: int) -> None:
    for names, feast, days in feasts():
        first = feast(year)
        count = days if isinstance(days, int) else days(year)
        assert date(year, 1, 1) - timedelta(days=1) <= first <= date(year, 12, 31), names
        assert 1 <= count <= 46, names
