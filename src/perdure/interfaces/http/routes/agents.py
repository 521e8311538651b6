"""`/v1/agents` and `/v1/channels`: the agents of the space, and the channels they answer on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from perdure.domain.agents import Agent, ChannelAgent
from perdure.interfaces.http.answering import answer, page_of, segment
from perdure.interfaces.http.asking import PLAIN, Body, Id, Paged, Whole, examples, in_path
from perdure.interfaces.http.description import described, from_here, many
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1", tags=["agents"], route_class=OnceRoute)
AgentId = Annotated[str, in_path("The agent's id.", "coach")]
ChannelId = Annotated[str, in_path("The channel.", "discord:42")]
AgentText = Annotated[str | None, Field(max_length=50_000, pattern=PLAIN)]


class Texts(Body):
    model_config = examples({"soul": "You are a patient running coach.", "skill": "You read training plans."})

    soul: AgentText = Field(None, description="Who it is.")
    mood: AgentText = Field(None, description="How it feels and sounds at present.")
    skill: AgentText = Field(None, description="What it can do, and how.")


class Mapped(Body):
    model_config = examples({"agent": "coach"})

    agent: Id = Field(description="Who answers there, for callers that name no agent.")


@router.get("/agents", summary="List agents", **described("listAgents", many(Agent)))
def list_agents(door: Whole, page: Paged) -> Response:
    """All of them, by id."""
    return page_of(door.whole("read").agents.list(limit=page.rows), page, lambda one: one.id)


@router.get("/agents/{agent:id}", summary="Get an agent", **described("getAgent", Agent, errors=(404,)))
def get(door: Whole, agent: AgentId) -> Response:
    """What it is told of itself."""
    return answer(door.whole("read").agents.get(agent))


@router.put(
    "/agents/{agent:id}",
    summary="Save an agent",
    **described("saveAgent", Agent, headers=("Location",), links=(
        from_here("getAgent", agent="/id"), from_here("removeAgent", agent="/id"))),
)  # fmt: skip
def save(door: Whole, agent: AgentId, body: Texts) -> Response:
    """Set what the agent is told of itself; what is left out stays as it is, an empty text is taken away."""
    saved = door.whole().agents.save(agent, soul=body.soul, mood=body.mood, skill=body.skill)
    return answer(saved, headers={"Location": f"/v1/agents/{segment(agent)}"})


@router.delete(
    "/agents/{agent:id}",
    summary="Remove an agent",
    **described("removeAgent", {"agent": str, "removed": bool}, links=(from_here("getAgent", agent="/agent"),)),
)
def remove(door: Whole, agent: AgentId) -> Response:
    """Remove its texts; its lessons stay. `removed` is false if there is no such agent."""
    return answer({"agent": agent, "removed": door.whole().agents.remove(agent)})


@router.get("/channels", summary="List mapped channels", **described("listChannels", many(ChannelAgent)))
def channels(door: Whole, page: Paged) -> Response:
    """The channels that are mapped to an agent, by name."""
    return page_of(door.whole("read").agents.channels(limit=page.rows), page, lambda one: one.channel)


@router.put(
    "/channels/{channel:id}",
    summary="Map a channel",
    **described("mapChannel", ChannelAgent, links=(from_here("unmapChannel", channel="/channel"),)),
)
def map_channel(door: Whole, channel: ChannelId, body: Mapped) -> Response:
    """Let an agent answer on a channel, for callers that name none; its lessons are drawn and shown there."""
    return answer(door.whole().agents.map_channel(channel, body.agent))


@router.delete(
    "/channels/{channel:id}", summary="Unmap a channel", **described("unmapChannel", {"channel": str, "unmapped": bool})
)
def unmap_channel(door: Whole, channel: ChannelId) -> Response:
    """`unmapped` is false if the channel was not mapped."""
    return answer({"channel": channel, "unmapped": door.whole().agents.unmap_channel(channel)})
