"""The tools for an agent at work: todos, lessons, the conversation, the overseer, and what happened to the data."""

from __future__ import annotations

from typing import Any

from perdure.domain.journal import Operation
from perdure.domain.knowledge import TODO_KINDS
from perdure.domain.lessons import LESSON_SCOPES, Lesson
from perdure.domain.messages import ROLES, Message
from perdure.domain.oversight import SAVE_MODES, Injection, Kept
from perdure.domain.reports import DoctorReport
from perdure.domain.text import Json
from perdure.domain.things import Todo
from perdure.interfaces.mcp import lines
from perdure.interfaces.mcp.callers import Caller
from perdure.interfaces.mcp.offers import ITEMS, Offer, fenced, flag, moments, number, one_of, shape, span, text
from perdure.services.sessions import SessionLine

A_TODO = shape(id="string", content="string", state="string")


def add_todo(caller: Caller, content: str, **more: Any) -> Todo:
    return caller.memory("write").todos.add(content, more.pop("kind", "commitment"), **moments(more, "due_at"))


def list_todos(caller: Caller, **more: Any) -> list[Todo]:
    return list(caller.memory("read").todos.list(more.pop("kind", None), **moments(more, "due_before")))


def complete_todo(caller: Caller, todo: str) -> Todo:
    return caller.memory("write").todos.complete(todo)


TODOS = (
    Offer(
        "addTodo", "Add a todo", "write",
        "Keep something the user means to do. The same words again change nothing.",
        {
            "content": text("What is to be done."),
            "kind": one_of(TODO_KINDS, "Default commitment."),
            "due_at": text("By when, ISO 8601 with zone. Default none."),
            "recurrence": text("A cron line, for a habit. Default none."),
        },
        A_TODO, add_todo, fenced("todo", "A todo", lambda one: [lines.todo(one)]), idempotent=True,
    ),
    Offer(
        "listTodos", "List todos", "read",
        "List the user's open todos with their ids, what is due first.",
        {
            "kind": one_of(TODO_KINDS, "Default all."),
            "closed": flag("Also those that are over. Default false."),
            "due_before": text("ISO 8601 with zone. Default any."),
            "limit": number("Default 100."),
        },
        ITEMS, list_todos, fenced("todos", "Todos", lines.todos), idempotent=True,
    ),
    Offer(
        "completeTodo", "Complete a todo", "write",
        "Note that a todo is done; a habit waits for its next time.",
        {"todo": text("Its id, as listTodos shows it.")},
        A_TODO, complete_todo, fenced("todo", "A todo", lambda one: [lines.todo(one)]),
    ),
)  # fmt: skip


def add_lesson(caller: Caller, text: str, scope: Any = None) -> Lesson:
    return caller.memory("write").lessons.add(text, scope)


def list_lessons(caller: Caller, **more: Any) -> list[Lesson]:
    return list(caller.memory("read").lessons.list(more.pop("scope", None), **more))


LESSONS = (
    Offer(
        "addLesson", "Add a lesson", "write",
        "Keep one rule on how to behave, learned from a correction or a mistake. Not for facts (remember).",
        {"text": text("One sentence, as an order to yourself."),
         "scope": one_of(LESSON_SCOPES, "Whom it reaches. Default: what suits here.")},
        shape(id="string", text="string", scope="string"),
        add_lesson, fenced("lesson", "A lesson", lambda one: [lines.lesson(one)]), idempotent=True,
    ),
    Offer(
        "listLessons", "List lessons", "read",
        "List the rules on how to behave that hold here. Read them before work that went wrong before.",
        {"scope": one_of(LESSON_SCOPES, "Default all."), "limit": number("Default 100.")},
        ITEMS, list_lessons, fenced("lessons", "Lessons", lines.lessons), idempotent=True,
    ),
)  # fmt: skip


def append_message(caller: Caller, role: str, content: str, **more: Any) -> Message:
    return caller.memory("write").append(role, content, **moments(more, "at"))


def list_sessions(caller: Caller, **more: Any) -> list[SessionLine]:
    return list(caller.memory("read").conversation.list_sessions(**more))


def read_session(caller: Caller, **more: Any) -> list[Message]:
    return list(caller.memory("read").messages(**more))


CONVERSATION = (
    Offer(
        "appendMessage", "Log a message", "write",
        "Log one message of the conversation as it was said, so that facts are learned from it and it can be recalled. Call it "
        "for each turn if the host does not log by itself.",
        {
            "role": one_of(ROLES, "Who said it."),
            "content": text("Word for word."),
            "id": text("Yours; the same id twice stores once. Default: a new one."),
            "at": text("When, ISO 8601 with zone. Default now."),
            "session": text("Default: the one that goes on."),
        },
        shape(id="string", session="string", seq="integer"),
        append_message, fenced("message", "A message", lambda one: lines.messages([one])),
    ),
    Offer(
        "listSessions", "List conversations", "read",
        "List the user's conversations with their ids, the last active first.",
        {"source": text("Only on its channels, e.g. discord. Default all."), "limit": number("Default 100.")},
        ITEMS, list_sessions, fenced("sessions", "Conversations", lines.sessions), idempotent=True,
    ),
    Offer(
        "readSession", "Read a conversation", "read",
        "Read logged messages word for word, oldest first: the latest ones, or those beside a message that recall found.",
        {
            "session": text("Its id. Default: all at this address."),
            "before": text("Before the message with this id. Default none."),
            "after": text("After the message with this id. Default none."),
            "limit": number("Default 20."),
        },
        ITEMS, read_session, fenced("messages", "Messages", lines.messages), idempotent=True,
    ),
)  # fmt: skip


def before_goal(caller: Caller, goal: str, **more: Any) -> Injection:
    # What was chosen, and why, is recorded.
    return caller.memory("write").before(goal, **more)


def after_tool(caller: Caller, tool: str, result: Json, goal: str = "", **more: Any) -> Kept:
    return caller.memory("write").after(tool, result, goal, **span(more, "window_start", "window_end", "window"))


OVERSEER = (
    Offer(
        "beforeGoal", "Prepare for a goal", "write",
        "Call once before working on a goal: gives the saved state, series, facts and lessons that matter for it, or nothing.",
        {"goal": text("The goal, in the user's words."), "budget_tokens": number("Default 2000.")},
        shape(text="string", nothing="boolean", choices="array", tokens="integer"), before_goal,
        lambda value: value.text or "nothing that is remembered matters for this goal", idempotent=True,
    ),
    Offer(
        "afterTool", "Keep a tool's result", "write",
        "Hand over what another tool returned, so that it need not be fetched again. Not for results of these memory tools.",
        {
            "tool": text("The tool's name."),
            "result": {"description": "What it returned, as JSON."},
            "goal": text("What it was called for. Default none."),
            "mode": one_of(SAVE_MODES, "Default: the setting."),
            "window_start": text("Start of the time that was asked and fully answered. Default unknown."),
            "window_end": text("Its end. Default unknown."),
        },
        shape(action="string", reason="string", saved="boolean"), after_tool,
    ),
)  # fmt: skip


def list_changes(caller: Caller, limit: int = 50, before: int | None = None) -> list[Operation]:
    return list(caller.memory("read").journal(limit, before=before))


def undo(caller: Caller, operation: int, cascade: bool = False) -> dict[str, int]:
    return {"undone": operation, "action": caller.memory("write").undo(operation, cascade=cascade)}


def doctor(caller: Caller) -> DoctorReport:
    return caller.whole().doctor()


UPKEEP = (
    Offer(
        "listChanges", "List changes", "read",
        "List what was changed in the memory, by whom and why, newest first, with numbers for undo.",
        {"limit": number("Default 50."), "before": number("Before this number. Default: the newest.")},
        ITEMS, list_changes, fenced("changes", "Changes", lines.changes), idempotent=True,
    ),
    Offer(
        "undo", "Undo a change", "write",
        "Take back one change of the memory. What was forgotten does not come back.",
        {"operation": number("Its number, as listChanges shows it."),
         "cascade": flag("Also what builds on it. Default false.")},
        shape(undone="integer", action="integer"), undo,
    ),
    Offer(
        "doctor", "Check the store", "admin",
        "Say whether the memory itself works and what is degraded. Use when other memory tools fail.",
        {}, shape(healthy="boolean", degraded="array", store="object"), doctor, idempotent=True,
    ),
)  # fmt: skip
