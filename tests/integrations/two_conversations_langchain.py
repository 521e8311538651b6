"""Run in LangChain's own environment: two conversations of one user, with its agent and a model that is scripted."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

import perdure
from perdure.integrations.langchain import PerdureChatMessageHistory, PerdureKeyValueStore, PerdureMiddleware


class Scripted(BaseChatModel):
    answers: list[AIMessage]
    told: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.told.append(list(messages))
        return ChatResult(generations=[ChatGeneration(message=self.answers.pop(0))])


def weather(place: str) -> str:
    """The weather of a place."""
    return f"Sun in {place}."


def check_the_agent(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    call = AIMessage("", tool_calls=[{"name": "weather", "args": {"place": "Lisbon"}, "id": "1"}])
    model = Scripted(answers=[AIMessage("Noted."), call, AIMessage("In Lisbon, in the sun."), AIMessage("You are welcome.")])
    agent = create_agent(
        model,
        [weather],
        system_prompt="You are a helper.",
        middleware=[PerdureMiddleware(ana)],
        checkpointer=InMemorySaver(),
    )

    def say(text: str, thread: str) -> dict[str, Any]:
        return agent.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}})

    say("I live in Lisbon, and my sister is called Rita.", "first")
    answer = say("Where do I live, and how is the weather there?", "second")
    assert "perdure_context" not in answer
    system = [str(told[0].text) for told in model.told]
    assert all(text.startswith("You are a helper.") for text in system)
    assert "Lisbon" not in system[0]
    assert "Lisbon" in system[1], "the second conversation knows what was said in the first"
    assert system[1] == system[2], "it is told once a turn, and stays for its calls of the model"
    assert "Lisbon" not in str(model.told[1][1:]), "the history is that of this thread"
    asyncio.run(agent.ainvoke({"messages": [("user", "Thank you!")]}, {"configurable": {"thread_id": "second"}}))
    said = [(one.role, one.content) for one in ana.messages(session="second")]
    assert said == [
        ("user", "Where do I live, and how is the weather there?"),
        ("assistant", "In Lisbon, in the sun."),
        ("user", "Thank you!"),
        ("assistant", "You are welcome."),
    ], said
    assert engine.memory("bea").messages() == []


def check_the_example_of_the_page(engine: perdure.Engine) -> None:
    model = Scripted(answers=[AIMessage("Noted."), AIMessage("In Lisbon.")])
    agent = create_agent(model, [], system_prompt="You are a helper.", middleware=[PerdureMiddleware(engine.memory("zoe"))])
    agent.invoke({"messages": [("user", "I live in Lisbon.")]}, {"configurable": {"thread_id": "first"}})
    agent.invoke({"messages": [("user", "Where do I live?")]}, {"configurable": {"thread_id": "second"}})
    assert ["Lisbon" in str(told[0].text) for told in model.told] == [False, True]


def check_the_history(engine: perdure.Engine) -> None:
    eva = engine.memory("eva")
    history = PerdureChatMessageHistory("s-1", eva)
    kept = [
        HumanMessage("I live in Porto.", additional_kwargs={"blob": "a\0b"}),
        AIMessage("", tool_calls=[{"name": "weather", "args": {}, "id": "1"}]),
        ToolMessage("Rain.", tool_call_id="1"),
        AIMessage("It rains."),
    ]
    history.add_messages(kept[:1])
    asyncio.run(history.aadd_messages(kept[1:]))
    assert PerdureChatMessageHistory("s-1", eva).messages == kept
    assert [one.content for one in eva.messages(session="s-1")] == ["I live in Porto.", "It rains."]
    assert any("Porto" in one.content for one in eva.memories.list())
    history.clear()
    assert asyncio.run(history.aget_messages()) == []
    history.add_user_message("Hello again.")
    assert [one.content for one in eva.messages(session="s-1")] == ["Hello again."]


def check_the_store(engine: perdure.Engine) -> None:
    eva = engine.memory("eva")
    one, other = PerdureKeyValueStore(eva), PerdureKeyValueStore(eva, name="other")
    one.mset([("a/b", 1), ("a*", 2), ("b", None)])
    assert list(one.yield_keys(prefix="a")) == ["a*", "a/b"]
    assert list(other.yield_keys()) == []
    assert other.mget(["a/b"]) == [None]


with perdure.open("sqlite:///store.db", background=False) as opened:
    check_the_agent(opened)
    check_the_example_of_the_page(opened)
    check_the_history(opened)
    check_the_store(opened)
    assert opened.verify().clean
print("both know")
