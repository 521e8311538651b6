"""How fast messages are appended: perdure beside raw SQLite, which is the limit, and beside two peers.

All get the same texts, keep them in a file each, and sync every commit (WAL, synchronous=FULL). They take turns in
rounds, so that noise hits all alike; intervals are bootstrapped over the rounds. This reports what is: nothing is tuned.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import itertools
import json
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, cast
from urllib.parse import quote

import apsw

import machine
import perdure
from machine import Interval, Sample, at_once, in_turn, in_turn_async
from perdure.adapters.sql.statements import schema
from perdure.adapters.sqlite.connections import connect
from perdure.adapters.sqlite.store import SQL

CALLERS, BATCH = 16, 500
MESSAGES, QUICK, ROUNDS, WARM_UP = 20_000, 1_600, 10, 64
# On a slow disk the run ends after this time, though not before this many rounds.
SECONDS_MOST, ROUNDS_LEAST = 120.0, 5

Say = Callable[[str], None]
Texts = Sequence[str]


class Library:
    """Something that keeps messages, opened on a file of its own. A subclass says how one and how several are appended."""

    name: ClassVar[str]
    stored_sql: ClassVar[str]
    """Counts the messages that are held and the characters in them: both must come out right at the end."""
    modes: ClassVar[dict[str, str]] = {"single": "1 caller", "together": f"{CALLERS} threads", "batched": "batched"}
    durability = ""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, user: int, text: str) -> object:
        raise NotImplementedError

    def append_many(self, user: int, texts: Texts) -> object:
        raise NotImplementedError

    def single(self, texts: Texts) -> Sample:
        return in_turn(partial(self.append, 0), texts)

    def together(self, texts: Texts) -> Sample:
        return at_once([partial(self.append, user) for user in range(CALLERS)], texts)

    def batched(self, texts: Texts) -> Sample:
        return in_turn(partial(self.append_many, 0), machine.batches(texts, BATCH))

    def stored(self) -> tuple[int, int]:
        with contextlib.closing(apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            [(messages, characters)] = connection.execute(self.stored_sql)
        return messages, characters

    def close(self) -> None:
        raise NotImplementedError


class Raw(Library):
    """perdure's schema, statements and connection settings with nothing around them; even the ids are made beforehand."""

    name = "raw SQLite"
    stored_sql = "SELECT count(*), sum(length(content)) FROM messages"
    modes: ClassVar[dict[str, str]] = Library.modes | {"together": f"{CALLERS} per commit"}

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._connection = connect(str(path), synchronous="FULL", patience=lambda _tries: True)
        self._connection.execute(schema("perdure.adapters.sqlite"))
        self.durability = machine.durability(self._connection)
        self._places = [("default", f"user-{user}", "bench", "default") for user in range(CALLERS)]
        now = time.time_ns() // 1000
        job = ("tally", "k" * 32, "ready", "{}", now, 0, 5, 0, 0, None, None, None, 0, 0, now, now)
        for place in self._places:
            session = (*place, 1, str(uuid.uuid4()), now, now, None, 0, 0, 0, 0, 0, None, 0)
            self._connection.execute(SQL["insert_session"].sql, session)
            self._connection.execute(SQL["insert_job"].sql, (*place[:2], *job))

    def single(self, texts: Texts) -> Sample:
        return in_turn(self._commit, [[(0, [(text, str(uuid.uuid4()))])] for text in texts])

    def together(self, texts: Texts) -> Sample:
        appends = [(number % CALLERS, [(text, str(uuid.uuid4()))]) for number, text in enumerate(texts)]
        return in_turn(self._commit, machine.batches(appends, CALLERS))

    def batched(self, texts: Texts) -> Sample:
        many = machine.batches([(text, str(uuid.uuid4())) for text in texts], BATCH)
        return in_turn(self._commit, [[(0, batch)] for batch in many])

    def _commit(self, appends: Sequence[tuple[int, Sequence[tuple[str, str]]]]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        for user, messages in appends:
            self._put(self._places[user], messages)
        self._connection.execute("COMMIT")

    def _put(self, place: tuple[str, str, str, str], messages: Sequence[tuple[str, str]]) -> None:
        run: Any = self._connection.execute
        now, size = time.time_ns() // 1000, len(messages)
        [(*_, session, _, _, _, held, tokens, turns, _, _, _, _)] = run(SQL["latest_session"].sql, place).fetchall()
        counts = (held + size, tokens + 30 * size, turns + size, 0, 0, None, 0)
        run(SQL["update_session"].sql, (now, None, *counts, *place, 1, session))
        run(SQL["count_turn"].sql, (*place, size, now, messages[-1][0][:200]))
        rows = [
            (*place, 1, held + number, message_id, "user", text, now, 30, None, None, None, 0)
            for number, (text, message_id) in enumerate(messages, 1)
        ]
        if size == 1:
            run(SQL["insert_message"].sql, rows[0])
        else:
            self._connection.executemany(SQL["insert_message"].sql, rows)
        run(SQL["find_job"].sql, (*place[:2], "tally", "k" * 32)).fetchall()

    def close(self) -> None:
        self._connection.close()


class Perdure(Library):
    """One engine; each caller is another user."""

    name = "perdure"
    stored_sql = Raw.stored_sql

    def __init__(self, path: Path, settings: perdure.Settings | None = None) -> None:
        super().__init__(path)
        # Settings made here, so that neither the environment nor a file changes what is measured.
        self._engine = perdure.open(settings=settings or perdure.Settings(url=f"sqlite:///{quote(str(path))}"))
        self._memories = [self._engine.memory(user=f"user-{user}", agent="bench") for user in range(CALLERS)]
        self.durability = self._engine.doctor().store.durability

    def append(self, user: int, text: str) -> object:
        return self._memories[user].append("user", text)

    def append_many(self, user: int, texts: Texts) -> object:
        return self._memories[user].append_many([perdure.NewMessage("user", text) for text in texts])

    def close(self) -> None:
        self._engine.close()


class PerdurePostgres(Perdure):
    """The same on PostgreSQL, in a schema that is made for the run and dropped after it."""

    name = "PostgreSQL"
    url: ClassVar[str] = ""

    def __init__(self, path: Path) -> None:
        self._schema = f"bench_{uuid.uuid4().hex[:12]}"
        super().__init__(path, perdure.Settings(url=self.url, postgres_schema=self._schema, postgres_pool_max=CALLERS))

    def stored(self) -> tuple[int, int]:
        return self._found

    def close(self) -> None:
        import psycopg

        super().close()
        with psycopg.connect(self.url) as connection:
            [self._found] = connection.execute(self.stored_sql.replace("FROM ", f"FROM {self._schema}.")).fetchall()
            connection.execute(f"DROP SCHEMA {self._schema} CASCADE")


class OpenAiAgents(Library):
    """`SQLiteSession.add_items`, awaited on one event loop; each caller is a task with a session of its own."""

    name = "openai-agents"
    stored_sql = "SELECT count(*), sum(length(json_extract(message_data, '$.content'))) FROM agent_messages"
    modes: ClassVar[dict[str, str]] = Library.modes | {"together": f"{CALLERS} tasks"}

    def __init__(self, path: Path) -> None:
        from agents import SQLiteSession

        super().__init__(path)
        seen: list[str] = []

        class Synced(SQLiteSession):
            @staticmethod
            def _configure_connection(conn: Any) -> None:
                SQLiteSession._configure_connection(conn)
                by_itself = machine.durability(conn)
                conn.execute("PRAGMA synchronous = FULL")
                seen.append(f"{machine.durability(conn)}, forced (by itself, here: {by_itself})")

        self._runner = asyncio.Runner()
        self._sessions = [Synced(f"user-{user}", path) for user in range(CALLERS)]
        if not seen:
            raise RuntimeError("SQLiteSession no longer opens its connections as it did; its durability is unknown")
        self.durability = seen[0]

    def single(self, texts: Texts) -> Sample:
        return self._runner.run(in_turn_async(partial(self._add, 0), machine.batches(texts, 1)))

    def together(self, texts: Texts) -> Sample:
        return self._runner.run(self._together(texts))

    def batched(self, texts: Texts) -> Sample:
        return self._runner.run(in_turn_async(partial(self._add, 0), machine.batches(texts, BATCH)))

    async def _together(self, texts: Texts) -> Sample:
        started = time.perf_counter()
        shares = [machine.batches(texts[user::CALLERS], 1) for user in range(CALLERS)]
        samples = await asyncio.gather(*(in_turn_async(partial(self._add, user), share) for user, share in enumerate(shares)))
        return Sample(time.perf_counter() - started, [call_s for sample in samples for call_s in sample.calls_s])

    def _add(self, user: int, texts: Texts) -> Awaitable[object]:
        return self._sessions[user].add_items([{"role": "user", "content": text} for text in texts])

    def close(self) -> None:
        for session in self._sessions:
            session.close()
        self._runner.close()


class LangGraph(Library):
    """`SqliteStore.put` and `.batch`; each caller has a namespace. Keys ascend, which suits its index best."""

    name = "langgraph"
    stored_sql = "SELECT count(*), sum(length(json_extract(CAST(value AS TEXT), '$.content'))) FROM store"

    def __init__(self, path: Path) -> None:
        from langgraph.store.base import PutOp
        from langgraph.store.sqlite import SqliteStore  # type: ignore[import-untyped, unused-ignore]

        super().__init__(path)
        self._put_op, self._numbers, self._held = PutOp, itertools.count(), contextlib.ExitStack()
        self._store = self._held.enter_context(SqliteStore.from_conn_string(str(path)))
        by_itself = machine.durability(self._store.conn)
        self._store.conn.execute("PRAGMA journal_mode = WAL")
        self._store.conn.execute("PRAGMA synchronous = FULL")
        self.durability = f"{machine.durability(self._store.conn)}, forced (by itself, here: {by_itself})"
        self._store.setup()

    def append(self, user: int, text: str) -> object:
        return self._store.put(("bench", f"user-{user}"), f"{next(self._numbers):09}", {"role": "user", "content": text})

    def append_many(self, user: int, texts: Texts) -> object:
        place, make, numbers = ("bench", f"user-{user}"), self._put_op, self._numbers
        return self._store.batch([make(place, f"{next(numbers):09}", {"role": "user", "content": text}) for text in texts])

    def close(self) -> None:
        self._held.close()


PEERS: dict[type[Library], str] = {OpenAiAgents: "openai-agents", LangGraph: "langgraph-checkpoint-sqlite"}


@dataclass
class Line:
    """One library used in one way, and what was measured of it."""

    library: Library
    mode: str
    per_round: int
    samples: list[Sample] = field(default_factory=list)

    @property
    def label(self) -> str:
        return f"{self.library.name}, {self.library.modes[self.mode]}"

    def run(self, texts: Texts) -> Sample:
        return cast(Sample, getattr(self.library, self.mode)(texts))

    def seconds(self, rounds: Sequence[int]) -> float:
        return sum(self.samples[number].seconds for number in rounds)

    def rate(self) -> Interval:
        """Messages per second."""
        return machine.resampled(lambda rounds: self.per_round * len(rounds) / self.seconds(rounds), len(self.samples))

    def row(self) -> dict[str, Any]:
        calls_s = [call_s for sample in self.samples for call_s in sample.calls_s]
        per_call = self.per_round * len(self.samples) / len(calls_s)
        p50, p95 = (machine.percentile(calls_s, share) * 1e6 for share in (0.5, 0.95))
        rate = asdict(self.rate())
        middles = [machine.percentile(sample.calls_s, 0.5) * 1e6 for sample in self.samples]
        middle = machine.resampled(lambda rounds: machine.percentile([middles[number] for number in rounds], 0.5), len(middles))
        told = {"line": self.label, "messages_per_call": per_call, "p50_us": p50, "p95_us": p95, "messages_per_s": rate}
        return told | {"p50": asdict(middle)}

    def times_faster_than(self, other: Line) -> Interval:
        """The ratio of the rates, in the same rounds."""
        return machine.resampled(lambda rounds: other.seconds(rounds) / self.seconds(rounds), len(self.samples))


def available(url: str | None, say: Say) -> list[type[Library]]:
    """The contenders that can run here; what is missing is said."""
    libraries: list[type[Library]] = [Raw, Perdure]
    for peer, package in PEERS.items():
        try:
            say(f"{peer.name}: {package} {version(package)}")
            libraries.append(peer)
        except PackageNotFoundError:
            say(f"{peer.name}: MISSING, so left out; install it with: pip install 'perdure[bench]'")
    if url is not None:
        PerdurePostgres.url = url
        libraries.append(PerdurePostgres)
    return libraries


def measure(directory: Path, libraries: Sequence[type[Library]], texts: Texts, say: Say) -> list[Line]:
    """Open everything, run the rounds, close everything, and check that every message is there."""
    warm_up, per_round = texts[:WARM_UP], (len(texts) - WARM_UP) // ROUNDS
    lines, used = [], list(warm_up)
    with contextlib.ExitStack() as held:
        for library in libraries:
            for mode in library.modes:
                lines.append(Line(library(directory / f"{library.__name__}-{mode}.db"), mode, per_round))
                held.callback(lines[-1].library.close)
            say(f"durability of {library.name}: {lines[-1].library.durability}")
        for line in lines:
            line.run(warm_up)
        # What the peers' packages leave in memory would make everybody's garbage collections slower.
        gc.collect()
        gc.freeze()
        started = time.monotonic()
        for number in range(ROUNDS):
            part = texts[len(used) : len(used) + per_round]
            turn = number % len(lines)
            # Every other round backwards, so that no line always follows the same one.
            for line in (lines[turn:] + lines[:turn])[:: -1 if number % 2 else 1]:
                gc.collect()
                line.samples.append(line.run(part))
            used.extend(part)
            if number + 1 >= ROUNDS_LEAST and time.monotonic() - started > SECONDS_MOST:
                break
    say(f"{number + 1} rounds of {per_round} messages for each of {len(lines)} lines in {time.monotonic() - started:.0f} s")
    expected = (len(used), sum(map(len, used)))
    for line in lines:
        if (stored := line.library.stored()) != expected:
            raise SystemExit(f"FAILED: {line.label} holds {stored} messages and characters, not {expected}")
    say(f"checked: every line holds its {expected[0]} messages, {WARM_UP} of them from warming up")
    return lines


def comparisons(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Each figure with its aim and with what raw SQLite reaches in its place. Peers are compared like with like."""
    held = {(type(line.library), line.mode): line for line in lines}
    raw, raw_group, raw_batch = (held[Raw, mode] for mode in Raw.modes)
    one, threads, batch = (held[Perdure, mode] for mode in Perdure.modes)
    grouping = raw_group.times_faster_than(raw)
    rows = [
        machine.compared("time of a single append, perdure / raw", raw.times_faster_than(one), aim=1.5, at_most=True),
        machine.compared("messages/s, perdure batched", batch.rate(), aim=50_000, limit=raw_batch.rate()),
        machine.compared(f"rate, perdure {CALLERS} threads / 1", threads.times_faster_than(one), aim=5, limit=grouping),
        machine.compared(f"messages/s, perdure {CALLERS} threads", threads.rate(), aim=8_000, limit=raw_group.rate()),
        machine.compared(f"rate, perdure {CALLERS} threads / raw {CALLERS} per commit", threads.times_faster_than(raw_group)),
        machine.compared("rate, perdure batched / raw batched", batch.times_faster_than(raw_batch)),
    ]
    for peer, mode in itertools.product(PEERS, Library.modes):
        if (theirs := held.get((peer, mode))) is not None:
            ours, limit = (held[kind, mode].times_faster_than(theirs) for kind in (Perdure, Raw))
            rows.append(machine.compared(f"rate, perdure / {theirs.label}", ours, aim=5, limit=limit))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Message append: perdure, raw SQLite and peers, side by side.")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of each line, in {ROUNDS} rounds ({MESSAGES})")
    parser.add_argument("--seed", type=int, default=1, help="of the texts (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    parser.add_argument("--url", help="postgresql://…: measure perdure there too, in a schema that is dropped afterwards")
    parser.add_argument("--quick", action="store_true", help="few messages: shows that it runs, proves nothing")
    options = parser.parse_args()
    if options.quick:
        options.messages = QUICK
    if options.messages < ROUNDS * CALLERS:
        parser.error(f"--messages must be at least {ROUNDS * CALLERS}: {ROUNDS} rounds of {CALLERS} callers")
    notes: list[str] = []

    def say(line: str) -> None:
        notes.append(line)
        if not options.json:
            print(line, flush=True)

    with machine.working_directory(options.dir) as directory:
        for name, value in machine.facts(directory).items():
            say(f"{name}: {value}")
        libraries = available(options.url, say)
        texts = machine.chat_texts(WARM_UP + options.messages - options.messages % ROUNDS, options.seed)
        lines = measure(directory, libraries, texts, say)
    report: dict[str, Any] = {"notes": notes, "rates": [line.row() for line in lines], "comparisons": comparisons(lines)}
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        machine.show(report["rates"], report["comparisons"])


if __name__ == "__main__":
    main()
