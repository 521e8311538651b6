"""`/u/{user}/lessons`: how to behave, as learned before; line by line, or as the book that people edit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from perdure.domain.lessons import LESSON_SCOPES, Lesson, LessonScope
from perdure.interfaces.web.page import PageLinks, acted, memory_of, page, redirect_with_notice, undoable

router = APIRouter()
ROWS_MAX = 1_000
SCOPES = {
    "global": "all agents and users",
    "agent": "this agent, with every user",
    "user": "this user, with every agent",
    "channel": "this user on this channel",
}
ACTIONS = {
    "pin": "Pinned. It is shown before others.",
    "unpin": "Unpinned.",
    "archive": "Archived. It is no longer shown.",
    "restore": "Restored.",
    "remove": "Removed.",
}


@router.get("/u/{user:id}/lessons")
def list_lessons(request: Request, show: str = "shown", scope: str = "") -> Response:
    memory = memory_of(request)
    found = memory.lessons.list(_scope(scope), archived=show == "archived", ended=show == "ended", limit=ROWS_MAX)
    if show == "archived":
        found = [one for one in found if one.archived_at is not None and one.ended_at is None]
    elif show == "ended":
        found = [one for one in found if one.ended_at is not None]
    groups = [(one, [lesson for lesson in found if lesson.scope == one]) for one in LESSON_SCOPES]
    held = [group for group in groups if group[1]]
    return page(request, "lessons.html", groups=held, total=len(found), show=show, scope=scope, scopes=SCOPES)


@router.post("/u/{user:id}/lessons")
def add(request: Request, text: Annotated[str, Form()], scope: Annotated[str, Form()] = "") -> Response:
    memory = memory_of(request, "write")
    return _back_to_lessons(request, memory.lessons.add(text.strip(), _scope(scope)), "Saved.")


@router.get("/u/{user:id}/lessons/book")
def book(request: Request, scope: str = "user") -> Response:
    memory = memory_of(request)
    chosen = _scope(scope) or "user"
    return page(request, "lesson_book.html", text=memory.lessons.text(chosen), scope=chosen, scopes=SCOPES)


@router.post("/u/{user:id}/lessons/book")
def edit_book(
    request: Request,
    text: Annotated[str, Form()] = "",
    was: Annotated[str, Form()] = "",
    scope: Annotated[str, Form()] = "user",
) -> Response:
    memory = memory_of(request, "write")
    chosen = _scope(scope) or "user"
    refused = memory.lessons.edit(_lines(text), chosen, was=_lines(was))
    here = PageLinks(request)
    if not refused:
        return redirect_with_notice(request, here("lessons", "book", scope=chosen), "Saved.")
    told = "; ".join(f"“{one.text[:60]}” {one.why}" for one in refused[:3])
    return redirect_with_notice(
        request, here("lessons", "book", scope=chosen), f"{len(refused)} lines are no lessons: {told}", bad=True
    )


@router.post("/u/{user:id}/lessons/{lesson}/{action}")
def act(request: Request, lesson: str, action: str) -> Response:
    held, told = acted(request, memory_of(request, "write").lessons, lesson, action, ACTIONS)
    return _back_to_lessons(request, held, told)


def _back_to_lessons(request: Request, lesson: Lesson, text: str) -> Response:
    memory = memory_of(request, "write")
    # What belongs to the space is journalled there, not with this user.
    undo = undoable(memory, "lesson", lesson.id) if lesson.scope in ("user", "channel") else None
    return redirect_with_notice(request, PageLinks(request)("lessons"), text, undo=undo)


def _scope(text: str) -> LessonScope | None:
    return next((one for one in LESSON_SCOPES if one == text), None)


def _lines(text: str) -> str:
    """A browser sends lines that end in two characters."""
    return text.replace("\r\n", "\n")
