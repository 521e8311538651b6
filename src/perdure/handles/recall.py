"""Recall as callers ask for it: what may be said besides the question, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict

from perdure.domain.errors import InvalidInput
from perdure.domain.recall import ENTRY_KINDS, EntryKind, Recall, RecallQuery
from perdure.domain.scope import Scope
from perdure.domain.spans import Span
from perdure.domain.text import brief
from perdure.domain.times import check_instant, to_us
from perdure.services.indexing import Indexing
from perdure.services.recalling import Recalling

MISSES_TOLD = 5
"""An explanation names so many of those that were left out."""


class RecallFields(TypedDict, total=False):
    """What may be said besides the question. Everything is optional."""

    kinds: Sequence[EntryKind]
    time_range: tuple[datetime, datetime]
    entities: Sequence[str]
    sessions: Sequence[str]
    as_of: datetime
    known_at: datetime
    limit: int
    budget_tokens: int
    neighbours: int
    explain: bool


@dataclass(frozen=True, slots=True)
class RecallServices:
    recalling: Recalling
    indexing: Indexing


def recall(scope: Scope, services: RecallServices, query: str, fields: RecallFields) -> Recall:
    """`Memory.recall`: checks the form of what was given, and asks."""
    unknown = [name for name in fields if name not in RecallFields.__annotations__]
    if unknown:
        raise TypeError(f"recall() got an unexpected keyword argument {unknown[0]!r}")
    explain: object = fields.get("explain", False)
    if not isinstance(explain, bool):
        raise InvalidInput(f"`explain` = {brief(explain)} must be True or False")
    given = RecallQuery(
        query,
        kinds=_texts(fields.get("kinds", ENTRY_KINDS), "kinds"),  # type: ignore[arg-type]  # checked by the service
        time_range=_span(fields.get("time_range")),
        entities=_texts(fields.get("entities", ()), "entities"),
        sessions=_texts(fields.get("sessions", ()), "sessions"),
        as_of=fields.get("as_of"),
        known_at=fields.get("known_at"),
        limit=fields.get("limit", 10),
        budget_tokens=fields.get("budget_tokens"),
        neighbours=fields.get("neighbours", 0),
        misses=MISSES_TOLD if explain else 0,
    )
    found = services.recalling.recall(scope, given)
    return replace(found, explanation=found.explain()) if explain else found


def _texts(given: object, name: str) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(one, str) for one in given):
        raise InvalidInput(f"`{name}` = {brief(given, 80)} must be a list of texts")
    return tuple(given)


def _span(given: object) -> Span | None:
    if given is None:
        return None
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise InvalidInput(f"`time_range` = {brief(given, 80)} must be two moments: from, and up to but not including")
    start, end = (check_instant(moment, "time_range") for moment in given)
    if start >= end:
        raise InvalidInput(f"`time_range` ends at {end.isoformat()}, not after its start {start.isoformat()}; swap them")
    return Span(to_us(start), to_us(end))
