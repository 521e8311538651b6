"""The short way of a plain request: one that names a user, brings a body of JSON, and wants nothing out of the ordinary.

The framework takes longer to find a route and to read a request than the store to log a message or to answer a question.
Whatever is not plain goes the framework's way, and so does every request that is wrong: there its error finds its words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import Response
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from perdure.domain.access import Permission
from perdure.domain.errors import PerdureError
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.values import dataclass
from perdure.interfaces.access import AccessDenied
from perdure.interfaces.http.answers import denied_problem, perdure_problem
from perdure.interfaces.http.fields import Body
from perdure.interfaces.http.requests import door, strictly_read

PLAIN_TYPE = b"application/json"
ONCE = b"idempotency-key"


@dataclass(frozen=True, slots=True)
class ShortRoute:
    """What such a request needs of a route."""

    route: APIRoute
    model: type[Body]
    permission: Permission
    endpoint: Callable[..., Response]


def short_route(route: Any, permission: Permission) -> ShortRoute | None:
    """Of a route that was made of an operation, if it takes a body."""
    if route.body_field is None:
        return None
    return ShortRoute(route, route.body_field.field_info.annotation, permission, route.endpoint)


class Shortcut:
    """Before the framework's router. `routes` are those that take the short way, by what comes behind the user in a path."""

    def __init__(self, app: ASGIApp, routes: Mapping[str, ShortRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._route(scope)
        if route is None:
            await self._app(scope, receive, send)
            return
        raw = await _body(receive)
        try:
            body = route.model.model_validate(strictly_read(raw.decode()))
        except (ValueError, RecursionError):  # of the text, of its JSON, of the model: the ordinary way says which
            await self._app(scope, _again(raw, receive), send)
            return
        scope["route"] = route.route
        response = await _answer(route, Request(scope, receive), scope["path"].split("/", 4)[3], body)
        await response(scope, receive, send)

    def _route(self, scope: Scope) -> ShortRoute | None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return None
        parts = scope["path"].split("/", 4)
        route = self._routes.get(parts[4]) if len(parts) == 5 and parts[:3] == ["", "v1", "users"] else None
        if route is None or not _is_plain_id(parts[3]):
            return None
        kinds = [value.partition(b";")[0] for name, value in scope["headers"] if name == b"content-type"]
        return route if kinds == [PLAIN_TYPE] and all(name != ONCE for name, _ in scope["headers"]) else None


def _is_plain_id(text: str) -> bool:
    return 0 < len(text) <= ID_BYTES_MAX and "%" not in text and text.isascii() and text.isprintable()


async def _answer(route: ShortRoute, request: Request, user: str, body: Body) -> Response:
    try:
        memory = door(request).memory(user, route.permission)
        return await run_in_threadpool(route.endpoint, request_=request, held_=memory, body_=body)
    except PerdureError as error:
        return perdure_problem(error)
    except AccessDenied as error:
        return denied_problem(error)


async def _body(receive: Receive) -> bytes:
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(parts)


def _again(raw: bytes, receive: Receive) -> Receive:
    """Bring a body that was read already; then what comes after it."""
    left = [raw]

    async def received() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return received
