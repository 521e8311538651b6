"""The API's description (OpenAPI 3.1): what each route answers, which errors it may tell, and where its answers lead."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from perdure.interfaces.http.once import HEADER
from perdure.interfaces.http.problems import MEDIA_TYPE, TITLES
from perdure.interfaces.http.schemas import Components, Many

JSON = "application/json"
METHODS = ("get", "put", "post", "delete", "patch")
Link = tuple[str, Mapping[str, str]]
"""The operation that it leads to, and where its parameters come from."""

ERRORS: Mapping[int, str] = {
    400: "The body is no JSON, or has a field twice.",
    401: "No key was given, or it is not known.",
    403: "The key does not permit this.",
    404: "There is no such thing.",
    409: "Another write came first, or the id stands for something else.",
    413: "It is larger than a bound allows.",
    415: "The body is not `application/json`.",
    422: "Something in the request is wrong; the problem names it.",
    429: "Too much at once; try again after `Retry-After` seconds.",
    503: "The store cannot answer now; try again after `Retry-After` seconds.",
}
ALWAYS = (401, 403, 422, 429, 503)
WITH_BODY = (400, 413, 415)
TAGS: Mapping[str, str] = {
    "messages": "The log of a conversation: appended, never changed.",
    "sessions": "Stretches of talk, their working sets, and the summaries over them.",
    "memories": "What is known of the user's world.",
    "entities": "The people, places, organisations and projects that memories are about.",
    "todos": "What the user means to do, and what the agent is doing.",
    "instructions": "Lasting orders of the user to an agent.",
    "lessons": "How to behave, as learned before.",
    "state": "Any JSON under a key, every revision kept.",
    "series": "Time series, and what is covered of them.",
    "recall": "Finding again, and what an agent should be given.",
    "oversight": "What is given to an agent before a goal, and kept of a tool's result.",
    "history": "What was changed, and taking it back; jobs; forgetting.",
    "portability": "All of a user's data out and in.",
    "transcripts": "The Markdown files of sessions.",
    "tools": "State and series as tools for an agent.",
    "agents": "The agents of the space, and the channels they answer on.",
    "store": "What concerns the whole store.",
    "keys": "The keys that let callers in.",
    "system": "For those who look after a server.",
}


@dataclass(frozen=True, slots=True)
class Said:
    """What a route says of itself beyond what its signature tells."""

    shape: object
    status: int = 200
    also: int | None = None
    """Another status with which the same is answered."""
    errors: tuple[int, ...] = ()
    links: tuple[Link, ...] = ()
    headers: tuple[str, ...] = ()
    media: Mapping[str, str] | None = None
    """The types of a stream, with what it is."""


SAID: dict[str, Said] = {}
HEADERS: Mapping[str, str] = {
    "ETag": "The revision, for `If-Match`.",
    "Location": "Where the new thing is found.",
}


def described(operation_id: str, shape: object, **more: Any) -> dict[str, Any]:
    """Arguments for a route: its id and status. The rest is kept for the description; see `Said`."""
    said = SAID[operation_id] = Said(shape, **more)
    return {"operation_id": operation_id, "status_code": said.status}


def many(of: object, *, both_ways: bool = False) -> Many:
    """A page of a list."""
    return Many(of, both_ways)


def leads_to(operation: str, /, **found: str) -> Link:
    """A link to an operation of the same user and address; `found` names places in the answer, such as `/id`."""
    address = {"user": "$request.path.user", "agent": "$request.query.agent", "channel": "$request.query.channel"}
    return operation, {**address, **{name: _place(text) for name, text in found.items()}}


def from_here(operation: str, /, **found: str) -> Link:
    """A link to an operation that concerns the whole space."""
    return operation, {name: _place(text) for name, text in found.items()}


def _place(text: str) -> str:
    return text if text.startswith("$") else f"$response.body#{text}"


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
        title=app.title, version=app.version, openapi_version="3.1.0", routes=app.routes,
        summary="Durable memory for AI agents.",
        description="Every answer is JSON; every error is a problem (RFC 9457) with a `code` that stays the same.",
    )  # fmt: skip
    components = Components()
    for item in found["paths"].values():
        for method in METHODS:
            if method in item:
                _complete(item[method], components)
    held = found.setdefault("components", {}).setdefault("schemas", {})
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
        one["schema"] = _given(one["schema"])
        if one["name"] == "cursor":
            errors.add(404)
    for status in sorted(errors):
        responses[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}


def _given(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a parameter that is there: one that is left out is not null."""
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(choices) != 1:
        return schema
    return {**{name: value for name, value in schema.items() if name != "anyOf"}, **choices[0]}


def _tell_success(operation: dict[str, Any], responses: dict[str, Any], said: Said, components: Components) -> None:
    links = {to: {"operationId": to, "parameters": dict(given)} for to, given in said.links}
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
