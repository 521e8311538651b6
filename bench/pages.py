"""How much work a page is at 10,000 memories: the processor's time and the statements that one answer takes.

Pages are asked in this process, without a network, once the server has started and loaded what it loads beside the first
requests. The first answer of each is told apart: it fills caches.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

import perdure
from perdure.adapters.sqlite.store import SqliteStatements
from perdure.interfaces.server import Options, build
from perdure.interfaces.serving.runner import frozen_heap
from perdure.types import NewStatement

USER = "ana"
LIMIT_MS = 100.0
JOBS_S = 300
BATCH = 500
FIRST = (
    "Ana",
    "Bob",
    "Cleo",
    "Dan",
    "Eva",
    "Finn",
    "Gia",
    "Hugo",
    "Ines",
    "Joao",
    "Kira",
    "Leo",
    "Mia",
    "Nuno",
    "Olga",
    "Paul",
)
LAST = ("Silva", "Costa", "Moreau", "Nagy", "Okoro", "Petrov", "Quist", "Rossi", "Sato", "Tran", "Urban", "Vos")
THINGS = ("tea", "jazz", "chess", "rowing", "maps", "bread", "trains", "kites", "ferns", "clocks")
KINDS = ("fact", "preference", "relationship", "friction", "habit")
PAGES = {
    "home": "",
    "memories": "/memories",
    "memories, list": "/memories?view=list",
    "memories, one person": "/memories?entity=person:ana_silva",
    "memories, one kind": "/memories?kind=habit",
    "memories, search": "/memories?q=jazz",
    "timeline": "/timeline",
    "graph": "/entities/graph",
    "entities": "/entities",
    "entity": "/entities/person:ana_silva",
    "search": "/search?q=who+likes+jazz",
    "todos": "/todos",
    "lessons": "/lessons",
    "conversations": "/conversations",
    "series": "/series",
    "state": "/state",
    "journal": "/journal",
    "jobs": "/jobs",
    "data": "/data",
    "status": "/status",
}


def fill(memory: perdure.Memory, count: int) -> None:
    """Statements until there are so many memories: a third about people, the rest notes of the user's own."""
    chance = random.Random(7)
    people = [f"{first} {last}" for first in FIRST for last in LAST]
    made = start = 0
    while made < count:
        some = []
        for number in range(start, start + BATCH):
            kind, thing, person = chance.choice(KINDS), chance.choice(THINGS), chance.choice(people)
            if number % 3:
                some.append(NewStatement(f"Keeps note {number} on {thing}", fact_type=kind))  # type: ignore[arg-type]
            else:
                about = [f"person:{person}", f"project:Project {number % 37}"][: 1 + number % 2]
                text = f"{person} told story {number} of {thing}"
                some.append(NewStatement(text, "PEOPLE", fact_type=kind, entities=about))  # type: ignore[arg-type]
        memory.remember_many(some)
        start += BATCH
        made = sum(one.count for one in memory.memories.groups())


@contextmanager
def counted() -> Iterator[list[str]]:
    """The names of the statements that are run meanwhile."""
    names: list[str] = []
    plain = SqliteStatements.all

    def noted(self: SqliteStatements, name: str, /, **values: object) -> list[tuple[object, ...]]:
        names.append(name)
        return plain(self, name, **values)

    SqliteStatements.all = noted  # type: ignore[method-assign, assignment]
    try:
        yield names
    finally:
        SqliteStatements.all = plain  # type: ignore[method-assign]


def measured(client: TestClient, path: str, rounds: int) -> tuple[float, float, int]:
    """Milliseconds of the processor for the first answer and for later ones (the median), and the statements of one."""
    times = []
    for _ in range(rounds + 1):
        start = time.process_time()
        answer = client.get(f"/u/{USER}{path}")
        times.append((time.process_time() - start) * 1_000)
        answer.raise_for_status()
    with counted() as names:
        client.get(f"/u/{USER}{path}").raise_for_status()
    return times[0], statistics.median(times[1:]), len(names)


def wait_until_loaded(app: FastAPI, client: TestClient) -> None:
    """Until the server has done what it does beside its first requests."""

    async def loaded() -> None:
        await app.state.preparing

    assert client.portal is not None
    client.portal.call(loaded)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder)}/pages.db"
        with perdure.open(url) as engine:
            fill(engine.memory(USER), chosen.memories)
            engine.process(JOBS_S)
        # Opened anew: what the writer has in memory, a server that starts has not.
        with perdure.open(url) as engine:
            slow = report(engine, chosen.rounds)
    print(f"over the limit: {'; '.join(slow)}" if slow else "every page is within the limit")
    return 1 if slow else 0


def report(engine: perdure.Engine, rounds: int) -> list[str]:
    """Print a line for each page; those over the limit."""
    slow = []
    app = build(engine, Options(no_auth=True))
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client, frozen_heap():
        wait_until_loaded(app, client)
        held = sum(one.count for one in engine.memory(USER).memories.groups())
        print(f"{held:,} memories; processor time in ms, median of {rounds}; limit {LIMIT_MS:.0f} ms")
        print(f"{'page':24} {'first':>8} {'later':>8} {'statements':>11}")
        for name, path in PAGES.items():
            first, later, statements = measured(client, path, rounds)
            print(f"{name:24} {first:8.0f} {later:8.0f} {statements:11}")
            if max(first, later) > LIMIT_MS:
                slow.append(name)
    return slow


if __name__ == "__main__":
    sys.exit(main())
