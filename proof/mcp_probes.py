"""Lines that no MCP client would send, on the stdin of `perdure mcp`: every id is answered once, and the process goes on."""

from __future__ import annotations

import json
import os
import random
import threading
from collections import Counter
from typing import Any

from proof.harness import Round
from proof.hostile import Hostile
from proof.parsers import as_json
from proof.served import Served, speaking_mcp
from proof.shaped import plausible

ANSWER_S = 120.0
FIRST_ID = 10**6
HELLO = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "probe", "version": "1"}},
}
GARBAGE = (
    b"",
    b"\0\0\0",
    b"nonsense",
    b"{",
    b"[]",
    b"[{}]",
    b"null",
    b"42",
    b'"text"',
    b'{"jsonrpc":"2.0"}',
    b"\xff\xfe\xfd",
    b"[" * 50_000,
    b'{"a":' * 20_000,
    b'{"jsonrpc":"2.0","method":"notifications/nothing"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"1.0","method":"ping"}',
    b"\r",
    b" " * 5_000,
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    b'{"jsonrpc":"2.0","id":5,"result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":1}',
)


class Listener:
    """Reads answers until the process ends its side."""

    def __init__(self, served: Served) -> None:
        self.lines: list[bytes] = []
        self.seen = threading.Condition()
        self._thread = threading.Thread(target=self._read, args=(os.dup(served.reading),), daemon=True)
        self._thread.start()

    def _read(self, end: int) -> None:
        with os.fdopen(end, "rb") as out:
            for line in out:
                with self.seen:
                    self.lines.append(line)
                    self.seen.notify_all()

    def wait(self, id: object) -> Any:
        """The answer of that id."""

        def found() -> Any:
            return next((told for told in map(_loads, self.lines) if isinstance(told, dict) and told.get("id") == id), None)

        with self.seen:
            self.seen.wait_for(found, ANSWER_S)
            return found()

    def join(self) -> bool:
        self._thread.join(ANSWER_S)
        return not self._thread.is_alive()


def _loads(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def run(round: Round) -> None:
    folder = round.folder / "mcp"
    folder.mkdir()
    hostile = Hostile(random.Random(f"{round.seed}/{round.promise}/mcp"))
    due: Counter[Any] = Counter()
    with speaking_mcp(folder, "--tools", "all") as served:
        listener = Listener(served)
        tell(served, json.dumps(HELLO).encode(), b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        tell(served, b'{"jsonrpc":"2.0","id":"tools","method":"tools/list"}')
        told = listener.wait("tools")
        if not round.check(
            isinstance(told, dict) and "result" in told, "not answered", f"tools/list before any probe: {str(told)[:300]}"
        ):
            return
        tools = told["result"]["tools"]
        for number in range(round.sized(quick=150, full=5_000)):
            line, id = _line(number, hostile, tools)
            if id is not None:
                due[id] += 1
            else:
                round.met("mcp survived garbage")
            tell(served, line)
        tell(served, b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
        last = listener.wait("last")
        round.check(
            last is not None and last.get("result") == {}, "does not heal", f"a ping after the probes got {str(last)[:200]}"
        )
        os.close(served.writing)
        round.check(listener.join(), "hangs", "the process did not end its side after ours was ended")
        served.process.join(60)
        round.check(
            served.process.exitcode == 0,
            "dies",
            f"`perdure mcp` ended with {served.process.exitcode}: {served.log.read_text(errors='replace')[-800:]}",
        )
        round.check(not served.troubles(), "unhandled", f"its log tells of errors: {served.troubles()[-1_500:]}")
    _settle(round, listener, due)


def _settle(round: Round, listener: Listener, due: Counter[Any]) -> None:
    answered: Counter[Any] = Counter()
    for line in listener.lines:
        told = _loads(line)
        if not round.check(isinstance(told, dict), "garbage on stdout", f"{line[:200]!r}"):
            continue
        if isinstance(told.get("id"), int) and told["id"] >= FIRST_ID:
            answered[told["id"]] += 1
            round.met("mcp answered")
        round.check(
            len(json.dumps(told.get("error", ""))) < 4_000, "badly said", f"an error of {len(line)} bytes: {line[:200]!r}"
        )
    round.count("mcp ids", len(due))
    for id in due:
        told = f"id {id} was answered {answered[id]} times and asked {due[id]} times"
        round.check(answered[id] == due[id], "not answered", told)


def _line(number: int, hostile: Hostile, tools: list[dict[str, Any]]) -> tuple[bytes, int | None]:
    """One line, and the id whose answer it is owed: every one that is JSON and a request has one."""
    chance = hostile.chance
    if chance.random() < 0.15:
        return chance.choice(GARBAGE), None
    id = FIRST_ID + number
    tool = tools[number % len(tools)]
    given = plausible(tool["inputSchema"], chance, tool["inputSchema"])
    params: Any = {"name": tool["name"], "arguments": given}
    kind = chance.random()
    if kind < 0.5:
        params["arguments"] = hostile.spoilt_value(given)
    elif kind < 0.6:
        params = hostile.spoilt_value(params)
    method = (
        "tools/call"
        if chance.random() < 0.85
        else chance.choice(("resources/read", "prompts/get", "nothing", "ping", "tools/list", "x" * 300, "completion/complete"))
    )
    raw = (
        as_json({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        .encode(errors="surrogatepass")
        .replace(b"\n", b" ")
    )
    if chance.random() < 0.1:
        raw = hostile.spoilt_bytes(raw).replace(b"\n", b" ")
    return raw, _id_due(raw)


def _id_due(raw: bytes) -> int | None:
    """The id that an answer is owed to, which spoilt bytes may have made that of another request."""
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    if not isinstance(told, dict) or not isinstance(told.get("method"), str) or told["method"].startswith("notifications/"):
        return None
    id = told.get("id")
    return id if isinstance(id, int) and id >= FIRST_ID else None


def tell(served: Served, *lines: bytes) -> None:
    whole = b"".join(line + b"\n" for line in lines)
    while whole:
        try:
            whole = whole[os.write(served.writing, whole) :]
        except BrokenPipeError:
            return
