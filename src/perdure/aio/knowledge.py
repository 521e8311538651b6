"""What is known, awaited."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.aio.threads import Threads
from perdure.domain.journal import Operation
from perdure.domain.knowledge import MemoryType, TodoKind
from perdure.domain.memories import Statement
from perdure.domain.things import AgentTask, Entity, Link, Rejection, Suggestion, TaskState, Todo
from perdure.handles.knowledge import EntityHandle, ListFields, Memories, TaskHandle, TodoHandle
from perdure.services.knowledge import Recalled

if TYPE_CHECKING:
    from typing import Unpack


class AsyncMemories:
    """`Memory.memories`, awaited."""

    __slots__ = ("_memories", "_threads")

    def __init__(self, memories: Memories, threads: Threads) -> None:
        self._memories = memories
        self._threads = threads

    async def list(self, type: MemoryType | None = None, **which: Unpack[ListFields]) -> Sequence[Recalled]:
        return await self._threads.run(self._memories.list, type, **which)

    async def get(self, key: str) -> Recalled:
        return await self._threads.run(self._memories.get, key)

    async def history(self, key: str) -> Sequence[Statement]:
        return await self._threads.run(self._memories.history, key)

    async def changes(self, key: str, limit: int = 50) -> Sequence[Operation]:
        return await self._threads.run(self._memories.changes, key, limit)

    async def foundation(self) -> tuple[Sequence[Recalled], int]:
        return await self._threads.run(self._memories.foundation)

    async def pin(self, key: str) -> Recalled:
        return await self._threads.run(self._memories.pin, key)

    async def unpin(self, key: str) -> Recalled:
        return await self._threads.run(self._memories.unpin, key)

    async def archive(self, key: str) -> Recalled:
        return await self._threads.run(self._memories.archive, key)

    async def restore(self, key: str) -> Recalled:
        return await self._threads.run(self._memories.restore, key)

    async def edit(self, key: str, *, importance: int | None = None, label: str | None = None) -> Recalled:
        return await self._threads.run(self._memories.edit, key, importance=importance, label=label)

    async def rejections(self, limit: int = 100) -> Sequence[Rejection]:
        return await self._threads.run(self._memories.rejections, limit)


class AsyncEntities:
    """`Memory.entities`, awaited."""

    __slots__ = ("_entities", "_threads")

    def __init__(self, entities: EntityHandle, threads: Threads) -> None:
        self._entities = entities
        self._threads = threads

    async def list(self, type: str | None = None, *, limit: int = 100) -> Sequence[Entity]:
        return await self._threads.run(self._entities.list, type, limit=limit)

    async def get(self, ref: str) -> Entity:
        return await self._threads.run(self._entities.get, ref)

    async def alias(self, ref: str, label: str) -> Entity:
        return await self._threads.run(self._entities.alias, ref, label)

    async def merge(self, ref: str, into: str) -> int:
        return await self._threads.run(self._entities.merge, ref, into)

    async def links(self, limit: int = 200) -> Sequence[Link]:
        return await self._threads.run(self._entities.links, limit)

    async def suggestions(self, limit: int = 100) -> Sequence[Suggestion]:
        return await self._threads.run(self._entities.suggestions, limit)

    async def dismiss(self, suggestion: str) -> Suggestion:
        return await self._threads.run(self._entities.dismiss, suggestion)


class AsyncTodos:
    """`Memory.todos`, awaited."""

    __slots__ = ("_threads", "_todos")

    def __init__(self, todos: TodoHandle, threads: Threads) -> None:
        self._todos = todos
        self._threads = threads

    async def add(
        self, content: str, kind: TodoKind = "commitment", *, due_at: datetime | None = None, recurrence: str | None = None
    ) -> Todo:
        return await self._threads.run(self._todos.add, content, kind, due_at=due_at, recurrence=recurrence)

    async def list(
        self, kind: TodoKind | None = None, *, closed: bool = False, due_before: datetime | None = None, limit: int = 100
    ) -> Sequence[Todo]:
        return await self._threads.run(self._todos.list, kind, closed=closed, due_before=due_before, limit=limit)

    async def complete(self, todo: str) -> Todo:
        return await self._threads.run(self._todos.complete, todo)

    async def skip(self, todo: str) -> Todo:
        return await self._threads.run(self._todos.skip, todo)

    async def reopen(self, todo: str) -> Todo:
        return await self._threads.run(self._todos.reopen, todo)


class AsyncTasks:
    """`Memory.tasks`, awaited."""

    __slots__ = ("_tasks", "_threads")

    def __init__(self, tasks: TaskHandle, threads: Threads) -> None:
        self._tasks = tasks
        self._threads = threads

    async def start(self, description: str) -> AgentTask:
        return await self._threads.run(self._tasks.start, description)

    async def update(self, task: str, *, state: TaskState | None = None, progress: float | None = None) -> AgentTask:
        return await self._threads.run(self._tasks.update, task, state=state, progress=progress)

    async def list(self, *, closed: bool = False, limit: int = 100) -> Sequence[AgentTask]:
        return await self._threads.run(self._tasks.list, closed=closed, limit=limit)
