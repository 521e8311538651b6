"""`/v1/keys`: the keys that let callers in. For keys that may do everything to everybody."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from perdure.domain.api_keys import ApiKey, NewApiKey
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import Body, Id, Paged, Whole, examples
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, many

# Not carried out once by `Idempotency-Key`: the answer has the secret, which is kept nowhere.
router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=StrictRoute)
KeyId = Annotated[str, Path(pattern="^[0-9a-f]{12}$", description="The id of a key.", examples=["0123456789ab"])]


class NewKey(Body):
    model_config = examples({"name": "ana's laptop", "users": ["ana"], "permission": "write"})

    name: str = Field(min_length=1, max_length=100, description="To tell it from others.")
    users: list[Id] | None = Field(None, min_length=1, max_length=1_000, description="Whom it is for; left out: everybody.")
    permission: Literal["read", "write", "admin"] = Field("write", description="Each comes with those before it.")
    days: float | None = Field(None, gt=0, le=36_500, description="It ends by itself after so many.")


@router.get("", summary="List API keys", **described("listKeys", many(ApiKey)))
def list_keys(door: Whole, page: Paged) -> Response:
    """Every key there is or was, the newest first; no secrets."""
    return page_of(door.whole().api_keys.list(), page, lambda one: one.id)


@router.post("", summary="Make an API key", **described("createKey", NewApiKey, status=201))
def create(request: Request, door: Whole, body: NewKey) -> Response:
    """The secret is in this answer and nowhere else."""
    made = door.whole().api_keys.create(body.name, users=body.users, permission=body.permission, days=body.days)
    request.app.state.guard.keyring.clear()
    return answer(made, 201)


@router.delete("/{key}", summary="Revoke an API key", **described("revokeKey", ApiKey, errors=(404,)))
def revoke(request: Request, door: Whole, key: KeyId) -> Response:
    """It lets nobody in any more, and who is signed in by it is not; that it was there stays known."""
    revoked = door.whole().api_keys.revoke(key)
    request.app.state.guard.keyring.clear()
    return answer(revoked)
