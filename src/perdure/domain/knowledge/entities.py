"""Entities as they are held, todos, tasks, standing instructions, suggestions, and proposals that were refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypeVar, get_args

from perdure.domain.knowledge.memories import Trust
from perdure.domain.knowledge.proposals import EntityType, Evidence, TodoKind
from perdure.domain.knowledge.records import RecordKind, Term
from perdure.domain.text.rules import Json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass, fields

TodoState = Literal["pending", "completed", "skipped"]
TaskState = Literal["running", "completed", "failed", "cancelled"]
TASK_STATES: tuple[TaskState, ...] = get_args(TaskState)
SEEN_WITH_MAX = 200


@dataclass(frozen=True, slots=True)
class Entity:
    """A person, place, organisation or project. Its key is its reference, such as `person:john_doe`."""

    ref: str
    type: EntityType
    label: str
    created_at: datetime
    aliases: tuple[str, ...] = ()
    """References of other spellings that mean it."""
    merged_into: str | None = None
    seen_with: tuple[str, ...] = ()
    """Entities of its type that were named beside it: they are certainly others."""
    visible_to: str | None = None
    """The one agent that was told of it; None: all agents of the user know it."""

    kind: RecordKind = "entity"

    def __str__(self) -> str:
        return self.label

    @property
    def record_key(self) -> str:
        return self.ref

    def terms(self) -> tuple[Term, ...]:
        state = "merged" if self.merged_into else "here"
        return (("type", self.type), ("state", state), *(("alias", alias) for alias in dict.fromkeys(self.aliases)))

    def body(self) -> dict[str, Json]:
        return to_body(self)


@dataclass(frozen=True, slots=True)
class Link:
    """Two entities that statements name together; the first may be `user`."""

    one: str
    other: str
    statements: int


@dataclass(frozen=True, slots=True)
class Todo:
    """Something the user intends to do. It belongs to the agent it was told to."""

    id: str
    agent: str
    kind_of: TodoKind
    content: str
    created_at: datetime
    state: TodoState = "pending"
    due_at: datetime | None = None
    time_words: str | None = None
    recurrence: str | None = None
    ended_at: datetime | None = None
    completions: int = 0
    """How often a habit was done."""
    evidence: tuple[Evidence, ...] = ()
    confidence: float = 0.8
    source: str = "shadow_extraction"

    kind: RecordKind = "todo"

    def __str__(self) -> str:
        return self.content

    @property
    def record_key(self) -> str:
        return self.id

    @property
    def trust(self) -> Trust:
        """Who said it: the user or an agent."""
        return "agent" if self.source == "agent" else "user"

    def terms(self) -> tuple[Term, ...]:
        found = (("agent", self.agent), ("open" if self.state == "pending" else "closed", self.agent))
        return (*found, *(("message", one.message) for one in dict.fromkeys(self.evidence)))

    def body(self) -> dict[str, Json]:
        return to_body(self)


@dataclass(frozen=True, slots=True)
class AgentTask:
    """A task of an agent."""

    id: str
    agent: str
    description: str
    created_at: datetime
    updated_at: datetime
    state: TaskState = "running"
    progress: float = 0.0

    kind: RecordKind = "task"

    def __str__(self) -> str:
        return self.description

    @property
    def record_key(self) -> str:
        return self.id

    def terms(self) -> tuple[Term, ...]:
        return (("agent", self.agent), ("open" if self.state == "running" else "closed", self.agent))

    def body(self) -> dict[str, Json]:
        return to_body(self)


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A question for a person: two names of one entity, or two statements that clash."""

    id: str
    what: Literal["merge", "contradiction"]
    subjects: tuple[str, ...]
    why: str
    made_at: datetime
    state: Literal["open", "accepted", "dismissed"] = "open"

    kind: RecordKind = "suggestion"

    @property
    def record_key(self) -> str:
        return self.id

    def terms(self) -> tuple[Term, ...]:
        return (("state", self.state), *(("subject", subject) for subject in dict.fromkeys(self.subjects)))

    def body(self) -> dict[str, Json]:
        return to_body(self)


@dataclass(frozen=True, slots=True)
class Rejection:
    """A refused proposal, and why."""

    id: str
    content: str
    reason: str
    by: str
    made_at: datetime
    evidence: tuple[Evidence, ...] = ()

    kind: RecordKind = "rejection"

    @property
    def record_key(self) -> str:
        return self.id

    def terms(self) -> tuple[Term, ...]:
        told = (("by", self.by), ("told", self.identity))
        return (*told, *(("message", one.message) for one in dict.fromkeys(self.evidence)))

    @property
    def identity(self) -> str:
        """What makes two refusals the same one."""
        places = ",".join(f"{one.message}:{one.start}:{one.end}" for one in self.evidence)
        return f"{self.by}|{self.reason}|{self.content}|{places}"

    def body(self) -> dict[str, Json]:
        return to_body(self)


Thing = TypeVar("Thing", Entity, Todo, AgentTask, Suggestion, Rejection, "Instruction")


def to_body(value: Any) -> dict[str, Json]:
    """A value as it is stored and journalled: instants as microseconds, tuples as lists."""
    body: dict[str, Json] = {}
    for one in fields(value):
        held = getattr(value, one.name)
        if one.name == "kind":
            continue
        if isinstance(held, datetime):
            body[one.name] = to_us(held)
        elif one.name == "evidence":
            body[one.name] = [{"message": e.message, "start": e.start, "end": e.end, "at": to_us(e.at)} for e in held]
        else:
            body[one.name] = list(held) if isinstance(held, tuple) else held
    return body


def from_body(kind: type[Thing], body: Mapping[str, Any]) -> Thing:
    """A value read back from its body."""
    values = dict(body)
    for name, held in values.items():
        if name.endswith("_at") and held is not None:
            values[name] = from_us(held)
        elif name == "evidence":
            values[name] = tuple(Evidence(e["message"], e["start"], e["end"], from_us(e["at"])) for e in held)
        elif isinstance(held, list):
            values[name] = tuple(held)
    return kind(**values)


OrderKind = Literal["order", "withdrawal", "stop"]
"""What a sentence does. A `stop` takes back the order that it names; if none is held, it is an order: `stop using emojis`."""
InstructionState = Literal["standing", "withdrawn"]


@dataclass(frozen=True, slots=True)
class Instruction:
    """A standing instruction to an agent. It belongs to the agent it was told to."""

    id: str
    agent: str
    content: str
    created_at: datetime
    state: InstructionState = "standing"
    ended_at: datetime | None = None
    evidence: tuple[Evidence, ...] = ()
    """Where it was said, each time; if words took it back, they are the last."""
    source: Literal["said", "added"] = "said"
    reason: str | None = None
    """Why it was withdrawn."""
    repeated_at: datetime | None = None
    """When it was last said again."""

    kind: RecordKind = "instruction"

    def __str__(self) -> str:
        return self.content

    @property
    def record_key(self) -> str:
        return self.id

    @property
    def said_at(self) -> datetime:
        """When it was last said or added; the later of two that clash counts."""
        return self.created_at if self.repeated_at is None else self.repeated_at

    def terms(self) -> tuple[Term, ...]:
        found = (("agent", self.agent), ("open" if self.state == "standing" else "closed", self.agent))
        return (*found, *(("message", one.message) for one in dict.fromkeys(self.evidence)))

    def body(self) -> dict[str, Json]:
        return to_body(self)
