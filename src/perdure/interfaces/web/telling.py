"""Changes, kinds and outcomes in words: what the pages say of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from fastapi import Request

from perdure.domain.errors import InvalidInput
from perdure.domain.journal import Operation
from perdure.domain.text import brief
from perdure.interfaces.web.rendering import zone_of

TONES = {
    "message": "blue",
    "memory": "accent",
    "statement": "accent",
    "entity": "violet",
    "todo": "amber",
    "instruction": "amber",
    "lesson": "blue",
    "digest": "",
    "state": "violet",
    "series": "violet",
    "suggestion": "amber",
}
TEXT_FIELDS = ("content", "text", "description", "label", "why", "ref", "summary")


@dataclass(frozen=True, slots=True)
class Change:
    """An operation in words."""

    verb: str
    kind: str
    text: str
    """What it is about, from the row itself."""
    link: tuple[str, ...]
    """Where that can be seen: the parts of an address."""
    tone: str


def change_line(operation: Operation) -> Change:
    """What an operation did, in a line."""
    body = operation.after if isinstance(operation.after, Mapping) else operation.before
    held: Mapping[str, object] = body if isinstance(body, Mapping) else {}
    text = next((str(held[name]) for name in TEXT_FIELDS if held.get(name)), operation.key)
    return Change(_verb(operation), operation.kind, text, _link(operation, held), TONES.get(operation.kind, ""))


def _verb(operation: Operation) -> str:
    if operation.action.startswith("undo") or operation.why.startswith("undo"):
        return "undone"
    if operation.before is None:
        return "new"
    if operation.after is None:
        return "removed"
    return operation.action.replace("_", " ")


def _link(operation: Operation, held: Mapping[str, object]) -> tuple[str, ...]:
    match operation.kind:
        case "memory":
            return ("memories", operation.key)
        case "statement":
            return ("memories", str(held.get("memory", "")))
        case "entity":
            return ("entities", operation.key)
        case "todo" | "task":
            return ("todos",)
        case "lesson":
            return ("lessons",)
        case "suggestion":
            return ("entities",)
    return ("journal",)


def local_now(request: Request) -> datetime:
    """Now, where the users are."""
    return datetime.now(UTC).astimezone(zone_of(request))


def read_moment(text: str, request: Request, name: str) -> datetime | None:
    """A date or a moment out of a form, meant where the users are; None if nothing was written."""
    if not text.strip():
        return None
    try:
        if len(text.strip()) == 10:
            return datetime.combine(date.fromisoformat(text.strip()), time(), zone_of(request))
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(f"`{name}` = {brief(text)} is no date; write it like 2026-03-12 or 2026-03-12T07:00") from None
    return found.replace(tzinfo=zone_of(request)) if found.tzinfo is None else found
