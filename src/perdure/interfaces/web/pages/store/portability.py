"""`/u/{user}/data` and `/u/{user}/forget`: export, import and forget, each with a look beforehand.

Exports and imports are the HTTP API's; the page asks it. What is forgotten is gone for good, so the page asks first.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief
from perdure.handles.memory import Memory
from perdure.interfaces.forecast import forecast
from perdure.interfaces.web.filters import counted, plural
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice
from perdure.services.forget.forget import ForgetReport

router = APIRouter()
FORMATS = {"auto": "Detect", "jsonl": "perdure export", "mem0": "mem0 export", "mcp": "MCP memory server"}
SHOWN = 30
NAMES = 1_000


class ForgetChoice(BaseModel):
    """What is to be forgotten: exactly one of these."""

    entity: str = ""
    memory: str = ""
    first: str = ""
    last: str = ""
    everything: bool = False

    @property
    def messages(self) -> tuple[str, str] | None:
        return (self.first.strip(), self.last.strip() or self.first.strip()) if self.first.strip() else None

    @property
    def named(self) -> dict[str, str]:
        """As the fields of a form."""
        given = {"entity": self.entity.strip(), "memory": self.memory, "first": self.first.strip(), "last": self.last.strip()}
        found = {name: value for name, value in given.items() if value}
        return {**found, "everything": "true"} if self.everything else found

    def check(self) -> None:
        """`InvalidInput` unless one thing is named."""
        chosen = sum(bool(one) for one in (self.entity.strip(), self.memory, self.first.strip(), self.everything))
        if chosen != 1:
            raise InvalidInput("name one thing to forget: an entity, a memory, messages, or everything")


@router.get("/u/{user:id}/data")
def show(request: Request) -> Response:
    memory = memory_of(request)
    return page(
        request,
        "data.html",
        counts=memory.admin.overview(days=1).counts,
        memories=sum(one.count for one in memory.memories.groups()),
        entities=memory.entities.list(limit=NAMES),
        formats=FORMATS,
    )


@router.get("/u/{user:id}/forget")
def ask(request: Request, chosen: Annotated[ForgetChoice, Query()]) -> Response:
    """What would go. Nothing is changed."""
    chosen.check()
    memory = memory_of(request)
    chosen.entity = _reference(memory, chosen.entity.strip())
    goes = forecast(memory, chosen.entity.strip() or None, chosen.memory or None, chosen.messages)
    return page(request, "forget.html", goes=goes, chosen=chosen, words=_words_that_go(memory, chosen, goes))


@router.post("/u/{user:id}/forget")
def forget(request: Request, chosen: Annotated[ForgetChoice, Form()], confirm: Annotated[str, Form()] = "") -> Response:
    """Forget it for good. Everything of a user only if the user's name is written out."""
    chosen.check()
    user = request.path_params["user"]
    if chosen.everything and confirm.strip() != user:
        raise InvalidInput("the user's name does not match; nothing was forgotten. Write it exactly as it is shown")
    done = memory_of(request, "write").forget(
        entity=chosen.entity.strip() or None,
        memory=chosen.memory or None,
        messages=chosen.messages,
        user=chosen.everything,
    )
    here = PageLinks(request)
    return redirect_with_notice(request, here() if chosen.everything else here("journal"), _told_of(done))


def _reference(memory: Memory, name: str) -> str:
    """The entity that has this name; what is a reference already, or names none, stays as it is."""
    if not name or ":" in name:
        return name
    same = [one.ref for one in memory.entities.list(limit=NAMES) if one.label.casefold() == name.casefold()]
    if len(same) > 1:
        raise InvalidInput(f"{brief(name)} names {len(same)} entities; use one of {', '.join(same)}")
    return same[0] if same else name


def _words_that_go(memory: Memory, chosen: ForgetChoice, goes: dict[str, object]) -> list[str]:
    """The statements that would be gone, word for word."""
    if chosen.memory and goes.get("known") is not False:
        return [one.content for one in memory.memories.history(chosen.memory) if one.memory == chosen.memory][:SHOWN]
    if chosen.entity and goes.get("known") is not False:
        return [one.content for one in memory.memories.list(entity=str(goes["entity"]), archived=True, limit=SHOWN)]
    return []


def _told_of(done: ForgetReport) -> str:
    waiting = f" {plural(done.pending, 'job')} still to learn from messages: forget again afterwards." if done.pending else ""
    if done.nothing:
        return "There was nothing to forget." + waiting
    removed = [counted(count, kind.replace("_", " ")) for kind, count in done.removed.items() if count]
    struck = sum(done.redacted.values())
    parts = [
        f"Removed: {', '.join(removed)}." if removed else "",
        f"Words struck out of {plural(struck, 'row')}." if struck else "",
    ]
    remain = f" {done.bytes_remain}" if done.bytes_remain else ""
    return " ".join(["Forgotten for good.", *(one for one in parts if one)]) + remain + waiting
