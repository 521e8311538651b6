"""T-24: words for times become exact ranges at a fixed clock, and words that only look like it do not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from perdure.engine.times.question import extract_time_range

NOW = datetime(2025, 10, 8, 10, tzinfo=UTC)  # a Wednesday
MONDAY = datetime(2025, 10, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("goal", "start", "end"),
    [
        ("Get kudos from last 24 hours", NOW - timedelta(hours=24), NOW),
        ("Get kudos from 2 days ago", datetime(2025, 10, 6, tzinfo=UTC), datetime(2025, 10, 7, tzinfo=UTC)),
        ("Who gave kudos in the past week?", NOW - timedelta(days=7), NOW),
        ("Who gave kudos yesterday?", datetime(2025, 10, 7, tzinfo=UTC), datetime(2025, 10, 8, tzinfo=UTC)),
        ("Who was active since Monday?", MONDAY, None),
        ("Show kudos of 2025-10-04", datetime(2025, 10, 4, tzinfo=UTC), datetime(2025, 10, 5, tzinfo=UTC)),
        ("Who gave kudos in 2025-09?", datetime(2025, 9, 1, tzinfo=UTC), datetime(2025, 10, 1, tzinfo=UTC)),
        ("kudos between 2025-10-01 and 2025-10-05", datetime(2025, 10, 1, tzinfo=UTC), datetime(2025, 10, 6, tzinfo=UTC)),
    ],
)
def test_a_goal_that_names_a_time_gives_its_exact_range(goal: str, start: datetime, end: datetime | None) -> None:
    """T-24, S0-42, S0-43."""
    found = extract_time_range(goal, NOW, "UTC")
    assert found is not None
    assert (found.start, found.end) == (start, end)
    assert goal[slice(*found.at)] == found.words


def test_since_reaches_to_the_moment_of_asking_for_who_needs_an_end() -> None:
    found = extract_time_range("since Monday", NOW, "UTC")
    assert found is not None
    assert found.bounds(NOW, earliest=datetime(1970, 1, 1, tzinfo=UTC)) == (MONDAY, NOW)


@pytest.mark.parametrize("goal", ["pasta", "Order pasta for the blast party", "What is her last name?", "May I come in?"])
def test_a_goal_without_a_time_gives_no_range(goal: str) -> None:
    """T-24; X-7: the seed's words `last`, `past`, `days`, `hours` were found inside others."""
    assert extract_time_range(goal, NOW, "UTC") is None


def test_a_window_of_days_is_as_long_as_its_hours() -> None:
    """S0-43: `last 2 days` and `past 48 hours` are the same."""
    days, hours = (extract_time_range(words, NOW, "UTC") for words in ("last 2 days", "past 48 hours"))
    assert days is not None
    assert hours is not None
    assert (days.start, days.end) == (hours.start, hours.end) == (NOW - timedelta(hours=48), NOW)
