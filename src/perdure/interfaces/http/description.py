"""The API's description (OpenAPI 3.1): what each route answers, which errors it may tell, and where its answers lead.

The schemas of answers are read off the values themselves: their fields, what these mean, and what `shapes` adds.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from perdure.domain.context.context import Block, Context
from perdure.domain.conversation.documents import ContextData, Environment, HistoryEntry, Task, TokenUsage, ToolStats
from perdure.domain.series import MergeResult, RejectedEntry, Series, SeriesAnswer
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, field
from perdure.handles.registry.shapes import MORE, WHOLE
from perdure.interfaces.http.answers import MEDIA_TYPE, TITLES
from perdure.interfaces.http.idempotency import HEADER
from perdure.services.knowledge.seed_form import SeedMemory

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
EXAMPLES = {"first": "m-1", "last": "m-2", "key": "profile||lives_in|fact"}
"""Of parameters that a call takes under another name, where it needs none."""
Fields = Mapping[str, object]
"""An object told by a route itself: its fields and their types, or their schemas."""


@dataclass(frozen=True, slots=True)
class Many:
    """A page of a list."""

    of: object
    both_ways: bool = False


def _all(kind: object, *names: str) -> dict[str, object]:
    return dict.fromkeys(names, kind)


# What `shapes.WHOLE` tells in place of the fields.
INSTEAD: Mapping[type, tuple[str, Fields]] = {
    Context: (
        "What an agent is given, in the form chat models take, and the blocks it was made of.",
        {"messages": list[dict[str, Any]], "blocks": tuple[Block, ...]}
        | _all(int, "tokens", "budget_tokens", "pending")
        | _all(list[str], "dropped", "notes"),
    ),
    ContextData: (
        "A context document, with what has to come back when it is saved.",
        _all(str, "session_id", "long_term_summary", "lineage")
        | {"system_state": dict[str, Any], "facts": list[str], "recent_history": list[HistoryEntry]}
        | {"active_tasks": list[Task], "tool_stats": ToolStats, "last_known_environment": Environment}
        | {"token_usage": TokenUsage, "revision": int, "notes": list[str]},
    ),
    MergeResult: (
        "What a merge did.",
        {"success": bool, "rejected": tuple[RejectedEntry, ...], "covered": dict[str, str | bool] | None}
        | _all(int, "added", "duplicates", "updated", "evicted", "total_count"),
    ),
    SeedMemory: (
        "A memory under the seed's own names.",
        {"entityRefs": list[str], "subtype": dict[str, str | None], "importance": int, "pinned": bool, "confidence": float}
        | _all(str, "id", "memoryKey", "type", "content", "source", "status")
        | _all(str | None, "entityLabel", "personaId")
        | _all(datetime, "createdAt", "updatedAt"),
    ),
    Series: (
        "A series: its rules and counts.",
        {"name": str, "entity": str, "count": int, "metadata": dict[str, int]}
        | _all(datetime, "accumulated_since", "last_updated"),
    ),
    SeriesAnswer: (
        "Entries, newest first, and exactly what is and is not covered.",
        {"entries": list[dict[str, Any]], "coverage": Literal["full", "partial", "none"], "requested_range": Span}
        | {"state_range": dict[str, datetime | None], "next_page": str | None, "failures": list[str]}
        | {"reason": str, "stale_by": float, "future": Span | None}
        | _all(bool, "success", "needs_api_call", "truncated")
        | _all(int, "count", "fetches")
        | _all(tuple[Span, ...], "gaps", "provisional", "inferred"),
    ),
    Span: ("From `start` up to, not including, `end`.", _all(datetime, "start", "end")),
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
        needed, pending = list(properties), "Jobs that have still to learn from what was written; left out if there are none."
        properties["pending"] = {"type": "integer", "description": pending}
        return {"type": "object", "properties": properties, "required": needed}

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
        beside = {name: get_type_hints(make)["return"] for name, make in MORE.get(kind, {}).items()}
        return {**self.fields_of({**found, **beside}, dict(_said_of_fields(kind))), "description": _first_line(kind)}


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
    for one, text in zip(found.body, found.body[1:], strict=False):
        match one, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                yield name, " ".join(said.split())


JSON = "application/json"
METHODS = ("get", "put", "post", "delete", "patch")
# A link leads to an operation of the same user and address.
ADDRESS = {"user": "$request.path.user", "agent": "$request.query.agent", "channel": "$request.query.channel"}
ERRORS: Mapping[int, str] = {
    400: "The body is no JSON, or has a field twice.",
    401: "No key was given, or it is not known.",
    403: "The key does not permit this.",
    404: "It does not exist.",
    409: "Another write came first, or the id is in use for something else.",
    413: "It is larger than a bound allows.",
    415: "The body is not `application/json`.",
    422: "Something in the request is wrong; the problem names it.",
    429: "Too much at once; try again after `Retry-After` seconds.",
    503: "The store cannot answer now; try again after `Retry-After` seconds.",
}
ALWAYS = (401, 403, 422, 429, 503)
WITH_BODY = (400, 413, 415)
TAGS: Mapping[str, str] = {
    "conversation": "Messages, sessions and summaries.",
    "knowledge": "Memories, and the people, places, organisations and projects in them.",
    "todos": "Todos of the user, tasks of the agent, and standing instructions.",
    "lessons": "Lasting rules of behaviour, and the agents of the space.",
    "series": "Time series, and the times that each covers.",
    "state": "JSON values under keys, with all revisions.",
    "context": "Search, and the context for a model.",
    "oversight": "The context for an agent's goal, and the results of its tools.",
    "portability": "Export and import of a user's data.",
    "store": "Users, jobs and the health of a store.",
    "access": "API keys, the journal with undo, and the access log.",
    "tools": "State and series as tools for an agent.",
}


@dataclass(frozen=True, slots=True)
class RouteDescription:
    """What a route says of itself beyond what its signature tells."""

    shape: object
    status: int = 200
    also: int | None = None
    """Another status with which the same is answered."""
    errors: tuple[int, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    headers: tuple[str, ...] = ()
    media: Mapping[str, str] | None = None
    """The types of a stream, with what it is."""


SAID: dict[str, RouteDescription] = {}
HEADERS: Mapping[str, str] = {
    "ETag": "The revision, for `If-Match`.",
    "Location": "Where the new thing is found.",
}


def described(operation_id: str, shape: object, **more: Any) -> dict[str, Any]:
    """Arguments for a route: its id and status. The rest is kept for the description; see `RouteDescription`."""
    said = SAID[operation_id] = RouteDescription(shape, **more)
    return {"operation_id": operation_id, "status_code": said.status}


def many(of: object, *, both_ways: bool = False) -> Many:
    """A page of a list."""
    return Many(of, both_ways)


def _link(to: str, found: str, address: Mapping[str, str]) -> dict[str, Any]:
    """A link to an operation. `found` names places in the answer, as `task=/id`, or of the same name in the path."""
    parameters = dict(address)
    for part in found.split():
        name, _, place = part.partition("=")
        parameters[name] = f"$response.body#{place}" if place else f"$request.path.{name}"
    return {"operationId": to, "parameters": parameters}


def install(app: FastAPI) -> None:
    """Have the application describe itself so, once it is asked."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.state.allowed = _Allowed(describe)
    app.openapi = describe  # type: ignore[method-assign]  # the way that the framework's own pages name


class _Allowed:
    """Which methods a path has, of all its routes: the framework names those of the first."""

    def __init__(self, describe: Callable[[], dict[str, Any]]) -> None:
        self._describe = describe
        self._held: list[tuple[re.Pattern[str], str]] = []

    def __call__(self, path: str) -> str | None:
        """The methods as `Allow` names them; None for a path that is not described."""
        if not self._held:
            plain_first = sorted(self._describe()["paths"].items(), key=lambda one: one[0].count("{"))
            self._held = [(_matching(template), _methods(item)) for template, item in plain_first]
        return next((methods for pattern, methods in self._held if pattern.fullmatch(path)), None)


def _matching(template: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(map(re.escape, re.split(r"\{\w+\}", template))))


def _methods(item: Mapping[str, Any]) -> str:
    return ", ".join(method.upper() for method in METHODS if method in item)


def _described(app: FastAPI) -> dict[str, Any]:
    found = get_openapi(
        title=app.title,
        version=app.version,
        openapi_version="3.1.0",
        routes=app.routes,
        summary="Durable memory for AI agents.",
        description="Every answer is JSON; every error is a problem (RFC 9457) with a `code` that stays the same.",
    )
    components = Components()
    held = found.setdefault("components", {}).setdefault("schemas", {})
    for item in found["paths"].values():
        for method in METHODS:
            if method in item:
                _complete(item[method], components)
                for media in item[method].get("requestBody", {}).get("content", {}).values():
                    if "example" not in media and (told := _example(media["schema"], held)) is not None:
                        media["example"] = told
    for unused in ("HTTPValidationError", "ValidationError"):
        held.pop(unused, None)
    held.update(components.schemas)
    held["Problem"] = _problem()
    found["components"]["responses"] = {f"Problem{status}": _refusal(status) for status in ERRORS}
    found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "An API key."}}
    found["security"] = [{}, {"key": []}]
    used = [tag for item in found["paths"].values() for one in item.values() for tag in one.get("tags", ())]
    found["tags"] = [{"name": tag, "description": TAGS.get(tag, "")} for tag in dict.fromkeys((*TAGS, *used)) if tag in used]
    return found


def _complete(operation: dict[str, Any], components: Components) -> None:
    said = SAID.get(operation["operationId"])
    responses = operation.setdefault("responses", {})
    if said is not None:
        _tell_success(operation, responses, said, components)
    errors = {*ALWAYS, *(() if said is None else said.errors)}
    if "requestBody" in operation:
        errors |= {*WITH_BODY}
    if any(one["name"] == HEADER for one in operation.get("parameters", ())):
        errors.add(409)
    for one in operation.get("parameters", ()):
        one["schema"] = _without_null(one["schema"])
        if one.get("required"):
            one["example"] = told if (told := _example(one["schema"])) is not None else EXAMPLES[one["name"]]
        if one["name"] == "cursor":
            errors.add(404)
    for status in sorted(errors):
        responses[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}


def _example(schema: dict[str, Any], named: Mapping[str, dict[str, Any]] | None = None) -> Any:
    """The first example of a schema, or of the one that it names; None if it has none."""
    found = (named or {}).get(str(schema.get("$ref", "")).rpartition("/")[2], schema)
    return next(iter((*found.get("examples", ()), *found.get("enum", ()))), found.get("default"))


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that is there: one that is left out is not null."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **choices[0]}


def _tell_success(operation: dict[str, Any], responses: dict[str, Any], said: RouteDescription, components: Components) -> None:
    address = ADDRESS if any(one["name"] == "user" for one in operation.get("parameters", ())) else {}
    links = {to: _link(to, found, address) for to, found in said.links.items()}
    headers = {name: {"description": HEADERS[name], "schema": {"type": "string"}} for name in said.headers}
    content: dict[str, Any] = {}
    if said.media is not None:
        content = {media: {"schema": {"type": "string", "description": what}} for media, what in said.media.items()}
    elif said.shape is not None:
        content = {JSON: {"schema": components.of(said.shape)}}
    told: dict[str, Any] = {"description": operation.get("summary", "Done."), "content": content}
    told |= {name: value for name, value in (("links", links), ("headers", headers)) if value}
    responses.pop("422", None)
    for status in (said.status, said.also):
        if status is not None:
            responses[str(status)] = told


def _refusal(status: int) -> dict[str, Any]:
    told: dict[str, Any] = {
        "description": ERRORS[status],
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    if status in (429, 503):
        told["headers"] = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "string"}}}
    return told


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    wrong = {"type": "object", "properties": {"where": text, "what": text}, "required": ["where", "what"]}
    return {
        "type": "object",
        "description": "What went wrong (RFC 9457).",
        "properties": {
            "type": {"type": "string", "description": "Names the kind of problem."},
            "title": {"type": "string", "description": "The kind of problem in words."},
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": {"type": "string", "description": "What exactly, and what to do about it."},
            "code": {"type": "string", "description": f"Stays the same: {', '.join(TITLES)}."},
            "retriable": {"type": "boolean", "description": "Whether the same request may succeed later."},
            "errors": {"type": "array", "items": wrong, "description": "Each field that is wrong."},
        },
        "required": ["type", "title", "status", "detail", "code"],
    }
