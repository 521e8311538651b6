"""Four ways to the same services: Python, the command line, HTTP and MCP, each on a fresh store with a stopped clock.

A skin carries out the steps that it is told and answers alike for all: a value in JSON's terms, or the code of an error,
having checked that the skin tells the error in its own way as the one table says.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import anyio.from_thread
import pytest

import perdure
from in_process import InProcess
from perdure.domain.errors import ALL_ERRORS, PerdureError
from perdure.handles.registry.shapes import plain
from perdure.interfaces.errors import EXIT_CODES, HTTP_STATUSES
from perdure.settings import Settings
from perdure.testing import StoppedClock

USER = "ana"
ID = re.compile(r"00000000-0000-7000-8000-[0-9a-f]{12}")
UNSTEADY = ("took_ms", "round_trip_ms", "request_id")
"""Measured with a real clock, so never the same twice."""


@dataclass(frozen=True)
class Case:
    """One call, in four ways. `{id}` stands for the id that was told last, in each skin its own."""

    name: str
    python: Callable[[perdure.Memory, str], Any]
    cli: str
    http: str
    """The method and the path behind the user, e.g. `GET state/units`; a path that begins with `/` is taken as it is. Or why
    there is none."""
    body: Mapping[str, Any] | None = None
    mcp: tuple[str, Mapping[str, Any]] | str = ""
    """The tool with its parameters, or why there is none."""
    error: str = ""
    """The code, if it must fail."""
    agent_error: str = ""
    """The code, if it must fail for a tool alone, as an agent's word does not reach that far."""
    picks: tuple[str, ...] = ()
    """Where a tool tells a value in its own form: what it has in common with the others."""
    cli_adds: tuple[str, ...] = ()
    """What the command line tells beside it, for the person who reads."""


@dataclass
class Told:
    """What one skin said to one case."""

    value: Any = None
    error: str = ""
    words: str = ""


@dataclass
class Run:
    """A skin and what it has answered so far."""

    name: str
    ask: Callable[[Case, str], Told]
    last_id: str = ""
    named: dict[str, str] = field(default_factory=dict)

    def carry_out(self, case: Case) -> Told:
        told = self.ask(case, self.last_id)
        self.last_id = _id_in(told.value) or self.last_id
        return Told(self._masked(_items(told.value)), told.error, told.words)

    def _masked(self, value: Any) -> Any:
        """Ids by the order in which they came up, so that a skin may use up one more than another."""
        if isinstance(value, Mapping):
            return {key: "…" if key in UNSTEADY else self._masked(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._masked(item) for item in value]
        if isinstance(value, str):
            return ID.sub(lambda found: self.named.setdefault(found[0], f"#{len(self.named) + 1}"), value)
        return value


def _items(value: Any) -> Any:
    """Lists are told with what belongs to them; here only they matter."""
    return (
        value["items"]
        if isinstance(value, dict) and "items" in value and value.keys() <= {"items", "next", "previous"}
        else value
    )


def _id_in(value: Any) -> str:
    if isinstance(value, dict):
        return value["id"] if isinstance(value.get("id"), str) else ""
    return ""


@contextmanager
def skins(patch: pytest.MonkeyPatch) -> Iterator[list[Run]]:
    """All four, each with a store and a clock of its own; and Python once more, told by the agent where a tool is."""
    with ExitStack() as stack:

        def fresh() -> perdure.Engine:
            settings = Settings(url="memory:", user=USER)
            return stack.enter_context(perdure.open(settings=settings, clock=StoppedClock()))

        makers = {"python": _python, "cli": _cli, "http": _http, "mcp": _mcp, "agent": _agent}
        yield [Run(name, make(fresh(), patch, stack)) for name, make in makers.items()]


def _python(engine: perdure.Engine, *_: Any, as_agent: bool = False) -> Callable[[Case, str], Told]:
    memory = engine.memory(USER)

    def ask(case: Case, last: str) -> Told:
        try:
            return Told(json.loads(json.dumps(plain(case.python(memory.as_agent() if as_agent else memory, last)))))
        except PerdureError as error:
            return Told(error=error.code, words=str(error))

    return ask


def _agent(engine: perdure.Engine, *_: Any) -> Callable[[Case, str], Told]:
    """What MCP's tools must answer: a model calls them, so their word is the agent's."""
    user, agent = _python(engine), _python(engine, as_agent=True)
    return lambda case, last: (user if isinstance(case.mcp, str) else agent)(case, last)


def _cli(engine: perdure.Engine, patch: pytest.MonkeyPatch, _: ExitStack) -> Callable[[Case, str], Told]:
    commands = InProcess(patch, engine)

    def ask(case: Case, last: str) -> Told:
        line, _, stdin = case.cli.partition(" <<< ")
        done = commands.run(*shlex.split(line.replace("{id}", last)), "--json", "--user", USER, stdin=stdin)
        if not done.stderr:
            return Told(done.json)  # also what is refused as a value: then the exit code says so, too
        error = json.loads(done.stderr)["error"]
        assert done.code == EXIT_CODES[error["code"]], done
        assert error["retriable"] is _retriable(error["code"]), done
        return Told(error=error["code"], words=error["message"])

    return ask


def _http(engine: perdure.Engine, _: Any, stack: ExitStack) -> Callable[[Case, str], Told]:
    from fastapi.testclient import TestClient

    from perdure.interfaces.server import Options, build

    client = stack.enter_context(TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1:8765"))

    quiet = _python(engine)

    def ask(case: Case, last: str) -> Told:
        if not case.http.partition(" ")[0].isupper():
            return quiet(case, last)  # so that its store goes on like the others
        method, _, path = case.http.replace("{id}", quote(last, safe="")).partition(" ")
        where = path if path.startswith("/") else f"/v1/users/{USER}/{path}".rstrip("/")
        body = None if case.body is None else json.loads(json.dumps(case.body).replace("{id}", last))
        answer = client.request(method, where, json=body)
        if answer.status_code < 300:
            return Told(answer.json())
        problem = answer.json()
        assert answer.headers["content-type"] == "application/problem+json", answer.text
        assert problem["status"] == answer.status_code == HTTP_STATUSES[problem["code"]], problem
        assert problem["retriable"] is _retriable(problem["code"]), problem
        return Told(error=problem["code"], words=problem["detail"])

    return ask


def _mcp(engine: perdure.Engine, _: Any, stack: ExitStack) -> Callable[[Case, str], Told]:
    from mcp import Client

    from perdure.interfaces.mcp.callers import LocalCaller
    from perdure.interfaces.mcp.server import build
    from perdure.interfaces.mcp.sets import offers

    memory = engine.memory(USER)
    owner = LocalCaller(engine, memory)
    portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
    client = stack.enter_context(portal.wrap_async_context_manager(Client(build(lambda _: owner, offers(memory.tools, "all")))))
    quiet = _python(engine)

    def ask(case: Case, last: str) -> Told:
        if isinstance(case.mcp, str):
            return quiet(case, last)  # so that its store goes on like the others
        tool, given = case.mcp
        params = json.loads(json.dumps(given).replace("{id}", last))
        result = portal.call(client.call_tool, tool, params)
        told = result.structured_content
        assert isinstance(told, dict), result
        if not result.is_error:
            return Told(told)
        assert told["success"] is False, told
        return Told(error=told["code"], words=told["error"])

    return ask


def _retriable(code: str) -> bool:
    return next(error.retriable for error in ALL_ERRORS if error.code == code)
