"""The combined prompt of an agent: who it is, how it feels, what it has learned, what it can do, and what time it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PartKind = Literal["soul", "mood", "memory", "skill", "time"]
PART_KINDS: tuple[PartKind, ...] = ("soul", "mood", "memory", "skill", "time")
"""In the order in which they stand: what changes most often comes last, so that a prompt keeps its beginning."""
MEMORY_HEADING = "Memory (lessons learned — follow these)"


@dataclass(frozen=True, slots=True)
class PromptPart:
    kind: PartKind
    text: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Prompt:
    """What an agent is told before it answers, within a budget."""

    parts: tuple[PromptPart, ...]
    """Those that have something to say, in order."""
    tokens: int
    budget_tokens: int
    agent: str
    """The agent that answers: that of the handle, or the one its channel is mapped to."""
    period: str
    """`night`, `morning`, `afternoon` or `evening`, where the users are."""
    dropped: tuple[str, ...] = ()
    """What did not fit, in words."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way, such as a file that cannot be read."""

    @property
    def text(self) -> str:
        """All of it, as one text for a system message."""
        return "\n\n".join(part.text for part in self.parts)

    def part(self, kind: PartKind) -> str:
        """The text of one part; empty if it has nothing to say."""
        return next((part.text for part in self.parts if part.kind == kind), "")
