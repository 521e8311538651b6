"""P1: what returned is stored, once and in order. Writers of one store are killed at any moment, and their successors go on."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import psycopg

import perdure
from proof.accounts import Told, check_accounts
from proof.harness import Case, Promise, Round
from proof.ledgers import LedgerReader
from proof.processes import Crew, crew, kill, until
from proof.requests import Request
from proof.servers import fresh_sqlite, fresh_store
from proof.wholeness import check_heals
from proof.workers.writer import USER, WORK, Assignment, write_until_killed

WRITERS = 3
KILLS_MIN = 10
"""Of one store, before the last ones."""
AT_WORK_S = 0.02
DONE_MAX = 9
"""A writer is left alone until it was told so many times at most, by chance, that something is stored."""
OPENING_S = {"SQLite": 0.004, "PostgreSQL": 0.03}
"""Opening a store takes about so long."""
DRAIN_S = 20.0
WAITING = ("sweep",)
"""Jobs that wait for a silence that does not come here."""


@dataclass(slots=True)
class Slot:
    """One writer: the process that is it now, and all that it and its predecessors have noted."""

    number: int
    process: BaseProcess
    ledger: LedgerReader
    opened: bool = False
    opening: bool = False
    in_hand: Request | None = None
    works: bool = False
    next: int = 0
    done: int = 0


@dataclass(slots=True)
class Store:
    """A store with writers at work on it, which are killed and replaced."""

    round: Round
    chance: random.Random
    backend: str
    settings: perdure.Settings
    folder: Path
    team: Crew
    told: Told = field(default_factory=Told)
    slots: list[Slot] = field(default_factory=list)
    kills: int = 0
    started: int = 0

    def fill(self) -> None:
        self.slots = [self.start(number, 0, None) for number in range(WRITERS)]

    def start(self, number: int, first: int, again: Request | None) -> Slot:
        self.started += 1
        path = self.folder / f"ledger-{self.started}"
        seed = f"{self.chance.random()}"
        process = self.team.start(write_until_killed, Assignment(self.settings, path, number, first, seed, again))
        return Slot(number, process, LedgerReader(path), next=first)

    def follow(self, slot: Slot) -> None:
        """Take in what the writer has noted meanwhile."""
        for what, value in slot.ledger.new():
            if what == "opening":
                slot.opening = True
            elif what == "open":
                slot.opening, slot.opened = False, True
            elif what == "refused":
                self.round.wrong("refused", f"{self.backend}: {value}")
            elif value[2] == WORK:
                slot.works = what == "begin"
            elif what == "begin":
                slot.in_hand = Request(*value)
                self.told.begin(slot.in_hand)
            else:
                slot.in_hand, slot.done = None, slot.done + 1
                self.told.done(Request(*value[:3]), value[3])
            if what in ("begin", "done"):
                slot.next = max(slot.next, value[1] + 1)

    def wait_for(self, slot: Slot, *, opened: bool) -> None:
        def there() -> bool:
            self.follow(slot)
            return slot.opened if opened else slot.opening or slot.opened or not slot.process.is_alive()

        until(lambda: there() or not slot.process.is_alive(), f"a writer on {self.backend} opens the store")

    def wait_for_writes(self, slot: Slot, count: int) -> None:
        def there() -> bool:
            self.follow(slot)
            return slot.done >= count or not slot.process.is_alive()

        until(there, f"a writer on {self.backend} is told that something is stored")

    def kill(self, slot: Slot) -> None:
        """With evidence of what it was at when it died."""
        died = kill(slot.process)
        self.follow(slot)
        if not died:
            # Its ledger says why, as a refusal, unless it could not even begin.
            self.round.check(slot.opening or slot.opened, "refused", f"{self.backend}: a writer ended before it began")
            return
        self.kills += 1
        self.round.count("kills")
        self.round.count(f"kills on {self.backend}")
        if slot.opening:
            self.round.met(f"killed while it opened a store on {self.backend}")
        elif slot.in_hand is not None:
            self.round.met(f"killed with a write in hand on {self.backend}")
        elif slot.works:
            self.round.met("killed while it ran jobs")

    def replace(self, slot: Slot) -> Slot:
        """A successor, who sometimes asks again for what was in hand, and sometimes never comes back to it."""
        again = slot.in_hand if self.chance.random() < 0.7 else None
        self.slots[slot.number] = self.start(slot.number, slot.next, again)
        return self.slots[slot.number]

    def make(self) -> None:
        """The store does not exist yet, and several make it at once; some die at it."""
        self.fill()
        for _ in range(self.chance.choice([1, 2, 3])):
            slot = self.chance.choice(self.slots)
            self.wait_for(slot, opened=False)
            time.sleep(self.chance.uniform(0, 4 * OPENING_S[self.backend]))
            self.kill(slot)
            self.replace(slot)

    def strike(self) -> None:
        """One way to kill, chosen by chance."""
        way = self.chance.choices(["one", "all", "opening"], [6, 2, 2])[0]
        slot = self.chance.choice(self.slots)
        self.wait_for(slot, opened=True)
        self.wait_for_writes(slot, self.chance.randint(0, DONE_MAX))
        time.sleep(self.chance.uniform(0, AT_WORK_S))
        for one in self.slots if way == "all" else [slot]:
            self.kill(one)
        for one in [*self.slots] if way == "all" else [slot]:
            slot = self.replace(one)
        if way == "opening":
            self.wait_for(slot, opened=False)
            time.sleep(self.chance.uniform(0, OPENING_S[self.backend]))
            self.kill(slot)
            self.replace(slot)


def run(round: Round) -> None:
    with crew() as team:
        for case in round.cases(quick=4, full=80, name="stores"):
            backend = ("SQLite", "PostgreSQL")[case.number % 2]
            folder = round.folder / f"store-{case.number}"
            folder.mkdir()
            with _settings(round, backend, folder) as settings:
                _life(Store(round, case.chance, backend, settings, folder, team), case)


@contextmanager
def _settings(round: Round, backend: str, folder: Path) -> Iterator[perdure.Settings]:
    if backend == "SQLite":
        yield perdure.Settings(url=fresh_sqlite(folder))
        return
    assert round.postgres is not None
    with fresh_store(round.postgres()) as settings:
        yield settings


def _life(store: Store, case: Case) -> None:
    """One store, from its making to its end."""
    round = store.round
    store.make()
    while store.kills < KILLS_MIN and not round.counts["wrong: refused"]:
        store.strike()
    for slot in store.slots:
        store.kill(slot)
    when = f"store {case.number} on {store.backend}, after {store.kills} kills"
    if store.backend == "PostgreSQL":
        _wait_for_the_server(store.settings)
    with round.guarded("does not open"):
        with perdure.open(settings=store.settings) as engine:
            memory = engine.memory(USER)
            check_accounts(round, memory, store.told, when=when)
            round.count("writes", len(store.told.answers))
            _check_jobs(round, engine, when)
            check_heals(round, engine, when=when)


def _wait_for_the_server(settings: perdure.Settings) -> None:
    """A server goes on for a moment with what a dead client sent last."""
    with psycopg.connect(settings.url, autocommit=True) as connection:

        def alone() -> bool:
            found = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'perdure'").fetchone()
            return found == (0,)

        until(alone, "the server notices that its clients are gone")


def _check_jobs(round: Round, engine: perdure.Engine, when: str) -> None:
    """The job of each message came with it, and every job is done although its last holder died."""
    memory = engine.memory(USER)
    deadline = time.monotonic() + DRAIN_S
    while left := [job for job in memory.jobs() if job.state != "done" and job.kind not in WAITING]:
        if time.monotonic() > deadline:
            round.wrong("lost", f"{when}: a job is never done: {left[0]!r:.500}")
            return
        round.check(engine.process(1).failed == 0, "does not heal", f"{when}: a job fails")
        time.sleep(0.01)
    latest = memory.messages(1)
    if latest and memory.tally().up_to_seq != latest[-1].seq:
        round.wrong("lost", f"{when}: the job of the last messages is not there: {memory.tally()}, {latest[-1].seq} messages")


PROMISE = Promise(
    id="P1",
    says="what returned is stored, once and in order",
    tried_by="kill -9 at random of 3 writers at once, on SQLite and as clients of PostgreSQL; every acknowledged write looked up",
    run=run,
    evidence=(
        "killed with a write in hand on SQLite",
        "killed with a write in hand on PostgreSQL",
        "killed while it opened a store on SQLite",
        "killed while it opened a store on PostgreSQL",
        "killed while it ran jobs",
    ),
    figure="{wrong} lost, doubled, torn or out of order of {writes} acknowledged writes over {kills} kills",
    needs_postgres=True,
)
