"""Answers: JSON as every skin tells it, pages of lists, revisions, and where a new thing is found.

Errors are `application/problem+json` (RFC 9457), from the one table of errors. No stack trace leaves the server.
"""

from __future__ import annotations

import hashlib
import json
import logging
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from perdure.domain.errors import InvalidInput, LimitExceeded, NotFound, PerdureError
from perdure.domain.scope import DEFAULT
from perdure.domain.text.rules import brief
from perdure.handles.arguments import NUMBER_MAX, PLAIN, WORDS
from perdure.handles.memory import Memory
from perdure.handles.operation import PendingList
from perdure.handles.registry.shapes import plain
from perdure.interfaces.access import AccessDenied
from perdure.interfaces.errors import http_status
from perdure.interfaces.http.requests import PageRequest

T = TypeVar("T")
CURSOR_ITEMS = 8

# Made once: `json.dumps` with options of its own builds an encoder for every call.
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class JsonAnswer(Response):
    """A value as JSON. Text is escaped to ASCII: whatever was stored can be sent."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return _ENCODE(plain(content)).encode()


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> JsonAnswer:
    return JsonAnswer(value, status, headers)


def etag(revision: object) -> dict[str, str]:
    return {"ETag": f'"{revision}"'}


def located(memory: Memory, *parts: object) -> dict[str, str]:
    """`Location` of something of this user."""
    scope = memory.scope
    told = {"agent": scope.address.agent, "channel": scope.address.channel}
    query = urlencode({name: value for name, value in told.items() if value != DEFAULT})
    path = "/".join(segment(str(part)) for part in ("v1", "users", scope.owner.user, *parts))
    return {"Location": f"/{path}?{query}" if query else f"/{path}"}


def segment(id_: str) -> str:
    """An id as a segment of a path. One of dots alone is encoded, too: clients take it for a step up."""
    return id_.replace(".", "%2E") if id_ in (".", "..") else quote(id_, safe="")


def expected(if_match: str | None, if_none_match: str | None = None) -> int | None:
    """The revision that `If-Match` names; 0 for `If-None-Match: *`, which means that there is none yet."""
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise InvalidInput("`If-None-Match` can only be *, without `If-Match`: it means that the key must be new")
        return 0
    if if_match is None:
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(f"`If-Match` = {brief(if_match)} must be the `ETag` that was answered before")
    return int(text)


def page_of(items: Sequence[T], page: PageRequest, name: Callable[[T], object]) -> JsonAnswer:
    """A page of a whole list: what comes behind the items that the cursor names, and the cursor for more.

    A cursor names the last few that were shown. One of them may have gone, or moved to the front because it was changed:
    the others still tell the place.
    """
    start = 0
    if page.cursor is not None:
        wanted = read_cursor(page.cursor)
        if not isinstance(wanted, list):
            raise NotFound("`cursor` is not from this list; start again without it")
        places = [place for place, item in enumerate(items) if _tag(name(item)) in wanted]
        if not places:
            raise NotFound("`cursor` names something that is no longer in this list; begin again without it")
        start = places[-1] + 1
    end = start + page.limit
    if start >= page.most:
        raise LimitExceeded(f"a list shows at most `page_rows_max` = {page.most} rows; narrow it, or raise the limit")
    last = [_tag(name(item)) for item in items[max(0, end - CURSOR_ITEMS) : end]]
    more = len(items) > end or end >= page.most
    return answer({"items": items[start:end], "next": cursor(last) if more else None} | _pending(items))


def _tag(name: object) -> str:
    return hashlib.sha256(json.dumps(plain(name)).encode()).hexdigest()[:12]


def page_behind(items: Sequence[T], page: PageRequest, name: Callable[[T], object]) -> JsonAnswer:
    """A page that was listed from its cursor on, with one item more than is shown if there is more."""
    shown = items[: page.limit]
    more = len(items) > page.limit or len(items) >= page.most
    return answer({"items": shown, "next": cursor(name(shown[-1])) if more else None} | _pending(items))


def _pending(items: Sequence[object]) -> dict[str, object]:
    """How much was still to be learned when the list was made, if anything was."""
    return {"pending": items.pending} if isinstance(items, PendingList) and items.pending else {}


def read_place(text: str) -> tuple[datetime, str]:
    """A moment and a name, as a cursor holds the place in a list that is ordered by time."""
    read = read_cursor(text)
    try:
        at, name = read
        return datetime.fromisoformat(at), str(name)
    except (TypeError, ValueError):
        raise NotFound("`cursor` is not from this list; start again without it") from None


def cursor(position: object) -> str:
    """An opaque text for a place in a list."""
    return urlsafe_b64encode(_ENCODE(plain(position)).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Any:
    try:
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (BadBase64, ValueError, UnicodeError, RecursionError):
        raise NotFound(f"`cursor` = {brief(text)} is not from this list; start again without it") from None


def held_in(text: str, kind: type[T]) -> T:
    """The id or the number that a cursor names."""
    found = read_cursor(text)
    if type(found) is not kind or not found or (isinstance(found, int) and not 0 <= found <= NUMBER_MAX):
        raise NotFound(f"`cursor` = {brief(text)} is not from this list; start again without it")
    return found


LOG = logging.getLogger("perdure.http")
UNSAID = (PLAIN, WORDS)
"""Patterns that say nothing to people."""
MEDIA_TYPE = "application/problem+json"
TITLES = {
    "error": "Something went wrong",
    "invalid_input": "Invalid request",
    "not_found": "Not found",
    "conflict": "Another write came first, or the id is taken",
    "unavailable": "The store cannot answer now",
    "limit_exceeded": "Limit exceeded",
    "unsupported": "This store cannot do that",
    "corrupt": "Stored data is damaged",
    "unauthenticated": "Sign-in required",
    "forbidden": "This key does not permit it",
}


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    title = TITLES.get(code, "Something went wrong")
    body = {"type": f"/errors#{code}", "title": title, "status": status, "detail": detail, "code": code, **more}
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Have every error that a route raises told as a problem."""
    app.add_exception_handler(PerdureError, _perdure_problem)
    app.add_exception_handler(AccessDenied, _denied)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def _perdure_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, PerdureError)  # noqa: S101 - it is registered for these
    return perdure_problem(error)


def perdure_problem(error: PerdureError) -> Response:
    status = http_status(error)
    seconds = getattr(error, "retry_after_s", 1.0)
    headers = {"Retry-After": str(max(1, round(seconds)))} if status in (429, 503) else None
    return problem(status, error.code, str(error), headers, retriable=error.retriable)


async def _denied(_: Request, error: Exception) -> Response:
    assert isinstance(error, AccessDenied)  # noqa: S101 - it is registered for these
    return denied_problem(error)


def denied_problem(error: AccessDenied) -> Response:
    headers = {"WWW-Authenticate": 'Bearer realm="perdure"'} if error.status == 401 else None
    return problem(error.status, error.code, str(error), headers, retriable=False)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - it is registered for these
    found = [{"where": ".".join(str(part) for part in one["loc"]), "what": _what(one)} for one in error.errors()[:20]]
    first = "; ".join(f"{one['where']}: {one['what']}" for one in found[:3])
    malformed = any(one["type"] == "json_invalid" for one in error.errors())
    return problem(
        400 if malformed else 422, "invalid_input", f"the request does not fit: {first}"[:1_000], retriable=False, errors=found
    )


def _what(wrong: Mapping[str, Any]) -> str:
    """Why a field does not fit. Those reasons are told in our words that a caller meets by accident."""
    if wrong["type"] == "json_invalid":
        return f"this is no JSON: {wrong.get('ctx', {}).get('error', 'it cannot be read')}"
    if wrong["type"] == "string_pattern_mismatch":
        pattern = wrong.get("ctx", {}).get("pattern")
        return "must be text without NUL, and not empty" if pattern in UNSAID else f"must fit the pattern {pattern}"
    return str(wrong["msg"])


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these
    headers = error.headers
    if error.status_code == 405 and (allowed := getattr(request.app.state, "allowed", None)) is not None:
        headers = {"Allow": allowed(request.scope["path"]) or dict(headers or {}).get("Allow", "")}
    detail = "there is nothing at this path" if (error.status_code, error.detail) == (404, "Not Found") else str(error.detail)
    code = {404: "not_found", 401: "unauthenticated", 403: "forbidden"}.get(error.status_code, "invalid_input")
    return problem(error.status_code, code, detail, headers, retriable=False)


async def _bug(_: Request, error: Exception) -> Response:
    LOG.error("a request failed with %s; this is a bug in perdure", type(error).__name__)
    return problem(500, "error", "this is a bug in perdure; the server's log names it", retriable=False)
