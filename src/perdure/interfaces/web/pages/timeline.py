"""`/u/{user}/timeline`: what was believed when: what was learned, replaced and ended, day by day, and values that changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.memories import Statement, to_statement
from perdure.domain.knowledge.proposals import FACT_TYPES, MEMORY_TYPES
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.interfaces.web.page import memory_of, page, zone_of
from perdure.interfaces.web.words import local_now

router = APIRouter()
SHOWN = 25
PAGE = 250
LOOKED_AT = 2_000
"""So many changes are looked through for one page; then it says how far it came."""
SLOTS_MAX = 10
VALUES_MAX = 6
WIDTH = 100.0
TONES = {"learned": "accent", "replaced": "amber", "ended": "", "proposed": "blue", "restored": "violet", "removed": "red"}


class TimelineQuery(BaseModel):
    before: int | None = None
    entity: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One change of what is believed."""

    at: datetime
    seq: int
    what: str
    tone: str
    statement: Statement
    instead: str | None
    """Of what was replaced: what took its place."""


@dataclass(frozen=True, slots=True)
class Believed:
    """A value, and from when to when it was believed; `x` and `width` are shares of the time that is shown."""

    value: str
    memory: str
    since: datetime
    until: datetime | None
    x: float
    width: float


@router.get("/u/{user:id}/timeline")
def timeline(request: Request, asked: Annotated[TimelineQuery, Query()]) -> Response:
    memory = memory_of(request)
    operations, more = _looked_through(memory, asked)
    events = _events(operations)
    shown = events[:SHOWN]
    if len(events) > SHOWN:
        more = shown[-1].seq
    zone = zone_of(request)
    months = [(name, list(some)) for name, some in groupby(shown, lambda one: f"{one.at.astimezone(zone):%B %Y}")]
    changed = [] if asked.before is not None else _changed_values(memory, events, local_now(request))
    return page(
        request,
        "timeline.html",
        asked=asked,
        months=months,
        changed=changed,
        more=more,
        types=MEMORY_TYPES,
        fact_types=FACT_TYPES,
    )


def _looked_through(memory: Memory, asked: TimelineQuery) -> tuple[list[Operation], int | None]:
    """Changes of statements, the newest first, and where to go on."""
    found: list[Operation] = []
    before, looked = asked.before, 0
    while looked < LOOKED_AT and len(found) < PAGE:
        some = memory.journal.list(PAGE, before=before)
        found += [one for one in some if one.kind == "statement" and _is_about(one, asked.entity)]
        looked += len(some)
        if len(some) < PAGE:
            return found, None
        before = some[-1].seq
    return found, before


def _is_about(operation: Operation, entity: str) -> bool:
    held = _body(operation.after) or _body(operation.before) or {}
    return not entity or entity in held.get("entities", ()) or held.get("subject") == entity


def _body(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, Mapping) and "content" in value else None


def _events(operations: Sequence[Operation]) -> list[Event]:
    words = {one.key: str(body["content"]) for one in operations if (body := _body(one.after)) is not None}
    found = []
    for one in operations:
        before, after = _body(one.before), _body(one.after)
        held = after or before
        if held is None or (what := _what(before, after)) is None:
            continue
        statement = to_statement(held)
        instead = words.get(statement.closed_by or "")
        found.append(Event(at=one.at, seq=one.seq, what=what, tone=TONES[what], statement=statement, instead=instead))
    return found


def _what(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str | None:
    """What a change was to those who believe it; None if only its words, its place or its count changed."""
    if after is None:
        return "removed"
    if before is None:
        return "proposed" if after.get("proposes") else "learned"
    ended, ends = before.get("valid_to") is not None, after.get("valid_to") is not None
    if ended == ends:
        return None
    if not ends:
        return "restored"
    return "replaced" if after.get("closed_by") else "ended"


def _changed_values(memory: Memory, events: Sequence[Event], now: datetime) -> list[tuple[str, str, list[Believed]]]:
    """What had one value and then another: whose it is, what it is, and each value with its time."""
    slots: dict[tuple[str, str], str] = {}
    for one in events:
        held = one.statement
        if one.what == "replaced" and held.attribute is not None:
            slots.setdefault((held.subject, held.attribute), held.memory)
    found = []
    for (subject, attribute), key in [*slots.items()][:SLOTS_MAX]:
        history = [one for one in memory.memories.history(key) if (one.subject, one.attribute) == (subject, attribute)]
        values = [one for one in history if one.proposes is None][-VALUES_MAX:]
        if len(values) > 1:
            found.append((subject, attribute, _drawn(values, now)))
    return found


def _drawn(values: Sequence[Statement], now: datetime) -> list[Believed]:
    start = min(one.valid_from for one in values)
    span = max((now - start).total_seconds(), 1.0)
    drawn = []
    for one in values:
        end = one.valid_to or now
        x = (one.valid_from - start).total_seconds() / span * WIDTH
        width = max(1.5, (end - one.valid_from).total_seconds() / span * WIDTH)
        drawn.append(
            Believed(
                value=one.value or one.content,
                memory=one.memory,
                since=one.valid_from,
                until=one.valid_to,
                x=round(min(x, WIDTH - 1.5), 2),
                width=round(min(width, WIDTH), 2),
            )
        )
    return drawn
