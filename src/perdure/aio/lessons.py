"""Lessons and agents, awaited."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.aio.threads import Threads
from perdure.domain.agents import Agent, ChannelAgent
from perdure.domain.lessons import Heard, Lesson, LessonScope, Refused
from perdure.handles.agents import AgentHandle
from perdure.handles.lessons import LessonHandle


class AsyncLessons:
    """`Memory.lessons`, awaited."""

    __slots__ = ("_lessons", "_threads")

    def __init__(self, lessons: LessonHandle, threads: Threads) -> None:
        self._lessons = lessons
        self._threads = threads

    async def list(
        self, scope: LessonScope | None = None, *, archived: bool = False, ended: bool = False, limit: int = 100
    ) -> Sequence[Lesson]:
        return await self._threads.run(self._lessons.list, scope, archived=archived, ended=ended, limit=limit)

    async def add(self, text: str, scope: LessonScope | None = None, *, agent: str | None = None) -> Lesson:
        return await self._threads.run(self._lessons.add, text, scope, agent=agent)

    async def remove(self, id: str) -> Lesson:
        return await self._threads.run(self._lessons.remove, id)

    async def archive(self, id: str) -> Lesson:
        return await self._threads.run(self._lessons.archive, id)

    async def restore(self, id: str) -> Lesson:
        return await self._threads.run(self._lessons.restore, id)

    async def pin(self, id: str) -> Lesson:
        return await self._threads.run(self._lessons.pin, id)

    async def unpin(self, id: str) -> Lesson:
        return await self._threads.run(self._lessons.unpin, id)

    async def take_from(self, reply: str, *, message: str | None = None) -> Heard:
        return await self._threads.run(self._lessons.take_from, reply, message=message)

    async def text(self, scope: LessonScope | None = None, *, agent: str | None = None) -> str:
        return await self._threads.run(self._lessons.text, scope, agent=agent)

    async def edit(
        self, text: str, scope: LessonScope | None = None, *, agent: str | None = None, was: str | None = None
    ) -> Sequence[Refused]:
        return await self._threads.run(self._lessons.edit, text, scope, agent=agent, was=was)


class AsyncAgentHandle:
    """`Engine.agents`, awaited."""

    __slots__ = ("_agents", "_threads")

    def __init__(self, agents: AgentHandle, threads: Threads) -> None:
        self._agents = agents
        self._threads = threads

    @property
    def space(self) -> str:
        return self._agents.space

    def of(self, space: str) -> AsyncAgentHandle:
        return AsyncAgentHandle(self._agents.of(space), self._threads)

    async def get(self, id: str) -> Agent:
        return await self._threads.run(self._agents.get, id)

    async def list(self, *, limit: int = 100) -> Sequence[Agent]:
        return await self._threads.run(self._agents.list, limit=limit)

    async def save(self, id: str, *, soul: str | None = None, mood: str | None = None, skill: str | None = None) -> Agent:
        return await self._threads.run(self._agents.save, id, soul=soul, mood=mood, skill=skill)

    async def remove(self, id: str) -> bool:
        return await self._threads.run(self._agents.remove, id)

    async def map_channel(self, channel: str, agent: str) -> ChannelAgent:
        return await self._threads.run(self._agents.map_channel, channel, agent)

    async def unmap_channel(self, channel: str) -> bool:
        return await self._threads.run(self._agents.unmap_channel, channel)

    async def channels(self, *, limit: int = 100) -> Sequence[ChannelAgent]:
        return await self._threads.run(self._agents.channels, limit=limit)
