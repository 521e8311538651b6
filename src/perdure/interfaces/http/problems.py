"""Errors as `application/problem+json` (RFC 9457), from the one table of errors. No stack trace leaves the server."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from perdure.domain.errors import PerdureError
from perdure.interfaces.access import Denied
from perdure.interfaces.errors import http_status
from perdure.interfaces.http.asking import PLAIN, WORDS

LOG = logging.getLogger("perdure.http")
UNSAID = (PLAIN, WORDS)
"""Patterns that say nothing to people."""
MEDIA_TYPE = "application/problem+json"
TITLES = {
    "error": "Something went wrong",
    "invalid_input": "The request is wrong",
    "not_found": "There is no such thing",
    "conflict": "Another write came first, or the id is taken",
    "unavailable": "The store cannot answer now",
    "limit_exceeded": "A bound was reached",
    "unsupported": "This store cannot do that",
    "corrupt": "Stored data is damaged",
    "unauthenticated": "Who is asking?",
    "forbidden": "This key does not permit it",
}


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    body = {
        "type": f"/errors#{code}", "title": TITLES.get(code, "Something went wrong"), "status": status, "detail": detail,
        "code": code, **more,
    }  # fmt: skip
    return Response(json.dumps(body), status, headers, MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Have every error that a route raises told as a problem."""
    app.add_exception_handler(PerdureError, _told)
    app.add_exception_handler(Denied, _denied)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _bug)


async def _told(_: Request, error: Exception) -> Response:
    assert isinstance(error, PerdureError)  # noqa: S101 - it is registered for these
    status = http_status(error)
    seconds = getattr(error, "retry_after_s", 1.0)
    headers = {"Retry-After": str(max(1, round(seconds)))} if status in (429, 503) else None
    return problem(status, error.code, str(error), headers, retriable=error.retriable)


async def _denied(_: Request, error: Exception) -> Response:
    assert isinstance(error, Denied)  # noqa: S101 - it is registered for these
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
    code = {404: "not_found", 401: "unauthenticated", 403: "forbidden"}.get(error.status_code, "invalid_input")
    return problem(error.status_code, code, str(error.detail), headers, retriable=False)


async def _bug(_: Request, error: Exception) -> Response:
    LOG.error("a request failed with %s; this is a bug in perdure", type(error).__name__)
    return problem(500, "error", "this is a bug in perdure; the server's log names it", retriable=False)
