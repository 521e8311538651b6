"""What tools found, in lines that a model reads: short, with the ids that other tools take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from perdure.domain.context import Context
from perdure.domain.journal import Operation
from perdure.domain.lessons import Lesson
from perdure.domain.memories import ROLE_OF_TRUST, TRUST_OF_ROLE, Statement, Trust, least
from perdure.domain.messages import Message
from perdure.domain.recall import Recall
from perdure.domain.things import Todo
from perdure.interfaces.mcp.offers import fence
from perdure.services.knowledge import Recalled
from perdure.services.sessions import SessionLine

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


def found(value: Recall) -> Iterator[str]:
    """Hits, best first, then what the answer does not cover."""
    if not value.hits:
        yield "nothing was found"
    for place, hit in enumerate(value.hits, 1):
        said = f"{_name(hit.speaker)}: " if hit.speaker else ""
        past = "" if hit.valid_to is None else f", until {hit.valid_to.date().isoformat()}"
        yield f"{place}. [{hit.kind} {_id(hit.id)}, {hit.at.date().isoformat()}{past}{_said_by(hit.trust)}] {said}{hit.text}"
        for one in hit.neighbours:
            yield f"   beside it [{_id(one.id)}{_said_by(TRUST_OF_ROLE[one.role])}] {_name(one.speaker)}: {one.text}"
    for line in value.uncovered.lines():
        yield f"not covered: {line}"


def memory(value: Recalled) -> str:
    held = value.memory
    marks = "".join([", pinned" if held.pinned else "", ", archived" if held.status == "ARCHIVED" else ""])
    trust = least((one.trust for one in value.statements), "user")
    return f"[{_id(held.record_key)}{marks}{_said_by(trust)}] {value.content}"


def memories(values: Sequence[Recalled]) -> Iterable[str]:
    return [memory(one) for one in values] or [NOTHING]


def statements(values: Sequence[Statement]) -> Iterable[str]:
    return [_statement(one) for one in values] or [NOTHING]


def _statement(value: Statement) -> str:
    end = "now" if value.valid_to is None else value.valid_to.date().isoformat()
    why = "" if value.reason is None else f" ({value.reason})"
    said = _said_by(value.trust)
    return f"[{_id(value.id)}{said}] {value.valid_from.date().isoformat()} to {end}: {value.content}{why}"


def todos(values: Sequence[Todo]) -> Iterable[str]:
    return [todo(one) for one in values] or [NOTHING]


def todo(value: Todo) -> str:
    due = "" if value.due_at is None else f", due {value.due_at.isoformat()}"
    return f"[{_id(value.id)}, {value.kind_of}, {value.state}{due}] {value.content}"


def lessons(values: Sequence[Lesson]) -> Iterable[str]:
    return [lesson(one) for one in values] or [NOTHING]


def lesson(value: Lesson) -> str:
    said = "" if value.source in ("user", "file") else ", by assistant"
    return f"[{_id(value.id)}, {value.scope}{said}] {value.text}"


def messages(values: Sequence[Message]) -> Iterable[str]:
    return [f"[{_id(one.id)}, {one.at.isoformat()}] {one.role}: {one.content}" for one in values] or [NOTHING]


def sessions(values: Sequence[SessionLine]) -> Iterable[str]:
    return [_session(one) for one in values] or [NOTHING]


def _session(value: SessionLine) -> str:
    held = value.session
    where = f"agent {_id(held.address.agent)}, channel {_id(held.address.channel)}"
    return f"[{_id(held.id)}] {where}, {held.messages} messages, last {value.last_activity.isoformat()}"


def changes(values: Sequence[Operation]) -> Iterable[str]:
    return [_change(one) for one in values] or [NOTHING]


def _change(value: Operation) -> str:
    return (
        f"[{value.seq}] {value.at.isoformat()} {_id(value.actor)}: {value.action} {value.kind} {_id(value.key)} ({value.why})"
    )


def context(value: Context) -> str:
    """The blocks fence themselves; what was said is fenced as one."""
    said = [f"{one.role}: {one.content}" for one in value.messages]
    talk = fence("conversation", "The conversation so far", said) if said else ""
    left = "\n".join(f"left out: {line}" for line in value.dropped)
    return "\n\n".join(part for part in (value.system, talk, value.tail, left) if part) or "there is nothing to give yet"
