"""`/v1/users/{user}/messages`: the log of a conversation, appended and never changed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from perdure.domain.errors import NotFound
from perdure.domain.messages import Message, MessageFields, NewMessage, Role, ToolCall
from perdure.domain.scope import ToolCallId
from perdure.interfaces.http.answering import answer, cursor, located, page_of, read_cursor
from perdure.interfaces.http.asking import PLAIN, Body, Id, Instant, Json, Page, Paged, Reads, Writes, door, examples, in_path
from perdure.interfaces.http.bodies import StrictRoute, strictly_read
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute
from perdure.services.forgetting import Forgotten

PREFIX = "/v1/users/{user:id}"
# The ids of messages make repeats harmless by themselves, so appending is no `OnceRoute`.
router = APIRouter(prefix=PREFIX, tags=["messages"], route_class=StrictRoute)
writes = APIRouter(prefix=PREFIX, tags=["messages"], route_class=OnceRoute)

BATCH_MAX = 10_000
MessageId = Annotated[str, in_path("The message's id.", "m-1")]
Repeated = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=400, pattern=r"^[!-~]+$",
        description="Becomes the message's id if that is left out: the same twice is one message.",
    ),
]  # fmt: skip
SessionId = Annotated[str | None, Query(min_length=1, max_length=400, pattern=PLAIN, description="Only of this session.")]


OF_A_SESSION = (
    "getSession", "getTally", "closeSession", "resumeSession", "compactSession", "foldSession", "clearSession",
    "replaceSession", "undoFold", "deleteSession", "readTranscript",
)  # fmt: skip
"""What can be done with the session that a message is in."""


class Call(Body):
    id: Id = Field(description="What the result will name.")
    name: Id = Field(description="The tool.")
    arguments: Json = Field(None, description="Any JSON.")


class Said(Body):
    model_config = examples(
        {"role": "user", "content": "I moved to Seattle last month."},
        {"role": "assistant", "content": "How do you like it?", "id": "m-2", "metadata": {"model": "small"}},
    )

    role: Role = Field(description="Who said it.")
    content: str = Field(pattern=PLAIN, description="What was said.")
    id: Id | None = Field(None, description="An id of yours: the same again is no second message.")
    at: Instant | None = Field(None, description="When; now, if left out.")
    session: Id | None = Field(None, description="The session it belongs to; the one that goes on, if left out.")
    tokens: int | None = Field(None, ge=0, le=2**31 - 1, description="Counted, if left out.")
    metadata: dict[str, Json] | None = Field(None, description="Any JSON object.")
    tool_calls: list[Call] = Field([], max_length=1_000, description="Of an assistant message: the calls it makes.")
    tool_call_id: Id | None = Field(None, description="Of a tool message: the call that it answers.")
    failed: bool = Field(False, description="Of a tool message: the call failed.")


class Batch(Body):
    model_config = examples({"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi!"}]})

    messages: list[Said] = Field(min_length=1, max_length=BATCH_MAX, description="In order; all are logged, or none.")


def _fields(said: Said, id_: str | None = None) -> MessageFields:
    return MessageFields(
        id=said.id if id_ is None else id_, at=said.at, session=said.session, tokens=said.tokens, metadata=said.metadata,
        tool_call_id=said.tool_call_id, failed=said.failed,
        tool_calls=[ToolCall(ToolCallId(call.id), call.name, call.arguments) for call in said.tool_calls],
    )  # fmt: skip


class AppendRoute(StrictRoute):
    """Reads the most frequent request by hand if all about it is plain: the framework takes as long to read one as the store
    to log it. Whatever is out of the ordinary goes the ordinary way, and so does every error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def read(request: Request) -> Response:
            said = await _plain(request)
            if said is None:
                return await handle(request)
            memory = door(request).memory(request.path_params["user"], "write")
            return await run_in_threadpool(append, memory, said)

        return read


async def _plain(request: Request) -> Said | None:
    """The message, if nothing but a body is given that is as it should be."""
    headers = request.headers
    if request.scope["query_string"] or "idempotency-key" in headers or headers.get("content-type") != "application/json":
        return None
    user = request.path_params["user"]
    if len(user) > 400 or not user.isascii() or not user.isprintable():
        return None
    try:
        return Said.model_validate(strictly_read((await request.body()).decode()))
    except (ValueError, RecursionError):  # of the body, of its text, of the model: each is told by the ordinary way
        return None


appends = APIRouter(prefix=PREFIX, tags=["messages"], route_class=AppendRoute)


@appends.post(
    "/messages",
    summary="Log a message",
    **described(
        "appendMessage", Message, status=201, also=200, errors=(409,), headers=("Location",),
        links=(leads_to("getMessage", message="/id"), leads_to("forgetMessages", first="/id", last="/id"),
               *(leads_to(name, session="/session") for name in OF_A_SESSION)),
    ),
)  # fmt: skip
def append(memory: Writes, body: Said, repeated: Repeated = None) -> Response:
    """Log one message, durably, and queue the work it causes. 200 if it was held already, with `repeated` set."""
    logged = memory.append(body.role, body.content, **_fields(body, repeated if body.id is None else None))
    return answer(logged, 200 if logged.repeated else 201, located(memory, "messages", logged.id))


@writes.post(
    "/messages/batch",
    summary="Log several messages",
    **described("appendMessages", {"items": list[Message]}, status=201, errors=(409,)),
)
def append_many(memory: Writes, body: Batch) -> Response:
    """In one transaction: all of them, in order, or none."""
    messages = [NewMessage(said.role, said.content, **_fields(said)) for said in body.messages]
    return answer({"items": memory.append_many(messages)}, 201)


async def _direction(
    page: Paged,
    before: Annotated[str | None, Query(min_length=1, max_length=400, pattern=PLAIN, description="Only before it.")] = None,
    after: Annotated[str | None, Query(min_length=1, max_length=400, pattern=PLAIN, description="Only after it.")] = None,
) -> tuple[Page, dict[str, str]]:
    """Which way to go from which message: as the cursor says, or else as is asked."""
    given = {name: id_ for name, id_ in (("before", before), ("after", after)) if id_ is not None}
    if page.cursor is None:
        return page, given
    match read_cursor(page.cursor):
        case [("before" | "after") as way, str(id_)] if not given:
            return page, {way: id_}
    raise NotFound("`cursor` was not given out here, or stands beside `before` or `after`; give one of them")


@router.get(
    "/messages",
    summary="List messages",
    **described("listMessages", many(Message, both_ways=True), errors=(404,)),
)
def list_messages(
    memory: Reads, asked: Annotated[tuple[Page, dict[str, str]], Depends(_direction)], session: SessionId = None
) -> Response:
    """The latest, or those on one side of a message; each page oldest first. `next` goes on in the same direction: to
    older ones, or with `after` to newer ones. `previous` goes the other way."""
    page, where = asked
    rows = min(page.limit + 1, page.most)
    found = list(memory.messages(rows, session=session, **where))
    more = len(found) > page.limit
    if "after" in where:
        shown = found[: page.limit]
        onward: Any = ["after", shown[-1].id] if more else None
        back: Any = ["before", shown[0].id] if shown else None
    else:
        shown = found[1:] if more else found
        onward = ["before", shown[0].id] if more else None
        back = ["after", shown[-1].id] if shown else None
    ways = {name: None if way is None else cursor(way) for name, way in (("next", onward), ("previous", back))}
    return answer({"items": shown, **ways})


@router.get(
    "/messages/{message:id}",
    summary="Get a message",
    **described("getMessage", Message, errors=(404,)),
)
def get(memory: Reads, message: MessageId) -> Response:
    """One message of this address by its id."""
    return answer(memory.message(message))


@router.get(
    "/search/messages",
    summary="Search messages",
    **described("searchMessages", many(Message), errors=(404,)),
)
def search(
    memory: Reads,
    page: Paged,
    query: Annotated[
        str, Query(min_length=1, max_length=10_000, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$", description="The words.")
    ],
    session: SessionId = None,
) -> Response:
    """Messages of this address that contain all words, in any case, the newest first."""
    return page_of(memory.conversation.search(query, session=session, limit=page.rows), page, lambda one: one.id)


@writes.delete(
    "/messages",
    summary="Forget messages",
    **described("forgetMessages", Forgotten, errors=(404,)),
)
def forget(
    memory: Writes,
    first: Annotated[str, Query(min_length=1, max_length=400, pattern=PLAIN, description="The first of the run.")],
    last: Annotated[str, Query(min_length=1, max_length=400, pattern=PLAIN, description="The last of the run.")],
) -> Response:
    """Remove a run of messages for good, with what was learned from them alone. It cannot be undone."""
    return answer(memory.forget(messages=(first, last)))
