"""P1: what returned is stored, once and in order. Writers of one store are killed at any moment, and their successors go on."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import perdure
from proof.accounts import Told, check_accounts
from proof.harness import Case, Promise, Round
from proof.ledgers import LedgerReader
from proof.processes import Crew, crew, kill, until
from proof.requests import Request
from proof.stores import BACKENDS, Backend, new_store, wait_for_the_server
from proof.wholeness import check_heals
from proof.workers.writer import USER, WORK, Assignment, Lane, write_until_killed

PROCESSES = ((0,), (1,), (2, 3, 4))
"""The writers in each process: one, or several threads, whose writes may be committed together."""
AGAIN_SHARE = 0.7
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
class Writer:
    """All that one writer has noted, whichever process it is in now."""

    number: int
    ledger: LedgerReader
    next: int = 0
    in_hand: Request | None = None
    works: bool = False
    done: int = 0


@dataclass(slots=True)
class Slot:
    """A process with its writers."""

    number: int
    process: BaseProcess
    writers: list[Writer]
    opening: bool = False
    opened: bool = False

    @property
    def done(self) -> int:
        return sum(writer.done for writer in self.writers)


@dataclass(slots=True)
class Store:
    """A store with writers at work on it, which are killed and replaced."""

    round: Round
    chance: random.Random
    backend: Backend
    settings: perdure.Settings
    folder: Path
    team: Crew
    told: Told = field(default_factory=Told)
    slots: list[Slot] = field(default_factory=list)
    kills: int = 0
    started: int = 0

    def start(self, number: int, before: list[Writer]) -> Slot:
        """A process in that place. Its writers sometimes ask again for what those before them had in hand, and sometimes
        never come back to it."""
        self.started += 1
        lanes = []
        for one in before:
            again = one.in_hand if self.chance.random() < AGAIN_SHARE else None
            lanes.append(Lane(one.number, self.folder / f"ledger-{self.started}-{one.number}", one.next, again))
        process = self.team.start(write_until_killed, Assignment(self.settings, tuple(lanes), f"{self.chance.random()}"))
        return Slot(number, process, [Writer(lane.writer, LedgerReader(lane.ledger), lane.first) for lane in lanes])

    def follow(self, slot: Slot) -> None:
        """Take in what its writers have noted meanwhile."""
        for writer in slot.writers:
            for what, value in writer.ledger.new():
                if what in ("opening", "open"):
                    slot.opening, slot.opened = what == "opening", what == "open"
                elif what == "refused":
                    self.round.wrong("refused", f"{self.backend}: {value}")
                else:
                    self._take_in(writer, what, value)

    def _take_in(self, writer: Writer, what: str, value: list[Any]) -> None:
        writer.next = max(writer.next, value[1] + 1)
        if value[2] == WORK:
            writer.works = what == "begin"
        elif what == "begin":
            writer.in_hand = Request(*value)
            self.told.begin(writer.in_hand)
        else:
            writer.in_hand, writer.done = None, writer.done + 1
            self.told.done(Request(*value[:3]), value[3])

    def wait_for(self, slot: Slot, *, opened: bool = False, writes: int = 0) -> None:
        """Until it opens the store, has opened it, or was told so often that something is stored; or has ended."""

        def there() -> bool:
            self.follow(slot)
            far = slot.opened if opened or writes else slot.opening or slot.opened
            return (far and slot.done >= writes) or not slot.process.is_alive()

        until(there, f"a writer on {self.backend} is at work")

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
        in_hand = sum(writer.in_hand is not None for writer in slot.writers)
        if slot.opening:
            self.round.met(f"killed while it opened a store on {self.backend}")
        elif in_hand:
            self.round.met(f"killed with a write in hand on {self.backend}")
        if in_hand > 1:
            self.round.met("killed with writes of several threads in hand")
        if any(writer.works for writer in slot.writers):
            self.round.met("killed while it ran jobs")

    def replace(self, slot: Slot) -> Slot:
        self.slots[slot.number] = self.start(slot.number, slot.writers)
        return self.slots[slot.number]

    def make(self) -> None:
        """The store does not exist yet, and several make it at once; some die at it."""
        for number, writers in enumerate(PROCESSES):
            self.slots.append(self.start(number, [Writer(one, LedgerReader(Path())) for one in writers]))
        for _ in range(self.chance.choice([1, 2, 3])):
            slot = self.chance.choice(self.slots)
            self.wait_for(slot)
            time.sleep(self.chance.uniform(0, 4 * OPENING_S[self.backend]))
            self.kill(slot)
            self.replace(slot)

    def strike(self) -> None:
        """One way to kill, chosen by chance."""
        way = self.chance.choices(["one", "all", "opening"], [6, 2, 2])[0]
        slot = self.chance.choices(self.slots, [len(slot.writers) for slot in self.slots])[0]
        self.wait_for(slot, opened=True, writes=self.chance.randint(0, DONE_MAX))
        time.sleep(self.chance.uniform(0, AT_WORK_S))
        for one in self.slots if way == "all" else [slot]:
            self.kill(one)
        for one in [*self.slots] if way == "all" else [slot]:
            slot = self.replace(one)
        if way == "opening":
            self.wait_for(slot)
            time.sleep(self.chance.uniform(0, OPENING_S[self.backend]))
            self.kill(slot)
            self.replace(slot)


def run(round: Round) -> None:
    with crew() as team:
        for case in round.cases(quick=4, full=80, name="stores"):
            backend = BACKENDS[case.number % 2]
            folder = round.folder / f"store-{case.number}"
            folder.mkdir()
            with new_store(round, backend, folder) as settings:
                _life(Store(round, case.chance, backend, settings, folder, team), case)


def _life(store: Store, case: Case) -> None:
    """One store, from its making to its end."""
    round = store.round
    store.make()
    while store.kills < KILLS_MIN and not round.counts["wrong: refused"]:
        store.strike()
    for slot in store.slots:
        store.kill(slot)
    when = f"store {case.number} on {store.backend}, after {store.kills} kills"
    wait_for_the_server(store.backend, store.settings)
    with round.guarded("does not open"):
        with perdure.open(settings=store.settings) as engine:
            memory = engine.memory(USER)
            check_accounts(round, memory, store.told, when=when)
            round.count("writes", len(store.told.answers))
            _check_jobs(round, engine, when)
            check_heals(round, engine, when=when)


def _check_jobs(round: Round, engine: perdure.Engine, when: str) -> None:
    """The job of each message came with it, and every job is done although its last holder died."""
    memory = engine.memory(USER)
    deadline = time.monotonic() + DRAIN_S
    while left := [job for job in memory.admin.jobs() if job.state != "done" and job.kind not in WAITING]:
        if time.monotonic() > deadline:
            round.wrong("lost", f"{when}: a job is never done: {left[0]!r:.500}")
            return
        round.check(engine.process(1).failed == 0, "does not heal", f"{when}: a job fails")
        time.sleep(0.01)
    latest = memory.messages(1)
    if latest and memory.conversation.tally().up_to_seq != latest[-1].seq:
        round.wrong(
            "lost",
            f"{when}: the job of the last messages is not there: {memory.conversation.tally()}, {latest[-1].seq} messages",
        )


PROMISE = Promise(
    id="P1",
    says="what returned is stored, once and in order",
    tried_by="kill -9 at random of 3 processes with 5 writers at once, on SQLite and as clients of PostgreSQL; every acknowledged write looked up",
    run=run,
    evidence=(
        "killed with a write in hand on SQLite",
        "killed with a write in hand on PostgreSQL",
        "killed while it opened a store on SQLite",
        "killed while it opened a store on PostgreSQL",
        "killed with writes of several threads in hand",
        "killed while it ran jobs",
    ),
    figure="{wrong} lost, doubled, torn or out of order of {writes} acknowledged writes over {kills} kills",
)
