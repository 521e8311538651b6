"""What is known of one agent on one channel beside its messages: counters, notes of background work, who is speaking."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from perdure.domain.scope import Address

LAST_TEXT_CHARS = 200
"""So much of the last thing the user said is kept with the counters."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the last try of something did not succeed."""

    reason: str
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class AgentState:
    """Counters and diagnostics of one address; they outlive its sessions. `turns` is the seed's `messageCount`."""

    address: Address
    turns: int = 0
    last_at: datetime | None = None
    """When the user last said something."""
    last_text: str | None = None
    """What that was, cut to `LAST_TEXT_CHARS`."""
    profile: str | None = None
    """Which layers this address keeps; None: as the settings say."""
    casual: bool = False
    """Small talk: no model reads it, and no lessons are drawn."""
    private: bool = False
    """What is learned here is visible to this agent alone."""
    rolling_tried_at: datetime | None = None
    rolling_done_at: datetime | None = None
    rolling_error: Failure | None = None
    curated_at: datetime | None = None
    curated_memories: int | None = None
    """How many memories there were when the curator last ran."""


@dataclass(frozen=True, slots=True)
class TurnLease:
    """Who holds the floor of a channel, and until when."""

    holder: str
    until: datetime


def beginning(text: str) -> str:
    """`text` as it is kept in the counters: its first characters, never half a one."""
    return text if len(text) <= LAST_TEXT_CHARS else text[: LAST_TEXT_CHARS - 1] + "…"
