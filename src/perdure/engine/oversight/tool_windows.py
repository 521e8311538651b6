"""Which time a tool was asked for, and whether all of it came: what a result proves beyond its entries."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import Literal

from perdure.domain.errors import InvalidInput
from perdure.domain.oversight import AskedTool, WindowRule
from perdure.domain.text.rules import Json, brief
from perdure.domain.times.instants import check_instant, to_us
from perdure.domain.times.spans import Span, check_span, span_or_none
from perdure.engine.times.edges import WORDS_CHARS_MAX, Edge, edge_us
from perdure.engine.times.question import TimeRange, extract_time_range

FROM_US, TO_US = to_us(datetime(2000, 1, 1, tzinfo=UTC)), to_us(datetime(2100, 1, 1, tzinfo=UTC))
"""Numbers outside are places in a list, not times."""
_EDGES = (
    ("start", "end"),
    ("starttime", "endtime"),
    ("startdate", "enddate"),
    ("startat", "endat"),
    ("windowstart", "windowend"),
    ("begin", "end"),
    ("since", "until"),
    ("after", "before"),
    ("from", "to"),
    ("fromdate", "todate"),
    ("fromtime", "totime"),
    ("datefrom", "dateto"),
    ("timemin", "timemax"),
    ("oldest", "latest"),
)
_SIZES = frozenset(["limit", "perpage", "pagesize", "maxresults", "maxitems", "maxcount", "first", "top", "count", "size", "n"])
_PLACES = frozenset(["page", "pagenumber", "offset", "skip", "cursor", "pagetoken", "nexttoken", "startingafter", "pagecursor"])
_MORE = frozenset(["hasmore", "hasnext", "hasnextpage", "more", "moreavailable", "truncated", "istruncated", "incomplete"])
_NEXT = frozenset(["next", "nextpage", "nextcursor", "nextpagetoken", "nexttoken", "nextlink", "nexturl"])
_TOTALS = frozenset(["total", "totalcount", "totalresults", "totalitems"])
_WHOLE = frozenset(["complete", "iscomplete"])
_ABOUT = frozenset(["meta", "metadata", "paging", "pagination", "pageinfo", "links", "page"])
_USUAL_SIZES = frozenset([10, 20, 25, 30, 50, 100, 200, 250])
EndedBy = Literal["cut", "whole", "unknown"]


def check_rule(rule: object, what: str = "window") -> WindowRule | None:
    """The rule if a tool can honour it: `True`, time words, two names of parameters, or two moments."""
    if rule is None or rule is False:
        return None
    if rule is True:
        return True
    if isinstance(rule, str):
        if len(rule) <= WORDS_CHARS_MAX and extract_time_range(rule, datetime(2026, 1, 5, 9, tzinfo=UTC)) is not None:
            return rule
    elif isinstance(rule, tuple | list) and len(rule) == 2:
        if all(isinstance(one, str) and one.isidentifier() for one in rule):
            return (str(rule[0]), str(rule[1]))
        if all(isinstance(one, datetime) for one in rule):
            check_span(rule, what)
            return (check_instant(rule[0], what), check_instant(rule[1], what))
    raise InvalidInput(
        f"`{what}` = {brief(rule, 80)} says no window; use True (the time that the goal names), words such as last 24 hours, "
        'the names of two parameters, ("start", "end"), or two moments'
    )


def declared_window(asked: AskedTool, goal: str, zone: tzinfo, range_of: Callable[[str], TimeRange | None]) -> Span | None:
    """The time that the host says this call has asked for; None if it says nothing that can be read."""
    rule, now_us = asked.window, to_us(asked.at)
    if rule is None:
        return None
    if isinstance(rule, bool | str):
        found = range_of(goal if isinstance(rule, bool) else rule)
        if found is None or found.start is None:
            return None
        return span_or_none(to_us(found.start), min(now_us if found.end is None else to_us(found.end), now_us))
    first, last = rule
    if isinstance(first, datetime) and isinstance(last, datetime):
        return span_or_none(to_us(first), min(to_us(last), now_us))
    start, end = asked.arguments.get(str(first)), asked.arguments.get(str(last))
    start_us = _edge_us(start, now_us, zone, "first")
    # An end that is left out is now; one that cannot be read is unknown.
    end_us = now_us if end is None else _edge_us(end, now_us, zone, "end")
    return None if start_us is None or end_us is None else span_or_none(start_us, end_us)


def carried_window(asked: AskedTool, zone: tzinfo) -> Span | None:
    """The time that the arguments of a tool name by themselves: both ends, and nothing that may leave entries out."""
    given = {_plain(name): value for name, value in asked.arguments.items() if name in asked.given and value is not None}
    named = [pair for pair in _EDGES if pair[0] in given and pair[1] in given]
    if len(named) != 1 or filters_of(asked):
        return None
    [(first, last)], now_us = named, to_us(asked.at)
    start_us, end_us = _edge_us(given[first], now_us, zone, "first"), _edge_us(given[last], now_us, zone, "end")
    if start_us is None or end_us is None or not all(FROM_US <= one <= TO_US for one in (start_us, end_us)):
        return None
    return span_or_none(start_us, min(end_us, now_us))


def filters_of(asked: AskedTool) -> list[str]:
    """Arguments that may leave entries out: all that were given and name neither a time nor a page."""
    edges = {name for pair in _EDGES for name in pair}
    known = edges | _SIZES | _PLACES
    if isinstance(asked.window, tuple):
        known |= {_plain(one) for one in asked.window if isinstance(one, str)}
    return [
        name
        for name in asked.arguments
        if name in asked.given and asked.arguments[name] is not None and _plain(name) not in known
    ]


def ended_by(value: Json, rows: int, asked: AskedTool) -> EndedBy:
    """Whether a result is all there was: what it says itself, else how long it is beside the page that was asked for."""
    if any(_is_later_page(name, one) for name, one in asked.arguments.items()):
        return "cut"
    said = [verdict for name, one in _page_fields(value) if (verdict := _says(name, one, rows)) is not None]
    sizes = [one for name, one in asked.arguments.items() if _plain(name) in _SIZES and isinstance(one, int) and one > 0]
    if "cut" in said or any(rows >= one for one in sizes):
        return "cut"
    if "whole" in said or sizes:
        return "whole"
    return "unknown" if rows in _USUAL_SIZES or (rows and rows % 500 == 0) else "whole"


def in_order(instants: Sequence[int]) -> bool:
    """Whether entries came by time, the newest or the oldest first: then none is missing between them."""
    pairs = list(pairwise(instants))
    return all(one <= other for one, other in pairs) or all(one >= other for one, other in pairs)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _is_later_page(name: str, value: object) -> bool:
    if _plain(name) not in _PLACES or value is None or value == "":
        return False
    first = 1 if _plain(name) in ("page", "pagenumber") else 0
    return not (isinstance(value, int) and value <= first)


def _page_fields(value: Json) -> list[tuple[str, Json]]:
    """The fields of a result that stand beside its entries, and those of a part that tells about them."""
    if not isinstance(value, dict):
        return []
    parts = [one for name, one in value.items() if isinstance(one, dict) and _plain(name) in _ABOUT]
    return [(_plain(name), one) for part in (value, *parts) for name, one in part.items() if not isinstance(one, list)]


def _says(name: str, value: Json, rows: int) -> EndedBy | None:
    if name in _MORE and isinstance(value, bool):
        return "cut" if value else "whole"
    if name in _WHOLE and isinstance(value, bool):
        return "whole" if value else "cut"
    if name in _NEXT and not isinstance(value, dict):
        return "cut" if value else "whole"
    if name in _TOTALS and isinstance(value, int) and not isinstance(value, bool):
        return "cut" if value > rows else "whole"
    return None


def _edge_us(value: object, now_us: int, zone: tzinfo, edge: Edge) -> int | None:
    try:
        return edge_us(value, now_us, zone, "window", edge)
    except InvalidInput:
        return None


def arguments_of(given: Mapping[str, object], at: datetime) -> AskedTool:
    """A call of which only the arguments are known."""
    return AskedTool(dict(given), frozenset(given), at)
