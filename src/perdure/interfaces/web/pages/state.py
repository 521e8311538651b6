"""`/u/{user}/state`: values under keys, what each was before, and what changed."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.state import Revision
from perdure.domain.text.rules import Json
from perdure.handles.state import State
from perdure.interfaces.web.diffs import line_diff, pretty
from perdure.interfaces.web.page import PageLinks, memory_of, page, redirect_with_notice

router = APIRouter()
KEYS = 100
REVISIONS = 50


class Listing(BaseModel):
    pattern: str = ""
    after: str = ""


@router.get("/u/{user:id}/state")
def index(request: Request, asked: Annotated[Listing, Query()]) -> Response:
    found = memory_of(request).state.list(_glob(asked.pattern))
    rest = [one for one in found if one.key > asked.after]
    more = rest[KEYS - 1].key if len(rest) > KEYS else None
    return page(request, "state.html", keys=rest[:KEYS], count=len(found), more=more, asked=asked)


@router.post("/u/{user:id}/state")
def add(request: Request, key: Annotated[str, Form()] = "", value: Annotated[str, Form()] = "") -> Response:
    memory_of(request, "write").state.save(key, _value(value), expected=0)
    return redirect_with_notice(request, PageLinks(request)("state", key), "Saved.")


class StateDisplay(BaseModel):
    revision: int | None = None
    compare: int | None = None
    before: int | None = None


@router.get("/u/{user:id}/state/{key:id}")
def show(request: Request, key: str, asked: Annotated[StateDisplay, Query()]) -> Response:
    return _state_page(request, memory_of(request).state, key, asked)


@router.post("/u/{user:id}/state/{key:id}")
def save(request: Request, key: str, value: Annotated[str, Form()] = "", expected: Annotated[int, Form()] = 0) -> Response:
    """Save what was edited, if the revision that was edited still stands; else both are shown, and nothing is lost."""
    state = memory_of(request, "write").state
    try:
        number = state.save(key, _value(value), expected=expected)
    except Conflict as conflict:
        return _state_page(request, state, key, StateDisplay(), status=409, problem=str(conflict), typed=value)
    except InvalidInput as wrong:
        return _state_page(request, state, key, StateDisplay(), status=422, problem=str(wrong), typed=value)
    return redirect_with_notice(request, PageLinks(request)("state", key), f"Saved as revision {number}.")


@router.post("/u/{user:id}/state/{key:id}/restore")
def restore(request: Request, key: str, revision: Annotated[int, Form()]) -> Response:
    number = memory_of(request, "write").state.restore(key, revision)
    return redirect_with_notice(
        request, PageLinks(request)("state", key), f"Revision {revision} is the value again, as revision {number}."
    )


@router.post("/u/{user:id}/state/{key:id}/delete")
def delete(request: Request, key: str, expected: Annotated[int | None, Form()] = None) -> Response:
    memory_of(request, "write").state.delete(key, expected=expected)
    return redirect_with_notice(
        request, PageLinks(request)("state", key), "The value is gone; its revisions stay, and each can be restored."
    )


def _state_page(request: Request, state: State, key: str, asked: StateDisplay, status: int = 200, **more: Any) -> Response:
    revisions = state.history(key, limit=REVISIONS, before=asked.before)
    if not revisions:
        raise NotFound(f"nothing was ever kept under {key!r:.80}; the list names the keys there are")
    current = state.find(key)
    chosen = _numbered(state, key, revisions, asked.revision) if asked.revision else revisions[0]
    against = _numbered(state, key, revisions, asked.compare) if asked.compare else _earlier(state, key, chosen)
    changes = None if against is None else line_diff(_text(against), _text(chosen))
    shared: dict[str, Any] = {"problem": None, "typed": None, **more}
    return page(
        request,
        "state_one.html",
        status,
        key=key,
        current=current,
        revisions=revisions,
        chosen=chosen,
        against=against,
        changes=changes,
        text=_text(chosen),
        current_text=pretty(current.value) if current.found else "",
        more=revisions[-1].number if revisions[-1].number > 1 else None,
        **shared,
    )


def _numbered(state: State, key: str, held: Any, number: int) -> Revision:
    """One revision, whether it is on this page of the history or not."""
    found = next((one for one in held if one.number == number), None)
    if found is None:
        found = next((one for one in state.history(key, limit=1, before=number + 1) if one.number == number), None)
    if found is None:
        raise NotFound(f"{key!r:.80} has no revision {number}; its page lists those it has")
    return found


def _earlier(state: State, key: str, one: Revision) -> Revision | None:
    found = state.history(key, limit=1, before=one.number) if one.number > 1 else ()
    return found[0] if found else None


def _text(one: Revision) -> str:
    return "" if one.body is None else pretty(json.loads(one.body))


def _glob(typed: str) -> str:
    """What somebody types is looked for anywhere in a key, unless it is a pattern already."""
    words = typed.strip()
    return "*" if not words else words if any(sign in words for sign in "*?[") else f"*{words}*"


def _value(text: str) -> Json:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = (
            f"line {error.lineno}, column {error.colno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else "too deep"
        )
        raise InvalidInput(f'the value is no JSON ({where}); write text in quotes, as in "metric"') from None
