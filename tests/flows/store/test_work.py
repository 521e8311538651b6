"""What a call does is counted, and bounded: statements, commits that sync, rows read, and functions of ours called.

The bounds stand in `tests/budgets.toml`. Nothing here is timed, so that it tells the same on every machine.
"""

from __future__ import annotations

import ast
import gc
import itertools
import json
import os
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest
from anyio.from_thread import start_blocking_portal
from fastapi.testclient import TestClient

import perdure
from perdure import NewMessage
from perdure.domain.context.recall import Recall
from perdure.engine.conversation.jobs import TALLY
from perdure.interfaces.mcp.callers import LocalCaller
from perdure.interfaces.mcp.server import build as mcp_server
from perdure.interfaces.mcp.sets import offers
from perdure.interfaces.mcp.stdio import serve_pipe
from perdure.interfaces.server import Options, build
from perdure.services.access.log import TRACE
from perdure.services.jobs.worker import Worker
from perdure.testing import StoppedClock

BUDGETS: dict[str, dict[str, int]] = tomllib.loads((Path(__file__).parents[2] / "budgets.toml").read_text())
PACKAGE = str(Path(perdure.__file__).parent)
NOUNS = ("ferry", "lantern", "orchard", "violin", "glacier", "compass", "saddle", "teapot", "harbour", "bicycle")


class Work:
    """Counts what SQLite and Python do while `counted` runs something."""

    def __init__(self) -> None:
        self._found: Counter[str] = Counter()
        self._counting = False

    def hook(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self._statement
        connection.row_trace = self._row

    def _statement(self, _cursor: object, sql: str, _values: object) -> bool:
        if self._counting:
            self._found["statements"] += 1
            self._found["syncs"] += sql.startswith("COMMIT")
        return True

    def _row(self, _cursor: object, row: Any) -> Any:
        self._found["rows"] += self._counting
        return row

    def _called(self, frame: FrameType, event: str, _arg: object) -> None:
        # Those of libraries are left out: their versions differ from machine to machine.
        self._found["calls"] += self._counting and event == "call" and frame.f_code.co_filename.startswith(PACKAGE)

    @contextmanager
    def in_all_threads(self) -> Iterator[None]:
        """Count in every thread that is started meanwhile, too: a server answers in threads of its own."""
        threading.setprofile(self._called)
        try:
            yield
        finally:
            threading.setprofile(None)

    def counted(self, call: Callable[[], object]) -> dict[str, int]:
        """What a call does once everything that is made at first use is there."""
        for _ in range(3):
            call()
        self._found = Counter(statements=0, syncs=0, rows=0, calls=0)
        gc.collect()
        gc.disable()
        self._counting = True
        sys.setprofile(self._called)
        try:
            call()
        finally:
            sys.setprofile(None)
            self._counting = False
            gc.enable()
        return dict(self._found)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Iterator[Work]:
    # What another test has loaded must not count here.
    monkeypatch.delitem(sys.modules, TRACE, raising=False)
    counter = Work()
    apsw.connection_hooks.append(counter.hook)
    yield counter
    apsw.connection_hooks.remove(counter.hook)


@pytest.fixture
def engine(work: Work, tmp_path: Path) -> Iterator[perdure.Engine]:
    settings = perdure.Settings(url=f"sqlite:///{tmp_path / 'a.db'}", catch_up_ms=0)
    with perdure.open(settings=settings, clock=StoppedClock()) as opened:
        yield opened


def check(name: str, found: dict[str, int]) -> None:
    over = {kind: f"{count}, and at most {BUDGETS[name][kind]}" for kind, count in found.items() if count > BUDGETS[name][kind]}
    assert not over, f"{name} does more than `tests/budgets.toml` allows: {over}"


def talked(engine: perdure.Engine, messages: int, agent: str = "coach") -> perdure.Memory:
    """A user of whom so many messages are indexed and counted, and nothing waits to be read."""
    ana = engine.memory("ana", agent=agent)
    texts = [
        f"The {NOUNS[number % 10]} of row {number} is {NOUNS[number // 10 % 10]} {number % 97}." for number in range(messages)
    ]
    for start in range(0, messages, 500):
        ana.append_many([NewMessage("user", text) for text in texts[start : start + 500]])
    handlers = {TALLY: engine._composed.handlers[TALLY]}
    while Worker(engine._store, engine._clock, handlers, "counting", owner=ana.scope.owner).process(600).ran:
        pass
    return ana


def test_an_append_does_no_more_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    ana = engine.memory("ana", agent="coach")
    check("append", work.counted(lambda: ana.append("user", "The ferry leaves at nine tomorrow, remind me.")))


def test_a_batch_does_no_more_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    ana = engine.memory("ana", agent="coach")
    batch = [NewMessage("user", f"The ferry of day {number} leaves at nine.") for number in range(500)]
    check("append_many of 500", work.counted(lambda: ana.append_many(batch)))


def test_remembering_does_no_more_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    ana = engine.memory("ana", agent="coach")
    names = iter(NOUNS)
    check("remember", work.counted(lambda: ana.remember(f"I have a {next(names)} in the garden.")))


@pytest.mark.parametrize("messages", [100, 10_000])
def test_recall_does_no_more_than_its_budget_however_much_is_held(engine: perdure.Engine, work: Work, messages: int) -> None:
    ana = talked(engine, messages)
    found: list[Recall] = []
    check(f"recall at {messages}", work.counted(lambda: found.append(ana.recall("Which lantern was it?"))))
    assert len(found[-1].hits) == 10


def test_a_context_does_no_more_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    ana = talked(engine, 100)
    check("context", work.counted(lambda: ana.context("Which lantern was it?")))


def test_before_a_goal_no_more_is_done_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    ana = talked(engine, 100)
    for number in range(50):
        ana.state.save(f"shelf_{NOUNS[number % 10]}_{number}", number)
    check("before", work.counted(lambda: ana.before("Put the lantern on its shelf")))


def test_a_request_over_http_does_no_more_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    talked(engine, 100, agent="default")
    client = TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1")

    def ask(what: str, body: dict[str, str]) -> Any:
        return client.post(f"/v1/users/ana/{what}", json=body).raise_for_status().json()

    with work.in_all_threads():
        message = {"role": "user", "content": "The ferry leaves at nine tomorrow."}
        question = {"query": "Which lantern was it?"}
        check("recall over HTTP", work.counted(lambda: ask("recall", question)))
        check("append over HTTP", work.counted(lambda: ask("messages", message)))
    assert len(ask("recall", question)["hits"]) == 10


def test_a_call_over_mcp_does_no_more_than_its_budget(engine: perdure.Engine, work: Work) -> None:
    ana, names, ids = talked(engine, 100), iter(NOUNS), itertools.count(1)
    (from_client, to_server), (from_server, to_client) = os.pipe(), os.pipe()
    owner = LocalCaller(engine, ana)
    server = mcp_server(lambda _: owner, offers(ana.tools))

    def ask(method: str, params: dict[str, Any]) -> None:
        message = {"jsonrpc": "2.0", "id": next(ids), "method": method, "params": params}
        os.write(to_server, json.dumps(message).encode() + b"\n")
        answer = json.loads(answers.readline())
        assert "result" in answer, answer
        assert not answer["result"].get("isError"), answer

    def call(tool: str, **arguments: str) -> None:
        ask("tools/call", {"name": tool, "arguments": arguments})

    with work.in_all_threads(), os.fdopen(from_server, "rb") as answers, start_blocking_portal() as portal:
        ended = portal.start_task_soon(serve_pipe, server, from_client, to_client)
        ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}})
        check("recall over MCP", work.counted(lambda: call("recall", query="Which lantern was it?")))
        check("remember over MCP", work.counted(lambda: call("remember", content=f"I have a {next(names)} in the garden.")))
        os.close(to_server)
        ended.result(60)
    for end in (from_client, to_client):
        os.close(end)


def test_opening_a_store_does_no_more_than_its_budget(tmp_path: Path) -> None:
    """Counted in a process of its own, from its first line on."""
    script = """
import sys
found = {"modules": 0, "compiled": 0}
def hook(event, args):
    if event == "compile" or (event == "exec" and args[0].co_filename == "<string>"):
        found["compiled"] += 1
sys.addaudithook(hook)
import perdure
with perdure.open(sys.argv[1]):
    pass
found["modules"] = sum(name.split(".")[0] == "perdure" for name in sys.modules)
print(found)
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "a.db")], capture_output=True, text=True, check=True, timeout=300
    )
    check("open", ast.literal_eval(done.stdout))


def test_a_call_that_grew_is_named_with_what_grew() -> None:
    with pytest.raises(AssertionError, match=r"append does more .*'statements': '1007, and at most 7'"):
        check("append", {"statements": 1_007, "syncs": 1})
