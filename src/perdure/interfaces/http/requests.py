"""How a request is read: JSON and nothing else, each field and each parameter once, none that is unknown.

And what routes are given: the memory or the engine that a request may reach, and which page of a list it wants.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Annotated, Any

from fastapi import Depends, Header, HTTPException, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from perdure.domain.access import Permission
from perdure.domain.scope import DEFAULT, ID_BYTES_MAX
from perdure.domain.values import dataclass
from perdure.handles.arguments import PLAIN
from perdure.handles.memory import Memory
from perdure.interfaces import paths as paths  # registers the convertor `id`
from perdure.interfaces.access import Door
from perdure.interfaces.http.fields import LIMIT_MAX

JSON_TYPES = ("application/json", "application/problem+json")


class StrictRequest(Request):
    """A request whose body is read strictly."""

    async def json(self) -> Any:
        body = await self.body()
        try:
            return strictly_read(body.decode())
        except UnicodeDecodeError as error:
            raise HTTPException(400, f"the body is not UTF-8 at byte {error.start}; send JSON as UTF-8") from None
        except RecursionError:
            raise HTTPException(400, "the body is nested too deeply; flatten it") from None
        except json.JSONDecodeError:
            raise
        except ValueError as error:
            # Python's own words name a setting of the interpreter for a number that is too long.
            told = (
                error.args[0] if isinstance(error, _Refused) else "the body has a number with too many digits; send it as text"
            )
            raise HTTPException(400, told) from None


class StrictRoute(APIRoute):
    """A route that refuses what it does not understand: a misspelt parameter must not pass for one that was left out."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_json = self.body_field is not None
        known = dict(_parameters(self.dependant))

        async def read(request: Request) -> Response:
            if request.scope["query_string"]:
                if "agent" in known:
                    request = _with_agent(request)
                _check_query(request, known)
            if takes_json:
                media = request.headers.get("content-type")
                if media is None or media.partition(";")[0].strip().lower() not in JSON_TYPES:
                    await _refuse_media(request, media)
            return await handle(request if type(request) is StrictRequest else strict_request(request))

        return read


def strict_request(request: Request, *, query: bytes | None = None) -> StrictRequest:
    """The same request, read strictly; a body that was read already is not read again. With another `query` if one is given."""
    scope = request.scope if query is None else {**request.scope, "query_string": query}
    found = StrictRequest(scope, request.receive)
    if hasattr(request, "_body"):
        found._body = request._body
    return found


class _Refused(ValueError):
    pass


def strictly_read(text: str) -> Any:
    """JSON in which no field stands twice, and no number is none; a `ValueError` otherwise."""
    return _DECODER.decode(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Refused(f"the body has the field {twice!r:.80} twice in one object; say it once")
    return found


def _constant(name: str) -> Any:
    raise _Refused(f"the body holds {name}, which is no JSON; use null or text")


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


async def _refuse_media(request: Request, media: str | None) -> None:
    if media is None and not await request.body():
        return  # what is missing then is told as a missing field
    named = "none is named" if media is None else f"it is {media!r:.80}"
    raise HTTPException(415, f"the body must be `application/json`; {named}", {"Accept": "application/json"})


PERSONA, AGENT = b"persona=", b"agent="


def _with_agent(request: Request) -> Request:
    """The request with the agent named so, where it is called a persona."""
    parts = request.scope["query_string"].split(b"&")
    if not any(part.startswith(PERSONA) for part in parts):
        return request
    told = b"&".join(AGENT + part[len(PERSONA) :] if part.startswith(PERSONA) else part for part in parts)
    return strict_request(request, query=told)


def _check_query(request: Request, known: dict[str, bool]) -> None:
    seen = set()
    for name, _ in request.query_params.multi_items():
        if name not in known:
            _wrong(name, f"is not a parameter here; there are {', '.join(sorted(known)) or 'none'}")
        if name in seen and not known[name]:
            _wrong(name, "is given twice; give it once")
        seen.add(name)


def _wrong(name: str, why: str) -> None:
    raise RequestValidationError([{"type": "unknown", "loc": ("query", name[:80]), "msg": why}])


def _parameters(of: Dependant) -> Iterator[tuple[str, bool]]:
    """The names of all query parameters, and whether one may come several times."""
    for field in of.query_params:
        yield field.alias, getattr(field.field_info.annotation, "__origin__", None) is list
    for one in of.dependencies:
        yield from _parameters(one)


UserId = Annotated[str, Path(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="The user.", examples=["ana"])]
AgentId = Annotated[
    str,
    Query(
        min_length=1,
        max_length=ID_BYTES_MAX,
        pattern=PLAIN,
        description="The agent; also accepted as `persona`.",
    ),
]
ChannelId = Annotated[str, Query(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="The channel.")]


def repeated(description: str) -> Any:
    """`Idempotency-Key` of a route whose call itself takes the caller's id of a request."""
    header = Header(alias="Idempotency-Key", min_length=1, max_length=400, pattern=r"^[!-~]+$", description=description)
    return Annotated[str | None, header]


def door(request: Request) -> Door:
    """The engine as this caller sees it; the guard found out who that is before any route is reached."""
    return Door(request.app.state.engine, request.state.access, "http")


async def _reading(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return door(request).memory(user, "read", agent=agent, channel=channel)


async def _writing(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return door(request).memory(user, "write", agent=agent, channel=channel)


async def _ruling(request: Request, user: UserId, agent: AgentId = DEFAULT, channel: ChannelId = DEFAULT) -> Memory:
    return door(request).memory(user, "admin", agent=agent, channel=channel)


async def _door(request: Request) -> Door:
    return door(request)


# These do nothing that waits, so they are coroutines: a plain function would cost a hop to a thread for each request.
Reads = Annotated[Memory, Depends(_reading)]
Writes = Annotated[Memory, Depends(_writing)]
Rules = Annotated[Memory, Depends(_ruling)]
"""For what cannot be taken back, such as forgetting a user."""
Whole = Annotated[Door, Depends(_door)]
"""For what concerns the whole store; the route says what that needs."""
OF_USER: Mapping[Permission, Any] = {"read": Reads, "write": Writes, "admin": Rules}


@dataclass(frozen=True, slots=True)
class PageRequest:
    """How much of a list is wanted, and behind what."""

    limit: int
    cursor: str | None
    most: int = LIMIT_MAX
    """Rows that one listing may have."""

    @property
    def rows(self) -> int:
        """How many rows to list, so that those behind the cursor are among them, and one that tells of more."""
        return self.rows_behind if self.cursor is None else self.most

    @property
    def rows_behind(self) -> int:
        """How many rows to list from the cursor on, with one that tells of more."""
        return min(self.limit + 1, self.most)


async def _page(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many at most.")] = 50,
    cursor: Annotated[str | None, Query(min_length=1, max_length=4_000, description="`next` of the page before.")] = None,
) -> PageRequest:
    return PageRequest(limit, cursor, request.app.state.engine.limits.page_rows_max)


Paged = Annotated[PageRequest, Depends(_page)]
