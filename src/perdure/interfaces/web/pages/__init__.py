"""The pages, a module for each part. `router` is all of them; `login_page` and `error_page` are for the server."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from perdure.interfaces.web.page import compile_template as compile_template
from perdure.interfaces.web.page import page
from perdure.interfaces.web.page import template_names as template_names
from perdure.interfaces.web.pages import (
    context,
    entities,
    jobs,
    journal,
    lessons,
    memories,
    search,
    series,
    state,
    timeline,
    todos,
)
from perdure.interfaces.web.pages.conversation import chat, conversations
from perdure.interfaces.web.pages.store import home, portability, status

router = APIRouter(include_in_schema=False)
for _part in (
    home,
    chat,
    search,
    memories,
    timeline,
    entities,
    todos,
    lessons,
    conversations,
    series,
    state,
    context,
    journal,
    jobs,
    portability,
    status,
):
    router.include_router(_part.router)


def login_page(request: Request, *, error: str | None, next: str, csrf: str) -> Response:  # noqa: A002 - the field of the form
    """Where a key is asked for."""
    return page(request, "login.html", 401 if error else 200, error=error, next=next, csrf=csrf)


def error_page(request: Request, *, status: int, title: str, detail: str) -> Response:
    """An error for people: what went wrong and what to do, never how it happened inside."""
    # Whatever failed must not be asked again to tell of it.
    request.state.places, request.state.failed = (), True
    return page(request, "error.html", status, code=status, title=title, detail=detail)
