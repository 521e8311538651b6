"""One registry of tools: the same on `ana.tools`, over HTTP and over MCP; and a host adds its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import perdure
from perdure import InvalidInput
from perdure.handles.registry.toolset import BY_NAME, OTHER_NAMES
from perdure.interfaces.mcp import sets
from perdure.interfaces.mcp.callers import LocalCaller


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        yield engine


@perdure.tool(
    description="The weather of a city.",
    parameters=[
        {"name": "city", "type": "string", "description": "Where.", "required": True},
        {"name": "days", "type": "integer", "description": "How many.", "required": False},
    ],
    returns="Degrees",
    permissions="read",
)
def getWeather(city: str, days: int = 1) -> dict[str, Any]:  # noqa: N802 - as the seeds name tools
    if city == "Atlantis":
        raise OSError("no such city")
    return {"city": city, "degrees": 20, "days": days}


def test_a_model_remembers_recalls_and_forgets_by_tools(engine: perdure.Engine) -> None:
    tools = engine.memory("ana").tools
    kept = tools.call_tool("remember", {"content": "Lives in Lisbon", "attribute": "lives_in", "value": "Lisbon"})
    assert kept["success"] is True
    found = tools.call_tool("recall", {"query": "Where does she live?"})
    assert "Lisbon" in found["hits"][0]["text"]
    gone = tools.call_tool("forget", {"memory": kept["statement"]["memory"]})
    assert gone["forgotten"] is True
    assert engine.memory("ana").memories.list() == []
    assert tools.call_tool("forget", {"first_message": "m1"})["remedy"] == "give `first_message` and `last_message`"


def test_todos_and_lessons_are_tools_too(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    added = ana.tools.call_tool("addTodo", {"content": "Call Maria", "due_at": "2030-01-01T09:00:00+00:00"})
    assert [one["id"] for one in ana.tools.call_tool("listTodos")["items"]] == [added["id"]]
    assert ana.tools.call_tool("completeTodo", {"todo": added["id"]})["state"] == "completed"
    ana.tools.call_tool("addLesson", {"text": "Ask before booking."})
    assert [one["text"] for one in ana.tools.call_tool("listLessons")["items"]] == ["Ask before booking."]
    assert ana.tools.call_tool("addTodo", {"content": "x", "due_at": "noon"})["code"] == "invalid_input"


def test_tools_come_in_sets_of_which_a_host_takes_some(engine: perdure.Engine) -> None:
    tools = engine.memory("ana").tools
    assert list(tools.sets()) == ["state", "series", "knowledge", "todos", "lessons", "host"]
    assert tools.only(["knowledge"]).names() == ["remember", "recall", "forget"]
    assert tools.only(["knowledge"]).read_only().names() == ["recall"]
    assert tools.read_only().only(["todos"]).names() == ["listTodos"]
    with pytest.raises(InvalidInput, match="`sets`"):
        tools.only(["magic"])


def test_a_tool_of_the_host_is_offered_everywhere(engine: perdure.Engine) -> None:
    assert getWeather("Lisbon")["degrees"] == 20, "it can be called as before"
    engine.add_tool(getWeather)
    ana = engine.memory("ana")
    assert ana.tools.call_tool("getWeather", {"city": "Lisbon"}) == {
        "success": True,
        "city": "Lisbon",
        "degrees": 20,
        "days": 1,
    }
    assert ana.tools.call_tool("getWeather", {"town": "x"})["code"] == "invalid_input"
    assert ana.tools.call_tool("getWeather", {"city": "Atlantis"})["error"] == "tool getWeather failed (OSError: no such city)"
    [schema] = [one["function"] for one in ana.tools.schemas() if one["function"]["name"] == "getWeather"]
    assert schema["description"] == "The weather of a city. Returns: Degrees"
    assert schema["parameters"]["required"] == ["city"]
    [offer] = [one for one in sets.offers(ana.tools) if one.name == "getWeather"]
    assert offer.run(LocalCaller(engine, ana), {"city": "Porto"}).told["city"] == "Porto"


@pytest.mark.parametrize("name", ["remember", "saveState", "getContext", "getWeather"])
def test_a_name_that_is_taken_is_refused(engine: perdure.Engine, name: str) -> None:
    def function() -> None: ...

    function.__name__ = name
    engine.add_tool(getWeather)
    with pytest.raises(InvalidInput, match=f"there is a tool {name} already"):
        engine.add_tool(perdure.tool("Mine.")(function))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"parameters": [{"type": "string"}]}, "give each a `name`"),
        ({"parameters": [{"name": "a", "type": "date"}]}, "`type of a`"),
        ({"parameters": [{"name": "a", "required": "yes"}]}, "`required of a`"),
        ({"permissions": "root"}, "`permissions`"),
    ],
)
def test_a_declaration_that_is_wrong_says_so(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        perdure.tool("Mine.", **wrong)
    with perdure.open("memory:") as engine, pytest.raises(InvalidInput, match="declare a function"):
        engine.add_tool(len)  # type: ignore[arg-type]


def test_mcp_offers_what_the_registry_says(engine: perdure.Engine) -> None:
    tools = engine.memory("ana").tools
    offered = {one.name: one for one in sets.offers(tools, "all")}
    assert set(offered) == {*BY_NAME, *OTHER_NAMES}
    for told in tools.schemas("mcp"):
        assert offered[told["name"]].description == told["description"]
        assert set(offered[told["name"]].schema()["properties"]) == set(told["inputSchema"]["properties"])
