"""Every answer in JSON's terms, the same for all skins: the fields of the value, and what follows from them."""

from __future__ import annotations

import dataclasses
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from perdure.domain.context.context import Context, Prompt
from perdure.domain.context.recall import Uncovered
from perdure.domain.conversation.addresses import split_channel
from perdure.domain.conversation.documents import CompactionReport, ContextData
from perdure.domain.conversation.messages import Session
from perdure.domain.knowledge.memories import MemoryWithStatements
from perdure.domain.oversight import Injection, KeptResult
from perdure.domain.reports import DoctorReport, Health, ImportReport, VerifyReport
from perdure.domain.series import CoveredWindow, Entry, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.times.instants import from_us
from perdure.domain.times.spans import Span
from perdure.handles.series import answer_dict, cleanup_dict, merge_dict, series_dict, span_dict
from perdure.services.documents.documents import face_json
from perdure.services.forget.forget import ForgetReport
from perdure.services.knowledge.curation import AuditReport
from perdure.services.knowledge.seed_form import SeedMemory, seed_dict
from perdure.services.series.aggregates import flat
from perdure.services.series.series import Cleanup

Told = dict[str, Any]
NOTHING: Mapping[str, Callable[[Any], Any]] = {}


def plain(value: object) -> Any:
    """`value` in JSON's terms."""
    kind = type(value)
    if kind in SIMPLE:  # most of what there is, so it comes first
        return value
    if kind is tuple or kind is list:
        return [plain(item) for item in value]  # type: ignore[attr-defined]
    if kind is datetime:
        return value.isoformat()  # type: ignore[attr-defined]
    if (whole := WHOLE.get(kind)) is not None:
        return whole(value)
    if (names := _fields(kind)) is not None:  # type: ignore[arg-type]  # every class can be hashed
        # Most fields are simple, and a call for each would cost as much as all the rest.
        told = {name: one if type(one := getattr(value, name)) in SIMPLE else plain(one) for name in names}
        for name, make in MORE.get(kind, NOTHING).items():
            told[name] = plain(make(value))
        return told
    if isinstance(value, Mapping):
        return {str(key): item if type(item) in SIMPLE else plain(item) for key, item in value.items()}
    if isinstance(value, date):  # or an instant, which is one, too
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
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
        "pending": found.pending,
    }


def _source(session: Session) -> str | None:
    return None if (found := split_channel(session.address.channel)) is None else found[0]


def _source_id(session: Session) -> int | None:
    return None if (found := split_channel(session.address.channel)) is None else found[1]


def _forgotten(done: ForgetReport) -> bool:
    return not done.nothing


def _lines(missing: Uncovered) -> list[str]:
    return list(missing.lines())


def _window(window: CoveredWindow) -> Told:
    return {**span_dict(window.span), "fetched_at": from_us(window.fetched_us).isoformat(), "inferred": window.inferred}


def _past_entry(past: PastEntry) -> Told:
    seen = from_us(past.seen_us).isoformat()
    return {**past.body, "_id": past.id, "_at": from_us(past.at_us).isoformat(), "_version": past.version, "_seen": seen}


SIMPLE = frozenset({str, int, float, bool, type(None)})
# What is told in place of the fields.
WHOLE: Mapping[type, Callable[[Any], Any]] = {
    Cleanup: cleanup_dict,
    Context: _context,
    ContextData: face_json,
    CoveredWindow: _window,
    Entry: flat,
    MergeResult: merge_dict,
    PastEntry: _past_entry,
    SeedMemory: seed_dict,
    Series: lambda one: {"name": one.name, **series_dict(one)},
    SeriesAnswer: answer_dict,
    Span: span_dict,
}


def _properties(kind: type, *names: str) -> dict[str, Callable[[Any], Any]]:
    """What follows from the fields, as the value itself says."""
    return {name: getattr(kind, name).fget for name in names}


# What is told beside the fields, by functions whose annotation says what it is.
MORE: Mapping[type, Mapping[str, Callable[[Any], Any]]] = {
    AuditReport: _properties(AuditReport, "counts"),
    CompactionReport: _properties(CompactionReport, "compacted"),
    DoctorReport: _properties(DoctorReport, "healthy"),
    ForgetReport: {"forgotten": _forgotten},
    Health: _properties(Health, "healthy"),
    ImportReport: _properties(ImportReport, "counts"),
    Injection: _properties(Injection, "text", "stable", "tail", "version", "nothing"),
    KeptResult: _properties(KeptResult, "saved"),
    Prompt: _properties(Prompt, "text"),
    MemoryWithStatements: _properties(MemoryWithStatements, "key", "content"),
    Session: {**_properties(Session, "working"), "source": _source, "source_id": _source_id},
    Uncovered: {"lines": _lines},
    VerifyReport: _properties(VerifyReport, "clean"),
}
