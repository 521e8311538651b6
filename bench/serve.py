"""What the server costs: append, recall and context over HTTP at 1, 8 and 64 clients, beside the same calls in process.

One user with 10,000 messages, made from a seed and indexed; the jobs that follow from them are run before anything is
measured. Three lines for each task and number of clients, on copies of the same data, in turns within each round, so that
noise hits them alike; intervals are bootstrapped over the rounds.

*http*: `perdure serve` in a process of its own, asked over loopback by another process with so many connections that stay
open. *in process*: the same calls by so many threads of this process. *bare*: an application on the same uvicorn that reads
the request and answers with as many bytes: what HTTP costs before anything is done. Appends go to a user for each client, and
are durable when they are answered; the jobs that they cause run in the background, in http and in process alike.

The memory of the server is what the system says is resident (RSS), with the built-in embedder.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

# Before numpy is loaded: with more, the libraries would compete with each other for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import perdure
from machine import Interval, Sample
from recall.peers import Perdure
from recall.talk import Talk

HERE = Path(__file__).parent
USER, BUDGET_TOKENS, HITS = "user-0", 2_000, 10
APPEND, RECALL, CONTEXT = "append", "recall", "context"
HTTP, IN_PROCESS, BARE = "http", "in process", "bare"
CLIENTS = (1, 8, 64)
DEADLINE_S = 20.0
"""A line of one round ends after so long, however many requests are left."""
SETTLED_S, SETTLE_MAX_S = 0.25, 60.0
NO_LIMIT = "1000000"


class Sizes(NamedTuple):
    messages: int
    rounds: int
    requests: dict[str, int]
    """Per line and round."""


WHOLE = Sizes(10_000, 7, {APPEND: 600, RECALL: 300, CONTEXT: 80})
QUICK = Sizes(500, 2, {APPEND: 100, RECALL: 50, CONTEXT: 20})


@dataclass
class Line:
    """One task by one way at one number of clients."""

    task: str
    clients: int
    who: str
    call: Callable[[int, Sequence[str]], tuple[Sample, float]]
    samples: list[Sample] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)
    """What the answering process took of the processor in each round. On a busy machine, it says more than the clock."""

    def per_s(self) -> Interval:
        return machine.resampled(self.rate, len(self.samples))

    def rate(self, rounds: Sequence[int]) -> float:
        return sum(len(self.samples[one].calls_s) for one in rounds) / sum(self.samples[one].seconds for one in rounds)

    def within_ms(self, share: float) -> Interval:
        return machine.resampled(lambda rounds: self.ms(share, rounds), len(self.samples))

    def ms(self, share: float, rounds: Sequence[int]) -> float:
        return machine.percentile([call_s for one in rounds for call_s in self.samples[one].calls_s], share) * 1e3

    def cpu_ms(self) -> Interval:
        """Per call."""
        return machine.resampled(self._cpu_ms, len(self.samples))

    def _cpu_ms(self, rounds: Sequence[int]) -> float:
        return sum(self.cpu_s[one] for one in rounds) / sum(len(self.samples[one].calls_s) for one in rounds) * 1e3

    def rate_over(self, other: Line) -> Interval:
        return machine.resampled(lambda rounds: self.rate(rounds) / other.rate(rounds), len(self.samples))

    def row(self) -> dict[str, Any]:
        every, rate, slow = range(len(self.samples)), self.per_s(), self.within_ms(0.95)
        return {
            "task": self.task,
            "clients": self.clients,
            "who": self.who,
            "calls": sum(len(sample.calls_s) for sample in self.samples),
            "per_s": vars_of(rate),
            "cpu_ms": vars_of(self.cpu_ms()),
            "p50_ms": self.ms(0.5, every),
            "p95_ms": vars_of(slow),
        }


def vars_of(interval: Interval) -> dict[str, float]:
    return {"value": interval.value, "low": interval.low, "high": interval.high}


class Load:
    """The process that sends."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "served" / "load.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.size = 0
        """Of the body of the last answers."""

    def send(self, port: int, clients: int, requests: Sequence[str]) -> Sample:
        order = {"host": "127.0.0.1", "port": port, "clients": clients, "deadline_s": DEADLINE_S, "requests": requests}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline() or "{}")
        if not told or told["failed"]:
            raise SystemExit(f"FAILED: {told.get('failed', 'all')} requests, first: {told.get('first')}")
        self.size = told["size"]
        return Sample(told["seconds"], told["calls_s"])

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(10)


class Server:
    """A process that serves, and what the system says about it."""

    def __init__(self, *command: str) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=environment()
        )
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"FAILED: {' '.join(command)} said nothing and ended with {self._process.wait(10)}")
        self.port: int = json.loads(line)["port"]
        self.pid = self._process.pid

    def rss_mb(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024

    def cpu_s(self) -> float:
        """What it has taken of the processor so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def settle(self) -> None:
        """Wait until it does nothing: the jobs that a line has caused are no part of the next one."""
        until, before = time.monotonic() + SETTLE_MAX_S, -1.0
        while time.monotonic() < until:
            spent = self.cpu_s()
            if spent - before <= 0.01:
                return
            before = spent
            time.sleep(SETTLED_S)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)


def environment() -> dict[str, str]:
    """No setting of the person who measures; the bound on waiting jobs as in process."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    return env | {"PERDURE_QUEUE_JOBS_MAX": NO_LIMIT, "PYTHONUNBUFFERED": "1"}


@contextmanager
def made(directory: Path, sizes: Sizes, seed: int) -> Iterator[tuple[Path, list[str]]]:
    """A store with what the user said, everything learned from it, and what was said."""
    texts = Talk(seed, USER).texts(sizes.messages)
    store = Perdure(directory / "made")
    store.add(USER, texts)
    while store.engine.process(60.0).ran:
        pass
    store.close()
    yield store.path, texts


def request(method: str, path: str, body: Any = None) -> str:
    text = "" if body is None else json.dumps(body)
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    return head + (f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n{text}" if text else "\r\n")


class Tasks:
    """Each task as a request, and as a call in process."""

    def __init__(self, engine: perdure.Engine) -> None:
        self._engine = engine
        self._ids = itertools.count()

    def request(self, task: str, item: str, place: int) -> str:
        match task:
            case "append":
                return request(
                    "POST", f"/v1/users/writer-{place}/messages", {"role": "user", "content": item, "id": self._id()}
                )
            case "recall":
                return request("POST", f"/v1/users/{USER}/recall", {"query": item, "limit": HITS})
        return request("POST", f"/v1/users/{USER}/context", {"goal": item, "budget_tokens": BUDGET_TOKENS})

    def call(self, task: str, item: str, place: int) -> object:
        match task:
            case "append":
                return self._engine.memory(f"writer-{place}").append("user", item, id=self._id())
            case "recall":
                return self._engine.memory(USER).recall(item, limit=HITS)
        return self._engine.memory(USER).context(item, budget_tokens=BUDGET_TOKENS)

    def _id(self) -> str:
        return f"m-{next(self._ids)}"


@dataclass
class Bench:
    load: Load
    server: Server
    bare: Server
    tasks: Tasks
    engine: perdure.Engine
    sizes: dict[str, int] = field(default_factory=dict)
    """Of the bodies of the answers, by task: what the bare application answers with."""

    def over_http(self, task: str, clients: int, items: Sequence[str]) -> tuple[Sample, float]:
        requests = [self.tasks.request(task, item, place % clients) for place, item in enumerate(items)]
        before = self.server.cpu_s()
        sample = self.load.send(self.server.port, clients, requests)
        spent = self.server.cpu_s() - before
        self.sizes.setdefault(task, self.load.size)
        self.server.settle()
        return sample, spent

    def in_process(self, task: str, clients: int, items: Sequence[str]) -> tuple[Sample, float]:
        calls = [lambda item, place=place: self.tasks.call(task, item, place) for place in range(clients)]
        before = time.process_time()
        sample = machine.in_turn(calls[0], items) if clients == 1 else machine.at_once(calls, items)
        spent = time.process_time() - before
        while self.engine.process(60.0).ran:
            pass
        return sample, spent

    def bare_http(self, task: str, clients: int, items: Sequence[str]) -> tuple[Sample, float]:
        shape = [self.tasks.request(task, item, place % clients) for place, item in enumerate(items)]
        path = f"/{self.sizes[task]}"
        requests = [" ".join((line.split(" ", 1)[0], path, line.split(" ", 2)[2])) for line in shape]
        before = self.bare.cpu_s()
        return self.load.send(self.bare.port, clients, requests), self.bare.cpu_s() - before

    def lines(self, tasks: Sequence[str], clients: Sequence[int]) -> list[Line]:
        ways = {HTTP: self.over_http, IN_PROCESS: self.in_process, BARE: self.bare_http}
        return [
            Line(task, count, who, lambda number, items, way=way, task=task: way(task, number, items))  # type: ignore[misc]
            for task in tasks
            for count in clients
            for who, way in ways.items()
        ]


def measured(lines: Sequence[Line], sizes: Sizes, texts: Sequence[str], seed: int, say: Callable[[str], None]) -> None:
    draw, talk = random.Random(seed), Talk(seed, "asking")
    for number in range(sizes.rounds + 1):
        items = {
            APPEND: talk.texts(sizes.requests[APPEND]),
            RECALL: talk.questions(texts, sizes.requests[RECALL]),
            CONTEXT: talk.questions(texts, sizes.requests[CONTEXT]),
        }
        # The first round warms up, in order: the bare application must know how much to answer with.
        for line in lines if number == 0 else draw.sample(lines, len(lines)):
            wanted = items[line.task]
            sample, cpu_s = line.call(line.clients, wanted[: max(line.clients, len(wanted) // 10)] if number == 0 else wanted)
            if number:
                line.samples.append(sample)
                line.cpu_s.append(cpu_s)
        say(f"round {number} of {sizes.rounds}" if number else "warm")


def figures(lines: Sequence[Line], idle_mb: dict[str, float]) -> list[dict[str, Any]]:
    by = {(line.task, line.clients, line.who): line for line in lines}
    rows = []
    for (task, clients, who), line in by.items():
        if who != HTTP:
            continue
        name, bare = f"{task}, {clients} client{'s' if clients > 1 else ''}", by[task, clients, BARE]
        aimed = {"aim": 1_500} if (task, clients) == (APPEND, 8) else {}
        rows.append(machine.compared(f"{name}: requests/s", line.per_s(), limit=bare.per_s(), **aimed))
        aimed = {"aim": 25, "at_most": True} if (task, clients) == (RECALL, 8) else {}
        rows.append(machine.compared(f"{name}: p95 ms", line.within_ms(0.95), limit=bare.within_ms(0.95), **aimed))
        rows.append(machine.compared(f"{name}: http / in process, requests/s", line.rate_over(by[task, clients, IN_PROCESS])))
    for what, value in idle_mb.items():
        one = Interval(value, value, value)
        rows.append(
            machine.compared(f"server, {what}: RSS in MB", one, **({"aim": 250, "at_most": True} if "idle" in what else {}))
        )
    return rows


def show_lines(rows: Sequence[dict[str, Any]]) -> None:
    head = (
        f"{'':10}{'clients':>8}  {'':12}{'calls':>7}{'per s':>10}   {'95 % interval':18}{'cpu ms':>8}{'p50 ms':>9}{'p95 ms':>9}"
    )
    print(f"\n{head}   95 % interval of p95")
    for row in rows:
        rate, slow = row["per_s"], row["p95_ms"]
        spread = f"{rate['low']:,.0f} to {rate['high']:,.0f}"
        print(
            f"{row['task']:10}{row['clients']:>8}  {row['who']:12}{row['calls']:>7}{rate['value']:>10,.0f}   {spread:18}"
            f"{row['cpu_ms']['value']:8.2f}{row['p50_ms']:9.2f}{slow['value']:9.2f}   {slow['low']:.2f} to {slow['high']:.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small store, two rounds: shows that it runs, proves nothing")
    parser.add_argument("--only", choices=(APPEND, RECALL, CONTEXT), action="append", help="this task alone; may be repeated")
    parser.add_argument("--clients", type=int, action="append", help=f"so many clients alone; may be repeated ({CLIENTS})")
    parser.add_argument("--rounds", type=int, help=f"how often all take their turn ({WHOLE.rounds})")
    parser.add_argument("--seed", type=int, default=1, help="of the texts and questions (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    options = parser.parse_args()
    sizes = QUICK if options.quick else WHOLE
    sizes = sizes._replace(rounds=options.rounds or sizes.rounds)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    with machine.working_directory(options.dir) as directory, ExitStack() as stack:
        header = machine.facts(directory) | {"seed": str(options.seed)}
        started = time.monotonic()
        path, texts = stack.enter_context(made(directory, sizes, options.seed))
        header["data"] = f"{sizes.messages:,} messages of one user; made and learned from in {time.monotonic() - started:.0f} s"
        header["rounds"] = f"{sizes.rounds} of {sizes.requests} requests"
        idle_mb, bench = opened(directory, path, stack)
        lines = bench.lines(options.only or (APPEND, RECALL, CONTEXT), options.clients or CLIENTS)
        measured(lines, sizes, texts, options.seed, say)
        idle_mb["after all of it"] = bench.server.rss_mb()
        header["load after"] = f"{os.getloadavg()[0]:.2f}"
    rows, compared = [line.row() for line in lines], figures(lines, idle_mb)
    if options.json:
        print(json.dumps({"machine": header, "lines": rows, "figures": compared}, indent=2, ensure_ascii=False))
        return
    for name, value in header.items():
        print(f"{name:24}{value}")
    show_lines(rows)
    machine.show_figures(compared, limit="bare")


def opened(directory: Path, path: Path, stack: ExitStack) -> tuple[dict[str, float], Bench]:
    """The server on one copy of the store, this process on another, and what the server takes of memory before the load."""
    copies = [directory / name for name in ("served.db", "in_process.db")]
    for copy in copies:
        shutil.copy(path, copy)
    perdure_ = str(Path(sys.executable).parent / "perdure")
    url = f"sqlite:///{quote(str(copies[0]))}"
    server = Server(perdure_, "--url", url, "serve", "--port", "0", "--json", "--no-auth", "--rate", NO_LIMIT)
    stack.callback(server.close)
    bare = Server(sys.executable, str(HERE / "served" / "bare.py"))
    stack.callback(bare.close)
    load = Load()
    stack.callback(load.close)
    limits = perdure.Limits(queue_jobs_max=int(NO_LIMIT))
    settings = perdure.Settings(url=f"sqlite:///{quote(str(copies[1]))}", limits=limits)
    engine = stack.enter_context(perdure.open(settings=settings, background=True))
    bench = Bench(load, server, bare, Tasks(engine), engine)
    idle_mb = {"just started": server.rss_mb()}
    bench.over_http(RECALL, 1, ["What did we say about the garden?"])
    idle_mb["idle, after one recall"] = server.rss_mb()
    return idle_mb, bench


if __name__ == "__main__":
    main()
