"""One edge of a range as callers give it: a time of any form, or words such as `2 days ago` and `now`."""

from __future__ import annotations

from datetime import datetime, timedelta, tzinfo
from typing import Literal

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief
from perdure.domain.times.instants import from_us, instant_us, to_us
from perdure.domain.times.spans import Span
from perdure.engine.times.grammar import compiled
from perdure.engine.times.question import extract_time_range

Edge = Literal["first", "last", "end"]
"""A day or a longer time begins at its first moment, ends with its last one, and is over at its end."""
WORDS_CHARS_MAX = 80


def edge_us(value: object, now_us: int, zone: tzinfo, what: str, edge: Edge) -> int:
    """The edge as an instant; `InvalidInput` naming `what` if it is none."""
    try:
        return instant_us(value, zone, what)
    except InvalidInput:
        if not isinstance(value, str) or not 0 < len(value) <= WORDS_CHARS_MAX:
            raise
    found = _in_words(value, from_us(now_us), zone, edge)
    if found is None:
        raise InvalidInput(
            f"{what} = {brief(value, 60)} is not a time; use ISO 8601 (2026-01-31T09:30:00Z), unix seconds, or words such as "
            "2 days ago"
        )
    return to_us(found)


def span_of(ends: object, now_us: int, zone: tzinfo) -> Span:
    """What was asked for, of a start and an end that is not included; `InvalidInput` unless they are these."""
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise InvalidInput(f"`window` is a `{type(ends).__name__}`; pass its start and its end")
    start_us = edge_us(ends[0], now_us, zone, "`window_start`", "first")
    end_us = edge_us(ends[1], now_us, zone, "`window_end`", "end")
    if start_us >= end_us:
        raise InvalidInput("the window ends no later than it starts; give its start, then its end")
    return Span(start_us, end_us)


def _in_words(text: str, now: datetime, zone: tzinfo, edge: Edge) -> datetime | None:
    """`now` is this moment, `2 days ago` is 48 hours before it, `in 2 days` 48 hours after it.

    `None` for words that say no time, or more than that.
    """
    words = " ".join(text.split())
    if compiled("(?:<<ends.now>>)").fullmatch(words):
        return now
    away = compiled(_AWAY).fullmatch(words)
    length = "" if away is None else away["ahead"] or away["behind"] or away["on"]
    found = extract_time_range(length, now, zone) if length else None
    if away is not None and found is not None and found.end == now and found.words.lower() == length.lower():
        return found.start if away["on"] is None or found.start is None else now + (now - found.start)
    found = extract_time_range(words, now, zone)
    if found is None or found.words.lower() != words.lower():
        return None
    if edge == "first" or found.end is None:
        return found.start if edge == "first" else None
    return found.end - timedelta(microseconds=1) if edge == "last" else found.end


_AWAY = r"(?:<<ends.ago_ahead>>) (?P<ahead>.+)|(?P<behind>.+) (?:<<ends.ago_behind>>)|(?:<<ends.in_ahead>>) (?P<on>.+)"
