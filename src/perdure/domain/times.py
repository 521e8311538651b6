"""Instants are aware UTC datetimes in Python and whole microseconds since 1970 in every store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from perdure.domain.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_us(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND


def from_us(us: int) -> datetime:
    return EPOCH + timedelta(microseconds=us)


def check_instant(value: datetime, what: str) -> datetime:
    """`value` in UTC; a naive time is refused because guessing its zone would be wrong for somebody."""
    if not isinstance(value, datetime):
        raise InvalidInput(f"`{what}` must be a datetime, not `{type(value).__name__}`; use datetime.fromisoformat(…)")
    if value.utcoffset() is None:
        raise InvalidInput(f"`{what}` = {value.isoformat()} has no time zone; add one, e.g. tzinfo=datetime.UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(f"`{what}` = {value.isoformat()} leaves the years 1 to 9999 in UTC; use another time") from None
