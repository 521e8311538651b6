"""Any JSON under a key, every revision kept; `ETag` is the revision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from fastapi import Depends, Header, Path, Response
from starlette.concurrency import run_in_threadpool

from perdure.domain.errors import Conflict, NotFound
from perdure.domain.scope import ID_BYTES_MAX
from perdure.handles.arguments import PLAIN
from perdure.interfaces.http.answers import answer, etag, expected
from perdure.interfaces.http.derived import ANSWER, Made, Route, behind, listed, table
from perdure.interfaces.http.requests import Writes

SAVED: Mapping[str, str | bool] = {"key": "key", "revision": ANSWER}
REVISION = r'^(\*|(W/)?"?[0-9]{1,18}"?)$'
Key = Annotated[str, Path(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="The key.", examples=["units"])]
IfMatch = Annotated[
    str | None, Header(pattern=REVISION, description="The `ETag` of the value that was read: only if it still stands.")
]
IfNoneMatch = Annotated[Literal["*"] | None, Header(description="`*`: only if the key is new.")]


async def _standing(memory: Writes, key: Key, if_match: IfMatch = None) -> int | None:
    """The revision that the key must stand at; `If-Match: *` is whichever it has, if it has one."""
    if if_match is None or if_match.strip() != "*":
        return expected(if_match)
    held = await run_in_threadpool(memory.state.find, key)
    if not held.found:
        raise Conflict(f"nothing is kept under {key!r:.80}, and `If-Match: *` asks for something; leave it out")
    return held.revision


async def _new_or_standing(memory: Writes, key: Key, if_match: IfMatch = None, if_none_match: IfNoneMatch = None) -> int | None:
    """The same, and 0 for a key that must be new."""
    return await _standing(memory, key, if_match) if if_none_match is None else expected(if_match, if_none_match)


def _loaded(made: Made) -> Response:
    if not made.value.found:
        raise NotFound(f"nothing is kept under {made.value.key!r:.80}; list the keys to see what is")
    return answer(made.value, headers=etag(made.value.revision))


def _saved(made: Made) -> Response:
    return answer({"key": made.given["key"], "revision": made.value}, headers=etag(made.value))


router = table(
    "state",
    Route("GET /state", "listState", "state.list", page=listed("key")),
    Route(
        "POST /state/search", "searchState", "state.search", examples=({"query": "a pasta with eggs"}, {"pattern": "kudos*"})
    ),
    Route("GET /state/{key}", "getState", "state.find", headers=("ETag",), respond=_loaded),
    Route(
        "PUT /state/{key}",
        "saveState",
        "state.save",
        doc="The value becomes the next revision; earlier ones stay in the history.",
        errors=(409,),
        headers=("ETag",),
        key="request",
        given={"expected": Annotated[int | None, Depends(_new_or_standing)]},
        tells=SAVED,
        respond=_saved,
        examples=({"value": "metric"}, {"value": {"theme": "dark"}, "expires_in_s": 3600}),
        links=dict.fromkeys(("getState", "getStateHistory", "restoreState", "deleteState"), "key=/key"),
    ),
    Route(
        "POST /state/{key}/items",
        "appendState",
        "state.append",
        errors=(409,),
        headers=("ETag",),
        key="request",
        given={"expected": Annotated[int | None, Depends(_new_or_standing)]},
        tells=SAVED,
        respond=_saved,
        examples=({"items": ["first", {"second": 2}]},),
        links={"getState": "key=/key"},
    ),
    Route(
        "DELETE /state/{key}",
        "deleteState",
        "state.delete",
        doc="It stays in the history. `deleted` is false if there was none.",
        errors=(409,),
        given={"expected": Annotated[int | None, Depends(_standing)]},
        tells={"key": "key", "deleted": ANSWER},
        links={"getState": "key=/key"},
    ),
    Route("GET /state/{key}/history", "getStateHistory", "state.history", errors=(), page=behind("before", int, "number")),
    Route(
        "POST /state/{key}/restore",
        "restoreState",
        "state.restore",
        headers=("ETag",),
        tells=SAVED,
        respond=_saved,
        examples=({"revision": 1},),
    ),
)
