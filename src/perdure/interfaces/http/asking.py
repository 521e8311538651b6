"""What routes are given: the memory a request may reach, a page of a list, and the fields that many of them share."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from perdure.domain.api_keys import Permission
from perdure.domain.scope import DEFAULT, ID_BYTES_MAX
from perdure.handles.memory import Memory
from perdure.interfaces import paths as paths  # registers the convertor `id`
from perdure.interfaces.access import Door

LIMIT_MAX = 1_000
NUMBER_MAX = 2**53
"""What every reader of JSON holds exactly."""
PLAIN = r"^[^\x00]*$"
"""Any text without NUL, which no store keeps."""
WORDS = r"^[^\x00]*[^\s\x00][^\x00]*$"
"""The same, with something to read in it."""
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)?")


class Body(BaseModel):
    """What a request carries. What is not described is refused, and so is a number that JSON cannot carry back."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _count(cls, given: object) -> object:
        """To JSON, 2.0 is a whole number; to Python it is none."""
        if isinstance(given, dict):
            whole = {name: int(value) for name, value in given.items() if _is_whole(value) and name in _counts(cls)}
            return {**given, **whole} if whole else given
        return given


def _is_whole(value: object) -> bool:
    return type(value) is float and value.is_integer()


@cache
def _counts(model: type[BaseModel]) -> frozenset[str]:
    """The fields of a body that are whole numbers."""
    return frozenset(name for name, field in model.model_fields.items() if field.annotation in (int, int | None))


def examples(*bodies: dict[str, Any]) -> ConfigDict:
    """A model's configuration with examples for the API's description."""
    return ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, json_schema_extra={"examples": list(bodies)})


def _instant(given: object) -> object:
    # Only what the description says: a bare number, which would be taken for unix seconds, is a mistake here.
    if isinstance(given, datetime):
        return given
    if not isinstance(given, str) or not _INSTANT.fullmatch(given):
        raise PydanticCustomError("instant", "must be a time with its zone, such as 2026-01-31T09:30:00Z")
    return given


Instant = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_instant)]
"""A time with its zone."""


Id = Annotated[str, Field(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN)]
Text = Annotated[str, Field(max_length=1_048_576, pattern=PLAIN)]
Words = Annotated[str, Field(min_length=1, max_length=1_048_576, pattern=WORDS)]
Json = Any
"""Any JSON; the services hold it to that, and say where it is not."""

UserId = Annotated[
    str, Path(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="Whose memory.", examples=["ana"])
]
AgentId = Annotated[
    str, Query(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="Which agent talks with the user.")
]
ChannelId = Annotated[str, Query(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="On which channel.")]


def in_path(description: str, example: str) -> Any:
    """An id in a path."""
    return Path(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description=description, examples=[example])


def door(request: Request) -> Door:
    """The engine as this caller sees it; the guard found out who that is before any route is reached."""
    return Door(request.app.state.engine, request.state.access, "http")


async def _reading(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return _bound(request, user, "read", agent, channel)


async def _writing(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return _bound(request, user, "write", agent, channel)


async def _ruling(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return _bound(request, user, "admin", agent, channel)


def _bound(request: Request, user: str, need: Permission, agent: str, channel: str) -> Memory:
    return door(request).memory(user, need, agent=agent, channel=channel)


async def _door(request: Request) -> Door:
    return door(request)


# These do nothing that waits, so they are coroutines: a plain function would cost a hop to a thread for each request.
Reads = Annotated[Memory, Depends(_reading)]
Writes = Annotated[Memory, Depends(_writing)]
Rules = Annotated[Memory, Depends(_ruling)]
"""For what cannot be taken back, such as forgetting a user."""
Whole = Annotated[Door, Depends(_door)]
"""For what concerns the whole store; the route says what that needs."""


@dataclass(frozen=True, slots=True)
class Page:
    """How much of a list is wanted, and behind what."""

    limit: int
    cursor: str | None
    most: int = LIMIT_MAX
    """Rows that one listing may have."""

    @property
    def rows(self) -> int:
        """How many rows to list, so that those behind the cursor are among them, and one that tells of more."""
        return min(self.limit + 1, self.most) if self.cursor is None else self.most


async def _page(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many at most.")] = 50,
    cursor: Annotated[str | None, Query(min_length=1, max_length=4_000, description="`next` of the page before.")] = None,
) -> Page:
    return Page(limit, cursor, request.app.state.engine.limits.page_rows_max)


Paged = Annotated[Page, Depends(_page)]
