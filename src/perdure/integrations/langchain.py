"""LangChain: an agent that remembers, a retriever, a history of messages and a key-value store, on a user's memory.

```python
agent = create_agent(model, tools, middleware=[PerdureMiddleware(engine.memory("ana"))])
agent.invoke({"messages": [("user", "Hello!")]}, {"configurable": {"thread_id": "42"}})
```

What user and assistant say is in the log, under the id of the thread or session, and is learned from. The messages of a
history and the values of a store are verbatim values of the state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Annotated, Any, NotRequired
from urllib.parse import quote, unquote
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import ModelRequest, ModelResponse, PrivateStateAttr
from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import BaseMessage, SystemMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from langchain_core.stores import BaseStore
from langgraph.config import get_config
from langgraph.runtime import Runtime

from perdure.domain.context.recall import EntryKind, Hit
from perdure.domain.conversation.messages import NewMessage
from perdure.domain.errors import NotFound
from perdure.domain.state import FORGOTTEN_VALUE
from perdure.handles.memory import Memory
from perdure.integrations.thread import in_thread

ROLES: Mapping[str, str] = {"human": "user", "ai": "assistant"}
CHAT_PREFIX, STORE_PREFIX = "langchain-chat", "langchain-store"
GOAL_CHARS_MAX = 4_000
DOCUMENTS = 4


class _RememberingState(AgentState[Any]):
    perdure_context: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]  # a dict, to those who see it


class PerdureMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent what is remembered that matters to what the user asks, once a turn; and keeps what was said in the turn.

    The text stands behind your system prompt, fenced as data. The session is the thread, unless one is named.
    """

    state_schema = _RememberingState

    def __init__(self, memory: Memory, *, session: str | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._session = session

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        goal = _goal(state["messages"])
        return {"perdure_context": self._memory.before(goal).text if goal else ""}

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await in_thread(self.before_agent, state, runtime)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]) -> Any:
        return handler(_with_context(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> Any:
        return await handler(_with_context(request))

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        said = [_new_message(one, self._session or _thread()) for one in _last_turn(state["messages"]) if _spoken(one)]
        if said:
            self._memory.append_many(said)
        return None

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await in_thread(self.after_agent, state, runtime)


class PerdureRetriever(BaseRetriever):
    """What is remembered that answers a question, as documents: text, and where it comes from as metadata."""

    memory: Any
    """A `Memory`."""
    k: int = DOCUMENTS
    kinds: tuple[EntryKind, ...] | None = None
    """Of these kinds only, such as `("memory",)`; by default all that can be found."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        if not query.strip():
            return []
        found = self.memory.recall(query, kinds=self.kinds, limit=self.k if k is None else k)
        return [_document(hit) for hit in found.hits]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        return await in_thread(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), k=k)


class PerdureChatMessageHistory(BaseChatMessageHistory):
    """The messages of one session, as they are. What user and assistant said is learned from."""

    def __init__(self, session_id: str, memory: Memory) -> None:
        self.session_id = session_id
        self._memory = memory
        self._key = f"{CHAT_PREFIX}/{session_id}"

    @property
    def messages(self) -> list[BaseMessage]:
        """All of them, oldest first."""
        held = self._memory.state.load(self._key, [])
        return list(messages_from_dict([one for one in held if one != FORGOTTEN_VALUE]))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Add messages behind those that are there."""
        if not messages:
            return
        self._memory.state.append(self._key, [message_to_dict(one) for one in messages])
        said = [_new_message(one, self.session_id, str(uuid4())) for one in messages if _spoken(one)]
        if said:
            self._memory.append_many(said)

    def clear(self) -> None:
        """Take all messages away, from the log, too. What was learned stays; the session can go on."""
        self._memory.state.delete(self._key)
        with suppress(NotFound):
            self._memory.conversation.delete(self.session_id)

    async def aget_messages(self) -> list[BaseMessage]:
        return await in_thread(lambda: self.messages)

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await in_thread(self.add_messages, messages)

    async def aclear(self) -> None:
        await in_thread(self.clear)


class PerdureKeyValueStore(BaseStore[str, Any]):
    """Values under keys: bytes, texts, numbers, lists and objects of them. They come back as they are."""

    def __init__(self, memory: Memory, *, name: str = "default") -> None:
        """Stores of different names do not see each other's keys."""
        self._state = memory.state
        self._prefix = f"{STORE_PREFIX}/{quote(name, safe='')}/"

    def mget(self, keys: Sequence[str]) -> list[Any]:
        """The value of each key, None where there is none."""
        held = (self._state.load(self._key(key)) for key in keys)
        return [None if one == FORGOTTEN_VALUE else one for one in held]

    def mset(self, key_value_pairs: Sequence[tuple[str, Any]]) -> None:
        """Keep a value under each key."""
        for key, value in key_value_pairs:
            self._state.save(self._key(key), value, verbatim=True)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Take the values away."""
        for key in keys:
            self._state.delete(self._key(key))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin so, in order."""
        for info in self._state.list(f"{self._key(prefix or '')}*"):
            yield unquote(info.key.removeprefix(self._prefix))

    def _key(self, key: str) -> str:
        return f"{self._prefix}{quote(key, safe='')}"


def _document(hit: Hit) -> Document:
    about = {"kind": hit.kind, "at": hit.at.isoformat(), "score": hit.score, "speaker": hit.speaker, "trust": hit.trust}
    return Document(page_content=hit.text, id=hit.id, metadata={**about, "session": hit.session, "sources": list(hit.sources)})


def _with_context(request: ModelRequest[Any]) -> ModelRequest[Any]:
    known = request.state.get("perdure_context", "")
    if not known:
        return request
    blocks = [] if request.system_message is None else list(request.system_message.content_blocks)
    return request.override(system_message=SystemMessage(content=[*blocks, {"type": "text", "text": known}]))


def _goal(messages: Sequence[BaseMessage]) -> str:
    """What the user asked last."""
    asked = (_text(one) for one in reversed(messages) if one.type == "human")
    return next(asked, "").strip()[:GOAL_CHARS_MAX]


def _last_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The user's last messages, and all that followed."""
    start = len(messages)
    while start and messages[start - 1].type != "human":
        start -= 1
    while start and messages[start - 1].type == "human":
        start -= 1
    return messages[start:]


def _spoken(message: BaseMessage) -> bool:
    return message.type in ROLES and bool(_text(message).strip())


def _text(message: BaseMessage) -> str:
    return str(message.text).replace("\0", "")


def _new_message(message: BaseMessage, session: str | None, name: str | None = None) -> NewMessage:
    """As the log takes it. A turn that is run again is the same messages, and is kept once."""
    text = _text(message)
    own = name or (blake2b(f"{session}\0{message.id}\0{text}".encode(), digest_size=16).hexdigest() if message.id else None)
    return NewMessage(ROLES[message.type], text, id=own, session=session)


def _thread() -> str | None:
    """The id of the thread that an agent runs in, if it has one."""
    with suppress(RuntimeError):  # it is called outside of an agent
        found = get_config().get("configurable", {}).get("thread_id")
        return None if found is None else str(found)
    return None
