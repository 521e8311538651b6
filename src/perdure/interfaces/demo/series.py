"""The series of the demo data: what was fetched when, with gaps, late entries, and windows that may still grow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from perdure.domain.values import dataclass
from perdure.handles.series import SeriesHandle
from perdure.interfaces.demo.past import DemoPast, Event

Row = dict[str, Any]
DAY = timedelta(days=1)
ATHLETES = ("Rui", "Nadia", "Maria", "Tomás", "Ines", "Bob", "Priya", "Omar", "Lena", "Kofi", "Makesh", "Yuki")
CLIENTS = ("Larkspur Hotels", "Marlowe Studio", "Quill & Anchor", "Tidewater")
SKIES = ("sunny", "cloudy", "light rain", "windy", "fog over the river")


def _noise(*seed: int) -> float:
    """A number in [0, 1) that looks like chance and is always the same."""
    mixed = 2_166_136_261
    for part in seed:
        mixed = ((mixed ^ (part & 0xFFFFFFFF)) * 16_777_619 + 0x9E3779B9) & 0xFFFFFFFF
        mixed ^= mixed >> 15
    mixed = (mixed * 0x85EBCA6B) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 13)) % 10_007 / 10_007


Asked = tuple[int, int, float | None]
"""From so many days ago, up to so many days ago, and when that was asked, in days ago; None: on the morning after."""


@dataclass(frozen=True, slots=True)
class DemoSource:
    """An API that a series is fetched from: its rules, and what it knows of a day."""

    name: str
    rules: Row
    day: Callable[[DemoPast, int], list[Row]]
    fetches: tuple[Asked, ...]

    def series(self, past: DemoPast) -> SeriesHandle:
        return past.memory().series(self.name, **self.rules)

    def fetch(self, past: DemoPast, first: int, last: int) -> None:
        """Ask for the days, up to the moment of asking, and merge what is known by then."""
        start, asked = _midnight(past, first), past.clock.now()
        end = min(_midnight(past, last), asked)
        rows = [row for days in range(last, first + 1) for row in self.day(past, days)]
        field = self.rules.get("timestamp_field", "timestamp")
        inside = [row for row in rows if start <= _moment(row[field]) < end and _moment(row.pop("_known", row[field])) <= asked]
        self.series(past).merge(inside, window=(start, end))


def events(past: DemoPast) -> Iterator[Event]:
    """The fetches, each at its time; then what came without one."""
    for source in SOURCES:
        for first, last, asked in source.fetches:
            at = past.ago(last, "06:10") if asked is None else past.now - asked * DAY
            yield at, lambda source=source, first=first, last=last: source.fetch(past, first, last)  # type: ignore[misc]
    yield past.ago(30, "09:00"), lambda: _cut_off(past)
    yield past.ago(1, "09:30"), lambda: _renamed(past)
    yield past.now - timedelta(hours=2), lambda: _pushed(past)


def _midnight(past: DemoPast, days: int) -> datetime:
    return (past.now - days * DAY).replace(hour=0, minute=0, second=0, microsecond=0)


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# -- what the APIs know


def _runs(past: DemoPast, days: int) -> list[Row]:
    ordinal = _midnight(past, days).toordinal()
    if days and ordinal % 7 not in (1, 3, 6) and _noise(ordinal, 1) < 0.85:
        return []
    at = _midnight(past, days) + timedelta(hours=6, minutes=int(40 + 50 * _noise(ordinal, 2)))
    long_one = ordinal % 7 == 6
    grown = 1 - min(days, 120) / 240
    km = round((15 if long_one else 7.5) * grown + 4 * _noise(ordinal, 3), 1)
    minutes = round(km * (5.6 + 0.9 * _noise(ordinal, 4)), 1)
    row = {"activity_id": 40_000 + ordinal % 10_000, "start": at.isoformat(), "name": "Long run" if long_one else "Easy run"}
    return [{**row, "km": km, "minutes": minutes, "pulse": int(138 + 18 * _noise(ordinal, 5))}]


def _kudos(past: DemoPast, days: int) -> list[Row]:
    rows = []
    for run in _runs(past, days):
        for number, who in enumerate(ATHLETES):
            chance = _noise(run["activity_id"], number)
            if chance > 0.35 + 0.3 * (run["km"] > 12):
                continue
            at = _moment(run["start"]) + timedelta(minutes=30 + 900 * chance)
            # Some are told only a day after they were given.
            known = at + timedelta(hours=26 if number % 4 == 0 else 0)
            rows.append(
                {
                    "activity_id": run["activity_id"],
                    "athlete_id": f"a{number:02}",
                    "athlete_name": who,
                    "timestamp": at.isoformat(),
                    "_known": known.isoformat(),
                }
            )
    return rows


def _sleep(past: DemoPast, days: int) -> list[Row]:
    ordinal = _midnight(past, days).toordinal()
    woke = _midnight(past, days) + timedelta(hours=6, minutes=int(70 * _noise(ordinal, 6)))
    hours = round(6.1 + 1.9 * _noise(ordinal, 7) + (0.5 if days < 14 else 0), 1)
    row = {"night": woke.date().isoformat(), "woke_at": woke.isoformat(), "hours": hours}
    return [{**row, "deep": round(hours * (0.14 + 0.1 * _noise(ordinal, 8)), 1), "device": "watch"}]


def _weather(past: DemoPast, days: int) -> list[Row]:
    rows = []
    for hour in (0, 6, 12, 18):
        at = _midnight(past, days) + timedelta(hours=hour)
        chance = _noise(at.toordinal(), hour)
        warmth = 8 + 9 * _noise(at.toordinal(), 9) + (6 if hour == 12 else 0)
        sky = SKIES[int(chance * len(SKIES))]
        rows.append({"slot": f"{at:%Y%m%dT%H}", "at": at.isoformat(), "celsius": round(warmth, 1), "sky": sky})
    return rows


def _invoices(past: DemoPast, days: int) -> list[Row]:
    if days % 9 != 4:
        return []
    at = _midnight(past, days) + timedelta(hours=15)
    client = CLIENTS[days // 9 % len(CLIENTS)]
    amount = 400 + 20 * int(90 * _noise(days, 10))
    return [
        {"id": f"INV-{2060 - days // 9}", "timestamp": at.isoformat(), "client": client, "euros": amount, "paid": days > 30}
    ]


def _weeks(first: int, last: int, *, every: int = 7, overlap: int = 1) -> Iterator[Asked]:
    """Fetches of some days each, one after the other, each reaching a little into the one before."""
    for start in range(first, last, -every):
        yield start + overlap, max(start - every, last), None


SOURCES = (
    DemoSource(
        "kudos_timeseries",
        {
            "id_template": "kudos_{activity_id}_{athlete_id}",
            "description": "Kudos received on my runs",
            "settles_after_s": 2 * 86_400.0,
            "fresh_for_s": 21_600.0,
        },
        _kudos,
        (*_weeks(112, 63, overlap=3), *_weeks(48, 20, overlap=3), *_weeks(17, 2, every=1, overlap=3), (1, -1, 0.03)),
    ),
    DemoSource(
        "runs_timeseries",
        {
            "id_field": "activity_id",
            "timestamp_field": "start",
            "description": "My runs with distance, time and pulse",
            "fresh_for_s": 43_200.0,
        },
        _runs,
        (*_weeks(118, 90, every=14), *_weeks(90, 55), *_weeks(50, 2), (2, -1, 0.1)),
    ),
    DemoSource(
        "sleep",
        {
            "id_field": "night",
            "timestamp_field": "woke_at",
            "description": "Nights as the watch counts them",
            "fresh_for_s": 86_400.0,
            "settles_after_s": 43_200.0,
        },
        _sleep,
        ((300, 240, 111.0), (240, 180, 110.9), (180, 112, 110.8), *_weeks(112, 70, every=14), *_weeks(54, 1), (2, -1, 0.15)),
    ),
    DemoSource(
        "weather_lisbon",
        {
            "id_field": "slot",
            "timestamp_field": "at",
            "zone": "Europe/Lisbon",
            "keep_days": 60.0,
            "description": "Weather where I run, four times a day",
        },
        _weather,
        (*_weeks(52, 31, every=3, overlap=0), *_weeks(26, 2, every=2, overlap=0), (2, 1, 0.8)),
    ),
    DemoSource("invoices", {"description": "Invoices sent to clients"}, _invoices, ((118, 80, 79.0), (80, 45, 44.0))),
)


# -- what did not come as a whole window


def _cut_off(past: DemoPast) -> None:
    """The list of invoices was cut off: only what it proves counts as fetched."""
    rows = [row for days in range(31, 45) for row in _invoices(past, days)]
    window = (_midnight(past, 45), _midnight(past, 30))
    past.memory().series("invoices").merge(rows, window=window, complete=False)


def _renamed(past: DemoPast) -> None:
    """Runs that were given another name, and a night that the watch has counted anew."""
    runs = [run for days in (4, 8, 12, 33) for run in _runs(past, days)]
    names = ("Hay in the barn", "Pixel's favourite", "Foggy but fast", "Hills, hills, hills")
    changed = [{**run, "name": names[number % len(names)]} for number, run in enumerate(runs)]
    past.memory().series("runs_timeseries").merge(changed)
    past.memory().series("sleep").merge([{**night, "hours": 8.1, "device": "ring"} for night in _sleep(past, 3)])


def _pushed(past: DemoPast) -> None:
    """Entries that came by themselves: they are held, and prove nothing about the time around them."""
    at = past.now - timedelta(hours=3)
    rows = [{"id": "INV-2061", "timestamp": at.isoformat(), "client": "Tidewater", "euros": 1_180, "paid": False}]
    past.memory().series("invoices").merge(rows)
