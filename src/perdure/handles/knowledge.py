"""`Memory.memories`, `.entities`, `.todos`, `.tasks`: what is known of a user's world, for one agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict

from perdure.domain.entities import parse_ref
from perdure.domain.errors import InvalidInput
from perdure.domain.journal import Operation
from perdure.domain.knowledge import IMPORTANCE_MAX, EntityName, FactType, MemoryType, Proposal, TodoKind, TodoProposal
from perdure.domain.memories import MemoryRecord, Statement
from perdure.domain.scope import ID_BYTES_MAX, Scope
from perdure.domain.text import brief, check_id
from perdure.domain.things import AgentTask, Entity, Link, Rejection, Suggestion, TaskState, Todo
from perdure.engine.committing import Outcome
from perdure.engine.hygiene import flaw
from perdure.services.auditing import Auditing
from perdure.services.curating import Curating
from perdure.services.entities import Entities
from perdure.services.extracting import Extracting
from perdure.services.forgetting import Forgetting
from perdure.services.instructions import Instructions
from perdure.services.knowledge import Knowledge, MemoryQuery, Recalled, entity_names
from perdure.services.spans import UPDATE, traced
from perdure.services.todos import Todos
from perdure.services.undoing import Undoing

if TYPE_CHECKING:
    from typing import Unpack


LABEL_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """What the handles call."""

    knowledge: Knowledge
    undoing: Undoing
    entities: Entities
    todos: Todos
    instructions: Instructions
    extracting: Extracting
    curating: Curating
    forgetting: Forgetting
    auditing: Auditing


class RememberFields(TypedDict, total=False):
    """What may be said of a memory besides its content and type. Everything is optional."""

    entities: Iterable[str | EntityName]
    fact_type: FactType
    subject: str | EntityName | None
    attribute: str | None
    value: str | None
    importance: int
    confidence: float
    valid_from: datetime | None
    ended: bool
    corrects: bool
    pinned: bool
    visible_to: str | None
    source: str


class ListFields(TypedDict, total=False):
    """Which memories to list."""

    entity: str | None
    pinned: bool | None
    archived: bool
    as_of: datetime | None
    known_at: datetime | None
    limit: int
    behind: tuple[datetime, str] | None


def remember(scope: Scope, do: KnowledgeServices, content: str, type: MemoryType, fields: RememberFields) -> Outcome:
    """See `Memory.remember`."""
    given = dict(fields)
    unknown = sorted(given.keys() - RememberFields.__annotations__.keys())
    if unknown:
        raise InvalidInput(
            f"`remember` does not take {', '.join(unknown)}; it takes {', '.join(RememberFields.__annotations__)}"
        )
    for name, text in (("source", fields.get("source")), ("visible_to", fields.get("visible_to"))):
        if text is not None:
            check_id(text, name, bytes_max=ID_BYTES_MAX)
    if not isinstance(given.get("pinned", False), bool):
        raise InvalidInput(f"`pinned` = {brief(given['pinned'])} must be True or False")
    subject = fields.get("subject")
    proposal = Proposal(
        type=type,
        fact_type=fields.get("fact_type", "fact"),
        content=content,
        entities=entity_names(fields.get("entities", ())),
        subject=None if subject is None else entity_names([subject])[0],
        attribute=fields.get("attribute"),
        value=fields.get("value"),
        confidence=fields.get("confidence", 1.0),
        importance=fields.get("importance", 1),
        valid_from=fields.get("valid_from"),
        ended=fields.get("ended", False),
        corrects=fields.get("corrects", False),
    )
    return do.knowledge.remember(
        scope,
        proposal,
        source=fields.get("source", "user"),
        pinned=fields.get("pinned", False),
        visible_to=fields.get("visible_to"),
    )


class Memories:
    """What is known, as memories: one row per key, each holding statements."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, knowledge: Knowledge) -> None:
        self._scope = scope
        self._do = knowledge

    def list(self, type: MemoryType | None = None, **which: Unpack[ListFields]) -> Sequence[Recalled]:
        """What is current, the newest change first. `as_of` and `known_at` look back; `archived=True` adds what is put away.

        `behind` goes on behind a memory of the list before: its `updated_at` and key.
        """
        if (entity := which.get("entity")) is not None:
            check_ref(entity)
        unknown = sorted(which.keys() - ListFields.__annotations__.keys())
        if unknown:
            raise InvalidInput(f"`list` does not take {', '.join(unknown)}; it takes {', '.join(ListFields.__annotations__)}")
        return self._do.list_(self._scope, MemoryQuery(type=type, **which))

    def get(self, key: str) -> Recalled:
        """One memory by its key; `NotFound` if this agent may see none."""
        return self._do.get(self._scope, key)

    def history(self, key: str) -> Sequence[Statement]:
        """Every statement of a memory, and what it took the place of or gave way to, oldest first."""
        return self._do.history(self._scope, key)

    def changes(self, key: str, limit: int = 50) -> Sequence[Operation]:
        """What was done to a memory and to its statements, newest first: the part of the journal that is about it."""
        return self._do.changes(self._scope, key, limit=limit)

    def foundation(self) -> tuple[Sequence[Recalled], int]:
        """The first pinned memories, by creation, and how many more are pinned."""
        return self._do.foundation(self._scope)

    @traced(UPDATE)
    def pin(self, key: str) -> Recalled:
        """Make it part of the foundation, also if it was archived; its importance becomes 3, and no curator touches it."""
        return self._do.edit(self._scope, key, _pinned, "pin")

    @traced(UPDATE)
    def unpin(self, key: str) -> Recalled:
        """No longer part of the foundation; its importance stays."""
        return self._do.edit(self._scope, key, lambda held: replace(held, pinned=False), "unpin")

    @traced(UPDATE)
    def archive(self, key: str) -> Recalled:
        """Hide it; nothing is lost. A pinned one has to be unpinned first."""
        return self._do.edit(self._scope, key, _archived, "archive")

    @traced(UPDATE)
    def restore(self, key: str) -> Recalled:
        """Show an archived one again."""
        return self._do.edit(self._scope, key, lambda held: replace(held, status="ACTIVE"), "restore")

    @traced(UPDATE)
    def edit(self, key: str, *, importance: int | None = None, label: str | None = None) -> Recalled:
        """Correct what is said about the memory as a whole. What it states is corrected by `remember(…, corrects=True)`."""
        known = isinstance(importance, int) and not isinstance(importance, bool) and 0 <= importance <= IMPORTANCE_MAX
        if importance is not None and not known:
            raise InvalidInput(f"`importance` = {brief(importance)} must be a whole number from 0 to {IMPORTANCE_MAX}")

        if label is not None:
            if not isinstance(label, str) or not 0 < len(label) <= LABEL_CHARS_MAX:
                raise InvalidInput(f"`label` = {brief(label)} must be a text of 1 to {LABEL_CHARS_MAX} characters")
            if (reason := flaw(label)) is not None:
                raise InvalidInput(f"the label {reason}; choose another")

        def change(held: MemoryRecord) -> MemoryRecord:
            return replace(
                held,
                importance=held.importance if importance is None or held.pinned else importance,
                label=held.label if label is None else label,
            )

        return self._do.edit(self._scope, key, change, "edit")

    def rejections(self, limit: int = 100) -> Sequence[Rejection]:
        """Proposals that were not taken over, each with its reason, the newest first."""
        return self._do.rejections(self._scope, limit=limit)


class EntityHandle:
    """People, places, organisations and projects of this user."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, entities: Entities) -> None:
        self._scope = scope
        self._do = entities

    def list(self, type: str | None = None, *, limit: int = 100) -> Sequence[Entity]:
        """Entities by reference."""
        return self._do.list_(self._scope, type=type, limit=limit)

    def get(self, ref: str) -> Entity:
        """The entity a reference or an alias means."""
        return self._do.get(self._scope, ref)

    def alias(self, ref: str, label: str) -> Entity:
        """Let another name mean this entity."""
        return self._do.alias(self._scope.owner, ref, label)

    def merge(self, ref: str, into: str) -> int:
        """Make two entities one; the number by which `undo` takes it back. Two that were named side by side stay two."""
        return self._do.merge(self._scope.owner, ref, into)

    def links(self, limit: int = 200) -> Sequence[Link]:
        """Which entities current statements name together, and which they tell of the user; the strongest first."""
        return self._do.links(self._scope, limit=limit)

    def suggestions(self, limit: int = 100) -> Sequence[Suggestion]:
        """What a person should decide: names that may mean one, statements that may clash."""
        return self._do.suggestions(self._scope, limit=limit)

    def dismiss(self, suggestion: str) -> Suggestion:
        """Do not suggest it again."""
        return self._do.dismiss(self._scope.owner, suggestion)


class TodoHandle:
    """What the user means to do, as far as this agent was told."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, todos: Todos) -> None:
        self._scope = scope
        self._do = todos

    def add(
        self, content: str, kind: TodoKind = "commitment", *, due_at: datetime | None = None, recurrence: str | None = None
    ) -> Todo:
        """Keep a todo. `recurrence` is a cron line; the same words again change nothing."""
        return self._do.add(self._scope, TodoProposal(kind, content, due_at, None, recurrence, confidence=1.0))

    def list(
        self, kind: TodoKind | None = None, *, closed: bool = False, due_before: datetime | None = None, limit: int = 100
    ) -> Sequence[Todo]:
        """Open todos, what is due first; `closed=True` adds those that are over."""
        return self._do.list_(self._scope, kind=kind, closed=closed, due_before=due_before, limit=limit)

    def complete(self, todo: str) -> Todo:
        """It is done; a habit waits for its next time."""
        return self._do.complete(self._scope, todo)

    def skip(self, todo: str) -> Todo:
        """It will not be done."""
        return self._do.skip(self._scope, todo)

    def reopen(self, todo: str) -> Todo:
        """It is open again."""
        return self._do.reopen(self._scope, todo)


class TaskHandle:
    """What this agent itself is doing."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, todos: Todos) -> None:
        self._scope = scope
        self._do = todos

    def start(self, description: str) -> AgentTask:
        """Begin a task."""
        return self._do.start_task(self._scope, description)

    def update(self, task: str, *, state: TaskState | None = None, progress: float | None = None) -> AgentTask:
        """Note how far it is, or how it ended."""
        return self._do.update_task(self._scope, task, state=state, progress=progress)

    def list(self, *, closed: bool = False, limit: int = 100) -> Sequence[AgentTask]:
        """Running tasks, the newest first; `closed=True` adds those that are over."""
        return self._do.list_tasks(self._scope, closed=closed, limit=limit)


def check_ref(ref: str) -> str:
    """`ref` if it says what kind of thing it names."""
    if parse_ref(ref).type is None:
        raise InvalidInput(f"entity {ref!r:.80} has no type; write it like `person:{ref:.40}`")
    return ref


def _pinned(held: MemoryRecord) -> MemoryRecord:
    return replace(held, pinned=True, importance=IMPORTANCE_MAX, status="ACTIVE")


def _archived(held: MemoryRecord) -> MemoryRecord:
    if held.pinned:
        raise InvalidInput(f"memory {held.key!r:.120} is pinned; unpin it first")
    return replace(held, status="ARCHIVED")
