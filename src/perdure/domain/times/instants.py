"""Instants are aware UTC datetimes in Python and whole microseconds since 1970 in every store.

The times that people and APIs write are read here, too: ISO 8601 with any offset, unix seconds or milliseconds, datetimes.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def to_us(instant: datetime) -> int:
    return (instant - EPOCH) // MICROSECOND


def from_us(us: int) -> datetime:
    return EPOCH + timedelta(0, 0, us)  # days, seconds, microseconds: naming them costs half as much again


def read_instant(text: str, what: str) -> datetime:
    """An instant in ISO 8601. That it has a zone is checked where it is used."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"`{what}` = {text!r:.60} is no ISO 8601 time; write e.g. 2026-01-31T09:30:00+00:00") from None


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


# Unix numbers: seconds until the year 5138, beyond that milliseconds, microseconds, nanoseconds.
_UNITS = ((1e11, 1_000_000.0), (1e14, 1_000.0), (1e17, 1.0), (math.inf, 0.001))
_NUMBER = re.compile(r"[+-]?\d{1,20}(\.\d{1,12})?")
_LEAST_US, _MOST_US = to_us(datetime(1, 1, 1, tzinfo=UTC)), to_us(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


ZONE_CHARS_MAX = 100
"""No zone has a name half as long."""


def zone_named(name: str) -> tzinfo:
    """The time zone, or `InvalidInput`."""
    try:
        # ZoneInfo takes some other things for names and fails later, and looks for a long one in a package in a package …
        if not isinstance(name, str) or len(name) > ZONE_CHARS_MAX:
            raise TypeError
        return UTC if name == "UTC" else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise InvalidInput(f"`zone` = {brief(name, 60)} is not a known time zone; use a name such as Europe/Berlin") from None


def instant_us(value: object, zone: tzinfo, what: str) -> int:
    """Microseconds since 1970 of whatever time `value` is; `InvalidInput` naming `what` if it is none."""
    if isinstance(value, datetime):
        return _in_calendar(value, zone, what)
    if isinstance(value, bool):
        raise InvalidInput(f"{what} = {value} is not a time")
    if isinstance(value, int | float):
        if isinstance(value, int) and abs(value) > 10**20:
            raise InvalidInput(f"{what} is a number of {len(str(abs(value) % 10**4000))} digits, which is no time")
        return _from_number(float(value), value, what)
    if isinstance(value, str):
        text = value.strip()
        if _NUMBER.fullmatch(text) and not _is_date(text):
            return _from_number(float(text), text, what)
        try:
            return _in_calendar(datetime.fromisoformat(text), zone, what)
        except ValueError:
            pass
    raise InvalidInput(f"{what} = {brief(value, 60)} is not a time; use ISO 8601 (2026-01-31T09:30:00Z) or unix seconds")


def _is_date(text: str) -> bool:
    """Eight digits that make a date are one, 20260131: as unix seconds they would lie in the early seventies."""
    if len(text) != 8 or not text.isdecimal():
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _from_number(number: float, given: object, what: str) -> int:
    if not math.isfinite(number):
        raise InvalidInput(f"{what} = {brief(given)} is not a time")
    factor = next(unit for most, unit in _UNITS if abs(number) < most)
    # Integers stay exact: a float cannot hold microseconds of today's nanosecond counts.
    us = int(given) * int(factor) if isinstance(given, int) and factor >= 1 else round(number * factor)
    if not _LEAST_US <= us <= _MOST_US:
        raise InvalidInput(f"{what} = {brief(given)} lies outside the years 1 to 9999")
    return us


def _in_calendar(value: datetime, zone: tzinfo, what: str) -> int:
    try:
        aware = value if value.utcoffset() is not None else value.replace(tzinfo=zone)
        us = to_us(aware.astimezone(UTC))
        if us > _MOST_US:
            raise OverflowError
        return us
    except OverflowError:
        raise InvalidInput(f"{what} = {value.isoformat()} leaves the years 1 to 9999 in UTC") from None


def iso(us: int) -> str:
    """The instant as ISO 8601 text in UTC."""
    return from_us(us).isoformat()
