"""`/u/{user}/memories`: what is known, each with where it was said, since when it holds, and what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.knowledge.memories import Statement
from perdure.domain.knowledge.proposals import FACT_TYPES, MEMORY_TYPES, MemoryType
from perdure.handles.memory import Memory
from perdure.interfaces.web.page import PageLinks, acted, memory_of, own_page, page, redirect_with_notice, undoable
from perdure.interfaces.web.words import change_line, read_moment
from perdure.services.knowledge.memories import MemoryWithStatements

router = APIRouter()
ROWS_MAX = 1_000
PAGE = 50
PROPOSALS_MAX = 50
QUOTED_MAX = 3
"""So many of the messages in which a statement was said are shown word for word."""

ACTIONS = {
    "pin": "It is pinned: part of every context from now on.",
    "unpin": "It is no longer pinned.",
    "archive": "It is put away. Nothing is lost.",
    "restore": "It is shown again.",
}


class MemoryFilter(BaseModel):
    """What the list is asked for."""

    type: str = ""
    entity: str = ""
    status: str = ""
    q: str = ""
    as_of: str = ""
    page: Annotated[int, Query(ge=1, le=1_000)] = 1


@router.get("/u/{user:id}/memories")
def list_memories(request: Request, asked: Annotated[MemoryFilter, Query()]) -> Response:
    memory = memory_of(request)
    which: dict[str, Any] = {"limit": ROWS_MAX, "archived": asked.status in ("archived", "all")}
    if asked.entity.strip():
        which["entity"] = asked.entity.strip()
    if asked.status == "pinned":
        which["pinned"] = True
    if (moment := read_moment(asked.as_of, request, "as of")) is not None:
        which["as_of"] = moment
    found = [one for one in memory.memories.list(_type(asked.type), **which) if _matches_filter(one, asked)]
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
        proposals=memory.memories.proposals(PROPOSALS_MAX),
    )


@router.post("/u/{user:id}/proposals/{proposal:id}/accept")
def accept(request: Request, proposal: str) -> Response:
    """Make what an agent proposes the user's own word."""
    memory = memory_of(request, "write")
    memory.memories.accept(proposal)
    return _back_to_proposals(request, memory, proposal, "It is accepted: the user's own word from now on.")


@router.post("/u/{user:id}/proposals/{proposal:id}/reject")
def reject(request: Request, proposal: str) -> Response:
    """Refuse what an agent proposes."""
    memory = memory_of(request, "write")
    memory.memories.reject(proposal)
    return _back_to_proposals(request, memory, proposal, "It is rejected, also when it is proposed again.")


def _back_to_proposals(request: Request, memory: Memory, proposal: str, told: str) -> Response:
    undo = undoable(memory, "statement", proposal)
    return redirect_with_notice(request, PageLinks(request)("memories"), told, undo=undo)


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
    fields: dict[str, Any] = {"importance": importance, "pinned": pinned, "fact_type": fact_type}
    if names := [name.strip() for name in entities.split(",") if name.strip()]:
        fields["entities"] = names
    outcome = memory.remember(content.strip(), type, **fields)  # type: ignore[arg-type]  # checked by the service
    if outcome.statement is None:
        raise InvalidInput(f"it was not kept: {outcome.reason or outcome.verdict}")
    here = PageLinks(request)
    said = {
        "added": "It is remembered.",
        "mentioned": "It was known already; this is counted as a mention.",
        "superseded": f"It is remembered, in place of: {'; '.join(one.content for one in outcome.closed)[:200]}",
    }
    return redirect_with_notice(
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
    return _back_to_memory(request, memory, held, "It is changed.")


@router.post("/u/{user:id}/memories/{key:id}/correct")
def correct(
    request: Request,
    key: str,
    statement: Annotated[str, Form()],
    content: Annotated[str, Form()],
    value: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "",
) -> Response:
    """Say it otherwise: the statement ends, and another one takes its place."""
    memory = memory_of(request, "write")
    outcome = memory.memories.correct(key, content.strip(), statement=statement, value=value.strip() or None)
    if outcome.statement is None:
        raise InvalidInput(f"it was not kept: {outcome.reason or outcome.verdict}")
    where = own_page(request, back) if back else PageLinks(request)("memories", outcome.statement.memory)
    return redirect_with_notice(request, where, "It is corrected.", undo=undoable(memory, "statement", outcome.statement.id))


@router.post("/u/{user:id}/memories/{key:id}/{action}")
def act(request: Request, key: str, action: str, back: Annotated[str, Form()] = "") -> Response:
    memory = memory_of(request, "write")
    held, told = acted(request, memory.memories, key, action, ACTIONS)
    return _back_to_memory(request, memory, held, told, back=back)


def _back_to_memory(request: Request, memory: Memory, held: MemoryWithStatements, told: str, *, back: str = "") -> Response:
    here = PageLinks(request)
    key = held.memory.record_key
    where = here("memories") if back == "list" else own_page(request, back) if back else here("memories", key)
    return redirect_with_notice(request, where, told, undo=undoable(memory, "memory", key))


def _type(text: str) -> MemoryType | None:
    known: Sequence[MemoryType] = get_args(MemoryType)
    return next((one for one in known if one == text), None)


def _matches_filter(one: MemoryWithStatements, asked: MemoryFilter) -> bool:
    if asked.status == "archived" and one.memory.status != "ARCHIVED":
        return False
    text = f"{one.memory.label or ''} {one.content} {' '.join(one.memory.entities)}".casefold()
    return all(word in text for word in asked.q.casefold().split())


def _quotes(memory: Memory, statement: Statement) -> list[dict[str, Any]]:
    """The last places where it was said, with the words if the message can be read here."""
    found = []
    for evidence in reversed(statement.evidence[-QUOTED_MAX:]):
        try:
            text = memory.conversation.message(evidence.message).content
        except PerdureError:  # said to another agent, or forgotten since
            text = None
        found.append({"evidence": evidence, "text": text})
    return found
