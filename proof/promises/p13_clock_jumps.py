"""P13: order and expiry do not depend on the clock.

The machine's clock is set to 1970, to 2038, days and seconds ahead or back, stands still, repeats a leap second, while messages,
jobs, turns, state, series, todos and context documents are written and read; then it is put right, and all must be as it should.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import perdure
from perdure.adapters import clock as system
from perdure.documents import ContextCompactor, ContextManager, HistoryEntry
from perdure.settings import Settings
from proof.harness import Case, Promise, Round
from proof.lived import Quoting
from proof.servers import fresh_sqlite, fresh_store
from proof.wholeness import check_whole

RIGHT = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
"""Half an hour before the clocks of Berlin skip an hour."""
JUMPS = 10
LEARNED = "Think of"
"""How todos begin that jobs make of messages."""
ZONE = "Europe/Berlin"
DOCUMENT = "ana:coach:1"
WINDOW = ("2025-11-01T00:00:00Z", "2025-11-02T00:00:00Z")
NEVER_FETCHED = ("2025-12-01T00:00:00Z", "2025-12-02T00:00:00Z")


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS = (
    "1970",
    "2038",
    "days ahead",
    "days back",
    "seconds back",
    "an hour, as in spring",
    "a leap second",
    "standing still",
    "put right",
)


class Wall:
    """What the machine believes the time to be. It stands still unless it is moved."""

    def __init__(self) -> None:
        self.now = RIGHT

    def jump(self, chance: random.Random, kind: str | None = None) -> str:
        """To where a clock may jump; what kind of jump that was."""
        kind = chance.choice(KINDS) if kind is None else kind
        places = {
            "1970": EPOCH,
            "2038": datetime(2038, 1, 19, 3, 14, 7, tzinfo=UTC) + timedelta(seconds=chance.randrange(3)),
            "days ahead": self.now + timedelta(days=chance.randrange(1, 400)),
            "days back": max(EPOCH, self.now - timedelta(days=chance.randrange(1, 400) if self.now.year > 1972 else 0)),
            "seconds back": max(EPOCH, self.now - timedelta(seconds=chance.uniform(0.001, 90) if self.now > EPOCH else 0)),
            "an hour, as in spring": RIGHT + timedelta(hours=1),
            "a leap second": self.now.replace(microsecond=0),
            "standing still": self.now,
            "put right": RIGHT,
        }
        self.now = places[kind]
        return kind

    def go(self, **by: float) -> None:
        self.now += timedelta(**by)


@contextmanager
def _on(wall: Wall) -> Iterator[system.SystemClock]:
    """perdure's own clock of the machine, on that wall clock; what only ever grows is real."""

    class Clock(system.SystemClock):
        def now(self) -> datetime:
            return wall.now

    machine = SimpleNamespace(time_ns=lambda: int(wall.now.timestamp() * 1e9), monotonic=time.monotonic)
    with patch.object(system, "time", machine):
        yield Clock()


class _Workload:
    """Everything whose order or end might depend on the clock, and what must be so of it."""

    def __init__(self, round: Round, engine: perdure.Engine, clock: system.SystemClock, wall: Wall, case: Case) -> None:
        self.round, self.engine, self.wall, self.chance = round, engine, wall, case.chance
        self.clock = clock
        self.ana = engine.memory("ana", agent="coach", channel="a")
        self.appended: list[str] = []
        self.ids: list[str] = []
        self.expiring: dict[str, tuple[int, datetime]] = {}
        self.entries: set[str] = set()
        self.todos: list[str] = []
        self.facts: list[str] = []
        self.documents = ContextManager(round.folder / f"contexts{case.number}", clock=clock)
        self.compactor = ContextCompactor(clock=clock, max_history=4)
        self.saved = 0

    def step(self) -> None:
        for call in (self.append, self.state, self.series, self.todo, self.remember, self.document, self.turn, self.work):
            if self.chance.random() < 0.7:
                call()

    def append(self) -> None:
        number = len(self.appended)
        stored = self.ana.append("user", f"message {number}")
        self.ids.append(stored.id)
        self.appended.append(stored.content)

    def state(self) -> None:
        key = f"key {len(self.expiring)}"
        seconds = self.chance.choice((1, 60, 86_400))
        self.ana.state.save(key, len(self.expiring), expires_in_s=seconds)
        self.expiring[key] = (len(self.expiring), self.wall.now + timedelta(seconds=seconds))

    def series(self) -> None:
        name = f"e{len(self.entries)}"
        self.ana.series("runs").merge([{"id": name, "timestamp": WINDOW[0]}], window=WINDOW)
        self.entries.add(name)

    def todo(self) -> None:
        text = f"buy {len(self.todos)} apples"
        self.ana.todos.add(text)
        self.todos.append(text)

    def remember(self) -> None:
        """Without a start: it is so now, whatever the clock says."""
        town = f"Town {len(self.facts) + 1}"
        self.facts.append(f"Ana lives in {town}")
        self.ana.remember(self.facts[-1], "PROFILE", attribute="lives_in", value=town)
        self.ana.remember(f"Ana met neighbour {len(self.facts)}", "PROFILE")
        self.round.met("a fact was stored by a wrong clock" if self.wall.now != RIGHT else "a fact was stored by a right clock")

    def document(self) -> None:
        context = self.documents.load(DOCUMENT)
        context.recent_history.append(HistoryEntry(max(0, int(self.wall.now.timestamp())), "user", f"m{self.saved}"))
        self.compactor.compact(context, force=True)
        self.documents.save(context)
        self.saved += 1

    def turn(self) -> None:
        """Whatever the clock says of leases: of two that want the floor, one can speak."""
        with self.ana.turn(lease_s=5) as first:
            kind = self.wall.jump(self.chance)
            try:
                second = self.ana.turn(wait_s=0)
                second.__enter__()
            except perdure.Unavailable:
                second = None
            spoke = False
            with suppress(perdure.PerdureError):
                stored = first.append("assistant", f"turn {len(self.appended)}")
                self.ids.append(stored.id)
                self.appended.append(stored.content)
                spoke = True
            if second is not None:
                self.round.met("the floor was taken over")
                self.round.check(not spoke, "two have the floor", f"after {kind}, both could speak")
                second.__exit__(None, None, None)
            else:
                self.round.check(spoke, "nobody has the floor", f"after {kind}, neither could speak")

    def work(self) -> None:
        self.engine.process(30)

    def check(self, when: str) -> None:
        wrong = self.round.check
        log = self.ana.messages(10_000)
        wrong([one.content for one in log] == self.appended, "order of the log", f"{when}: {[one.content for one in log]}")
        places = [(one.session_number, one.seq) for one in log]
        wrong(places == sorted(set(places)), "order of the log", f"{when}: {places}")
        wrong(self.ids == sorted(set(self.ids)), "ids", f"{when}: they do not grow: {self.ids}")
        for key, (value, until) in self.expiring.items():
            held = self.ana.state.find(key)
            wrong(held.found == (self.wall.now < until), "expiry", f"{when}: {key} until {until}, found {held.found}")
            kept = self.ana.state.find(key, revision=1)
            wrong(kept.found and kept.value == value, "expiry", f"{when}: {key} is gone for good")
        held = {entry.id for entry in self.ana.series("runs").entries()} if self.entries else set()
        wrong(held == self.entries, "series", f"{when}: {sorted(self.entries - held)} are gone")
        if self.entries and self.wall.now > datetime(2025, 12, 3, tzinfo=UTC):
            unknown = self.ana.series("runs").gaps(*NEVER_FETCHED)
            wrong(bool(unknown), "series", f"{when}: it claims to know what was never fetched")
        todos = [one.content for one in self.ana.todos.list(limit=1_000) if not one.content.startswith(LEARNED)]
        wrong(sorted(todos) == sorted(self.todos), "todos", f"{when}: {todos} instead of {self.todos}")
        known = [one.content for memory in self.ana.memories.list(limit=10_000) for one in memory.statements]
        met = {f"Ana met neighbour {number + 1}" for number in range(len(self.facts))}
        wrong(met <= set(known), "facts", f"{when}: hidden: {sorted(met - set(known))}")
        homes = [one for one in known if "lives in" in one]
        wrong(homes == self.facts[-1:], "facts", f"{when}: {homes} instead of the last word, {self.facts[-1:]}")
        said = [entry.content for entry in self.documents.history(DOCUMENT)]
        wrong(said == [f"m{number}" for number in range(self.saved)], "document", f"{when}: {said}")


def _run(round: Round) -> None:
    for case in round.cases(quick=4, full=20, name="runs"):
        on_postgres = round.size == "full" and round.postgres is not None and case.number % 2 == 1
        store: Any = fresh_store(round.postgres()) if on_postgres and round.postgres else nullcontext(None)
        wall = Wall()
        with store as settings, _on(wall) as clock, round.guarded("error"):
            chosen = settings or Settings(url=fresh_sqlite(round.folder))
            _jumps(round, case, perdure.open(settings=_with(chosen), clock=clock, extractor=Quoting()), clock, wall)


def _with(settings: Settings) -> Settings:
    return replace(settings, zone=ZONE, embedder="none", profile="companion")


def _jumps(round: Round, case: Case, engine: perdure.Engine, clock: system.SystemClock, wall: Wall) -> None:
    with engine:
        workload = _Workload(round, engine, clock, wall, case)
        plan = [*case.chance.sample(KINDS, len(KINDS)), "2038"]
        for number in range(JUMPS):
            kind = wall.jump(case.chance, plan[number])
            round.met(kind)
            round.count("jumps")
            workload.step()
            workload.check(f"jump {number + 1}, {kind}")
        wall.now = RIGHT
        workload.append()
        # Jobs that were left years ahead are found again; those within an hour have their time by then.
        rivals = [threading.Thread(target=engine.process, args=(60,)) for _ in range(2)]
        for rival in rivals:
            rival.start()
        for rival in rivals:
            rival.join()
        for _ in range(3):
            wall.go(hours=1.1)
            engine.process(60)
        _check_work(round, workload)
        workload.check("put right")
        told = [one for one in engine.doctor().degraded if one.startswith("clock:")]
        ahead = engine.repair_clock().rows
        round.check(bool(told) == bool(ahead), "doctor", f"{ahead} rows from the future, and doctor says {told}")
        round.met("rows from the future were repaired", ahead)
        left = [one for one in engine.doctor().degraded if one.startswith("clock:")]
        round.check(not left and not engine.repair_clock().rows, "doctor", f"after the repair: {left}")
        workload.check("repaired")
        check_whole(round, engine, when="after jumps of the clock")


def _check_work(round: Round, workload: _Workload) -> None:
    """Every message was looked through, and once: what a job writes is written once, however often it ran."""
    memories = workload.ana.memories.list(limit=10_000)
    stated = [statement.content for memory in memories for statement in memory.statements]
    wanted = {f"Said: {content}" for content in workload.appended}
    round.check(set(stated) >= wanted, "job lost", f"not looked through: {sorted(wanted - set(stated))}")
    round.check(len(stated) == len(set(stated)), "job twice", f"learned twice: {sorted(stated)}")
    left = [job for job in workload.ana.admin.jobs(limit=1_000) if job.state in ("running", "dead")]
    round.check(not left, "job lost", [f"{job.kind} {job.state}, due {job.due_at}" for job in left])
    late = [
        job
        for job in workload.ana.admin.jobs("ready", limit=1_000)
        if job.due_at and job.due_at > workload.wall.now + timedelta(days=1)
    ]
    round.check(not late, "job lost", [f"{job.kind} waits until {job.due_at}" for job in late])


PROMISE = Promise(
    id="P13",
    says="order, expiry and what is current do not depend on the clock",
    tried_by="the clock jumps to 1970 and 2038, by days and seconds, stands still and repeats itself over a running workload; the "
    "log keeps its order, ids grow, nothing is lost, no job is left behind, one at a time has the floor, the last word of a fact is "
    "current, and rows from the future are told and repaired",
    run=_run,
    evidence=(
        *KINDS,
        "the floor was taken over",
        "a fact was stored by a wrong clock",
        "rows from the future were repaired",
    ),
    figure="{wrong} wrong over {jumps} jumps",
)
