"""P15: a backup taken under load restores complete; a restore that is killed leaves the old store or the new one."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

import perdure
from proof.accounts import Books, Told, check_accounts
from proof.harness import Case, Promise, Round
from proof.ledgers import LedgerReader
from proof.processes import Crew, crew, ended, kill, until
from proof.requests import Request
from proof.stores import BACKENDS, Backend, new_store, wait_for_the_server
from proof.wholeness import check_heals, check_whole
from proof.workers.answering import Trap
from proof.workers.restorer import back_up, restore
from proof.workers.writer import USER, WORK, Assignment, Lane, write_until_killed

WRITERS = 2
FIRST_WRITES = 25
LATER_WRITES = 10
NOTES = 20
"""So often a backup or a restore says how far it is: once for each table."""
REWRITTEN = ("jobs",)
"""What a restored store has to do is its own: what is derived is made anew."""


@dataclass(slots=True)
class Load:
    """Writers at work, and what they have noted so far."""

    settings: perdure.Settings
    folder: Path
    team: Crew
    begun: dict[Request, int] = field(default_factory=dict)
    answers: dict[Request, object] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _readers: list[LedgerReader] = field(default_factory=list)
    _processes: list[BaseProcess] = field(default_factory=list)

    def start(self, seed: str) -> None:
        for number in range(WRITERS):
            path = self.folder / f"writer-{number}"
            self._readers.append(LedgerReader(path))
            given = Assignment(self.settings, (Lane(number, path),), seed)
            self._processes.append(self.team.start(write_until_killed, given))

    def follow(self) -> None:
        for reader in self._readers:
            for what, value in reader.new():
                if what == "refused":
                    self.refused.append(str(value))
                elif what == "begin" and value[2] != WORK:
                    self.begun[Request(*value)] = len(self.begun)
                elif what == "done" and value[2] != WORK:
                    self.answers[Request(*value[:3])] = value[3]

    def wait_for(self, writes: int) -> None:
        """Until so many more are acknowledged."""
        wanted = len(self.answers) + writes

        def there() -> bool:
            self.follow()
            return len(self.answers) >= wanted or bool(self.refused)

        until(there, "the writers write")

    def stop(self) -> None:
        for process in self._processes:
            kill(process)
        self.follow()


@dataclass(slots=True)
class Taken:
    """A backup, and what is known of the moment it is of."""

    path: Path
    before: dict[Request, object]
    """Acknowledged before it began."""
    begun: set[Request]
    """Asked for before it ended."""


def run(round: Round) -> None:
    with crew() as team:
        for case in round.cases(quick=2, full=20, name="backups"):
            source = BACKENDS[case.number % 2]
            target = BACKENDS[(case.number + 1 + case.number // 2) % 2]
            folder = round.folder / f"backup-{case.number}"
            folder.mkdir()
            with ExitStack() as stack:
                of, into = (stack.enter_context(new_store(round, one, folder)) for one in (source, target))
                _try(round, case, team, Trial(folder, source, target, of, into))


@dataclass(frozen=True, slots=True)
class Trial:
    folder: Path
    source: Backend
    target: Backend
    of: perdure.Settings
    into: perdure.Settings

    @property
    def words(self) -> str:
        return f"from {self.source} to {self.target}"


def _try(round: Round, case: Case, team: Crew, trial: Trial) -> None:
    load = Load(trial.of, trial.folder, team)
    perdure.open(settings=trial.of).close()
    load.start(f"{case.chance.random()}")
    try:
        load.wait_for(FIRST_WRITES)
        taken = _taken_under_load(round, trial, load)
        _kill_a_backup(round, case, team, trial)
        load.wait_for(LATER_WRITES)
    finally:
        load.stop()
    for words in load.refused:
        round.wrong("refused", f"{trial.words}: {words}")
    wait_for_the_server(trial.source, trial.of)
    later = trial.folder / "later"
    with perdure.open(settings=trial.of) as engine:
        engine.backup(later)
    with round.guarded("unsound"):
        perdure.restore(taken.path, settings=trial.into)
        with perdure.open(settings=trial.into) as engine:
            check_whole(round, engine, when=trial.words)
            _check_complete(round, engine.memory(USER), load, taken, trial.words)
            check_heals(round, engine, when=trial.words)
    new = _contents(later)
    for number in range(round.sized(quick=3, full=4)):
        _kill_a_restore(round, case, team, trial, later, number)
    # The faults are over: the same restore completes.
    with round.guarded("unsound"):
        perdure.restore(later, settings=trial.into, replace=True)
        with perdure.open(settings=trial.into) as engine:
            round.check(_fingerprint(engine, trial.folder / "new") == new, "between", f"{trial.words}: restored, and not so")
            check_heals(round, engine, when=f"{trial.words}, after killed restores")


# -- under load


def _taken_under_load(round: Round, trial: Trial, load: Load) -> Taken:
    with perdure.open(settings=trial.of) as engine:
        load.follow()
        before = dict(load.answers)
        path = trial.folder / "backup"
        # After each table it is held up until the writers have written more.
        engine.backup(path, progress=lambda *_: load.wait_for(1))
        load.follow()
    if len(load.answers) > len(before):
        round.met(f"writes were acknowledged while {trial.source} was backed up", len(load.answers) - len(before))
    return Taken(path, before, set(load.begun))


def _check_complete(round: Round, memory: perdure.Memory, load: Load, taken: Taken, when: str) -> None:
    """All that was acknowledged before is there, of what came meanwhile a beginning, of what came later nothing."""
    told = Told()
    for request in taken.begun:
        told.begin(request)
    told.answers.update(taken.before)
    books = check_accounts(round, memory, told, when=when)
    round.count("acknowledged writes restored", len(taken.before))
    there = _found(books)
    for writer in range(WRITERS):
        mine = sorted(request for request in load.answers if request.writer == writer)
        held = [request.id in there for request in mine]
        if held != sorted(held, reverse=True):
            round.wrong("not of one moment", f"{when}: writer {writer} misses a write, and finds a later one")


def _found(books: Books) -> set[str]:
    parts = {message.id for message in books.messages}
    parts |= {entry["id"] for _, entries in books.series.values() for entry in entries}
    parts |= {text.split()[0] for text, _ in books.statements} | {text.split()[0] for text in books.todos}
    whole = {body["by"] for revisions in books.revisions.values() for _, body in revisions}
    return whole | {part.rpartition("p")[0] for part in parts}


# -- killed


def _kill_a_backup(round: Round, case: Case, team: Crew, trial: Trial) -> None:
    """The file is not there, or it is whole."""
    path, ledger = trial.folder / "killed", LedgerReader(trial.folder / "backing-up")
    process = team.start(back_up, trial.of, path, ledger.path)
    died, notes = _killed_at(process, ledger, case.chance.randint(1, NOTES))
    if died and notes[-1] != "end":
        round.met("killed during a backup")
    if path.exists():
        with round.guarded("unsound"):
            _contents(path)


def _kill_a_restore(round: Round, case: Case, team: Crew, trial: Trial, backup: Path, number: int) -> None:
    chance = case.chance
    when = f"{trial.words}, restore {number} killed"
    with perdure.open(settings=trial.into) as engine:
        # So that the old one differs from the new one each time.
        engine.memory("old").append("user", f"before restore {number}")
        old = _fingerprint(engine, trial.folder / f"old-{number}")
    # At the last of the two moments that matter most, or anywhere.
    trap = Trap(chance.choice(["before", "after"]), 1) if trial.target == "SQLite" and number == 0 else None
    ledger = LedgerReader(trial.folder / f"restoring-{number}")
    process = team.start(restore, trial.into, backup, ledger.path, trap)
    died, notes = _killed_at(process, ledger, 10**6 if trap else chance.randint(1, NOTES))
    if not died:
        round.check(notes[-1:] == ["end"], "refused", f"{when}: it ended by itself, and not well")
    elif len(notes) > 1 and notes[-1] != "end":
        round.met(f"killed during a restore on {trial.target}")
    wait_for_the_server(trial.target, trial.into)
    new = _contents(backup)
    with round.guarded("unsound"):
        with perdure.open(settings=trial.into) as engine:
            check_whole(round, engine, when=when)
            found = _fingerprint(engine, trial.folder / f"found-{number}")
            if found == new:
                round.count("found the new store")
            elif found == old:
                round.count("found the old store")
            else:
                differing = [table for table in found if found[table] not in (old[table], new.get(table))]
                round.wrong("between", f"{when}: neither the old store nor the new one; neither in {differing or 'one table'}")


def _killed_at(process: BaseProcess, ledger: LedgerReader, notes: int) -> tuple[bool, list[str]]:
    """Kill it when it has noted so much, or leave it to end by itself."""
    heard: list[str] = []

    def far_enough() -> bool:
        heard.extend(what for what, _ in ledger.new())
        return len(heard) >= notes or not process.is_alive()

    until(far_enough, "a backup or a restore goes on")
    died = kill(process) if process.is_alive() else ended(process) == -9
    heard.extend(what for what, _ in ledger.new())
    return died, heard


def _fingerprint(engine: perdure.Engine, path: Path) -> dict[str, frozenset[str]]:
    engine.backup(path)
    return _contents(path)


def _contents(path: Path) -> dict[str, frozenset[str]]:
    """The rows of a backup, by table."""
    found: dict[str, set[str]] = defaultdict(set)
    table = ""
    with gzip.open(path, "rt") as file:
        header, *lines, _ = file
    json.loads(header)
    for line in lines:
        if line.startswith("{"):
            table = json.loads(line)["table"]
        elif table not in REWRITTEN:
            found[table].add(line)
    return {name: frozenset(rows) for name, rows in found.items()}


PROMISE = Promise(
    id="P15",
    says="a backup under load restores complete; a killed restore leaves the old store or the new one",
    tried_by="backups while 2 processes write, on and between SQLite and PostgreSQL; kill -9 during backup and restore",
    run=run,
    evidence=(
        "writes were acknowledged while SQLite was backed up",
        "writes were acknowledged while PostgreSQL was backed up",
        "killed during a backup",
        "killed during a restore on SQLite",
        "killed during a restore on PostgreSQL",
    ),
    figure="{wrong} missing, half or unsound over {backups} backups of {acknowledged writes restored} writes",
)
