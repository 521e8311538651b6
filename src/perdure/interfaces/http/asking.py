"""What every route asks for: the caller, a handle bound to the user in the path, a page of a list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Query, Request

from perdure.domain.api_keys import Permission
from perdure.domain.scope import DEFAULT
from perdure.handles.memory import Memory
from perdure.interfaces.access import Door
from perdure.interfaces.http import paths as paths  # registers the convertor `id`

UserId = Annotated[str, Path(min_length=1, max_length=400, description="Whose memory.", examples=["ana"])]
AgentId = Annotated[str, Query(min_length=1, max_length=400, description="Which agent talks with the user.")]
ChannelId = Annotated[str, Query(min_length=1, max_length=400, description="On which channel.")]
LIMIT_MAX = 1_000


def door(request: Request) -> Door:
    """The engine as this caller sees it; the guard found out who that is before any route is reached."""
    return Door(request.app.state.engine, request.state.access)


async def _reading(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return _bound(request, user, "read", agent, channel)


async def _writing(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return _bound(request, user, "write", agent, channel)


async def _ruling(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return _bound(request, user, "admin", agent, channel)


def _bound(request: Request, user: str, need: Permission, agent: str, channel: str) -> Memory:
    return door(request).memory(user, need, agent=agent, channel=channel)


# These do nothing that waits, so they are coroutines: a plain function would cost a hop to a thread for each request.
Reads = Annotated[Memory, Depends(_reading)]
Writes = Annotated[Memory, Depends(_writing)]
Rules = Annotated[Memory, Depends(_ruling)]
"""For what cannot be taken back, such as forgetting a user."""


@dataclass(frozen=True, slots=True)
class Page:
    """How much of a list is wanted, and behind what."""

    limit: int
    cursor: str | None


async def _page(
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many at most.")] = 50,
    cursor: Annotated[str | None, Query(max_length=2_000, description="`next` of the page before.")] = None,
) -> Page:
    return Page(limit, cursor)


Paged = Annotated[Page, Depends(_page)]
