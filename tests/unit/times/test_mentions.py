"""Words for times: what they mean on a calendar, in a zone, and what is no time at all."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import examples
from perdure.domain.errors import InvalidInput
from perdure.engine.times.mentions import TimeMention, find_times

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 5, 13, 15, 30, tzinfo=UTC)  # a Wednesday, 17:30 in Berlin


def only(text: str, at: datetime = NOW, zone: str = BERLIN) -> TimeMention:
    (mention,) = find_times(text, at, zone)
    return mention


def days(text: str, at: datetime = NOW, zone: str = BERLIN) -> tuple[str, str]:
    """First day and the day after the last, on the writer's calendar."""
    mention = only(text, at, zone)
    local = ZoneInfo(zone)
    return mention.first.astimezone(local).strftime("%Y-%m-%d"), mention.last.astimezone(local).strftime("%Y-%m-%d")


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("It broke today.", "2026-05-13", "2026-05-14"),
        ("I saw her yesterday.", "2026-05-12", "2026-05-13"),
        ("See you tomorrow!", "2026-05-14", "2026-05-15"),
        ("the day before yesterday", "2026-05-11", "2026-05-12"),
        ("the day after tomorrow", "2026-05-15", "2026-05-16"),
        ("I moved last Friday.", "2026-05-08", "2026-05-09"),
        ("I moved last Wednesday.", "2026-05-06", "2026-05-07"),
        ("next Friday", "2026-05-22", "2026-05-23"),
        ("next Monday", "2026-05-18", "2026-05-19"),
        ("this Friday", "2026-05-15", "2026-05-16"),
        ("this coming Monday", "2026-05-18", "2026-05-19"),
        ("Monday next week", "2026-05-18", "2026-05-19"),
        ("3 days ago", "2026-05-10", "2026-05-11"),
        ("two weeks ago", "2026-04-27", "2026-05-04"),
        ("a couple of days ago", "2026-05-11", "2026-05-12"),
        ("six months ago", "2025-11-01", "2025-12-01"),
        ("a year ago", "2025-01-01", "2026-01-01"),
        ("in 3 days", "2026-05-16", "2026-05-17"),
        ("in two weeks", "2026-05-27", "2026-05-28"),
        ("in 2 months", "2026-07-01", "2026-08-01"),
        ("last week", "2026-05-04", "2026-05-11"),
        ("this month", "2026-05-01", "2026-06-01"),
        ("next month", "2026-06-01", "2026-07-01"),
        ("last quarter", "2026-01-01", "2026-04-01"),
        ("next year", "2027-01-01", "2028-01-01"),
        ("this weekend", "2026-05-16", "2026-05-18"),
        ("last weekend", "2026-05-09", "2026-05-11"),
        ("last summer", "2025-06-01", "2025-09-01"),
        ("next winter", "2026-12-01", "2027-03-01"),
        ("in the summer of 2020", "2020-06-01", "2020-09-01"),
        ("Q3 2025", "2025-07-01", "2025-10-01"),
        ("the end of the month", "2026-05-31", "2026-06-01"),
        ("the end of next month", "2026-06-30", "2026-07-01"),
        ("the end of the year", "2026-12-01", "2027-01-01"),
        ("the beginning of next week", "2026-05-18", "2026-05-19"),
        ("March 3, 1990", "1990-03-03", "1990-03-04"),
        ("on the 3rd of March 1990", "1990-03-03", "1990-03-04"),
        ("in March 2024", "2024-03-01", "2024-04-01"),
        ("2026-06-01", "2026-06-01", "2026-06-02"),
        ("on 24.12.2026", "2026-12-24", "2026-12-25"),
        ("on 24/12/2026", "2026-12-24", "2026-12-25"),
        ("on 12/24/2026", "2026-12-24", "2026-12-25"),
        ("at Christmas", "2026-12-25", "2026-12-26"),
        ("in 2019", "2019-01-01", "2020-01-01"),
        ("due on the 15th.", "2026-05-13", "2026-05-16"),
        ("gestern", "2026-05-12", "2026-05-13"),
        ("letzte Woche", "2026-05-04", "2026-05-11"),
        ("vor 3 Tagen", "2026-05-10", "2026-05-11"),
        ("nächsten Montag", "2026-05-18", "2026-05-19"),
        ("la semana pasada", "2026-05-04", "2026-05-11"),
        ("hace 3 días", "2026-05-10", "2026-05-11"),
        ("la semaine dernière", "2026-05-04", "2026-05-11"),
        ("il y a deux jours", "2026-05-11", "2026-05-12"),
        ("lundi prochain", "2026-05-18", "2026-05-19"),
    ],
)
def test_words_become_days_of_the_writers_calendar(text: str, first: str, last: str) -> None:
    assert days(text) == (first, last)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("On Monday I went there", "2026-05-11"),
        ("let's meet on Monday", "2026-05-18"),
        ("In March we launched it", "2026-03-01"),
        ("In March we will launch it", "2027-03-01"),
        ("we met on June 5", "2025-06-05"),
        ("the deadline is June 5", "2026-06-05"),
        ("I was there last Christmas", "2025-12-25"),
        ("I promised I'd visit in June", "2026-06-01"),
    ],
)
def test_tense_decides_between_past_and_future(text: str, first: str) -> None:
    assert days(text)[0] == first


@pytest.mark.parametrize(
    "text",
    [
        "pasta with a blast",
        "My last name is Day",
        "May I ask something?",
        "march on, soldiers",
        "second thoughts",
        "It is on the 15th floor.",
        "the 2nd time",
        "31 April",
        "2026-13-45",
        "on 05/06/2026",  # day or month first: the text does not say
        "my daily routine",
        "I sat in the sun",
        "Turn it last to first",
        "version 3.10.2019",
        "room 2019",
        "the fall of Rome",
        "Black Friday",
        "last Friday of October",
        "in a quarter of an hour",
        "at 8:00 PST",
        "the second last week of October",
    ],
)
def test_what_is_no_time_is_not_found(text: str) -> None:
    assert find_times(text, NOW, BERLIN) == []


def test_since_reaches_until_the_writing() -> None:
    mention = only("I have lived here since 2019")
    assert (mention.kind, mention.words, mention.last) == ("since", "since 2019", NOW)
    assert mention.first == datetime(2018, 12, 31, 23, tzinfo=UTC)
    assert only("I have lived here for three years").first == datetime(2023, 5, 12, 22, tzinfo=UTC)
    assert find_times("I will wait for three years", NOW, BERLIN) == []


def test_until_and_by_reach_from_the_writing() -> None:
    by = only("I'll send it by Friday")
    assert (by.kind, by.first, by.words) == ("until", NOW, "by Friday")
    assert by.last == datetime(2026, 5, 15, 22, tzinfo=UTC)
    assert only("until next year").last == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert only("before August").last == datetime(2026, 7, 31, 22, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "cron"),
    [
        ("every Monday", "0 9 * * 1"),
        ("every Monday at 7am", "0 7 * * 1"),
        ("at 9:30 every Sunday", "30 9 * * 0"),
        ("every morning", "0 8 * * *"),
        ("I do it daily.", "0 9 * * *"),
        ("on weekdays", "0 9 * * 1-5"),
        ("on Tuesdays", "0 9 * * 2"),
        ("every month", "0 9 1 * *"),
        ("every other Friday", None),
        ("twice a week", None),
    ],
)
def test_what_recurs_has_a_cron_line_if_one_can_say_it(text: str, cron: str | None) -> None:
    mention = only(text)
    assert (mention.kind, mention.cron) == ("recurring", cron)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("tomorrow at 3pm", "2026-05-14T15:00"),
        ("at 3pm tomorrow", "2026-05-14T15:00"),
        ("Friday at 9:30", "2026-05-15T09:30"),
        ("tomorrow morning at 9:30", "2026-05-14T09:30"),
        ("at noon", "2026-05-14T12:00"),
        ("at 8pm", "2026-05-13T20:00"),
        ("2026-06-01 14:30", "2026-06-01T14:30"),
        ("tonight", "2026-05-13T20:00"),
        ("this morning", "2026-05-13T05:00"),
        ("um 14 Uhr", "2026-05-14T14:00"),
        ("le rendez-vous à 14h", "2026-05-14T14:00"),
        ("à 9 heures 30", "2026-05-14T09:30"),
        ("nos vemos a las 19", "2026-05-13T19:00"),
    ],
)
def test_times_of_day_belong_to_the_day_beside_them(text: str, first: str) -> None:
    mention = only(text)
    assert mention.exact
    assert mention.first.astimezone(ZoneInfo(BERLIN)).strftime("%Y-%m-%dT%H:%M") == first


def test_two_times_make_one_stretch() -> None:
    assert days("I was ill from Monday to Friday") == ("2026-05-11", "2026-05-16")


def test_a_day_has_the_hours_it_has_in_the_zone() -> None:
    """In Berlin the clocks went forward on 29 March 2026 and back on 25 October."""
    spring = only("tomorrow", datetime(2026, 3, 28, 12, tzinfo=UTC))
    autumn = only("tomorrow", datetime(2026, 10, 24, 12, tzinfo=UTC))
    assert (spring.last - spring.first, autumn.last - autumn.first) == (timedelta(hours=23), timedelta(hours=25))


def test_today_is_the_day_of_the_writer_not_of_the_server() -> None:
    late = datetime(2026, 5, 13, 23, 30, tzinfo=UTC)
    assert days("today", late, "Asia/Tokyo") == ("2026-05-14", "2026-05-15")
    assert days("today", late, "America/New_York") == ("2026-05-13", "2026-05-14")


def test_an_unknown_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="zone"):
        find_times("today", NOW, "Mars/Olympus")


def test_dates_that_no_calendar_holds_are_left_out() -> None:
    assert find_times("9999 years ago, in 9999 years", NOW, BERLIN) == []
    assert find_times("9999-12-31", NOW, "America/Los_Angeles") == []


@pytest.mark.parametrize("zone", ["UTC", BERLIN, "America/Los_Angeles"])
@pytest.mark.parametrize("at", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
@pytest.mark.parametrize("text", ["call John tomorrow at 5", "I was there at 5", "from Friday to Monday", "in 3 weeks"])
def test_what_is_written_at_the_edge_of_the_calendar_is_read_without_times(text: str, at: datetime, zone: str) -> None:
    assert all(mention.first < mention.last for mention in find_times(text, at, zone))


SOUP = (  # words that rules look for
    "last next this every on in by until since from to Monday Friday may May march March 3 15th 2019 12:30 pm week month year "
    "ago two summer end of the tomorrow yesterday at noon daily weekend Q3 2026-05-01 hier morgen İ ß 31 ."
)
WORDS = st.sampled_from(SOUP.split())


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(WORDS, max_size=24).map(" ".join) | st.text(max_size=80), st.datetimes(timezones=st.just(UTC)))
def test_mentions_lie_in_the_text_and_in_order(text: str, at: datetime) -> None:
    mentions = find_times(text, at, "Europe/Berlin") if 2 < at.year < 9998 else []
    end = 0
    for mention in mentions:
        assert mention.first < mention.last
        assert mention.words == text[mention.start : mention.end]
        assert end <= mention.start < mention.end <= len(text)
        end = mention.end


def test_a_long_text_takes_seconds() -> None:
    started = time.thread_time()
    find_times("we met on Monday, 3 days ago, at 5pm; then last last last week " * 2_000, NOW, BERLIN)
    find_times("3 " * 50_000, NOW, BERLIN)
    assert time.thread_time() - started < 8
