"""LlamaIndex: a memory block that remembers across conversations, and a retriever over all that is remembered.

```python
memory = Memory.from_defaults(session_id="monday", memory_blocks=[PerdureMemoryBlock(memory=ana)])
await agent.run("I live in Lisbon.", memory=memory)
```

The block logs what user and assistant said, under the id of the session, and learns from it; it gives what is remembered that
matters to the newest question.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.memory import BaseMemoryBlock
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from perdure.domain.context.recall import ENTRY_KINDS, EntryKind, Hit
from perdure.domain.conversation.messages import NewMessage
from perdure.handles.memory import Memory
from perdure.integrations.messages import GOAL_CHARS_MAX, log, relevant_text, spoken_message
from perdure.integrations.thread import in_thread

HITS = 10


class PerdureMemoryBlock(BaseMemoryBlock[str]):
    """What is remembered of a user, for `Memory.from_defaults(memory_blocks=[…])`."""

    name: str = Field(default="perdure")
    memory: Memory
    _given: tuple[str, str] = PrivateAttr(default=("", ""))
    """The newest question and what was given for it: an agent asks again after each tool."""
    _logged: set[str] = PrivateAttr(default_factory=set)
    """Ids that need not be logged again."""

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        """What matters to the newest question. What was said and is not in the log yet is logged."""
        said, session = messages or [], block_kwargs.get("session_id")
        # First the log: what was said in this conversation is at hand, and need not be told again.
        await in_thread(self._log, said, session)
        goal = next((text for one in reversed(said) if one.role == "user" and (text := _text(one).strip())), "")
        if goal != self._given[0]:
            self._given = (goal, await in_thread(relevant_text, self.memory, goal, session))
        return self._given[1]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Log what no longer fits into the short-term memory, unless it is in the log."""
        session = messages[0].additional_kwargs.get("session_id") if messages else None
        await in_thread(self._log, messages, session)

    def _log(self, said: Iterable[ChatMessage], session: str | None) -> None:
        new = [one for one in _messages(said, session) if one.id not in self._logged]
        log(self.memory, new)
        self._logged.update(str(one.id) for one in new)


class PerdureRetriever(BaseRetriever):
    """All that is remembered of a user as nodes, best first: for query engines, chat engines and tools."""

    def __init__(
        self, memory: Memory, *, limit: int = HITS, kinds: tuple[EntryKind, ...] = ENTRY_KINDS, **options: Any
    ) -> None:
        super().__init__(**options)
        self._user_memory, self._limit, self._kinds = memory, limit, kinds

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        asked = query_bundle.query_str.replace("\0", "")[:GOAL_CHARS_MAX].strip()
        if not asked:
            return []
        found = self._user_memory.recall(asked, kinds=self._kinds, limit=self._limit)
        return [NodeWithScore(node=_node(hit), score=hit.score) for hit in found.hits]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await in_thread(self._retrieve, query_bundle)


def _node(hit: Hit) -> TextNode:
    about = {"kind": hit.kind, "at": hit.at.isoformat(), "speaker": hit.speaker, "session": hit.session}
    return TextNode(id_=f"{hit.kind}:{hit.id}", text=hit.text, metadata={key: value for key, value in about.items() if value})


def _messages(said: Iterable[ChatMessage], session: str | None) -> Iterable[NewMessage]:
    """Messages of LlamaIndex have no id, and are shown again and again: theirs is made of session, role, text and how often.

    After a tool, an agent shows the question a second time, behind itself: once is enough.
    """
    seen: Counter[tuple[str, str]] = Counter()
    last = ("", "")
    for one in said:
        role, text = str(one.role.value), _text(one)
        if last == (role, text):
            continue
        last = (role, text)
        seen[role, text] += 1
        name = hashlib.sha256("\0".join((session or "", role, text, str(seen[role, text]))).encode("utf-8", "replace"))
        if message := spoken_message(role, text, session=session, id=f"llama-index:{name.hexdigest()[:32]}"):
            yield message


def _text(message: ChatMessage) -> str:
    return message.content or ""
