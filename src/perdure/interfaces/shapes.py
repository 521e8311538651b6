"""Every answer in JSON's terms, the same for all skins: the fields of the value, and what follows from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from perdure.domain.context import Context
from perdure.domain.messages import Session
from perdure.domain.names import split_channel
from perdure.domain.oversight import Injection, Kept
from perdure.domain.portable import ImportReport
from perdure.domain.prompts import Prompt
from perdure.domain.recall import Uncovered
from perdure.domain.reports import DoctorReport, Health, VerifyReport
from perdure.domain.series import CoveredWindow, Entry, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.spans import Span
from perdure.domain.times import from_us
from perdure.services.aggregates import flat
from perdure.services.auditing import AuditReport
from perdure.services.forgetting import Forgotten
from perdure.services.knowledge import Recalled
from perdure.services.render import answer_dict, cleanup_dict, merge_dict, series_dict, span_dict
from perdure.services.series import Cleanup

Told = dict[str, Any]


def plain(value: object) -> Any:
    """`value` in JSON's terms."""
    kind = type(value)
    if kind in SIMPLE:  # most of what there is, so it comes first
        return value
    if (whole := WHOLE.get(kind)) is not None:
        return whole(value)
    if (names := _fields(kind)) is not None:  # type: ignore[arg-type]  # every class can be hashed
        told = {name: plain(getattr(value, name)) for name in names}
        more = MORE.get(kind)
        return told if more is None else {**told, **more(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, date):  # or an instant, which is one, too
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value


@cache
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of a dataclass's fields; None for anything else."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def _context(found: Context) -> Told:
    return {
        "messages": plain(found.as_messages()),
        "blocks": plain(found.blocks),
        "tokens": found.tokens,
        "budget_tokens": found.budget_tokens,
        "dropped": list(found.dropped),
        "notes": list(found.notes),
    }


def _session(session: Session) -> Told:
    source, number = split_channel(session.address.channel) or (None, None)
    return {"working": session.working, "source": source, "source_id": number}


def _injection(found: Injection) -> Told:
    more = {"text": found.text, "stable": found.stable, "tail": found.tail, "version": found.version}
    return {**more, "nothing": found.nothing}


def _window(window: CoveredWindow) -> Told:
    return {**span_dict(window.span), "fetched_at": from_us(window.fetched_us).isoformat()}


def _past_entry(past: PastEntry) -> Told:
    seen = from_us(past.seen_us).isoformat()
    return {**past.body, "_id": past.id, "_at": from_us(past.at_us).isoformat(), "_version": past.version, "_seen": seen}


SIMPLE = frozenset({str, int, float, bool, type(None)})
# What is told in place of the fields.
WHOLE: Mapping[type, Callable[[Any], Any]] = {
    Cleanup: cleanup_dict,
    Context: _context,
    CoveredWindow: _window,
    Entry: flat,
    MergeResult: merge_dict,
    PastEntry: _past_entry,
    Series: lambda one: {"name": one.name, **series_dict(one)},
    SeriesAnswer: answer_dict,
    Span: span_dict,
}
# What is told beside the fields.
MORE: Mapping[type, Callable[[Any], Told]] = {
    AuditReport: lambda one: {"counts": one.counts},
    DoctorReport: lambda one: {"healthy": one.healthy},
    Forgotten: lambda one: {"forgotten": not one.nothing},
    Health: lambda one: {"healthy": one.healthy},
    ImportReport: lambda one: {"counts": one.counts},
    Injection: _injection,
    Kept: lambda one: {"saved": one.saved},
    Prompt: lambda one: {"text": one.text},
    Recalled: lambda one: {"key": one.memory.record_key, "content": one.content},
    Session: _session,
    Uncovered: lambda one: {"lines": list(one.lines())},
    VerifyReport: lambda one: {"clean": one.clean},
}
