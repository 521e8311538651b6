"""The tools of a memory, by set. Most are declared operations; here stands what a model reads, and how it is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, get_origin

from perdure.domain.conversation.messages import Message
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.entities import Todo
from perdure.domain.knowledge.memories import MemoryWithStatements
from perdure.domain.lessons import Lesson
from perdure.domain.oversight import KeptResult
from perdure.domain.reports import DoctorReport
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import read_instant
from perdure.handles.admin import JournalHandle
from perdure.handles.conversation import Conversation, DocumentHandle
from perdure.handles.knowledge import Memories, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.operation import OperationSpec, Parameter, describe, reached
from perdure.handles.registry.toolset import BY_NAME, parameter_schema, shown_parameters
from perdure.interfaces.mcp import lines
from perdure.interfaces.mcp.callers import ToolCaller
from perdure.interfaces.mcp.offers import ITEMS, Offer, Spec, fence, fenced, flag, shape, text


def tool(
    method: tuple[type, str],
    name: str,
    title: str,
    description: str,
    *,
    takes: Sequence[str],
    words: Mapping[str, str | Spec] | None = None,
    answer: tuple[Spec, Callable[[Any], str] | None] | None = None,
    **more: Any,
) -> Offer:
    """The operation `method` (its handle's class, its name) as a tool.

    `takes` are the parameters that a model is shown, in order: each costs tokens in every conversation. `words` replace the
    declared ones where a model needs others, or are a parameter that only this tool's own `call` takes. `answer` is the schema
    of what it returns, and how a model is told; by default as values of its type are. `more` as `Offer` has it.
    """
    declared = describe(*method)
    parameters = shown_parameters(declared, takes, name)
    output, told = answer or _answer(declared, title)
    said = words or {}
    other = {one.name: text for one in parameters if isinstance(text := said.get(one.name), str)}
    shown: dict[str, Json] = {one.name: parameter_schema(one, other.get(one.name)) for one in parameters}
    return Offer(
        name=name,
        title=title,
        permission=declared.permission,
        description=description,
        parameters={**shown, **{name: spec for name, spec in said.items() if isinstance(spec, dict)}},
        required=tuple(one.name for one in parameters if one.required),
        output=output,
        text=told,
        **{"call": _call(declared, method[1], parameters), "idempotent": declared.action == "read", **more},
    )


def _answer(declared: OperationSpec, title: str) -> tuple[Spec, Callable[[Any], str]]:
    """How an answer of this type is told: a list by lines, one value by its own. The title says what it is, behind a verb."""
    what = title.partition(" ")[2]
    kind, shown = what.split()[-1], f"{what[0].upper()}{what[1:]}"
    if get_origin(declared.returns) is Sequence:
        return ITEMS, fenced(kind, shown, lines.each)
    return SHAPES[declared.returns], fenced(kind, shown, lambda one: lines.each([one]))


def registered(kind: type, name: str, **more: Any) -> Offer:
    """A tool of the registry: `kind` is the class of the handle that it calls. `more` as `tool` has it."""
    one = BY_NAME[name]
    method = one.operation.rpartition(".")[2]
    permission = describe(kind, method).permission

    def call(caller: ToolCaller, **given: Any) -> object:
        return one.call(caller.memory(permission), given)

    words = {**one.words, **one.extra}
    return tool((kind, method), name, one.title, one.description, takes=one.takes, words=words, call=call, **more)


def _call(declared: OperationSpec, method: str, parameters: Sequence[Parameter]) -> Callable[..., object]:
    moments = [one.name for one in parameters if one.type is datetime]

    def call(caller: ToolCaller, **given: Any) -> object:
        read = {name: read_instant(value, name) if name in moments else value for name, value in given.items()}
        return getattr(reached(caller.memory(declared.permission), declared), method)(**read)

    return call


SHAPES: Mapping[type, Spec] = {
    MemoryWithStatements: shape(key="string", content="string", statements="array"),
    Todo: shape(id="string", content="string", state="string"),
    Lesson: shape(id="string", text="string", scope="string"),
    Message: shape(id="string", session="string", seq="integer"),
}
"""The fields of a value that a model may rely on."""
KEY = "The memory's key, as listMemories shows it."


def _outcome(value: Any) -> str:
    every = (value, *value.also)
    head = "; ".join(dict.fromkeys(f"{one.verdict}{'' if one.reason is None else f': {one.reason}'}" for one in every))
    said = [line for one in every for line in _outcome_lines(one)]
    return "\n".join([head, *([fence("remember", "Remembered", said)] if said else [])])


def _outcome_lines(value: Any) -> list[str]:
    kept = [] if value.statement is None else [f"[{value.statement.memory}] {value.statement.content}"]
    return [*kept, *(f"no longer current: {one.content}" for one in value.closed)]


def _either(flag: str, yes: str, no: str) -> Callable[..., MemoryWithStatements]:
    """One call or another of a memory, as the flag says."""

    def call(caller: ToolCaller, key: str, **given: bool) -> MemoryWithStatements:
        found: MemoryWithStatements = getattr(caller.memory("write").memories, yes if given.get(flag, True) else no)(key)
        return found

    return call


def _after_tool(caller: ToolCaller, tool: str, result: Json, **more: Any) -> KeptResult:
    start, end = more.pop("window_start", None), more.pop("window_end", None)
    if (start is None) != (end is None):
        raise InvalidInput("one end of the window is missing; give `window_start` and `window_end`, or neither")
    if start is not None:
        more["window"] = (start, end)
    return caller.memory("write").after(tool, result, **more)


def _undo(caller: ToolCaller, operation: int, cascade: bool = False) -> dict[str, int]:
    return {"undone": operation, "action": caller.memory("write").undo(operation, cascade=cascade)}


def _doctor(caller: ToolCaller) -> DoctorReport:
    return caller.whole().doctor()


KNOWLEDGE = (
    registered(Memory, "remember", answer=(shape(verdict="string", proposal="object"), _outcome)),
    registered(
        Memory,
        "recall",
        answer=(
            shape(query="string", hits="array", uncovered="object"),
            fenced("recall", "What was found", lines.recall_lines),
        ),
    ),
    tool(
        (Memory, "context"),
        "getContext",
        "Get context",
        "Get what an agent should know now in one text: pinned facts, instructions, lessons, the logged conversation, and what "
        "fits the goal. Use once at the start of a conversation or task; for one question use recall.",
        takes=("goal", "budget_tokens"),
        answer=(shape(messages="array", blocks="array", tokens="integer", dropped="array"), lines.context),
    ),
    tool(
        (Memories, "list"),
        "listMemories",
        "List memories",
        "List current memories with their keys, the newest change first. To find by meaning, use recall.",
        takes=("type", "entity", "pinned", "archived", "limit"),
    ),
    tool(
        (Memories, "get"),
        "getMemory",
        "Get a memory",
        "Get one memory by key, with its statements and the messages they rest on.",
        takes=("key",),
    ),
    registered(
        Memory,
        "forget",
        answer=(shape(forgotten="boolean", removed="object", redacted="object"), None),
        destructive=True,
        idempotent=True,
    ),
)

TODOS = (
    registered(TodoHandle, "addTodo", idempotent=True),
    registered(TodoHandle, "listTodos"),
    registered(TodoHandle, "completeTodo"),
)

LESSONS = (registered(LessonHandle, "addLesson", idempotent=True), registered(LessonHandle, "listLessons"))

CONVERSATION = (
    tool(
        (Memory, "append"),
        "appendMessage",
        "Log a message",
        "Log one message of the conversation as it was said, so that facts are learned from it and it can be recalled. Call it "
        "for each turn if the host does not log by itself.",
        takes=("role", "content", "id", "at", "session"),
    ),
    tool(
        (Conversation, "list_sessions"),
        "listSessions",
        "List conversations",
        "List the user's conversations with their ids, the last active first.",
        takes=("source", "limit"),
    ),
    tool(
        (Memory, "messages"),
        "readSession",
        "Read a conversation",
        "Read logged messages word for word, oldest first: the latest ones, or those beside a message that recall found.",
        takes=("session", "before", "after", "limit"),
        answer=(ITEMS, fenced("messages", "Messages", lines.each)),
    ),
)

DOCUMENTS = (
    tool(
        (DocumentHandle, "list"),
        "listDocuments",
        "List context documents",
        "List the ids of your context documents: one per session, with its history, summary, facts and tasks.",
        takes=("limit",),
        answer=(ITEMS, None),
    ),
    tool(
        (DocumentHandle, "load"),
        "loadDocument",
        "Load a context document",
        "Load a session's context document at the start of work, or one of its revisions. A new one is empty.",
        takes=("document", "revision"),
        answer=(shape(session_id="string", recent_history="array", facts="array", revision="integer"), None),
    ),
    tool(
        (DocumentHandle, "save"),
        "saveDocument",
        "Save a context document",
        "Save the document that loadDocument gave, with your changes; keep its revision and lineage as they came.",
        takes=("document",),
        answer=(shape(revision="integer", lineage="string"), None),
    ),
    tool(
        (DocumentHandle, "compact"),
        "compactDocument",
        "Compact a context document",
        "Shorten a stored document: old entries become a summary, nothing leaves the log.",
        takes=("document", "force"),
        answer=(shape(compacted="boolean", summarised="integer", tokens_after="integer"), None),
    ),
    tool(
        (DocumentHandle, "versions"),
        "listDocumentVersions",
        "List a document's versions",
        "List the kept revisions of a context document; loadDocument loads one.",
        takes=("document",),
        answer=(ITEMS, None),
    ),
)

OVERSEER = (
    tool(
        (Memory, "before"),
        "beforeGoal",
        "Prepare for a goal",
        "Call once before working on a goal: gives the saved state, series, facts and lessons that matter for it, or nothing.",
        takes=("goal", "budget_tokens"),
        words={"goal": "The goal, in the user's words."},
        answer=(
            shape(text="string", nothing="boolean", choices="array", tokens="integer"),
            lambda value: value.text or "nothing that is remembered matters for this goal",
        ),
    ),
    tool(
        (Memory, "after"),
        "afterTool",
        "Keep a tool's result",
        "Pass on what another tool returned, so that it need not be fetched again. Not for results of these memory tools.",
        takes=("tool", "result", "goal", "mode"),
        words={
            "window_start": text("Start of the time that was asked and fully answered, in ISO 8601 or words."),
            "window_end": text("Its end."),
        },
        answer=(shape(action="string", reason="string", saved="boolean"), None),
        call=_after_tool,
    ),
)

UPKEEP = (
    tool(
        (Memories, "history"),
        "getMemoryHistory",
        "Get a memory's history",
        "Get all that a memory ever said, oldest first: what changed, when and why. Use for questions about how it was before.",
        takes=("key",),
    ),
    tool(
        (Memories, "pin"),
        "pinMemory",
        "Pin a memory",
        "Make a memory part of what is always shown, or end that. Use when the user says it always matters.",
        takes=("key",),
        words={"key": KEY, "pinned": flag("False to unpin.")},
        call=_either("pinned", "pin", "unpin"),
        idempotent=True,
    ),
    tool(
        (Memories, "archive"),
        "archiveMemory",
        "Archive a memory",
        "Hide a memory that is no longer of use, or show it again; nothing is lost. To delete for good, use forget.",
        takes=("key",),
        words={"key": KEY, "archived": flag("False to restore.")},
        call=_either("archived", "archive", "restore"),
        idempotent=True,
    ),
    tool(
        (JournalHandle, "list"),
        "listChanges",
        "List changes",
        "List what was changed in the memory, by whom and why, newest first, with numbers for undo.",
        takes=("limit", "before"),
    ),
    tool(
        (Memory, "undo"),
        "undo",
        "Undo a change",
        "Take back one change of the memory. What was forgotten does not come back.",
        takes=("operation", "cascade"),
        answer=(shape(undone="integer", action="integer"), None),
        call=_undo,
    ),
    Offer(
        name="doctor",
        title="Check the store",
        permission="admin",
        description="Say whether the memory itself works and what is degraded. Use when other memory tools fail.",
        parameters={},
        required=(),
        output=shape(healthy="boolean", degraded="array", store="object"),
        call=_doctor,
        idempotent=True,
    ),
)
