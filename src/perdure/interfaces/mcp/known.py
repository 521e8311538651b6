"""The tools about what is known: remember, recall, look at it, put it in order, and forget it."""

from __future__ import annotations

from typing import Any

from perdure.domain.context import Context
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge import MEMORY_TYPES
from perdure.domain.memories import Statement
from perdure.domain.recall import ENTRY_KINDS, Recall
from perdure.interfaces.mcp import lines
from perdure.interfaces.mcp.callers import Caller
from perdure.interfaces.mcp.offers import (
    ITEMS,
    Offer,
    fence,
    fenced,
    flag,
    moments,
    number,
    one_of,
    shape,
    span,
    text,
    texts,
)
from perdure.services.forgetting import Forgotten
from perdure.services.knowledge import Recalled

KEY = text("The memory's key, as listMemories shows it.")
MEMORY = shape(key="string", content="string", statements="array")


def remember(caller: Caller, content: str, **more: Any) -> object:
    return caller.memory("write").remember(content, more.pop("type", "PROFILE"), **moments(more, "valid_from"))


def recall(caller: Caller, query: str, **more: Any) -> Recall:
    return caller.memory("read").recall(query, **moments(span(more, "start", "end", "time_range"), "as_of"))


def get_context(caller: Caller, **more: Any) -> Context:
    # It ends a session that fell silent, and folds what is due.
    return caller.memory("write").context(more.get("goal"), budget_tokens=more.get("budget_tokens"))


def list_memories(caller: Caller, **more: Any) -> list[Recalled]:
    return list(caller.memory("read").memories.list(more.pop("type", None), **more))


def get_memory(caller: Caller, key: str) -> Recalled:
    return caller.memory("read").memories.get(key)


def get_memory_history(caller: Caller, key: str) -> list[Statement]:
    return list(caller.memory("read").memories.history(key))


def pin_memory(caller: Caller, key: str, pinned: bool = True) -> Recalled:
    held = caller.memory("write").memories
    return held.pin(key) if pinned else held.unpin(key)


def archive_memory(caller: Caller, key: str, archived: bool = True) -> Recalled:
    held = caller.memory("write").memories
    return held.archive(key) if archived else held.restore(key)


def forget(caller: Caller, **more: Any) -> Forgotten:
    ends = ("first_message", "last_message")
    run = [more.pop(name) for name in ends if name in more]
    if len(run) == 1:
        raise InvalidInput("one end of the run of messages is missing; give `first_message` and `last_message`")
    if run:
        more["messages"] = (run[0], run[1])
    return caller.memory("write").forget(**more)


def _outcome(value: Any) -> str:
    why = "" if value.reason is None else f": {value.reason}"
    said = [] if value.statement is None else [f"[{value.statement.memory}] {value.statement.content}"]
    said += [f"no longer current: {one.content}" for one in value.closed]
    return "\n".join([f"{value.verdict}{why}", *([fence("remember", "Remembered", said)] if said else [])])


OFFERS = (
    Offer(
        "remember", "Remember a fact", "write",
        "Keep one lasting fact about the user, people, places or projects when it comes up: one short sentence per call. A new "
        "value of an attribute closes the old one. Not for data by key (saveState), tasks (addTodo) or how to behave "
        "(addLesson).",
        {
            "content": text("The fact, e.g. Lives in Austin."),
            "type": one_of(MEMORY_TYPES, "Default PROFILE: about the user."),
            "entities": texts("Who or what, main one first: person:, place:, org: or project: and the name. Default none."),
            "attribute": text("For what can change, e.g. lives_in: a new value then replaces the old. Default none."),
            "value": text("The attribute's value, e.g. Austin. Default none."),
            "valid_from": text("Since when, ISO 8601 with zone. Default now."),
            "ended": flag("It is so no longer. Default false."),
            "corrects": flag("What was held was never true. Default false."),
            "pinned": flag("Always show it. Default false."),
        },
        shape(verdict="string", proposal="object"), remember, _outcome,
    ),
    Offer(
        "recall", "Search memory", "read",
        "Search all that is remembered (facts, messages, todos, lessons, state, series), best first. Use before answering "
        "about the user or the past, and before asking what they may have said already. Put the question in words.",
        {
            "query": text("The question, in full."),
            "kinds": {"type": "array", "items": {"enum": list(ENTRY_KINDS)}, "description": "Only these. Default all."},
            "entities": texts("Only what names one, e.g. person:John Doe. Default all."),
            "start": text("Only from then, ISO 8601 with zone; with end. Default any time."),
            "end": text("Up to then. Default any time."),
            "as_of": text("What was so then. Default now."),
            "limit": number("Default 10."),
            "budget_tokens": number("Default no bound."),
        },
        shape(query="string", hits="array", uncovered="object"),
        recall, fenced("recall", "What was found", lines.found), idempotent=True,
    ),
    Offer(
        "getContext", "Get context", "write",
        "Get what an agent should know now in one text: pinned facts, instructions, lessons, the logged conversation, and what "
        "fits the goal. Use once at the start of a conversation or task; for one question use recall.",
        {"goal": text("The question or task. Default none."), "budget_tokens": number("Default: the setting.")},
        shape(messages="array", blocks="array", tokens="integer", dropped="array"), get_context, lines.context,
        idempotent=True,
    ),
    Offer(
        "listMemories", "List memories", "read",
        "List current memories with their keys, the newest change first. To find by meaning, use recall.",
        {
            "type": one_of(MEMORY_TYPES, "Default all."),
            "entity": text("Only about it, e.g. person:John Doe. Default all."),
            "pinned": flag("Only pinned ones, or only others. Default both."),
            "archived": flag("Also archived ones. Default false."),
            "limit": number("Default 100."),
        },
        ITEMS, list_memories, fenced("memories", "Memories", lines.memories), idempotent=True,
    ),
    Offer(
        "getMemory", "Get a memory", "read",
        "Get one memory by key, with its statements and the messages they rest on.",
        {"key": KEY}, MEMORY, get_memory, fenced("memory", "A memory", lambda one: [lines.memory(one)]), idempotent=True,
    ),
    Offer(
        "forget", "Forget for good", "write",
        "Delete one thing and all derived from it, for good; it cannot be undone. Only when the user asks that it be deleted. "
        "Name exactly one: a memory, an entity, or a run of messages. For what is merely outdated, use remember.",
        {
            "memory": text("A memory's key. Default none."),
            "entity": text("E.g. person:John Doe. Default none."),
            "first_message": text("Id of the first message; with last_message. Default none."),
            "last_message": text("Id of the last one. Default none."),
        },
        shape(forgotten="boolean", removed="object", redacted="object"), forget, destructive=True, idempotent=True,
    ),
)  # fmt: skip

UPKEEP = (
    Offer(
        "getMemoryHistory", "Get a memory's history", "read",
        "Get all that a memory ever said, oldest first: what changed, when and why. Use for questions about how it was before.",
        {"key": KEY}, ITEMS, get_memory_history, fenced("history", "A memory's history", lines.statements), idempotent=True,
    ),
    Offer(
        "pinMemory", "Pin a memory", "write",
        "Make a memory part of what is always shown, or end that. Use when the user says it always matters.",
        {"key": KEY, "pinned": flag("False to unpin. Default true.")},
        MEMORY, pin_memory, fenced("memory", "A memory", lambda one: [lines.memory(one)]), idempotent=True,
    ),
    Offer(
        "archiveMemory", "Archive a memory", "write",
        "Hide a memory that is no longer of use, or show it again; nothing is lost. To delete for good, use forget.",
        {"key": KEY, "archived": flag("False to restore. Default true.")},
        MEMORY, archive_memory, fenced("memory", "A memory", lambda one: [lines.memory(one)]), idempotent=True,
    ),
)  # fmt: skip
