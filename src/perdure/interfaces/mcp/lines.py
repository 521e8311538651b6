"""What tools found, in lines that a model reads: short, with the ids that other tools take."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from perdure.domain.context.context import Context
from perdure.domain.context.recall import Recall
from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.entities import Todo
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.memories import ROLE_OF_TRUST, TRUST_OF_ROLE, MemoryWithStatements, Statement, Trust, least
from perdure.domain.lessons import Lesson
from perdure.interfaces.mcp.offers import fence
from perdure.services.conversation.sessions import SessionLine

NOTHING = "nothing here"
_PLAIN = re.compile(r"[\w.:@/|+=~-]+")


def _id(text: str) -> str:
    """An id as it is, or in quotes where it could end the label it stands in."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


def _name(text: str) -> str:
    """Who said something, without what could end the label it stands in."""
    return " ".join("".join(char if char.isalnum() or char in " .-_'" else " " for char in text).split())


def _said_by(trust: Trust | None) -> str:
    """The source of what is not in the user's own words."""
    return "" if trust in (None, "user") else f", by {ROLE_OF_TRUST[trust]}"


def recall_lines(value: Recall) -> Iterator[str]:
    """Hits, best first, then what the answer does not cover."""
    if not value.hits:
        yield "nothing was found"
    for place, hit in enumerate(value.hits, 1):
        said = f"{_name(hit.speaker)}: " if hit.speaker else ""
        past = "" if hit.valid_to is None else f", until {hit.valid_to.date().isoformat()}"
        doubt = "" if hit.proposes is None else ", proposed, not confirmed by the user"
        label = f"{hit.kind} {_id(hit.id)}, {hit.at.date().isoformat()}{past}{_said_by(hit.trust)}{doubt}"
        yield f"{place}. [{label}] {said}{hit.text}"
        for now in hit.current:
            yield f"   what holds now [memory {_id(now.id)}, since {now.since.date().isoformat()}] {now.text}"
        for one in hit.neighbours:
            yield f"   beside it [{_id(one.id)}{_said_by(TRUST_OF_ROLE[one.role])}] {_name(one.speaker)}: {one.text}"
    for line in value.uncovered.lines():
        yield f"not covered: {line}"


def memory(value: MemoryWithStatements) -> str:
    held = value.memory
    marks = "".join([", pinned" if held.pinned else "", ", archived" if held.status == "ARCHIVED" else ""])
    trust = least((one.trust for one in value.statements), "user")
    return f"[{_id(held.record_key)}{marks}{_said_by(trust)}] {value.content}"


def statement(value: Statement) -> str:
    end = "now" if value.valid_to is None else value.valid_to.date().isoformat()
    why = "" if value.reason is None else f" ({value.reason})"
    said = _said_by(value.trust)
    return f"[{_id(value.id)}{said}] {value.valid_from.date().isoformat()} to {end}: {value.content}{why}"


def todo(value: Todo) -> str:
    due = "" if value.due_at is None else f", due {value.due_at.isoformat()}"
    return f"[{_id(value.id)}, {value.kind_of}, {value.state}{due}] {value.content}"


def lesson(value: Lesson) -> str:
    return f"[{_id(value.id)}, {value.scope}{_said_by(value.trust)}] {value.text}"


def message(value: Message) -> str:
    return f"[{_id(value.id)}, {value.at.isoformat()}] {value.role}: {value.content}"


def session(value: SessionLine) -> str:
    held = value.session
    where = f"agent {_id(held.address.agent)}, channel {_id(held.address.channel)}"
    return f"[{_id(held.id)}] {where}, {held.messages} messages, last {value.last_activity.isoformat()}"


def change(value: Operation) -> str:
    return (
        f"[{value.seq}] {value.at.isoformat()} {_id(value.actor)}: {value.action} {value.kind} {_id(value.key)} ({value.why})"
    )


def context(value: Context) -> str:
    """The blocks fence themselves; what was said is fenced as one."""
    said = [f"{one.role}: {one.content}" for one in value.messages]
    talk = fence("conversation", "The conversation so far", said) if said else ""
    left = "\n".join(f"left out: {line}" for line in value.dropped)
    return "\n\n".join(part for part in (value.system, talk, value.tail, left) if part) or "there is nothing to give yet"


LINES: Mapping[type, Callable[[Any], str]] = {
    MemoryWithStatements: memory,
    Statement: statement,
    Todo: todo,
    Lesson: lesson,
    Message: message,
    SessionLine: session,
    Operation: change,
}
"""How a value of each type is told in a line."""


def each(values: Iterable[Any]) -> list[str]:
    """A line for each value; that there are none is said."""
    return [LINES[type(one)](one) for one in values] or [NOTHING]
