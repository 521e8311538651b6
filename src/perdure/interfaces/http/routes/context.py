"""Finding again, and what an agent should be given."""

from __future__ import annotations

from perdure.interfaces.http.derived import Route, table

ANA = {"query": "Where does Ana live?"}
KUDOS = {"query": "kudos last week", "kinds": ["series"], "limit": 5}

# They take bodies, and so they are POST. `recall` changes nothing; the others note what they told, which is not learned again.
router = table(
    "context",
    Route("POST /recall", "recall", "recall", errors=(404,), examples=(ANA, KUDOS)),
    Route("POST /context", "buildContext", "context", errors=(409,), examples=({"goal": "Plan a weekend trip"}, {})),
    Route("POST /prompt", "buildPrompt", "prompt", examples=({"request": "Book a table for two"}, {})),
)
