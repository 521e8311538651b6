"""Run in LlamaIndex's own environment: real agents with a model that is a script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import checks
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, TextBlock, ToolCallBlock
from llama_index.core.bridge.pydantic import Field
from llama_index.core.llms.mock import MockFunctionCallingLLM, MockLLM
from llama_index.core.memory import Memory
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import get_response_synthesizer
from llama_index.core.storage.chat_store.base_db import MessageStatus

import perdure
from perdure.integrations.llama_index import PerdureMemoryBlock, PerdureRetriever


def words(text: str) -> list[str]:
    """Counts as a tokeniser, without fetching one."""
    return text.split()


class Scripted(MockFunctionCallingLLM):
    """A model that answers what it was told to, and keeps what it was asked. An answer may be a call of a tool."""

    asked: list[list[ChatMessage]] = Field(default_factory=list)

    def __init__(self, *answers: str | ToolCallBlock) -> None:
        super().__init__()
        left = list(answers)

        def answer(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
            self.asked.append(list(messages))
            next_one = left.pop(0)
            return ChatMessage(role="assistant", blocks=[TextBlock(text=next_one) if isinstance(next_one, str) else next_one])

        self.response_generator = answer


def conversation(ana: perdure.Memory, name: str, **options: Any) -> Memory:
    return Memory.from_defaults(session_id=name, memory_blocks=[PerdureMemoryBlock(memory=ana)], tokenizer_fn=words, **options)


def shown(messages: list[ChatMessage], role: str) -> str:
    return "\n".join(one.content or "" for one in messages if one.role == role)


def take_note(what: str) -> str:
    """Note something down."""
    return f"noted {what}"


async def the_second_conversation_knows_what_was_said_in_the_first(engine: perdure.Engine) -> None:
    ana, model = engine.memory("ana"), Scripted("Noted.", "In Lisbon.", "As I said.")
    agent = FunctionAgent(llm=model, system_prompt="You are a helper.")
    await agent.run("I live in Lisbon, and my sister is called Rita.", memory=conversation(ana, "first"))
    second = conversation(ana, "second")
    assert str(await agent.run("Where do I live?", memory=second)) == "In Lisbon."
    assert "Lisbon" not in shown(model.asked[0], "system")
    assert "Lisbon" in shown(model.asked[1], "system"), model.asked[1]
    assert shown(model.asked[1], "user") == "Where do I live?", "the history is that of this session"
    await agent.run("Are you sure?", memory=second)
    assert shown(model.asked[2], "user") == "Where do I live?\nAre you sure?"
    kept = [(one.role, one.content) for one in ana.messages(session="second")]
    assert kept == [
        ("user", "Where do I live?"),
        ("assistant", "In Lisbon."),
        ("user", "Are you sure?"),
        ("assistant", "As I said."),
    ]


async def a_run_with_a_tool_asks_memory_once(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", "My dentist is called Dr. Gomes.", session="earlier")
    call = ToolCallBlock(tool_call_id="1", tool_name="take_note", tool_kwargs={"what": "milk"})
    model = Scripted(call, "Done.")
    agent = FunctionAgent(llm=model, tools=[take_note])
    assert str(await agent.run("What is my dentist called?", memory=conversation(ana, "s"))) == "Done."
    assert len(ana.journal.decisions()) == 1
    assert [one.content for one in ana.messages(session="s")] == ["What is my dentist called?", "Done."]
    assert all("Gomes" in shown(one, "system") for one in model.asked)


async def what_no_longer_fits_is_logged_once(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    memory = conversation(ana, "long", token_limit=60, token_flush_size=10)
    texts = [f"This is number {place} of the things that I say in this long talk." for place in range(12)]
    for text in texts:
        await memory.aput(ChatMessage(role="user", content=text))
        await memory.aget()
        await memory.aput(ChatMessage(role="assistant", content=f"Yes: {text}"))
    assert len(await memory.aget_all(status=MessageStatus.ACTIVE)) < 10
    kept = [one.content for one in ana.messages(100, session="long")]
    assert [text for text in kept if not text.startswith("Yes")] == texts
    assert len(kept) == len(set(kept))


async def the_retriever_finds_what_is_remembered(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", "My dentist is called Dr. Gomes.", session="s")
    retriever = PerdureRetriever(ana, limit=3)
    for nodes in (retriever.retrieve("Who is my dentist?"), await retriever.aretrieve("Who is my dentist?")):
        assert "Gomes" in nodes[0].text
        assert (nodes[0].score or 0) > 0
        assert nodes[0].metadata["kind"] in ("message", "memory")
    assert retriever.retrieve(" ") == []
    assert PerdureRetriever(engine.memory("ben")).retrieve("Who is my dentist?") == []
    query = RetrieverQueryEngine(retriever, get_response_synthesizer(llm=MockLLM()))
    assert "Gomes" in str(query.query("Who is my dentist?")), "a model that repeats what it is asked"


if __name__ == "__main__":
    checks.run(
        the_second_conversation_knows_what_was_said_in_the_first,
        a_run_with_a_tool_asks_memory_once,
        what_no_longer_fits_is_logged_once,
        the_retriever_finds_what_is_remembered,
    )
