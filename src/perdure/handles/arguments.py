"""Parameters that several operations share: their types, and the words and bounds that every face gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from perdure.domain.conversation.messages import ClientMessage, NewMessage, Role, ToolCall
from perdure.domain.knowledge.proposals import IMPORTANCE_MAX, EntityName, FactType, MemoryType, NewStatement
from perdure.domain.oversight import AskedTool, SaveMode
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.text.rules import Json
from perdure.handles.operation import Arg, Unset

PLAIN = r"^[^\x00]*$"
"""Any text without NUL, which no store keeps."""
WORDS = r"^[^\x00]*[^\s\x00][^\x00]*$"
"""The same, with something to read in it."""
REFERENCE = r"^(person|place|org|project):[^\x00]*[A-Za-z0-9][^\x00]*$"
NUMBER_MAX = 2**53
"""What every reader of JSON holds exactly."""
TEXT_CHARS_MAX = 1_048_576
TOKENS_MAX = 10_000_000
SECONDS_MAX = 10**9


def an_id(text: str, example: object = None) -> Arg:
    """An id, whatever it names."""
    return Arg(text, min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, example=example)


def a_reference(text: str) -> Arg:
    """An entity's type and name."""
    return Arg(text, min_length=3, max_length=400, pattern=REFERENCE, example="person:John Doe")


# -- lists

Limit = Annotated[int, Arg("How many at most.", ge=1)]
"""Up to the setting `page_rows_max`."""
Id = Annotated[str, an_id("An id.")]
BeforeId = Annotated[str | None, an_id("Continue after this entry of the list before: its id.")]
BeforeNumber = Annotated[int | None, Arg("Continue after this entry of the list before: its number.", ge=0, le=NUMBER_MAX)]
Closed = Annotated[bool, Arg("Also those that are closed.")]
DryRun = Annotated[bool, Arg("Change nothing; only say what would be done.")]
Replace = Annotated[bool, Arg("Overwrite what is there.")]

# -- times

SeriesStart = Annotated[object, Arg("Start of the range.", example="2026-01-01T00:00:00Z")]
SeriesEnd = Annotated[object, Arg("End of the range.", example="2026-02-01T00:00:00Z")]
"""Moments as series take them: aware datetimes, ISO 8601 texts, unix seconds."""
AsOf = Annotated[datetime | None, Arg("As it was at that moment.")]
KnownAt = Annotated[datetime | None, Arg("As it was known at that moment.")]

# -- what talk is about

Goal = Annotated[str, Arg("What the agent works on.", max_length=20_000, pattern=PLAIN)]
Question = Annotated[
    str, Arg("The question, in plain words.", min_length=1, max_length=10_000, pattern=WORDS, example="knee pain")
]
ImportFormat = Annotated[
    str, Arg("What it is: auto, jsonl, vault, mem0, mcp or an importer's name.", min_length=1, max_length=100, pattern=PLAIN)
]
Budget = Annotated[int, Arg("Tokens at most.", ge=100, le=TOKENS_MAX)]
Reference = Annotated[str, a_reference("An entity: its type and name.")]
MemoryKey = Annotated[str, an_id("The memory's key.", "profile||lives_in|fact")]
SessionRef = Annotated[str, an_id("The session's id.", "s-1")]
SessionOrCurrent = Annotated[str | None, an_id("The session; the current one, if left out.", "s-1")]

ContextGoal = Annotated[str | None, Arg("A question or task to look up.", min_length=1, max_length=10_000, pattern=WORDS)]
ContextBudget = Annotated[
    int | None, Arg("Tokens at most; the setting `history_tokens_max`, if left out.", ge=100, le=TOKENS_MAX)
]
Request = Annotated[str, Arg("What the user wants.", max_length=10_000, pattern=PLAIN)]
OperationNumber = Annotated[int, Arg("The operation's number.", ge=1, le=NUMBER_MAX, example=1)]

# -- a statement

Said = Annotated[
    str, Arg("The statement, in few words.", min_length=1, max_length=4_000, pattern=WORDS, example="Lives in Austin")
]
About = Annotated[MemoryType, Arg("What it is about.")]
Entities = Annotated[Iterable[Reference | EntityName], Arg("The entities it is about; the primary one first.", max_length=20)]
FactTypeArg = Annotated[FactType, Arg("The kind of statement.")]
Subject = Annotated[Reference | EntityName | None, a_reference("Whose attribute it is; the user's, if left out.")]
Attribute = Annotated[str | None, Arg("The attribute.", pattern=r"^[a-z][a-z0-9_]{0,59}$", example="lives_in")]
Value = Annotated[str | None, Arg("The attribute's value.", min_length=1, max_length=1_000, pattern=PLAIN, example="Austin")]
Importance = Annotated[int | None, Arg("How important it is; as its kind suggests, if left out.", ge=0, le=IMPORTANCE_MAX)]
Confidence = Annotated[float, Arg("How certain it is.", ge=0, le=1)]
ValidFrom = Annotated[datetime | None, Arg("Since when it is true; now, if left out.")]
Ended = Annotated[bool, Arg("It is no longer true.")]
Corrects = Annotated[bool, Arg("What was said before was wrong.")]
Pinned = Annotated[bool, Arg("Pin it: it is part of every context.")]
VisibleTo = Annotated[str | None, an_id("The one agent that may see it; all, if left out.")]
SourceName = Annotated[str, an_id("Where it comes from.")]
Statements = Annotated[Iterable[NewStatement], Arg("The statements, in order.", min_length=1, max_length=1_000)]

# -- a message

MessageRole = Annotated[Role, Arg("Who said it.")]
Content = Annotated[str, Arg("What was said.", pattern=PLAIN)]
OwnId = Annotated[str | None, an_id("Your own id: repeating it adds no second message.")]
SaidAt = Annotated[datetime | None, Arg("When it was said; now, if left out.")]
IntoSession = Annotated[str | None, an_id("The session; the open one, or a new one after a long silence, if left out.")]
Tokens = Annotated[int | None, Arg("Its tokens; estimated, if left out.", ge=0, le=2**31 - 1)]
Metadata = Annotated[Mapping[str, Json] | None, Arg("Any JSON object.")]
ToolCalls = Annotated[Sequence[ToolCall], Arg("The calls that an assistant message makes.", max_length=1_000)]
ToolCallRef = Annotated[str | None, an_id("The call that a tool message answers.")]
Failed = Annotated[bool, Arg("The tool call failed.")]
Messages = Annotated[
    Iterable[NewMessage | Mapping[str, Any] | ClientMessage],
    Arg(
        "The messages, in order, as OpenAI's or Anthropic's clients have them: all are logged, or none.",
        min_length=1,
        max_length=10_000,
    ),
]

# -- tools

ToolName = Annotated[str, Arg("The tool's name.", min_length=1, max_length=50, pattern=WORDS, example="getAthlete")]
Allowed = Annotated[Sequence[Id] | None, Arg("Keep results of these tools only.", max_length=1_000)]
Denied = Annotated[Sequence[Id], Arg("Keep no results of these tools.", max_length=1_000)]
Mode = Annotated[SaveMode | None, Arg("What to do with results; the setting `save_results`, if left out.")]
AnsweredWindow = Annotated[tuple[object, object] | None, Arg("The range that was asked of the tool and answered completely.")]
ToolArguments = Annotated[
    Mapping[str, Json] | AskedTool | None, Arg("What the tool was called with, by name: a window among it counts as covered.")
]
Deadline = Annotated[float, Arg("Seconds it may take.", gt=0, le=60)]

# -- the rules of a series

TEMPLATE = r"^[^\x00{}]*(\{[a-zA-Z_][a-zA-Z0-9_]*\}[^\x00{}]*)+$"
IdField = Annotated[str | Unset, an_id("The field with an entry's id.", "id")]
TimestampField = Annotated[str | Unset, an_id("The field with an entry's time.", "timestamp")]
IdTemplate = Annotated[
    str | Unset | None,
    Arg("Makes the ids of entries without one.", max_length=400, pattern=TEMPLATE, example="kudos_{activity_id}"),
]
Zone = Annotated[str | Unset, Arg("The time zone of times without one.", min_length=1, max_length=100, example="Europe/Berlin")]
SettlesAfter = Annotated[float | Unset, Arg("Entries may arrive this many seconds late.", ge=0, le=SECONDS_MAX)]
FreshFor = Annotated[float | Unset, Arg("Seconds until the newest end counts as stale.", ge=0, le=SECONDS_MAX)]
MaxEntries = Annotated[int | Unset | None, Arg("Entries at most; the oldest go first.", ge=1, le=10**9)]
KeepDays = Annotated[float | Unset | None, Arg("Days that the daily cleanup keeps.", ge=0, le=10**6)]
Description = Annotated[str | Unset, Arg("What the series is about.", max_length=250, pattern=PLAIN)]
