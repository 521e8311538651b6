"""What is known of the user's world: memories, and the entities that they are about."""

from __future__ import annotations

from fastapi import Response

from perdure.domain.knowledge.memories import MemoryWithStatements
from perdure.domain.knowledge.proposals import NewStatement
from perdure.handles.memory import Memory
from perdure.handles.operation import describe
from perdure.interfaces.http import fields
from perdure.interfaces.http.answers import answer, located, read_place
from perdure.interfaces.http.derived import ANSWER, Made, Paging, Route, listed, table
from perdure.services.knowledge.seed_form import SeedMemory
from perdure.types import Outcome

NEW = ("added", "superseded", "past", "ended", "proposed")
"""Verdicts by which a statement is held that was not held before."""
OF_A_MEMORY = ("getMemory", "getMemoryHistory", "editMemory", "correctMemory", "changeMemory", "forgetMemory")
"""What can be done with the memory that a statement is in."""
OF_AN_ENTITY = ("getEntity", "forgetEntity")
AUSTIN = {"content": "Lives in Austin", "attribute": "lives_in", "value": "Austin"}
JOHN = {"content": "John is my cofounder", "type": "PEOPLE", "entities": ["person:John Doe"]}
fields.stand_for(NewStatement, describe(Memory, "remember"))


def _place(found: MemoryWithStatements) -> object:
    return [found.memory.updated_at, found.memory.record_key]


def _remembered(made: Made) -> Response:
    done: Outcome = made.value
    if done.statement is None:
        return answer(done)
    return answer(done, 201 if done.verdict in NEW else 200, located(made.held, "memories", done.statement.memory))


router = table(
    "knowledge",
    Route(
        "POST /memories",
        "remember",
        "remember",
        doc="Keep a statement about the user's world. 201 if it is new; 200 if it was known, or refused with its reason.\n\n"
        "What the sentence tells is read as in a message. "
        "A new value of a single-valued attribute closes the old one, which stays in the history.",
        status=201,
        also=200,
        headers=("Location",),
        respond=_remembered,
        examples=(AUSTIN, JOHN),
        links=dict.fromkeys(OF_A_MEMORY, "key=/statement/memory"),
    ),
    Route("POST /memories/batch", "rememberMany", "remember_many", status=201, examples=({"statements": [AUSTIN, JOHN]},)),
    Route("GET /memories", "listMemories", "memories.list", page=Paging(_place, "behind", read_place), or_else=SeedMemory),
    Route("GET /proposals", "listProposals", "memories.proposals", page=listed("statement.id")),
    Route("POST /proposals/{proposal}/accept", "acceptProposal", "memories.accept", errors=(404, 409)),
    Route("POST /proposals/{proposal}/reject", "rejectProposal", "memories.reject", errors=(404, 409)),
    Route("GET /memories/{key}", "getMemory", "memories.get", or_else=SeedMemory),
    Route("GET /memories/{key}/history", "getMemoryHistory", "memories.history", page=listed("id")),
    Route("PATCH /memories/{key}", "editMemory", "memories.edit", examples=({"importance": 2},)),
    Route(
        "POST /memories/{key}/correct",
        "correctMemory",
        "memories.correct",
        examples=({"content": "Lives in Seattle", "value": "Seattle"},),
    ),
    Route("POST /memories/{key}/{action}", "changeMemory", "memories.pin|unpin|archive|restore"),
    Route(
        "DELETE /memories/{key}",
        "forgetMemory",
        "forget",
        doc="Remove it for good, with all that was derived from it. It cannot be undone.",
        only=("memory",),
        renamed={"key": "memory"},
    ),
    Route(
        "GET /entities",
        "listEntities",
        "entities.list",
        page=listed("ref"),
        links=dict.fromkeys(OF_AN_ENTITY, "ref=/items/0/ref"),
    ),
    Route("GET /entities/{ref}", "getEntity", "entities.get"),
    Route("POST /entities/{ref}/aliases", "addAlias", "entities.alias", examples=({"label": "Johnny"},)),
    Route(
        "POST /entities/{ref}/merge",
        "mergeEntities",
        "entities.merge",
        doc="Make two entities one; `action` is the operation by which it can be undone.",
        errors=(404, 409),
        tells={"merged": "ref", "into": "into", "action": ANSWER},
        examples=({"into": "person:john_doe"},),
        links={"undo": "operation=/action"},
    ),
    Route(
        "DELETE /entities/{ref}",
        "forgetEntity",
        "forget",
        doc="Remove it for good, wherever it is named. It cannot be undone.",
        only=("entity",),
        renamed={"ref": "entity"},
    ),
    Route("GET /suggestions", "listSuggestions", "entities.suggestions", page=listed("id")),
    Route("POST /suggestions/{suggestion}/dismiss", "dismissSuggestion", "entities.dismiss"),
)
