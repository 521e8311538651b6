"""`/u/{user}/lessons`: how to behave, as learned before; line by line, or as the book that people edit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from perdure.domain.errors import InvalidInput
from perdure.domain.lessons import LESSON_SCOPES, SPACE_SCOPES, Lesson, LessonScope
from perdure.domain.text import brief, check_id
from perdure.interfaces.web.rendering import Here, done, door, memory_of, page, undoable

router = APIRouter()
ROWS_MAX = 1_000
SCOPES = {
    "global": "everybody’s agents",
    "agent": "this agent, whoever it talks with",
    "user": "this user, whichever agent",
    "channel": "this user on this channel",
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
    chosen = _scope(scope)
    if request.state.access.users is not None:
        chosen = chosen or "user"
    _allow(request, chosen)
    lesson = memory.lessons.add(text.strip(), chosen)
    return _told(request, lesson, "It is kept.")


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
    _allow(request, chosen)
    refused = memory.lessons.edit(_lines(text), chosen, was=_lines(was))
    here = Here(request)
    if not refused:
        return done(request, here("lessons", "book", scope=chosen), "The book is kept.")
    told = "; ".join(f"“{one.text[:60]}” {one.why}" for one in refused[:3])
    return done(request, here("lessons", "book", scope=chosen), f"{len(refused)} lines are no lessons: {told}", bad=True)


@router.post("/u/{user:id}/lessons/{lesson}/{action}")
def act(request: Request, lesson: str, action: str) -> Response:
    memory = memory_of(request, "write")
    check_id(lesson, "lesson", bytes_max=400)
    does = {
        "pin": (memory.lessons.pin, "It is pinned: shown before others."),
        "unpin": (memory.lessons.unpin, "It is treated as the others."),
        "archive": (memory.lessons.archive, "It is kept, but no longer shown."),
        "restore": (memory.lessons.restore, "It holds again."),
        "remove": (memory.lessons.remove, "It holds no longer."),
    }
    if action not in does:
        raise InvalidInput(f"{brief(action)} is nothing that can be done with a lesson; use one of {', '.join(does)}")
    call, told = does[action]
    held = next((one for one in memory.lessons.list(archived=True, ended=True, limit=ROWS_MAX) if one.id == lesson), None)
    _allow(request, None if held is None else held.scope)
    return _told(request, call(lesson), told)


def _told(request: Request, lesson: Lesson, text: str) -> Response:
    memory = memory_of(request, "write")
    # What belongs to the space is journalled there, not with this user.
    undo = undoable(memory, "lesson", lesson.id) if lesson.scope in ("user", "channel") else None
    return done(request, Here(request)("lessons"), text, undo=undo)


def _allow(request: Request, scope: LessonScope | None) -> None:
    """What reaches every user of the space is not for a key that is bound to some of them."""
    if scope in SPACE_SCOPES:
        door(request).whole("write")


def _scope(text: str) -> LessonScope | None:
    return next((one for one in LESSON_SCOPES if one == text), None)


def _lines(text: str) -> str:
    """A browser sends lines that end in two characters."""
    return text.replace("\r\n", "\n")
