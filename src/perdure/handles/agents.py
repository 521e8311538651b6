"""`Engine.agents`: the agents of a space, which all its users share."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.agents import Agent, ChannelAgent
from perdure.domain.scope import Scope
from perdure.services.agents import Agents


class AgentHandle:
    """Agents are folders (`agent-ID/` with `soul.md`, `mood.md`, `skill.md`) where the setting `agents_dir` names a place for
    them, else rows. A text that stands in the folder goes before one in a row."""

    __slots__ = ("_do", "space")

    def __init__(self, space: str, agents: Agents) -> None:
        self.space = space
        self._do = agents

    def of(self, space: str) -> AgentHandle:
        """The agents of another space."""
        Scope.of("any", space=space)  # which checks it
        return AgentHandle(space, self._do)

    def get(self, id: str) -> Agent:
        """One agent; `NotFound` if it has neither a folder nor a row."""
        return self._do.get(self.space, id)

    def list(self, *, limit: int = 100) -> Sequence[Agent]:
        """All of them, by id."""
        return self._do.list_(self.space, limit=limit)

    def save(self, id: str, *, soul: str | None = None, mood: str | None = None, skill: str | None = None) -> Agent:
        """Set what the agent is told of itself; None leaves a text as it is, an empty one takes it away."""
        return self._do.save(self.space, id, {"soul": soul, "mood": mood, "skill": skill})

    def remove(self, id: str) -> bool:
        """Remove its texts; its lessons stay. False if there is no such agent."""
        return self._do.remove(self.space, id)

    def map_channel(self, channel: str, agent: str) -> ChannelAgent:
        """Let the agent answer on a channel, for handles that name none; its lessons are drawn and shown there."""
        return self._do.map_channel(self.space, channel, agent)

    def unmap_channel(self, channel: str) -> bool:
        """False if the channel was not mapped."""
        return self._do.unmap_channel(self.space, channel)

    def channels(self, *, limit: int = 100) -> Sequence[ChannelAgent]:
        """The channels that are mapped, by name."""
        return self._do.channels(self.space, limit=limit)
