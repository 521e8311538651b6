"""JSON schemas of what is answered, read off the values themselves: their fields, what these mean, and `shapes` beside."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from perdure.domain.context import Block, Context
from perdure.domain.messages import Session
from perdure.domain.oversight import Injection, Kept
from perdure.domain.portable import ImportReport
from perdure.domain.prompts import Prompt
from perdure.domain.recall import Uncovered
from perdure.domain.reports import DoctorReport, Health, VerifyReport
from perdure.domain.series import CoveredWindow, Entry, MergeResult, PastEntry, Rejected, Series, SeriesAnswer
from perdure.domain.spans import Span
from perdure.interfaces.shapes import WHOLE
from perdure.services.auditing import AuditReport
from perdure.services.forgetting import Forgotten
from perdure.services.knowledge import Recalled
from perdure.services.series import Cleanup

Schema = dict[str, Any]
PLAIN: Mapping[object, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    Path: {"type": "string"},
}
INSTANT: Schema = PLAIN[datetime]
Fields = Mapping[str, object]
"""An object told by a route itself: its fields and their types, or their schemas."""


@dataclasses.dataclass(frozen=True, slots=True)
class Many:
    """A page of a list."""

    of: object
    both_ways: bool = False


# What `shapes.WHOLE` tells in place of the fields.
INSTEAD: Mapping[type, tuple[str, Fields]] = {
    Cleanup: ("What a cleanup took away and kept.", {"success": bool, "removed": int, "kept": int, "cutoff_date": datetime}),
    Context: (
        "What an agent is given, in the form chat models take, and the blocks it was made of.",
        {"messages": list[dict[str, Any]], "blocks": tuple[Block, ...], "tokens": int, "budget_tokens": int,
         "dropped": list[str], "notes": list[str]},
    ),
    CoveredWindow: ("A stretch of time that was fetched.", {"start": datetime, "end": datetime, "fetched_at": datetime}),
    Entry: ("An entry: its fields, and what is known of it.", dict.fromkeys(("_id", "_at", "_first_seen", "_last_seen"), str)),
    PastEntry: (
        "A body that lost: its own fields, and what is known of it.",
        {"_id": str, "_at": datetime, "_version": int, "_seen": datetime},
    ),
    MergeResult: (
        "What a merge did.",
        {"success": bool, "added": int, "duplicates": int, "updated": int, "rejected": tuple[Rejected, ...], "evicted": int,
         "total_count": int},
    ),
    Series: (
        "A series: its books.",
        {"name": str, "entity": str, "accumulated_since": datetime, "last_updated": datetime, "count": int,
         "metadata": dict[str, int]},
    ),
    SeriesAnswer: (
        "Entries, newest first, and exactly what is and is not covered.",
        {"success": bool, "entries": list[dict[str, Any]], "count": int, "coverage": Literal["full", "partial", "none"],
         "gaps": tuple[Span, ...], "provisional": tuple[Span, ...], "stale_by": float, "needs_api_call": bool, "reason": str,
         "requested_range": Span, "state_range": dict[str, datetime | None], "next_page": str | None, "truncated": bool,
         "fetches": int, "failures": list[str]},
    ),
    Span: ("From `start` up to, not including, `end`.", {"start": datetime, "end": datetime}),
}  # fmt: skip
# What `shapes.MORE` tells beside them.
BESIDE: Mapping[type, Fields] = {
    AuditReport: {"counts": dict[str, int]},
    DoctorReport: {"healthy": bool},
    Forgotten: {"forgotten": bool},
    Health: {"healthy": bool},
    ImportReport: {"counts": dict[str, int]},
    Injection: {"text": str, "stable": str, "tail": str, "version": str, "nothing": bool},
    Kept: {"saved": bool},
    Prompt: {"text": str},
    Recalled: {"key": str, "content": str},
    Session: {"working": int, "source": str | None, "source_id": int | None},
    Uncovered: {"lines": list[str]},
    VerifyReport: {"clean": bool},
}


class Components:
    """The schemas that others refer to, each once, by the name of its value."""

    def __init__(self) -> None:
        self.schemas: dict[str, Schema] = {}
        self._made_of: dict[str, object] = {}

    def of(self, kind: object) -> Schema:
        """The schema of what `plain` makes of a value of this type."""
        if isinstance(kind, Many):
            return self._page(kind)
        if isinstance(kind, Mapping):
            return self.fields_of(kind)
        if kind in PLAIN:
            return dict(PLAIN[kind])
        if isinstance(kind, NewType):
            return self.of(kind.__supertype__)
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            return self._named(kind)
        return self._made(get_origin(kind), get_args(kind))

    def fields_of(self, fields: Fields, about: Mapping[str, str] | None = None) -> Schema:
        """An object with all of these fields."""
        told = {} if about is None else about
        properties = {}
        for name, kind in fields.items():
            schema = self.of(kind)
            properties[name] = {**schema, "description": told[name]} if name in told else schema
        return {"type": "object", "properties": properties, "required": list(fields)}

    def _made(self, origin: object, args: tuple[Any, ...]) -> Schema:
        if origin is Annotated:
            return self.of(args[0])
        if origin is Literal:
            return {"type": "string", "enum": list(args)} if all(isinstance(one, str) for one in args) else {"enum": list(args)}
        if origin in (Union, UnionType):
            return {"anyOf": [self.of(one) for one in args]}
        if origin is tuple and args[-1] is not Ellipsis:
            count = len(args)
            return {"type": "array", "prefixItems": [self.of(one) for one in args], "minItems": count, "maxItems": count}
        if origin in (list, tuple, frozenset, set, Sequence):
            return {"type": "array", "items": self.of(args[0])}
        if origin in (dict, Mapping):
            return {"type": "object", "additionalProperties": self.of(args[1])}
        return {}

    def _page(self, page: Many) -> Schema:
        cursor = {"type": ["string", "null"], "description": "What to give as `cursor` for more; null: there is no more."}
        properties: Schema = {"items": {"type": "array", "items": self.of(page.of)}, "next": cursor}
        if page.both_ways:
            back = "What to give as `cursor` for what lies the other way; null: nothing is known to."
            properties["previous"] = {"type": ["string", "null"], "description": back}
        return {"type": "object", "properties": properties, "required": list(properties)}

    def _named(self, kind: type) -> Schema:
        name = kind.__name__
        if self._made_of.setdefault(name, kind) is not kind:
            raise TypeError(f"two values called {name} are answered; one of them needs another name")
        if name not in self.schemas:
            self.schemas[name] = {}  # it may hold its own kind
            self.schemas[name] = self._value(kind)
        return {"$ref": f"#/components/schemas/{name}"}

    def _value(self, kind: type) -> Schema:
        if kind in INSTEAD:
            about, fields = INSTEAD[kind]
            return {**self.fields_of(fields), "description": about}
        if kind in WHOLE:
            return {"description": _first_line(kind)}
        hints = _hints(kind)
        found = {field.name: hints[field.name] for field in dataclasses.fields(kind)}
        return {
            **self.fields_of({**found, **BESIDE.get(kind, {})}, dict(_said_of_fields(kind))),
            "description": _first_line(kind),
        }


def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {
        name: Any if isinstance(hint, TypeVar) or hint is object or hint is Callable else hint for name, hint in hints.items()
    }


def _first_line(kind: type) -> str:
    return (inspect.getdoc(kind) or "").partition("\n")[0]


def _said_of_fields(kind: type) -> Iterator[tuple[str, str]]:
    """The texts that stand below the fields in the source."""
    (found,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(found, ast.ClassDef)  # noqa: S101 - it is the source of a class
    for field, text in zip(found.body, found.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())
