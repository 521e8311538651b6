"""The async face: a line for each call of the handles.

`run` is written out: the caller's own functions run in the caller's loop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from perdure.aio.calls import Awaited, HandleAttribute, Twin, awaited, direct, entered, fetched, fetching, opened, streamed
from perdure.app import Engine
from perdure.domain.limits import Limits
from perdure.domain.oversight import KeptResult
from perdure.handles.admin import AdminHandle, AgentHandle, ApiKeyHandle, JournalHandle
from perdure.handles.arguments import Allowed, Budget, Deadline, Denied, Mode
from perdure.handles.conversation import Conversation, DocumentHandle, TranscriptHandle, Turn
from perdure.handles.knowledge import EntityHandle, InstructionHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory, clock_of
from perdure.handles.oversight import (
    DeclaredWindows,
    GoalRun,
    asked_tool,
    check_agent,
    check_tools,
    takes_tools,
    window_rules,
)
from perdure.handles.series import SeriesHandle, UserSeries
from perdure.handles.state import State
from perdure.handles.tools import Tools
from perdure.services.oversight.request import BUDGET_TOKENS

if TYPE_CHECKING:
    from typing import Self


class AsyncTranscriptHandle(Awaited[TranscriptHandle]):
    """`perdure.handles.conversation.TranscriptHandle`, awaited."""

    __slots__ = ()

    list = awaited(TranscriptHandle.list)
    read = awaited(TranscriptHandle.read)
    archive = awaited(TranscriptHandle.archive)
    prune = awaited(TranscriptHandle.prune)


class AsyncDocumentHandle(Awaited[DocumentHandle]):
    """`perdure.handles.conversation.DocumentHandle`, awaited."""

    __slots__ = ()

    load = awaited(DocumentHandle.load)
    save = awaited(DocumentHandle.save)
    compact = awaited(DocumentHandle.compact)
    list = awaited(DocumentHandle.list)
    versions = awaited(DocumentHandle.versions)
    delete = awaited(DocumentHandle.delete)


class AsyncConversation(Awaited[Conversation]):
    """`perdure.handles.conversation.Conversation`, awaited."""

    __slots__ = ()

    sessions = awaited(Conversation.sessions)
    message = awaited(Conversation.message)
    tally = awaited(Conversation.tally)
    transcripts = Twin(AsyncTranscriptHandle)
    documents = Twin(AsyncDocumentHandle)
    list_sessions = awaited(Conversation.list_sessions)
    session = awaited(Conversation.session)
    close = awaited(Conversation.close)
    resume = awaited(Conversation.resume)
    delete = awaited(Conversation.delete)
    pop = awaited(Conversation.pop)
    search = awaited(Conversation.search)
    compact = awaited(Conversation.compact)
    fold = awaited(Conversation.fold)
    clear = awaited(Conversation.clear)
    replace = awaited(Conversation.replace)
    undo = awaited(Conversation.undo)
    digests = awaited(Conversation.digests)
    digest = awaited(Conversation.digest)
    expand = streamed(Conversation.expand)
    agent_state = awaited(Conversation.agent_state)
    configure = awaited(Conversation.configure)


class AsyncMemories(Awaited[Memories]):
    """`perdure.handles.knowledge.Memories`, awaited."""

    __slots__ = ()

    list = awaited(Memories.list)
    groups = awaited(Memories.groups)
    get = awaited(Memories.get)
    history = awaited(Memories.history)
    changes = awaited(Memories.changes)
    foundation = awaited(Memories.foundation)
    pin = awaited(Memories.pin)
    unpin = awaited(Memories.unpin)
    archive = awaited(Memories.archive)
    restore = awaited(Memories.restore)
    edit = awaited(Memories.edit)
    correct = awaited(Memories.correct)
    proposals = awaited(Memories.proposals)
    accept = awaited(Memories.accept)
    reject = awaited(Memories.reject)
    rejections = awaited(Memories.rejections)
    seed = awaited(Memories.seed)
    extract = awaited(Memories.extract)
    curate = awaited(Memories.curate)
    audit = awaited(Memories.audit)


class AsyncEntityHandle(Awaited[EntityHandle]):
    """`perdure.handles.knowledge.EntityHandle`, awaited."""

    __slots__ = ()

    list = awaited(EntityHandle.list)
    get = awaited(EntityHandle.get)
    alias = awaited(EntityHandle.alias)
    merge = awaited(EntityHandle.merge)
    links = awaited(EntityHandle.links)
    suggestions = awaited(EntityHandle.suggestions)
    dismiss = awaited(EntityHandle.dismiss)


class AsyncTaskHandle(Awaited[TaskHandle]):
    """`perdure.handles.knowledge.TaskHandle`, awaited."""

    __slots__ = ()

    start = awaited(TaskHandle.start)
    update = awaited(TaskHandle.update)
    list = awaited(TaskHandle.list)


class AsyncTodoHandle(Awaited[TodoHandle]):
    """`perdure.handles.knowledge.TodoHandle`, awaited."""

    __slots__ = ()

    tasks = Twin(AsyncTaskHandle)
    add = awaited(TodoHandle.add)
    list = awaited(TodoHandle.list)
    complete = awaited(TodoHandle.complete)
    skip = awaited(TodoHandle.skip)
    reopen = awaited(TodoHandle.reopen)


class AsyncInstructionHandle(Awaited[InstructionHandle]):
    """`perdure.handles.knowledge.InstructionHandle`, awaited."""

    __slots__ = ()

    list = awaited(InstructionHandle.list)
    add = awaited(InstructionHandle.add)
    withdraw = awaited(InstructionHandle.withdraw)


class AsyncLessonHandle(Awaited[LessonHandle]):
    """`perdure.handles.lessons.LessonHandle`, awaited."""

    __slots__ = ()

    list = awaited(LessonHandle.list)
    add = awaited(LessonHandle.add)
    remove = awaited(LessonHandle.remove)
    archive = awaited(LessonHandle.archive)
    restore = awaited(LessonHandle.restore)
    pin = awaited(LessonHandle.pin)
    unpin = awaited(LessonHandle.unpin)
    take_from = awaited(LessonHandle.take_from)
    text = awaited(LessonHandle.text)
    edit = awaited(LessonHandle.edit)


class AsyncState(Awaited[State]):
    """`perdure.handles.state.State`, awaited."""

    __slots__ = ()

    save = awaited(State.save)
    append = awaited(State.append)
    load = awaited(State.load)
    find = awaited(State.find)
    delete = awaited(State.delete)
    keys = awaited(State.keys)
    list = awaited(State.list)
    search = awaited(State.search)
    history = awaited(State.history)
    restore = awaited(State.restore)
    clear = awaited(State.clear)


class AsyncSeriesHandle(Awaited[SeriesHandle]):
    """`perdure.handles.series.SeriesHandle`, awaited."""

    __slots__ = ()

    name = HandleAttribute[str]()
    about = awaited(SeriesHandle.about)
    configure = awaited(SeriesHandle.configure)
    remove = awaited(SeriesHandle.remove)
    merge = awaited(SeriesHandle.merge)
    cleanup = awaited(SeriesHandle.cleanup)
    query = awaited(SeriesHandle.query)
    gaps = awaited(SeriesHandle.gaps)
    windows = awaited(SeriesHandle.windows)
    history = awaited(SeriesHandle.history)
    count = awaited(SeriesHandle.count)
    first = awaited(SeriesHandle.first)
    last = awaited(SeriesHandle.last)
    per = awaited(SeriesHandle.per)
    group = awaited(SeriesHandle.group)
    distinct = awaited(SeriesHandle.distinct)
    entries = streamed(SeriesHandle.entries)
    export = streamed(SeriesHandle.export)
    rows = awaited(SeriesHandle.rows)
    to_pandas = awaited(SeriesHandle.to_pandas)
    to_polars = awaited(SeriesHandle.to_polars)
    to_arrow = awaited(SeriesHandle.to_arrow)
    fetch = fetched(SeriesHandle.fetch)
    tool = fetching(SeriesHandle.tool)

    def __repr__(self) -> str:
        return f"Async{self._sync!r}"


class AsyncUserSeries(Awaited[UserSeries]):
    """`perdure.handles.series.UserSeries`, awaited."""

    __slots__ = ()

    __call__ = opened(UserSeries.__call__, AsyncSeriesHandle)
    list = awaited(UserSeries.list)


class AsyncJournalHandle(Awaited[JournalHandle]):
    """`perdure.handles.admin.JournalHandle`, awaited."""

    __slots__ = ()

    list = awaited(JournalHandle.list)
    diff = awaited(JournalHandle.diff)
    accesses = awaited(JournalHandle.accesses)
    decisions = awaited(JournalHandle.decisions)


class AsyncTools(Awaited[Tools]):
    """`perdure.handles.tools.Tools`, awaited."""

    __slots__ = ()

    def read_only(self) -> AsyncTools:
        return AsyncTools(self._sync.read_only(), self._threads)

    def only(self, sets: Sequence[str]) -> AsyncTools:
        return AsyncTools(self._sync.only(sets), self._threads)

    names = direct(Tools.names)
    sets = awaited(Tools.sets)
    permissions = direct(Tools.permissions)
    schemas = direct(Tools.schemas)
    call_tool = awaited(Tools.call_tool)
    accept = awaited(Tools.accept)
    merge_timeseries_state = awaited(Tools.merge_timeseries_state)
    query_timeseries_state = awaited(Tools.query_timeseries_state)
    cleanup_old_timeseries = awaited(Tools.cleanup_old_timeseries)


class AsyncAdminHandle(Awaited[AdminHandle]):
    """`perdure.handles.admin.AdminHandle`, awaited."""

    __slots__ = ()

    overview = awaited(AdminHandle.overview)
    jobs = awaited(AdminHandle.jobs)
    retry_jobs = awaited(AdminHandle.retry_jobs)
    reindex = awaited(AdminHandle.reindex)
    usage = awaited(AdminHandle.usage)


class AsyncTurn(Awaited[Turn]):
    """`perdure.handles.conversation.Turn`, awaited."""

    __slots__ = ()

    append = awaited(Turn.append)
    append_many = awaited(Turn.append_many)


class AsyncMemory(Awaited[Memory]):
    """`perdure.handles.memory.Memory`, awaited."""

    __slots__ = ()

    conversation = Twin(AsyncConversation)
    memories = Twin(AsyncMemories)
    entities = Twin(AsyncEntityHandle)
    todos = Twin(AsyncTodoHandle)
    instructions = Twin(AsyncInstructionHandle)
    lessons = Twin(AsyncLessonHandle)
    state = Twin(AsyncState)
    series = Twin(AsyncUserSeries)
    journal = Twin(AsyncJournalHandle)
    tools = Twin(AsyncTools)

    def as_agent(self) -> AsyncMemory:
        return AsyncMemory(self._sync.as_agent(), self._threads)

    admin = Twin(AsyncAdminHandle)
    remember = awaited(Memory.remember)
    remember_many = awaited(Memory.remember_many)
    undo = awaited(Memory.undo)
    forget = awaited(Memory.forget)
    export = awaited(Memory.export)
    import_ = awaited(Memory.import_)
    recall = awaited(Memory.recall)
    before = awaited(Memory.before)
    after = awaited(Memory.after)
    context = awaited(Memory.context)
    prompt = awaited(Memory.prompt)
    turn = entered(Memory.turn, AsyncTurn)
    append = awaited(Memory.append)
    append_many = awaited(Memory.append_many)
    messages = awaited(Memory.messages)

    async def run(
        self,
        goal: str,
        agent: Callable[..., Any],
        tools: Mapping[str, Callable[..., Any]] | None = None,
        *,
        budget_tokens: Budget = BUDGET_TOKENS,
        deadline_s: Deadline = 2.0,
        mode: Mode = None,
        allow: Allowed = None,
        deny: Denied = (),
        window: DeclaredWindows = None,
    ) -> GoalRun:
        """As `Memory.run`; agent and tools may be async, and run in this event loop.

        A tool is awaited by the agent, whatever it was before: its result is looked at in a thread.
        """
        memory, threads = self._sync, self._threads
        hands = {} if tools is None else tools
        check_agent(agent)
        check_tools(hands)
        rules, clock = window_rules(window, hands), clock_of(memory)
        given = await threads.run(memory.before, goal, target="goal", budget_tokens=budget_tokens, deadline_s=deadline_s)
        kept: list[KeptResult] = []

        def looked_at(name: str, tool: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(tool)
            async def called(*args: Any, **named: Any) -> Any:
                asked = asked_tool(tool, args, named, clock.now(), rules[name])
                value = tool(*args, **named)
                value = await value if inspect.isawaitable(value) else value
                look = functools.partial(memory.after, mode=mode, allow=allow, deny=deny, arguments=asked)
                kept.append(await threads.run(look, name, value, goal))
                return value

            return called

        called = {name: looked_at(name, tool) for name, tool in hands.items()}
        answer = agent(given.text, called) if takes_tools(agent) else agent(given.text)
        answer = await answer if inspect.isawaitable(answer) else answer
        return GoalRun(answer, given, tuple(kept))

    def __repr__(self) -> str:
        return f"Async{self._sync!r}"


class AsyncAgentHandle(Awaited[AgentHandle]):
    """`perdure.handles.admin.AgentHandle`, awaited."""

    __slots__ = ()

    space = HandleAttribute[str]()

    def of(self, space: str) -> AsyncAgentHandle:
        return AsyncAgentHandle(self._sync.of(space), self._threads)

    get = awaited(AgentHandle.get)
    list = awaited(AgentHandle.list)
    save = awaited(AgentHandle.save)
    remove = awaited(AgentHandle.remove)
    map_channel = awaited(AgentHandle.map_channel)
    unmap_channel = awaited(AgentHandle.unmap_channel)
    channels = awaited(AgentHandle.channels)


class AsyncApiKeyHandle(Awaited[ApiKeyHandle]):
    """`perdure.handles.admin.ApiKeyHandle`, awaited."""

    __slots__ = ()

    create = awaited(ApiKeyHandle.create)
    list = awaited(ApiKeyHandle.list)
    revoke = awaited(ApiKeyHandle.revoke)
    recognise = awaited(ApiKeyHandle.recognise)
    find = awaited(ApiKeyHandle.find)
    in_use = awaited(ApiKeyHandle.in_use)


class AsyncEngine(Awaited[Engine]):
    """`perdure.app.Engine`, awaited."""

    __slots__ = ()

    limits = HandleAttribute[Limits]()
    memory = opened(Engine.memory, AsyncMemory)
    add_tool = awaited(Engine.add_tool)
    agents = Twin(AsyncAgentHandle)
    space = HandleAttribute[str]()
    zone = HandleAttribute[str]()
    default_user = HandleAttribute[str]()
    api_keys = Twin(AsyncApiKeyHandle)
    users = awaited(Engine.users)
    accesses = awaited(Engine.accesses)
    process = awaited(Engine.process)
    worker = direct(Engine.worker)
    verify = awaited(Engine.verify)
    backup = awaited(Engine.backup)
    export = awaited(Engine.export)
    import_ = awaited(Engine.import_)
    doctor = awaited(Engine.doctor)
    health = awaited(Engine.health)
    purge = awaited(Engine.purge)
    repair_clock = awaited(Engine.repair_clock)
    distribute = awaited(Engine.distribute)
    reindex = awaited(Engine.reindex)
    files = awaited(Engine.files)

    async def close(self) -> None:
        await self._threads.run(self._sync.close)
        self._threads.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
