"""The overseer of an agent: before a goal, after a tool, and what it has decided."""

from __future__ import annotations

from perdure.interfaces.http.derived import Route, behind, table

KUDOS = {"goal": "Who gave me the most kudos in January?"}
ATHLETE = {"tool": "getAthlete", "result": {"name": "Ana", "ftp": 250}, "goal": "Plan my training", "mode": "suggest"}

SUGGESTED = {
    "suggested": {
        "id": "k-1",
        "tool": "get_weather",
        "mode": "suggest",
        "action": "suggested",
        "reason": "it may be asked again",
    },
    "result": {"city": "Porto", "sky": "clear"},
}
router = table(
    "oversight",
    Route("POST /before", "before", "before", summary="Before a goal", once=True, examples=(KUDOS,)),
    Route("POST /after", "after", "after", summary="After a tool", examples=(ATHLETE,)),
    Route("POST /accept", "accept", "tools.accept", summary="Accept a suggestion", examples=(SUGGESTED,)),
    Route("GET /decisions", "listDecisions", "journal.decisions", page=behind("before", str, "id")),
)
