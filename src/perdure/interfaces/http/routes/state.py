"""`/v1/users/{user}/state`: any JSON under a key, every revision kept."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Response
from pydantic import Field

from perdure.domain.errors import Conflict, NotFound
from perdure.domain.state import KeyInfo, Loaded, Revision
from perdure.handles.memory import Memory
from perdure.handles.state import Found
from perdure.interfaces.http.answering import answer, etag, expected, number_cursor, page_behind, page_of
from perdure.interfaces.http.asking import (
    LIMIT_MAX,
    NUMBER_MAX,
    PLAIN,
    Body,
    Json,
    Paged,
    Reads,
    Writes,
    examples,
    in_path,
)
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute

PREFIX = "/v1/users/{user:id}"
# A save takes the caller's id of the request itself.
router = APIRouter(prefix=PREFIX, tags=["state"], route_class=StrictRoute)
writes = APIRouter(prefix=PREFIX, tags=["state"], route_class=OnceRoute)

REVISION = r'^(\*|(W/)?"?[0-9]{1,18}"?)$'
Key = Annotated[str, in_path("The key.", "units")]
Pattern = Annotated[
    str, Query(min_length=1, max_length=400, pattern=PLAIN, description="A glob such as `kudos*`; case matters.")
]
IfMatch = Annotated[
    str | None, Header(pattern=REVISION, description="The `ETag` of the value that was read: only if it still stands.")
]
IfNoneMatch = Annotated[Literal["*"] | None, Header(description="`*`: only if the key is new.")]
Repeated = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=400, pattern=r"^[!-~]+$", description="The same twice is one save."
    ),
]
SAVED = {"key": str, "revision": int}


class NewValue(Body):
    model_config = examples({"value": "metric"}, {"value": {"theme": "dark"}, "expires_in_s": 3600})

    value: Json = Field(description="Any JSON.")
    expires_in_s: float | None = Field(None, gt=0, le=10**9, description="Forget it after so many seconds.")


class Past(Body):
    model_config = examples({"revision": 1})

    revision: int = Field(ge=1, le=NUMBER_MAX, description="The one to bring back.")


@router.get("/state", summary="List keys", **described("listState", many(KeyInfo)))
def list_keys(memory: Reads, page: Paged, pattern: Pattern = "*") -> Response:
    """Keys with time and size, in order; no value is loaded."""
    return page_of(memory.state.list(pattern), page, lambda one: one.key)


@router.get("/search/state", summary="Search keys", **described("searchState", Found))
def search(
    memory: Reads,
    pattern: Pattern,
    limit: Annotated[int, Query(ge=1, le=LIMIT_MAX, description="How many at most.")] = 100,
) -> Response:
    """Keys and values that match; `truncated` tells that there are more."""
    return answer(memory.state.search(pattern, limit=limit))


@router.get("/state/{key:id}", summary="Get a value", **described("getState", Loaded, errors=(404,), headers=("ETag",)))
def get(
    memory: Reads,
    key: Key,
    revision: Annotated[int | None, Query(ge=1, le=NUMBER_MAX, description="Of this revision.")] = None,
) -> Response:
    """The value with its revision and time."""
    found = memory.state.find(key, revision=revision)
    if not found.found:
        raise NotFound(f"nothing is kept under {key!r:.80}; list the keys to see what is")
    return answer(found, headers=etag(found.revision))


@router.put(
    "/state/{key:id}",
    summary="Keep a value",
    **described("saveState", SAVED, errors=(409,), headers=("ETag",), links=(
        *(leads_to(name, key="/key") for name in ("getState", "getStateHistory", "restoreState", "deleteState")),)),
)  # fmt: skip
def save(
    memory: Writes,
    key: Key,
    body: NewValue,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    request: Repeated = None,
) -> Response:
    """The value becomes the next revision; earlier ones stay in the history."""
    wanted = _standing(memory, key, if_match, if_none_match)
    revision = memory.state.save(key, body.value, expected=wanted, expires_in_s=body.expires_in_s, request=request)
    return answer({"key": key, "revision": revision}, headers=etag(revision))


@writes.delete(
    "/state/{key:id}",
    summary="Take a value away",
    **described("deleteState", {"key": str, "deleted": bool}, links=(leads_to("getState", key="/key"),)),
)
def delete(memory: Writes, key: Key, if_match: IfMatch = None) -> Response:
    """It stays in the history. `deleted` is false if there was none."""
    return answer({"key": key, "deleted": memory.state.delete(key, expected=_standing(memory, key, if_match))})


def _standing(memory: Memory, key: str, if_match: str | None, if_none_match: str | None = None) -> int | None:
    """The revision that the key must stand at; `If-Match: *` is whichever it has, if it has one."""
    if if_match is not None and if_match.strip() == "*" and if_none_match is None:
        held = memory.state.find(key)
        if not held.found:
            raise Conflict(f"nothing is kept under {key!r:.80}, and `If-Match: *` asks for something; leave it out")
        return held.revision
    return expected(if_match, if_none_match)


@router.get("/state/{key:id}/history", summary="List revisions", **described("getStateHistory", many(Revision)))
def history(memory: Reads, page: Paged, key: Key) -> Response:
    """Newest first; a deletion has no body."""
    found = memory.state.history(key, limit=min(page.limit + 1, page.most), before=number_cursor(page))
    return page_behind(found, page, lambda one: one.number)


@writes.post(
    "/state/{key:id}/restore",
    summary="Bring a revision back",
    **described("restoreState", SAVED, errors=(404,), headers=("ETag",)),
)
def restore(memory: Writes, key: Key, body: Past) -> Response:
    """Save the value of a past revision as the next one."""
    revision = memory.state.restore(key, body.revision)
    return answer({"key": key, "revision": revision}, headers=etag(revision))


@writes.delete("/state", summary="Take all values away", **described("clearState", {"deleted": int}))
def clear(memory: Writes) -> Response:
    """Delete every key; each can be restored."""
    return answer({"deleted": memory.state.clear()})
