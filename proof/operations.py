"""What is done to a store while its disk fails or its process dies: operations in steps, and the states between the steps.

Time stands still and ids are counted from a number of each step, so that the same steps leave the same rows in every run:
whether a step was done wholly, or not at all, is seen by comparing everything there is.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import perdure
from perdure.domain.reports import Finding
from perdure.domain.scope import SYSTEM
from perdure.domain.times.instants import from_us
from perdure.engine.conversation.jobs import BACKOFF_MOST_S
from perdure.ports.tables.jobs import JOBS
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow
from perdure.services.jobs.erasure import ERASE, REST
from perdure.testing import StoppedClock

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
IDS_PER_STEP = 100_000
STORE = "store.db"
FILES = "files"
OLD_BACKUP, NEW_BACKUP = "old.perdure", "new.perdure"
OLD_EXPORT, NEW_EXPORT = "old.jsonl.gz", "new.jsonl.gz"
INCARNATION = re.compile('"[0-9a-f]{16,32}"')
"""Of a search index: the one thing in the rows that is left to chance."""
MADE_ID = re.compile("00000000-0000-7000-8000-[0-9a-f]{12}")
DIGEST = re.compile("[0-9a-f]{64}")
ERASURES = "perdure:erasures"
"""Counts how often `forget` was called, so it is no part of what a call leaves."""
ERASURE = (SYSTEM.space, SYSTEM.user, ERASE, REST)
"""The store's own job, for bytes that `forget` could not overwrite at once. Where it is done, it is as if it had never been."""
MADE_BY_JOBS = {
    "jobs": ("kind", "key"),
    "tallies": ("agent", "channel", "session_number", "up_to_seq"),
    "digests": ("agent", "channel", "session_number", "kind"),
    "index_entries": ("kind", "ref"),
}
"""Tables, and the columns by which the same work is known again."""
WAIT = timedelta(hours=2)
"""What failed is tried again after a while, and what was held by a worker in trouble after its lease: both are over by then."""
SLOT_MAX = timedelta(days=1)
"""How far off the next run of a job may be that has not failed."""
WINDOW = (START - timedelta(days=30), START)

Act = Callable[[perdure.Engine, Path], object]


class SteppedClock(StoppedClock):
    """Stands still. Ids begin anew at each step, so that a step that is repeated, or done later, gives the same ones."""

    def __init__(self, step: int = -1) -> None:
        super().__init__(START)
        self.begin(step)

    def begin(self, step: int) -> None:
        self._ids = itertools.count(IDS_PER_STEP * (step + 1) + 1)


@dataclass(frozen=True, slots=True)
class Step:
    """One call. `again` says that doing it twice must leave what doing it once leaves."""

    act: Act
    again: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """Steps on a store, each of which is done wholly or not at all."""

    name: str
    steps: tuple[Step, ...]
    scene: str = "filled"
    """What is there before: `filled`, `waiting` (jobs wait, too), `empty` (no store at all), or `v1` and so on, a store of
    that schema version."""
    opening: bool = False
    """Opening the store is part of what is tried."""
    parts: bool = False
    """A step has several parts, each wholly done or not at all; after a death in between, repeating it does the rest."""
    jobs_after: bool = False
    """Part of it is left to jobs: the state after the last step is the one when they are done."""
    exact: bool = True
    """States can be compared row by row. Jobs note who ran them and when, so of those only the outcome can be."""
    by_job: bool = False
    """A job does it, and nothing but jobs may change: all other rows are compared. What a dead worker held, waits."""

    @property
    def jobs_alone(self) -> bool:
        """Whether it does nothing but run jobs: what those leave does not depend on when they run."""
        return self.scene == "waiting"

    @property
    def waits(self) -> bool:
        """Whether it can only be repeated when the lease of a worker that died over it has ended."""
        return self.by_job or not self.exact

    def state(self, engine: perdure.Engine, folder: Path) -> str:
        """The state that it left."""
        return state_of(engine, folder, aside=("jobs",) if self.by_job else ())


def settings(folder: Path) -> perdure.Settings:
    return perdure.Settings(url=f"sqlite:///{folder / STORE}", files_dir=str(folder / FILES), deadline_s=10.0)


@contextmanager
def opened(folder: Path, *, clock: SteppedClock | None = None, background: bool = False) -> Iterator[perdure.Engine]:
    with perdure.open(settings=settings(folder), clock=clock or SteppedClock(), background=background) as engine:
        yield engine


def state_of(engine: perdure.Engine, folder: Path, *, aside: Sequence[str] = ()) -> str:
    """A digest of every row and of every file beside the store. Equal states are equal in all a user can ask for.

    Of ids, only their order counts: work that had to be run twice has used some up. Tables can be left aside.
    """
    text = "\n".join(telling(engine, folder, aside))
    ranks = {name: f"id {rank}" for rank, name in enumerate(sorted(set(MADE_ID.findall(text))))}
    return hashlib.sha256(MADE_ID.sub(lambda found: ranks[found[0]], text).encode()).hexdigest()


def telling(engine: perdure.Engine, folder: Path, aside: Sequence[str] = ()) -> Iterator[str]:
    """The lines that the digest is of: for whoever wants to know where two states differ."""
    with engine._store.snapshot() as snapshot:
        yield f"schema {snapshot.schema_version}"
        for table in (name for name in TABLES if name not in aside):
            for row in snapshot.rows(table):
                if ERASURES in row or (table == "jobs" and _is_done_erasure(row)):
                    continue
                shown = json.dumps(row, default=str, ensure_ascii=False)
                yield f"{table} {INCARNATION.sub('X', shown) if table == 'index_heads' else shown}"
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith((STORE, ".")) and path.suffix != ".lock":
            yield f"{path.relative_to(folder)} {_content(path)}"


def _is_done_erasure(row: AnyRow) -> bool:
    return JOBS.key_of(row) == ERASURE and JOBS.named(row).state == "done"


def _content(path: Path) -> str:
    """What a file says. A packed one that is cut off says something else than any whole one."""
    content = path.read_bytes()
    if path.suffix in (".gz", ".perdure"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return f"cut off: {content.hex()}"
    # Their digests are over ids, too.
    return DIGEST.sub("digest", content.decode(errors="backslashreplace"))


# -- scenes


def fill(engine: perdure.Engine, folder: Path) -> None:
    """Two users who talked, told and measured; all jobs are done, and there are a backup and an export."""
    for user, turns in (("ana", 6), ("bob", 2)):
        memory = engine.memory(user)
        for number in range(turns):
            memory.append("user", f"Number {number}: John Doe of Austin called me about the boat.", id=f"q{number}")
            memory.append("assistant", f"Noted as {number}.", id=f"a{number}")
        memory.remember("Lives in Austin", attribute="lives_in", value="Austin")
        memory.remember("Works for Acme", attribute="works_for", value="Acme", entities=["org:Acme"])
        for drink in ("black tea", "green tea", "coffee", "water"):
            memory.remember(f"John Doe drinks {drink}", entities=["person:John Doe"])
        memory.todos.add("send a parcel")
        memory.state.save("theme", "dark")
        memory.series("runs").merge([a_run(number) for number in range(5)], window=WINDOW, request="first")
        memory.lessons.add("Never call John Doe before noon.")
    engine.process(60)
    # What the curator has not seen yet: enough of one person, in memories of several kinds, to be folded into one.
    for kind, number in itertools.product(("fact", "preference", "habit"), range(2)):
        said = f"Jane Roe has {kind} number {number}"
        engine.memory("ana").remember(said, entities=["person:Jane Roe"], fact_type=kind)  # type: ignore[arg-type]
    engine.backup(folder / OLD_BACKUP)
    engine.memory("ana").export(folder / OLD_EXPORT)


def leave_work(engine: perdure.Engine) -> None:
    """Much was said that no job has looked at yet: to be counted, indexed, learned from, summed up and written out."""
    for user in ("ana", "bob"):
        memory = engine.memory(user)
        for number in range(40):
            memory.append("user", f"{number}: I met Jane Roe of Oslo, and I like sailing on day {number}.", id=f"w{number}")
            memory.append("assistant", f"Good to know, number {number}.", id=f"v{number}")
        memory.conversation.close()
        memory.append("user", "Good morning.", id="g1")


def a_run(number: int) -> dict[str, object]:
    return {"id": f"r{number}", "timestamp": (START - timedelta(days=20 - number)).timestamp(), "km": number}


# -- operations


def _ana(act: Callable[[perdure.Memory], object], *, again: bool = True) -> Step:
    return Step(lambda engine, _: act(engine.memory("ana")), again)


def _messages(first: int, count: int) -> list[perdure.NewMessage]:
    return [perdure.NewMessage("user", f"message {number}", id=f"n{number}") for number in range(first, first + count)]


def _wrote(*, replace: bool) -> tuple[Act, Act]:
    backup, export = (OLD_BACKUP, OLD_EXPORT) if replace else (NEW_BACKUP, NEW_EXPORT)
    return (
        lambda engine, folder: engine.backup(folder / backup, replace=True),
        lambda engine, folder: engine.memory("ana").export(folder / export, replace=True),
    )


_NEW, _REPLACED = _wrote(replace=False), _wrote(replace=True)
_FIRST_WORDS = _ana(lambda ana: ana.append("user", "the first words", id="f1"))
_CHANGED = _ana(lambda ana: ana.append("user", "said since", id="s1"))

OPERATIONS = (
    Operation("create", (_FIRST_WORDS,), scene="empty", opening=True),
    Operation(
        "append",
        (
            _ana(lambda ana: ana.append("user", "and one more", id="n0")),
            _ana(lambda ana: ana.append_many(_messages(1, 5))),
            _ana(lambda ana: ana.append("assistant", "", id="c1", tool_calls=[perdure.ToolCall("t1", "look", {})])),
        ),
    ),
    Operation(
        "remember",
        (
            _ana(lambda ana: ana.remember("Owns a boat", entities=["project:Boat"]), again=False),
            _ana(lambda ana: ana.remember("Lives in Boston", attribute="lives_in", value="Boston"), again=False),
            _ana(lambda ana: ana.todos.add("paint the boat")),
            _ana(lambda ana: ana.state.save("theme", "light", expected=1), again=False),
        ),
    ),
    Operation(
        "merge",
        (
            _ana(lambda ana: ana.series("runs").merge([a_run(number) for number in range(3, 12)], request="second")),
            _ana(lambda ana: ana.series("walks").merge([a_run(number) for number in range(9)], window=WINDOW, request="w")),
        ),
    ),
    Operation("compact", (_ana(lambda ana: ana.conversation.compact(force=True)),)),
    Operation("curate", (_ana(lambda ana: ana.memories.curate()),)),
    Operation("forget messages", (_ana(lambda ana: ana.forget(messages=("q1", "a2"))),), parts=True, jobs_after=True),
    Operation("forget entity", (_ana(lambda ana: ana.forget(entity="person:John Doe")),), parts=True, jobs_after=True),
    Operation("forget user", (_ana(lambda ana: ana.forget(user=True)),), parts=True, jobs_after=True),
    Operation("backup", (_CHANGED, Step(_NEW[0]), Step(_REPLACED[0]))),
    Operation("export", (_CHANGED, Step(_NEW[1]), Step(_REPLACED[1]))),
    Operation("restore", (_CHANGED, Step(lambda engine, folder: restore_over(engine, folder / OLD_BACKUP)))),
    Operation("import", (_CHANGED, Step(lambda engine, folder: import_over(engine, folder)))),
    Operation("work", (_CHANGED, Step(lambda engine, _: drained(engine))), parts=True, exact=False),
    Operation("work on much", (Step(lambda engine, _: drained(engine)),), scene="waiting", parts=True, exact=False),
    Operation("purge", (Step(lambda engine, _: purged(engine)),), by_job=True),
)


def restore_over(engine: perdure.Engine, path: Path) -> None:
    from perdure.services.store.backup import restore

    restore(engine._store, path, replace=True)


def import_over(engine: perdure.Engine, folder: Path) -> None:
    engine.memory("ana").import_(folder / OLD_EXPORT, replace=True)


def drained(engine: perdure.Engine) -> None:
    """Run all jobs that are due; what a dead or troubled worker held is due after its lease."""
    report = engine.process(60)
    if report.failed or report.parked:
        raise perdure.Unavailable(f"{report.failed} jobs failed, {report.parked} were parked")


def made_by_jobs(engine: perdure.Engine) -> list[str]:
    """What jobs are there for, told so that neither when they ran nor how often counts; and the jobs themselves, by their names."""
    told = []
    with engine._store.snapshot() as snapshot:
        for table, columns in MADE_BY_JOBS.items():
            places = [TABLES[table].columns.index(column) for column in ("user_id", *columns)]
            told += [f"{table} {' '.join(str(row[place]) for place in places)}" for row in snapshot.rows(table)]
    for user in ("ana", "bob"):
        memory = engine.memory(user)
        told += [f"memory {user} {one.content}" for one in memory.memories.list(limit=1_000)]
        for session in memory.conversation.transcripts.list():
            said = " | ".join(one.content for one in memory.conversation.transcripts.read(session.session))
            told.append(f"transcript {user} {said}")
    return sorted(MADE_ID.sub("an id", one) for one in told)


def stuck_jobs(engine: perdure.Engine, now: datetime) -> Iterator[str]:
    """All that was due has been run: jobs that are left all the same, or of which nothing will come.

    One that waits for its slot, or for another try, is neither: it says when it comes.
    """
    with engine._store.snapshot() as snapshot:
        for row in snapshot.rows("jobs"):
            job = JOBS.named(row)
            if job.state == "done":
                continue
            comes = None if job.due_at_us is None else from_us(job.due_at_us)
            latest = now + (timedelta(seconds=BACKOFF_MOST_S) if job.attempts else SLOT_MAX)
            if job.state != "ready" or comes is None or not now < comes <= latest:
                yield f"{job.kind} of {job.user_id} is {job.state}, due {comes} at {now}, after {job.attempts} tries: {job.last_error}"


def purged(engine: perdure.Engine) -> None:
    """Everything that was removed is off the disk."""
    if left := engine.purge().bytes_remain:
        raise perdure.Unavailable(f"a purge left bytes on the disk: {left}")


def migration(version: int) -> Operation:
    """Opening a store of an old schema version."""
    return Operation(f"migrate from {version}", (_FIRST_WORDS,), scene=f"v{version}", opening=True)


def named(name: str) -> Operation:
    if name.startswith("migrate from "):
        return migration(int(name.removeprefix("migrate from ")))
    return next(one for one in OPERATIONS if one.name == name)


def states_of(operation: Operation, folder: Path) -> tuple[list[str], tuple[Finding, ...]]:
    """The states before, between and after its steps, when nothing disturbs it, and what is unsound at the end."""
    clock = SteppedClock()
    with opened(folder, clock=clock) as engine:
        states = [operation.state(engine, folder)]
        for number, step in enumerate(operation.steps):
            clock.begin(number)
            step.act(engine, folder)
            if operation.jobs_after and number == len(operation.steps) - 1:
                drained(engine)
            states.append(operation.state(engine, folder))
        return states, engine.verify().findings


def place_in(states: Sequence[str], state: str, *, at_least: int) -> int | None:
    """How many steps are done in that state, if it is one between two steps. Steps may leave a state as it is."""
    return next((number for number in range(at_least, len(states)) if states[number] == state), None)
