"""Round trips with the SDK's own client, in both eras of the protocol, over stdio and over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import quote

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from perdure.interfaces.mcp.callers import LocalCaller
from perdure.interfaces.mcp.server import build
from perdure.interfaces.mcp.sets import offers
from tests.mcp.live_mcp import ERAS, Live, run

ALL = 35
Open = Callable[..., AbstractAsyncContextManager[Client]]


async def call(client: Client, tool: str, /, **params: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, params)
    assert not result.is_error, result
    assert result.structured_content is not None
    return result.structured_content


async def everything(client: Client) -> None:
    """Every tool once, resources and prompts. The client checks each answer against the tool's output schema."""
    tools = {tool.name for tool in (await client.list_tools()).tools}
    used = set()

    async def use(tool: str, /, **params: Any) -> dict[str, Any]:
        used.add(tool)
        return await call(client, tool, **params)

    # state and series
    assert (await use("saveState", key="units", value={"length": "km"}))["revision"] == 1
    assert (await use("loadState", key="units"))["value"] == {"length": "km"}
    assert (await use("listStateKeys"))["count"] == 1
    assert (await use("searchState", pattern="un*"))["matches"] == ["units"]
    assert (await use("deleteState", key="units"))["deleted"]
    entries = [{"id": "1", "timestamp": "2026-01-01T10:00:00Z", "from": "Bo"}]
    window = {"window_start": "2026-01-01T00:00:00Z", "window_end": "2026-01-02T00:00:00Z"}
    assert (await use("mergeTimeseriesState", key="kudos", entries=entries, **window))["added"] == 1
    asked = {"start_time": "2026-01-01T00:00:00Z", "end_time": "2026-01-01T23:00:00Z"}
    assert (await use("queryTimeseriesState", key="kudos", **asked))["coverage"] == "full"
    assert (await use("cleanupTimeseriesState", key="kudos", keep_days=100_000))["removed"] == 0
    # what is known
    kept = await use("remember", content="Lives in Austin", attribute="lives_in", value="Austin")
    assert kept["verdict"] == "added"
    await use("remember", content="Bo is my sister", type="PEOPLE", entities=["person:Bo"], pinned=True)
    found = await use("recall", query="Where does the user live?", kinds=["memory"], limit=3)
    assert any("Austin" in hit["text"] for hit in found["hits"])
    keys = [one["key"] for one in (await use("listMemories"))["items"]]
    assert len(keys) == 2
    key = kept["statement"]["memory"]
    assert (await use("getMemory", key=key))["content"] == "Lives in Austin"
    assert len((await use("getMemoryHistory", key=key))["items"]) == 1
    assert (await use("pinMemory", key=key))["memory"]["pinned"]
    await use("pinMemory", key=key, pinned=False)
    assert (await use("archiveMemory", key=key))["memory"]["status"] == "ARCHIVED"
    assert (await use("archiveMemory", key=key, archived=False))["memory"]["status"] == "ACTIVE"
    assert (await use("getContext", goal="Visit Bo"))["blocks"]
    # at work
    todo = await use("addTodo", content="Call Bo", due_at="2026-02-02T12:00:00+01:00")
    assert [one["id"] for one in (await use("listTodos"))["items"]] == [todo["id"]]
    assert (await use("completeTodo", todo=todo["id"]))["state"] == "completed"
    lesson = await use("addLesson", text="Answer in two sentences at most", scope="user")
    assert lesson["id"] in [one["id"] for one in (await use("listLessons"))["items"]]
    said = await use("appendMessage", role="user", content="I fly to Lisbon on Friday", id="m1", session="s 1/ü")
    assert said["session"] == "s 1/ü"
    assert len((await use("listSessions"))["items"]) == 1
    assert (await use("readSession", session="s 1/ü"))["items"][0]["content"] == "I fly to Lisbon on Friday"
    # context documents
    loaded = await use("loadDocument", document="talk")
    loaded["facts"] = ["Bo lives in Lisbon"]
    said = {"timestamp": 1_767_607_200, "role": "user", "token_count": 5}
    loaded["recent_history"] = [{**said, "content": f"I fly on Friday {number}"} for number in range(4)]
    assert (await use("saveDocument", document=loaded))["revision"] == 1
    assert (await use("listDocuments"))["items"] == [loaded["session_id"]]
    assert (await use("compactDocument", document="talk", force=True))["compacted"]
    assert [one["revision"] for one in (await use("listDocumentVersions", document="talk"))["items"]] == [2, 1]
    assert "choices" in await use("beforeGoal", goal="Plan a weekend with Bo")
    kept = await use("afterTool", tool="getWeather", result={"temperature": 21, "city": "Lisbon"}, mode="suggest")
    assert kept["tool"] == "getWeather"
    # upkeep
    changed = next(one["seq"] for one in (await use("listChanges"))["items"] if one["kind"] == "lesson")
    assert (await use("undo", operation=changed))["undone"] == changed
    assert "healthy" in await use("doctor")
    # resources and prompts
    uris = {str(one.uri) for one in (await client.list_resources()).resources}
    wanted = {f"perdure://memories/{quote(key, safe='')}", "perdure://series/kudos", "perdure://sessions/s%201%2F%C3%BC"}
    assert wanted | {"perdure://memories", "perdure://series", "perdure://sessions"} <= uris
    for uri in sorted(uris):
        assert (await client.read_resource(uri)).contents
    assert len((await client.list_resource_templates()).resource_templates) == 3
    for name, arguments in (("recall_about", {"topic": "Bo"}), ("daily_review", None), ("plan_goal", {"goal": "See Bo"})):
        message = (await client.get_prompt(name, arguments)).messages[0]
        assert "<memory " in message.content.text
    assert {one.name for one in (await client.list_prompts()).prompts} == {"recall_about", "daily_review", "plan_goal"}
    # and away with it
    assert (await use("forget", memory=key))["forgotten"]
    assert tools == used
    assert len(used) == ALL


async def refusals(client: Client) -> None:
    """What is wrong is said, by name, and never as a stack trace."""
    wrong: tuple[tuple[str, dict[str, Any], str, str], ...] = (
        ("recall", {"quer": "x"}, "invalid_input", "`quer`"),
        ("recall", {}, "invalid_input", "`query`"),
        ("recall", {"query": 5}, "invalid_input", "`query`"),
        (
            "recall",
            {"query": "x", "since": "2026-02-01T00:00:00Z", "until": "2026-01-01T00:00:00Z"},
            "invalid_input",
            "`until`",
        ),
        ("remember", {"content": "x", "valid_from": "yesterday"}, "invalid_input", "`valid_from`"),
        ("getMemory", {"key": "nothing"}, "not_found", "nothing"),
        ("saveState", {"key": "", "value": 1}, "invalid_input", "`key`"),
        ("saveState", {"key": "a\0b", "value": 1}, "invalid_input", "NUL"),
        ("saveState", {"key": "deep", "value": json_of(70)}, "invalid_input", "64"),
        ("forget", {}, "invalid_input", "exactly one"),
        ("forget", {"user": True}, "invalid_input", "`user`"),
        ("undo", {"operation": 10**6}, "not_found", "1000000"),
    )
    for tool, params, code, words in wrong:
        result = await client.call_tool(tool, params)
        assert result.is_error, (tool, params)
        told = result.structured_content
        assert told is not None
        assert set(told) == {"success", "error", "remedy", "code"}
        assert (told["success"], told["code"]) == (False, code)
        assert words in f"{told['error']}; {told['remedy']}", told
        assert "Traceback" not in str(result)
    for ask in (
        client.call_tool("dropTables", {}),
        client.read_resource("perdure://memories/nothing"),
        client.read_resource("file:///etc/passwd"),
        client.get_prompt("nothing"),
        client.get_prompt("plan_goal", {}),
        client.get_prompt("plan_goal", {"goal": "x", "more": "y"}),
        client.list_tools(cursor="2"),
    ):
        with pytest.raises(MCPError) as caught:
            await ask
        assert caught.value.code == -32602


def json_of(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_resource_and_prompt_answers_over_stdio(over_stdio: Open, era: str) -> None:
    async def talk() -> None:
        async with over_stdio("--tools", "all", era=era) as client:
            await everything(client)
            await refusals(client)

    run(talk())


@pytest.mark.parametrize("era", ERAS)
def test_every_tool_resource_and_prompt_answers_over_http(live: Live, era: str) -> None:
    async def talk() -> None:
        async with live.client(era=era) as client:
            await everything(client)
            await refusals(client)

    run(talk())


def test_a_read_only_server_offers_nothing_that_writes(live: Live) -> None:
    async def talk() -> None:
        owner = LocalCaller(live.engine, live.engine.memory("ana"))
        offered = offers(owner.bound.tools, "all", read_only=True)
        async with Client(build(lambda _: owner, offered, read_only=True)) as client:
            tools = (await client.list_tools()).tools
            assert "plan_goal" not in [prompt.name for prompt in (await client.list_prompts()).prompts]
            assert {"recall", "loadState", "listTodos"} <= {tool.name for tool in tools}
            assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
            with pytest.raises(MCPError, match="there is no tool 'remember'"):
                await client.call_tool("remember", {"content": "x"})

    run(talk())


def test_a_key_sees_its_user_alone(live: Live) -> None:
    async def talk() -> None:
        async with live.client(live.key(users=["ana"])) as ana, live.client(live.key(users=["bo"])) as bo:
            kept = await call(ana, "remember", content="Lives in Austin")
            uri = f"perdure://memories/{quote(kept['statement']['memory'], safe='')}"
            assert (await ana.read_resource(uri)).contents
            assert (await call(bo, "listMemories"))["items"] == []
            with pytest.raises(MCPError, match=r"memory .* (not|no)|no memory"):
                await bo.read_resource(uri)
        async with live.client({**live.key(users=["bo"]), "Perdure-User": "ana"}) as thief:
            result = await thief.call_tool("listMemories", {})
            assert result.structured_content is not None
            assert result.structured_content["code"] == "forbidden"
            assert [str(one.uri) for one in (await thief.list_resources()).resources] == [
                "perdure://memories",
                "perdure://series",
                "perdure://sessions",
            ]

    run(talk())


def test_a_key_for_reading_is_offered_and_granted_no_writing(live: Live) -> None:
    async def talk() -> None:
        async with live.client(live.key("read", ["ana"])) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            assert "recall" in tools
            assert not tools & {"remember", "forget", "saveState", "getContext", "doctor"}
            assert "plan_goal" not in [prompt.name for prompt in (await client.list_prompts()).prompts]
            with pytest.raises(MCPError, match="does not permit write"):
                await client.get_prompt("plan_goal", {"goal": "x"})
            result = await client.call_tool("remember", {"content": "Lives in Austin"})
            assert result.structured_content is not None
            assert result.structured_content["code"] == "forbidden"
            assert (await call(client, "listMemories"))["items"] == []

    run(talk())


def test_a_key_for_several_users_says_whose_memory_it_means(live: Live) -> None:
    key = live.key(users=["ana", "žofie"])

    async def talk() -> None:
        async with live.client({**key, "Perdure-User": quote("žofie"), "Perdure-Agent": "planner"}) as client:
            assert (await call(client, "addTodo", content="Buy bread"))["agent"] == "planner"
        assert live.engine.memory("žofie", agent="planner").todos.list()
        assert not live.engine.memory("ana").todos.list()

    run(talk())


def test_what_concerns_the_whole_store_needs_a_key_for_all(live: Live) -> None:
    async def talk() -> None:
        async with live.client(live.key("admin", ["ana"])) as client:
            result = await client.call_tool("doctor", {})
            assert result.structured_content is not None
            assert result.structured_content["code"] == "forbidden"
        async with live.client(live.key("admin")) as client:
            assert "healthy" in await call(client, "doctor")

    run(talk())
