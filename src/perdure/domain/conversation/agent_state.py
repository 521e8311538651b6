"""What is known of one agent on one channel beside its messages: counters, notes of background work, who is speaking.

And what agents are: the texts that make one, and the channels it answers on.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.scope import Address
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass

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
    shared: bool = False
    """Others talk on this channel, too: what is learned here stays here."""


@dataclass(frozen=True, slots=True)
class TurnLease:
    """Who holds the floor of a channel, and until when."""

    holder: str
    until: datetime


def beginning(text: str) -> str:
    """`text` as it is kept in the counters: its first characters, never half a one."""
    return text if len(text) <= LAST_TEXT_CHARS else text[: LAST_TEXT_CHARS - 1] + "…"


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's own texts. The texts are its operator's, and go into every prompt."""

    id: str
    soul: str = ""
    """Who it is."""
    mood: str = ""
    """How it feels and sounds at present."""
    skill: str = ""
    """What it can do, and how."""
    updated_at: datetime | None = None
    """When it was last saved; None for one that is a folder."""

    kind: RecordKind = "agent"

    @property
    def record_key(self) -> str:
        return self.id

    def terms(self) -> tuple[Term, ...]:
        return ()

    def body(self) -> dict[str, Json]:
        at = None if self.updated_at is None else to_us(self.updated_at)
        return {"id": self.id, "soul": self.soul, "mood": self.mood, "skill": self.skill, "updated_at": at}


@dataclass(frozen=True, slots=True)
class ChannelAgent:
    """The default agent of a channel."""

    channel: str
    agent: str
    mapped_at: datetime

    kind: RecordKind = "channel"

    @property
    def record_key(self) -> str:
        return self.channel

    def terms(self) -> tuple[Term, ...]:
        return (("agent", self.agent),)

    def body(self) -> dict[str, Json]:
        return {"channel": self.channel, "agent": self.agent, "mapped_at": to_us(self.mapped_at)}


def to_agent(body: Mapping[str, Any]) -> Agent:
    at = body["updated_at"]
    return Agent(body["id"], body["soul"], body["mood"], body["skill"], None if at is None else from_us(at))


def to_channel_agent(body: Mapping[str, Any]) -> ChannelAgent:
    return ChannelAgent(body["channel"], body["agent"], from_us(body["mapped_at"]))
