"""Answers: JSON as every skin tells it, pages of lists, and what a route says of itself in the API's description."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from fastapi import Response

from perdure.domain.errors import InvalidInput
from perdure.interfaces.http.asking import Page
from perdure.interfaces.shapes import plain

T = TypeVar("T")


class Answer(Response):
    """A value as JSON. Text is escaped to ASCII: whatever was stored can be sent."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return json.dumps(plain(content), separators=(",", ":"), allow_nan=False).encode()


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(value, status, headers)


def etag(revision: object) -> dict[str, str]:
    return {"ETag": f'"{revision}"'}


def expected(if_match: str | None, if_none_match: str | None = None) -> int | None:
    """The revision that `If-Match` names; 0 for `If-None-Match: *`, which means that there is none yet."""
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise InvalidInput("`If-None-Match` can only be *, without `If-Match`: it means that the key must be new")
        return 0
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise InvalidInput(f"`If-Match` = {if_match!r:.40} must be the `ETag` that was answered before")
    return int(text)


def page_of(items: Sequence[T], page: Page, name: Callable[[T], object]) -> Answer:
    """A page of a whole list: what comes behind the item that the cursor names, and the cursor for more."""
    start = 0
    if page.cursor is not None:
        wanted = read_cursor(page.cursor)
        places = [place for place, item in enumerate(items) if plain(name(item)) == wanted]
        if not places:
            raise InvalidInput("`cursor` names something that is no longer in this list; begin again without it")
        start = places[0] + 1
    shown = items[start : start + page.limit]
    more = len(items) > start + page.limit
    return answer({"items": shown, "next": cursor(name(shown[-1])) if more else None})


def cursor(position: object) -> str:
    """An opaque text for a place in a list."""
    return urlsafe_b64encode(json.dumps(plain(position)).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Any:
    try:
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (BadBase64, ValueError, UnicodeError, RecursionError):
        raise InvalidInput(f"`cursor` = {text!r:.40} is none that was given out; begin again without it") from None
