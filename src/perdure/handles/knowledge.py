"""`ana.memories`, `.entities`, `.todos`, `.instructions`: what is known of a user's world, for one agent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.entities import AgentTask, Entity, Instruction, Link, Rejection, Suggestion, TaskState, Todo
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.keys import check_ref
from perdure.domain.knowledge.memories import MemoryRecord, MemoryWithStatements, Statement
from perdure.domain.knowledge.proposals import IMPORTANCE_MAX, EntityType, FactType, MemoryType, TodoKind, TodoProposal
from perdure.domain.scope import Scope
from perdure.domain.text.rules import brief, check_choice, check_flag
from perdure.domain.values import dataclass, replace
from perdure.engine.knowledge.audit import read_export
from perdure.engine.knowledge.outcomes import Outcome
from perdure.engine.text.hygiene import flaw
from perdure.handles import arguments as arg
from perdure.handles.operation import Arg, Handle, fresh, operation
from perdure.services.access.log import CREATE, UPDATE, AccessLog
from perdure.services.conversation.sessions import Sessions
from perdure.services.forget.forget import ForgetService
from perdure.services.knowledge.curation import Auditor, AuditReport, Curation, Curator, PendingProposal, ProposalReview
from perdure.services.knowledge.entities import Entities
from perdure.services.knowledge.extraction import ExtractionReport, ExtractionService
from perdure.services.knowledge.instructions import Instructions
from perdure.services.knowledge.memories import Knowledge, MemoryGroup, MemoryQuery
from perdure.services.knowledge.seed_form import MEMORY_FORMS, MemoryForm, in_form
from perdure.services.knowledge.todos import Todos
from perdure.services.knowledge.undo import UndoService

LABEL_CHARS_MAX = 300
EntityRef = Annotated[str, arg.an_id("Its reference, or an alias of it.", "person:jon_doe")]
Alias = Annotated[
    str, Arg("Another name.", min_length=1, max_length=200, pattern=r"^[^\x00]*[A-Za-z0-9][^\x00]*$", example="Johnny")
]
ProposalId = Annotated[str, arg.an_id("The proposal's id, as `proposals` lists it.", "st-1")]
AboutEntity = Annotated[str | None, arg.a_reference("About this entity only.")]
Form = Annotated[MemoryForm, Arg("`seed`: under the names `entityRefs`, `memoryKey`, `personaId` and so on.")]
TodoId = Annotated[str, arg.an_id("The todo's id.", "t-1")]


class InstructionHandle(Handle, namespace="instructions"):
    """The user's standing instructions to this agent."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, instructions: Instructions, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = instructions

    @operation("read")
    @fresh()
    def list(
        self, *, withdrawn: Annotated[bool, Arg("Also withdrawn ones.")] = False, limit: arg.Limit = 100
    ) -> Sequence[Instruction]:
        """List standing instructions, the newest last. `withdrawn=True` adds those that stand no longer."""
        return self._do.list_(self.scope, withdrawn=withdrawn, limit=limit)

    @operation("change")
    @fresh()
    def add(
        self,
        text: Annotated[
            str,
            Arg(
                "What the agent does from now on.", min_length=1, max_length=500, pattern=arg.WORDS, example="Answer in French"
            ),
        ],
    ) -> Instruction:
        """Keep an instruction; the same words again change nothing. One that it contradicts is withdrawn."""
        return self._do.add(self.scope, text)

    @operation("change")
    def withdraw(self, id: Annotated[str, arg.an_id("The instruction's id.", "i-1")]) -> Instruction:
        """An instruction stands no longer."""
        return self._do.withdraw(self.scope, id)


@dataclass(frozen=True, slots=True)
class KnowledgeServices:
    """What the handles call."""

    knowledge: Knowledge
    undo: UndoService
    entities: Entities
    todos: Todos
    instructions: Instructions
    extraction: ExtractionService
    curator: Curator
    forgetter: ForgetService
    auditor: Auditor
    review: ProposalReview

    def by_agent(self) -> KnowledgeServices:
        """The same for what an agent does: its word stands beside a person's, never against it."""
        return replace(
            self,
            knowledge=replace(self.knowledge, writer="agent"),
            undo=replace(self.undo, writer="agent"),
            entities=replace(self.entities, writer="agent"),
            todos=replace(self.todos, writer="agent"),
            instructions=replace(self.instructions, writer="agent"),
            extraction=replace(self.extraction, writer="agent"),
            forgetter=replace(self.forgetter, writer="agent"),
            review=replace(self.review, writer="agent"),
        )


class Memories(Handle, namespace="memories"):
    """Memories, each with its statements."""

    __slots__ = ("_do", "_sessions")

    def __init__(self, scope: Scope, services: KnowledgeServices, sessions: Sessions, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = services
        self._sessions = sessions

    @operation("read")
    @fresh()
    def list(
        self,
        type: Annotated[MemoryType | None, Arg("Of this type only.")] = None,
        *,
        fact_type: Annotated[FactType | None, Arg("Of this kind only.")] = None,
        entity: AboutEntity = None,
        pinned: Annotated[bool | None, Arg("Pinned ones only, or others only.")] = None,
        archived: Annotated[bool, Arg("Also archived ones.")] = False,
        as_of: arg.AsOf = None,
        known_at: arg.KnownAt = None,
        limit: arg.Limit = 100,
        behind: Annotated[
            tuple[datetime, str] | None, Arg("Continue after this memory of the list before: its `updated_at` and key.")
        ] = None,
        form: Form = "full",
    ) -> Sequence[MemoryWithStatements]:
        """List current memories, the newest change first.

        `as_of` and `known_at` look back; `archived=True` adds archived ones.
        """
        if entity is not None:
            check_ref(entity)
        check_choice(form, "form", MEMORY_FORMS)
        asked = MemoryQuery(
            type=type,
            fact_type=fact_type,
            entity=entity,
            pinned=pinned,
            archived=archived,
            as_of=as_of,
            known_at=known_at,
            limit=limit,
            behind=behind,
        )
        return [in_form(one, form) for one in self._do.knowledge.list_(self.scope, asked)]

    @operation("read")
    @fresh()
    def groups(self, *, archived: Annotated[bool, Arg("Also archived ones.")] = False) -> Sequence[MemoryGroup]:
        """Count memories by person and kind, the largest group first."""
        return self._do.knowledge.groups(self.scope, archived=check_flag(archived, "archived"))

    @operation("read")
    @fresh()
    def get(self, key: arg.MemoryKey, *, form: Form = "full") -> MemoryWithStatements:
        """Show a memory: its statements and their sources. `NotFound` if this agent may see none."""
        check_choice(form, "form", MEMORY_FORMS)
        return in_form(self._do.knowledge.get(self.scope, key), form)

    @operation("read")
    @fresh()
    def history(self, key: arg.MemoryKey) -> Sequence[Statement]:
        """Show all statements of a memory, past ones too, oldest first. What they took the place of or gave way to is among
        them.
        """
        return self._do.knowledge.history(self.scope, key)

    @operation("read")
    @fresh()
    def changes(self, key: arg.MemoryKey, limit: arg.Limit = 50) -> Sequence[Operation]:
        """Show changes of a memory, by whom and why, newest first. It is the part of the journal that is about it."""
        return self._do.knowledge.changes(self.scope, key, limit=limit)

    @operation("read")
    @fresh()
    def foundation(self) -> tuple[Sequence[MemoryWithStatements], int]:
        """Show the pinned memories, which are in every prompt. The number says how many more are pinned."""
        return self._do.knowledge.foundation(self.scope)

    @operation("change", span=UPDATE)
    def pin(self, key: arg.MemoryKey) -> MemoryWithStatements:
        """Keep a memory in every prompt. Its importance becomes 3, no curator touches it, and an archived one is active."""
        return self._do.knowledge.edit(self.scope, key, _pinned, "pin")

    @operation("change", span=UPDATE)
    def unpin(self, key: arg.MemoryKey) -> MemoryWithStatements:
        """No longer keep a memory in every prompt. Its importance stays."""
        return self._do.knowledge.edit(self.scope, key, lambda held: replace(held, pinned=False), "unpin")

    @operation("change", span=UPDATE)
    def archive(self, key: arg.MemoryKey) -> MemoryWithStatements:
        """Archive a memory: it is not listed, and nothing is lost. A pinned one has to be unpinned first."""
        return self._do.knowledge.edit(self.scope, key, _archived, "archive")

    @operation("change", span=UPDATE)
    def restore(self, key: arg.MemoryKey) -> MemoryWithStatements:
        """Show an archived memory again."""
        return self._do.knowledge.edit(self.scope, key, lambda held: replace(held, status="ACTIVE"), "restore")

    @operation("change", span=UPDATE)
    def edit(
        self,
        key: arg.MemoryKey,
        *,
        importance: Annotated[
            int | None, Arg("How important it is; a pinned one keeps its own.", ge=0, le=IMPORTANCE_MAX)
        ] = None,
        label: Annotated[
            str | None, Arg("Its name as people write it.", min_length=1, max_length=LABEL_CHARS_MAX, pattern=arg.PLAIN)
        ] = None,
    ) -> MemoryWithStatements:
        """Change a memory's importance or label. What it states is changed by `correct`."""
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

        return self._do.knowledge.edit(self.scope, key, change, "edit")

    @operation("change", span=UPDATE)
    def correct(
        self,
        key: arg.MemoryKey,
        content: arg.Said,
        *,
        statement: Annotated[str | None, arg.an_id("Which statement; the only current one, if left out.")] = None,
        value: arg.Value = None,
    ) -> Outcome:
        """Correct a statement: it ends, and yours takes its place. Both are one action of the journal, which one `undo` takes
        back.

        It is the memory's only current statement, or the one named. A `value` is the attribute's new one, where the statement
        has an attribute; it can be left out if the new words name it in the same place, as in "Lives in Boston" after "Lives in
        Austin". What was wrong counts as never true.
        """
        return self._do.knowledge.correct(self.scope, key, content, statement=statement, value=value)

    @operation("read")
    @fresh()
    def proposals(self, limit: arg.Limit = 100) -> Sequence[PendingProposal]:
        """List what waits for a decision, the newest first.

        It is what an agent or another source proposes against the user's word.
        """
        return self._do.review.list_(self.scope, limit=limit)

    @operation("change", span=UPDATE)
    def accept(self, proposal: ProposalId) -> Outcome:
        """Make a proposal the user's own word.

        It replaces or ends what it speaks against. One `undo` takes that back.
        """
        return self._do.review.accept(self.scope, proposal)

    @operation("change", span=UPDATE)
    def reject(self, proposal: ProposalId) -> Statement:
        """Refuse a proposal, also when it is made again."""
        return self._do.review.reject(self.scope, proposal)

    @operation("read")
    @fresh()
    def rejections(self, limit: arg.Limit = 100) -> Sequence[Rejection]:
        """List refused proposals, each with its reason, newest first."""
        return self._do.knowledge.rejections(self.scope, limit=limit)

    # -- learning

    @operation("change", span=CREATE)
    def seed(
        self,
        text: Annotated[
            str,
            Arg("What was written about the user.", min_length=1, max_length=arg.TEXT_CHARS_MAX, pattern=arg.WORDS),
        ],
    ) -> Sequence[Outcome]:
        """Learn facts from a text about the user; lose no sentence."""
        return self._do.extraction.seed(self.scope, text)

    @operation("change")
    def extract(self, session: arg.SessionOrCurrent = None, *, dry_run: arg.DryRun = False) -> ExtractionReport:
        """Learn from new messages of a session now. A job does so anyway. With `dry_run` nothing is kept."""
        check_flag(dry_run, "dry_run")
        held = self._sessions.find(self.scope, session)
        return self._do.extraction.extract(self.scope, session=held, dry_run=dry_run)

    @operation("change")
    def curate(self, *, dry_run: arg.DryRun = False) -> Curation:
        """Fold scattered memories and flag clashes now. A job does so once a day."""
        check_flag(dry_run, "dry_run")
        return self._do.curator.curate(self.scope.owner, self.scope.address, dry_run=dry_run)

    @operation("read")
    @fresh()
    def audit(
        self,
        export: Annotated[
            str | None, Arg("The text of another engine's export.", max_length=arg.TEXT_CHARS_MAX, pattern=arg.PLAIN)
        ] = None,
    ) -> AuditReport:
        """Say what is wrong with the memories: doubles, junk, clashes. Also what is stale, orphaned or too much. Changes
        nothing.

        With `export`, the text of another engine's export (mem0, or the memory server of MCP) is looked through instead.
        """
        auditor = self._do.auditor
        return auditor.audit(self.scope.owner) if export is None else auditor.report(read_export(export))


class EntityHandle(Handle, namespace="entities"):
    """People, places, organisations and projects of this user."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, entities: Entities, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = entities

    @operation("read")
    @fresh()
    def list(
        self, type: Annotated[EntityType | None, Arg("Of this type only.")] = None, *, limit: arg.Limit = 100
    ) -> Sequence[Entity]:
        """List entities by reference."""
        return self._do.list_(self.scope, type=type, limit=limit)

    @operation("read")
    @fresh()
    def get(self, ref: EntityRef) -> Entity:
        """Show the entity that a reference or an alias means."""
        return self._do.get(self.scope, ref)

    @operation("change")
    def alias(self, ref: EntityRef, label: Alias) -> Entity:
        """Let another name mean this entity."""
        return self._do.alias(self.scope.owner, ref, label)

    @operation("change")
    def merge(
        self, ref: EntityRef, into: Annotated[str, arg.an_id("The entity that it becomes part of.", "person:john_doe")]
    ) -> int:
        """Merge an entity into another one. Two that were named side by side stay two. The number is the one by which `undo`
        takes it back.
        """
        return self._do.merge(self.scope.owner, ref, into)

    @operation("read")
    @fresh()
    def links(self, limit: arg.Limit = 200) -> Sequence[Link]:
        """List entities that are named together, the strongest first. Those that are told of the user are among them."""
        return self._do.links(self.scope, limit=limit)

    @operation("read")
    @fresh()
    def suggestions(self, limit: arg.Limit = 100) -> Sequence[Suggestion]:
        """List what a person should decide: merges and clashes. Names may mean one, statements may contradict one another."""
        return self._do.suggestions(self.scope, limit=limit)

    @operation("change")
    def dismiss(self, suggestion: Annotated[str, arg.an_id("The suggestion's id.", "sg-1")]) -> Suggestion:
        """Do not make this suggestion again."""
        return self._do.dismiss(self.scope.owner, suggestion)


class TodoHandle(Handle, namespace="todos"):
    """The user's todos with this agent."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, todos: Todos, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = todos

    @property
    def tasks(self) -> TaskHandle:
        """The agent's own tasks."""
        return TaskHandle(self.scope, self._do, self._log)

    @operation("change")
    def add(
        self,
        content: Annotated[
            str, Arg("What is to be done.", min_length=1, max_length=500, pattern=arg.WORDS, example="Call the dentist")
        ],
        kind: Annotated[TodoKind, Arg("The kind of intention.")] = "commitment",
        *,
        due_at: Annotated[datetime | None, Arg("When it is due.")] = None,
        recurrence: Annotated[
            str | None, Arg("A cron line, for habits.", min_length=1, max_length=200, example="0 7 * * 1")
        ] = None,
    ) -> Todo:
        """Keep a todo; the same words again change nothing. `recurrence` is a cron line."""
        return self._do.add(self.scope, TodoProposal(kind, content, due_at, None, recurrence, confidence=1.0))

    @operation("read")
    @fresh()
    def list(
        self,
        kind: Annotated[TodoKind | None, Arg("Of this kind only.")] = None,
        *,
        closed: arg.Closed = False,
        due_before: Annotated[datetime | None, Arg("Due before this moment only.")] = None,
        limit: arg.Limit = 100,
    ) -> Sequence[Todo]:
        """List todos: what is due first, then what has no date. `closed=True` adds those that are over."""
        return self._do.list_(self.scope, kind=kind, closed=closed, due_before=due_before, limit=limit)

    @operation("change")
    def complete(self, todo: TodoId) -> Todo:
        """A todo is done; a habit waits for its next time."""
        return self._do.complete(self.scope, todo)

    @operation("change")
    def skip(self, todo: TodoId) -> Todo:
        """A todo will not be done."""
        return self._do.skip(self.scope, todo)

    @operation("change")
    def reopen(self, todo: TodoId) -> Todo:
        """A todo is open again."""
        return self._do.reopen(self.scope, todo)


class TaskHandle(Handle, namespace="tasks"):
    """The agent's own tasks."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, todos: Todos, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = todos

    @operation("change")
    def start(
        self,
        description: Annotated[
            str, Arg("What the agent is doing.", min_length=1, max_length=1_000, pattern=arg.WORDS, example="Plan the trip")
        ],
    ) -> AgentTask:
        """Begin a task of the agent."""
        return self._do.start_task(self.scope, description)

    @operation("change")
    def update(
        self,
        task: Annotated[str, arg.an_id("The task's id.", "k-1")],
        *,
        state: Annotated[TaskState | None, Arg("Its state.")] = None,
        progress: Annotated[float | None, Arg("How far it is.", ge=0, le=1)] = None,
    ) -> AgentTask:
        """Note how far a task is, or how it ended."""
        return self._do.update_task(self.scope, task, state=state, progress=progress)

    @operation("read")
    def list(self, *, closed: arg.Closed = False, limit: arg.Limit = 100) -> Sequence[AgentTask]:
        """List the tasks of the agent, the newest first. `closed=True` adds those that are over."""
        return self._do.list_tasks(self.scope, closed=closed, limit=limit)


def _pinned(held: MemoryRecord) -> MemoryRecord:
    return replace(held, pinned=True, importance=IMPORTANCE_MAX, status="ACTIVE")


def _archived(held: MemoryRecord) -> MemoryRecord:
    if held.pinned:
        raise InvalidInput(f"memory {held.key!r:.120} is pinned; unpin it first")
    return replace(held, status="ARCHIVED")
