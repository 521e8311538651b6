"""How perdure grows: one store to 1,000,000 memories of 10,000 users, on SQLite and on PostgreSQL; one user to 1,000,000.

Every user of the crowd is a copy of one of some templates, which were made by the public calls and whose rows, index included,
are put under other users' names: rows know their user by the first two columns of their key, and nothing else tells users
apart. All sizes are open at the same time and take turns, so that noise hits all alike; intervals are bootstrapped over the
rounds. This reports what is: nothing is tuned.

*first*: the first of a user since the store was opened; nothing waits to be learned. *after an append*: something was just
said, which the recall learns first, as far as a reading call may. *process*: a fresh one that opened the store and asked once
for each of the users that a round visits.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import perdure
from perdure.compose.store import open_store
from perdure.ports.tables.rows import TABLES
from recall.talk import Talk

TEMPLATES = 20
ENTRIES = 200
BATCH = 2_000
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)
RATIO_MAX, RECALL_MS_MAX, GIANT_MS_MAX = 1.3, 50.0, 40.0
AFTER = "recall, after an append"
TASKS = ("recall, first", "recall", "append, first", "append", AFTER, "context", "series merge", "series query")
VISITS_S_MAX = 60.0
"""A size has no more visits in a round when those so far took so long."""


@dataclass
class Grown:
    """A store of some size, open, and what was measured on it."""

    settings: perdure.Settings
    users: int
    each: int
    filled_s: float
    times: dict[str, list[list[float]]] = field(default_factory=lambda: {task: [] for task in TASKS})
    opening_s: list[float] = field(default_factory=list)
    process: dict[str, float] = field(default_factory=dict)

    @property
    def memories(self) -> int:
        return self.users * self.each


# -- filling


def remember(engine: perdure.Engine, user: str, texts: Sequence[str], offset: int = 0) -> None:
    """Memories of a user, by the public call that takes many."""
    memory = engine.memory(user)
    for start in range(0, len(texts), BATCH):
        batch = [
            {"id": f"{offset + start + number}", "memory": text[:400], "user_id": user}
            for number, text in enumerate(texts[start : start + BATCH])
        ]
        memory.import_(io.BytesIO(json.dumps(batch).encode()))


def make_templates(path: Path, seed: int, each: int) -> None:
    """Users with memories, a conversation and a series, indexed."""
    with perdure.open(settings=perdure.Settings(url=f"sqlite:///{path}", durability="normal")) as engine:
        for number in range(TEMPLATES):
            user, talk = f"template-{number}", Talk(seed, f"template-{number}")
            remember(engine, user, talk.texts(each))
            memory = engine.memory(user)
            memory.append_many([perdure.NewMessage("user", text) for text in talk.texts(20)])
            start = EPOCH
            memory.series("runs").merge(
                [{"id": str(one), "timestamp": (start + one * DAY / 10).isoformat(), "km": one % 17} for one in range(ENTRIES)],
                window=(start, start + 20 * DAY),
            )
        drain(engine)


def drain(engine: perdure.Engine) -> None:
    while engine.process(600).ran:
        pass


def template_rows(path: Path) -> tuple[int, dict[str, list[list[tuple[Any, ...]]]]]:
    """Of every table, the rows of each template."""
    store = open_store(perdure.Settings(url=f"sqlite:///{path}"))
    found: dict[str, list[list[tuple[Any, ...]]]] = {}
    try:
        with store.snapshot() as snapshot:
            for table in TABLES:
                by_user: dict[str, list[tuple[Any, ...]]] = {f"template-{number}": [] for number in range(TEMPLATES)}
                for row in snapshot.rows(table):
                    if row[1] in by_user:
                        by_user[str(row[1])].append(row)
                found[table] = [*by_user.values()]
            return snapshot.schema_version, found
    finally:
        store.close()


def name(number: int) -> str:
    return f"user-{number:06}"


def grow(settings: perdure.Settings, schema: int, templates: dict[str, list[list[tuple[Any, ...]]]], users: int) -> float:
    """A store with so many users; the seconds that took."""

    def rows(table: str) -> Iterator[tuple[Any, ...]]:
        for number in range(users):
            for row in templates[table][number % TEMPLATES]:
                yield (row[0], name(number), *row[2:])

    began = time.perf_counter()
    store = open_store(settings)
    try:
        if settings.url.startswith("sqlite"):
            store.restore(schema, ((table, rows(table)) for table in TABLES), replace=False)
        else:
            copy_in(settings, rows)
    finally:
        store.close()
    return time.perf_counter() - began


def copy_in(settings: perdure.Settings, rows: Callable[[str], Iterator[tuple[Any, ...]]]) -> None:
    """As the superuser, past row-level security, which knows no COPY; then the statistics that a server gathers in time."""
    import psycopg

    with psycopg.connect(settings.url) as connection, connection.cursor() as cursor:
        for table in TABLES:
            with cursor.copy(f"COPY {settings.postgres_schema}.{table} FROM STDIN".encode()) as copy:
                for row in rows(table):
                    copy.write_row(row)
        cursor.execute("ANALYZE")


def grow_one(settings: perdure.Settings, count: int, seed: int) -> float:
    """A store with one user and so many memories."""
    began = time.perf_counter()
    with perdure.open(settings=perdure.Settings(url=settings.url, durability="normal")) as engine:
        remember(engine, name(0), Talk(seed, "one").texts(count))
        drain(engine)
    return time.perf_counter() - began


# -- measuring


def timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def one_round(grown: Grown, draw: random.Random, calls: int, texts: Sequence[str]) -> None:
    """Some users at random, each from cold: the store is opened anew, so that none is in a cache."""
    began = time.perf_counter()
    with perdure.open(settings=grown.settings) as engine:
        engine.memory(name(0)).messages(1)
        grown.opening_s.append(time.perf_counter() - began)
        taken: dict[str, list[float]] = {task: [] for task in TASKS}
        users = draw.sample(range(grown.users), min(calls, grown.users))
        for number in users:
            for task, spent in a_visit(engine, name(number), draw, texts):
                taken[task].append(spent)
        for task, spent in taken.items():
            grown.times[task].append(spent)


def a_visit(engine: perdure.Engine, user: str, draw: random.Random, texts: Sequence[str]) -> Iterator[tuple[str, float]]:
    memory = engine.memory(user)
    text = draw.choice(texts)
    question = " ".join(draw.sample(text.split(), min(4, len(text.split()))))
    # In a channel of its own: every visit opens a session, whether the user was visited before or not.
    talk = engine.memory(user, channel=f"visit-{draw.getrandbits(64):x}")
    yield "recall, first", timed(lambda: memory.recall(question))
    yield "recall", timed(lambda: memory.recall(question))
    yield "append, first", timed(lambda: talk.append("user", text))
    yield "append", timed(lambda: talk.append("user", text))
    yield AFTER, timed(lambda: memory.recall(question))
    yield "context", timed(lambda: memory.context())
    start = EPOCH + draw.randrange(20, 400) * DAY
    entries = [{"id": f"{start:%j}-{one}", "timestamp": (start + one * DAY / 10).isoformat(), "km": one} for one in range(10)]
    series = memory.series("runs")
    yield "series merge", timed(lambda: series.merge(entries, window=(start, start + DAY)))
    yield "series query", timed(lambda: series.query(EPOCH, EPOCH + 5 * DAY))


def in_a_process(grown: Grown, calls: int, question: str) -> dict[str, float]:
    """What a process that only opened the store and asked takes of memory, and how long its first answer took."""
    place = (grown.settings.url, grown.settings.postgres_schema, str(min(calls, grown.users)), question)
    done = subprocess.run([sys.executable, __file__, "--fresh", *place], check=True, capture_output=True, text=True)
    told: dict[str, float] = json.loads(done.stdout)
    return told


def fresh(url: str, schema: str, users: str, question: str) -> None:
    """What `in_a_process` starts; imports are not counted as time."""
    perdure.open  # noqa: B018 - loads what opening needs
    began = time.perf_counter()
    with perdure.open(settings=perdure.Settings(url=url, postgres_schema=schema)) as engine:
        engine.memory(name(0)).recall(question)
        spent = time.perf_counter() - began
        for number in range(1, int(users)):
            engine.memory(name(number)).recall(question)
        print(json.dumps({"first_ms": spent * 1e3, "mb": resident_mb()}))


def resident_mb() -> float:
    try:
        fields = Path("/proc/self/statm").read_text().split()
        return int(fields[1]) * resource.getpagesize() / 2**20
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def sizes_mb(settings: perdure.Settings) -> tuple[float, float]:
    """The store's bytes, and those of its index, in MB."""
    if settings.url.startswith("sqlite"):
        import apsw

        path = settings.url.removeprefix("sqlite:///")
        connection = apsw.Connection(path)
        index = 0
        try:
            index = sum(
                size for (size,) in connection.execute("SELECT pgsize FROM dbstat WHERE aggregate = 1 AND name LIKE 'index%'")
            )
        finally:
            connection.close()
        return Path(path).stat().st_size / 2**20, index / 2**20
    import psycopg

    with psycopg.connect(settings.url) as connection:
        found = connection.execute(
            "SELECT relname, pg_total_relation_size(c.oid) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE nspname = %s AND relkind = 'r'",
            (settings.postgres_schema,),
        ).fetchall()
    return sum(size for _, size in found) / 2**20, sum(size for table, size in found if table.startswith("index_")) / 2**20


def figures_of(grown: Sequence[Grown], rounds: int) -> list[dict[str, Any]]:
    """How much a call costs at the largest size, beside the smallest."""
    small, large = grown[0], grown[-1]
    found = []
    for task in TASKS:

        def ratio(numbers: Sequence[int], task: str = task) -> float:
            middle = [statistics.median([one for number in numbers for one in g.times[task][number]]) for g in (small, large)]
            return middle[1] / middle[0]

        what = f"{task}: {large.users:,} users / {small.users:,}"
        found.append(machine.compared(what, machine.resampled(ratio, rounds), aim=RATIO_MAX, at_most=True))
    return found


def ms_of(grown: Grown, task: str, share: float, rounds: int) -> machine.Interval:
    def found(numbers: Sequence[int]) -> float:
        return machine.percentile([one for number in numbers for one in grown.times[task][number]], share) * 1000

    return machine.resampled(found, rounds)


def show(title: str, grown: Sequence[Grown]) -> None:
    print(f"\n{title}")
    print(f"{'users':>8}{'memories':>11}{'store MB':>10}{'index MB':>10}{'process':>8}{'open ms':>9}", end="")
    print("".join(f"{task + ' p50/p95 ms':>26}" for task in TASKS))
    for one in grown:
        store, index = sizes_mb(one.settings)
        line = f"{one.users:8,}{one.memories:11,}{store:10,.0f}{index:10,.0f}{one.process['mb']:8,.0f}"
        line += f"{statistics.median(one.opening_s) * 1000:9,.0f}"
        for task in TASKS:
            every = [spent for times in one.times[task] for spent in times]
            shown = f"{statistics.median(every) * 1000:,.2f} / {machine.percentile(every, 0.95) * 1000:,.2f}"
            line += f"{shown:>26}"
        print(line)


# -- the whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", default="10,100,1000,10000", help="sizes of the crowd; empty: not measured")
    parser.add_argument("--one", default="1000,10000,100000,1000000", help="memories of the one user; empty: not measured")
    parser.add_argument("--each", type=int, default=100, help="memories of each user of the crowd")
    parser.add_argument(
        "--minutes", type=float, default=45, help="a size of the one user that takes longer to fill is left out (45)"
    )
    parser.add_argument("--backend", action="append", choices=("sqlite", "postgres"), help="default: both")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=10, help="users visited in each round")
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds: shows that it runs, proves nothing")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dir", type=Path, help="where the stores are made; about 12 GB for the whole")
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE", help="as one JSON object into this file; without a name, printed alone"
    )
    parser.add_argument("--fresh", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fresh:
        fresh(*given.fresh)
        return
    if given.quick:
        given.users, given.one, given.each, given.rounds, given.calls = "2,5,10", "100,200,400", 50, 2, 2
    with machine.working_directory(given.dir) as directory, ExitStack() as stack:
        told = Run(given, directory, stack).whole()
    if given.json == "-":
        print(json.dumps(told, indent=1))
    elif given.json:
        Path(given.json).write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


class Run:
    """One run: what was asked for, and what came out."""

    def __init__(self, given: argparse.Namespace, directory: Path, stack: ExitStack) -> None:
        self.given, self.directory, self.stack = given, directory, stack
        self.backends = given.backend or ("sqlite", "postgres")
        self.texts = Talk(given.seed, "texts").texts(500)
        self.began = time.monotonic()

    def say(self, text: str) -> None:
        print(f"{(time.monotonic() - self.began) / 60:5.1f} min  {text}", file=sys.stderr, flush=True)

    def whole(self) -> dict[str, Any]:
        """Every backend, the crowd and then the one user; with the conditions under which it was measured."""
        given = self.given
        visits = (
            f"{given.rounds} rounds of {given.calls} visits, {given.each} memories of each of many users, seed {given.seed}"
        )
        facts, before = machine.facts(self.directory), machine.busyness()
        if given.json != "-":
            print("\n".join(f"{what}: {value}" for what, value in facts.items()) + f"\n{visits}")
        if before > machine.BUSY:
            self.say(f"busy machine: a loop takes {before:.2f} × its processor time; this is not to be published")
        told: dict[str, Any] = {"commit": machine.commit(), "date": datetime.now(UTC).date().isoformat()}
        found = {backend: self.backend(backend) for backend in self.backends}
        busy = max(before, machine.busyness())
        told |= {"busy": round(busy, 2), "conditions": visits, "machine": facts | {"load after": f"{os.getloadavg()[0]:.2f}"}}
        return told | found

    def backend(self, backend: str) -> dict[str, Any]:
        server = _server(self.directory, self.stack) if backend == "postgres" else ""
        told: dict[str, Any] = {"ratios": {}, "users": [], "one": []}
        if self.given.users:
            crowd = self.crowd(backend, server)
            compared = figures_of(crowd, self.given.rounds)
            told["ratios"] = {row["what"].partition(":")[0]: row["figure"] for row in compared}
            told["users"] = self.report(f"{backend}, more and more users", crowd, compared)
        if backend == "sqlite":
            for path in self.directory.glob("crowd_*"):
                path.unlink()
        if self.given.one:
            alone = self.alone(backend, server)
            aims = {one.memories: GIANT_MS_MAX if one.memories >= 1_000_000 else RECALL_MS_MAX for one in alone}
            compared = [
                machine.compared(
                    f"recall p95 ms at {one.memories:,}",
                    ms_of(one, "recall", 0.95, self.given.rounds),
                    aim=aims[one.memories],
                    at_most=True,
                )
                for one in alone
            ]
            told["one"] = self.report(f"{backend}, one user with more and more memories", alone, compared)
        return told

    def crowd(self, backend: str, server: str) -> list[Grown]:
        given, path = self.given, self.directory / "templates.db"
        if not path.exists():
            make_templates(path, given.seed, given.each)
        schema, templates = template_rows(path)
        self.say(f"templates: {sum(len(one) for rows in templates.values() for one in rows) / TEMPLATES:,.0f} rows a user")
        crowd = []
        for users in map(int, given.users.split(",")):
            settings = _settings(self.directory, server, f"crowd_{users}")
            crowd.append(Grown(settings, users, given.each, grow(settings, schema, templates, users)))
            rate = crowd[-1].memories / crowd[-1].filled_s
            self.say(f"{backend}: {users:,} users filled in {crowd[-1].filled_s:,.0f} s, {rate:,.0f} memories a second")
        self.measure(crowd)
        return crowd

    def alone(self, backend: str, server: str) -> list[Grown]:
        """One user who has more and more, as far as it can be filled in the time that is given."""
        given, rate, alone = self.given, 0.0, []
        for count in map(int, given.one.split(",")):
            made = _settings(self.directory, "", f"one_{count}")
            path = self.directory / f"one_{count}.db"
            if not path.exists() and rate and count / rate > given.minutes * 60:
                self.say(
                    f"left out: one user with {count:,} memories, about {count / rate / 60:.0f} minutes to fill; see --minutes"
                )
                break
            if not path.exists():
                rate = count / grow_one(made, count, given.seed)
                self.say(f"one user with {count:,} memories: {rate:,.0f} a second, indexed")
            settings = self.moved(made, server, count) if backend == "postgres" else made
            with perdure.open(settings=settings) as engine:
                text = Talk(given.seed, "one").texts(count)[-1][:400]
                if not any(text in hit.text or hit.text in text for hit in engine.memory(name(0)).recall(text).hits):
                    raise SystemExit(f"FAILED: the last of {count:,} memories is not found by its own words")
            alone.append(Grown(settings, 1, count, 0.0))
        self.measure(alone, visits=given.calls)
        return alone

    def moved(self, made: perdure.Settings, server: str, count: int) -> perdure.Settings:
        """The same store on a server."""
        settings, kept = _settings(self.directory, server, f"one_{count}"), self.directory / f"one_{count}.backup"
        with perdure.open(settings=made) as engine:
            engine.backup(kept)
        perdure.restore(kept, settings=settings)
        kept.unlink()
        with perdure.open(settings=settings) as engine:
            drain(engine)  # a backup has no index: it is made anew
        return settings

    def measure(self, sizes: Sequence[Grown], *, visits: int = 1) -> None:
        given = self.given
        for number in range(given.rounds):
            for grown in sizes:
                draw = random.Random(f"{given.seed}/{number}/{grown.users}/{grown.each}")
                until = time.monotonic() + VISITS_S_MAX
                one_round(grown, draw, given.calls if visits == 1 else 1, self.texts)
                if visits > 1 and time.monotonic() < until:
                    more_visits(grown, draw, visits - 1, self.texts, until)
            self.say(f"round {number + 1} of {given.rounds}")
        for grown in sizes:
            grown.process = in_a_process(grown, given.calls, self.texts[0])

    def report(self, title: str, sizes: Sequence[Grown], figures: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        if self.given.json != "-":
            show(title, sizes)
            machine.show_figures(figures, limit="")
        return [told_of(one, self.given.rounds) for one in sizes]


def more_visits(grown: Grown, draw: random.Random, visits: int, texts: Sequence[str], until: float) -> None:
    """Further visits of the one user in the round that has begun; none of them is the first."""
    with perdure.open(settings=grown.settings) as engine:
        engine.memory(name(0)).recall("before")
        for _ in range(visits):
            for task, spent in a_visit(engine, name(0), draw, texts):
                if task != "recall, first":
                    grown.times[task][-1].append(spent)
            if time.monotonic() > until:
                return


def told_of(one: Grown, rounds: int) -> dict[str, Any]:
    """A size in figures: MB and ms."""
    file_mb, index_mb = sizes_mb(one.settings)
    times = {}
    for task in TASKS:
        middle = ms_of(one, task, 0.5, rounds)
        spread = {"p50": middle.value, "low": middle.low, "high": middle.high, "p95": ms_of(one, task, 0.95, rounds).value}
        times[task] = {share: float(f"{value:.4g}") for share, value in spread.items()}
    sizes = {"file_mb": file_mb, "index_mb": index_mb, "process_mb": one.process["mb"]}
    opened = {"open": statistics.median(one.opening_s) * 1e3, "recall, first of a process": one.process["first_ms"]}
    return {
        "users": one.users,
        "memories": one.memories,
        **{what: float(f"{value:.4g}") for what, value in sizes.items()},
        "ms": times | {what: {"p50": float(f"{value:.4g}")} for what, value in opened.items()},
    }


def _settings(directory: Path, server: str, what: str) -> perdure.Settings:
    if server:
        return perdure.Settings(url=server, postgres_schema=what)
    return perdure.Settings(url=f"sqlite:///{directory / what}.db")


def _server(directory: Path, stack: ExitStack) -> str:
    sys.path.append(str(Path(__file__).parents[1] / "tests"))
    import pg

    root = pg.new_root()
    # The data lies with the other stores, on a disk; the socket's path must be short.
    data = directory / "pg"
    data.mkdir()
    shutil.rmtree(root)
    root.symlink_to(data, target_is_directory=True)
    stack.callback(root.unlink, missing_ok=True)
    stack.callback(pg.stop, root)
    return pg.start(root)


if __name__ == "__main__":
    main()
