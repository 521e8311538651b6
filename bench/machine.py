"""What every benchmark needs: facts about the machine, calls timed one by one, and intervals over rounds."""

from __future__ import annotations

import contextlib
import os
import platform
import random
import sqlite3
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import apsw

T = TypeVar("T")
VOLATILE = ("tmpfs", "ramfs", "devtmpfs")
SYNCS = 200
PAGE = b"\0" * 4096
RESAMPLES = 2_000
BUSY = 1.15
"""A loop that only computes takes so much longer by the clock than by the processor: somebody else is at work."""
VOCABULARY = (
    "the a my your we they it this that and but because so when after before with without about into over could should "
    "would might did does was were will train flight dinner meeting doctor budget report garden guitar sister cousin "
    "Lisbon Seattle Tuesday March morning tonight remember book cancel prefer forget change explain compare summarise "
    "allergic vegetarian cheaper earlier quieter 12 45 2019 please thanks maybe actually again together somewhere"
)


@dataclass(frozen=True)
class Sample:
    """One round: the wall time of the whole, and of each call as its caller saw it."""

    seconds: float
    calls_s: list[float]


@dataclass(frozen=True)
class Interval:
    """A figure over all rounds, and where it lies in 95 % of the resamplings of the rounds."""

    value: float
    low: float
    high: float


def facts(directory: Path) -> dict[str, str]:
    """Machine, versions, and the file system and sync time of `directory`, in words."""
    sync_s = sync_times_s(directory)
    return {
        "cpu": cpu_model(),
        "cores": str(os.cpu_count()),
        "load before": f"{os.getloadavg()[0]:.2f}" if hasattr(os, "getloadavg") else "unknown",
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": f"{apsw.sqlite_lib_version()} (apsw: raw, perdure), {sqlite3.sqlite_version} (sqlite3 module: the peers)",
        "file system": file_system(directory),
        "4 KiB append + fsync": f"p50 {statistics.median(sync_s) * 1e6:.0f} µs, p95 {percentile(sync_s, 0.95) * 1e6:.0f} µs",
    }


def busyness() -> float:
    """How much longer a loop takes by the clock than by the processor; the median of a few."""
    found = []
    for _ in range(7):
        clock, processor = time.perf_counter(), time.process_time()
        sum(range(1_500_000))
        found.append((time.perf_counter() - clock) / (time.process_time() - processor))
    return sorted(found)[3]


def commit() -> str:
    """Which version of the repository this is; `unknown` outside of one."""
    words = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def file_system(directory: Path) -> str:
    """Type of the file system that holds `directory`; `unknown` where the system does not say."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    except OSError:
        return "unknown"
    place = directory.resolve()
    holding = [(len(fields[1]), fields[2]) for fields in mounts if place.is_relative_to(fields[1].replace("\\040", " "))]
    # Of two mounts on one place, the later one is seen.
    return max(reversed(holding), key=lambda one: one[0], default=(0, "unknown"))[1]


def sync_times_s(directory: Path, count: int = SYNCS) -> list[float]:
    """How long `fsync` took after each of `count` appends of a page: what a durable commit costs at least."""
    taken = []
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        for _ in range(count):
            file.write(PAGE)
            started = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - started)
    return taken


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of all values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def durability(connection: Any) -> str:
    """What a SQLite connection, of whichever driver, promises."""
    [(journal,)] = connection.execute("PRAGMA journal_mode").fetchall()
    [(level,)] = connection.execute("PRAGMA synchronous").fetchall()
    return f"journal_mode={journal.upper()} synchronous={('OFF', 'NORMAL', 'FULL', 'EXTRA')[level]}"


def batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def in_turn(call: Callable[[T], object], items: Sequence[T]) -> Sample:
    """Call with each item, one after the other."""
    calls_s = []
    first = started = time.perf_counter()
    for item in items:
        call(item)
        ended = time.perf_counter()
        calls_s.append(ended - started)
        started = ended
    return Sample(started - first, calls_s)


async def in_turn_async(call: Callable[[T], Awaitable[object]], items: Sequence[T]) -> Sample:
    """Await the call with each item, one after the other."""
    calls_s = []
    first = started = time.perf_counter()
    for item in items:
        await call(item)
        ended = time.perf_counter()
        calls_s.append(ended - started)
        started = ended
    return Sample(started - first, calls_s)


def at_once(calls: Sequence[Callable[[T], object]], items: Sequence[T]) -> Sample:
    """One thread per call, the items dealt out among them; from the first one's start to the last one's end."""
    samples: list[tuple[float, Sample]] = []
    errors: list[BaseException] = []
    ready = threading.Barrier(len(calls))

    def work(number: int) -> None:
        try:
            ready.wait()
            started = time.perf_counter()
            samples.append((started, in_turn(calls[number], items[number :: len(calls)])))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    began = min(started for started, _ in samples)
    ended = max(started + sample.seconds for started, sample in samples)
    return Sample(ended - began, [call_s for _, sample in samples for call_s in sample.calls_s])


def resampled(figure: Callable[[Sequence[int]], float], rounds: int) -> Interval:
    """`figure` of all rounds, given by their numbers, and its spread when rounds are drawn with replacement."""
    draw = random.Random(0)
    figures = sorted(figure(draw.choices(range(rounds), k=rounds)) for _ in range(RESAMPLES))
    return Interval(figure(range(rounds)), percentile(figures, 0.025), percentile(figures, 0.975))


def compared(
    what: str, figure: Interval, *, aim: float | None = None, at_most: bool = False, limit: Interval | None = None
) -> dict[str, Any]:
    """A row of the second table that `show` prints. Only an interval that lies on one side of the aim is an answer."""
    verdict = ""
    if aim is not None:
        good, bad = (figure.high <= aim, figure.low > aim) if at_most else (figure.low >= aim, figure.high < aim)
        verdict = "met" if good else "MISSED" if bad else "unclear"
    raw = None if limit is None else asdict(limit)
    return {"what": what, "figure": asdict(figure), "aim": aim, "at_most": at_most, "verdict": verdict, "raw": raw}


def show(rates: Sequence[dict[str, Any]], comparisons: Sequence[dict[str, Any]]) -> None:
    """Both tables, for people."""
    print(f"\n{'':32}{'per call':>9}{'p50 µs':>9}{'p95 µs':>9}{'messages/s':>12}   95 % interval")
    for row in rates:
        rate, calls = row["messages_per_s"], f"{row['messages_per_call']:9.0f}{row['p50_us']:9.0f}{row['p95_us']:9.0f}"
        print(f"{row['line']:32}{calls}{rate['value']:12,.0f}   {rate['low']:,.0f} to {rate['high']:,.0f}")
    print(f"\n{'':46}{'figure':>9}   {'95 % interval':18}{'raw reaches':>12}{'aim':>10}")
    for row in comparisons:
        figure, digits = row["figure"], 0 if row["figure"]["value"] >= 1000 else 2
        spread = f"{figure['low']:,.{digits}f} to {figure['high']:,.{digits}f}"
        raw = "" if row["raw"] is None else f"{row['raw']['value']:,.{digits}f}"
        aim = "" if row["aim"] is None else f"{'≤' if row['at_most'] else '≥'} {row['aim']:,}"
        print(f"{row['what']:46}{figure['value']:9,.{digits}f}   {spread:18}{raw:>12}{aim:>10}  {row['verdict']}".rstrip())


def chat_texts(count: int, seed: int) -> list[str]:
    """Sentences of 80 to 200 characters."""
    draw, words = random.Random(seed), VOCABULARY.split()
    texts = []
    for _ in range(count):
        size = draw.randint(82, 200)
        line = " ".join(draw.choices(words, k=size // 3))
        texts.append(line[: size - 1].strip().capitalize() + draw.choice(".?!"))
    return texts


@contextlib.contextmanager
def working_directory(wanted: Path | None) -> Iterator[Path]:
    """A new directory on a real disk, removed afterwards: in `wanted`, else beside the current one."""
    beside = Path.cwd().parent
    parent = wanted or (beside if os.access(beside, os.W_OK) else Path.cwd())
    if (kind := file_system(parent)) in VOLATILE:
        raise SystemExit(f"{parent} is on {kind}, where a sync costs nothing; name a directory on a disk with --dir")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-", dir=parent) as name:
        yield Path(name)


def show_times(times: Sequence[dict[str, Any]], tasks: Sequence[str], *, digits: int) -> None:
    """Print how long each task took, by task and size."""
    print(f"\n{'':22}{'size':>10}  {'':20}{'calls':>6}{'p50 ms':>10}{'p95 ms':>10}{'mean ms':>10}   95 % interval")
    for row in sorted(times, key=lambda row: (tasks.index(row["task"]), row["size"])):
        mean, what = row["mean_ms"], f"{row['task']:22}{row['size']:10,}  {row['who']:20}{row['calls']:6}"
        middle = f"{row['p50_ms']:10,.{digits}f}{row['p95_ms']:10,.{digits}f}{mean['value']:10,.{digits}f}"
        print(f"{what}{middle}   {mean['low']:,.{digits}f} to {mean['high']:,.{digits}f}")


def show_figures(figures: Sequence[dict[str, Any]], *, limit: str) -> None:
    """Print what was compared, beside what the limit reaches and what was aimed at."""
    print(f"\n{'':54}{'figure':>9}   {'95 % interval':20}{limit:>14}{'aim':>8}")
    for row in figures:
        figure, raw = row["figure"], "" if row["raw"] is None else f"{row['raw']['value']:,.2f}"
        aim = "" if row["aim"] is None else f"{'≤' if row['at_most'] else '≥'} {row['aim']}"
        spread = f"{figure['low']:,.2f} to {figure['high']:,.2f}"
        print(f"{row['what']:54}{figure['value']:9,.2f}   {spread:20}{raw:>14}{aim:>8}  {row['verdict']}".rstrip())
