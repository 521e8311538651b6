"""`/u/{user}/series`: what was fetched, drawn on a time axis: held, still growing, missing."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.series import CoveredWindow, Entry, Series, SeriesAnswer
from perdure.domain.text.rules import brief
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass
from perdure.handles.memory import clock_of
from perdure.handles.series import SeriesHandle
from perdure.interfaces.web.coverage import KINDS, LEFT, RIGHT, Axis, shares, stretches
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice

router = APIRouter()
RANGES = (7, 30, 90, 365)
SHOWN = 30
LISTED = 90
ENTRIES = 25
COLUMNS = 5
GROUPS = 8
DOTS = 500
GROUP_FIELDS = 6
SERIES_LISTED = 200
DAY = timedelta(days=1)
EARLIEST = 1900


@dataclass(frozen=True, slots=True)
class SeriesRange:
    """A series as it is looked at: a range of days up to a moment."""

    series: Series
    days: int
    start: datetime
    end: datetime
    now: datetime
    zone: ZoneInfo

    @property
    def span(self) -> Span:
        return Span(to_us(self.start), to_us(self.end))

    @property
    def step(self) -> timedelta:
        """What one bar stands for."""
        return DAY if self.days <= 90 else 7 * DAY


@router.get("/u/{user:id}/series")
def index(request: Request) -> Response:
    memory = memory_of(request)
    held = memory.series.list(SERIES_LISTED)
    cards = []
    for one in held:
        sight = _sight(one, LISTED, None, clock_of(memory).now())
        handle = memory.series(one.name)
        answer = handle.query(sight.start, sight.end, limit=1)
        drawn = _drawing(handle, sight, answer, handle.windows(sight.start, sight.end), left=0.0, right=0.0, height=44.0)
        cards.append({"series": one, "answer": answer, **drawn})
    totals = {
        "entries": sum(one.count for one in held),
        "calls": sum(one.api_calls for one in held),
        "duplicates": sum(one.duplicates for one in held),
        "gaps": sum(len(card["answer"].gaps) for card in cards),
    }
    return page(request, "series.html", cards=cards, totals=totals, days=LISTED)


class SeriesDisplay(BaseModel):
    """How a series is looked at."""

    days: int = SHOWN
    end: str = ""
    page: str = ""
    by: str = ""
    value: str = ""


@router.get("/u/{user:id}/series/{name:id}")
def show(request: Request, name: str, asked: Annotated[SeriesDisplay, Query()]) -> Response:
    memory = memory_of(request)
    handle = memory.series(name)
    held = handle.about()
    sight = _sight(held, asked.days if asked.days in RANGES else SHOWN, asked.end, clock_of(memory).now())
    answer = handle.query(sight.start, sight.end, limit=ENTRIES, page=asked.page or None)
    windows = handle.windows(sight.start, sight.end)
    curved = _curved(handle, sight, answer, asked.value)
    drawn = _drawing(handle, sight, answer, windows, left=LEFT, right=RIGHT, height=130.0 if curved is None else 60.0)
    return page(
        request,
        "series_one.html",
        series=held,
        sight=sight,
        answer=answer,
        windows=list(reversed(windows)),
        ranges=RANGES,
        kinds=KINDS,
        columns=_columns(held, answer.entries),
        curved=curved,
        overview=_overview(handle, sight),
        grouped=_grouped(handle, sight, answer, asked.by),
        fetch_list=_fetch_list(answer.gaps),
        late=_late(answer.entries),
        from_us=from_us,
        steps=_steps(sight),
        **drawn,
    )


@router.get("/u/{user:id}/series/{name:id}/entries/{entry:id}")
def entry(request: Request, name: str, entry: str, at: str = "") -> Response:
    """One entry: as it is, and the versions that lost against newer ones. `at` is its time, by which it is found faster."""
    handle = memory_of(request).series(name)
    held = handle.about()
    moment = _moment(at, ZoneInfo(held.spec.zone)) if at else None
    current = next((one for one in handle.entries(moment, moment) if one.id == entry), None)
    past = handle.history(entry)
    if current is None and not past:
        raise NotFound(f"series {name!r:.80} has no entry {entry!r:.80}; its page lists those it has")
    return page(request, "series_entry.html", series=held, id=entry, current=current, past=past, from_us=from_us)


class SeriesRulesForm(BaseModel):
    """The form that changes the rules of a series. An empty field is none, or the default."""

    description: str = ""
    zone: str = "UTC"
    settles_after_s: str = "0"
    fresh_for_s: str = "0"
    max_entries: str = ""
    keep_days: str = ""


@router.post("/u/{user:id}/series/{name:id}/configure")
def configure(request: Request, name: str, rules: Annotated[SeriesRulesForm, Form()]) -> Response:
    handle = memory_of(request, "write").series(name)
    handle.about()
    handle.configure(
        description=rules.description,
        zone=rules.zone,
        settles_after_s=_number(rules.settles_after_s, "settles after") or 0.0,
        fresh_for_s=_number(rules.fresh_for_s, "fresh for") or 0.0,
        max_entries=None if (most := _number(rules.max_entries, "most entries")) is None else int(most),
        keep_days=_number(rules.keep_days, "days kept"),
    )
    return redirect_with_notice(request, PageLinks(request)("series", name), "Rules saved. Entries keep their ids and times.")


@router.post("/u/{user:id}/series/{name:id}/cleanup")
def cleanup(request: Request, name: str, keep_days: Annotated[str, Form()] = "90") -> Response:
    days = _number(keep_days, "days kept")
    if days is None:
        raise InvalidInput("`keep_days` is empty; say how many days to keep")
    cleaned = memory_of(request, "write").series(name).cleanup(days)
    told = f"{cleaned.removed} entries were removed, {cleaned.kept} are kept; time before the cutoff counts as unknown again."
    return redirect_with_notice(request, PageLinks(request)("series", name), told)


# -- how


def _sight(series: Series, days: int, end: str | None, now: datetime) -> SeriesRange:
    """`now` is that of the store: what is later is not looked at, whatever is asked for."""
    zone = ZoneInfo(series.spec.zone)
    last = min(_moment(end, zone), now) if end else now
    return SeriesRange(series=series, days=days, start=last - days * DAY, end=last, now=now, zone=zone)


def _moment(text: str, zone: ZoneInfo) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"`end` = {brief(text)} is no moment; write it like 2026-03-01") from None
    if at.year < EARLIEST:
        raise InvalidInput(f"`end` = {brief(text)} is too long ago to look at; choose a year from {EARLIEST} on")
    return at if at.tzinfo is not None else at.replace(tzinfo=zone)


def _drawing(
    handle: SeriesHandle,
    sight: SeriesRange,
    answer: SeriesAnswer,
    windows: list[CoveredWindow] | Any,
    *,
    left: float,
    right: float,
    height: float,
) -> dict[str, Any]:
    axis = Axis(sight.span, sight.zone, left, right)
    now_us = to_us(sight.now)
    found = stretches(answer, windows, now_us, sight.zone)
    counts = handle.per("day" if sight.step == DAY else "week", start=sight.start, end=sight.end)
    return {
        "stretches": axis.placed(found),
        "shares": shares(found),
        "bars": axis.bars(counts, sight.step, top=0.0, height=height),
        "most": max(counts.values(), default=0),
        "ticks": axis.ticks(),
        "fetches": axis.fetches(windows, until_us=now_us),
        "height": height,
        "counts": counts,
    }


def _overview(handle: SeriesHandle, sight: SeriesRange) -> dict[str, Any]:
    """The whole life of the series in one line, with the range that is looked at, and places to jump to."""
    first = handle.first()
    born = from_us(first.at_us) if first is not None else sight.series.accumulated_since
    start = max(min(born, sight.start), datetime(EARLIEST, 1, 1, tzinfo=UTC))
    whole = SeriesRange(series=sight.series, days=1, start=start, end=sight.now, now=sight.now, zone=sight.zone)
    axis = Axis(whole.span, sight.zone, 0.0, 0.0)
    answer = handle.query(whole.start, whole.end, limit=1)
    windows = handle.windows(whole.start, whole.end)
    found = stretches(answer, windows, to_us(sight.now), sight.zone)
    pieces = 24
    length = (whole.end - whole.start) / pieces
    jumps = [(axis.x(to_us(start + n * length)), (start + (n + 0.5) * length + sight.days / 2 * DAY)) for n in range(pieces)]
    return {
        "stretches": axis.placed(found),
        "view": (axis.x(to_us(sight.start)), max(3.0, axis.x(to_us(sight.end)) - axis.x(to_us(sight.start)))),
        "jumps": [(x, 960.0 / pieces, min(at, sight.now).date().isoformat()) for x, at in jumps],
        "start": whole.start,
        "shares": shares(found),
    }


def _steps(sight: SeriesRange) -> dict[str, str | None]:
    """Where one range earlier and one later are."""
    later = sight.end + sight.days * DAY
    at_end = sight.now - sight.end < timedelta(minutes=1)
    return {
        "older": sight.start.isoformat(timespec="seconds"),
        "newer": None if at_end else "" if later >= sight.now else later.isoformat(timespec="seconds"),
    }


def _fields(entries: tuple[Entry, ...]) -> list[str]:
    """The fields that entries have, the most frequent first."""
    seen: dict[str, int] = {}
    for one in entries:
        for name in one.body:
            seen[name] = seen.get(name, 0) + 1
    order = list(seen)
    return sorted(order, key=lambda name: (-seen[name], order.index(name)))


def _late(entries: tuple[Entry, ...]) -> set[str]:
    """The entries that came when newer ones were known already; `entries` are the newest first."""
    found: set[str] = set()
    known_us = None
    for one in entries:
        if known_us is not None and one.first_seen_us > known_us:
            found.add(one.id)
        known_us = one.first_seen_us if known_us is None else min(known_us, one.first_seen_us)
    return found


def _columns(series: Series, entries: tuple[Entry, ...]) -> list[str]:
    """The fields that a table shows, beside the id and the time."""
    told = {series.spec.id_field, series.spec.timestamp_field}
    names = [name for name in _fields(entries) if name not in told]
    # What the id is made of says little beside it.
    return sorted(names, key=lambda name: f"{{{name}}}" in (series.spec.id_template or ""))[:COLUMNS]


def _curved(handle: SeriesHandle, sight: SeriesRange, answer: SeriesAnswer, wanted: str) -> dict[str, Any] | None:
    """A field that measures something, drawn over time."""
    told = {sight.series.spec.id_field, sight.series.spec.timestamp_field}
    names = [name for name in _fields(answer.entries) if name not in told and _measures(name, answer.entries)]
    if not names:
        return None
    field = wanted if wanted in names else names[0]
    # Of very many entries only some are drawn, evenly spread.
    entries = islice(handle.entries(sight.start, sight.end), 0, None, max(1, answer.count // DOTS))
    values = [(one.at_us, float(one.body[field])) for one in entries if _is_number(one.body.get(field))]
    axis = Axis(sight.span, sight.zone)
    return (
        {"field": field, "fields": names, "curve": axis.curve(field, values, answer.gaps, top=22.0, height=100.0)}
        if values
        else None
    )


def _measures(name: str, entries: tuple[Entry, ...]) -> bool:
    """Whether a field holds amounts: numbers that differ, and no ids."""
    held = [one.body[name] for one in entries if name in one.body]
    return not name.endswith("id") and all(map(_is_number, held)) and len(set(held)) > 1


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _grouped(handle: SeriesHandle, sight: SeriesRange, answer: SeriesAnswer, by: str) -> dict[str, Any] | None:
    """How often each value of a field occurs in the range, for fields whose values repeat."""
    names = [
        name
        for name in _fields(answer.entries)
        if len({json.dumps(one.body.get(name), default=str) for one in answer.entries}) * 2 <= len(answer.entries)
        and all(isinstance(one.body.get(name), str | bool | None) for one in answer.entries)
    ][:GROUP_FIELDS]
    if not names:
        return None
    names.sort(key=lambda name: name.endswith("id"))  # names tell more than ids
    chosen = by if by in names else names[0]
    counts = handle.group(chosen, start=sight.start, end=sight.end)
    most = max(counts.values(), default=1)
    rows = [(value, count, count / most) for value, count in list(counts.items())[:GROUPS]]
    return {"field": chosen, "fields": names, "rows": rows, "more": max(0, len(counts) - GROUPS)}


def _fetch_list(missing: tuple[Span, ...]) -> str:
    """The gaps as lines that can be pasted into whatever fetches."""
    return "\n".join(f"{gap.start.isoformat()}\t{gap.end.isoformat()}" for gap in missing)


def _number(text: str, what: str) -> float | None:
    if not text.strip():
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InvalidInput(f"`{what}` = {brief(text)} is no number; write it with digits")
    return found
