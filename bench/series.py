"""What a time series costs as it grows: perdure beside plain SQLite, which is the limit, and beside one JSON document.

All get the same entries, keep them in a file each on a real disk, and sync every merge. They take turns in rounds, so that
noise hits all alike; intervals are bootstrapped over the rounds. Their answers are compared: if they differ, the run fails.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import itertools
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import quote

import apsw

import machine
import perdure
from perdure.adapters.sqlite.connections import connect
from perdure.domain.series import SeriesAnswer

# Sizes of the series, windows in the ledger, rounds.
WHOLE, QUICK = ((1_000, 100_000, 1_000_000), 10_000, 12), ((1_000, 5_000, 20_000), 500, 3)
# Calls per round (a slow contender is asked less often), and entries in a merge.
MERGES, DAYS, GAPS, BATCH, FILL = 10, 20, 2, 100, 10_000
# Three years, and as much time between two entries as a million of them leave: a day holds the same in every series.
START, DAY, HOUR = datetime(2022, 1, 1, tzinfo=UTC), timedelta(days=1), timedelta(hours=1)
STEP_MS = 3 * 365 * 86_400_000 // 1_000_000
NAMES = ("Alice", "Bob", "Charlie", "Diana", "Eve", "Zoë")
NEWEST, SCATTERED, DAY_OUT = "merge 100, newest", "merge 100, scattered", "query one day"
UNDECODED, LOOP = "plain, not decoded", "loop in memory"
EXPLAINED = """newest: the last 50 entries again and 50 new ones. scattered: 50 known and 50 late ones, all over the series.
query one day: perdure decodes the bodies and works out what is covered; plain SQLite decodes them too, unless it says
otherwise; a document is loaded and searched. JSON document: written by json.dump; by dumps: by json.dumps, which is faster."""
GAPS_ALL, GAPS_DAY = "gaps, whole range", "gaps, one day of it"
TASKS = (NEWEST, SCATTERED, DAY_OUT, GAPS_ALL, GAPS_DAY)
dumps = partial(json.dumps, ensure_ascii=False, separators=(",", ":"))

Body, Say, Pair = dict[str, Any], Callable[[str], None], tuple[datetime, datetime]


class Batch(NamedTuple):
    """What one merge gets, and the window that was asked for; None for late arrivals, which nobody asked for."""

    entries: list[Body]
    window: Pair | None = None

    @classmethod
    def of(cls, batches: Iterable[Batch]) -> Batch:
        return cls([body for batch in batches for body in batch.entries])


def instant(number: int, late_ms: int = 0) -> datetime:
    return START + timedelta(milliseconds=number * STEP_MS + late_ms)


def entry(number: int, late: int = 0) -> Body:
    """An entry in the shape of the seed's; `late` ones belong to the same activity and come from other people."""
    person = 2_000_000 + late if late else number * 2_654_435_761 % 1_000_003
    at = instant(number, late % (STEP_MS - 1) + 1 if late else 0).isoformat(timespec="milliseconds")
    activity = 10_000_000 + number // 5
    body = {"id": f"kudos_{activity}_{person}", "athlete_id": str(person), "athlete_name": NAMES[person % len(NAMES)]}
    return {**body, "activity_id": str(activity), "timestamp": at.replace("+00:00", "Z")}


def us(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def columns(body: Body) -> tuple[str, int, str]:
    return body["id"], us(datetime.fromisoformat(body["timestamp"])), dumps(body)


class Contender:
    """Something that keeps one series in a file of its own. Subclasses say how to `clear` it, `merge` and get a `day`."""

    def __init__(self, directory: Path, size: int) -> None:
        self.path, self.close = directory / f"{type(self).__name__}-{size}", lambda: None

    def held(self) -> Iterable[tuple[str, int, str]]:
        """Id, instant and body of every entry, oldest first."""
        with contextlib.closing(apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            yield from connection.execute(f"SELECT id, at_us, body FROM {self.table} ORDER BY at_us, id")


class Perdure(Contender):
    name, table = "perdure", "series_entries"

    def __init__(self, directory: Path, size: int, durability: str = "full") -> None:
        super().__init__(directory, size)
        # Settings made here, so that neither the environment nor a file changes what is measured.
        engine = perdure.open(settings=perdure.Settings(url=f"sqlite:///{quote(str(self.path))}", durability=durability))
        self.series = engine.memory(user="ana").series("kudos_timeseries", max_entries=None)
        self.durability, self.clear, self.close = engine.doctor().store.durability, self.series.remove, engine.close

    def merge(self, batch: Batch) -> object:
        done = self.series.merge(batch.entries, window=batch.window)
        return done.added, done.duplicates, done.total_count

    def day(self, ends: Pair) -> Any:
        return self.series.query(*ends, limit=10_000)


class Plain(Contender):
    """A table with a key and an index on time, and nothing around it. It reads times and writes JSON, as all must."""

    name, table = "plain SQLite", "entries"
    SCHEMA = """CREATE TABLE entries (id TEXT PRIMARY KEY, at_us INTEGER NOT NULL, body TEXT NOT NULL) STRICT;
                CREATE INDEX entries_by_time ON entries (at_us)"""
    UPSERT = "INSERT INTO entries VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET at_us = excluded.at_us, body = excluded.body"
    BETWEEN = "SELECT id, at_us, body FROM entries WHERE at_us BETWEEN ? AND ? ORDER BY at_us DESC"

    def __init__(self, directory: Path, size: int) -> None:
        super().__init__(directory, size)
        self._connection = connect(str(self.path), synchronous="FULL", patience=lambda _tries: True)
        self._connection.execute(self.SCHEMA)
        self.durability, self.close = machine.durability(self._connection), self._connection.close

    def clear(self) -> None:
        self._connection.execute("DELETE FROM entries")

    def merge(self, batch: Batch) -> None:
        rows = [columns(body) for body in batch.entries]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(self.UPSERT, rows)
        self._connection.execute("COMMIT")

    def day(self, ends: Pair) -> Any:
        return [json.loads(row[2]) for row in self.texts(ends)]

    def texts(self, ends: Pair) -> list[Any]:
        """The same day with its bodies left as text."""
        return self._connection.execute(self.BETWEEN, (us(ends[0]), us(ends[1]))).fetchall()


class Document(Contender):
    """The seed's algorithm without its book-keeping: load one JSON document, merge by id, sort newest first, save it all."""

    name, durability = "JSON document", "synced, then renamed"

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)

    def _load(self) -> list[Body]:
        return json.loads(self.path.read_bytes())["entries"] if self.path.exists() else []

    def merge(self, batch: Batch) -> object:
        by_id = {one["id"]: one for one in self._load()}
        duplicates = 0
        for new in batch.entries:
            old = by_id.setdefault(new["id"], new)
            duplicates += old is not new
            if new["timestamp"] > old["timestamp"]:
                by_id[new["id"]] = new
        entries = sorted(by_id.values(), key=itemgetter("timestamp"), reverse=True)
        draft = self.path.with_suffix(".new")
        with draft.open("w", encoding="utf-8") as file:
            self.write({"last_updated": time.time(), "count": len(entries), "entries": entries}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self.path)
        return len(batch.entries) - duplicates, duplicates, len(entries)

    def write(self, document: Body, file: TextIO) -> None:
        json.dump(document, file)

    def day(self, ends: Pair) -> Any:
        return [one for one in self._load() if ends[0] <= datetime.fromisoformat(one["timestamp"]) <= ends[1]]

    def held(self) -> Iterable[tuple[str, int, str]]:
        return sorted(map(columns, self._load()), key=itemgetter(1, 0))


class Dumped(Document):
    name = "JSON by dumps"

    def write(self, document: Body, file: TextIO) -> None:
        file.write(dumps(document))


@dataclass
class Line:
    """One thing measured: what is done, by whom, in a series of which size, at most how often per round."""

    task: str
    who: str
    size: int
    call: Callable[[Any], Any]
    most: int = DAYS
    samples: list[machine.Sample] = field(default_factory=list)

    def run(self, items: Sequence[Any]) -> list[Any]:
        answers: list[Any] = []
        gc.collect()
        self.samples.append(machine.in_turn(lambda item: answers.append(self.call(item)), items[: self.most]))
        return answers

    def mean_s(self, rounds: Sequence[int]) -> float:
        return sum(self.samples[number].seconds / len(self.samples[number].calls_s) for number in rounds) / len(rounds)

    def row(self) -> dict[str, Any]:
        calls_s = [call_s for sample in self.samples for call_s in sample.calls_s]
        mean = machine.resampled(lambda rounds: self.mean_s(rounds) * 1e3, len(self.samples))
        p50, p95 = (machine.percentile(calls_s, share) * 1e3 for share in (0.5, 0.95))
        told = {"task": self.task, "size": self.size, "who": self.who, "calls": len(calls_s), "mean_ms": asdict(mean)}
        return told | {"p50_ms": p50, "p95_ms": p95, "p50": asdict(self.p50_ms())}

    def p50_ms(self) -> machine.Interval:
        """The median of all calls, with the interval of the rounds."""

        def of(rounds: Sequence[int]) -> float:
            return machine.percentile([one for number in rounds for one in self.samples[number].calls_s], 0.5) * 1e3

        return machine.resampled(of, len(self.samples))

    def over(self, other: Line) -> machine.Interval:
        """How many times the other's time this one takes, in the same rounds."""
        return machine.resampled(lambda rounds: self.mean_s(rounds) / other.mean_s(rounds), len(self.samples))


class Work:
    """The same entries, merges and questions for everybody; the seed decides which."""

    def __init__(self, sizes: Sequence[int], seed: int) -> None:
        self.next, self._late, self._draw = sizes[-1], 0, random.Random(seed)
        self.ends = dict.fromkeys(sizes, self.next)  # the number after the last entry that each series began with

    def filling(self, size: int) -> Iterator[Batch]:
        """The newest `size` entries, oldest first, as a first import would bring them."""
        for start in range(self.ends[size] - size, self.ends[size], FILL):
            stop = min(start + FILL, self.ends[size])
            yield Batch([entry(number) for number in range(start, stop)], (instant(start), instant(stop)))

    def newest(self) -> Batch:
        """What the last hours brought, newest first: the older half is known, the other half is new."""
        start, self.next = self.next - BATCH // 2, self.next + BATCH // 2
        return Batch([entry(number) for number in range(start, self.next)][::-1], (instant(start), instant(self.next)))

    def scattered(self, size: int) -> Batch:
        """Half known, half late arrivals, anywhere in the series."""
        numbers = self._draw.sample(range(self.ends[size] - size, self.ends[size]), BATCH)
        self._late += BATCH
        return Batch([entry(number, self._late + place if place % 2 else 0) for place, number in enumerate(numbers)])

    def day(self, size: int) -> Pair:
        start = instant(self.ends[size] - self._draw.randrange(DAY // timedelta(milliseconds=STEP_MS) + 1, size))
        return start, start + DAY


class Race:
    """All contenders at all sizes, and the lines that are measured of them."""

    def __init__(self, directory: Path, sizes: Sequence[int], seed: int, stack: contextlib.ExitStack) -> None:
        self.sizes, self.work = sizes, Work(sizes, seed)
        self.held: dict[tuple[str, int], Any] = {}
        self.lines: list[Line] = []
        for size in sizes:
            for kind in (Perdure, Plain, Document, Dumped) if size < sizes[-1] else (Perdure, Plain):
                one = self.held[kind.name, size] = kind(directory, size)
                stack.callback(one.close)
                slow = issubclass(kind, Document) and size > sizes[0]
                self.lines.append(Line(NEWEST, kind.name, size, one.merge, 1 if slow else MERGES))
                if not issubclass(kind, Document):
                    self.lines.append(Line(SCATTERED, kind.name, size, one.merge, MERGES))
                if size > sizes[0] and kind is not Dumped:  # which reads as the other one does
                    self.lines.append(Line(DAY_OUT, kind.name, size, one.day, 1 if slow else DAYS))
        self.lines.append(Line(DAY_OUT, UNDECODED, sizes[-1], self.held[Plain.name, sizes[-1]].texts))

    def fill(self, say: Say) -> None:
        """The same import for everybody. A document gets it in one piece: batches would take it very long."""
        for (who, size), one in self.held.items():
            batches, spent = self.work.filling(size), 0.0
            for batch in [Batch.of(batches)] if isinstance(one, Document) else batches:
                started = time.perf_counter()
                one.merge(batch)
                spent += time.perf_counter() - started
            say(f"filled: {who}, {size:,} entries: {size / spent:,.0f} entries/s; {one.durability}")
        os.sync()

    def round(self) -> None:
        """Every line once, with the same items as its rivals, in an order that changes; their answers must be the same."""
        self.work.ends[self.sizes[0]] = self.work.next
        for one in [one for (_, size), one in self.held.items() if size == self.sizes[0]]:
            one.clear()  # it would not stay small, so it starts anew, in the same warm file
            one.merge(Batch.of(self.work.filling(self.sizes[0])))
        newest = [self.work.newest() for _ in range(MERGES)]
        items: dict[tuple[str, int], list[Any]] = {}
        for size in self.sizes:
            items[NEWEST, size], items[SCATTERED, size] = newest, [self.work.scattered(size) for _ in range(MERGES)]
            items[DAY_OUT, size] = [self.work.day(size) for _ in range(DAYS)] if size > self.sizes[0] else []
        for task in (NEWEST, SCATTERED, DAY_OUT):
            told: dict[int, dict[str, list[Any]]] = {size: {} for size in self.sizes}
            lines = [line for line in self.lines if line.task == task]
            for line in random.Random(len(lines[0].samples)).sample(lines, len(lines)):
                told[line.size][line.who] = line.run(items[task, line.size])
            for size, answers in told.items():
                compare(f"{task}, {size:,} entries", answers)
            for (who, size), one in self.held.items():
                if isinstance(one, Document) and task != DAY_OUT:
                    # What a document was spared it gets now, in one piece and not timed.
                    one.merge(Batch.of(items[task, size][len(told[size].get(who, ())) :]))

    def try_a_large_document(self, directory: Path, say: Say) -> None:
        """A few merges, and not in the rounds, which it would make last many minutes."""
        one = Dumped(directory, self.sizes[-1])
        one.merge(Batch.of(self.work.filling(self.sizes[-1])))
        calls_s = machine.in_turn(one.merge, [self.work.newest() for _ in range(3)]).calls_s
        say(f"left out of the rounds: {one.name}, {self.sizes[-1]:,} entries; a merge took {min(calls_s):.1f} s at least")

    def check(self, say: Say) -> None:
        """All hold the same at the end."""
        for size in self.sizes:
            found = {who: hashlib.sha256() for who, held_size in self.held if held_size == size}
            for who, whole in found.items():
                for row in self.held[who, size].held():
                    whole.update(repr(row).encode())
            if len({whole.digest() for whole in found.values()}) != 1:
                raise SystemExit(f"FAILED: those that began with {size:,} entries do not hold the same: {', '.join(found)}")
            say(f"checked: {', '.join(found)}: the same entries, byte for byte, in the series begun with {size:,}")


def compare(what: str, told: dict[str, list[Any]]) -> None:
    """What was merged or found is the same for all, as far as they were asked and can say."""
    ours = told.pop(Perdure.name, [])
    for number, answer in enumerate(ours):
        found = isinstance(answer, SeriesAnswer)
        if (found and (answer.coverage != "full" or answer.next_page)) or not (found or answer[0] == answer[1] == BATCH // 2):
            raise SystemExit(f"FAILED: {what}: perdure does not know what was put in")
        ours[number] = [one.body for one in answer.entries] if found else answer
    for who, theirs in told.items():
        # Plain SQLite cannot tell what was new.
        if who != UNDECODED and theirs[0] is not None and (theirs != ours[: len(theirs)] or not all(theirs)):
            raise SystemExit(f"FAILED: {what}: {who} and perdure answer different things")


def gap_lines(directory: Path, count: int, rounds: int, say: Say) -> list[Line]:
    """A ledger of windows of an hour, with an hour between them, and the loop that would do if it were a list in memory."""
    store = Perdure(directory, count, durability="normal")  # it is only read from later on
    windows = [(START + 2 * number * HOUR, START + (2 * number + 1) * HOUR) for number in range(count)]
    spans = [(us(start), us(end)) for start, end in windows]
    spent = machine.in_turn(store.merge, [Batch([], window) for window in windows]).seconds
    say(f"filled: perdure, {count:,} windows one by one: {count / spent:,.0f} windows/s, not synced")

    def loop(ends: Pair) -> list[tuple[int, int]]:
        reached, last, missing = us(ends[0]), us(ends[1]), []
        for start, end in spans:
            if start >= last:
                break
            if start > reached:
                missing.append((reached, start))
            reached = max(reached, end)
        return [*missing, (reached, last)] if reached < last else missing

    lines = []
    for task, ends in ((GAPS_ALL, (START, windows[-1][1] + HOUR)), (GAPS_DAY, (START + DAY, START + 2 * DAY))):
        ours, theirs = Line(task, Perdure.name, count, lambda ends: store.series.gaps(*ends)), Line(task, LOOP, count, loop)
        for _ in range(rounds):
            found = ours.run([ends] * GAPS)[0]
            if theirs.run([ends] * GAPS)[0] != [(gap.start_us, gap.end_us) for gap in found] or not found:
                raise SystemExit(f"FAILED: {task}: perdure and the loop find different gaps")
        lines += [ours, theirs]
    store.close()
    return lines


def comparisons(lines: Sequence[Line], sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Each figure is a ratio of times; `raw reaches` is the same with plain SQLite in perdure's place."""
    by = {(line.task, line.who, line.size): line for line in lines}
    small, middle, large = sizes
    rows = []
    for task in (NEWEST, SCATTERED):
        growth, limit = (by[task, who, large].over(by[task, who, small]) for who in (Perdure.name, Plain.name))
        rows.append(machine.compared(f"{task}: {large:,} / {small:,}", growth, aim=1.5, at_most=True, limit=limit))
        for size in sizes:
            figure = by[task, Perdure.name, size].over(by[task, Plain.name, size])
            rows.append(machine.compared(f"{task}: perdure / plain, {size:,}", figure))
    for who, size in itertools.product((Document.name, Dumped.name), (small, middle)):
        figure, limit = (by[NEWEST, who, size].over(by[NEWEST, other, size]) for other in (Perdure.name, Plain.name))
        aim = 100 if size == middle else None
        rows.append(machine.compared(f"{NEWEST}: {who} / perdure, {size:,}", figure, aim=aim, limit=limit))
    day = by[DAY_OUT, Perdure.name, large]
    for who, most in ((Plain.name, 3), (UNDECODED, None)):
        rows.append(machine.compared(f"{DAY_OUT}: perdure / {who}", day.over(by[DAY_OUT, who, large]), aim=most, at_most=True))
    figure = by[DAY_OUT, Document.name, middle].over(by[DAY_OUT, Perdure.name, middle])
    rows.append(machine.compared(f"{DAY_OUT}: {Document.name} / perdure, {middle:,}", figure))
    rows += [machine.compared(f"{ours.task}: perdure / loop", ours.over(loop)) for ours, loop in (lines[-4:-2], lines[-2:])]
    return rows


def show(rates: Sequence[dict[str, Any]], ratios: Sequence[dict[str, Any]]) -> None:
    machine.show_times(rates, TASKS, digits=2)
    machine.show_figures(ratios, limit="plain reaches")
    print(f"\n{EXPLAINED}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Time series: perdure, plain SQLite and one JSON document, side by side.")
    parser.add_argument("--rounds", type=int, help=f"how often all take their turn ({WHOLE[2]})")
    parser.add_argument("--seed", type=int, default=1, help="of what is merged and asked (1)")
    parser.add_argument("--quick", action="store_true", help="small series, a few rounds: shows that it runs, proves nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    options = parser.parse_args()
    sizes, windows, rounds = QUICK if options.quick else WHOLE
    rounds = options.rounds or rounds
    notes: list[str] = []

    def say(line: str) -> None:
        notes.append(line)
        if not options.json:
            print(line, flush=True)

    with machine.working_directory(options.dir) as directory, contextlib.ExitStack() as stack:
        for name, value in (machine.facts(directory) | {"seed": str(options.seed)}).items():
            say(f"{name}: {value}")
        race = Race(directory, sizes, options.seed, stack)
        race.fill(say)
        gc.freeze()
        started = time.monotonic()
        for _ in range(1 + rounds):
            race.round()
        for line in race.lines:
            del line.samples[0]
        say(f"{rounds} rounds, and one to warm up, in {time.monotonic() - started:.0f} s")
        race.check(say)
        lines = race.lines + gap_lines(directory, windows, rounds, say)
        race.try_a_large_document(directory, say)
    report = {"notes": notes, "times": [line.row() for line in lines], "comparisons": comparisons(lines, sizes)}
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        show(report["times"], report["comparisons"])


if __name__ == "__main__":
    main()
