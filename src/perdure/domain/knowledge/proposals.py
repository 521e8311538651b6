"""What is known of a user's world: proposals that an extractor makes, and the statements that are kept of them.

A proposal is what somebody believes a text to say. It changes nothing: deterministic code decides what becomes of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.conversation.messages import Message
from perdure.domain.scope import Owner
from perdure.domain.values import dataclass, field

MemoryType = Literal["PROFILE", "PEOPLE", "PROJECT"]
MEMORY_TYPES: tuple[MemoryType, ...] = get_args(MemoryType)
EntityType = Literal["person", "place", "org", "project"]
ENTITY_TYPES: tuple[EntityType, ...] = get_args(EntityType)
FactType = Literal["fact", "preference", "relationship", "friction", "habit"]
FACT_TYPES: tuple[FactType, ...] = get_args(FactType)
TodoKind = Literal["commitment", "habit", "thread", "friction"]
TODO_KINDS: tuple[TodoKind, ...] = get_args(TodoKind)

IMPORTANCE_MAX = 3


@dataclass(frozen=True, slots=True)
class EntityName:
    """The name of an entity in a text: `EntityName("person", "John Doe")`."""

    type: EntityType
    label: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where something was said: a message and a range of its characters."""

    message: str
    start: int
    end: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Proposal:
    """A statement that a text seems to make."""

    type: MemoryType
    fact_type: FactType
    content: str
    """In few words, without the subject where that is the user: `Lives in Austin, Texas`, `John is my cofounder`."""
    entities: tuple[EntityName, ...] = ()
    """Whom and what it is about; the primary one first."""
    subject: EntityName | None = None
    """Of whom the attribute is; None: of the user."""
    attribute: str | None = None
    """What of the subject it tells, if that is a thing with a name: `lives_in`, `works_at`, `name`, …"""
    value: str | None = None
    """The attribute's value as said: `Austin, Texas`."""
    evidence: tuple[Evidence, ...] = ()
    confidence: float = 0.8
    importance: int = 1
    valid_from: datetime | None = None
    """Since when it is so, if the text says; resolved against the time of the message."""
    time_words: str | None = None
    """The words that said so: `last Friday`."""
    ended: bool = False
    """The text says that it is so no longer: `I left Acme`."""
    corrects: bool = False
    """The text says that something said before was wrong: `no, I meant Portland`."""
    own_words: bool = False
    """The content is a sentence as the user said it, not a reading of it: it goes when the message does."""
    turn: str | None = None
    """The whole sentence, if it sounds as if something known were over or another by now; the committer finds out what."""
    fleeting: bool = False
    """It is kept only if it ends or replaces something known."""


@dataclass(frozen=True, slots=True)
class NewStatement:
    """A statement for `remember_many`; fields as in `Memory.remember`."""

    content: str
    type: MemoryType = "PROFILE"
    entities: Iterable[str | EntityName] = ()
    fact_type: FactType = "fact"
    subject: str | EntityName | None = None
    attribute: str | None = None
    value: str | None = None
    importance: int | None = None
    confidence: float = 1.0
    valid_from: datetime | None = None
    ended: bool = False
    corrects: bool = False
    pinned: bool = False
    visible_to: str | None = None
    source: str = "user"


@dataclass(frozen=True, slots=True)
class TodoProposal:
    """A todo that a text mentions, open or done."""

    kind: TodoKind
    content: str
    due_at: datetime | None = None
    time_words: str | None = None
    recurrence: str | None = None
    """A cron line, for habits: `0 7 * * 1`."""
    done: bool = False
    """The text says that it is done; it completes what was open."""
    evidence: tuple[Evidence, ...] = ()
    confidence: float = 0.8
    own_words: bool = False
    """As of a `Proposal`."""


@dataclass(frozen=True, slots=True)
class ExtractionRequest:
    """A request to an extractor."""

    messages: tuple[Message, ...]
    """The messages to extract from, in log order."""
    before: tuple[Message, ...] = ()
    """What was said just before, for understanding only."""
    known: tuple[EntityName, ...] = ()
    """Entities that are known already."""
    zone: str = "UTC"
    """The user's time zone, in which `yesterday` is meant."""
    owner: Owner | None = None
    """On whose behalf it is asked, for those who count what a model costs."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """An extractor's answer."""

    proposals: tuple[Proposal, ...] = ()
    todos: tuple[TodoProposal, ...] = ()
    skipped: int = 0
    """Sentences that looked like facts and were left out: questions, quotes, hypotheticals, hearsay."""
    notes: tuple[str, ...] = field(default=())
    orders: tuple[Evidence, ...] = ()
    """Sentences of the user that are standing instructions, beyond those that were taken in with their message."""
