"""Changes, kinds and outcomes in words: what the pages say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time

from fastapi import Request

from perdure.domain.conversation.digests import DigestKind
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.journal import Operation, words_of
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass
from perdure.interfaces.web.filters import entity_label, kind_words
from perdure.interfaces.web.page import zone_of

LAYERS: Mapping[DigestKind, str] = {
    "fold": "Summary of earlier messages",
    "rolling": "Running summary",
    "session": "Session summary",
    "spine": "Story so far",
}
VERBS = {
    "update": "changed",
    "supersede": "replaced",
    "complete": "completed",
    "merge": "merged",
    "fold": "merged",
    "pin": "pinned",
    "unpin": "unpinned",
    "archive": "archived",
    "restore": "restored",
    "edit": "edited",
    "skip": "skipped",
    "suggest": "suggested",
    "dismiss": "dismissed",
    "accept": "accepted",
    "reject": "rejected",
    "alias": "renamed",
}
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
PAGES = {
    "message": "messages",
    "memory": "memories",
    "statement": "memories",
    "entity": "entities",
    "suggestion": "entities",
    "todo": "todos",
    "task": "todos",
    "lesson": "lessons",
    "instruction": "todos",
    "state": "state",
    "series": "series",
}
"""Where the things of a kind are shown."""


@dataclass(frozen=True, slots=True)
class OperationWords:
    """An operation in words."""

    verb: str
    kind: str
    """In words, too."""
    text: str
    """What it is about, from the row itself."""
    link: tuple[str, ...]
    """Where that can be seen: the parts of an address."""
    tone: str


def is_forgotten(operation: Operation) -> bool:
    """Whether it is about something that was forgotten since: only that it happened is left."""
    return operation.key.startswith("forgotten:") and operation.before is None and operation.after is None


def change_line(operation: Operation) -> OperationWords:
    """What an operation did, in a line."""
    if is_forgotten(operation):
        verb = {"add": "new", "forget": "forgotten"}.get(operation.action) or VERBS.get(operation.action, "changed")
        return OperationWords(verb, kind_words(operation.kind), "Forgotten", ("journal",), TONES.get(operation.kind, ""))
    body = operation.after if isinstance(operation.after, Mapping) else operation.before
    held: Mapping[str, object] = body if isinstance(body, Mapping) else {}
    text = words_of(operation) or _memory_words(operation.kind, held) or operation.key
    link = page_of(operation.kind, operation.key, str(held["memory"]) if "memory" in held else None)
    return OperationWords(
        _verb(operation), kind_words(operation.kind), text, link or ("journal",), TONES.get(operation.kind, "")
    )


def _memory_words(kind: str, held: Mapping[str, object]) -> str:
    """A memory without a label, by what it is about: its key says nothing to people."""
    if kind != "memory" or not held.get("fact_type"):
        return ""
    named = held.get("entities")
    about = [entity_label(str(ref)) for ref in named] if isinstance(named, Sequence) else []
    return f"{str(held['fact_type']).capitalize()} about {', '.join(about) or 'the user'}"


def _verb(operation: Operation) -> str:
    if operation.action.startswith("undo") or operation.why.startswith("undo"):
        return "undone"
    if operation.before is None:
        return "proposed" if isinstance(operation.after, Mapping) and operation.after.get("proposes") else "new"
    if operation.after is None:
        return "removed"
    return VERBS.get(operation.action, operation.action.replace("_", " "))


def page_of(kind: str, key: str = "", memory: str | None = None) -> tuple[str, ...]:
    """The page of a thing of this kind, as the parts of an address; none for what has no page."""
    part = PAGES.get(kind)
    if part is None:
        return ()
    if kind in ("memory", "statement"):
        return (part, memory or key)
    return (part, key) if kind in ("entity", "state", "series", "message") else (part,)


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
