"""`Memory`: a handle bound to one scope. Every piece of data is reached through one; there is no call without a scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace as changed
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from perdure.domain.context.context import Context, Prompt
from perdure.domain.context.recall import ENTRY_KINDS, EntryKind, Recall, RecallQuery
from perdure.domain.conversation.messages import Message, NewMessage
from perdure.domain.knowledge.memories import only_people
from perdure.domain.knowledge.proposals import NewStatement
from perdure.domain.oversight import Injection, KeptResult
from perdure.domain.oversight import Target as GoalTarget
from perdure.domain.reports import ExportFormat, ExportReport, ImportReport
from perdure.domain.scope import Scope
from perdure.domain.text.rules import check_flag, check_texts, utf8_size
from perdure.domain.times.spans import span_between
from perdure.engine.knowledge.outcomes import Outcome
from perdure.handles import arguments as arg
from perdure.handles import oversight
from perdure.handles.admin import AdminHandle, JournalHandle
from perdure.handles.conversation import Conversation, Turn, held_turn
from perdure.handles.knowledge import (
    EntityHandle,
    InstructionHandle,
    Memories,
    TodoHandle,
)
from perdure.handles.lessons import LessonHandle
from perdure.handles.operation import Arg, Handle, fresh, fresh_as, fresh_by, names, operation, space_scope, unlogged
from perdure.handles.oversight import DeclaredWindows, GoalRun
from perdure.handles.registry.services import MemoryServices
from perdure.handles.series import UserSeries
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.ports.clock import Clock
from perdure.ports.files import Source, Target
from perdure.ports.store import Progress
from perdure.services.access.log import CREATE, DELETE, SEARCH, AccessLog
from perdure.services.context.assembly import BUDGET_TOKENS
from perdure.services.context.recall import NEIGHBOURS_MAX
from perdure.services.conversation.append import LEASE_S, WAIT_S
from perdure.services.forget.forget import ForgetReport
from perdure.services.oversight.after import AfterRequest
from perdure.services.oversight.request import BUDGET_TOKENS as GOAL_TOKENS
from perdure.services.oversight.request import BeforeRequest

MISSES_TOLD = 5
"""An explanation of recall names so many of those that were left out."""


def _forgotten_at(scope: Scope, given: Mapping[str, Any]) -> Scope:
    """Nothing is left of a user who is forgotten, so what did that is in the log of the space, and does not say of whom."""
    return space_scope(scope.owner.space, scope.address) if given.get("user") else scope


def _of_run(_memory: Memory, _given: Mapping[str, Any], ran: GoalRun) -> Iterable[object]:
    return (ran.injection, *ran.kept)


class Memory(Handle):
    """The memory of one user, for one agent on one channel. Cheap to make, safe to share between threads."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, services: MemoryServices, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = services

    @property
    def conversation(self) -> Conversation:
        """Sessions, summaries and transcripts."""
        return fresh_as(self, Conversation(self.scope, self._do.conversation, self._log))

    @property
    def memories(self) -> Memories:
        """Facts: list, correct, pin, archive, learn."""
        return fresh_as(self, Memories(self.scope, self._do.knowledge, self._do.conversation.sessions, self._log))

    @property
    def entities(self) -> EntityHandle:
        """The people, places, organisations and projects that memories are about."""
        return fresh_as(self, EntityHandle(self.scope, self._do.knowledge.entities, self._log))

    @property
    def todos(self) -> TodoHandle:
        """The user's todos with this agent, and the agent's own tasks."""
        return fresh_as(self, TodoHandle(self.scope, self._do.knowledge.todos, self._log))

    @property
    def instructions(self) -> InstructionHandle:
        """The user's standing instructions to this agent."""
        return fresh_as(self, InstructionHandle(self.scope, self._do.knowledge.instructions, self._log))

    @property
    def lessons(self) -> LessonHandle:
        """Rules of behaviour for this agent, user and channel."""
        return LessonHandle(self.scope, self._do.lessons.lessons, self._log)

    @property
    def state(self) -> State:
        """Key-value state of this user, shared by their agents and channels."""
        return fresh_as(self, State(self.scope, self._do.state, self._do.state_search, self._log))

    @property
    def series(self) -> UserSeries:
        """Time series of this user, shared by their agents and channels: `ana.series("runs")` opens one."""
        return UserSeries(self.scope, self._do.series, self._log)

    @property
    def journal(self) -> JournalHandle:
        """Changes, decisions and accesses, and who made them."""
        return JournalHandle(self.scope, self._do.admin, self._do.log, self._log)

    @property
    def tools(self) -> Tools:
        """Tools for a model, your own included; what it stores with them has the agent's trust."""
        return Tools(self.as_agent(), self._do.oversight.keeper, self._do.tools, self._log)

    @unlogged("it opens a handle")
    def as_agent(self) -> Memory:
        """The same handle with an agent's trust: it cannot overwrite what a person said."""
        return bound(self.scope, self._do.by_agent())

    @property
    def admin(self) -> AdminHandle:
        """Counts, jobs, the search index and model costs of this user."""
        return fresh_as(self, AdminHandle(self.scope, self._do.admin, self._log))

    # -- what is known

    @operation("change", span=CREATE)
    def remember(
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
        """Keep a statement about the user's world: `remember("Lives in Austin", attribute="lives_in", value="Austin")`.

        Saying the same again counts a mention. A new value of a single-valued attribute closes the old one, which stays
        in the history. Entities are texts such as `"person:John Doe"`.
        """
        said = NewStatement(
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
        return self._do.knowledge.knowledge.remember_many(self.scope, [said])[0]

    @operation("change", span=CREATE)
    def remember_many(self, statements: arg.Statements) -> Sequence[Outcome]:
        """Keep several statements in one transaction: all of them, in order, or none. Each can be undone by itself."""
        return self._do.knowledge.knowledge.remember_many(self.scope, statements)

    @operation("change", about=names("operation", "operation"))
    def undo(
        self,
        operation: arg.OperationNumber,
        *,
        cascade: Annotated[bool, Arg("Also undo what builds on it.")] = False,
    ) -> int:
        """Undo the action that an operation of the journal belongs to. Returns the number of the operation that did so.

        `Conflict` if later actions build on it, unless `cascade`, which takes those back, too.
        """
        check_flag(cascade, "cascade")
        return self._do.knowledge.undo.undo(self.scope, operation, cascade=cascade)

    @operation("erase", logged_at=_forgotten_at, span=DELETE)
    @fresh()
    def forget(
        self,
        *,
        entity: Annotated[str | None, arg.a_reference("An entity, wherever it is named.")] = None,
        memory: Annotated[str | None, arg.an_id("A memory's key.")] = None,
        messages: Annotated[tuple[str, str] | None, Arg("The first and the last id of a run of messages.")] = None,
        user: Annotated[bool, Arg("Everything of this user.")] = False,
    ) -> ForgetReport:
        """Remove data for good, with all that was derived from it, and overwrite what it occupied.

        Name one thing: an entity, a memory, the first and last of a run of messages, or `user=True` for everything.
        """
        forgetter = self._do.knowledge.forgetter
        return forgetter.forget(self.scope, entity=entity, memory=memory, messages=messages, user=user)

    @operation("read", first=True)
    def export(
        self,
        to: Target,
        format: Annotated[ExportFormat, Arg("What to write.")] = "jsonl",
        *,
        replace: arg.Replace = False,
        progress: Progress | None = None,
    ) -> ExportReport:
        """Write all of this user's data to a file, as of one moment.

        `jsonl`: every row as a line, to a file (packed if its name ends with `.gz`) or to something open in binary mode;
        `import_` brings back exactly that. `vault`: a folder of Markdown notes, in which only what has changed is written;
        notes that people edited stay as they are unless `replace`.
        """
        return self._do.portability().export(self.scope, to, format, replace=replace, progress=progress)

    @operation("change", first=True)
    def import_(
        self,
        source: Source,
        format: arg.ImportFormat = "auto",
        *,
        replace: Annotated[bool, Arg("Replace all data of the user.")] = False,
        dry_run: arg.DryRun = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import data for this user: an export (`jsonl`), or data of a `vault`, `mem0`, `mcp` or a plugin.

        An export replaces nothing unless `replace`: a user that holds data is a `Conflict`. It is taken over as a whole or not
        at all. The others are proposals that are added to what is known; doing it again changes nothing.
        """
        only_people(self._do.writer, "import data", "the user does, with `perdure admin import`")
        return self._do.portability().import_(self.scope, source, format, replace=replace, dry_run=dry_run, progress=progress)

    @operation("read", span=SEARCH)
    @fresh(indexed=True)
    def recall(
        self,
        query: arg.Question,
        *,
        kinds: Annotated[Sequence[EntryKind] | None, Arg("Of these kinds only.", min_length=1, max_length=8)] = None,
        since: Annotated[datetime | None, Arg("Said at, or about, this time or later.")] = None,
        until: Annotated[datetime | None, Arg("Said at, or about, a time before this.")] = None,
        entities: Annotated[Sequence[arg.Id], Arg("About one of these entities only: `person:John Doe`.", max_length=100)] = (),
        sessions: Annotated[Sequence[arg.Id], Arg("From these sessions only.", max_length=100)] = (),
        as_of: arg.AsOf = None,
        known_at: arg.KnownAt = None,
        limit: Annotated[int, Arg("Hits at most.", ge=1, le=100)] = 10,
        budget_tokens: Annotated[int | None, Arg("Tokens of all hits at most.", ge=1, le=arg.TOKENS_MAX)] = None,
        neighbours: Annotated[int, Arg("Messages on either side of a found one.", ge=0, le=NEIGHBOURS_MAX)] = 0,
        explain: Annotated[bool, Arg("Say in words why each hit stands where it does.")] = False,
    ) -> Recall:
        """Search everything stored for `query`, best first, each hit with its source and score.

        Only what is current, and what this agent may see. What the answer does not cover stands in `uncovered`.
        """
        check_flag(explain, "explain")
        asked = RecallQuery(
            query,
            kinds=ENTRY_KINDS if kinds is None else check_texts(kinds, "kinds"),  # type: ignore[arg-type]  # checked by the service
            time_range=span_between(since, until),
            entities=check_texts(entities, "entities"),
            sessions=check_texts(sessions, "sessions"),
            as_of=as_of,
            known_at=known_at,
            limit=limit,
            budget_tokens=budget_tokens,
            neighbours=neighbours,
            misses=MISSES_TOLD if explain else 0,
        )
        found = self._do.recall.recall(self.scope, asked)
        return changed(found, explanation=found.explain()) if explain else found

    # -- the overseer

    @operation("read", permission="write", span=SEARCH)
    @fresh(indexed=True)
    def before(
        self,
        goal: Annotated[str, Arg("What the agent will work on.", min_length=1, max_length=20_000, pattern=arg.WORDS)],
        *,
        budget_tokens: arg.Budget = GOAL_TOKENS,
        target: Annotated[GoalTarget, Arg("Where the text goes.")] = "first_step",
        deadline_s: Annotated[float, Arg("Seconds; then the goal runs with what is ready.", gt=0, le=60)] = 2.0,
    ) -> Injection:
        """Get what an agent needs for `goal`: state, series, memories, lessons; or nothing.

        With the target `goal`, the text is the goal with what is relevant behind it. Why each thing was taken or left is
        in `choices`; the decision is recorded, see `journal.decisions()`.
        """
        return self._do.oversight.overseer.before(self.scope, BeforeRequest(goal, budget_tokens, target, deadline_s))

    @operation("change")
    def after(
        self,
        tool: arg.ToolName,
        result: Annotated[object, Arg("What the tool returned.")],
        goal: arg.Goal = "",
        *,
        mode: arg.Mode = None,
        allow: arg.Allowed = None,
        deny: arg.Denied = (),
        window: arg.AnsweredWindow = None,
        arguments: arg.ToolArguments = None,
        deadline_s: arg.Deadline = 5.0,
    ) -> KeptResult:
        """Keep a tool's result: not at all (mode `manual`), as a suggestion (`suggest`), or saved (`auto`).

        A `window` counts as covered, or what the `arguments` say; `covers` tells how much. Secrets are refused.
        """
        given = AfterRequest(
            tool,
            result,
            goal,
            mode=mode,
            allow=allow,
            deny=deny,
            window=None if window is None else self._do.oversight.keeper.window(window),
            asked=arguments,
            deadline_s=deadline_s,
        )
        return self._do.oversight.after(self.scope, given)

    @operation("change", about=_of_run, first=True)
    @fresh(indexed=True)
    def run(
        self,
        goal: str,
        agent: Callable[..., Any],
        tools: Mapping[str, Callable[..., Any]] | None = None,
        *,
        budget_tokens: arg.Budget = GOAL_TOKENS,
        deadline_s: arg.Deadline = 2.0,
        mode: arg.Mode = None,
        allow: arg.Allowed = None,
        deny: arg.Denied = (),
        window: DeclaredWindows = None,
    ) -> GoalRun:
        """Call `agent(text, tools)` with a goal and what is relevant to it.

        Each result of a tool is looked at on its way to the agent, as `after` does; `window` as in `perdure.tool`, or by name.
        """
        do, asked = self._do.oversight, BeforeRequest(goal, budget_tokens, "goal", deadline_s)
        before, hands = partial(do.overseer.before, self.scope, asked), {} if tools is None else tools
        return oversight.run(do, self.scope, before, agent, hands, mode=mode, allow=allow, deny=deny, window=window)

    # -- the conversation

    @operation("read", permission="write", span=SEARCH)
    @fresh(indexed=True)
    def context(
        self,
        goal: arg.ContextGoal = None,
        *,
        budget_tokens: arg.ContextBudget = None,
    ) -> Context:
        """Get what the agent needs now: memories of this user, then the conversation.

        With a `goal` (a question, or what is to be done), what fits it is looked up, too, and it is asked at the end. Ends
        a session that was silent for too long and folds what is due before it answers. Never over the budget (default: the
        setting `history_tokens_max`); what did not fit is named in `dropped`.
        """
        if goal is not None:
            utf8_size(goal, "`goal`")
        return self._do.conversation.assembly.context(self.scope, goal=goal, budget_tokens=budget_tokens)

    @operation("read", permission="write")
    def prompt(
        self,
        request: arg.Request = "",
        *,
        budget_tokens: arg.Budget = BUDGET_TOKENS,
        lessons: Annotated[bool, Arg("With the lessons; a context has them, too.")] = True,
    ) -> Prompt:
        """Get the agent's system prompt: soul, mood, lessons, skill and the time.

        The agent is that of this handle; if it names none, the one that the channel is mapped to (`engine.agents`). Files are
        read anew each time. Never over the budget: then those lessons are shown that fit `request` best. Beside a context, hand
        it to `as_messages(prompt=…)`, or leave the lessons out here: then none is told twice.
        """
        check_flag(lessons, "lessons")
        return self._do.lessons.prompts.prompt(self.scope, request, budget_tokens=budget_tokens, lessons=lessons)

    @unlogged("what is said in the turn is logged")
    def turn(self, *, wait_s: float = WAIT_S, lease_s: float = LEASE_S) -> AbstractContextManager[Turn]:
        """Hold the turn lock of this channel: `with ana.turn() as turn: turn.append(…)`. One turn at a time.

        The lease is prolonged while the block runs; a process that dies loses it after `lease_s`. `Unavailable` if
        another turn holds the channel for longer than `wait_s`.
        """
        return held_turn(self.scope, self._do.conversation, self._log, wait_s=wait_s, lease_s=lease_s)

    @operation("change", span=CREATE)
    def append(
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
        """Log one message, durably, and queue the work it causes.

        Repeating an `id` is a no-op that answers with `repeated=True`; the same id with another body is a `Conflict`.
        """
        said = NewMessage(
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
        return self._do.conversation.ingest.append(self.scope, [said])[0]

    @operation("change", span=CREATE)
    def append_many(self, messages: arg.Messages) -> list[Message]:
        """Log several messages in one transaction: all of them, in order, or none.

        They may be `NewMessage` values, dicts or a client's objects. Of pictures and files a reference is kept.
        """
        return self._do.conversation.ingest.append(self.scope, messages)

    @operation("read")
    def messages(
        self,
        limit: arg.Limit = 20,
        *,
        session: Annotated[str | None, arg.an_id("Of this session only.")] = None,
        before: Annotated[str | None, arg.an_id("Before this message only: its id.")] = None,
        after: Annotated[str | None, arg.an_id("After this message only: its id.")] = None,
    ) -> Sequence[Message]:
        """List the latest messages, oldest first. Of one session, or on either side of the message with a given id."""
        return self._do.conversation.history.messages(self.scope, limit=limit, session=session, before=before, after=after)

    def __repr__(self) -> str:
        owner, address = self.scope.owner, self.scope.address
        return f"Memory(space={owner.space!r}, user={owner.user!r}, agent={address.agent!r}, channel={address.channel!r})"


def bound(scope: Scope, services: MemoryServices) -> Memory:
    """The handle of a scope; if there is an access log, every call of it is in there."""
    return fresh_by(services.catch_up, Memory(scope, services, services.active_log))


def clock_of(memory: Memory) -> Clock:
    """The clock that its calls go by."""
    return memory._do.oversight.keeper.clock


def only_reading(memory: Memory) -> Memory:
    """The same for a caller who may change nothing: no call of theirs learns."""
    return bound(memory.scope, memory._do.only_reading())


def confined(memory: Memory) -> Memory:
    """The same for a caller who may reach this user alone: what all users of the space share can only be read."""
    return bound(memory.scope, memory._do.confined())
