"""Answers: JSON as every skin tells it, pages of lists, revisions, and where a new thing is found."""

from __future__ import annotations

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as BadBase64
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from fastapi import Response

from perdure.domain.errors import InvalidInput, LimitExceeded, NotFound
from perdure.domain.scope import DEFAULT
from perdure.domain.text import brief
from perdure.handles.memory import Memory
from perdure.interfaces.http.asking import NUMBER_MAX, Page
from perdure.interfaces.shapes import plain

T = TypeVar("T")
CURSOR_ITEMS = 8

# Made once: `json.dumps` with options of its own builds an encoder for every call.
_ENCODE = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Answer(Response):
    """A value as JSON. Text is escaped to ASCII: whatever was stored can be sent."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return _ENCODE(plain(content)).encode()


def answer(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(value, status, headers)


def etag(revision: object) -> dict[str, str]:
    return {"ETag": f'"{revision}"'}


def located(memory: Memory, *parts: object) -> dict[str, str]:
    """`Location` of something of this user."""
    scope = memory.scope
    told = {"agent": scope.address.agent, "channel": scope.address.channel}
    query = urlencode({name: value for name, value in told.items() if value != DEFAULT})
    path = "/".join(segment(str(part)) for part in ("v1", "users", scope.owner.user, *parts))
    return {"Location": f"/{path}?{query}" if query else f"/{path}"}


def segment(id_: str) -> str:
    """An id as a segment of a path. One of dots alone is encoded, too: clients take it for a step up."""
    return id_.replace(".", "%2E") if id_ in (".", "..") else quote(id_, safe="")


def expected(if_match: str | None, if_none_match: str | None = None) -> int | None:
    """The revision that `If-Match` names; 0 for `If-None-Match: *`, which means that there is none yet."""
    if if_none_match is not None:
        if if_none_match.strip() != "*" or if_match is not None:
            raise InvalidInput("`If-None-Match` can only be *, without `If-Match`: it means that the key must be new")
        return 0
    if if_match is None:
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise InvalidInput(f"`If-Match` = {brief(if_match)} must be the `ETag` that was answered before")
    return int(text)


def page_of(items: Sequence[T], page: Page, name: Callable[[T], object]) -> Answer:
    """A page of a whole list: what comes behind the items that the cursor names, and the cursor for more.

    A cursor names the last few that were shown. One of them may have gone, or moved to the front because it was changed:
    the others still tell the place.
    """
    start = 0
    if page.cursor is not None:
        wanted = read_cursor(page.cursor)
        if not isinstance(wanted, list):
            raise NotFound("`cursor` is none that was given out for this list; begin again without it")
        places = [place for place, item in enumerate(items) if _tag(name(item)) in wanted]
        if not places:
            raise NotFound("`cursor` names something that is no longer in this list; begin again without it")
        start = places[-1] + 1
    end = start + page.limit
    if start >= page.most:
        raise LimitExceeded(f"a list shows at most `page_rows_max` = {page.most} rows; narrow it, or raise the limit")
    last = [_tag(name(item)) for item in items[max(0, end - CURSOR_ITEMS) : end]]
    return answer({"items": items[start:end], "next": cursor(last) if len(items) > end or end >= page.most else None})


def _tag(name: object) -> str:
    return hashlib.sha256(json.dumps(plain(name)).encode()).hexdigest()[:12]


def page_behind(items: Sequence[T], page: Page, name: Callable[[T], object]) -> Answer:
    """A page that was listed from its cursor on, with one item more than is shown if there is more."""
    shown = items[: page.limit]
    return answer({"items": shown, "next": cursor(name(shown[-1])) if len(items) > page.limit else None})


def read_place(text: str) -> tuple[datetime, str]:
    """A moment and a name, as a cursor holds the place in a list that is ordered by time."""
    read = read_cursor(text)
    try:
        at, name = read
        return datetime.fromisoformat(at), str(name)
    except (TypeError, ValueError):
        raise NotFound("`cursor` is none that was given out for this list; begin again without it") from None


def cursor(position: object) -> str:
    """An opaque text for a place in a list."""
    return urlsafe_b64encode(_ENCODE(plain(position)).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Any:
    try:
        return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (BadBase64, ValueError, UnicodeError, RecursionError):
        raise NotFound(f"`cursor` = {brief(text)} is none that was given out; begin again without it") from None


def text_cursor(page: Page) -> str | None:
    """The id that the cursor names."""
    return None if page.cursor is None else _held(page.cursor, str)


def number_cursor(page: Page) -> int | None:
    """The number that the cursor names."""
    return None if page.cursor is None else _held(page.cursor, int)


def _held(text: str, kind: type[T]) -> T:
    found = read_cursor(text)
    if type(found) is not kind or not found or (isinstance(found, int) and not 0 <= found <= NUMBER_MAX):
        raise NotFound(f"`cursor` = {brief(text)} is none that was given out here; begin again without it")
    return found
