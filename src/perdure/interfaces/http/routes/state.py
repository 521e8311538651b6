"""`/v1/users/{user}/state`: any JSON under a key, every revision kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from perdure.domain.errors import NotFound
from perdure.interfaces.http.answering import answer, etag, expected, page_of
from perdure.interfaces.http.asking import Paged, Reads, Writes

router = APIRouter(prefix="/v1/users/{user:id}/state", tags=["state"])
Key = Annotated[str, Path(min_length=1, max_length=400, description="The key.", examples=["units"])]
IfMatch = Annotated[str | None, Header(description="The `ETag` of the value that was read: only if it still stands.")]
IfNoneMatch = Annotated[str | None, Header(description="`*`: only if the key is new.")]
Repeated = Annotated[str | None, Header(alias="Idempotency-Key", max_length=400, description="The same twice is one save.")]


class NewValue(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"value": "metric"}]})

    value: JsonValue = Field(description="Any JSON.")
    expires_in_s: float | None = Field(None, gt=0, le=10**10, description="Forget it after so many seconds.")


@router.get("", operation_id="listState", summary="List keys")
def list_keys(
    memory: Reads, page: Paged, pattern: Annotated[str, Query(min_length=1, max_length=400, description="A glob.")] = "*"
) -> Response:
    """Keys with time and size, in order; no value is loaded."""
    return page_of(memory.state.list(pattern), page, lambda one: one.key)


@router.get("/{key:id}", operation_id="getState", summary="Get a value")
def get(
    memory: Reads, key: Key, revision: Annotated[int | None, Query(ge=1, description="Of this revision.")] = None
) -> Response:
    found = memory.state.find(key, revision=revision)
    if not found.found:
        raise NotFound(f"nothing is kept under {key!r:.80}; list the keys to see what is")
    return answer(found, headers=etag(found.revision))


@router.put("/{key:id}", operation_id="saveState", summary="Keep a value", status_code=200)
def save(
    memory: Writes,
    key: Key,
    body: NewValue,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
    request: Repeated = None,
) -> Response:
    """The value becomes the next revision; earlier ones stay in the history."""
    wanted = expected(if_match, if_none_match)
    revision = memory.state.save(key, body.value, expected=wanted, expires_in_s=body.expires_in_s, request=request)
    return answer({"key": key, "revision": revision}, headers=etag(revision))


@router.delete("/{key:id}", operation_id="deleteState", summary="Take a value away")
def delete(memory: Writes, key: Key, if_match: IfMatch = None) -> Response:
    """It stays in the history."""
    return answer({"key": key, "deleted": memory.state.delete(key, expected=expected(if_match))})
