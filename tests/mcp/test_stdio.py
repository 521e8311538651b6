"""`perdure mcp` as a process: what is on its stdout, what becomes of hostile lines, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from typer.testing import CliRunner

import perdure
from perdure.interfaces import stdio
from perdure.interfaces.cli.commands import app
from perdure.interfaces.mcp.callers import LocalCaller
from perdure.interfaces.mcp.server import build
from perdure.interfaces.mcp.sets import offers
from perdure.interfaces.mcp.stdio import PendingRequests, serve_pipe
from tests.mcp.live_mcp import PERDURE
from tests.mcp.test_wire import HOSTILE

HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def tell(*messages: Any) -> bytes:
    return b"".join(one + b"\n" if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in messages)


def served(tmp_path: Path, lines: bytes, *more: str, user: str = "ana") -> tuple[list[dict[str, Any]], str]:
    """What the process answers to these lines, until they end; it ends by itself."""
    url = f"sqlite:///{tmp_path / 'perdure.db'}"
    args = [PERDURE, "mcp", "--user", user, "--url", url, *more]
    done = subprocess.run(args, input=lines, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def test_every_id_is_answered_and_stdout_carries_the_protocol_alone(tmp_path: Path) -> None:
    hostile = {name: raw for name, (raw, _, _) in HOSTILE.items() if b"\n" not in raw}
    calls = [
        {"jsonrpc": "2.0", "id": 1000, "method": "nothing/here"},
        {"jsonrpc": "2.0", "id": 1001, "method": "tools/call"},
        {"jsonrpc": "2.0", "id": 1002, "method": "tools/call", "params": {"name": 5}},
        {"jsonrpc": "2.0", "id": 1003, "method": "tools/call", "params": {"name": "recall", "arguments": [1]}},
        {"jsonrpc": "2.0", "id": 1004, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "a\0b"}}},
        {"jsonrpc": "2.0", "id": 1005, "method": "resources/read", "params": {"uri": "perdure://memories/%00%FF"}},
        {"jsonrpc": "2.0", "id": 1006, "method": "prompts/get", "params": {"name": "plan_goal", "arguments": {"goal": 5}}},
        {"jsonrpc": "2.0", "id": 1007, "method": "initialize"},
        {"jsonrpc": "2.0", "id": 1008, "method": "ping"},
        {
            "jsonrpc": "2.0",
            "id": 1009,
            "method": "tools/call",
            "params": {"name": "saveState", "arguments": {"key": "k", "value": "ü"}},
        },
        {"jsonrpc": "2.0", "method": "notifications/nothing"},
        {"jsonrpc": "2.0", "id": 5, "result": {}},
    ]
    started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answers, errors = served(tmp_path, tell(HELLO, started, b"", *hostile.values(), *calls))
    assert "Traceback" not in errors
    ids = [answer["id"] for answer in answers]
    wanted = [one for raw, _, found in HOSTILE.values() if b"\n" not in raw for one in found]
    assert sorted(map(str, ids)) == sorted(map(str, ["hello", *wanted, *range(1000, 1010)]))
    by_id = {answer["id"]: answer for answer in answers}
    codes = {one: by_id[one]["error"]["code"] for one in (1000, 1001, 1002, 1003, 1005, 1006)}
    assert codes == {1000: -32601, 1001: -32602, 1002: -32602, 1003: -32602, 1005: -32602, 1006: -32602}
    assert by_id[1004]["result"]["structuredContent"]["code"] == "invalid_input"
    assert by_id[1008]["result"] == {}
    assert by_id[1009]["result"]["structuredContent"]["revision"] == 1


def test_what_was_asked_before_the_end_is_done_and_answered(tmp_path: Path) -> None:
    saves = [
        {
            "jsonrpc": "2.0",
            "id": n,
            "method": "tools/call",
            "params": {"name": "saveState", "arguments": {"key": f"k{n}", "value": n}},
        }
        for n in range(20)
    ]
    answers, _ = served(tmp_path, tell(HELLO, *saves)[:-1])  # not even a line end behind the last one
    assert {answer["id"] for answer in answers} == {"hello", *range(20)}
    with perdure.open(f"sqlite:///{tmp_path / 'perdure.db'}") as engine:
        assert len(engine.memory("ana").state.keys()) == 20


def test_the_scope_is_that_of_the_command_line(tmp_path: Path) -> None:
    call = {"name": "addTodo", "arguments": {"content": "Buy bread"}}
    lines = tell(HELLO, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    served(tmp_path, lines, "--agent", "planner", "--space", "lab", user="bo")
    with perdure.open(f"sqlite:///{tmp_path / 'perdure.db'}") as engine:
        assert len(engine.memory("bo", agent="planner", space="lab").todos.list()) == 1
        assert not engine.memory("bo", agent="planner").todos.list()
        assert not engine.memory("ana", agent="planner", space="lab").todos.list()


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--user", "ana", "--tools", "knowledge,all,magic"], "there is no set of tools 'magic'"),
        ([], "no user is named"),
    ],
)
def test_a_wrong_start_is_refused_before_anything_is_served(tmp_path: Path, args: list[str], words: str) -> None:
    done = CliRunner().invoke(app, ["mcp", "--url", f"sqlite:///{tmp_path / 'perdure.db'}", *args])
    assert isinstance(done.exception, perdure.InvalidInput)
    assert words in str(done.exception)


def test_what_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(perdure.InvalidInput, match=r"pip install 'perdure\[mcp\]'"):
        stdio.check_installed()


def test_neither_the_library_nor_the_help_imports_the_sdk() -> None:
    code = "import sys, perdure, perdure.interfaces.cli.commands; print([m for m in sys.modules if m.split('.')[0] in ('mcp', 'mcp_types')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_ctrl_c_ends_it_while_it_waits_for_the_client(tmp_path: Path) -> None:
    command = [PERDURE, "mcp", "--user", "ana", "--url", f"sqlite:///{tmp_path / 'perdure.db'}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(tell({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"] == {}
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stderr.read() == b""


def test_a_client_that_went_away_ends_it() -> None:
    from_client, to_server = os.pipe()
    from_server, to_client = os.pipe()
    os.close(from_server)
    with perdure.open("memory:") as engine:
        owner = LocalCaller(engine, engine.memory("ana"))
        os.write(to_server, tell({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        with anyio.from_thread.start_blocking_portal() as portal:
            server = build(lambda _: owner, offers(owner.bound.tools))
            portal.start_task_soon(serve_pipe, server, from_client, to_client).result(60)
    for end in (to_server, from_client, to_client):
        os.close(end)


def test_jobs_run_while_it_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[bool] = []

    def look(engine: perdure.Engine, memory: perdure.Memory, **how: Any) -> None:
        found.append(engine._background is not None)
        assert memory.scope.owner.user == "ana"
        assert how == {"tools": "default", "read_only": True}

    monkeypatch.setattr(stdio, "serve", look)
    done = CliRunner().invoke(app, ["mcp", "--user", "ana", "--url", f"sqlite:///{tmp_path / 'perdure.db'}", "--read-only"])
    assert done.exit_code == 0, done.output
    assert found == [True]


def test_a_request_that_is_cancelled_is_not_waited_for() -> None:
    async def talk() -> None:
        outer, inner = anyio.create_memory_object_stream[SessionMessage](5)
        async with outer, inner:
            waiting = PendingRequests(outer)
            for number in (1, 2, 2):
                waiting.expect(JSONRPCRequest(jsonrpc="2.0", id=number, method="ping"))
            waiting.expect(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params={"requestId": 1}))
            for _ in range(2):
                with pytest.raises(TimeoutError), anyio.fail_after(0):
                    await waiting.none_left()
                await waiting.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=2, result={})))
            with anyio.fail_after(10):
                await waiting.none_left()

    anyio.run(talk)
