"""`/u/{user}/entities`: the people, places, organisations and projects that memories are about, and how they hang together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.knowledge.entities import Entity, Link, Suggestion
from perdure.domain.knowledge.memories import MemoryWithStatements
from perdure.domain.knowledge.proposals import ENTITY_TYPES
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.interfaces.web.charts import NARROW, WIDE, laid_out
from perdure.interfaces.web.filters import entity_label
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice, undoable

router = APIRouter()
ROWS_MAX = 1_000
CARDS = 24
FACTS_SHOWN = 3
LINKS_MAX = 1_000


class EntityFilter(BaseModel):
    """What the list is asked for."""

    type: str = ""
    q: str = ""
    page: Annotated[int, Query(ge=1, le=100)] = 1


@dataclass(frozen=True, slots=True)
class EntityTile:
    entity: Entity
    facts: tuple[str, ...]
    memories: int


@router.get("/u/{user:id}/entities")
def list_entities(request: Request, asked: Annotated[EntityFilter, Query()]) -> Response:
    memory = memory_of(request)
    chosen = asked.type if asked.type in ENTITY_TYPES else None
    entities = [one for one in memory.entities.list(chosen, limit=ROWS_MAX) if asked.q.casefold() in _names(one)]
    counts: Counter[str] = Counter()
    for group in memory.memories.groups():
        counts.update(dict.fromkeys(group.entities, group.count))
    entities.sort(key=lambda one: (-counts[one.ref], one.ref))
    first = (asked.page - 1) * CARDS
    shown = entities[first : first + CARDS]
    return page(
        request,
        "entities.html",
        cards=[_card(one, memory.memories.list(entity=one.ref, limit=FACTS_SHOWN), counts[one.ref]) for one in shown],
        total=len(entities),
        more=len(entities) > first + CARDS,
        asked=asked,
        types=ENTITY_TYPES,
        suggestions=_suggestion_rows(memory, memory.entities.suggestions(limit=20)),
    )


@router.get("/u/{user:id}/entities/graph")
def graph(request: Request) -> Response:
    """How people and things hang together, as far as it can be read at this width."""
    memory = memory_of(request)
    things, links = _named_together(
        memory.entities.links(limit=LINKS_MAX), memory.entities.list(limit=ROWS_MAX), request.path_params["user"]
    )
    return page(
        request, "graph.html", wide=laid_out(things, links, WIDE), narrow=laid_out(things, links, NARROW), total=len(things)
    )


@router.get("/u/{user:id}/entities/{ref:id}")
def show(request: Request, ref: str) -> Response:
    memory = memory_of(request)
    entity = memory.entities.get(ref)
    links = [one for one in memory.entities.links(limit=ROWS_MAX) if entity.ref in (one.one, one.other)]
    near = Counter({one.other if one.one == entity.ref else one.one: one.statements for one in links if one.one != "user"})
    return page(
        request,
        "entity.html",
        entity=entity,
        known=memory.memories.list(entity=entity.ref, limit=100),
        near=near.most_common(20),
        others=[one for one in memory.entities.list(entity.type, limit=ROWS_MAX) if one.ref != entity.ref],
        suggestions=[one for one in memory.entities.suggestions() if one.what == "merge" and entity.ref in one.subjects],
    )


@router.post("/u/{user:id}/entities/{ref:id}/alias")
def alias(request: Request, ref: str, label: Annotated[str, Form()]) -> Response:
    memory = memory_of(request, "write")
    entity = memory.entities.alias(ref, label.strip())
    undo = undoable(memory, "entity", entity.ref)
    return redirect_with_notice(request, PageLinks(request)("entities", entity.ref), "The name is known now.", undo=undo)


@router.post("/u/{user:id}/entities/{ref:id}/merge")
def merge(request: Request, ref: str, into: Annotated[str, Form()]) -> Response:
    """Make two one: all that is known of the first is of the second from now on."""
    memory = memory_of(request, "write")
    number = memory.entities.merge(ref, into.strip())
    operation = next((one for one in memory.journal.list(200) if one.batch == number), None)
    held = memory.entities.get(into.strip())
    return redirect_with_notice(
        request, PageLinks(request)("entities", held.ref), f"{entity_label(ref)} and {held.label} are one.", undo=operation
    )


@router.post("/u/{user:id}/suggestions/{suggestion:id}/dismiss")
def dismiss(request: Request, suggestion: str) -> Response:
    memory = memory_of(request, "write")
    held = memory.entities.dismiss(suggestion)
    return redirect_with_notice(
        request, PageLinks(request)("entities"), "It will not be suggested again.", undo=undoable(memory, "suggestion", held.id)
    )


def _card(entity: Entity, known: Sequence[MemoryWithStatements], count: int) -> EntityTile:
    facts = [one for held in known for one in held.statements if entity.ref in (*one.entities, one.subject)]
    best = sorted(facts, key=lambda one: (-one.importance, -one.last_mentioned.timestamp(), one.id))
    return EntityTile(entity, tuple(dict.fromkeys(one.content for one in best))[:FACTS_SHOWN], count)


def _names(entity: Entity) -> str:
    return f"{entity.label} {entity.ref} {' '.join(entity.aliases)}".casefold()


def _suggestion_rows(memory: Memory, suggestions: Sequence[Suggestion]) -> list[dict[str, object]]:
    """Suggestions with the names or words that they are about."""
    found: list[dict[str, object]] = []
    texts: dict[str, tuple[str, str]] = {}
    if any(one.what != "merge" for one in suggestions):
        known = memory.memories.list(limit=ROWS_MAX)
        texts = {one.id: (one.content, one.memory) for held in known for one in held.statements}
    for one in suggestions:
        if one.what == "merge":
            found.append({"suggestion": one, "names": sorted(one.subjects, key=len), "texts": ()})
        else:
            found.append({"suggestion": one, "names": (), "texts": [texts[ref] for ref in one.subjects if ref in texts]})
    return found


def _named_together(
    links: Sequence[Link], entities: Sequence[Entity], user: str
) -> tuple[dict[str, tuple[str, int]], list[tuple[str, str, int]]]:
    """The nodes of a graph by name, with a label and a weight, and its links."""
    labels = {one.ref: one.label for one in entities}
    usable = [one for one in links if (one.one == "user" or one.one in labels) and one.other in labels]
    weights: Counter[str] = Counter()
    for one in usable:
        weights.update({one.one: one.statements, one.other: one.statements})
    things = {name: (user if name == "user" else labels[name], weight) for name, weight in weights.items()}
    return things, [(one.one, one.other, one.statements) for one in usable]
