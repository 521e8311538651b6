"""The scoped handle, awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any

from perdure.aio.conversation import AsyncConversation, AsyncTranscripts, AsyncTurn, held_turn
from perdure.aio.data import AsyncSeries, AsyncState
from perdure.aio.instructions import AsyncInstructions
from perdure.aio.knowledge import AsyncEntities, AsyncMemories, AsyncTasks, AsyncTodos
from perdure.aio.lessons import AsyncLessons
from perdure.aio.oversight import run_async
from perdure.aio.threads import Threads
from perdure.aio.tools import AsyncTools
from perdure.domain.accesses import Access
from perdure.domain.context import Context
from perdure.domain.jobs import Job, JobState
from perdure.domain.journal import Operation
from perdure.domain.knowledge import MemoryType
from perdure.domain.messages import Message, MessageFields, NewMessage, Session
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind, Injection, Kept
from perdure.domain.overview import Overview
from perdure.domain.portable import ExportFormat, ExportReport, ImportFormat, ImportReport
from perdure.domain.prompts import Prompt
from perdure.domain.recall import Recall
from perdure.domain.scope import Scope
from perdure.domain.series import Series
from perdure.domain.tally import Tally
from perdure.engine.committing import Outcome
from perdure.handles.knowledge import RememberFields
from perdure.handles.memory import Memory
from perdure.handles.oversight import DECISIONS_SHOWN, AfterFields, BeforeFields, Ran, RunFields
from perdure.handles.portable import Source
from perdure.handles.recall import RecallFields
from perdure.handles.series import SeriesRules
from perdure.ports.store import Progress
from perdure.services.auditing import AuditReport
from perdure.services.curating import Curation
from perdure.services.exporting import Target
from perdure.services.extracting import Learned
from perdure.services.forgetting import Forgotten
from perdure.services.prompting import BUDGET_TOKENS
from perdure.services.turns import LEASE_S, WAIT_S

if TYPE_CHECKING:
    from typing import Unpack


class AsyncMemory:
    """`perdure.Memory`, awaited."""

    __slots__ = ("_memory", "_threads")

    def __init__(self, memory: Memory, threads: Threads) -> None:
        self._memory = memory
        self._threads = threads

    @property
    def scope(self) -> Scope:
        return self._memory.scope

    @property
    def state(self) -> AsyncState:
        return AsyncState(self._memory.state, self._threads)

    def series(self, name: str, **rules: Unpack[SeriesRules]) -> AsyncSeries:
        return AsyncSeries(self._memory.series(name, **rules), self._threads)

    async def list_series(self, limit: int = 100) -> Sequence[Series]:
        return await self._threads.run(self._memory.list_series, limit)

    @property
    def tools(self) -> AsyncTools:
        return AsyncTools(self._memory.tools, self._threads)

    @property
    def conversation(self) -> AsyncConversation:
        return AsyncConversation(self._memory.conversation, self._threads)

    @property
    def transcripts(self) -> AsyncTranscripts:
        return AsyncTranscripts(self._memory.transcripts, self._threads)

    async def overview(self, *, days: int = 30) -> Overview:
        return await self._threads.run(self._memory.overview, days=days)

    async def remember(self, content: str, type: MemoryType = "PROFILE", **fields: Unpack[RememberFields]) -> Outcome:
        return await self._threads.run(self._memory.remember, content, type, **fields)

    async def seed(self, text: str) -> Sequence[Outcome]:
        return await self._threads.run(self._memory.seed, text)

    @property
    def memories(self) -> AsyncMemories:
        return AsyncMemories(self._memory.memories, self._threads)

    @property
    def entities(self) -> AsyncEntities:
        return AsyncEntities(self._memory.entities, self._threads)

    @property
    def todos(self) -> AsyncTodos:
        return AsyncTodos(self._memory.todos, self._threads)

    @property
    def instructions(self) -> AsyncInstructions:
        return AsyncInstructions(self._memory.instructions, self._threads)

    @property
    def lessons(self) -> AsyncLessons:
        return AsyncLessons(self._memory.lessons, self._threads)

    @property
    def tasks(self) -> AsyncTasks:
        return AsyncTasks(self._memory.tasks, self._threads)

    async def extract(self, session: str | None = None, *, dry_run: bool = False) -> Learned:
        return await self._threads.run(self._memory.extract, session, dry_run=dry_run)

    async def curate(self, *, dry_run: bool = False) -> Curation:
        return await self._threads.run(self._memory.curate, dry_run=dry_run)

    async def undo(self, operation: int, *, cascade: bool = False) -> int:
        return await self._threads.run(self._memory.undo, operation, cascade=cascade)

    async def diff(self, start: datetime, end: datetime) -> Sequence[Operation]:
        return await self._threads.run(self._memory.diff, start, end)

    async def forget(
        self,
        *,
        entity: str | None = None,
        memory: str | None = None,
        messages: tuple[str, str] | None = None,
        user: bool = False,
    ) -> Forgotten:
        return await self._threads.run(self._memory.forget, entity=entity, memory=memory, messages=messages, user=user)

    async def audit(self, export: str | None = None) -> AuditReport:
        return await self._threads.run(self._memory.audit, export)

    async def export(
        self, to: Target, format: ExportFormat = "jsonl", *, replace: bool = False, progress: Progress | None = None
    ) -> ExportReport:
        return await self._threads.run(self._memory.export, to, format, replace=replace, progress=progress)

    async def import_(
        self,
        source: Source,
        format: ImportFormat = "auto",
        *,
        replace: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        call = self._memory.import_
        return await self._threads.run(call, source, format, replace=replace, dry_run=dry_run, progress=progress)

    async def recall(self, query: str, **fields: Unpack[RecallFields]) -> Recall:
        return await self._threads.run(self._memory.recall, query, **fields)

    async def reindex(self, progress: Progress | None = None) -> int:
        return await self._threads.run(self._memory.reindex, progress)

    async def before(self, goal: str, **fields: Unpack[BeforeFields]) -> Injection:
        return await self._threads.run(self._memory.before, goal, **fields)

    async def after(self, tool: str, result: object, goal: str = "", **fields: Unpack[AfterFields]) -> Kept:
        return await self._threads.run(self._memory.after, tool, result, goal, **fields)

    async def accept(self, suggested: Kept, result: object) -> Kept:
        return await self._threads.run(self._memory.accept, suggested, result)

    async def run(
        self,
        goal: str,
        agent: Callable[..., Any],
        tools: Mapping[str, Callable[..., Any]] | None = None,
        **fields: Unpack[RunFields],
    ) -> Ran:
        """As `Memory.run`; agent and tools may be async, and run in this event loop."""
        return await run_async(self._memory, self._threads, goal, agent, {} if tools is None else tools, fields)

    async def decisions(
        self, kind: DecisionKind | None = None, *, limit: int = DECISIONS_SHOWN, before: str | None = None
    ) -> Sequence[Decision]:
        return await self._threads.run(self._memory.decisions, kind, limit=limit, before=before)

    async def usage(self) -> Sequence[Usage]:
        return await self._threads.run(self._memory.usage)

    async def context(self, goal: str | None = None, *, budget_tokens: int | None = None) -> Context:
        return await self._threads.run(self._memory.context, goal, budget_tokens=budget_tokens)

    async def prompt(self, request: str = "", *, budget_tokens: int = BUDGET_TOKENS) -> Prompt:
        return await self._threads.run(self._memory.prompt, request, budget_tokens=budget_tokens)

    def turn(self, *, wait_s: float = WAIT_S, lease_s: float = LEASE_S) -> AbstractAsyncContextManager[AsyncTurn]:
        return held_turn(self._memory.turn(wait_s=wait_s, lease_s=lease_s), self._threads)

    async def append(self, role: str, content: str, **fields: Unpack[MessageFields]) -> Message:
        return await self._threads.run(self._memory.append, role, content, **fields)

    async def append_many(self, messages: Iterable[NewMessage]) -> list[Message]:
        return await self._threads.run(self._memory.append_many, messages)

    async def messages(
        self, limit: int = 20, *, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        return await self._threads.run(self._memory.messages, limit, session=session, before=before, after=after)

    async def message(self, id: str) -> Message:
        return await self._threads.run(self._memory.message, id)

    async def sessions(self, limit: int = 20) -> Sequence[Session]:
        return await self._threads.run(self._memory.sessions, limit)

    async def tally(self, session: str | None = None) -> Tally:
        return await self._threads.run(self._memory.tally, session)

    async def journal(self, limit: int = 50, *, before: int | None = None) -> Sequence[Operation]:
        return await self._threads.run(self._memory.journal, limit, before=before)

    async def accesses(self, limit: int = 50, *, before: str | None = None) -> Sequence[Access]:
        return await self._threads.run(self._memory.accesses, limit, before=before)

    async def jobs(self, state: JobState | None = None, *, limit: int = 100) -> Sequence[Job]:
        return await self._threads.run(self._memory.jobs, state, limit=limit)

    async def retry_jobs(self) -> int:
        return await self._threads.run(self._memory.retry_jobs)

    def __repr__(self) -> str:
        return f"Async{self._memory!r}"
