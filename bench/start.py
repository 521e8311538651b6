"""What starting costs: the library, the command line, MCP; and then what a call over MCP costs.

Each start is a process of its own, timed from outside until it has said what was asked: `perdure mcp` until it has answered
`initialize`. Beside it stands what the MCP SDK takes to import alone, in turns, so that noise hits both alike. The calls are
`recall` and `remember`, one after the other over stdin and stdout, on a store with 1,000 indexed memories; each `remember` is
durable when it is answered. The client only writes and reads lines, so that its own work is small.

Beside it stands the memory server of npm, `@modelcontextprotocol/server-memory`, fetched once into the cache folder of the
account if npm is there: 1,000 entities with one observation each, the same texts; `create_entities` with one more, and
`search_nodes`, which looks for the words as they stand. It reads the whole file for each call and writes it anew for each
that changes something, and syncs nothing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import platformdirs

import machine
import perdure
from machine import Interval
from perdure import NewMessage

USER, MEMORIES = "ana", 1_000
PERDURE = str(Path(sys.executable).parent / "perdure")
OPENED = "import sys, perdure; perdure.open(sys.argv[1]).close()"
SDK = "import mcp.server.lowlevel.server"
NPM_PACKAGE, NPM_VERSION, FETCH_S = "@modelcontextprotocol/server-memory", "2026.8.31", 120
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}

Asked = tuple[list[list[float]], list[float]]
"""Seconds of each call, by round, and processor seconds of a call in each round."""


class Client:
    """A process that speaks MCP, and one who asks it."""

    def __init__(self, command: Sequence[str], **more: str) -> None:
        self._ids = itertools.count(1)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment() | more
        )
        self.ask("initialize", HELLO)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._send({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        told: dict[str, Any] = json.loads(self._process.stdout.readline() or b"{}")
        if "result" not in told or told["result"].get("isError"):
            raise SystemExit(f"FAILED: {method} was answered with {json.dumps(told)[:500]}")
        return told

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def call(self, tool: str, **arguments: Any) -> None:
        self.ask("tools/call", {"name": tool, "arguments": arguments})

    def cpu_s(self) -> float:
        """What the process has taken of the processor so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)


def environment() -> dict[str, str]:
    """No setting of the person who measures."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}


def started(*command: str) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())
    return time.perf_counter() - began


class Served:
    """`perdure mcp` on a store: how it is started, asked and told."""

    name = "MCP"

    def __init__(self, url: str) -> None:
        self._command = [PERDURE, "--url", url, "mcp", "--user", USER]

    def client(self) -> Client:
        return Client(self._command)

    def search(self, client: Client, text: str) -> None:
        client.call("recall", query=text[:60])

    def add(self, client: Client, text: str) -> None:
        client.call("remember", content=text)


class NpmMemory:
    """`server-memory` of npm on a file."""

    name = "npm server-memory"

    def __init__(self, script: Path, file: Path) -> None:
        self._command, self._file, self._numbers = ["node", str(script)], file, itertools.count(MEMORIES)
        texts = machine.chat_texts(MEMORIES, 1)
        lines = [json.dumps({"type": "entity", **self._entity(number, text)}) for number, text in enumerate(texts)]
        file.write_text("\n".join(lines), encoding="utf-8")

    @staticmethod
    def _entity(number: int, text: str) -> dict[str, Any]:
        return {"name": f"memory-{number}", "entityType": "memory", "observations": [text]}

    def client(self) -> Client:
        return Client(self._command, MEMORY_FILE_PATH=str(self._file))

    def search(self, client: Client, text: str) -> None:
        client.call("search_nodes", query=text[:60])

    def add(self, client: Client, text: str) -> None:
        client.call("create_entities", entities=[self._entity(next(self._numbers), text)])


Server = Served | NpmMemory


def npm_memory(say: Callable[[str], None]) -> Path | None:
    """The script of npm's server, fetched unless it is there; None, and why, where it cannot be had."""
    folder = platformdirs.user_cache_path("perdure-bench") / f"server-memory-{NPM_VERSION}"
    script = folder / "node_modules" / NPM_PACKAGE / "dist" / "index.js"
    if not all(map(shutil.which, ("node", "npm"))):
        say(f"{NpmMemory.name}: left out, since node and npm are not installed")
        return None
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        options = ["--no-package-lock", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]
        try:
            command = ["npm", "install", *options, f"{NPM_PACKAGE}@{NPM_VERSION}"]
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FETCH_S)
        except subprocess.TimeoutExpired:
            say(f"{NpmMemory.name}: left out, since npm did not fetch it within {FETCH_S} s")
            return None
        if done.returncode or not script.exists():
            said = (done.stderr.strip() or "nothing").splitlines()[-1]
            say(f"{NpmMemory.name}: left out, since npm could not fetch it; it said: {said}")
            return None
    say(f"{NpmMemory.name}: {NPM_PACKAGE} {NPM_VERSION}")
    return script


def greeted(server: Server) -> float:
    began = time.perf_counter()
    client = server.client()
    took = time.perf_counter() - began
    client.close()
    return took


@contextmanager
def connected(server: Server) -> Iterator[Client]:
    client = server.client()
    try:
        yield client
    finally:
        client.close()


def filled(path: Path) -> str:
    """A store in which so much is indexed."""
    with perdure.open(path) as engine:
        engine.memory(USER).append_many([NewMessage("user", text) for text in machine.chat_texts(MEMORIES, 1)])
        while engine.process(60.0).ran:
            pass
    return f"sqlite:///{path}"


def starts(url: str, servers: Sequence[Server], rounds: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """Seconds of each start in each round, after one round that fills the disk's cache."""
    ways: dict[str, Callable[[], float]] = {
        "python alone": lambda: started(sys.executable, "-c", "pass"),
        "import perdure": lambda: started(sys.executable, "-c", "import perdure"),
        "open with imports": lambda: started(sys.executable, "-c", OPENED, url.removeprefix("sqlite:///")),
        "perdure --help": lambda: started(PERDURE, "--help"),
        "perdure todo list": lambda: started(PERDURE, "--url", url, "todo", "list", "--user", USER),
        "import of the MCP SDK": lambda: started(sys.executable, "-c", SDK),
    } | {f"{server.name}: start": partial(greeted, server) for server in servers}
    held: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            took = way()
            if number:
                held[name].append(took)
        say(f"start {number} of {rounds}" if number else "warm")
    return held


def calls(servers: Sequence[Server], rounds: int, count: int, say: Callable[[str], None]) -> dict[str, Asked]:
    """Seconds of each call, by round, and the processor time that the server took per call in each round; in turns."""
    texts = machine.chat_texts(count * (rounds + 1), 2)
    held: dict[str, Asked] = {}
    with ExitStack() as stack:
        clients = [(server, stack.enter_context(connected(server))) for server in servers]
        for what in ("search", "add"):
            for number in range(rounds + 1):
                part = texts[number * count : (number + 1) * count]
                for server, client in clients[:: -1 if number % 2 else 1]:
                    asked = held.setdefault(f"{server.name}: {what}", ([], []))
                    before = client.cpu_s()
                    sample = machine.in_turn(partial(getattr(server, what), client), part)
                    if number:
                        asked[0].append(sample.calls_s)
                        asked[1].append((client.cpu_s() - before) / count)
            say(what)
    return held


def ratio(theirs: Sequence[Sequence[float]], ours: Sequence[Sequence[float]]) -> Interval:
    """Of the medians, in the same rounds."""

    def of(drawn: Sequence[int]) -> float:
        over, under = (machine.percentile([one for number in drawn for one in line[number]], 0.5) for line in (theirs, ours))
        return over / under

    return machine.resampled(of, len(ours))


def middle(rounds: Sequence[Sequence[float]], share: float = 0.5) -> Interval:
    """Over the calls of all rounds, with the interval of the rounds."""
    return machine.resampled(
        lambda drawn: machine.percentile([one for number in drawn for one in rounds[number]], share), len(rounds)
    )


def scaled(found: Interval, times: float) -> Interval:
    return Interval(found.value * times, found.low * times, found.high * times)


def figures(began: dict[str, list[float]], asked: dict[str, Asked]) -> list[dict[str, Any]]:
    aims = {"import perdure": 0.05, "open with imports": 0.25}
    aims_ms = {"MCP: search": 4, "MCP: add": 3}
    rows = []
    for name, seconds in began.items():
        aim = {"aim": aims[name], "at_most": True} if name in aims else {}
        rows.append(machine.compared(f"{name}: s", middle([[one] for one in seconds]), **aim))
    beyond = [[ours - sdk] for ours, sdk in zip(began["MCP: start"], began["import of the MCP SDK"], strict=True)]
    rows.append(machine.compared("MCP: start beyond the SDK's import: s", middle(beyond), aim=0.3, at_most=True))
    for name, (calls_s, cpu_s) in asked.items():
        rows.append(machine.compared(f"{name}: p50 ms", scaled(middle(calls_s), 1e3), aim=aims_ms.get(name), at_most=True))
        rows.append(machine.compared(f"{name}: p95 ms", scaled(middle(calls_s, 0.95), 1e3)))
        rows.append(machine.compared(f"{name}: processor ms", scaled(middle([[one] for one in cpu_s]), 1e3)))
    if f"{NpmMemory.name}: start" in began:
        both = [[[one] for one in began[f"{name}: start"]] for name in ("MCP", NpmMemory.name)]
        rows.append(machine.compared(f"MCP: start / {NpmMemory.name}", ratio(*both)))
        for what in ("search", "add"):
            figure = ratio(asked[f"{NpmMemory.name}: {what}"][0], asked[f"MCP: {what}"][0])
            rows.append(machine.compared(f"{NpmMemory.name}: {what} / perdure", figure))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two rounds of few calls: shows that it runs, proves nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    options = parser.parse_args()
    rounds, count = (2, 20) if options.quick else (11, 200)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    with machine.working_directory(options.dir) as directory:
        header = machine.facts(directory)
        url = filled(directory / "start.db")
        servers: list[Server] = [Served(url)]
        if script := npm_memory(say):
            servers.append(NpmMemory(script, directory / "memory.jsonl"))
        began = starts(url, servers, rounds, say)
        asked = calls(servers, rounds, count, say)
        header["load after"] = f"{os.getloadavg()[0]:.2f}"
    rows = figures(began, asked)
    if options.json:
        print(json.dumps({"machine": header, "figures": rows}, indent=2, ensure_ascii=False))
        return
    for name, value in header.items():
        print(f"{name:24}{value}")
    machine.show_figures(rows, limit="")


if __name__ == "__main__":
    main()
