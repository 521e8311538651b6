"""A series on a time axis: which stretches are held, may still grow, or are missing, and how many entries there are when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, tzinfo
from typing import Literal

from perdure.domain.series import CoveredWindow, SeriesAnswer
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span, clipped, gaps, union
from perdure.domain.values import dataclass
from perdure.interfaces.web.filters import day, lasting

Kind = Literal["held", "inferred", "provisional", "again", "gap", "ahead"]
KINDS: dict[Kind, str] = {
    "held": "held",
    "inferred": "held, not known to be complete",
    "provisional": "held, may still grow",
    "again": "held, to be fetched again",
    "gap": "gap: never fetched",
    "ahead": "still to come",
}
WIDTH = 960.0
LEFT, RIGHT = 44.0, 8.0
SECOND_US = 1_000_000
DAYS_IN_DAYS = 100
"""A longer range has months on its axis."""
TICKS_MAX = 13


@dataclass(frozen=True, slots=True)
class CoverageStretch:
    """A part of the range in which one thing is so."""

    kind: Kind
    span: Span
    told: str
    x: float = 0.0
    width: float = 0.0


@dataclass(frozen=True, slots=True)
class EntryBar:
    """The entries of one day or week."""

    at: datetime
    count: int
    told: str
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    label: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Fetch:
    """When something was fetched, and the stretch that was."""

    x: float
    told: str


@dataclass(frozen=True, slots=True)
class Dot:
    """The value of one entry."""

    x: float
    y: float
    told: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of a field over time, and between which they lie."""

    field: str
    dots: list[Dot]
    low: str
    high: str
    path: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A range of time on the width of a drawing."""

    span: Span
    zone: tzinfo
    left: float = LEFT
    right: float = RIGHT

    def x(self, at_us: int) -> float:
        share = (at_us - self.span.start_us) / self.span.length_us
        return round(self.left + max(0.0, min(1.0, share)) * (WIDTH - self.left - self.right), 2)

    def placed(self, stretches: Iterable[CoverageStretch]) -> list[CoverageStretch]:
        """The stretches with their places; the narrowest can still be seen."""
        return [
            CoverageStretch(one.kind, one.span, one.told, self.x(one.span.start_us), round(max(1.2, self._width(one.span)), 2))
            for one in stretches
        ]

    def _width(self, span: Span) -> float:
        return self.x(span.end_us) - self.x(span.start_us)

    def ticks(self) -> list[Tick]:
        """Days or months, so that about ten stand on the axis."""
        days = self.span.length_us / SECOND_US / 86_400
        start = self.span.start.astimezone(self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        if days > DAYS_IN_DAYS:
            moments = _months(start, self.span.end, max(1, round(days / 30 / TICKS_MAX)))
        else:
            moments = _days(start, self.span.end, max(1, round(days / 8)))
        inside = [at for at in moments if self.span.start <= at <= self.span.end]
        return [Tick(self.x(to_us(at)), _label(at, days), at.day == 1) for at in inside]

    def bars(self, counts: Mapping[datetime, int], step: timedelta, *, top: float, height: float) -> list[EntryBar]:
        """One bar for each day or week that has entries."""
        most = max(counts.values(), default=0)
        made = []
        for at, count in counts.items():
            if not count:
                continue
            left, right = self.x(to_us(at)), self.x(to_us(at + step))
            tall = round(max(2.0, count / most * height), 2)
            told = f"{day(at)}: {count} {'entry' if count == 1 else 'entries'}"
            made.append(
                EntryBar(
                    at=at,
                    count=count,
                    told=told,
                    x=left + 0.6,
                    width=round(max(1.0, right - left - 1.2), 2),
                    y=round(top + height - tall, 2),
                    height=tall,
                )
            )
        return made

    def curve(
        self, field: str, values: Sequence[tuple[int, float]], missing: Sequence[Span], *, top: float, height: float
    ) -> Curve:
        """Values by time, oldest first, between the lowest and the highest of them; no line crosses what is missing."""
        low, high = min(value for _, value in values), max(value for _, value in values)
        dots: list[Dot] = []
        path, last_us = "", values[0][0]
        for at_us, value in values:
            y = top + height - (value - low) / ((high - low) or 1.0) * height
            dots.append(Dot(self.x(at_us), round(y, 2), f"{_when(at_us, self.zone)}: {field} {value:g}"))
            broken = not path or any(last_us < gap.end_us and gap.start_us < at_us for gap in missing)
            path += f"{'M' if broken else 'L'}{dots[-1].x} {dots[-1].y}"
            last_us = at_us
        return Curve(field, dots, f"{low:g}", f"{high:g}", path)

    def fetches(self, windows: Sequence[CoveredWindow], *, until_us: int) -> list[Fetch]:
        """The moments at which windows were fetched, as far as they lie in the range."""
        found = []
        for window in windows:
            if self.span.start_us <= window.fetched_us <= min(self.span.end_us, until_us):
                told = f"fetched {_when(window.fetched_us, self.zone)}: {_range(window.span, self.zone)}"
                found.append(Fetch(self.x(window.fetched_us), told))
        return found


def stretches(answer: SeriesAnswer, windows: Sequence[CoveredWindow], now_us: int, zone: tzinfo) -> list[CoverageStretch]:
    """The wanted range, parted by its state; in order, without holes."""
    wanted = answer.wanted
    missing, unsure = union(answer.gaps), union(answer.provisional)
    ahead = union([Span(max(now_us, wanted.start_us), wanted.end_us)]) if wanted.end_us > now_us else ()
    again = [part for gap in missing for part in clipped(unsure, gap)]
    never = [part for gap in missing for part in gaps(gap, unsure)]
    growing = [part for span in clipped(unsure, wanted) for part in gaps(span, (*missing, *ahead))]
    known = gaps(wanted, (*missing, *unsure, *ahead))
    held = [part for span in known for part in gaps(span, answer.inferred)]
    inferred = [part for span in known for part in clipped(answer.inferred, span)]
    found: list[CoverageStretch] = []
    for kind, spans in (
        ("held", held),
        ("inferred", inferred),
        ("provisional", growing),
        ("again", again),
        ("gap", never),
        ("ahead", ahead),
    ):
        for span in spans:
            pieces = _by_window(span, windows) if kind not in ("gap", "ahead") else [(span, None)]
            found += [CoverageStretch(kind, part, _stretch_label(kind, part, fetched, zone)) for part, fetched in pieces]  # type: ignore[arg-type]
    return sorted(found, key=lambda one: one.span)


def shares(found: Sequence[CoverageStretch]) -> dict[Kind, float]:
    """How much of the range, up to now, is of which kind."""
    past = [one for one in found if one.kind != "ahead"]
    whole = sum(one.span.length_us for one in past) or 1
    return {kind: sum(one.span.length_us for one in past if one.kind == kind) / whole for kind in KINDS if kind != "ahead"}


def _by_window(span: Span, windows: Sequence[CoveredWindow]) -> list[tuple[Span, int | None]]:
    """The parts of a span by the fetch that they are known from; what a tolerated tip adds was in none."""
    parts: list[tuple[Span, int | None]] = [
        (part, window.fetched_us) for window in windows for part in clipped([window.span], span)
    ]
    parts += [(rest, None) for rest in gaps(span, [part for part, _ in parts])]
    return sorted(parts, key=lambda one: one[0])


def _stretch_label(kind: Kind, span: Span, fetched_us: int | None, zone: tzinfo) -> str:
    fetched = "" if fetched_us is None else f", fetched {_when(fetched_us, zone)}"
    length = lasting(span.length_us / SECOND_US)
    return f"{KINDS[kind]}: {_range(span, zone)} ({length}){fetched}"


def _range(span: Span, zone: tzinfo) -> str:
    return f"{_when(span.start_us, zone)} to {_when(span.end_us, zone)}"


def _when(at_us: int, zone: tzinfo) -> str:
    at = Span(at_us, at_us + 1).start.astimezone(zone)
    return f"{at.day} {at:%b %H:%M}"


def _label(at: datetime, days: float) -> str:
    if days <= DAYS_IN_DAYS:
        return day(at, year=False)
    return f"{at:%b %Y}" if at.month == 1 or days > 2 * 365 else f"{at:%b}"


def _days(at: datetime, end: datetime, step: int) -> Iterable[datetime]:
    while at <= end:
        yield at
        at += timedelta(days=step)


def _months(at: datetime, end: datetime, step: int) -> Iterable[datetime]:
    at = at.replace(day=1)
    while at <= end:
        yield at
        at = (at + timedelta(days=30.44 * step + 2)).replace(day=1)
