"""What the adapters share: what was said as messages of the log, what is relevant to a goal, parts of keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Protocol
from urllib.parse import quote, unquote

from perdure.domain.context.recall import EntryKind
from perdure.domain.conversation.messages import NewMessage
from perdure.domain.limits import Limits
from perdure.domain.text.fences import frame
from perdure.handles.memory import Memory

GOAL_CHARS_MAX = 4_000
TEXT_CHARS_MAX = 200_000
"""More of one message does not go into the log; what is kept verbatim is kept whole."""
BATCH = 100
FOUND_KINDS: tuple[EntryKind, ...] = ("message", "memory", "todo", "digest")
SIMILAR_MAX = 5


class Users(Protocol):
    """What `perdure.open` returns, as far as an adapter that serves several users needs it."""

    @property
    def limits(self) -> Limits: ...

    def memory(self, user: str, *, agent: str = ...) -> Memory: ...

    def users(self, *, limit: int = ...) -> Iterable[str]: ...


def spoken_message(role: str, text: str, *, session: str | None, id: str | None = None) -> NewMessage | None:
    """What the log is to hold of something that was said; None if it is no text of the user or the assistant."""
    plain = text.replace("\0", "")[:TEXT_CHARS_MAX]
    if role not in ("user", "assistant") or not plain.strip():
        return None
    return NewMessage(role, plain, id=id, session=session)


def log(memory: Memory, messages: Iterable[NewMessage | None]) -> None:
    """Append what was said, a hundred at a time. Ids that are there already change nothing."""
    rest: Iterator[NewMessage] = (one for one in messages if one is not None)
    while batch := list(islice(rest, BATCH)):
        memory.append_many(batch)


def relevant_text(memory: Memory, goal: str, session: str | None) -> str:
    """What is remembered that matters to what was just said in a session, fenced as data; empty if nothing does.

    `before` is made for goals and gives no memories when in doubt; a question in a talk then gets what shares its words.
    """
    asked = goal.replace("\0", "")[:GOAL_CHARS_MAX].strip()
    if not asked:
        return ""
    given = memory.before(asked)
    if any(choice.included and choice.kind in FOUND_KINDS for choice in given.choices):
        return given.text
    hits = [
        hit
        for hit in memory.recall(asked, kinds=FOUND_KINDS, limit=SIMILAR_MAX * 2).hits
        if "words" in hit.trace.arms and hit.text.strip() != asked and (session is None or hit.session != session)
    ]
    lines = [
        f"- {hit.at:%Y-%m-%d}, {hit.speaker if hit.kind == 'message' else hit.kind}: {hit.text}" for hit in hits[:SIMILAR_MAX]
    ]
    found = frame("memories", "Relevant memories", f"{len(lines)} entries of the memory", "\n".join(lines))
    return "\n\n".join(filter(None, (given.text, found if lines else "")))


def key_part(text: str) -> str:
    """A part of a state key: without what divides keys or is a wildcard, and never empty."""
    return quote(text, safe="") or "-"


def part_text(part: str) -> str:
    """The text that `key_part` was given."""
    return "" if part == "-" else unquote(part)
