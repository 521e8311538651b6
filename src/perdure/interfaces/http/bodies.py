"""How a request is read: JSON and nothing else, each field and each parameter once, none that is unknown.

What is wrong with the form of a request is told here; what is wrong with its content, by the models and the services.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

JSON_TYPES = ("application/json", "application/problem+json")


class Asked(Request):
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
                _check_query(request, known)
            if takes_json:
                media = request.headers.get("content-type")
                if media is None or media.partition(";")[0].strip().lower() not in JSON_TYPES:
                    await _refuse_media(request, media)
            return await handle(request if type(request) is Asked else asked(request))

        return read


def asked(request: Request) -> Asked:
    """The same request, read strictly; a body that was read already is not read again."""
    found = Asked(request.scope, request.receive)
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
