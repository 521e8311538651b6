"""Reading the times people and APIs write: ISO 8601 with any offset, unix seconds or milliseconds, datetimes."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from perdure.domain.errors import InvalidInput
from perdure.domain.text import brief
from perdure.domain.times import from_us, to_us

# Unix numbers: seconds until the year 5138, beyond that milliseconds, microseconds, nanoseconds.
_UNITS = ((1e11, 1_000_000.0), (1e14, 1_000.0), (1e17, 1.0), (math.inf, 0.001))
_NUMBER = re.compile(r"[+-]?\d{1,20}(\.\d{1,12})?")
_LEAST_US, _MOST_US = to_us(datetime(1, 1, 1, tzinfo=UTC)), to_us(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC))


def zone_named(name: str) -> tzinfo:
    """The time zone, or `InvalidInput`."""
    try:
        if not isinstance(name, str):  # ZoneInfo takes some other things for names and fails later
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
