"""Lessons: how to behave, drawn from earlier talk or written down by people. Each has a scope, which says whom it reaches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, get_args

from perdure.domain.knowledge.memories import Trust
from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.scope import Address, Owner, shared_owner
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass, fields

LessonScope = Literal["global", "agent", "user", "channel"]
LESSON_SCOPES: tuple[LessonScope, ...] = get_args(LessonScope)
"""`global`: every agent of the space, for all users. `agent`: one agent, for all users. `user`: one user.
`channel`: one user on one channel."""
SPACE_SCOPES: tuple[LessonScope, ...] = ("global", "agent")
"""Those that belong to the space: every user of it is answered by what they say."""
LessonSource = Literal["compaction", "model", "user", "file"]
"""A fold drew it; the agent asked for it (`MEMORY_APPEND`); somebody added it by a call; somebody wrote it into the book."""
BY_PEOPLE: tuple[LessonSource, ...] = ("user", "file")
"""Whose lessons are a person's word. The others are an agent's."""
EndedBy = Literal["user", "file", "undo"]


@dataclass(frozen=True, slots=True)
class LessonOrigin:
    """Where a lesson comes from: a user, and a fold or message."""

    by: str
    """The user; empty in a book of the user's own."""
    agent: str
    channel: str
    session_number: int = 0
    version: int = 0
    """The version of the fold; 0: it was no fold."""
    message: str | None = None

    @property
    def name(self) -> str:
        """What tells it from others."""
        parts = [self.by, self.agent, self.channel, self.session_number, self.version, self.message]
        return hashlib.sha256(compact_json(parts).encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Book:
    """The lessons of one scope: those of a space, of one of its agents, of a user, or of a user on a channel."""

    owner: Owner
    scope: LessonScope
    agent: str | None = None
    """Of scope `agent`, whose it is. Of the others the one agent that sees it; None: all of them."""
    channel: str | None = None

    @property
    def name(self) -> str:
        """Its name among the books of its owner."""
        return compact_json([self.scope, self.agent, self.channel])


def books_of(space: str, owner: Owner, address: Address, agent: str) -> tuple[Book, ...]:
    """The books that are read at an address by an agent, the widest first."""
    return (
        Book(shared_owner(space), "global"),
        Book(shared_owner(space), "agent", agent),
        Book(owner, "user"),
        Book(owner, "user", address.agent),
        Book(owner, "channel", channel=address.channel),
        Book(owner, "channel", address.agent, address.channel),
    )


@dataclass(frozen=True, slots=True)
class Lesson:
    """One rule of behaviour. In a book it stands once, however often it was drawn: its id is made of its words."""

    id: str
    text: str
    scope: LessonScope
    created_at: datetime
    agent: str | None = None
    channel: str | None = None
    source: LessonSource = "user"
    """What it came from first."""
    origins: tuple[LessonOrigin, ...] = ()
    """Where it was drawn, the newest last."""
    mentions: int = 1
    pinned: bool = False
    """It is shown before others, and never archived to make room."""
    archived_at: datetime | None = None
    """Since when it is kept but not shown."""
    ended_at: datetime | None = None
    ended_by: EndedBy | None = None
    """Who took it back. What a person took back comes back only if a person says so."""

    kind: RecordKind = "lesson"

    def __str__(self) -> str:
        return self.text

    @property
    def record_key(self) -> str:
        return self.id

    @property
    def trust(self) -> Trust:
        """Who said it: a person or an agent."""
        return "user" if self.source in BY_PEOPLE else "agent"

    @property
    def is_shown(self) -> bool:
        return self.archived_at is None and self.ended_at is None

    def terms(self) -> tuple[Term, ...]:
        book = compact_json([self.scope, self.agent, self.channel])
        state = "ended" if self.ended_at is not None else "archived" if self.archived_at is not None else "shown"
        told = ((f"{state}_in", book), *(("origin", one.name) for one in self.origins))
        return tuple(dict.fromkeys((*told, *(("by", one.by) for one in self.origins if one.by))))

    def body(self) -> dict[str, Json]:
        body: dict[str, Json] = {}
        for one in fields(self):
            held = getattr(self, one.name)
            if one.name == "origins":
                body[one.name] = [{part.name: getattr(origin, part.name) for part in fields(origin)} for origin in held]
            elif one.name != "kind":
                body[one.name] = to_us(held) if isinstance(held, datetime) else held
        return body


def to_lesson(body: Mapping[str, Any]) -> Lesson:
    """A lesson read back from its body."""
    values: dict[str, Any] = {
        name: from_us(held) if name.endswith("_at") and held is not None else held for name, held in body.items()
    }
    values["origins"] = tuple(LessonOrigin(**origin) for origin in body["origins"])
    return Lesson(**values)


@dataclass(frozen=True, slots=True)
class RefusedLesson:
    """A refused lesson."""

    text: str
    why: str


@dataclass(frozen=True, slots=True)
class ReplyReport:
    """A model's reply without its lessons, and what became of them."""

    text: str
    """The reply without the lines that were meant for the memory."""
    appended: tuple[Lesson, ...] = ()
    refused: tuple[RefusedLesson, ...] = ()
    notes: tuple[str, ...] = ()
    """What was kept otherwise than asked, and why."""
