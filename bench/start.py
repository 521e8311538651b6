"""What starting costs: the library, the command line, MCP; and then what a call over MCP costs.

Each start is a process of its own, timed from outside until it has said what was asked: `perdure mcp` until it has answered
`initialize`. Beside it stands what the MCP SDK takes to import alone, in turns, so that noise hits both alike. The calls are
`recall` and `remember`, one after the other over stdin and stdout, on a store with 1,000 indexed memories; each `remember` is
durable when it is answered. The client only writes and reads lines, so that its own work is small.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import machine
import perdure
from machine import Interval
from perdure import NewMessage

USER, MEMORIES = "ana", 1_000
PERDURE = str(Path(sys.executable).parent / "perdure")
OPENED = "import sys, perdure; perdure.open(sys.argv[1]).close()"
SDK = "import mcp.server.lowlevel.server"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Client:
    """A process that speaks MCP, and one who asks it."""

    def __init__(self, url: str) -> None:
        self._ids = itertools.count(1)
        self._process = subprocess.Popen(
            [PERDURE, "--url", url, "mcp", "--user", USER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
        )
        self.ask("initialize", HELLO)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        told: dict[str, Any] = json.loads(self._process.stdout.readline() or b"{}")
        if "result" not in told or told["result"].get("isError"):
            raise SystemExit(f"FAILED: {method} was answered with {json.dumps(told)[:500]}")
        return told

    def call(self, tool: str, **arguments: str) -> None:
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


def greeted(url: str) -> float:
    began = time.perf_counter()
    client = Client(url)
    took = time.perf_counter() - began
    client.close()
    return took


@contextmanager
def connected(url: str) -> Iterator[Client]:
    client = Client(url)
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


def starts(url: str, rounds: int, say: Callable[[str], None]) -> dict[str, list[float]]:
    """Seconds of each start in each round, after one round that fills the disk's cache."""
    ways: dict[str, Callable[[], float]] = {
        "python alone": lambda: started(sys.executable, "-c", "pass"),
        "import perdure": lambda: started(sys.executable, "-c", "import perdure"),
        "open with imports": lambda: started(sys.executable, "-c", OPENED, url.removeprefix("sqlite:///")),
        "perdure --help": lambda: started(PERDURE, "--help"),
        "perdure todo list": lambda: started(PERDURE, "--url", url, "todo", "list", "--user", USER),
        "import of the MCP SDK": lambda: started(sys.executable, "-c", SDK),
        "MCP: start": lambda: greeted(url),
    }
    held: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            took = way()
            if number:
                held[name].append(took)
        say(f"start {number} of {rounds}" if number else "warm")
    return held


def calls(url: str, rounds: int, count: int, say: Callable[[str], None]) -> dict[str, tuple[list[list[float]], list[float]]]:
    """Seconds of each call, by round, and the processor time that the server took per call in each round."""
    texts = machine.chat_texts(count * (rounds + 1), 2)
    held: dict[str, tuple[list[list[float]], list[float]]] = {}
    with connected(url) as client:
        for name, call in (
            ("MCP: search", lambda text: client.call("recall", query=text[:60])),
            ("MCP: add", lambda text: client.call("remember", content=text)),
        ):
            held[name] = [], []
            for number in range(rounds + 1):
                before = client.cpu_s()
                sample = machine.in_turn(call, texts[number * count : (number + 1) * count])
                if number:
                    held[name][0].append(sample.calls_s)
                    held[name][1].append((client.cpu_s() - before) / count)
            say(name)
    return held


def middle(rounds: Sequence[Sequence[float]], share: float = 0.5) -> Interval:
    """Over the calls of all rounds, with the interval of the rounds."""
    return machine.resampled(
        lambda drawn: machine.percentile([one for number in drawn for one in rounds[number]], share), len(rounds)
    )


def scaled(found: Interval, times: float) -> Interval:
    return Interval(found.value * times, found.low * times, found.high * times)


def figures(began: dict[str, list[float]], asked: dict[str, tuple[list[list[float]], list[float]]]) -> list[dict[str, Any]]:
    aims = {"import perdure": 0.05, "open with imports": 0.25}
    rows = []
    for name, seconds in began.items():
        aim = {"aim": aims[name], "at_most": True} if name in aims else {}
        rows.append(machine.compared(f"{name}: s", middle([[one] for one in seconds]), **aim))
    beyond = [[ours - sdk] for ours, sdk in zip(began["MCP: start"], began["import of the MCP SDK"], strict=True)]
    rows.append(machine.compared("MCP: start beyond the SDK's import: s", middle(beyond), aim=0.3, at_most=True))
    for (name, (calls_s, cpu_s)), aim_ms in zip(asked.items(), (4, 3), strict=True):
        rows.append(machine.compared(f"{name}: p50 ms", scaled(middle(calls_s), 1e3), aim=aim_ms, at_most=True))
        rows.append(machine.compared(f"{name}: p95 ms", scaled(middle(calls_s, 0.95), 1e3)))
        rows.append(machine.compared(f"{name}: processor ms", scaled(middle([[one] for one in cpu_s]), 1e3)))
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
        began = starts(url, rounds, say)
        asked = calls(url, rounds, count, say)
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
