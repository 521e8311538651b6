"""`/u/{user}/entities`: the people, places, organisations and projects that memories are about, and how they hang together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from perdure.domain.knowledge.entities import Entity, Link, Suggestion
from perdure.domain.knowledge.memories import Statement
from perdure.domain.knowledge.proposals import ENTITY_TYPES
from perdure.interfaces.web.charts import Graph, laid_out
from perdure.interfaces.web.filters import entity_label
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice, undoable
from perdure.services.knowledge.memories import MemoryWithStatements

router = APIRouter()
ROWS_MAX = 1_000
CARDS_MAX = 200
FACTS_SHOWN = 3
NODES_MAX = 40
LINKS_MAX = 400


@dataclass(frozen=True, slots=True)
class EntityTile:
    entity: Entity
    facts: tuple[str, ...]
    statements: int


@router.get("/u/{user:id}/entities")
def list_entities(request: Request, type: str = "", q: str = "") -> Response:  # noqa: A002 - the word of the requirements
    memory = memory_of(request)
    chosen = type if type in ENTITY_TYPES else None
    entities = memory.entities.list(chosen, limit=ROWS_MAX)
    known = memory.memories.list(limit=ROWS_MAX)
    facts = _facts(known)
    cards = [_card(one, facts.get(one.ref, ())) for one in entities if q.casefold() in _names(one)]
    cards.sort(key=lambda card: (-card.statements, card.entity.ref))
    return page(
        request,
        "entities.html",
        cards=cards[:CARDS_MAX],
        total=len(cards),
        type=chosen or "",
        types=ENTITY_TYPES,
        q=q,
        suggestions=_suggestion_rows(memory.entities.suggestions(limit=20), known),
        graph=_graph(memory.entities.links(limit=LINKS_MAX), entities, request.path_params["user"]),
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


def _facts(known: Sequence[MemoryWithStatements]) -> Mapping[str, Sequence[Statement]]:
    """Statements by the entities that they are about."""
    found: dict[str, list[Statement]] = {}
    for recalled in known:
        for one in recalled.statements:
            for ref in {*one.entities, one.subject}:
                found.setdefault(ref, []).append(one)
    return found


def _card(entity: Entity, facts: Sequence[Statement]) -> EntityTile:
    best = sorted(facts, key=lambda one: (-one.importance, -one.last_mentioned.timestamp(), one.id))
    return EntityTile(entity, tuple(dict.fromkeys(one.content for one in best[:FACTS_SHOWN])), len(facts))


def _names(entity: Entity) -> str:
    return f"{entity.label} {entity.ref} {' '.join(entity.aliases)}".casefold()


def _suggestion_rows(suggestions: Sequence[Suggestion], known: Sequence[MemoryWithStatements]) -> list[dict[str, object]]:
    """Suggestions with the names or words that they are about."""
    texts = {one.id: (one.content, one.memory) for recalled in known for one in recalled.statements}
    found: list[dict[str, object]] = []
    for one in suggestions:
        if one.what == "merge":
            found.append({"suggestion": one, "names": sorted(one.subjects, key=len), "texts": ()})
        else:
            found.append({"suggestion": one, "names": (), "texts": [texts[ref] for ref in one.subjects if ref in texts]})
    return found


def _graph(links: Sequence[Link], entities: Sequence[Entity], user: str) -> Graph:
    labels = {one.ref: one.label for one in entities}
    usable = [one for one in links if (one.one == "user" or one.one in labels) and one.other in labels]
    weights: Counter[str] = Counter()
    for one in usable:
        weights.update({one.one: one.statements, one.other: one.statements})
    chosen = {name for name, _ in weights.most_common(NODES_MAX)}
    kept = [(one.one, one.other, one.statements) for one in usable if one.one in chosen and one.other in chosen]
    return laid_out({name: (user if name == "user" else labels[name], weights[name]) for name in chosen}, kept)
