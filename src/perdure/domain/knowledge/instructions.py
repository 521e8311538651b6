"""Standing instructions: lasting orders of the user to an agent. No later question resembles them, so they are kept apart."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from perdure.domain.knowledge.entities import to_body
from perdure.domain.knowledge.proposals import Evidence
from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.text.rules import Json

OrderKind = Literal["order", "withdrawal", "stop"]
"""What a sentence does. A `stop` takes back the order that it names; if none is held, it is an order: `stop using emojis`."""
InstructionState = Literal["standing", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """What the agent is to do from now on. It belongs to the agent it was told to."""

    id: str
    agent: str
    content: str
    created_at: datetime
    state: InstructionState = "standing"
    ended_at: datetime | None = None
    evidence: tuple[Evidence, ...] = ()
    """Where it was said, each time; if words took it back, they are the last."""
    source: Literal["said", "added"] = "said"
    reason: str | None = None
    """Why it was withdrawn."""
    repeated_at: datetime | None = None
    """When it was last said again."""

    kind: RecordKind = "instruction"

    def __str__(self) -> str:
        return self.content

    @property
    def record_key(self) -> str:
        return self.id

    @property
    def said_at(self) -> datetime:
        """When it was last said, or added: of two that clash, the one that was said later counts."""
        return self.created_at if self.repeated_at is None else self.repeated_at

    def terms(self) -> tuple[Term, ...]:
        found = (("agent", self.agent), ("open" if self.state == "standing" else "closed", self.agent))
        return (*found, *(("message", one.message) for one in dict.fromkeys(self.evidence)))

    def body(self) -> dict[str, Json]:
        return to_body(self)
