"""API keys, the journal with undo, and the access log."""

from __future__ import annotations

from fastapi import Response

from perdure.app import Engine
from perdure.interfaces.http.answers import answer
from perdure.interfaces.http.derived import ANSWER, Made, Route, behind, listed, table

LAPTOP = {"name": "ana's laptop", "users": ["ana"], "permission": "write"}


def _heeded(made: Made) -> Response:
    """Who may come in was changed: the guard looks again."""
    made.request.app.state.guard.keyring.clear()
    return answer(made.value, 201 if made.request.method == "POST" else 200)


router = table(
    "access",
    Route("GET /journal", "listOperations", "journal.list", page=behind("before", int, "seq")),
    Route(
        "POST /journal/{operation}/undo",
        "undo",
        "undo",
        summary="Take an action back",
        doc="Take back the action that an operation belongs to; 409 if later ones build on it, unless `cascade`.",
        tells={"undone": "operation", "action": ANSWER},
        examples=({"cascade": False},),
    ),
    Route("GET /accesses", "listAccesses", "journal.accesses", page=behind("before", str, "id")),
    Route("GET /keys", "listKeys", "api_keys.list", on=Engine, page=listed("id")),
    # Not carried out once by `Idempotency-Key`: the answer has the secret, which is kept nowhere.
    Route("POST /keys", "createKey", "api_keys.create", on=Engine, status=201, once=False, respond=_heeded, examples=(LAPTOP,)),
    Route(
        "DELETE /keys/{key}", "revokeKey", "api_keys.revoke", on=Engine, renamed={"key": "key_id"}, once=False, respond=_heeded
    ),
)
