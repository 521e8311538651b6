"""How fast memories are found: perdure beside mem0, LangGraph's stores, numpy by brute force, and plain SQLite, the limit.

All hold the same texts, made here from a seed, and embed with perdure's built-in embedder. They take turns in rounds, so
that noise hits all alike; intervals are bootstrapped over the rounds. Each must find texts by their own words, or the run
fails. This reports what is: nothing is tuned, and a peer that is not installed is named and left out.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

# Before numpy is loaded: with more, the libraries would compete with each other for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
from machine import Interval
from recall import peers
from recall.lines import Line, in_rounds, show_times
from recall.peers import (
    Agno,
    Brute,
    Chroma,
    Contender,
    Indexed,
    LangGraphPostgres,
    LangGraphSqlite,
    Mem0,
    Mem0Faiss,
    Perdure,
    PlainReads,
)
from recall.talk import Crowd, Question, Talk

K = 10
FOUND_LEAST, PROBES = 0.9, 20
ONE, CROWD, TENANTS, FIRST, INGEST = "search, one user", "search, of many", "search, of 1,000", "first search", "ingest"
THREADS, UNREAD = "search, 8 threads", "search, 500 unread"
ALL_JOBS, AFTER = "perdure, all jobs", "perdure, after append"
TASKS = (ONE, THREADS, UNREAD, CROWD, TENANTS, FIRST, INGEST)
EXPLAINED = f"""search: the best {K} of one user's memories; size: how many that user has; of 100, 100,000 and a million
nothing was learned: they are messages alone. after append: when a message was just appended, as in a conversation. 8
threads: of one process, at once. 500 unread: right after so many appends. of many: 100 users, another one with every
question. of 1,000: users at random; alone: a store with that user only; cold: the first question about a user since the
store was opened. first search: in a fresh process, opening included, imports not; disk: the file's pages were dropped from
the system's cache before. ingest: from the texts until they can be found by words and meaning, synced; size: messages per
call. all jobs: and learned from (facts, summaries). rows by key: the rows that perdure found, read from its file with
nothing around them: the limit. Ratios are of medians. CPU: what a call took of a processor in this process, threads
included; on a busy machine that is what a quiet one would show, but for what waits for a disk or a server; and there the
clock flatters short calls, which are seldom interrupted."""

Say = Callable[[str], None]


class Sizes(NamedTuple):
    """How large everything is."""

    one: int
    """Memories of a user."""
    large: int
    """Memories of a large one; of it nothing is learned."""
    giant: int
    """Memories of a giant; of it, and of the smallest, nothing is learned either."""
    users: int
    tenants: int
    each: int
    """Memories of each of the users, and of each of the tenants."""
    ingest: int
    """Messages that are taken in per round."""
    rounds: int
    firsts: int
    """Fresh processes per contender and size."""


WHOLE, QUICK = (
    Sizes(10_000, 100_000, 1_000_000, 100, 1_000, 1_000, 2_000, 10, 7),
    Sizes(1_000, 3_000, 6_000, 10, 20, 200, 500, 3, 3),
)
# Questions per round, and messages taken in and learned from; those that are slow get fewer.
ASKED, ASKED_SLOW, APPENDED, TAKEN_SLOW, LEARNED, SMALL, AT_ONCE, UNREAD_EACH = 40, 6, 5, 20, 200, 100, 8, 500


class Run:
    """What all parts of the benchmark share: the stores, filled when first asked for, and what came out."""

    def __init__(self, directory: Path, sizes: Sizes, seed: int, say: Say) -> None:
        self.directory, self.sizes, self.seed, self.say = directory, sizes, seed, say
        self.available = [peer for peer in peers.PEERS if self._usable(peer)]
        self.lines: list[Line] = []
        self.figures: list[dict[str, Any]] = []
        self._open: dict[tuple[type[Contender], Crowd], Contender] = {}

    def _usable(self, peer: type[Contender]) -> bool:
        if missing := peer.missing():
            self.say(f"{peer.name}: {missing} is MISSING, so left out; install it with: pip install 'perdure[bench]'")
            return False
        self.say(f"{peer.name}: {peer.versions()}; {peer.note}")
        return True

    def store(self, kind: type[Contender], crowd: Crowd) -> Any:
        """A store of that kind with all of the crowd in it."""
        if (kind, crowd) not in self._open:
            where = self.place(kind, crowd)
            filled = where.exists()
            store = self._open[kind, crowd] = kind(where)
            if not filled:
                self._fill(store, crowd)
        return self._open[kind, crowd]

    def place(self, kind: type[Contender], crowd: Crowd) -> Path:
        return self.directory / f"{kind.__name__}-{crowd.count}x{crowd.each}"

    def _fill(self, store: Contender, crowd: Crowd) -> None:
        spent = 0.0
        for user in crowd.users:
            _, texts = crowd.talk(user)
            started = time.perf_counter()
            store.fill(user, texts)
            spent += time.perf_counter() - started
        total = crowd.count * crowd.each
        held = disk_mb(store.directory)
        size = f", {held:,.0f} MB on disk" if held else ""
        self.say(f"filled: {store.name}, {crowd.count:,} x {crowd.each:,}: {total / spent:,.0f} a second{size}")
        if not store.finds:
            return
        draw = random.Random(self.seed)
        probes = [
            (user, text)
            for user in crowd.users[:PROBES]
            for text in draw.sample(crowd.talk(user)[1], PROBES // min(PROBES, crowd.count))
        ]
        found = sum(text in store.search(user, text, K) for user, text in probes) / len(probes)
        if found < FOUND_LEAST:
            raise SystemExit(f"FAILED: {store.name} finds only {found:.0%} of texts by their own words")

    def plain(self, kind: type[Perdure], crowd: Crowd, questions: Iterable[Question]) -> PlainReads:
        ours: Perdure = self.store(kind, crowd)
        return PlainReads(ours, {(user, asked): ours.found_ids(user, asked, K) for user, asked in questions})

    def close(self, *kinds: type[Contender]) -> None:
        """Close all stores, or those of some kinds."""
        for key in [key for key in self._open if not kinds or key[0] in kinds]:
            self._open.pop(key).close()

    def aim(
        self, what: str, figure: Interval, aim: float | None = None, *, most: bool = False, limit: Interval | None = None
    ) -> None:
        self.figures.append(machine.compared(what, figure, aim=aim, at_most=most, limit=limit))


def disk_mb(directory: Path) -> float:
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e6


def race(
    run: Run,
    task: str,
    crowd: Crowd,
    kinds: Sequence[type[Contender]],
    slow: Sequence[type[Contender]],
    *,
    ours: type[Perdure] = Perdure,
) -> dict[str, Line]:
    """Searches by all of `kinds`, in rounds; those that are `slow` are asked less often."""
    rounds = run.sizes.rounds + 1
    asked = machine.batches(crowd.questions(rounds * ASKED), ASKED)
    lines = []
    for kind in kinds:
        store = run.store(kind, crowd)
        call = partial(_search, store)
        lines.append(Line(task, store.name, crowd.each, call, ASKED_SLOW if kind in slow else ASKED))
    reads = run.plain(ours, crowd, itertools.chain.from_iterable(asked))
    lines.append(Line(task, reads.name, crowd.each, partial(_search, reads), ASKED))
    started = time.monotonic()
    in_rounds(lines, asked)
    reads.close()
    run.say(f"{task}, {crowd.count:,} x {crowd.each:,}: {run.sizes.rounds} rounds in {time.monotonic() - started:.0f} s")
    run.lines += lines
    return {line.who: line for line in lines}


def _search(store: Contender, question: Question) -> None:
    if len(store.search(*question, K)) < K:
        raise SystemExit(f"FAILED: {store.name} found fewer than {K}")


def after_append(run: Run, crowd: Crowd) -> None:
    """How a conversation goes: a message is appended, which is not timed here, and then something is asked."""
    ours: Perdure = run.store(Perdure, crowd)
    memory = ours.engine.memory(crowd.users[0])
    texts = iter(Talk(run.seed, "news").texts((run.sizes.rounds + 1) * APPENDED))
    line = Line(ONE, AFTER, crowd.each, partial(_search, ours), before=lambda: memory.append("user", next(texts)))
    in_rounds([line], machine.batches(crowd.questions((run.sizes.rounds + 1) * APPENDED), APPENDED))
    ours.index()
    run.lines.append(line)
    run.aim(f"{crowd.each:,}: p50 ms, {AFTER}", line.within_ms(0.5))
    run.aim(f"{crowd.each:,}: p50 ms of CPU, {AFTER}", line.cpu_ms())


def told(run: Run, title: str, by: dict[str, Line], *, p50: float | None, p95: float | None, times: dict[str, float]) -> None:
    """The figures of a race, beside what is aimed at."""
    ours, limit = by[Perdure.name], by[PlainReads.name]
    for share, aim in ((0.5, p50), (0.95, p95)):
        what = f"{title}: p{share * 100:.0f} ms, perdure"
        run.aim(what, ours.within_ms(share), aim, most=True, limit=limit.within_ms(share))
    run.aim(f"{title}: p50 ms of CPU, perdure", ours.cpu_ms(), limit=limit.cpu_ms())
    for who, line in by.items():
        if who not in (Perdure.name, PlainReads.name):
            run.aim(f"{title}: {who} / perdure", line.over(ours), times.get(who), limit=line.over(limit))
            if who != LangGraphPostgres.name:  # whose work another process does
                run.aim(f"{title}: {who} / perdure, CPU", line.cpu_over(ours), times.get(who), limit=line.cpu_over(limit))


def hundred(run: Run) -> None:
    crowd = Crowd(run.seed, 1, SMALL)
    by = race(run, ONE, crowd, [Indexed, *_only(run, LangGraphSqlite)], [], ours=Indexed)
    told(run, f"{crowd.each:,}", by, p50=0.5, p95=None, times={})
    run.close(LangGraphSqlite)


def threads(run: Run) -> None:
    """Eight threads of one process that search at once."""
    crowd = Crowd(run.seed, 1, run.sizes.one)
    ours: Perdure = run.store(Perdure, crowd)
    line = Line(THREADS, ours.name, crowd.each, partial(_search, ours))
    ours.search(crowd.users[0], "warm up", K)
    spent = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for asked in machine.batches(crowd.questions(run.sizes.rounds * ASKED * AT_ONCE), ASKED * AT_ONCE):
            started = time.perf_counter()
            calls_s = list(pool.map(partial(_timed_search, ours), asked))
            spent.append(time.perf_counter() - started)
            line.samples.append(machine.Sample(spent[-1], calls_s))
            line.cpu_s.append([0.0] * len(calls_s))
    run.lines.append(line)
    run.aim(f"{crowd.each:,}, 8 threads: p50 ms, perdure", line.within_ms(0.5))
    run.aim(f"{crowd.each:,}, 8 threads: p95 ms, perdure", line.within_ms(0.95), 20, most=True)
    run.aim(f"{crowd.each:,}, 8 threads: searches/s", _middle([ASKED * AT_ONCE / one for one in spent]))


def _timed_search(store: Contender, question: Question) -> float:
    started = time.perf_counter()
    _search(store, question)
    return time.perf_counter() - started


def unread(run: Run) -> None:
    """The first search after 500 appends that nobody has read yet, which are not timed here."""
    crowd = Crowd(run.seed, 1, run.sizes.one)
    ours: Perdure = run.store(Perdure, crowd)
    memory = ours.engine.memory(crowd.users[0])
    texts = iter(Talk(run.seed, "unread").texts((run.sizes.rounds + 1) * UNREAD_EACH))
    new = partial(ours.new_messages, texts, UNREAD_EACH)
    line = Line(UNREAD, ours.name, crowd.each, partial(_search, ours), before=lambda: memory.append_many(new()))
    in_rounds([line], machine.batches(crowd.questions(run.sizes.rounds + 1), 1))
    ours.learn()
    run.lines.append(line)
    run.aim(f"{crowd.each:,}: p50 ms, first search after 500 appends", line.within_ms(0.5), 50, most=True)


def million(run: Run) -> None:
    crowd = Crowd(run.seed, 1, run.sizes.giant)
    by = race(run, ONE, crowd, [Indexed], [], ours=Indexed)
    told(run, f"{crowd.each:,}", by, p50=40, p95=None, times={})
    run.close()
    asked = crowd.questions(run.sizes.firsts + 1)
    seen = [_fresh(run.place(Indexed, crowd), Indexed, one, drop=False) for one in asked][1:]
    first = _line(run, Indexed.name, crowd, seen, "first_s")
    run.aim(f"first search, perdure, {crowd.each:,}: p50 ms", first.within_ms(0.5), 500, most=True)
    run.aim(f"first search, perdure, {crowd.each:,}: RSS MB", _middle([one["rss_mb"] for one in seen]))


def ten_thousand(run: Run) -> None:
    crowd = Crowd(run.seed, 1, run.sizes.one)
    by = race(run, ONE, crowd, [Perdure, Brute, *run.available], [Mem0, Agno])
    told(run, f"{crowd.each:,}", by, p50=1.2, p95=10, times={Mem0.name: 20, LangGraphSqlite.name: 10})
    on_disk(run, crowd)
    after_append(run, crowd)
    run.close(Brute, *peers.PEERS)


def on_disk(run: Run, crowd: Crowd) -> None:
    """What those take who keep files in a folder of their own."""
    for kind in (Perdure, *run.available):
        if held := disk_mb(run.place(kind, crowd)):
            run.aim(f"{crowd.each:,}: MB on disk, {kind.name}", Interval(held, held, held))


def hundred_thousand(run: Run) -> None:
    crowd = Crowd(run.seed, 1, run.sizes.large)
    run.say("left out of the next: mem0's default, agno and LangGraph Postgres, which would take many minutes")
    others = _only(run, Mem0Faiss, Chroma, LangGraphSqlite)
    by = race(run, ONE, crowd, [Indexed, Brute, *others], [LangGraphSqlite], ours=Indexed)
    told(run, f"{crowd.each:,}", by, p50=None, p95=8, times={})
    run.close(Brute, *others)


def hundred_users(run: Run) -> None:
    crowd = Crowd(run.seed, run.sizes.users, run.sizes.each)
    by = race(run, CROWD, crowd, [Perdure, Brute, *_only(run, LangGraphSqlite)], [])
    told(run, f"{crowd.count:,} x {crowd.each:,}", by, p50=0.7, p95=None, times={})
    run.close()
    ours: Perdure = run.store(Perdure, crowd)
    ours.search(crowd.users[0], "warm up", K)
    line = Line(CROWD, "perdure, first of each", crowd.each, partial(_search, ours))
    for user in crowd.users[1:]:
        line.run(crowd.questions(1, [user]))
    run.lines.append(line)
    run.aim(f"{crowd.count:,} x {crowd.each:,}, first of each: p50 ms, perdure", line.within_ms(0.5), 4, most=True)
    run.close()


def _only(run: Run, *kinds: type[Contender]) -> list[type[Contender]]:
    return [kind for kind in kinds if kind in run.available]


def thousand_users(run: Run) -> None:
    """A user among many beside the same user alone: the first question about them, and those that follow."""
    crowd = Crowd(run.seed, run.sizes.tenants, run.sizes.each)
    many: Perdure = run.store(Perdure, crowd)
    run.close()
    many = run.store(Perdure, crowd)
    size, names = crowd.each, ("many, cold", "many, warm", "alone, cold", "alone, warm")
    lines = {name: Line(TENANTS, name, size, lambda _: None, 1 if "cold" in name else ASKED) for name in names}
    chosen = random.Random(run.seed).sample(crowd.users[1:], min(2 * run.sizes.rounds + 1, crowd.count - 1))
    many.search(crowd.users[0], "warm up", K)
    for user in chosen:
        alone = Perdure(run.directory / f"alone-{user}")
        alone.fill(user, crowd.talk(user)[1])
        alone.fill("somebody", crowd.talk("somebody")[1][:K])
        alone.close()
        alone = Perdure(run.directory / f"alone-{user}")
        alone.search("somebody", "warm up", K)
        asked = crowd.questions(ASKED + 1, [user])
        for place, store in (("many", many), ("alone", alone)):
            for name, items in ((f"{place}, cold", asked[:1]), (f"{place}, warm", asked[1:])):
                lines[name].call = partial(_search, store)
                lines[name].run(items)
        alone.close()
    for kind in ("warm", "cold"):
        many_of, alone_of = lines[f"many, {kind}"], lines[f"alone, {kind}"]
        run.aim(f"{crowd.count:,} x {size:,}, {kind}: many / alone", many_of.over(alone_of), 1.3, most=True)
        run.aim(f"{crowd.count:,} x {size:,}, {kind}: many / alone, CPU", many_of.cpu_over(alone_of))
    run.lines += lines.values()
    run.close()


def opening(run: Run) -> None:
    """The first search of a fresh process, which opens the store for it; and what that process then takes in memory."""
    large = Crowd(run.seed, 1, run.sizes.large)
    small = Crowd(run.seed, 1, run.sizes.one)
    cases: list[tuple[type[Contender], Crowd]] = [(Indexed, large), (Perdure, small)]
    cases += [(kind, small) for kind in run.available if kind is not LangGraphPostgres]
    for kind, crowd in cases:
        run.store(kind, crowd)
    run.close()
    for kind, crowd in cases:
        asked = crowd.questions(run.sizes.firsts + 1)
        seen = [_fresh(run.place(kind, crowd), kind, one, drop=False) for one in asked][1:]
        dropped = (
            [_fresh(run.place(kind, crowd), kind, one, drop=True) for one in asked[1:]] if issubclass(kind, Perdure) else []
        )
        first = _line(run, kind.name, crowd, seen, "first_s")
        title = f"first search, {kind.name}, {crowd.each:,}"
        aimed = 500 if kind is Indexed else 30 if kind is Perdure else None
        run.aim(f"{title}: p50 ms", first.within_ms(0.5), aimed, most=True)
        if dropped:
            run.aim(f"{title}, disk: p50 ms", _line(run, f"{kind.name}, disk", crowd, dropped, "first_s").within_ms(0.5))
        run.aim(f"{title}, start and imports too: p50 ms", _middle([one["whole_s"] * 1e3 for one in seen]))
        run.aim(f"{title}: RSS MB", _middle([one["rss_mb"] for one in seen]))


def _middle(values: Sequence[float]) -> Interval:
    return machine.resampled(lambda places: machine.percentile([values[place] for place in places], 0.5), len(values))


def _line(run: Run, who: str, crowd: Crowd, seen: Sequence[dict[str, float]], key: str) -> Line:
    line = Line(FIRST, who, crowd.each, lambda _: None, samples=[machine.Sample(one[key], [one[key]]) for one in seen])
    run.lines.append(line)
    return line


def _fresh(where: Path, kind: type[Contender], question: Question, *, drop: bool) -> dict[str, float]:
    if drop:
        _drop_pages(where)
    # Installed packages have their bytecode: the first run, which does not count, writes what is missing.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, __file__, "--first", kind.__name__, "--dir", str(where), "--ask", *question]
    started = time.time()
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"FAILED: a fresh process with {kind.name}:\n{done.stderr}")
    told = json.loads(done.stdout)
    return {**told, "whole_s": told.pop("ended") - started}


def _drop_pages(directory: Path) -> None:
    for file in directory.rglob("*"):
        if file.is_file() and hasattr(os, "posix_fadvise"):
            with file.open("rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def first(kind: str, directory: Path, user: str, question: str) -> None:
    """What `opening` starts: open, search once, say how long that took and what it takes in memory."""
    made: type[Contender] = getattr(peers, kind)
    for module in made.modules:
        import_module(module)
    started = time.perf_counter()
    store = made(directory)
    found = store.search(user, question, K)
    spent = time.perf_counter() - started
    print(json.dumps({"first_s": spent, "ended": time.time(), "rss_mb": rss_mb(), "found": len(found)}))
    store.close()


def rss_mb() -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def ingest(run: Run) -> None:
    """Texts until they can be found, by all; perdure also until everything is learned from them."""
    rounds, size = run.sizes.rounds + 1, run.sizes.ingest
    slow = {Mem0: TAKEN_SLOW, Mem0Faiss: TAKEN_SLOW, LangGraphPostgres: TAKEN_SLOW * 10}
    texts = Talk(run.seed, "ingest").texts(rounds * size)
    parts = machine.batches(texts, size)
    lines = []
    kinds: list[type[Contender]] = [Perdure, *run.available]
    stores = [kind(run.directory / f"ingest-{kind.__name__}") for kind in kinds]
    for store in stores:
        each = min(size, slow.get(type(store), size))
        lines.append(Line(INGEST, store.name, each, partial(_take, store, each), 1))
    learning = Perdure(run.directory / "ingest-all")
    lines.append(Line(INGEST, ALL_JOBS, LEARNED, partial(_learn, learning, LEARNED), 1))
    in_rounds(lines, [[part] for part in parts])
    for store in (*stores, learning):
        store.close()
    run.lines += lines
    by = {line.who: line for line in lines}
    ours = by.pop(Perdure.name)
    run.aim("ingest: messages/s, perdure", ours.per_s(), 2_000)
    for who, line in by.items():
        run.aim(f"ingest: messages/s, {who}", line.per_s())
        if who != ALL_JOBS:
            run.aim(f"ingest: perdure / {who}", ours.rate_over(line), 20 if who == Mem0.name else None)


def _take(store: Contender, count: int, texts: Sequence[str]) -> None:
    store.add("ana", texts[:count])


def _learn(store: Perdure, count: int, texts: Sequence[str]) -> None:
    store.add("ana", texts[:count])
    store.learn()


PARTS: dict[str, Callable[[Run], None]] = {
    "100": hundred,
    "10k": ten_thousand,
    "threads": threads,
    "unread": unread,
    "100k": hundred_thousand,
    "opening": opening,
    "100x1k": hundred_users,
    "ingest": ingest,
    "1000x1k": thousand_users,
    "1m": million,
}
LARGE = ("1000x1k", "1m")


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall: perdure, its peers and the limit, side by side.")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part alone; may be given several times")
    parser.add_argument(
        "--large", action="store_true", help="and 1,000 users with 1,000 memories each, and one with a million: an hour"
    )
    parser.add_argument("--quick", action="store_true", help="small stores, a few rounds: shows that it runs, proves nothing")
    parser.add_argument("--rounds", type=int, help=f"how often all take their turn ({WHOLE.rounds})")
    parser.add_argument("--seed", type=int, default=1, help="of the texts and questions (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    parser.add_argument("--first", help=argparse.SUPPRESS)
    parser.add_argument("--ask", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        first(options.first, options.dir, *options.ask)
        return
    sizes = QUICK if options.quick else WHOLE
    sizes = sizes._replace(rounds=options.rounds or sizes.rounds)
    wanted = options.only or [name for name in PARTS if options.large or name not in LARGE]
    notes: list[str] = []

    def say(line: str) -> None:
        notes.append(line)
        if not options.json:
            print(line, flush=True)

    started = time.monotonic()
    with machine.working_directory(options.dir) as directory, contextlib.ExitStack() as stack:
        more = {"seed": str(options.seed), "threads of numpy": os.environ["OMP_NUM_THREADS"]}
        for name, value in (machine.facts(directory) | more).items():
            say(f"{name}: {value}")
        run = Run(directory, sizes, options.seed, say)
        stack.callback(run.close)
        for name in wanted:
            PARTS[name](run)
        if not set(LARGE) & set(wanted):
            say(f"left out: {', '.join(LARGE)}; ask for it with --large")
        say(f"load after: {os.getloadavg()[0]:.2f}; all in {time.monotonic() - started:.0f} s")
    report: dict[str, Any] = {"notes": notes, "times": [line.row() for line in run.lines], "comparisons": run.figures}
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        show_times(report["times"], TASKS)
        machine.show_figures(run.figures, limit="rows by key")
        print(f"\n{EXPLAINED}")


if __name__ == "__main__":
    main()
