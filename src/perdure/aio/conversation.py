"""Sessions, layers and turns, awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime
from typing import TYPE_CHECKING

from perdure.aio.threads import Threads
from perdure.domain.agents import AgentState
from perdure.domain.digests import Digest, DigestKind
from perdure.domain.messages import Message, MessageFields, NewMessage, Session
from perdure.handles.conversation import Conversation, Turn
from perdure.handles.transcripts import TranscriptHandle
from perdure.services.sessions import SessionLine
from perdure.services.transcripts import Transcript

if TYPE_CHECKING:
    from typing import Unpack


class AsyncConversation:
    """`Memory.conversation`, awaited."""

    __slots__ = ("_talk", "_threads")

    def __init__(self, talk: Conversation, threads: Threads) -> None:
        self._talk = talk
        self._threads = threads

    async def list_sessions(self, source: str | None = None, *, limit: int = 100) -> Sequence[SessionLine]:
        return await self._threads.run(self._talk.list_sessions, source, limit=limit)

    async def session(self, session: str | None = None) -> Session:
        return await self._threads.run(self._talk.session, session)

    async def close(self, session: str | None = None) -> Session:
        return await self._threads.run(self._talk.close, session)

    async def resume(self, session: str | None = None) -> Session:
        return await self._threads.run(self._talk.resume, session)

    async def delete(self, session: str) -> int:
        return await self._threads.run(self._talk.delete, session)

    async def search(self, query: str, *, session: str | None = None, limit: int = 20) -> Sequence[Message]:
        return await self._threads.run(self._talk.search, query, session=session, limit=limit)

    async def compact(self, session: str | None = None, *, force: bool = False) -> Sequence[Digest]:
        return await self._threads.run(self._talk.compact, session, force=force)

    async def fold(self, session: str | None = None) -> Sequence[Digest]:
        return await self._threads.run(self._talk.fold, session)

    async def clear(self, session: str | None = None) -> Digest | None:
        return await self._threads.run(self._talk.clear, session)

    async def replace(self, text: str, session: str | None = None) -> Digest:
        return await self._threads.run(self._talk.replace, text, session)

    async def undo(self, session: str | None = None) -> Digest:
        return await self._threads.run(self._talk.undo, session)

    async def digests(self, kind: DigestKind | None = None, *, session: str | None = None, limit: int = 20) -> Sequence[Digest]:
        return await self._threads.run(self._talk.digests, kind, session=session, limit=limit)

    async def digest(self, kind: DigestKind, version: int, *, session: str | None = None) -> Digest:
        return await self._threads.run(self._talk.digest, kind, version, session=session)

    def expand(self, digest: Digest, *, whole: bool = False) -> AsyncIterator[Message]:
        return self._threads.each(self._talk.expand(digest, whole=whole))

    async def agent_state(self) -> AgentState:
        return await self._threads.run(self._talk.agent_state)

    async def configure(
        self,
        *,
        profile: str | None = None,
        casual: bool | None = None,
        private: bool | None = None,
        shared: bool | None = None,
    ) -> AgentState:
        return await self._threads.run(self._talk.configure, profile=profile, casual=casual, private=private, shared=shared)


class AsyncTranscripts:
    """`Memory.transcripts`, awaited."""

    __slots__ = ("_threads", "_transcripts")

    def __init__(self, transcripts: TranscriptHandle, threads: Threads) -> None:
        self._transcripts = transcripts
        self._threads = threads

    async def list(self, limit: int = 100) -> Sequence[Transcript]:
        return await self._threads.run(self._transcripts.list, limit)

    async def read(self, session: str) -> Sequence[Message]:
        return await self._threads.run(self._transcripts.read, session)

    async def archive(self, *, before: datetime | None = None, keep: int | None = None) -> int:
        return await self._threads.run(self._transcripts.archive, before=before, keep=keep)

    async def prune(self, *, before: datetime | None = None, keep: int | None = None) -> int:
        return await self._threads.run(self._transcripts.prune, before=before, keep=keep)


class AsyncTurn:
    """`perdure.handles.conversation.Turn`, awaited."""

    __slots__ = ("_threads", "_turn")

    def __init__(self, turn: Turn, threads: Threads) -> None:
        self._turn = turn
        self._threads = threads

    async def append(self, role: str, content: str, **fields: Unpack[MessageFields]) -> Message:
        return await self._threads.run(self._turn.append, role, content, **fields)

    async def append_many(self, messages: Iterable[NewMessage]) -> list[Message]:
        return await self._threads.run(self._turn.append_many, messages)


@asynccontextmanager
async def held_turn(held: AbstractContextManager[Turn], threads: Threads) -> AsyncIterator[AsyncTurn]:
    """The floor of a channel for the length of an `async with` block."""
    turn = await threads.run(held.__enter__)
    try:
        yield AsyncTurn(turn, threads)
    finally:
        await threads.run(held.__exit__, None, None, None)
