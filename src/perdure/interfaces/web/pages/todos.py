"""`/u/{user}/todos`: what the user means to do, and what the agent itself is doing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from perdure.domain.knowledge.entities import Todo
from perdure.domain.knowledge.proposals import TODO_KINDS, TodoKind
from perdure.interfaces.web.page import PageLinks, acted, memory_of, own_page, page, redirect_with_notice, undoable
from perdure.interfaces.web.words import local_now, read_moment

router = APIRouter()
ROWS_MAX = 500


ACTIONS = {"complete": "Done.", "skip": "Skipped.", "reopen": "Reopened."}


@router.get("/u/{user:id}/todos")
def list_todos(request: Request, show: str = "open", kind: str = "") -> Response:
    memory = memory_of(request)
    found = memory.todos.list(_kind(kind), closed=show != "open", limit=ROWS_MAX)
    if show == "closed":
        found = [one for one in found if one.state != "pending"]
    now = local_now(request)
    return page(
        request,
        "todos.html",
        groups=_groups(found, now, show),
        total=len(found),
        tasks=memory.todos.tasks.list(closed=show != "open", limit=50),
        instructions=memory.instructions.list(limit=50),
        show=show,
        kind=kind,
        kinds=TODO_KINDS,
        now=now,
    )


@router.post("/u/{user:id}/todos")
def add(
    request: Request,
    content: Annotated[str, Form()],
    kind: Annotated[str, Form()] = "commitment",
    due_at: Annotated[str, Form()] = "",
    recurrence: Annotated[str, Form()] = "",
) -> Response:
    memory = memory_of(request, "write")
    when = read_moment(due_at, request, "due")
    todo = memory.todos.add(content.strip(), kind, due_at=when, recurrence=recurrence.strip() or None)  # type: ignore[arg-type]  # checked by the service
    return redirect_with_notice(request, PageLinks(request)("todos"), "Added.", undo=undoable(memory, "todo", todo.id))


@router.post("/u/{user:id}/todos/{todo:id}/{action}")
def act(request: Request, todo: str, action: str, back: Annotated[str, Form()] = "") -> Response:
    memory = memory_of(request, "write")
    held, told = acted(request, memory.todos, todo, action, ACTIONS)
    to = own_page(request, back) if back else PageLinks(request)("todos")
    return redirect_with_notice(request, to, told, undo=undoable(memory, "todo", held.id))


def _kind(text: str) -> TodoKind | None:
    return next((one for one in TODO_KINDS if one == text), None)


def _groups(found: Sequence[Todo], now: object, show: str) -> list[tuple[str, list[Todo]]]:
    """In the order in which people look at them."""
    if show == "closed":
        return [("Closed", list(found))]
    waiting = [one for one in found if one.state == "pending"]
    late = [one for one in waiting if one.due_at is not None and one.due_at < now]  # type: ignore[operator]
    coming = [one for one in waiting if one.due_at is not None and one not in late]
    some_day = [one for one in waiting if one.due_at is None]
    over = [one for one in found if one.state != "pending"]
    groups = [("Overdue", late), ("Upcoming", coming), ("No date", some_day), ("Closed", over)]
    return [(title, todos) for title, todos in groups if todos]
