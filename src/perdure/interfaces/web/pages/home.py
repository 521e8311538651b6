"""`/u/{user}`: what is held, what is due, what is degraded, what happened lately. And the ways in: `/`, `/users`, undo."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from perdure.domain.journal import Operation
from perdure.interfaces.access import Denied
from perdure.interfaces.web.drawing import activity
from perdure.interfaces.web.rendering import address, done, door, memory_of, own, page
from perdure.interfaces.web.telling import change_line, local_now

router = APIRouter()
DAYS = 30
RECENT = 10
LOOKED_AT = 300
TELLING = ("statement", "todo", "lesson", "instruction", "memory", "entity", "suggestion", "task")
"""Kinds of rows that say something to people, the most telling first."""
DUE_DAYS = 7
FALLBACK_USER = "me"
USERS_SHOWN = 1_000


@router.get("/")
def start(request: Request) -> Response:
    """To the user that is meant when none is named."""
    access, engine = request.state.access, door(request).seen
    named = engine.default_user
    if access.users is not None:
        named = named if named in access.users else min(access.users, default="")
    if not named:
        named = next(iter(engine.users(limit=1)), FALLBACK_USER)
    return RedirectResponse(address(named), 303)


@router.get("/users")
def users(request: Request, q: str = "") -> Response:
    """Whose memory may be looked at."""
    access, engine = request.state.access, door(request).seen
    access.allow("read")
    known = engine.users(limit=USERS_SHOWN) if access.users is None else sorted(access.users)
    found = [one for one in known if q.casefold() in one.casefold()]
    return page(request, "users.html", users=found, q=q, open=access.users is None)


@router.post("/u/{user:id}/undo")
def undo(
    request: Request,
    operation: Annotated[int, Form()],
    back: Annotated[str, Form()] = "",
    cascade: Annotated[bool, Form()] = False,
) -> Response:
    """Take an action back, and return to where that was asked."""
    memory = memory_of(request, "write")
    memory.undo(operation, cascade=cascade)
    newest = memory.journal(1)
    return done(request, own(request, back), f"Operation {operation} is undone.", undo=newest[0] if newest else None)


@router.get("/u/{user:id}")
def home(request: Request) -> Response:
    memory = memory_of(request)
    overview = memory.overview(days=DAYS)
    now = local_now(request)
    recent = _telling(memory.journal(LOOKED_AT))
    lessons = memory.lessons.list(limit=1_000)
    empty = not any(overview.counts[name] for name in ("messages", "memories", "state", "series", "todos"))
    return page(
        request,
        "home.html",
        overview=overview,
        lessons=len(lessons),
        chart=activity(overview.days),
        due=memory.todos.list(due_before=now + timedelta(days=DUE_DAYS), limit=8),
        now=now,
        degraded=_degraded(request),
        recent=[(one, change_line(one)) for one in recent],
        empty=empty,
        base=str(request.base_url).rstrip("/"),
    )


def _telling(operations: Sequence[Operation]) -> list[Operation]:
    """Of each action what tells most of it; what is only counted or summed up tells people nothing."""
    actions: dict[int, Operation] = {}
    for one in operations:
        held = actions.get(one.batch)
        if one.kind in TELLING and (held is None or TELLING.index(one.kind) < TELLING.index(held.kind)):
            actions[one.batch] = one
    return list(actions.values())[:RECENT]


def _degraded(request: Request) -> tuple[str, ...]:
    """Of the whole store, for those who may know about it."""
    try:
        engine = door(request).whole("read")
    except Denied:
        return ()
    return tuple(engine.health().degraded)
