"""`/u/{user}/memories`: what is known, each with where it was said, since when it holds, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.knowledge import FACT_TYPES, MEMORY_TYPES, MemoryType
from perdure.domain.memories import Statement
from perdure.domain.text import brief
from perdure.handles.knowledge import ListFields, RememberFields
from perdure.handles.memory import Memory
from perdure.interfaces.web.rendering import Here, done, memory_of, page, undoable
from perdure.interfaces.web.telling import change_line, read_moment
from perdure.services.knowledge import Recalled

router = APIRouter()
ROWS_MAX = 1_000
PAGE = 50
QUOTED_MAX = 3
"""So many of the messages in which a statement was said are shown word for word."""


class Asked(BaseModel):
    """What the list is asked for."""

    type: str = ""
    entity: str = ""
    status: str = ""
    q: str = ""
    as_of: str = ""
    page: Annotated[int, Query(ge=1, le=1_000)] = 1


@router.get("/u/{user:id}/memories")
def list_memories(request: Request, asked: Annotated[Asked, Query()]) -> Response:
    memory = memory_of(request)
    which: ListFields = {"limit": ROWS_MAX, "archived": asked.status in ("archived", "all")}
    if asked.entity.strip():
        which["entity"] = asked.entity.strip()
    if asked.status == "pinned":
        which["pinned"] = True
    if (moment := read_moment(asked.as_of, request, "as of")) is not None:
        which["as_of"] = moment
    found = [one for one in memory.memories.list(_type(asked.type), **which) if _shown(one, asked)]
    first = (asked.page - 1) * PAGE
    return page(
        request,
        "memories.html",
        found=found[first : first + PAGE],
        total=len(found),
        asked=asked,
        more=len(found) > first + PAGE,
        types=MEMORY_TYPES,
        fact_types=FACT_TYPES,
    )


@router.post("/u/{user:id}/memories")
def remember(
    request: Request,
    content: Annotated[str, Form()],
    type: Annotated[str, Form()] = "PROFILE",  # noqa: A002 - the word of the requirements
    fact_type: Annotated[str, Form()] = "fact",
    entities: Annotated[str, Form()] = "",
    importance: Annotated[int, Form()] = 1,
    pinned: Annotated[bool, Form()] = False,
) -> Response:
    memory = memory_of(request, "write")
    fields: RememberFields = {"importance": importance, "pinned": pinned, "fact_type": fact_type}  # type: ignore[typeddict-item]  # checked by the service
    if names := [name.strip() for name in entities.split(",") if name.strip()]:
        fields["entities"] = names
    outcome = memory.remember(content.strip(), type, **fields)  # type: ignore[arg-type]  # checked by the service
    if outcome.statement is None:
        raise InvalidInput(f"it was not kept: {outcome.reason or outcome.verdict}")
    here = Here(request)
    said = {"added": "It is remembered.", "mentioned": "It was known already; this is counted as a mention."}
    return done(
        request,
        here("memories", outcome.statement.memory),
        said.get(outcome.verdict, f"It is remembered ({outcome.verdict})."),
        undo=undoable(memory, "statement", outcome.statement.id),
    )


@router.get("/u/{user:id}/memories/{key:id}")
def show(request: Request, key: str) -> Response:
    memory = memory_of(request)
    held = memory.memories.get(key)
    history = memory.memories.history(key)
    changes = memory.memories.changes(key, limit=30)
    current = {one.id for one in held.statements}
    return page(
        request,
        "memory.html",
        held=held,
        key=held.memory.record_key,
        statements=[(one, _quotes(memory, one)) for one in held.statements],
        past=[one for one in history if one.id not in current],
        changes=[(one, change_line(one)) for one in changes],
        fact_types=FACT_TYPES,
    )


@router.post("/u/{user:id}/memories/{key:id}/edit")
def edit(
    request: Request,
    key: str,
    importance: Annotated[int | None, Form()] = None,
    label: Annotated[str, Form()] = "",
) -> Response:
    memory = memory_of(request, "write")
    held = memory.memories.edit(key, importance=importance, label=label.strip() or None)
    return _back(request, memory, held, "It is changed.")


@router.post("/u/{user:id}/memories/{key:id}/correct")
def correct(
    request: Request,
    key: str,
    statement: Annotated[str, Form()],
    content: Annotated[str, Form()],
    value: Annotated[str, Form()] = "",
) -> Response:
    """Say it otherwise: the statement ends, and another one takes its place."""
    memory = memory_of(request, "write")
    held = memory.memories.get(key)
    old = next((one for one in held.statements if one.id == statement), None)
    if old is None:
        raise InvalidInput("the statement is no longer current; load the page again")
    if old.attribute is not None and content.strip() != old.content and (value.strip() or old.value) == old.value:
        # Saved as it is, it would count as the old words said once more.
        named = old.attribute.replace("_", " ")
        raise InvalidInput(f"the words are changed, but `{named}` still is {old.value!r:.80}; change that, too")
    outcome = memory.remember(content.strip(), held.memory.type, **_as_said(held, old, value.strip()))  # type: ignore[arg-type]
    if outcome.statement is None:
        raise InvalidInput(f"it was not kept: {outcome.reason or outcome.verdict}")
    where = Here(request)("memories", outcome.statement.memory)
    if outcome.statement.id != old.id and any(one.id == old.id for one in memory.memories.get(key).statements):
        # Words that are no value of an attribute do not push one another out: what was said before is ended by name.
        ended = {**_as_said(held, old, old.value or ""), "corrects": False, "ended": True}
        memory.remember(old.content, held.memory.type, **ended)  # type: ignore[arg-type]
        return done(request, where, "It is corrected. The old words are in its history; the journal takes either step back.")
    undo = undoable(memory, "statement", outcome.statement.id)
    return done(request, where, "It is corrected.", undo=undo)


@router.post("/u/{user:id}/memories/{key:id}/{action}")
def act(request: Request, key: str, action: str, back: Annotated[str, Form()] = "") -> Response:
    memory = memory_of(request, "write")
    does = {
        "pin": (memory.memories.pin, "It is pinned: part of every context from now on."),
        "unpin": (memory.memories.unpin, "It is no longer pinned."),
        "archive": (memory.memories.archive, "It is put away. Nothing is lost."),
        "restore": (memory.memories.restore, "It is shown again."),
    }
    if action not in does:
        raise InvalidInput(f"{brief(action)} is nothing that can be done with a memory; use one of {', '.join(does)}")
    call, told = does[action]
    return _back(request, memory, call(key), told, to_list=back == "list")


def _back(request: Request, memory: Memory, held: Recalled, told: str, *, to_list: bool = False) -> Response:
    here = Here(request)
    key = held.memory.record_key
    return done(request, here("memories") if to_list else here("memories", key), told, undo=undoable(memory, "memory", key))


def _type(text: str) -> MemoryType | None:
    known: Sequence[MemoryType] = get_args(MemoryType)
    return next((one for one in known if one == text), None)


def _shown(one: Recalled, asked: Asked) -> bool:
    if asked.status == "archived" and one.memory.status != "ARCHIVED":
        return False
    text = f"{one.memory.label or ''} {one.content} {' '.join(one.memory.entities)}".casefold()
    return all(word in text for word in asked.q.casefold().split())


def _quotes(memory: Memory, statement: Statement) -> list[dict[str, Any]]:
    """The last places where it was said, with the words if the message can be read here."""
    found = []
    for evidence in reversed(statement.evidence[-QUOTED_MAX:]):
        try:
            text = memory.message(evidence.message).content
        except PerdureError:  # said to another agent, or forgotten since
            text = None
        found.append({"evidence": evidence, "text": text})
    return found


def _as_said(held: Recalled, old: Statement, value: str) -> RememberFields:
    fields: dict[str, Any] = {
        "fact_type": held.memory.fact_type,
        "entities": list(old.entities),
        "importance": old.importance,
        "attribute": old.attribute,
        "value": value or old.value,
        "subject": None if old.subject == "user" else old.subject,
        "corrects": True,
        "visible_to": held.memory.visible_to,
    }
    return fields  # type: ignore[return-value]  # what is None is as if it were not given
