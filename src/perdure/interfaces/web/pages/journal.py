"""`/u/{user}/journal`: every change of what is derived, by whom and why, and a way back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.conversation.digests import DigestKind
from perdure.domain.errors import Conflict, NotFound
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.records import record_kind
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.interfaces.web.diffs import Field, fields
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice
from perdure.interfaces.web.words import LAYERS, OperationWords, change_line, is_forgotten

router = APIRouter()
SHOWN = 50
PAGE = 500
LOOKED_AT = 5_000
"""So many operations are looked through for a filter; then the page says how far it came."""
ASK = "ask"
ALL = "all"
COUNTS = "tally"


class JournalFilter(BaseModel):
    kind: str = ""
    actor: str = ""
    before: int | None = None

    def takes(self, one: Operation) -> bool:
        """Counts say nothing of what was learned: they are shown when somebody asks for all."""
        kind = one.kind != COUNTS if not self.kind else self.kind in (ALL, one.kind)
        return kind and self.actor in ("", one.actor)


@dataclass(frozen=True, slots=True)
class JournalLine:
    """An operation as it is shown."""

    operation: Operation
    change: OperationWords
    line: str
    """What it is about, in a few words."""
    link: str | None
    fields: list[Field]
    undoable: bool


@router.get("/u/{user:id}/journal")
def index(request: Request, asked: Annotated[JournalFilter, Query()]) -> Response:
    memory = memory_of(request)
    found, more, kinds, actors = _matching_operations(memory, asked)
    here = PageLinks(request)
    return page(
        request,
        "journal.html",
        told=[_journal_line(one, here) for one in found],
        more=more,
        asked=asked,
        kinds=sorted({*kinds, asked.kind} - {"", ALL}),
        actors=sorted({*actors, asked.actor} - {""}),
    )


@router.get("/u/{user:id}/journal/{operation}")
def show(request: Request, operation: int, cascade: str = "") -> Response:
    """One operation, with the others of its action."""
    memory = memory_of(request)
    held = _operation(memory, operation)
    here = PageLinks(request)
    action = [_journal_line(one, here) for one in _action(memory, held)]
    return page(request, "journal_one.html", one=_journal_line(held, here), action=action, asks=cascade == ASK)


@router.post("/u/{user:id}/journal/{operation}/undo")
def undo(request: Request, operation: int, cascade: Annotated[bool, Form()] = False) -> Response:
    """Take the action back. If later ones build on it, the page asks whether those should go, too."""
    memory, here = memory_of(request, "write"), PageLinks(request)
    try:
        number = memory.undo(operation, cascade=cascade)
    except Conflict as conflict:
        asks = None if cascade or "cascade" not in str(conflict) else ASK
        words = str(conflict).replace(", or say `cascade=True`", "") if asks else str(conflict)
        return redirect_with_notice(request, here("journal", operation, cascade=asks), words, bad=True)
    return redirect_with_notice(
        request, here("journal", number), "It is undone. This operation did it; undo it to have it again."
    )


# -- how


def _matching_operations(memory: Memory, asked: JournalFilter) -> tuple[list[Operation], int | None, set[str], set[str]]:
    """A page of operations that the filter takes, where to go on, and the kinds and actors that were met."""
    found: list[Operation] = []
    kinds: set[str] = set()
    actors: set[str] = set()
    before, looked = asked.before, 0
    while len(found) <= SHOWN and looked < LOOKED_AT:
        rows = memory.journal.list(PAGE, before=before)
        if not rows:
            return found, None, kinds, actors
        kinds |= {one.kind for one in rows}
        actors |= {one.actor for one in rows}
        found += [one for one in rows if asked.takes(one)]
        before, looked = rows[-1].seq, looked + PAGE
        if before <= 1:
            break
    more = found[SHOWN - 1].seq if len(found) > SHOWN else before if before is not None and before > 1 else None
    return found[:SHOWN], more, kinds, actors


def _operation(memory: Memory, number: int) -> Operation:
    found = [one for one in memory.journal.list(1, before=number + 1) if one.seq == number] if number > 0 else []
    if not found:
        raise NotFound(f"there is no operation {number} that this agent may see; the journal lists them")
    return found[0]


def _action(memory: Memory, held: Operation) -> Sequence[Operation]:
    """The operations of the same action, in order: they stand together."""
    rows = memory.journal.list(PAGE, before=held.batch + PAGE)
    return sorted((one for one in rows if one.batch == held.batch), key=lambda one: one.seq)


def _journal_line(one: Operation, here: PageLinks) -> JournalLine:
    told, place = change_line(one), _place(one)
    line = told.text if place is None else place.words
    link = place.link(here) if place is not None else None if told.link == ("journal",) else here(*told.link)
    return JournalLine(
        operation=one,
        change=told,
        line=line,
        link=link,
        fields=fields(one.before, one.after),
        undoable=record_kind(one.kind) is not None and not is_forgotten(one),
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A digest, or the counts, of a session: keys of the form `["coach","app",3,"fold",1]`."""

    agent: str
    channel: str
    session: int
    layer: DigestKind | None = None
    version: int | None = None

    @property
    def words(self) -> str:
        what = "Counts" if self.layer is None else f"{LAYERS[self.layer]}, version {self.version}"
        return what if not self.session else f"{what}: session {self.session}, {self.agent} on {self.channel}"

    def link(self, here: PageLinks) -> str:
        if not self.session:
            return here("conversations")
        digest = None if self.layer is None else f"{self.layer}.{self.version}"
        return here("sessions", self.session, agent=self.agent, channel=self.channel, digest=digest)


def _place(one: Operation) -> _Place | None:
    if one.kind not in ("digest", COUNTS):
        return None
    try:
        agent, channel, session, *layer = json.loads(one.key)
    except ValueError:
        return None
    return _Place(agent, channel, session, *layer[:2])
