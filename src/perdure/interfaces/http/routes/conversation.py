"""The log of a conversation, its sessions, and the summaries over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Depends, Query, Response
from pydantic import Field

from perdure.domain.conversation.documents import NUMBER_MAX
from perdure.domain.conversation.messages import Message, NewMessage, Role
from perdure.domain.errors import NotFound
from perdure.domain.values import dataclass
from perdure.handles.arguments import PLAIN
from perdure.handles.conversation import EXAMPLE as DOCUMENT
from perdure.handles.memory import Memory
from perdure.handles.operation import describe
from perdure.interfaces.http import fields
from perdure.interfaces.http.answers import answer, cursor, located, read_cursor
from perdure.interfaces.http.derived import ANSWER, Made, Paging, Route, listed, table
from perdure.interfaces.http.requests import PageRequest
from perdure.services.documents.documents import REVISION_MAX

fields.stand_for(NewMessage, describe(Memory, "append"))
TALK = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi!"}]
CALLED = [
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "Rain."}]},
]
WHERE = ("address.agent", "address.channel", "id")
Text = Annotated[str, Field(pattern=PLAIN)]
Seconds = Annotated[int, Field(ge=-NUMBER_MAX, le=NUMBER_MAX, description="Whole seconds since 1970.")]
Count = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
OF_A_SESSION = ("getSession", "changeSession", "compactSession", "undoFold", "deleteSession")
"""What can be done with the session that a message is in."""


class EntryGiven(fields.Body):
    """A message of a document's history."""

    timestamp: Seconds
    role: Role
    content: Text
    token_count: Count | None = Field(None, description="What it costs; estimated where it is missing.")


class TaskGiven(fields.Body):
    """A task of a document."""

    id: Text
    description: Text
    status: Text = Field(description="`Running`, `Completed`, `Failed`, or any other text.")
    progress: float = Field(ge=0, le=1)
    created_at: Seconds
    updated_at: Seconds


class ToolStatsGiven(fields.Body):
    """How often tools were called."""

    total_calls: Count
    by_tool: dict[str, Count]
    failures: Count


class EnvironmentGiven(fields.Body):
    """What the agent last knew of its surroundings."""

    workspace: Text
    last_update: Seconds
    system_snapshot: dict[str, Any]


class TokenUsageGiven(fields.Body):
    """Tokens paid for."""

    total_input: Count
    total_output: Count
    by_session: Count


class DocumentGiven(fields.Body):
    """A context document as it was loaded, changed."""

    session_id: str = Field(min_length=1, max_length=1_300, pattern=PLAIN, description="`USER:AGENT:SESSION`, of this user.")
    system_state: dict[str, Any]
    facts: list[Text]
    recent_history: list[EntryGiven]
    long_term_summary: Text
    active_tasks: list[TaskGiven]
    tool_stats: ToolStatsGiven
    last_known_environment: EnvironmentGiven
    token_usage: TokenUsageGiven
    revision: int = Field(0, ge=0, le=REVISION_MAX, description="As it was loaded; 0 for a new one.")
    lineage: Text = Field("", description="As it was loaded.")
    notes: list[Text] = Field([], description="What loading had to fix; not stored.")


def _logged(made: Made) -> Response:
    logged: Message = made.value
    return answer(logged, 200 if logged.repeated else 201, located(made.held, "messages", logged.id))


@dataclass(frozen=True, slots=True)
class BothWays(Paging):
    """From a message on, to older ones or to newer ones: as the cursor says, or else as is asked."""

    both_ways: bool = True

    def arguments(self, page: PageRequest, given: Mapping[str, Any]) -> dict[str, Any]:
        """What the call is given for a page."""
        return {"limit": page.rows_behind, **_direction(page, given)}

    def response(self, found: Sequence[Message], page: PageRequest, given: Mapping[str, Any]) -> Response:
        """The page, with a cursor for more, and one for what lies the other way."""
        more = len(found) > page.limit
        if "after" in _direction(page, given):
            shown = found[: page.limit]
            onward: Any = ["after", shown[-1].id] if more else None
            back: Any = ["before", shown[0].id] if shown else None
        else:
            shown = found[1:] if more else found
            onward = ["before", shown[0].id] if more else None
            back = ["after", shown[-1].id] if shown else None
        ways = {name: None if way is None else cursor(way) for name, way in (("next", onward), ("previous", back))}
        return answer({"items": shown, **ways})


def _direction(page: PageRequest, given: Mapping[str, Any]) -> dict[str, str]:
    """Which way to go from which message."""
    asked = {name: given[name] for name in ("before", "after") if given.get(name) is not None}
    if page.cursor is None:
        return asked
    match read_cursor(page.cursor):
        case [("before" | "after") as way, str(id_)] if not asked:
            return {way: id_}
    raise NotFound("`cursor` is not from this list, or `before` or `after` is given too; give one of them")


MessageId = Annotated[str, Query(min_length=1, max_length=400, pattern=PLAIN, description="The id of a message.")]


async def _run_of_messages(first: MessageId, last: MessageId) -> tuple[str, str]:
    return first, last


router = table(
    "conversation",
    Route(
        "POST /messages",
        "appendMessage",
        "append",
        doc="Log one message, durably, and queue the work it causes. 200 if it was held already, with `repeated` set.",
        status=201,
        also=200,
        errors=(409,),
        headers=("Location",),
        key="id",
        respond=_logged,
        examples=(
            {"role": "user", "content": "I moved to Seattle last month."},
            {"role": "assistant", "content": "How do you like it?", "id": "m-2", "metadata": {"model": "small"}},
        ),
        links={
            "getMessage": "id=/id",
            "forgetMessages": "first=/id last=/id",
            **dict.fromkeys(OF_A_SESSION, "session=/session"),
        },
    ),
    Route(
        "GET /messages",
        "listMessages",
        "messages",
        doc="The latest, or those on one side of a message; each page oldest first. `next` continues in the same direction: to "
        "older ones, or with `after` to newer ones. `previous` goes the other way.",
        errors=(404,),
        page=BothWays(str),
    ),
    Route("GET /messages/{id}", "getMessage", "conversation.message"),
    Route(
        "POST /messages/batch",
        "appendMessages",
        "append_many",
        status=201,
        errors=(409,),
        types={"messages": Sequence[Mapping[str, Any]]},
        examples=({"messages": TALK}, {"messages": CALLED}),
    ),
    Route(
        "DELETE /messages",
        "forgetMessages",
        "forget",
        doc="Remove a run of messages for good, with what was learned from them alone. It cannot be undone.",
        errors=(404,),
        only=(),
        given={"messages": Annotated[tuple[str, str], Depends(_run_of_messages)]},
    ),
    Route("GET /sessions", "listSessions", "conversation.sessions", page=listed("id")),
    Route(
        "GET /conversations", "listConversations", "conversation.list_sessions", page=listed(*map("session.{}".format, WHERE))
    ),
    Route("GET /sessions/{session}", "getSession", "conversation.session"),
    Route(
        "DELETE /sessions/{session}",
        "deleteSession",
        "conversation.delete",
        tells={"session": "session", "deleted": True, "messages": ANSWER},
        links={"getSession": "session"},
    ),
    Route(
        "POST /sessions/{session}/compact",
        "compactSession",
        "conversation.compact",
        examples=({"force": True},),
        links={"undoFold": "session"},
    ),
    Route("POST /sessions/{session}/undo", "undoFold", "conversation.undo"),
    Route("POST /sessions/{session}/pop", "popExchange", "conversation.pop", errors=(404, 409), examples=({"messages": 2}, {})),
    Route("POST /sessions/{session}/{action}", "changeSession", "conversation.close|resume"),
    Route(
        "GET /digests", "listDigests", "conversation.digests", errors=(404,), page=listed("session_number", "kind", "version")
    ),
    Route("PATCH /agent-state", "configureAddress", "conversation.configure", examples=({"casual": True},)),
    Route("GET /documents", "listDocuments", "conversation.documents.list", page=listed()),
    Route(
        "POST /documents",
        "saveDocument",
        "conversation.documents.save",
        errors=(409,),
        types={"document": DocumentGiven},
        examples=({"document": DOCUMENT},),
    ),
    Route("GET /documents/{document}", "loadDocument", "conversation.documents.load"),
    Route("GET /documents/{document}/versions", "listDocumentVersions", "conversation.documents.versions"),
    Route(
        "POST /documents/{document}/compact",
        "compactDocument",
        "conversation.documents.compact",
        errors=(404, 409),
        examples=({"force": True},),
    ),
    Route(
        "DELETE /documents/{document}",
        "deleteDocument",
        "conversation.documents.delete",
        tells={"document": "document", "deleted": ANSWER},
    ),
)
