"""The time of day (S4-6, B-56, T-52)."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from perdure.engine.context.prompt import GUIDANCE, period_of, time_line


@pytest.mark.parametrize(
    ("clock", "period"),
    [
        ("00:00", "night"),
        ("05:59", "night"),
        ("06:00", "morning"),
        ("11:59", "morning"),
        ("12:00", "afternoon"),
        ("16:59", "afternoon"),
        ("17:00", "evening"),
        ("21:59", "evening"),
        ("22:00", "night"),
        ("23:59", "night"),
    ],
)
def test_night_begins_at_22_and_morning_at_6_t_52(clock: str, period: str) -> None:
    local = datetime.fromisoformat(f"2026-01-05T{clock}+00:00")
    assert period_of(local.hour) == period
    assert f"{clock} (UTC): {period}. {GUIDANCE[period_of(local.hour)]}" in time_line(local, "UTC")


def test_every_hour_has_its_period_and_guidance() -> None:
    assert {period_of(hour) for hour in range(24)} == GUIDANCE.keys()
    changes = [hour for hour in range(24) if period_of(hour) != period_of((hour - 1) % 24)]
    assert changes == [6, 12, 17, 22]


def test_the_line_names_the_day_where_the_users_are() -> None:
    moment = datetime(2026, 1, 4, 23, 30, tzinfo=UTC)
    assert time_line(moment.astimezone(ZoneInfo("Asia/Tokyo")), "Asia/Tokyo").startswith(
        "It is Monday, 5 January 2026, 08:30 (Asia/Tokyo): morning."
    )
