"""What it costs to remember something of a new person, by how many are known: the time must not grow with them.

*unlike*: names that have little in common. *alike*: as many spellings of a few names, so that every key is shared by many.
Known entities are put there beforehand, without being compared. Each figure is the median of a few calls on SQLite, synced,
with the processor's time beside it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import perdure
from perdure.domain.knowledge.entities import Entity
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import entity_ref
from perdure.domain.knowledge.records import Record
from perdure.domain.scope import Owner
from perdure.engine.knowledge.terms import terms_of
from perdure.ports.store import Tx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

SIZES = (100, 1_000, 10_000, 100_000)
CALLS = 15
BATCH = 2_000
SYLLABLES = tuple(f"{consonant}{vowel}" for consonant in "bdfghjklmnprstvz" for vowel in "aeiou")
AT = datetime(2026, 1, 5, tzinfo=UTC)


def unlike(chance: random.Random) -> str:
    given, surname = ("".join(chance.choices(SYLLABLES, k=chance.randint(2, 4))) for _ in range(2))
    return f"{given.title()} {surname.title()}"


def alike(chance: random.Random) -> str:
    """A slip of the pen in one of a few names."""
    given, surname = chance.choice(("Katherine", "Jonathan", "Mikhail")), chance.choice(("Andersson", "Schneider"))
    place = chance.randrange(1, len(surname))
    number = f" {chance.randrange(10**6)}" if chance.random() < 0.5 else ""
    return f"{given} {surname[:place]}{chance.choice('aeiostn')}{surname[place:]}{number}"


def names(make: Callable[[random.Random], str], seed: int) -> Iterator[str]:
    chance, seen = random.Random(seed), set[str]()
    while True:
        name = make(chance)
        if name in seen:
            name = f"{name} {len(seen)}"
        seen.add(name)
        yield name


def fill(engine: perdure.Engine, user: str, labels: list[str]) -> None:
    """Entities as `remember` stores them, without the search for others like them."""
    for start in range(0, len(labels), BATCH):
        some = labels[start : start + BATCH]

        def work(tx: Tx, some: list[str] = some) -> None:
            tx.records.lock()
            for label in some:
                body = Entity(entity_ref("person", label), "person", label, AT).body()
                record = Record("entity", entity_ref("person", label), body)
                tx.records.put(record, terms_of("entity", body), by=Attribution("bench", AT, "fill"), action="add")

        engine._store.write(Owner("default", user), work, deadline_s=600)


def measured(engine: perdure.Engine, user: str, new: list[str]) -> tuple[float, float]:
    memory = engine.memory(user)
    wall, cpu = [], []
    for number, label in enumerate(new):
        began, busy = time.perf_counter(), time.process_time()
        memory.remember(f"{label} likes tea number {number}", "PEOPLE", entities=[f"person:{label}"])
        wall.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - busy) * 1000)
    return statistics.median(wall), statistics.median(cpu)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--names", choices=("unlike", "alike"), nargs="*", default=["unlike", "alike"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in args.names:
            make = unlike if kind == "unlike" else alike
            settings = perdure.Settings(url=f"sqlite:///{folder}/{kind}.db", embedder="none")
            with perdure.open(settings=settings) as engine:
                waiting, held = names(make, 7), 0
                measured(engine, "warm-up", list(islice(names(make, 8), 5)))
                for size in args.sizes:
                    fill(engine, "ana", list(islice(waiting, size - held)))
                    wall, cpu = measured(engine, "ana", list(islice(waiting, CALLS)))
                    held = size + CALLS
                    rows.append({"names": kind, "known": size, "ms": round(wall, 2), "cpu_ms": round(cpu, 2)})
                    if not args.json:
                        print(f"{kind:8} {size:>8,} known: {wall:7.2f} ms, {cpu:7.2f} ms of the processor", flush=True)
    if args.json:
        print(json.dumps({"machine": machine.facts(Path(tempfile.gettempdir())), "rows": rows}, indent=2))


if __name__ == "__main__":
    main()
