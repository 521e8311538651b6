"""Run in the framework's own environment: two conversations of one user, with a real agent on the framework's test models."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import perdure
from perdure.integrations.pydantic_ai import PerdureMemory, PerdureToolset

SAID = "I live in Lisbon, and my sister is called Rita."


def prompts(messages: list[ModelMessage]) -> list[Any]:
    return [
        part.content
        for one in messages
        if isinstance(one, ModelRequest)
        for part in one.parts
        if isinstance(part, UserPromptPart)
    ]


async def two_conversations(engine: perdure.Engine, ana: perdure.Memory) -> None:
    asked: list[list[ModelMessage]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(messages)
        known = any("Lisbon" in str(one) for one in prompts(messages))
        return ModelResponse(parts=[TextPart("In Lisbon." if known and len(asked) > 1 else "Noted.")])

    memory = PerdureMemory(ana)
    agent = Agent(FunctionModel(model), instructions="You are a helper.", capabilities=[memory])
    first = await agent.run(SAID, conversation_id="monday")
    assert first.output == "Noted."
    assert prompts(asked[0]) == [SAID]
    engine.process()

    second = await agent.run("Where do I live?", conversation_id="tuesday")
    assert second.output == "In Lisbon.", asked[1]
    told, question = prompts(asked[1])
    assert question == "Where do I live?"
    assert "<memory " in told
    assert "Lisbon" not in str(second.all_messages()[0]), "the history keeps what was said, not what was remembered"
    assert [(one.role, one.content) for one in ana.messages(session="tuesday")] == [
        ("user", "Where do I live?"),
        ("assistant", "In Lisbon."),
    ]

    history = await memory.history("tuesday")
    assert history == second.all_messages()
    third = await agent.run("And my sister?", conversation_id="tuesday", message_history=history)
    assert await memory.history("tuesday") == third.all_messages()
    assert len(ana.messages(session="tuesday")) == 4
    assert await memory.history("never") == []


async def tools(ana: perdure.Memory) -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {"recall", "remember", "forget"} <= {one.name for one in info.function_tools}
        returned = [
            part for one in messages if isinstance(one, ModelRequest) for part in one.parts if isinstance(part, ToolReturnPart)
        ]
        calls = [
            ToolCallPart("remember", {"content": "Prefers window seats"}),
            ToolCallPart("recall", {"query": "Which seat does she prefer?"}),
            ToolCallPart("recall", {"quarry": "?"}),
        ]
        if len(returned) < len(calls):
            return ModelResponse(parts=[calls[len(returned)]])
        stored, found, wrong = (part.content for part in returned)
        assert stored["success"], stored
        assert "window" in found["hits"][0]["text"], found
        assert not wrong["success"], wrong
        return ModelResponse(parts=[TextPart("By the window.")])

    agent = Agent(FunctionModel(model), toolsets=[PerdureToolset(ana)])
    assert (await agent.run("Where should I sit?")).output == "By the window."
    # The framework's test model calls every tool with arguments that it makes of their schemas.
    every = Agent(
        TestModel(), toolsets=[PerdureToolset(ana, ["knowledge", "todos", "state"])], capabilities=[PerdureMemory(ana)]
    )
    assert "recall" in (await every.run("Try them all.", conversation_id="all")).output


async def kept_as_it_is(ana: perdure.Memory) -> None:
    memory = PerdureMemory(ana)
    agent = Agent(TestModel(custom_output_text="Met a\0b."), capabilities=[memory])
    ana.remember("Knows Konrad Weber", entities=["person:Konrad Weber"])
    ran = await agent.run("I met Konrad Weber.", conversation_id="kept")
    assert await memory.history("kept") == ran.all_messages()
    async with agent.run_stream("And then?", conversation_id="streamed") as streamed:
        await streamed.get_output()
    assert [(one.role, one.content) for one in ana.messages(session="streamed")] == [
        ("user", "And then?"),
        ("assistant", "Met ab."),
    ]
    ana.forget(entity="person:Konrad Weber")
    assert "Konrad" not in str(await memory.history("kept"))


async def main() -> None:
    with perdure.open("memory:", background=False) as engine:
        await two_conversations(engine, engine.memory("ana"))
        await tools(engine.memory("ben"))
        await kept_as_it_is(engine.memory("carla"))
        assert engine.verify().clean


asyncio.run(main())
print("3 passed")  # two conversations, the tools, what is kept
