"""`/v1/users/{user}/entities`: the people, places, organisations and projects that memories are about."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from perdure.domain.knowledge import EntityType
from perdure.domain.things import Entity, Link, Suggestion
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import Body, Id, Paged, Reads, Writes, examples, in_path
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute
from perdure.services.forgetting import Forgotten

router = APIRouter(prefix="/v1/users/{user:id}", tags=["entities"], route_class=OnceRoute)
Ref = Annotated[str, in_path("Its reference, or an alias of it.", "person:john_doe")]
SuggestionId = Annotated[str, in_path("The suggestion's id.", "sg-1")]


class Alias(Body):
    model_config = examples({"label": "Johnny"})

    label: str = Field(min_length=1, max_length=200, pattern=r"^[^\x00]*[A-Za-z0-9][^\x00]*$", description="Another name.")


class Into(Body):
    model_config = examples({"into": "person:john_doe"})

    into: Id = Field(description="The entity that it becomes part of.")


@router.get("/entities", summary="List entities", **described("listEntities", many(Entity), links=(
    leads_to("getEntity", ref="/items/0/ref"), leads_to("forgetEntity", ref="/items/0/ref"))))  # fmt: skip
def list_entities(
    memory: Reads,
    page: Paged,
    type: Annotated[EntityType | None, Query(description="Of this type only.")] = None,  # noqa: A002 - the parameter's name
) -> Response:
    """By reference."""
    return page_of(memory.entities.list(type, limit=page.rows), page, lambda one: one.ref)


@router.get("/entities/{ref:id}", summary="Get an entity", **described("getEntity", Entity, errors=(404,)))
def get(memory: Reads, ref: Ref) -> Response:
    """The entity that a reference or an alias means."""
    return answer(memory.entities.get(ref))


@router.post("/entities/{ref:id}/aliases", summary="Add an alias", **described("addAlias", Entity, errors=(404,)))
def alias(memory: Writes, ref: Ref, body: Alias) -> Response:
    """Let another name mean this entity."""
    return answer(memory.entities.alias(ref, body.label))


@router.post(
    "/entities/{ref:id}/merge",
    summary="Merge two entities",
    **described(
        "mergeEntities",
        {"merged": str, "into": str, "action": int},
        errors=(404, 409),
        links=(leads_to("undo", operation="/action"),),
    ),
)
def merge(memory: Writes, ref: Ref, body: Into) -> Response:
    """Make two entities one; `action` is the operation by which it can be undone."""
    action = memory.entities.merge(ref, body.into)
    return answer({"merged": ref, "into": memory.entities.get(body.into).ref, "action": action})


@router.delete("/entities/{ref:id}", summary="Forget an entity", **described("forgetEntity", Forgotten, errors=(404,)))
def forget(memory: Writes, ref: Ref) -> Response:
    """Remove it for good, wherever it is named. It cannot be undone."""
    return answer(memory.forget(entity=ref))


@router.get("/entity-links", summary="List links between entities", **described("listEntityLinks", many(Link)))
def links(memory: Reads, page: Paged) -> Response:
    """Which entities current statements name together, and which they tell of the user; the strongest first."""
    return page_of(memory.entities.links(page.rows), page, lambda one: [one.one, one.other])


@router.get("/suggestions", summary="List suggestions", **described("listSuggestions", many(Suggestion)))
def suggestions(memory: Reads, page: Paged) -> Response:
    """What a person should decide: names that may mean one, statements that may clash."""
    return page_of(memory.entities.suggestions(page.rows), page, lambda one: one.id)


@router.post(
    "/suggestions/{suggestion:id}/dismiss",
    summary="Dismiss a suggestion",
    **described("dismissSuggestion", Suggestion, errors=(404,)),
)
def dismiss(memory: Writes, suggestion: SuggestionId) -> Response:
    """Do not suggest it again."""
    return answer(memory.entities.dismiss(suggestion))
