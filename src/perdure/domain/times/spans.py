"""Half-open spans of time and what can be done with them: plain arithmetic on whole microseconds.

A span holds its start and not its end, so that two spans that touch share nothing and miss nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief
from perdure.domain.times.instants import check_instant, from_us, to_us
from perdure.domain.values import dataclass

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """From `start_us` up to, not including, `end_us`; never empty."""

    start_us: int
    end_us: int

    def __post_init__(self) -> None:
        if self.start_us >= self.end_us:
            raise ValueError(f"a span of {self.end_us - self.start_us} µs is none")

    @property
    def start(self) -> datetime:
        return from_us(self.start_us)

    @property
    def end(self) -> datetime:
        return from_us(self.end_us)

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us


def check_span(value: object, what: str) -> Span:
    """Two moments as a span."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(f"`{what}` = {brief(value, 80)} must be two moments: from, and up to but not including")
    start, end = (check_instant(moment, what) for moment in value)
    if start >= end:
        raise InvalidInput(f"`{what}` ends at {end.isoformat()}, not after its start {start.isoformat()}; swap them")
    return Span(to_us(start), to_us(end))


def span_between(since: datetime | None, until: datetime | None) -> Span | None:
    """The span of two parameters of a call, each of which may stand alone; None if neither is given."""
    if since is None and until is None:
        return None
    start = FIRST if since is None else check_instant(since, "since")
    end = LAST if until is None else check_instant(until, "until")
    if start >= end:
        raise InvalidInput(f"`until` = {end.isoformat()} is not after `since` = {start.isoformat()}; swap them")
    return Span(to_us(start), to_us(end))


def span_or_none(start_us: int, end_us: int) -> Span | None:
    """The span between two places; None if there is nothing between them."""
    return Span(start_us, end_us) if start_us < end_us else None


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same instants as few sorted spans that neither overlap nor touch."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start_us <= joined[-1].end_us:
            if span.end_us > joined[-1].end_us:
                joined[-1] = Span(joined[-1].start_us, span.end_us)
        else:
            joined.append(span)
    return tuple(joined)


def clipped(spans: Iterable[Span], within: Span) -> Iterator[Span]:
    """The parts of `spans` that lie inside `within`."""
    for span in spans:
        part = span_or_none(max(span.start_us, within.start_us), min(span.end_us, within.end_us))
        if part is not None:
            yield part


def gaps(wanted: Span, held: Iterable[Span]) -> tuple[Span, ...]:
    """Parts of `wanted` that no span in `held` covers: what to fetch next."""
    missing: list[Span] = []
    reached = wanted.start_us
    for span in union(clipped(held, wanted)):
        if span.start_us > reached:
            missing.append(Span(reached, span.start_us))
        reached = span.end_us
    if reached < wanted.end_us:
        missing.append(Span(reached, wanted.end_us))
    return tuple(missing)


def bridged(spans: Iterable[Span], closer_than_us: int) -> tuple[Span, ...]:
    """Spans with the room between neighbours filled where it is no more than `closer_than_us`: one request, not two."""
    joined: list[Span] = []
    for span in union(spans):
        if joined and span.start_us - joined[-1].end_us <= closer_than_us:
            joined[-1] = Span(joined[-1].start_us, span.end_us)
        else:
            joined.append(span)
    return tuple(joined)


def split(span: Span, longest_us: int | None) -> Iterator[Span]:
    """`span` in pieces no longer than `longest_us`, oldest first, made as they are asked for."""
    step = span.length_us if longest_us is None else longest_us
    for start in range(span.start_us, span.end_us, step):
        yield Span(start, min(start + step, span.end_us))
