"""`/u/{user}`: what is held, what is due, what is degraded, what happened lately. And the ways in: `/`, `/users`, undo."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from starlette.responses import RedirectResponse

from perdure.app import parts_of
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.journal import Operation
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass
from perdure.interfaces.access import LOCAL, AccessDenied
from perdure.interfaces.connect import program_path, store_words
from perdure.interfaces.demo import data as demo_data
from perdure.interfaces.web.charts import activity
from perdure.interfaces.web.filters import short
from perdure.interfaces.web.page import address, door, memory_of, own_page, page, redirect_with_notice
from perdure.interfaces.web.words import change_line, local_now

router = APIRouter()
DAYS = 30
RECENT = 10
PROPOSALS_MAX = 200
LOOKED_AT = 300
TELLING = ("statement", "todo", "lesson", "instruction", "memory", "entity", "suggestion", "task")
"""Kinds of rows that say something to people, the most telling first."""
WORDED = ("statement", "todo", "task", "lesson", "instruction")
"""Of these, what a row says names the change."""
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


@router.get("/docs")
def api(request: Request) -> Response:
    """The HTTP API, to read and to try."""
    request.state.access.allow("read")
    return page(request, "docs.html", token=own_token(request))


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
    [undone], newest = memory.journal.list(1, before=operation + 1), memory.journal.list(1)
    told = f"Undone: {short(change_line(undone).text)}" if undone.kind in WORDED else "The change is undone."
    return redirect_with_notice(request, own_page(request, back), told, undo=newest[0] if newest else None)


@router.get("/u/{user:id}")
def home(request: Request) -> Response:
    memory = memory_of(request)
    overview = memory.admin.overview(days=DAYS)
    now = local_now(request)
    recent = _telling(memory.journal.list(LOOKED_AT))
    lessons = memory.lessons.list(limit=1_000)
    empty = not any(overview.counts[name] for name in ("messages", "memories", "state", "series", "todos"))
    return page(
        request,
        "home.html",
        overview=overview,
        lessons=len(lessons),
        proposals=len(memory.memories.proposals(PROPOSALS_MAX)),
        memories=sum(one.count for one in memory.memories.groups()),
        chart=activity(overview.days),
        due=memory.todos.list(due_before=now + timedelta(days=DUE_DAYS), limit=8),
        now=now,
        degraded=_degraded(request),
        recent=[(one, change_line(one)) for one in recent],
        empty=empty,
        ways=_ways_in(request, memory.scope.owner.user) if empty else None,
        demo=_demo_action(request, empty=empty),
    )


@router.post("/demo/{action}")
def demo(request: Request, action: str) -> Response:
    """Put the demo data into this store, or remove it."""
    engine = door(request).whole("admin")
    if action == "add":
        told = "The demo data is here. It is all invented." if demo_data.add(engine) else "The demo data is here already."
        return redirect_with_notice(request, address(demo_data.USER), told)
    if action != "remove":
        raise InvalidInput(f"{brief(action)} is unknown; use add or remove")
    demo_data.remove(engine)
    return redirect_with_notice(request, "/", "The demo data is removed.")


def _demo_action(request: Request, *, empty: bool) -> str | None:
    """What can be done with the demo data here: `add`, `remove`, or nothing."""
    is_demo = request.path_params["user"] == demo_data.USER
    if not empty and not is_demo:
        return None
    try:
        engine = door(request).whole("admin")
    except AccessDenied:
        return None
    if is_demo and demo_data.is_there(engine):
        return "remove"
    return None if engine.memory(demo_data.USER).conversation.list_sessions(limit=1) else "add"


@dataclass(frozen=True, slots=True)
class WaysIn:
    """What a client needs to reach this store."""

    base: str
    store: str
    """The store, as far as the caller may know it."""
    token: str
    """What to send as Bearer; empty if nobody is asked."""
    command: str
    arguments: list[str]
    opened: str
    """The arguments of `perdure.open`."""


def _ways_in(request: Request, user: str) -> WaysIn:
    access, options = request.state.access, request.app.state.guard.options
    at_home = access.users is None and "admin" in access.permissions
    words = store_words(parts_of(request.app.state.engine)[2].url) if at_home else []
    token = own_token(request) or ("" if options.no_auth else "pdr_…")
    return WaysIn(
        base=str(request.base_url).rstrip("/"),
        store=words[1] if words else door(request).seen.health().store.location if at_home else "",
        token=token,
        command=program_path() if at_home else "perdure",
        arguments=["mcp", "--user", user, *words],
        opened=json.dumps(words[1]) if words else "",
    )


def own_token(request: Request) -> str:
    """This machine's token, for those who came by it; empty if nobody is asked for one, or another key was shown."""
    options = request.app.state.guard.options
    return options.token if not options.no_auth and request.state.access == LOCAL and options.token else ""


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
    except AccessDenied:
        return ()
    return tuple(engine.health().degraded)
