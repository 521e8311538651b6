"""How fast memories are kept, and what they take on the disk: `remember`, `remember_many`, and the first read after appends.

Every call is synced (WAL, synchronous=FULL). The rounds of each row follow one another on one store; intervals are bootstrapped
over the rounds. Raw SQLite is beside it where the disk decides.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import machine
import perdure
from machine import Interval, Sample, in_turn
from perdure.types import NewStatement

CALLS, BATCH = 100, 500
UNREAD = 500
PROCESSES, SECONDS = 4, 2.0
NOUNS = ("knee", "sister", "garden", "coffee", "violin", "train", "river", "window", "market", "bicycle", "doctor", "summer")


class Sizes(NamedTuple):
    memories: int
    """On the disk."""
    rounds: int


WHOLE, QUICK = Sizes(10_000, 10), Sizes(1_000, 3)


def sentence(draw: random.Random, number: int) -> str:
    """A sentence that has to be read, about nothing else that is known."""
    one, two, three = draw.sample(NOUNS, 3)
    return f"The {one} near the {two} needs {three} number {number} before the {draw.choice(NOUNS)} opens"


def settled(draw: random.Random, number: int) -> NewStatement:
    """A statement whose kind and attribute are given."""
    content = f"Prefers the {draw.choice(NOUNS)} of shelf {number}"
    value = f"{draw.choice(NOUNS)} {number}"
    return NewStatement(content, "PROFILE", fact_type="preference", attribute=f"shelf_{number}", value=value, importance=1)


def remember(memory: perdure.Memory, said: NewStatement) -> object:
    return memory.remember(
        said.content,
        said.type,
        fact_type=said.fact_type,
        attribute=said.attribute,
        value=said.value,
        importance=said.importance,
    )


def opened(path: Path) -> perdure.Engine:
    return perdure.open(settings=perdure.Settings(url=f"sqlite:///{path}"))


def p50_ms(samples: Sequence[Sample]) -> Interval:
    return machine.resampled(
        lambda rounds: 1e3 * machine.percentile([one for number in rounds for one in samples[number].calls_s], 0.5),
        len(samples),
    )


def rate(samples: Sequence[Sample], per_call: int) -> Interval:
    return machine.resampled(
        lambda rounds: (
            sum(per_call * len(samples[number].calls_s) for number in rounds)
            / sum(samples[number].seconds for number in rounds)
        ),
        len(samples),
    )


def speeds(directory: Path, draw: random.Random, sizes: Sizes) -> list[dict[str, Any]]:
    with opened(directory / "speed.db") as engine:
        read, given, many, few = (engine.memory(user=user, agent="bench") for user in ("read", "given", "many", "few"))
        numbers = iter(range(10_000_000))

        def rounds(call: Callable[[Any], object], make: Callable[[], Any], calls: int) -> list[Sample]:
            in_turn(call, [make() for _ in range(3)])
            return [in_turn(call, [make() for _ in range(calls)]) for _ in range(sizes.rounds)]

        sentences = rounds(lambda text: read.remember(text), lambda: sentence(draw, next(numbers)), CALLS)
        settings = rounds(lambda said: remember(given, said), lambda: settled(draw, next(numbers)), CALLS)
        batches = rounds(many.remember_many, lambda: [settled(draw, next(numbers)) for _ in range(BATCH)], 2)
        texts = rounds(few.remember_many, lambda: [NewStatement(sentence(draw, next(numbers))) for _ in range(BATCH)], 1)
    return [
        machine.compared("remember, a sentence to be read: p50 ms", p50_ms(sentences), aim=2, at_most=True),
        machine.compared("remember, kind and attribute given: p50 ms", p50_ms(settings), aim=0.5, at_most=True),
        machine.compared("remember_many of 500, kind and attribute given: /s", rate(batches, BATCH), aim=10_000),
        machine.compared("remember_many of 500 sentences to be read: /s", rate(texts, BATCH)),
    ]


def first_reads(directory: Path, sizes: Sizes) -> dict[str, Any]:
    """The first recall after appends that nobody has read, each round of a batch more."""
    texts = machine.chat_texts(UNREAD * (sizes.rounds + 1), 1)
    samples = []
    with opened(directory / "unread.db") as engine:
        memory = engine.memory(user="ana", agent="bench")
        for start in range(0, len(texts), UNREAD):
            memory.append_many([perdure.NewMessage("user", text) for text in texts[start : start + UNREAD]])
            sample = in_turn(memory.recall, ["Which lantern was it?"])
            if start:
                samples.append(sample)
            engine.process(60)
    return machine.compared(f"the first recall after {UNREAD} appends: p50 ms", p50_ms(samples), aim=50, at_most=True)


def disk(directory: Path, draw: random.Random, count: int) -> list[dict[str, Any]]:
    """What memories take: as they were written, and with the index that a worker makes of them."""
    path = directory / "disk.db"
    sizes = []
    with opened(path) as engine:
        memory = engine.memory(user="ana", agent="bench")
        for start in range(0, count, BATCH):
            memory.remember_many([NewStatement(sentence(draw, start + place)) for place in range(BATCH)])
        sizes.append(_megabytes(path))
        engine.process(600)
        sizes.append(_megabytes(path))
    whole = [Interval(size, size, size) for size in sizes]
    return [
        machine.compared(f"{count:,} memories on the disk: MB", whole[0], aim=20, at_most=True),
        machine.compared("the same with vectors and packs: MB", whole[1]),
        *(machine.compared(f"  of that {name}: MB", Interval(size, size, size)) for name, size in _parts(path)),
    ]


def _megabytes(path: Path) -> float:
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    return path.stat().st_size / 1e6


def _parts(path: Path) -> list[tuple[str, float]]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    found = connection.execute(
        "SELECT name, sum(pgsize) AS size FROM dbstat GROUP BY name ORDER BY size DESC LIMIT 9"
    ).fetchall()
    connection.close()
    return [(str(name), size / 1e6) for name, size in found]


def processes(directory: Path, sizes: Sizes) -> list[dict[str, Any]]:
    """Several processes that append to one file, each for another user, together and by itself."""
    command = [sys.executable, __file__, "--append-to"]

    def together(count: int, turn: int) -> tuple[float, float]:
        path = directory / f"processes-{count}-{turn}.db"
        opened(path).close()
        workers = [
            subprocess.Popen([*command, f"{path}#{number}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for number in range(count)
        ]
        answers = []
        for worker in workers:
            assert worker.stdout is not None
            worker.stdout.readline()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:
            answers.append(json.loads(worker.communicate()[0]))
        return sum(one["appends"] for one in answers) / SECONDS, max(one["p99_ms"] for one in answers)

    alone, shared = ([together(count, turn) for turn in range(-(-sizes.rounds // 2))] for count in (1, PROCESSES))

    def mean(found: Sequence[tuple[float, float]], place: int) -> Interval:
        return machine.resampled(lambda rounds: sum(found[one][place] for one in rounds) / len(rounds), len(found))

    return [
        machine.compared(f"appends of {PROCESSES} processes on one file: /s", mean(shared, 0), aim=2_500, limit=mean(alone, 0)),
        machine.compared("  the slowest one's p99: ms", mean(shared, 1)),
    ]


def append_for_a_while(place: str) -> None:
    """A process of `processes`: it says that it is ready, waits for a line, appends, and says how many that were."""
    path, _, number = place.rpartition("#")
    with opened(Path(path)) as engine:
        memory = engine.memory(user=f"user-{number}", agent="bench")
        memory.append("user", "ready")
        print("ready", flush=True)
        sys.stdin.readline()
        until, calls_s = time.monotonic() + SECONDS, []
        while time.monotonic() < until:
            started = time.perf_counter()
            memory.append("user", f"message {len(calls_s)} of the day, which says little more")
            calls_s.append(time.perf_counter() - started)
    print(json.dumps({"appends": len(calls_s), "p99_ms": 1e3 * machine.percentile(calls_s, 0.99)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Remembering: speed, disk, the first read after appends, several processes.")
    parser.add_argument("--quick", action="store_true", help="few memories and rounds: shows that it runs, proves nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    parser.add_argument("--append-to", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.append_to:
        append_for_a_while(options.append_to)
        return
    draw, sizes = random.Random(1), QUICK if options.quick else WHOLE
    with machine.working_directory(options.dir) as directory:
        facts = machine.facts(directory)
        figures = [*speeds(directory, draw, sizes), first_reads(directory, sizes)]
        figures += [*disk(directory, draw, sizes.memories), *processes(directory, sizes)]
    if options.json:
        print(json.dumps({"notes": facts, "figures": figures}, indent=2, ensure_ascii=False))
        return
    for name, value in facts.items():
        print(f"{name}: {value}")
    machine.show_figures(figures, limit="one process")


if __name__ == "__main__":
    main()
