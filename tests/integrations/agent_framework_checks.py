"""Run in Agent Framework's own environment: real agents with a chat client that is a script."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Mapping, Sequence
from typing import Any

import checks
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)

import perdure
from perdure.integrations.agent_framework import PerdureContextProvider, PerdureHistoryProvider


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """A client that answers what it was told to, and keeps what it was asked."""

    def __init__(self, *answers: str | Content) -> None:
        super().__init__()
        self.answers = list(answers)
        self.asked: list[list[Message]] = []
        self.told: list[str] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        self.asked.append(list(messages))
        self.told.append(str(options.get("instructions")))
        answer = self.answers.pop(0)
        if stream:
            return ResponseStream(self._pieces(answer), finalizer=ChatResponse.from_updates)
        return self._whole(answer)

    async def _whole(self, answer: str | Content) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [answer])])

    async def _pieces(self, answer: str | Content) -> AsyncIterable[ChatResponseUpdate]:
        yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(answer) if isinstance(answer, str) else answer])


def take_note(what: str) -> str:
    """Note something down."""
    return f"noted {what}"


async def the_second_conversation_knows_what_was_said_in_the_first(engine: perdure.Engine) -> None:
    ana, client = engine.memory("ana"), Scripted("Noted.", "In Lisbon.", "As I said.")
    providers = [PerdureContextProvider(ana), PerdureHistoryProvider(ana)]
    agent = Agent(client=client, instructions="You are a helper.", context_providers=providers)
    await agent.run("I live in Lisbon, and my sister is called Rita.", session=agent.create_session(session_id="first"))
    second = agent.create_session(session_id="second")
    assert (await agent.run("Where do I live?", session=second)).text == "In Lisbon."
    assert "Lisbon" not in client.told[0]
    assert client.told[1].startswith("You are a helper.")
    assert "<memory" in client.told[1]
    assert "Lisbon" in client.told[1], client.told
    assert [one.text for one in client.asked[1]] == ["Where do I live?"], "the history is that of this session"
    await agent.run("Are you sure?", session=second)
    assert [one.text for one in client.asked[2]] == ["Where do I live?", "In Lisbon.", "Are you sure?"]
    kept = [(one.role, one.content) for one in ana.messages(session="second")]
    assert kept == [
        ("user", "Where do I live?"),
        ("assistant", "In Lisbon."),
        ("user", "Are you sure?"),
        ("assistant", "As I said."),
    ]


async def two_conversations_at_once_know_of_one_another(engine: perdure.Engine) -> None:
    ana, client = engine.memory("ana"), Scripted("Hello.", "Noted.", "Dr. Gomes.", "You do.")
    agent = Agent(client=client, context_providers=[PerdureContextProvider(ana)])
    one, other = agent.create_session(session_id="one"), agent.create_session(session_id="other")
    await agent.run("Good morning!", session=one)
    await agent.run("My dentist is called Dr. Gomes, and I live in Lisbon.", session=other)
    await agent.run("What is my dentist called?", session=one)
    await agent.run("Where do I live?", session=one)
    assert "Gomes" not in client.told[1]
    assert "Gomes" in client.told[2]
    assert "Lisbon" in client.told[3]


async def a_streamed_run_is_remembered_too(engine: perdure.Engine) -> None:
    ana, client = engine.memory("ana"), Scripted("Noted.")
    agent = Agent(client=client, context_providers=[PerdureContextProvider(ana)])
    async for _ in agent.run("My dentist is called Dr. Gomes.", session=agent.create_session(session_id="s"), stream=True):
        pass
    assert [one.content for one in ana.messages(session="s")] == ["My dentist is called Dr. Gomes.", "Noted."]


async def a_conversation_goes_on_in_another_process_with_its_tool_calls(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    call = Content.from_function_call(call_id="1", name="take_note", arguments={"what": "milk"})
    agent = Agent(client=Scripted(call, "Done."), tools=[take_note], context_providers=[PerdureHistoryProvider(ana)])
    assert (await agent.run("Note milk.", session=agent.create_session(session_id="s"))).text == "Done."

    client = Scripted("Milk.")
    agent = Agent(client=client, context_providers=[PerdureHistoryProvider(engine.memory("ana"))])
    await agent.run("What did you note?", session=agent.create_session(session_id="s"))
    seen = [(one.role, content.type) for one in client.asked[0] for content in one.contents]
    assert seen == [
        ("user", "text"),
        ("assistant", "function_call"),
        ("tool", "function_result"),
        ("assistant", "text"),
        ("user", "text"),
    ]
    assert ana.messages() == [], "the history alone is for programs"


async def messages_come_back_equal_and_sessions_stay_apart(engine: perdure.Engine) -> None:
    history = PerdureHistoryProvider(engine.memory("ana"))
    picture = Content.from_data(b"\0\xff picture", media_type="image/png")
    sent = [Message("user", ["See", picture], author_name="Ana"), Message("assistant", ["sk-ant-REDACTED"])]
    await history.save_messages("a/b*", sent)
    await history.save_messages("a", [Message("user", ["Other."])])
    await history.save_messages("a", [])
    held = await history.get_messages("a/b*")
    assert [one.to_dict() for one in held] == [one.to_dict() for one in sent]
    assert [one.text for one in await history.get_messages("a")] == ["Other."]
    assert await history.get_messages("b") == []
    assert await history.get_messages(None) == []
    assert await PerdureHistoryProvider(engine.memory("ben")).get_messages("a") == []


async def what_was_forgotten_is_gone_from_history_and_instructions(engine: perdure.Engine) -> None:
    ana, client = engine.memory("ana"), Scripted("Noted.", "I do not know.")
    agent = Agent(client=client, context_providers=[PerdureContextProvider(ana), PerdureHistoryProvider(ana)])
    await agent.run("My sister is called Rita.", session=agent.create_session(session_id="s"))
    ana.remember("Rita is my sister", "PEOPLE", entities=["person:Rita"])
    ana.forget(entity="person:rita")
    await agent.run("What is my sister called?", session=agent.create_session(session_id="s"))
    assert "Rita" not in f"{client.told[1]} {[one.text for one in client.asked[1]]}"


if __name__ == "__main__":
    checks.run(
        the_second_conversation_knows_what_was_said_in_the_first,
        two_conversations_at_once_know_of_one_another,
        a_streamed_run_is_remembered_too,
        a_conversation_goes_on_in_another_process_with_its_tool_calls,
        messages_come_back_equal_and_sessions_stay_apart,
        what_was_forgotten_is_gone_from_history_and_instructions,
    )
