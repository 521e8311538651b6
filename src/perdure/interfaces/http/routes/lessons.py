"""How to behave, as learned before; and the agents of the space, which all its users share."""

from __future__ import annotations

from fastapi import Response

from perdure.app import Engine
from perdure.interfaces.http.answers import answer, segment
from perdure.interfaces.http.derived import ANSWER, Made, Route, listed, table


def _saved(made: Made) -> Response:
    return answer(made.value, headers={"Location": f"/v1/agents/{segment(made.value.id)}"})


router = table(
    "lessons",
    Route("GET /lessons", "listLessons", "lessons.list", page=listed("scope", "agent", "channel", "id")),
    Route(
        "POST /lessons",
        "addLesson",
        "lessons.add",
        doc="Keep a lesson: of a scope, or of one agent. The same words again change nothing. 422 says why it is none.",
        status=201,
        examples=({"text": "Ask before booking anything"},),
        links={"changeLesson": "id=/id", "removeLesson": "id=/id"},
    ),
    Route(
        "POST /lessons/from-reply",
        "takeLessons",
        "lessons.take_from",
        examples=({"reply": "Done.\nMEMORY_APPEND: Ana prefers trains to flights"},),
    ),
    Route("DELETE /lessons/{id}", "removeLesson", "lessons.remove"),
    Route("POST /lessons/{id}/{action}", "changeLesson", "lessons.pin|unpin|archive|restore"),
    Route("GET /agents", "listAgents", "agents.list", on=Engine, page=listed("id")),
    Route("GET /agents/{id}", "getAgent", "agents.get", on=Engine),
    Route(
        "PUT /agents/{id}",
        "saveAgent",
        "agents.save",
        on=Engine,
        doc="Set an agent's texts; one that is left out stays, an empty one is removed.",
        errors=(),
        headers=("Location",),
        respond=_saved,
        examples=({"soul": "You are a patient running coach.", "skill": "You read training plans."},),
        links={"getAgent": "id=/id", "removeAgent": "id=/id"},
    ),
    Route(
        "DELETE /agents/{id}",
        "removeAgent",
        "agents.remove",
        on=Engine,
        doc="Remove its texts; its lessons stay. `removed` is false if there is no such agent.",
        errors=(),
        tells={"agent": "id", "removed": ANSWER},
        links={"getAgent": "id=/agent"},
    ),
)
