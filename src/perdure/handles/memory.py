"""`Memory`: a handle bound to one scope. Every piece of data is reached through one; there is no call without a scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from perdure.domain.accesses import Access
from perdure.domain.context import Context
from perdure.domain.errors import InvalidInput, Unsupported
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
from perdure.domain.text import brief, check_flag, utf8_size
from perdure.engine.auditing import read_export
from perdure.engine.committing import Outcome
from perdure.handles import oversight, portable
from perdure.handles.conversation import Conversation, ConversationServices, Turn, held_turn, new_message
from perdure.handles.instructions import InstructionHandle
from perdure.handles.knowledge import (
    EntityHandle,
    KnowledgeServices,
    Memories,
    RememberFields,
    TaskHandle,
    TodoHandle,
    check_ref,
    remember,
)
from perdure.handles.lessons import LessonHandle, LessonServices
from perdure.handles.oversight import AfterFields, BeforeFields, OversightServices, Ran, RunFields
from perdure.handles.portable import Importation, PortableServices, Source
from perdure.handles.recall import RecallFields, RecallServices, recall
from perdure.handles.series import SeriesHandle, SeriesRules, SeriesServices
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.handles.transcripts import TranscriptHandle
from perdure.handles.watching import watched
from perdure.ports.clock import Clock
from perdure.ports.store import Progress
from perdure.services.accessing import AccessLog
from perdure.services.auditing import AuditReport
from perdure.services.curating import Curation
from perdure.services.exporting import Target
from perdure.services.extracting import Learned
from perdure.services.forgetting import Forgotten
from perdure.services.history import History
from perdure.services.ingest import Ingest
from perdure.services.overviewing import Overviewing
from perdure.services.prompting import BUDGET_TOKENS
from perdure.services.series import check_name
from perdure.services.spans import CREATE, DELETE, SEARCH, traced
from perdure.services.state import StateService
from perdure.services.transcripts import Transcripts
from perdure.services.turns import LEASE_S, WAIT_S

if TYPE_CHECKING:
    from typing import Unpack


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """What a handle calls."""

    clock: Clock
    ingest: Ingest
    history: History
    conversation: ConversationServices
    state: StateService
    series: SeriesServices
    transcripts: Transcripts | None
    knowledge: KnowledgeServices
    recall: RecallServices
    oversight: OversightServices
    lessons: LessonServices
    overviewing: Overviewing
    portable: PortableServices
    log: AccessLog


class Memory:
    """What one user and one agent have between them on one channel. Cheap to make, safe to share between threads."""

    __slots__ = ("_do", "scope")

    def __init__(self, scope: Scope, services: MemoryServices) -> None:
        self.scope = scope
        self._do = services

    @property
    def state(self) -> State:
        """Key-value state of this user, shared by their agents and channels."""
        return State(self.scope.owner, self._do.state)

    def series(self, name: str, **rules: Unpack[SeriesRules]) -> SeriesHandle:
        """A time series of this user, shared by their agents and channels. Rules are fixed at its first use."""
        check_name(name)
        return SeriesHandle(self.scope.owner, name, rules, self._do.series)

    def list_series(self, limit: int = 100) -> Sequence[Series]:
        """The series there are, by name."""
        return self._do.series.series.list_series(self.scope.owner, limit=limit)

    @property
    def tools(self) -> Tools:
        """State and series as tools for an agent."""
        return Tools(self.state, self.series)

    @property
    def conversation(self) -> Conversation:
        """The sessions of this address, their working sets and the layers over them."""
        return Conversation(self.scope, self._do.conversation)

    @property
    def transcripts(self) -> TranscriptHandle:
        """The Markdown files of this user's sessions; `Unsupported` unless the setting `files_dir` says where they are."""
        if self._do.transcripts is None:
            raise Unsupported("no transcripts are kept; set `files_dir` to the folder they should be in")
        return TranscriptHandle(self.scope, self._do.transcripts)

    def overview(self, *, days: int = 30) -> Overview:
        """How much is held of what, and how much came and changed on each of the last days."""
        return self._do.overviewing.overview(self.scope, days=days)

    # -- what is known

    @traced(CREATE)
    def remember(self, content: str, type: MemoryType = "PROFILE", **fields: Unpack[RememberFields]) -> Outcome:
        """Keep a statement about the user's world: `remember("Lives in Austin", attribute="lives_in", value="Austin")`.

        Saying the same again counts a mention. A new value of a single-valued attribute closes the old one, which stays
        in the history. Optional: `entities` (`"person:John Doe"`, the primary one first), `fact_type`, `subject` (default: the
        user), `attribute` and `value`, `importance`, `confidence`, `valid_from`, `ended`, `corrects`, `pinned`,
        `visible_to` (one agent), `source`.
        """
        return remember(self.scope, self._do.knowledge, content, type, fields)

    @traced(CREATE)
    def seed(self, text: str) -> Sequence[Outcome]:
        """Learn from a text about the user that somebody wrote for this purpose, such as a profile."""
        return self._do.knowledge.extracting.seed(self.scope, text)

    @property
    def memories(self) -> Memories:
        """What is known: listing, looking back, pinning, archiving."""
        return Memories(self.scope, self._do.knowledge.knowledge)

    @property
    def entities(self) -> EntityHandle:
        """The people, places, organisations and projects that memories are about."""
        return EntityHandle(self.scope, self._do.knowledge.entities)

    @property
    def todos(self) -> TodoHandle:
        """What the user means to do, as told to this agent."""
        return TodoHandle(self.scope, self._do.knowledge.todos)

    @property
    def instructions(self) -> InstructionHandle:
        """What the user has told this agent to do from now on."""
        return InstructionHandle(self.scope, self._do.knowledge.instructions)

    @property
    def lessons(self) -> LessonHandle:
        """How to behave, as learned before: by everybody's agents, by this one, from this user, or on this channel."""
        return LessonHandle(self.scope, self._do.lessons.lessons)

    @property
    def tasks(self) -> TaskHandle:
        """What this agent itself is doing."""
        return TaskHandle(self.scope, self._do.knowledge.todos)

    def extract(self, session: str | None = None, *, dry_run: bool = False) -> Learned:
        """Look through what is new in a session (default: the one that goes on) for something to learn, now.

        A job does so anyway. With `dry_run` nothing is kept.
        """
        check_flag(dry_run, "dry_run")
        held = self._do.conversation.sessions.find(self.scope, session)
        return self._do.knowledge.extracting.extract(self.scope, session=held, dry_run=dry_run)

    def curate(self, *, dry_run: bool = False) -> Curation:
        """Fold scattered memories of one entity and flag what clashes, now; a job does so once a day."""
        check_flag(dry_run, "dry_run")
        return self._do.knowledge.curating.curate(self.scope.owner, self.scope.address, dry_run=dry_run)

    def undo(self, operation: int, *, cascade: bool = False) -> int:
        """Take back the action that an operation of the journal belongs to; the number of what did so.

        `Conflict` if later actions build on it, unless `cascade`, which takes those back, too.
        """
        check_flag(cascade, "cascade")
        return self._do.knowledge.undoing.undo(self.scope.owner, operation, cascade=cascade)

    def diff(self, start: datetime, end: datetime) -> Sequence[Operation]:
        """What changed between two moments, one operation per row: as it was before, and as it was after."""
        return self._do.knowledge.knowledge.diff(self.scope, start, end)

    @traced(DELETE)
    def forget(
        self,
        *,
        entity: str | None = None,
        memory: str | None = None,
        messages: tuple[str, str] | None = None,
        user: bool = False,
    ) -> Forgotten:
        """Remove data for good, with all that was derived from it, and overwrite what it occupied.

        Name one thing: an entity, a memory, the first and last of a run of messages, or `user=True` for everything.
        """
        if not isinstance(user, bool):
            raise InvalidInput(f"`user` = {brief(user)} must be True or False; `forget` is about the user of this handle")
        if messages is not None and (not isinstance(messages, tuple | list) or len(messages) != 2):
            raise InvalidInput(f"`messages` = {brief(messages, 60)} must be two message ids: the first and the last")
        do = self._do.knowledge.forgetting
        given = {"entity": entity, "memory": memory, "messages": messages, "user": user or None}
        chosen = [name for name, value in given.items() if value is not None]
        if len(chosen) != 1:
            raise InvalidInput(f"`forget` was given {', '.join(chosen) or 'nothing'}; name exactly one thing")
        if entity is not None:
            return do.forget_entity(self.scope, check_ref(entity))
        if memory is not None:
            utf8_size(memory, "`memory`")
            return do.forget_memory(self.scope, memory)
        if messages is not None:
            return do.forget_messages(self.scope, *messages)
        return do.forget_user(self.scope.owner)

    def audit(self, export: str | None = None) -> AuditReport:
        """What is wrong with what is remembered: doubles, junk, stale, clashing, orphaned, too much.

        With `export`, the text of another engine's export (mem0, or the memory server of MCP) is looked through instead.
        """
        auditing = self._do.knowledge.auditing
        return auditing.audit(self.scope.owner) if export is None else auditing.report(read_export(export))

    def export(
        self, to: Target, format: ExportFormat = "jsonl", *, replace: bool = False, progress: Progress | None = None
    ) -> ExportReport:
        """Write all of this user's data, as of one moment, whichever agents and channels it came by.

        `jsonl`: every row as a line, to a file (packed if its name ends with `.gz`) or to something open in binary mode;
        `import_` brings back exactly that. `vault`: a folder of Markdown notes, in which only what has changed is written;
        notes that people edited stay as they are unless `replace`.
        """
        return portable.export(self.scope, self._do.portable, to, format, replace=replace, progress=progress)

    def import_(
        self,
        source: Source,
        format: ImportFormat = "auto",
        *,
        replace: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Take over data as this user's: a lossless export (`jsonl`), or what a `vault`, `mem0` or an `mcp` server remembers.

        An export replaces nothing unless `replace`: a user that holds data is a `Conflict`. It is taken over as a whole or not
        at all. The others are proposals that are added to what is known; doing it again changes nothing.
        """
        how = Importation(format, replace, dry_run, progress)
        return portable.import_(self.scope, self._do.portable, source, how)

    # -- finding again

    @traced(SEARCH)
    def recall(self, query: str, **fields: Unpack[RecallFields]) -> Recall:
        """What is remembered that answers `query`, best first, each hit with its source and the trace of its score.

        Only what is current, and what this agent may see. Optional: `kinds` (some of message, memory, instruction, todo,
        digest, lesson, state, series), `time_range` (two moments), `entities` (`"person:John Doe"`), `sessions` (ids),
        `as_of` (what was so then), `known_at` (as far as was known then), `limit` (default 10), `budget_tokens`,
        `neighbours` (messages on either side). What the answer does not cover stands in `uncovered`.
        """
        return recall(self.scope, self._do.recall, query, fields)

    def reindex(self, progress: Progress | None = None) -> int:
        """Make the search index of this user anew, while the old one answers; how many entries it has."""
        return self._do.recall.indexing.reindex(self.scope.owner, progress)

    # -- the overseer

    @traced(SEARCH)
    def before(self, goal: str, **fields: Unpack[BeforeFields]) -> Injection:
        """What to give to an agent before it works on `goal`: saved state, series, memories, lessons that matter; or nothing.

        Optional: `budget_tokens` (default 2,000), `target` (`first_step`; `system`; `goal` for the goal with what is relevant
        behind it), `deadline_s` (default 2: then the goal runs with what is ready). Why each thing was taken or left is in
        `choices`; the decision is recorded, see `decisions()`.
        """
        return oversight.before(self.scope, self._do.oversight, goal, fields)

    def after(self, tool: str, result: object, goal: str = "", **fields: Unpack[AfterFields]) -> Kept:
        """What becomes of a tool's result: nothing (mode `manual`), a suggestion (`suggest`), or it is saved (`auto`).

        Optional: `mode` (default: the setting `save_results`), `allow` and `deny` (lists of tools), `window` (two moments that
        were asked of the tool and are answered completely: they count as covered), `deadline_s`. Secrets are refused.
        """
        return oversight.after(self.scope, self._do.oversight, tool, result, goal, fields)

    def accept(self, suggested: Kept, result: object) -> Kept:
        """Save what `after` suggested; `result` is the one it was made of."""
        return self._do.oversight.keeper.accept(self.scope, suggested, result)

    def run(
        self,
        goal: str,
        agent: Callable[..., Any],
        tools: Mapping[str, Callable[..., Any]] | None = None,
        **fields: Unpack[RunFields],
    ) -> Ran:
        """Have an agent work on a goal: `agent(text, tools)` is called with the goal and what is relevant, and with the tools.

        Each result of a tool is looked at on its way to the agent, as `after` does. Optional: `budget_tokens`, `deadline_s`,
        `mode`, `allow`, `deny`.
        """
        return oversight.run(self.scope, self._do.oversight, goal, agent, {} if tools is None else tools, fields)

    def decisions(
        self, kind: DecisionKind | None = None, *, limit: int = oversight.DECISIONS_SHOWN, before: str | None = None
    ) -> Sequence[Decision]:
        """What the overseer decided here, newest first: for which goal or tool, what it chose and why."""
        return oversight.decisions(self.scope, self._do.oversight, kind=kind, limit=limit, before=before)

    def usage(self) -> Sequence[Usage]:
        """What models were asked on behalf of this user, by purpose and outcome: how often, for how many tokens, how long."""
        return self._do.oversight.store.read(self.scope.owner, lambda view: list(view.oversight.list_usage()))

    # -- the conversation

    @traced(SEARCH)
    def context(self, goal: str | None = None, *, budget_tokens: int | None = None) -> Context:
        """What the agent should be given now: what is remembered of this user, then the conversation as it stands.

        With a `goal` (a question, or what is to be done), what fits it is looked up, too. Ends a session that was silent
        for too long and folds what is due before it answers. Never over the budget (default: the setting
        `history_tokens_max`); what did not fit is named in `dropped`.
        """
        if goal is not None:
            utf8_size(goal, "`goal`")
        return self._do.conversation.assembly.context(self.scope, goal=goal, budget_tokens=budget_tokens)

    def prompt(self, request: str = "", *, budget_tokens: int = BUDGET_TOKENS) -> Prompt:
        """What the agent should be told of itself: soul, mood, memory (the lessons that hold here) and skill, then the time.

        The agent is that of this handle; if it names none, the one that the channel is mapped to (`engine.agents`). Files are
        read anew each time. Never over the budget: then those lessons are shown that fit `request` best.
        """
        return self._do.lessons.prompting.prompt(self.scope, request, budget_tokens=budget_tokens)

    def turn(self, *, wait_s: float = WAIT_S, lease_s: float = LEASE_S) -> AbstractContextManager[Turn]:
        """Hold the floor of this channel: `with ana.turn() as turn: turn.append(…)`. One turn at a time.

        The lease is prolonged while the block runs; a process that dies loses it after `lease_s`. `Unavailable` if
        another turn holds the channel for longer than `wait_s`.
        """
        return held_turn(self.scope, self._do.conversation, wait_s=wait_s, lease_s=lease_s)

    @traced(CREATE)
    def append(self, role: str, content: str, **fields: Unpack[MessageFields]) -> Message:
        """Log one message, durably, and queue the work it causes.

        `role` is `user`, `assistant`, `tool` or `system`. Optional: `id` (repeating it is a no-op that answers with
        `repeated=True`; the same id with another body is a `Conflict`), `at` (aware; default now), `session` (default:
        the open one, or a new one after a long silence), `tokens` (default: estimated), `metadata` (a JSON object),
        `tool_calls` (of an assistant message), `tool_call_id` and `failed` (of a tool message).
        """
        return self._do.ingest.append(self.scope, [new_message(role, content, fields)])[0]

    @traced(CREATE)
    def append_many(self, messages: Iterable[NewMessage]) -> list[Message]:
        """Log several messages in one transaction: all of them, in order, or none."""
        return self._do.ingest.append(self.scope, messages)

    def messages(
        self, limit: int = 20, *, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        """The latest messages, oldest first; of one session, or on either side of the message with a given id."""
        return self._do.history.messages(self.scope, limit=limit, session=session, before=before, after=after)

    def message(self, id: str) -> Message:
        """One message by its id; `NotFound` if this address has none."""
        return self._do.history.message(self.scope, id)

    def sessions(self, limit: int = 20) -> Sequence[Session]:
        """The sessions of this address, newest first."""
        return self._do.history.sessions(self.scope, limit=limit)

    def tally(self, session: str | None = None) -> Tally:
        """Counts of a session (default: the newest). Derived by a job, so they may lag behind the log."""
        return self._do.history.tally(self.scope, session)

    def journal(self, limit: int = 50, *, before: int | None = None) -> Sequence[Operation]:
        """What was changed in this user's derived data, by whom and why, newest first."""
        return self._do.history.journal(self.scope, limit=limit, before=before)

    def accesses(self, limit: int = 50, *, before: str | None = None) -> Sequence[Access]:
        """Who read or changed what of this user's data, newest first: what was logged while the setting `access_log` was on.

        `before` goes on behind an entry of the list before: its id.
        """
        return self._do.log.list_(self.scope.owner, limit=limit, before=before)

    def jobs(self, state: JobState | None = None, *, limit: int = 100) -> Sequence[Job]:
        """This user's jobs, in one state or in all."""
        return self._do.history.jobs(self.scope, state, limit=limit)

    def retry_jobs(self) -> int:
        """Give this user's dead jobs fresh tries; how many there were."""
        return self._do.history.retry_jobs(self.scope, self._do.clock.now())

    def __repr__(self) -> str:
        owner, address = self.scope.owner, self.scope.address
        return f"Memory(space={owner.space!r}, user={owner.user!r}, agent={address.agent!r}, channel={address.channel!r})"


def bound(scope: Scope, services: MemoryServices) -> Memory:
    """The handle of a scope; if there is an access log, every call of it is in there."""
    return watched(Memory(scope, services), services.log, scope)


def confined(memory: Memory) -> Memory:
    """The same for a caller who may reach this user alone: what all users of the space share can only be read."""
    do = memory._do
    lessons = replace(do.lessons, lessons=replace(do.lessons.lessons, confined=True))
    return bound(memory.scope, replace(do, lessons=lessons))
