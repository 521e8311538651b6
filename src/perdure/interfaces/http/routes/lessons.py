"""`/v1/users/{user}/lessons`: how to behave, as learned before; and the books they stand in."""

from __future__ import annotations

import hashlib
import threading
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field

from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.lessons import Heard, Lesson, LessonScope, Refused
from perdure.interfaces.http.answering import answer, etag, page_of
from perdure.interfaces.http.asking import PLAIN, WORDS, Body, Id, Paged, Reads, Text, Writes, examples, in_path
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1/users/{user:id}", tags=["lessons"], route_class=OnceRoute)
LessonId = Annotated[str, in_path("The lesson's id.", "l-1")]
Scope = Annotated[LessonScope | None, Query(description="Whom they reach; where lessons from here go to, if left out.")]
Whose = Annotated[
    str | None, Query(min_length=1, max_length=400, pattern=PLAIN, description="The book of this agent, in place of a scope.")
]
IfMatch = Annotated[str | None, Header(max_length=100, description="The `ETag` of the text that was edited.")]


EDITING = threading.Lock()
"""Of two who edit the same text of a book here, the second is told. Elsewhere, lines of both stay."""


class NewLesson(Body):
    model_config = examples({"text": "Ask before booking anything"})

    text: str = Field(min_length=1, max_length=240, pattern=WORDS, description="One line to go by.")
    scope: LessonScope | None = Field(None, description="Whom it reaches; as the settings say, if left out.")
    agent: Id | None = Field(None, description="The one agent it is for, in place of a scope.")


class Reply(Body):
    model_config = examples({"reply": "Done.\nMEMORY_APPEND: Ana prefers trains to flights"})

    reply: Text = Field(description="What the model said.")
    message: Id | None = Field(None, description="The message as which the reply is logged.")


class NewText(Body):
    model_config = examples({"text": "- Ask before booking anything\n"})

    text: Text = Field(description="The book, as it should be.")
    was: Text | None = Field(None, description="The text that was edited: lines that came in meanwhile stay.")


@router.get("/lessons", summary="List lessons", **described("listLessons", many(Lesson)))
def list_lessons(
    memory: Reads,
    page: Paged,
    scope: Annotated[LessonScope | None, Query(description="Of this scope only.")] = None,
    archived: Annotated[bool, Query(description="Also what is kept but not shown.")] = False,
    ended: Annotated[bool, Query(description="Also what was taken back.")] = False,
) -> Response:
    """What holds at this address, the widest scope first."""
    found = memory.lessons.list(scope, archived=archived, ended=ended, limit=page.rows)
    return page_of(found, page, lambda one: [one.scope, one.agent, one.channel, one.id])


@router.post(
    "/lessons",
    summary="Add a lesson",
    **described("addLesson", Lesson, status=201, links=tuple(
        leads_to(name, lesson="/id") for name in ("pinLesson", "archiveLesson", "restoreLesson", "removeLesson"))),
)  # fmt: skip
def add(memory: Writes, body: NewLesson) -> Response:
    """The same words again change nothing."""
    return answer(memory.lessons.add(body.text, body.scope, agent=body.agent), 201)


@router.post("/lessons/from-reply", summary="Take lessons from a reply", **described("takeLessons", Heard))
def take_from(memory: Writes, body: Reply) -> Response:
    """Take out of a model's reply what it wants remembered, and keep that; show the user the `text` of the answer."""
    return answer(memory.lessons.take_from(body.reply, message=body.message))


@router.delete("/lessons/{lesson:id}", summary="Take a lesson back", **described("removeLesson", Lesson, errors=(404,)))
def remove(memory: Writes, lesson: LessonId) -> Response:
    """It holds no longer, and is not drawn again; `restore` brings it back."""
    return answer(memory.lessons.remove(lesson))


@router.post("/lessons/{lesson:id}/archive", summary="Archive a lesson", **described("archiveLesson", Lesson, errors=(404,)))
def archive(memory: Writes, lesson: LessonId) -> Response:
    """Keep it, but show it no longer."""
    return answer(memory.lessons.archive(lesson))


@router.post("/lessons/{lesson:id}/restore", summary="Restore a lesson", **described("restoreLesson", Lesson, errors=(404,)))
def restore(memory: Writes, lesson: LessonId) -> Response:
    """Show it again, whether it was archived or taken back."""
    return answer(memory.lessons.restore(lesson))


@router.post("/lessons/{lesson:id}/pin", summary="Pin a lesson", **described("pinLesson", Lesson, errors=(404,)))
def pin(memory: Writes, lesson: LessonId) -> Response:
    """Show it before others, and never archive it to make room."""
    return answer(memory.lessons.pin(lesson))


@router.post("/lessons/{lesson:id}/unpin", summary="Unpin a lesson", **described("unpinLesson", Lesson, errors=(404,)))
def unpin(memory: Writes, lesson: LessonId) -> Response:
    """Treat it as the others."""
    return answer(memory.lessons.unpin(lesson))


@router.get("/lesson-book", summary="Get a book of lessons", **described("getLessonBook", {"text": str}, headers=("ETag",)))
def text(memory: Reads, scope: Scope = None, agent_book: Whose = None) -> Response:
    """The book of a scope, as text that can be edited: the file if there is one, else a list."""
    found = memory.lessons.text(scope, agent=agent_book)
    return answer({"text": found}, headers=etag(_mark(found)))


@router.put(
    "/lesson-book",
    summary="Edit a book of lessons",
    **described("editLessonBook", {"text": str, "refused": list[Refused]}, errors=(409,), headers=("ETag",)),
)
def edit(memory: Writes, body: NewText, scope: Scope = None, agent_book: Whose = None, if_match: IfMatch = None) -> Response:
    """Lines that are gone end their lessons, new ones become lessons. The answer is the book as it stands then, and which
    lines are no lessons, and why."""
    was = body.was
    if if_match is not None and if_match.strip() != "*" and was is not None:
        raise InvalidInput("`was` stands beside `If-Match`, which says what the text was; give one of them")
    with EDITING:
        if if_match is not None and if_match.strip() != "*":
            was = memory.lessons.text(scope, agent=agent_book)
            if if_match.strip().removeprefix("W/").strip('"') != _mark(was):
                raise Conflict("the book was changed since it was read; read it again, then edit it")
        refused = memory.lessons.edit(body.text, scope, agent=agent_book, was=was)
        now = memory.lessons.text(scope, agent=agent_book)
    return answer({"text": now, "refused": refused}, headers=etag(_mark(now)))


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]
