"""Run in the SDK's own environment: two conversations of one user, with the SDK's runner and its scripted model."""

from __future__ import annotations

import asyncio

from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import perdure
from perdure.integrations.openai_agents import PerdureSession, remembering


def answer(text: str) -> ResponseOutputMessage:
    said = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(id="1", type="message", role="assistant", content=[said], status="completed")


async def main() -> None:
    set_tracing_disabled(True)
    with perdure.open("memory:", background=False) as engine:
        ana = engine.memory("ana")
        model = ScriptedModel([[answer("Noted.")], [answer("In Lisbon.")]])
        agent = Agent(name="Helper", instructions=remembering(ana, "You are a helper."), model=model)
        await Runner.run(agent, "I live in Lisbon, and my sister is called Rita.", session=PerdureSession("first", ana))
        engine.process()
        second = PerdureSession("second", ana)
        await Runner.run(agent, "Where do I live?", session=second)
        told = model.calls[1]
        assert "You are a helper." in str(told.system_instructions)
        assert "Lisbon" in str(told.system_instructions), told.system_instructions
        assert "Lisbon" not in str(told.input), "the history is that of this session"
        assert [item.get("role") for item in await second.get_items()] == ["user", "assistant"]

        popped = await second.pop_item()
        assert popped is not None
        assert [one.content for one in ana.messages(session="second")] == ["Where do I live?"]
        await second.clear_session()
        assert await second.get_items() == []
        await second.add_items([{"role": "user", "content": "Hello again.", "blob": "a\0b"}])
        assert (await second.get_items())[0]["blob"] == "a\0b"
        assert [one.content for one in ana.messages(session="second")] == ["Hello again."]
        assert engine.verify().clean


asyncio.run(main())
print("both know")
