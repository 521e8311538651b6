"""`/mcp`: what is answered to whom, and what becomes of hostile bodies."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import httpx2
import pytest

import perdure
from perdure.interfaces.access import LOCAL
from perdure.interfaces.mcp.http import mount
from tests.mcp.live_mcp import Live, running
from tests.mcp.test_wire import HOSTILE, asked

LIST = asked(method="tools/list")
MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "saveState"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def saving(value: str, **more: Any) -> bytes:
    arguments = {"key": "k", "value": value}
    return asked(method="tools/call", params={"name": "saveState", "arguments": arguments, **more})


def test_every_hostile_body_is_answered_by_its_id(live: Live) -> None:
    for name, (raw, code, ids) in HOSTILE.items():
        answer = live.post(raw)
        assert answer.status_code == 400, name
        told = answer.json()
        found = told if isinstance(told, list) else [told]
        assert [(one["id"], one["error"]["code"]) for one in found] == [(one, code) for one in ids], name
    assert live.post(LIST).status_code == 200


def test_a_lone_surrogate_is_refused_in_either_era(live: Live) -> None:
    for headers, more in (({}, {}), (MODERN, {"_meta": META})):
        whole = live.post(saving("ü \U0001f600", **more), headers)
        assert whole.json()["result"]["structuredContent"]["success"], whole.text
        halved = live.post(saving("\ud83d", **more), headers)
        assert (halved.status_code, halved.json()["id"], halved.json()["error"]["code"]) == (400, 7, -32602)


def test_blanks_around_a_header_mean_nothing(live: Live) -> None:
    plain = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **MODERN}
    with closing(HTTPConnection("127.0.0.1", live.port, timeout=30)) as connection:
        connection.request("POST", "/mcp", saving("x", _meta=META), {**plain, "Mcp-Name": "  saveState  "})
        answer = json.loads(connection.getresponse().read())
    assert answer["result"]["structuredContent"]["success"]


def test_a_body_that_is_too_long_is_refused_before_it_is_read_to_its_end() -> None:
    with perdure.open("memory:") as engine, running(engine, user="ana", body_bytes_max=10_000) as live:
        answer = live.post(saving("x" * 20_000))
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, -32600)
        assert live.post(saving("x" * 5_000)).json()["result"]["structuredContent"]["success"]


def test_only_post_is_served_and_it_leaves_no_session_behind(live: Live) -> None:
    for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
        answer = httpx2.request(method, live.url, timeout=30)
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    hello = asked(
        method="initialize",
        params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    )
    answer = live.post(hello)
    assert answer.json()["result"]["protocolVersion"] == "2025-11-25"
    assert "mcp-session-id" not in answer.headers
    assert answer.headers["content-type"] == "application/json"
    assert live.post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}').status_code == 202


def test_nobody_is_answered_whom_the_guard_did_not_let_in(live: Live) -> None:
    answer = live.post(LIST, {"Authorization": "Bearer guessed"})
    assert answer.status_code == 401
    assert "tools" not in answer.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example.com"}, 421),
        ({"Origin": "http://evil.example.com"}, 403),
        ({"Origin": "http://127.0.0.1:9"}, 200),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_host_origin_and_types_are_looked_at(live: Live, headers: dict[str, str], status: int) -> None:
    assert live.post(LIST, headers).status_code == status


def test_without_a_user_the_tools_are_listed_and_the_call_says_what_is_missing() -> None:
    with perdure.open("memory:") as engine, running(engine) as live:
        assert live.post(LIST).json()["result"]["tools"]
        told = live.post(saving("x")).json()["result"]
        assert told["isError"]
        assert "Perdure-User" in told["structuredContent"]["remedy"]
        named = httpx2.post(
            f"{live.url}?user=bo&channel=c1",
            content=saving("x"),
            timeout=30,
            headers={"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
        )
        assert named.json()["result"]["structuredContent"]["success"]
        assert engine.memory("bo").state.load("k") == "x"


def test_a_bug_is_told_without_its_insides(
    live: Live, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError("secret path /etc/hidden")

    monkeypatch.setattr("perdure.handles.tools.Tools.call_tool", broken)
    told = live.post(saving("x"))
    assert told.json()["result"]["structuredContent"]["code"] == "error"
    assert "hidden" not in told.text
    monkeypatch.setattr("perdure.interfaces.mcp.resources.read", broken)
    told = live.post(asked(method="resources/read", params={"uri": "perdure://memories"}))
    assert told.json()["error"]["code"] == -32603
    assert "hidden" not in told.text
    assert "bug in perdure" in caplog.text


def test_before_it_runs_it_says_that_it_does_not() -> None:
    async def ask(app: Any) -> int:
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": LIST}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "headers": [], "state": {"access": LOCAL}}
        await app(scope, receive, send)
        return int(sent[0]["status"])

    with perdure.open("memory:") as engine:
        assert asyncio.run(ask(mount(engine).app)) == 503
