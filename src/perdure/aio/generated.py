"""The async face. Written by `python tools/async_face.py` from the handles: do not edit, run it again."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any, Literal

from perdure.aio.awaited import Awaited, AwaitedEngine, AwaitedMemory, AwaitedSeriesHandle
from perdure.domain.access.keys import ApiKey, NewApiKey
from perdure.domain.access.log import Access
from perdure.domain.context.context import Context, Prompt
from perdure.domain.context.recall import EntryKind, Recall
from perdure.domain.conversation.agent_state import Agent, AgentState, ChannelAgent
from perdure.domain.conversation.digests import Digest, DigestKind
from perdure.domain.conversation.documents import CompactionReport, ContextData, ContextVersion, SavedContext
from perdure.domain.conversation.messages import Message, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.jobs import Job, JobState
from perdure.domain.knowledge.entities import AgentTask, Entity, Link, Rejection, Suggestion, TaskState, Todo
from perdure.domain.knowledge.instructions import Instruction
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.memories import Statement
from perdure.domain.knowledge.proposals import EntityType, FactType, MemoryType, TodoKind
from perdure.domain.lessons import Lesson, LessonScope, RefusedLesson, ReplyReport
from perdure.domain.limits import Limits
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind, Injection, KeptResult
from perdure.domain.oversight import Target as GoalTarget
from perdure.domain.portability import ExportFormat, ExportReport, ImportReport
from perdure.domain.reports import (
    BackupReport,
    ClockReport,
    DistributionReport,
    DoctorReport,
    Health,
    Overview,
    ProcessReport,
    PurgeReport,
    StoreFile,
    VerifyReport,
)
from perdure.domain.scope import DEFAULT, Owner
from perdure.domain.series import CoverageRule, CoveredWindow, Entry, Infer, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.state import KeyInfo, Revision, StateMatches, StateValue
from perdure.domain.text.rules import Json
from perdure.domain.times.spans import Span
from perdure.engine.knowledge.outcomes import Outcome
from perdure.handles import arguments as arg
from perdure.handles.admin import AdminHandle, AgentHandle, AgentId, ApiKeyHandle, ChannelId, JournalHandle, KeyId
from perdure.handles.arguments import BeforeId, DryRun, Limit, Replace
from perdure.handles.conversation import Before, Conversation, Keep, OfSession, TranscriptHandle, Turn
from perdure.handles.knowledge import (
    AboutEntity,
    Alias,
    EntityHandle,
    EntityRef,
    Form,
    InstructionHandle,
    Memories,
    ProposalId,
    TaskHandle,
    TodoHandle,
    TodoId,
)
from perdure.handles.lessons import LessonHandle, LessonId, OfAgent, Reach
from perdure.handles.operation import UNSET
from perdure.handles.registry.toolset import HostTool
from perdure.handles.series import Entries, Field, FromStart, StaleFor, UpToEnd, UserSeries
from perdure.handles.sessions.documents import DocumentHandle, DocumentId
from perdure.handles.state import Expected, IndexText, Key, OfRevision, Pattern, Request, State
from perdure.handles.tools import ID_FIELD, TIMESTAMP_FIELD, Permission, Result, Tools
from perdure.ports.files import Source, Target
from perdure.ports.store import Progress
from perdure.services.context.prompt import BUDGET_TOKENS
from perdure.services.conversation.sessions import SessionLine
from perdure.services.conversation.transcripts import Transcript
from perdure.services.conversation.turns import LEASE_S, WAIT_S
from perdure.services.forget.forget import ForgetReport
from perdure.services.jobs.worker import Worker
from perdure.services.knowledge.curation import AuditReport, Curation
from perdure.services.knowledge.extraction import ExtractionReport
from perdure.services.knowledge.memories import MemoryGroup, MemoryWithStatements
from perdure.services.knowledge.review import PendingProposal
from perdure.services.oversight.before import BUDGET_TOKENS as GOAL_TOKENS
from perdure.services.series.aggregates import Period
from perdure.services.series.series import Cleanup


class AsyncEngine(AwaitedEngine):
    """`perdure.app.Engine`, awaited."""

    __slots__ = ()

    @property
    def limits(self) -> Limits:
        return self._sync.limits

    def memory(
        self, user: str, *, agent: str = DEFAULT, channel: str = DEFAULT, space: str | None = None, persona: str | None = None
    ) -> AsyncMemory:
        return AsyncMemory(self._sync.memory(user, agent=agent, channel=channel, space=space, persona=persona), self._threads)

    async def add_tool(self, tool: HostTool) -> None:
        return await self._threads.run(self._sync.add_tool, tool)

    @property
    def agents(self) -> AsyncAgentHandle:
        return AsyncAgentHandle(self._sync.agents, self._threads)

    @property
    def space(self) -> str:
        return self._sync.space

    @property
    def zone(self) -> str:
        return self._sync.zone

    @property
    def default_user(self) -> str:
        return self._sync.default_user

    @property
    def api_keys(self) -> AsyncApiKeyHandle:
        return AsyncApiKeyHandle(self._sync.api_keys, self._threads)

    async def users(self, *, limit: Limit = 1000) -> Sequence[str]:
        return await self._threads.run(self._sync.users, limit=limit)

    async def accesses(self, limit: Limit = 50, *, before: BeforeId = None) -> Sequence[Access]:
        return await self._threads.run(self._sync.accesses, limit, before=before)

    async def process(self, seconds: float = 10.0) -> ProcessReport:
        return await self._threads.run(self._sync.process, seconds)

    def worker(self) -> Worker:
        return self._sync.worker()

    async def verify(self, progress: Progress | None = None) -> VerifyReport:
        return await self._threads.run(self._sync.verify, progress)

    async def backup(
        self, path: str | os.PathLike[str], *, replace: Replace = False, progress: Progress | None = None
    ) -> BackupReport:
        return await self._threads.run(self._sync.backup, path, replace=replace, progress=progress)

    async def export(self, to: Target, *, replace: Replace = False, progress: Progress | None = None) -> ExportReport:
        return await self._threads.run(self._sync.export, to, replace=replace, progress=progress)

    async def import_(
        self, source: Source, *, replace: Replace = False, dry_run: DryRun = False, progress: Progress | None = None
    ) -> ImportReport:
        return await self._threads.run(self._sync.import_, source, replace=replace, dry_run=dry_run, progress=progress)

    async def doctor(self) -> DoctorReport:
        return await self._threads.run(self._sync.doctor)

    async def health(self) -> Health:
        return await self._threads.run(self._sync.health)

    async def purge(self, progress: Progress | None = None) -> PurgeReport:
        return await self._threads.run(self._sync.purge, progress)

    async def repair_clock(self) -> ClockReport:
        return await self._threads.run(self._sync.repair_clock)

    async def distribute(self) -> DistributionReport:
        return await self._threads.run(self._sync.distribute)

    async def reindex(self, progress: Progress | None = None) -> Mapping[Owner, int]:
        return await self._threads.run(self._sync.reindex, progress)

    async def files(self) -> tuple[StoreFile, ...]:
        return await self._threads.run(self._sync.files)


class AsyncJournalHandle(Awaited[JournalHandle]):
    """`perdure.handles.admin.JournalHandle`, awaited."""

    __slots__ = ()

    async def list(self, limit: arg.Limit = 50, *, before: arg.BeforeNumber = None) -> Sequence[Operation]:
        return await self._threads.run(self._sync.list, limit, before=before)

    async def diff(self, start: datetime, end: datetime) -> Sequence[Operation]:
        return await self._threads.run(self._sync.diff, start, end)

    async def accesses(self, limit: arg.Limit = 50, *, before: arg.BeforeId = None) -> Sequence[Access]:
        return await self._threads.run(self._sync.accesses, limit, before=before)

    async def decisions(
        self, kind: DecisionKind | None = None, *, limit: arg.Limit = 50, before: arg.BeforeId = None
    ) -> Sequence[Decision]:
        return await self._threads.run(self._sync.decisions, kind, limit=limit, before=before)


class AsyncAdminHandle(Awaited[AdminHandle]):
    """`perdure.handles.admin.AdminHandle`, awaited."""

    __slots__ = ()

    async def overview(self, *, days: int = 30) -> Overview:
        return await self._threads.run(self._sync.overview, days=days)

    async def jobs(self, state: JobState | None = None, *, limit: arg.Limit = 100) -> Sequence[Job]:
        return await self._threads.run(self._sync.jobs, state, limit=limit)

    async def retry_jobs(self) -> int:
        return await self._threads.run(self._sync.retry_jobs)

    async def reindex(self, progress: Progress | None = None) -> int:
        return await self._threads.run(self._sync.reindex, progress)

    async def usage(self) -> Sequence[Usage]:
        return await self._threads.run(self._sync.usage)


class AsyncAgentHandle(Awaited[AgentHandle]):
    """`perdure.handles.admin.AgentHandle`, awaited."""

    __slots__ = ()

    @property
    def space(self) -> str:
        return self._sync.space

    def of(self, space: str) -> AsyncAgentHandle:
        return AsyncAgentHandle(self._sync.of(space), self._threads)

    async def get(self, id: AgentId) -> Agent:
        return await self._threads.run(self._sync.get, id)

    async def list(self, *, limit: arg.Limit = 100) -> Sequence[Agent]:
        return await self._threads.run(self._sync.list, limit=limit)

    async def save(self, id: AgentId, *, soul: str | None = None, mood: str | None = None, skill: str | None = None) -> Agent:
        return await self._threads.run(self._sync.save, id, soul=soul, mood=mood, skill=skill)

    async def remove(self, id: AgentId) -> bool:
        return await self._threads.run(self._sync.remove, id)

    async def map_channel(self, channel: ChannelId, agent: AgentId) -> ChannelAgent:
        return await self._threads.run(self._sync.map_channel, channel, agent)

    async def unmap_channel(self, channel: ChannelId) -> bool:
        return await self._threads.run(self._sync.unmap_channel, channel)

    async def channels(self, *, limit: arg.Limit = 100) -> Sequence[ChannelAgent]:
        return await self._threads.run(self._sync.channels, limit=limit)


class AsyncApiKeyHandle(Awaited[ApiKeyHandle]):
    """`perdure.handles.admin.ApiKeyHandle`, awaited."""

    __slots__ = ()

    async def create(
        self,
        name: str,
        *,
        users: Sequence[arg.Id] | None = None,
        permission: Literal["read", "write", "admin"] = "write",
        days: float | None = None,
        agent: bool = False,
    ) -> NewApiKey:
        return await self._threads.run(self._sync.create, name, users=users, permission=permission, days=days, agent=agent)

    async def list(self) -> Sequence[ApiKey]:
        return await self._threads.run(self._sync.list)

    async def revoke(self, key_id: KeyId) -> ApiKey:
        return await self._threads.run(self._sync.revoke, key_id)

    async def recognise(self, secret: str) -> ApiKey | None:
        return await self._threads.run(self._sync.recognise, secret)

    async def find(self, key_id: str) -> ApiKey | None:
        return await self._threads.run(self._sync.find, key_id)

    async def in_use(self) -> bool:
        return await self._threads.run(self._sync.in_use)


class AsyncTranscriptHandle(Awaited[TranscriptHandle]):
    """`perdure.handles.conversation.TranscriptHandle`, awaited."""

    __slots__ = ()

    async def list(self, limit: arg.Limit = 100) -> Sequence[Transcript]:
        return await self._threads.run(self._sync.list, limit)

    async def read(self, session: arg.SessionRef) -> Sequence[Message]:
        return await self._threads.run(self._sync.read, session)

    async def archive(self, *, before: Before = None, keep: Keep = None) -> int:
        return await self._threads.run(self._sync.archive, before=before, keep=keep)

    async def prune(self, *, before: Before = None, keep: Keep = None) -> int:
        return await self._threads.run(self._sync.prune, before=before, keep=keep)


class AsyncConversation(Awaited[Conversation]):
    """`perdure.handles.conversation.Conversation`, awaited."""

    __slots__ = ()

    async def sessions(self, limit: arg.Limit = 20) -> Sequence[Session]:
        return await self._threads.run(self._sync.sessions, limit)

    async def message(self, id: str) -> Message:
        return await self._threads.run(self._sync.message, id)

    async def tally(self, session: arg.SessionOrCurrent = None) -> Tally:
        return await self._threads.run(self._sync.tally, session)

    @property
    def transcripts(self) -> AsyncTranscriptHandle:
        return AsyncTranscriptHandle(self._sync.transcripts, self._threads)

    @property
    def documents(self) -> AsyncDocumentHandle:
        return AsyncDocumentHandle(self._sync.documents, self._threads)

    async def list_sessions(self, source: str | None = None, *, limit: arg.Limit = 100) -> Sequence[SessionLine]:
        return await self._threads.run(self._sync.list_sessions, source, limit=limit)

    async def session(self, session: arg.SessionOrCurrent = None) -> Session:
        return await self._threads.run(self._sync.session, session)

    async def close(self, session: arg.SessionOrCurrent = None) -> Session:
        return await self._threads.run(self._sync.close, session)

    async def resume(self, session: arg.SessionOrCurrent = None) -> Session:
        return await self._threads.run(self._sync.resume, session)

    async def delete(self, session: arg.SessionRef) -> int:
        return await self._threads.run(self._sync.delete, session)

    async def pop(self, session: arg.SessionOrCurrent = None, *, messages: int | None = None) -> Sequence[Message]:
        return await self._threads.run(self._sync.pop, session, messages=messages)

    async def search(self, query: arg.Question, *, session: OfSession = None, limit: arg.Limit = 20) -> Sequence[Message]:
        return await self._threads.run(self._sync.search, query, session=session, limit=limit)

    async def compact(self, session: arg.SessionOrCurrent = None, *, force: bool = False) -> Sequence[Digest]:
        return await self._threads.run(self._sync.compact, session, force=force)

    async def fold(self, session: arg.SessionOrCurrent = None) -> Sequence[Digest]:
        return await self._threads.run(self._sync.fold, session)

    async def clear(self, session: arg.SessionOrCurrent = None) -> Digest | None:
        return await self._threads.run(self._sync.clear, session)

    async def replace(self, text: str, session: arg.SessionOrCurrent = None) -> Digest:
        return await self._threads.run(self._sync.replace, text, session)

    async def undo(self, session: arg.SessionOrCurrent = None) -> Digest:
        return await self._threads.run(self._sync.undo, session)

    async def digests(
        self, kind: DigestKind | None = None, *, session: OfSession = None, limit: arg.Limit = 20
    ) -> Sequence[Digest]:
        return await self._threads.run(self._sync.digests, kind, session=session, limit=limit)

    async def digest(self, kind: DigestKind, version: int, *, session: arg.SessionOrCurrent = None) -> Digest:
        return await self._threads.run(self._sync.digest, kind, version, session=session)

    def expand(self, digest: Digest, *, whole: bool = False) -> AsyncIterator[Message]:
        return self._threads.each(self._sync.expand(digest, whole=whole))

    async def agent_state(self) -> AgentState:
        return await self._threads.run(self._sync.agent_state)

    async def configure(
        self, *, profile: str | None = None, casual: bool | None = None, private: bool | None = None, shared: bool | None = None
    ) -> AgentState:
        return await self._threads.run(self._sync.configure, profile=profile, casual=casual, private=private, shared=shared)


class AsyncTurn(Awaited[Turn]):
    """`perdure.handles.conversation.Turn`, awaited."""

    __slots__ = ()

    async def append(
        self,
        role: arg.MessageRole,
        content: arg.Content,
        *,
        id: arg.OwnId = None,
        at: arg.SaidAt = None,
        session: arg.IntoSession = None,
        tokens: arg.Tokens = None,
        metadata: arg.Metadata = None,
        tool_calls: arg.ToolCalls = (),
        tool_call_id: arg.ToolCallRef = None,
        failed: arg.Failed = False,
    ) -> Message:
        return await self._threads.run(
            self._sync.append,
            role,
            content,
            id=id,
            at=at,
            session=session,
            tokens=tokens,
            metadata=metadata,
            tool_calls=tool_calls,
            tool_call_id=tool_call_id,
            failed=failed,
        )

    async def append_many(self, messages: arg.Messages) -> list[Message]:
        return await self._threads.run(self._sync.append_many, messages)


class AsyncInstructionHandle(Awaited[InstructionHandle]):
    """`perdure.handles.knowledge.InstructionHandle`, awaited."""

    __slots__ = ()

    async def list(self, *, withdrawn: bool = False, limit: arg.Limit = 100) -> Sequence[Instruction]:
        return await self._threads.run(self._sync.list, withdrawn=withdrawn, limit=limit)

    async def add(self, text: str) -> Instruction:
        return await self._threads.run(self._sync.add, text)

    async def withdraw(self, id: str) -> Instruction:
        return await self._threads.run(self._sync.withdraw, id)


class AsyncMemories(Awaited[Memories]):
    """`perdure.handles.knowledge.Memories`, awaited."""

    __slots__ = ()

    async def list(
        self,
        type: MemoryType | None = None,
        *,
        fact_type: FactType | None = None,
        entity: AboutEntity = None,
        pinned: bool | None = None,
        archived: bool = False,
        as_of: arg.AsOf = None,
        known_at: arg.KnownAt = None,
        limit: arg.Limit = 100,
        behind: tuple[datetime, str] | None = None,
        form: Form = "full",
    ) -> Sequence[MemoryWithStatements]:
        return await self._threads.run(
            self._sync.list,
            type,
            fact_type=fact_type,
            entity=entity,
            pinned=pinned,
            archived=archived,
            as_of=as_of,
            known_at=known_at,
            limit=limit,
            behind=behind,
            form=form,
        )

    async def groups(self, *, archived: bool = False) -> Sequence[MemoryGroup]:
        return await self._threads.run(self._sync.groups, archived=archived)

    async def get(self, key: arg.MemoryKey, *, form: Form = "full") -> MemoryWithStatements:
        return await self._threads.run(self._sync.get, key, form=form)

    async def history(self, key: arg.MemoryKey) -> Sequence[Statement]:
        return await self._threads.run(self._sync.history, key)

    async def changes(self, key: arg.MemoryKey, limit: arg.Limit = 50) -> Sequence[Operation]:
        return await self._threads.run(self._sync.changes, key, limit)

    async def foundation(self) -> tuple[Sequence[MemoryWithStatements], int]:
        return await self._threads.run(self._sync.foundation)

    async def pin(self, key: arg.MemoryKey) -> MemoryWithStatements:
        return await self._threads.run(self._sync.pin, key)

    async def unpin(self, key: arg.MemoryKey) -> MemoryWithStatements:
        return await self._threads.run(self._sync.unpin, key)

    async def archive(self, key: arg.MemoryKey) -> MemoryWithStatements:
        return await self._threads.run(self._sync.archive, key)

    async def restore(self, key: arg.MemoryKey) -> MemoryWithStatements:
        return await self._threads.run(self._sync.restore, key)

    async def edit(
        self, key: arg.MemoryKey, *, importance: int | None = None, label: str | None = None
    ) -> MemoryWithStatements:
        return await self._threads.run(self._sync.edit, key, importance=importance, label=label)

    async def correct(
        self, key: arg.MemoryKey, content: arg.Said, *, statement: str | None = None, value: arg.Value = None
    ) -> Outcome:
        return await self._threads.run(self._sync.correct, key, content, statement=statement, value=value)

    async def proposals(self, limit: arg.Limit = 100) -> Sequence[PendingProposal]:
        return await self._threads.run(self._sync.proposals, limit)

    async def accept(self, proposal: ProposalId) -> Outcome:
        return await self._threads.run(self._sync.accept, proposal)

    async def reject(self, proposal: ProposalId) -> Statement:
        return await self._threads.run(self._sync.reject, proposal)

    async def rejections(self, limit: arg.Limit = 100) -> Sequence[Rejection]:
        return await self._threads.run(self._sync.rejections, limit)

    async def seed(self, text: str) -> Sequence[Outcome]:
        return await self._threads.run(self._sync.seed, text)

    async def extract(self, session: arg.SessionOrCurrent = None, *, dry_run: arg.DryRun = False) -> ExtractionReport:
        return await self._threads.run(self._sync.extract, session, dry_run=dry_run)

    async def curate(self, *, dry_run: arg.DryRun = False) -> Curation:
        return await self._threads.run(self._sync.curate, dry_run=dry_run)

    async def audit(self, export: str | None = None) -> AuditReport:
        return await self._threads.run(self._sync.audit, export)


class AsyncEntityHandle(Awaited[EntityHandle]):
    """`perdure.handles.knowledge.EntityHandle`, awaited."""

    __slots__ = ()

    async def list(self, type: EntityType | None = None, *, limit: arg.Limit = 100) -> Sequence[Entity]:
        return await self._threads.run(self._sync.list, type, limit=limit)

    async def get(self, ref: EntityRef) -> Entity:
        return await self._threads.run(self._sync.get, ref)

    async def alias(self, ref: EntityRef, label: Alias) -> Entity:
        return await self._threads.run(self._sync.alias, ref, label)

    async def merge(self, ref: EntityRef, into: str) -> int:
        return await self._threads.run(self._sync.merge, ref, into)

    async def links(self, limit: arg.Limit = 200) -> Sequence[Link]:
        return await self._threads.run(self._sync.links, limit)

    async def suggestions(self, limit: arg.Limit = 100) -> Sequence[Suggestion]:
        return await self._threads.run(self._sync.suggestions, limit)

    async def dismiss(self, suggestion: str) -> Suggestion:
        return await self._threads.run(self._sync.dismiss, suggestion)


class AsyncTodoHandle(Awaited[TodoHandle]):
    """`perdure.handles.knowledge.TodoHandle`, awaited."""

    __slots__ = ()

    @property
    def tasks(self) -> AsyncTaskHandle:
        return AsyncTaskHandle(self._sync.tasks, self._threads)

    async def add(
        self, content: str, kind: TodoKind = "commitment", *, due_at: datetime | None = None, recurrence: str | None = None
    ) -> Todo:
        return await self._threads.run(self._sync.add, content, kind, due_at=due_at, recurrence=recurrence)

    async def list(
        self,
        kind: TodoKind | None = None,
        *,
        closed: arg.Closed = False,
        due_before: datetime | None = None,
        limit: arg.Limit = 100,
    ) -> Sequence[Todo]:
        return await self._threads.run(self._sync.list, kind, closed=closed, due_before=due_before, limit=limit)

    async def complete(self, todo: TodoId) -> Todo:
        return await self._threads.run(self._sync.complete, todo)

    async def skip(self, todo: TodoId) -> Todo:
        return await self._threads.run(self._sync.skip, todo)

    async def reopen(self, todo: TodoId) -> Todo:
        return await self._threads.run(self._sync.reopen, todo)


class AsyncTaskHandle(Awaited[TaskHandle]):
    """`perdure.handles.knowledge.TaskHandle`, awaited."""

    __slots__ = ()

    async def start(self, description: str) -> AgentTask:
        return await self._threads.run(self._sync.start, description)

    async def update(self, task: str, *, state: TaskState | None = None, progress: float | None = None) -> AgentTask:
        return await self._threads.run(self._sync.update, task, state=state, progress=progress)

    async def list(self, *, closed: arg.Closed = False, limit: arg.Limit = 100) -> Sequence[AgentTask]:
        return await self._threads.run(self._sync.list, closed=closed, limit=limit)


class AsyncLessonHandle(Awaited[LessonHandle]):
    """`perdure.handles.lessons.LessonHandle`, awaited."""

    __slots__ = ()

    async def list(
        self, scope: LessonScope | None = None, *, archived: bool = False, ended: bool = False, limit: arg.Limit = 100
    ) -> Sequence[Lesson]:
        return await self._threads.run(self._sync.list, scope, archived=archived, ended=ended, limit=limit)

    async def add(self, text: str, scope: Reach = None, *, agent: OfAgent = None) -> Lesson:
        return await self._threads.run(self._sync.add, text, scope, agent=agent)

    async def remove(self, id: LessonId) -> Lesson:
        return await self._threads.run(self._sync.remove, id)

    async def archive(self, id: LessonId) -> Lesson:
        return await self._threads.run(self._sync.archive, id)

    async def restore(self, id: LessonId) -> Lesson:
        return await self._threads.run(self._sync.restore, id)

    async def pin(self, id: LessonId) -> Lesson:
        return await self._threads.run(self._sync.pin, id)

    async def unpin(self, id: LessonId) -> Lesson:
        return await self._threads.run(self._sync.unpin, id)

    async def take_from(self, reply: str, *, message: str | None = None) -> ReplyReport:
        return await self._threads.run(self._sync.take_from, reply, message=message)

    async def text(self, scope: Reach = None, *, agent: OfAgent = None) -> str:
        return await self._threads.run(self._sync.text, scope, agent=agent)

    async def edit(
        self, text: str, scope: Reach = None, *, agent: OfAgent = None, was: str | None = None
    ) -> Sequence[RefusedLesson]:
        return await self._threads.run(self._sync.edit, text, scope, agent=agent, was=was)


class AsyncMemory(AwaitedMemory):
    """`perdure.handles.memory.Memory`, awaited."""

    __slots__ = ()

    @property
    def conversation(self) -> AsyncConversation:
        return AsyncConversation(self._sync.conversation, self._threads)

    @property
    def memories(self) -> AsyncMemories:
        return AsyncMemories(self._sync.memories, self._threads)

    @property
    def entities(self) -> AsyncEntityHandle:
        return AsyncEntityHandle(self._sync.entities, self._threads)

    @property
    def todos(self) -> AsyncTodoHandle:
        return AsyncTodoHandle(self._sync.todos, self._threads)

    @property
    def instructions(self) -> AsyncInstructionHandle:
        return AsyncInstructionHandle(self._sync.instructions, self._threads)

    @property
    def lessons(self) -> AsyncLessonHandle:
        return AsyncLessonHandle(self._sync.lessons, self._threads)

    @property
    def state(self) -> AsyncState:
        return AsyncState(self._sync.state, self._threads)

    @property
    def series(self) -> AsyncUserSeries:
        return AsyncUserSeries(self._sync.series, self._threads)

    @property
    def journal(self) -> AsyncJournalHandle:
        return AsyncJournalHandle(self._sync.journal, self._threads)

    @property
    def tools(self) -> AsyncTools:
        return AsyncTools(self._sync.tools, self._threads)

    def as_agent(self) -> AsyncMemory:
        return AsyncMemory(self._sync.as_agent(), self._threads)

    @property
    def admin(self) -> AsyncAdminHandle:
        return AsyncAdminHandle(self._sync.admin, self._threads)

    async def remember(
        self,
        content: arg.Said,
        type: arg.About = "PROFILE",
        *,
        entities: arg.Entities = (),
        fact_type: arg.FactTypeArg = "fact",
        subject: arg.Subject = None,
        attribute: arg.Attribute = None,
        value: arg.Value = None,
        importance: arg.Importance = None,
        confidence: arg.Confidence = 1.0,
        valid_from: arg.ValidFrom = None,
        ended: arg.Ended = False,
        corrects: arg.Corrects = False,
        pinned: arg.Pinned = False,
        visible_to: arg.VisibleTo = None,
        source: arg.SourceName = "user",
    ) -> Outcome:
        return await self._threads.run(
            self._sync.remember,
            content,
            type,
            entities=entities,
            fact_type=fact_type,
            subject=subject,
            attribute=attribute,
            value=value,
            importance=importance,
            confidence=confidence,
            valid_from=valid_from,
            ended=ended,
            corrects=corrects,
            pinned=pinned,
            visible_to=visible_to,
            source=source,
        )

    async def remember_many(self, statements: arg.Statements) -> Sequence[Outcome]:
        return await self._threads.run(self._sync.remember_many, statements)

    async def undo(self, operation: arg.OperationNumber, *, cascade: bool = False) -> int:
        return await self._threads.run(self._sync.undo, operation, cascade=cascade)

    async def forget(
        self,
        *,
        entity: str | None = None,
        memory: str | None = None,
        messages: tuple[str, str] | None = None,
        user: bool = False,
    ) -> ForgetReport:
        return await self._threads.run(self._sync.forget, entity=entity, memory=memory, messages=messages, user=user)

    async def export(
        self, to: Target, format: ExportFormat = "jsonl", *, replace: arg.Replace = False, progress: Progress | None = None
    ) -> ExportReport:
        return await self._threads.run(self._sync.export, to, format, replace=replace, progress=progress)

    async def import_(
        self,
        source: Source,
        format: arg.ImportFormat = "auto",
        *,
        replace: bool = False,
        dry_run: arg.DryRun = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        return await self._threads.run(self._sync.import_, source, format, replace=replace, dry_run=dry_run, progress=progress)

    async def recall(
        self,
        query: arg.Question,
        *,
        kinds: Sequence[EntryKind] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        entities: Sequence[arg.Id] = (),
        sessions: Sequence[arg.Id] = (),
        as_of: arg.AsOf = None,
        known_at: arg.KnownAt = None,
        limit: int = 10,
        budget_tokens: int | None = None,
        neighbours: int = 0,
        explain: bool = False,
    ) -> Recall:
        return await self._threads.run(
            self._sync.recall,
            query,
            kinds=kinds,
            since=since,
            until=until,
            entities=entities,
            sessions=sessions,
            as_of=as_of,
            known_at=known_at,
            limit=limit,
            budget_tokens=budget_tokens,
            neighbours=neighbours,
            explain=explain,
        )

    async def before(
        self, goal: str, *, budget_tokens: arg.Budget = GOAL_TOKENS, target: GoalTarget = "first_step", deadline_s: float = 2.0
    ) -> Injection:
        return await self._threads.run(
            self._sync.before, goal, budget_tokens=budget_tokens, target=target, deadline_s=deadline_s
        )

    async def after(
        self,
        tool: arg.ToolName,
        result: object,
        goal: arg.Goal = "",
        *,
        mode: arg.Mode = None,
        allow: arg.Allowed = None,
        deny: arg.Denied = (),
        window: arg.AnsweredWindow = None,
        arguments: arg.ToolArguments = None,
        deadline_s: arg.Deadline = 5.0,
    ) -> KeptResult:
        return await self._threads.run(
            self._sync.after,
            tool,
            result,
            goal,
            mode=mode,
            allow=allow,
            deny=deny,
            window=window,
            arguments=arguments,
            deadline_s=deadline_s,
        )

    async def context(self, goal: arg.ContextGoal = None, *, budget_tokens: arg.ContextBudget = None) -> Context:
        return await self._threads.run(self._sync.context, goal, budget_tokens=budget_tokens)

    async def prompt(
        self, request: arg.Request = "", *, budget_tokens: arg.Budget = BUDGET_TOKENS, lessons: bool = True
    ) -> Prompt:
        return await self._threads.run(self._sync.prompt, request, budget_tokens=budget_tokens, lessons=lessons)

    def turn(self, *, wait_s: float = WAIT_S, lease_s: float = LEASE_S) -> AbstractAsyncContextManager[AsyncTurn]:
        return self._threads.entered(self._sync.turn(wait_s=wait_s, lease_s=lease_s), AsyncTurn)

    async def append(
        self,
        role: arg.MessageRole,
        content: arg.Content,
        *,
        id: arg.OwnId = None,
        at: arg.SaidAt = None,
        session: arg.IntoSession = None,
        tokens: arg.Tokens = None,
        metadata: arg.Metadata = None,
        tool_calls: arg.ToolCalls = (),
        tool_call_id: arg.ToolCallRef = None,
        failed: arg.Failed = False,
    ) -> Message:
        return await self._threads.run(
            self._sync.append,
            role,
            content,
            id=id,
            at=at,
            session=session,
            tokens=tokens,
            metadata=metadata,
            tool_calls=tool_calls,
            tool_call_id=tool_call_id,
            failed=failed,
        )

    async def append_many(self, messages: arg.Messages) -> list[Message]:
        return await self._threads.run(self._sync.append_many, messages)

    async def messages(
        self, limit: arg.Limit = 20, *, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        return await self._threads.run(self._sync.messages, limit, session=session, before=before, after=after)

    def __repr__(self) -> str:
        return f"Async{self._sync!r}"


class AsyncUserSeries(Awaited[UserSeries]):
    """`perdure.handles.series.UserSeries`, awaited."""

    __slots__ = ()

    def __call__(
        self,
        name: str,
        *,
        id_field: arg.IdField = UNSET,
        timestamp_field: arg.TimestampField = UNSET,
        id_template: arg.IdTemplate = UNSET,
        zone: arg.Zone = UNSET,
        settles_after_s: arg.SettlesAfter = UNSET,
        fresh_for_s: arg.FreshFor = UNSET,
        max_entries: arg.MaxEntries = UNSET,
        keep_days: arg.KeepDays = UNSET,
        description: arg.Description = UNSET,
    ) -> AsyncSeriesHandle:
        return AsyncSeriesHandle(
            self._sync(
                name,
                id_field=id_field,
                timestamp_field=timestamp_field,
                id_template=id_template,
                zone=zone,
                settles_after_s=settles_after_s,
                fresh_for_s=fresh_for_s,
                max_entries=max_entries,
                keep_days=keep_days,
                description=description,
            ),
            self._threads,
        )

    async def list(self, limit: arg.Limit = 100) -> Sequence[Series]:
        return await self._threads.run(self._sync.list, limit)


class AsyncSeriesHandle(AwaitedSeriesHandle):
    """`perdure.handles.series.SeriesHandle`, awaited."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return self._sync.name

    async def about(self) -> Series:
        return await self._threads.run(self._sync.about)

    async def configure(
        self,
        *,
        id_field: arg.IdField = UNSET,
        timestamp_field: arg.TimestampField = UNSET,
        id_template: arg.IdTemplate = UNSET,
        zone: arg.Zone = UNSET,
        settles_after_s: arg.SettlesAfter = UNSET,
        fresh_for_s: arg.FreshFor = UNSET,
        max_entries: arg.MaxEntries = UNSET,
        keep_days: arg.KeepDays = UNSET,
        description: arg.Description = UNSET,
    ) -> Series:
        return await self._threads.run(
            self._sync.configure,
            id_field=id_field,
            timestamp_field=timestamp_field,
            id_template=id_template,
            zone=zone,
            settles_after_s=settles_after_s,
            fresh_for_s=fresh_for_s,
            max_entries=max_entries,
            keep_days=keep_days,
            description=description,
        )

    async def remove(self) -> int:
        return await self._threads.run(self._sync.remove)

    async def merge(
        self,
        entries: Iterable[object],
        *,
        window: tuple[object, object] | None = None,
        complete: bool = True,
        newest_first: bool = True,
        infer: Infer = "none",
        strict: bool = False,
        api_calls: int = 1,
        request: str | None = None,
    ) -> MergeResult:
        return await self._threads.run(
            self._sync.merge,
            entries,
            window=window,
            complete=complete,
            newest_first=newest_first,
            infer=infer,
            strict=strict,
            api_calls=api_calls,
            request=request,
        )

    async def cleanup(self, keep_days: float = 90) -> Cleanup:
        return await self._threads.run(self._sync.cleanup, keep_days)

    async def query(
        self,
        start: arg.SeriesStart,
        end: arg.SeriesEnd,
        *,
        limit: Entries = None,
        page: str | None = None,
        coverage: CoverageRule = "ledger",
        fresh_for_s: StaleFor = None,
        by_first_seen: bool = False,
    ) -> SeriesAnswer:
        return await self._threads.run(
            self._sync.query,
            start,
            end,
            limit=limit,
            page=page,
            coverage=coverage,
            fresh_for_s=fresh_for_s,
            by_first_seen=by_first_seen,
        )

    async def gaps(self, start: arg.SeriesStart, end: arg.SeriesEnd) -> tuple[Span, ...]:
        return await self._threads.run(self._sync.gaps, start, end)

    async def windows(self, start: arg.SeriesStart, end: arg.SeriesEnd) -> Sequence[CoveredWindow]:
        return await self._threads.run(self._sync.windows, start, end)

    async def history(self, id: str, *, limit: arg.Limit = 100) -> Sequence[PastEntry]:
        return await self._threads.run(self._sync.history, id, limit=limit)

    async def count(self, start: FromStart = None, end: UpToEnd = None) -> int:
        return await self._threads.run(self._sync.count, start, end)

    async def first(self) -> Entry | None:
        return await self._threads.run(self._sync.first)

    async def last(self) -> Entry | None:
        return await self._threads.run(self._sync.last)

    async def per(
        self, period: Period, *, zone: str | None = None, start: FromStart = None, end: UpToEnd = None
    ) -> dict[datetime, int]:
        return await self._threads.run(self._sync.per, period, zone=zone, start=start, end=end)

    async def group(self, field: Field, *, start: FromStart = None, end: UpToEnd = None) -> dict[str, int]:
        return await self._threads.run(self._sync.group, field, start=start, end=end)

    async def distinct(self, field: Field, *, start: FromStart = None, end: UpToEnd = None) -> Sequence[str]:
        return await self._threads.run(self._sync.distinct, field, start=start, end=end)

    def entries(self, start: FromStart = None, end: UpToEnd = None) -> AsyncIterator[Entry]:
        return self._threads.each(self._sync.entries(start, end))

    def export(
        self, format: Literal["jsonl", "csv"] = "jsonl", *, start: FromStart = None, end: UpToEnd = None
    ) -> AsyncIterator[str]:
        return self._threads.each(self._sync.export(format, start=start, end=end))

    async def rows(self, start: FromStart = None, end: UpToEnd = None) -> list[dict[str, Json]]:
        return await self._threads.run(self._sync.rows, start, end)

    async def to_pandas(self, start: FromStart = None, end: UpToEnd = None) -> Any:
        return await self._threads.run(self._sync.to_pandas, start, end)

    async def to_polars(self, start: FromStart = None, end: UpToEnd = None) -> Any:
        return await self._threads.run(self._sync.to_polars, start, end)

    async def to_arrow(self, start: FromStart = None, end: UpToEnd = None) -> Any:
        return await self._threads.run(self._sync.to_arrow, start, end)

    def __repr__(self) -> str:
        return f"Async{self._sync!r}"


class AsyncDocumentHandle(Awaited[DocumentHandle]):
    """`perdure.handles.sessions.documents.DocumentHandle`, awaited."""

    __slots__ = ()

    async def load(self, document: DocumentId, *, revision: int | None = None) -> ContextData:
        return await self._threads.run(self._sync.load, document, revision=revision)

    async def save(self, document: ContextData | Mapping[str, Json]) -> SavedContext:
        return await self._threads.run(self._sync.save, document)

    async def compact(
        self,
        document: DocumentId,
        *,
        force: bool = False,
        max_history: int = 50,
        max_tokens: int = 100000,
        summary_chars_max: int = 8000,
    ) -> CompactionReport:
        return await self._threads.run(
            self._sync.compact,
            document,
            force=force,
            max_history=max_history,
            max_tokens=max_tokens,
            summary_chars_max=summary_chars_max,
        )

    async def list(self, limit: arg.Limit = 100) -> Sequence[str]:
        return await self._threads.run(self._sync.list, limit)

    async def versions(self, document: DocumentId) -> Sequence[ContextVersion]:
        return await self._threads.run(self._sync.versions, document)

    async def delete(self, document: DocumentId) -> bool:
        return await self._threads.run(self._sync.delete, document)


class AsyncState(Awaited[State]):
    """`perdure.handles.state.State`, awaited."""

    __slots__ = ()

    async def save(
        self,
        key: Key,
        value: Json,
        *,
        expected: Expected = None,
        expires_in_s: float | None = None,
        request: Request = None,
        verbatim: bool = False,
        index: Sequence[IndexText] = (),
    ) -> int:
        return await self._threads.run(
            self._sync.save,
            key,
            value,
            expected=expected,
            expires_in_s=expires_in_s,
            request=request,
            verbatim=verbatim,
            index=index,
        )

    async def append(self, key: Key, items: Sequence[Json], *, expected: Expected = None, request: Request = None) -> int:
        return await self._threads.run(self._sync.append, key, items, expected=expected, request=request)

    async def load(self, key: Key, default: Json = None, *, revision: OfRevision = None) -> Json:
        return await self._threads.run(self._sync.load, key, default, revision=revision)

    async def find(self, key: Key, *, revision: OfRevision = None) -> StateValue:
        return await self._threads.run(self._sync.find, key, revision=revision)

    async def delete(self, key: Key, *, expected: Expected = None) -> bool:
        return await self._threads.run(self._sync.delete, key, expected=expected)

    async def keys(self) -> Sequence[str]:
        return await self._threads.run(self._sync.keys)

    async def list(self, pattern: Pattern = "*", *, limit: int | None = None) -> Sequence[KeyInfo]:
        return await self._threads.run(self._sync.list, pattern, limit=limit)

    async def search(self, pattern: Pattern = "*", *, query: str | None = None, limit: int | None = None) -> StateMatches:
        return await self._threads.run(self._sync.search, pattern, query=query, limit=limit)

    async def history(self, key: Key, *, limit: arg.Limit = 100, before: arg.BeforeNumber = None) -> Sequence[Revision]:
        return await self._threads.run(self._sync.history, key, limit=limit, before=before)

    async def restore(self, key: Key, revision: int) -> int:
        return await self._threads.run(self._sync.restore, key, revision)

    async def clear(self) -> int:
        return await self._threads.run(self._sync.clear)


class AsyncTools(Awaited[Tools]):
    """`perdure.handles.tools.Tools`, awaited."""

    __slots__ = ()

    def read_only(self) -> AsyncTools:
        return AsyncTools(self._sync.read_only(), self._threads)

    def only(self, sets: Sequence[str]) -> AsyncTools:
        return AsyncTools(self._sync.only(sets), self._threads)

    def names(self) -> Sequence[str]:
        return self._sync.names()

    async def sets(self) -> Mapping[str, Sequence[str]]:
        return await self._threads.run(self._sync.sets)

    def permissions(self) -> Mapping[str, Permission]:
        return self._sync.permissions()

    def schemas(self, style: str = "openai") -> list[Result]:
        return self._sync.schemas(style)

    async def call_tool(self, name: str, params: Any = None) -> Result:
        return await self._threads.run(self._sync.call_tool, name, params)

    async def accept(self, suggested: KeptResult, result: object) -> KeptResult:
        return await self._threads.run(self._sync.accept, suggested, result)

    async def merge_timeseries_state(
        self,
        state_key: str,
        new_entries: Sequence[object],
        id_field: str = ID_FIELD,
        timestamp_field: str = TIMESTAMP_FIELD,
        *,
        window_start: object = None,
        window_end: object = None,
        complete: bool = True,
        newest_first: bool = True,
        id_template: str | None = None,
        infer: Infer = "none",
        strict: bool = False,
        api_calls: int = 1,
        request: str | None = None,
    ) -> Result:
        return await self._threads.run(
            self._sync.merge_timeseries_state,
            state_key,
            new_entries,
            id_field,
            timestamp_field,
            window_start=window_start,
            window_end=window_end,
            complete=complete,
            newest_first=newest_first,
            id_template=id_template,
            infer=infer,
            strict=strict,
            api_calls=api_calls,
            request=request,
        )

    async def query_timeseries_state(
        self,
        state_key: str,
        start_time: object = None,
        end_time: object = None,
        timestamp_field: str = TIMESTAMP_FIELD,
        *,
        start: object = None,
        end: object = None,
        coverage: CoverageRule = "ledger",
        fresh_for_s: float | None = None,
        limit: int | None = None,
        page: str | None = None,
        by_first_seen: bool = False,
    ) -> Result:
        return await self._threads.run(
            self._sync.query_timeseries_state,
            state_key,
            start_time,
            end_time,
            timestamp_field,
            start=start,
            end=end,
            coverage=coverage,
            fresh_for_s=fresh_for_s,
            limit=limit,
            page=page,
            by_first_seen=by_first_seen,
        )

    async def cleanup_old_timeseries(
        self, state_key: str, keep_days: float = 90, timestamp_field: str = TIMESTAMP_FIELD
    ) -> Result:
        return await self._threads.run(self._sync.cleanup_old_timeseries, state_key, keep_days, timestamp_field)
