"""P16: what is forgotten is gone: from the bytes on the disk, from what is made afterwards, and whatever jobs were under way.

One secret is put into everything that can be stored, jobs derive from it what they can, and it is forgotten in each of the ways
there are. Then every byte of the store, its files, backups and exports is searched for it, in all the shapes it may have taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import psycopg

import perdure
from perdure.app import Engine
from perdure.parts import open_store
from perdure.ports.rows import TABLES
from perdure.settings import Settings
from perdure.testing import StoppedClock
from proof.harness import Case, Promise, Round
from proof.lived import MARKS, Life, Quoting, by_kind, by_name, derive, keep, secret, talk
from proof.servers import fresh_store
from proof.traces import files_below, needles, traces
from proof.wholeness import check_whole

T = TypeVar("T")
LOG = "pg_wal"
STEP_S = 60.0
PAUSE_S = 1.0
SAID_ONLY = ("message", "answer", "meta", "call", "result", "thanks")
"""Kinds of which, without a model, nothing is learned: with their session they are gone."""
STORED_IN = {"messages", "operations", "records", "record_terms", "state_revisions", "series_past", "digests", "decisions",
             "agent_states"}  # fmt: skip
"""Tables in which the secret must have been before it is forgotten, or nothing was tried."""


@dataclass(slots=True)
class Place:
    """A store with all its files, and how its bytes are read."""

    round: Round
    settings: Settings
    folder: Path
    clock: StoppedClock = field(default_factory=StoppedClock)
    data: Path | None = None
    """The data directory of the PostgreSQL server; None: a SQLite file in `folder`."""
    since: float = field(default_factory=lambda: time.time() - 1)

    @property
    def name(self) -> str:
        return "SQLite" if self.data is None else "PostgreSQL"

    def open(self, **models: Any) -> Engine:
        return perdure.open(settings=self.settings, clock=self.clock, **models)

    def bytes(self) -> dict[str, bytes]:
        """Every file that the store has, and what lies beside it. Not PostgreSQL's log: it keeps what was until it is reused."""
        found = files_below(self.folder)
        if self.data is not None:
            with psycopg.connect(self.settings.url, autocommit=True) as connection:
                connection.execute("CHECKPOINT")
            found |= files_below(self.data, without=(LOG,), since=self.since)
        return found

    def log_bytes(self) -> dict[str, bytes]:
        return {} if self.data is None else files_below(self.data / LOG)


@contextmanager
def _places(round: Round) -> Iterator[list[Place]]:
    """A SQLite and a PostgreSQL store, both empty."""
    assert round.postgres is not None
    url = round.postgres()
    with psycopg.connect(url, autocommit=True) as connection:
        [(data,)] = connection.execute("SHOW data_directory").fetchall()
    with fresh_store(url) as settings:
        places = [Place(round, Settings(url=f"sqlite:///{round.folder / 'sqlite' / 'store.db'}"), round.folder / "sqlite")]
        places.append(Place(round, settings, round.folder / "postgres", data=Path(data)))
        for place in places:
            place.folder.mkdir()
            place.settings = replace(
                place.settings,
                files_dir=str(place.folder / "files"),
                agents_dir=str(place.folder / "agents"),
                profile="complete",
                transcript_messages_min=0,
            )
        yield places


def _run(round: Round) -> None:
    with _places(round) as places:
        for place in places:
            for how in HOW if round.only_case is None else ():
                with round.guarded(f"{place.name}, {how}"):
                    _forget_and_search(round, place, how)
        boundaries: dict[str, int] = {}
        for case in round.cases(quick=12, full=100, name="races"):
            place = places[case.number % 2]
            if place.name not in boundaries:
                boundaries[place.name] = _boundaries(place)
            with round.guarded(f"{place.name}, race"):
                _race(round, place, case, boundaries[place.name])
        for place in places:
            with round.guarded(f"{place.name}, after the races"), place.open() as engine:
                engine.purge()
                _search(round, place, needles(MARKS), "after all races")


# -- forgetting, then searching

Forget = Callable[[Engine, Life], Any]


def _mine(engine: Engine, life: Life) -> perdure.Memory:
    return engine.memory(life.user, agent="coach", channel="a")


def _forget_all_of(engine: Engine, life: Life) -> None:
    for memory in _mine(engine, life).memories.list(limit=100):
        _mine(engine, life).forget(memory=memory.memory.record_key)


HOW: dict[str, Forget] = {
    "a user": lambda engine, life: _mine(engine, life).forget(user=True),
    "a person": lambda engine, life: _mine(engine, life).forget(entity=f"person:{life.name}"),
    "messages": lambda engine, life: _mine(engine, life).forget(messages=(life.messages[0], life.messages[-1])),
    "memories": _forget_all_of,
    "a session": lambda engine, life: _mine(engine, life).conversation.delete(life.sessions[0]),
}


def _forget_and_search(round: Round, place: Place, how: str) -> None:
    life = by_name("ana") if how == "a person" else by_kind("ana")
    # What rules make of a session may be told apart from what was said; models quote everything everywhere.
    models: dict[str, Any] = {} if how == "a session" else {"summariser": Quoting(), "extractor": Quoting()}
    with place.open(**models) as engine:
        talk(engine, life)
        if how in ("a user", "a person", "memories"):
            keep(engine, life)
        derive(engine, place.clock)
        stored = {table for table, row in _rows(engine) if any(mark in row for mark in MARKS)}
        if how in ("a user", "a person"):
            round.check(stored >= STORED_IN, "nothing tried", f"{place.name}: no secret was stored in {STORED_IN - stored}")
        wanted = _wanted(how, life)
        round.met(f"{place.name}: the secret was on the disk", len(traces(place.bytes(), wanted)))
        HOW[how](engine, life)
        if how == "a session":
            engine.process(STEP_S)
        engine.purge()
        _search(round, place, wanted, f"{how} forgotten")
        derive(engine, place.clock)
        # What jobs replace by what they make anew stands in freed space until then.
        engine.purge()
        _search(round, place, wanted, f"{how} forgotten, and jobs have run since")
        _search_copies(round, place, engine, wanted, how)
        check_whole(round, engine, when=f"{place.name}: {how} forgotten")
        round.count("ways")
        # Whatever this way is meant to leave: the next one begins anew.
        _mine(engine, life).forget(user=True)
    _search(round, place, needles(MARKS, life.texts), f"{how} forgotten, then the user, and the store is closed")


def _wanted(how: str, life: Life) -> dict[bytes, str]:
    if how == "memories":
        return needles([secret("memory"), secret("statement"), secret("entity")], life.texts[len(life.messages) + 2 :][:2])
    if how == "a session":
        return needles([secret(kind) for kind in SAID_ONLY])
    return needles(MARKS, life.texts)


def _search(round: Round, place: Place, wanted: dict[bytes, str], when: str) -> None:
    found = place.bytes()
    round.count("bytes searched", sum(map(len, found.values())))
    round.count("searches")
    for trace in traces(found, wanted)[:10]:
        round.wrong("trace", f"{place.name}: {when}: {trace}")
    if place.data is not None:
        kept = len(traces(place.log_bytes(), wanted))
        round.facts["PostgreSQL's own write-ahead log"] = (
            f"still had {kept} traces right after a purge: the server reuses its segments in its own time, and so do archives "
            "and replicas"
        )


def _search_copies(round: Round, place: Place, engine: Engine, wanted: dict[bytes, str], how: str) -> None:
    """Whatever is copied out of the store now has none of it either."""
    folder = place.folder / "copies"
    folder.mkdir()
    engine.backup(folder / "backup")
    engine.export(folder / "all.jsonl.gz")
    _mine(engine, by_kind("ana")).export(folder / "one.jsonl")
    _mine(engine, by_kind("ana")).export(folder / "vault", "vault")
    for trace in traces(files_below(folder), wanted)[:10]:
        round.wrong("trace in a copy", f"{place.name}: {how} forgotten: {trace}")
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


def _rows(engine: Engine) -> Iterator[tuple[str, str]]:
    with engine._store.snapshot() as snapshot:
        for table in TABLES:
            for row in snapshot.rows(table):
                yield table, repr(row).lower()


# -- races


class PausingStore:
    """A store that stands still at one of the points between reading and writing, as if a model took its time there."""

    def __init__(self, store: Any, pause_at: int) -> None:
        self._store = store
        self._left = pause_at
        self.passed = 0
        self.reached = threading.Event()
        self.go_on = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def read(self, *args: Any, **kwargs: Any) -> Any:
        found = self._store.read(*args, **kwargs)
        self._pause()
        return found

    def write(self, *args: Any, **kwargs: Any) -> Any:
        self._pause()
        return self._store.write(*args, **kwargs)

    def _pause(self) -> None:
        self.passed += 1
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            self.go_on.wait(STEP_S)


def _working(place: Place, pause_at: int) -> tuple[PausingStore, Engine]:
    store = PausingStore(open_store(place.settings), pause_at)
    return store, Engine(store, place.clock, place.settings, models={"summariser": Quoting(), "extractor": Quoting()})


def _boundaries(place: Place) -> int:
    """Between how many readings and writings the jobs of such a life could be interrupted."""
    with place.open() as engine:
        talk(engine, by_kind("dry"))
    store, working = _working(place, 0)
    with working:
        derive(working, place.clock)
        working.memory("dry").forget(user=True)
    return store.passed


def _race(round: Round, place: Place, case: Case, boundaries: int) -> None:
    """Something is forgotten while a job that has read it stands still; then the job goes on."""
    how = case.chance.choice(("a user", "a person", "messages", "messages"))
    life = by_name("ana") if how == "a person" else by_kind("ana")
    with place.open() as engine:
        talk(engine, life)
        if how == "a person":
            engine.memory("ana").remember("Is a friend", "PEOPLE", entities=[f"person:{life.name}"])
        if case.chance.random() < 0.3:
            derive(engine, place.clock)
            _mine(engine, life).append("user", life.say("I asked again for", "again"))
            life.messages.append(_mine(engine, life).messages(1)[-1].id)
        store, working = _working(place, case.chance.randrange(1, boundaries))
        worker = threading.Thread(target=derive, args=(working, place.clock))
        worker.start()
        while worker.is_alive() and not store.reached.wait(0.01):
            pass
        round.met("forgotten while a job stood still", store.reached.is_set())
        # A job may hold the lock of a file where it stands: then forgetting has to wait for it.
        waking = threading.Timer(PAUSE_S, store.go_on.set)
        waking.start()
        HOW[how](engine, life)
        waking.cancel()
        store.go_on.set()
        worker.join(STEP_S)
        round.check(not worker.is_alive(), "job hangs", f"{place.name}: {how}")
        working.close()
        derive(engine, place.clock)
        when = f"{place.name}: {how} forgotten at boundary {store.passed} of {boundaries}"
        for table, row in _rows(engine):
            if any(mark in row for mark in MARKS):
                round.wrong("resurrected", f"{when}: in {table}: {row[:500]}")
        for trace in traces(files_below(place.folder / "files") | files_below(place.folder / "agents"), needles(MARKS))[:3]:
            round.wrong("resurrected", f"{when}: {trace}")
        check_whole(round, engine, when=when)
        _mine(engine, life).forget(user=True)


PROMISE = Promise(
    id="P16",
    says="forgotten means gone: from every byte that is left, and never brought back",
    tried_by="one secret in every kind of thing that can be stored, forgotten in each way there is; then database, log, index, "
    "files, backups and exports are searched for it in every encoding; and forgetting races jobs that have read it, on both stores",
    run=_run,
    evidence=(
        "SQLite: the secret was on the disk",
        "PostgreSQL: the secret was on the disk",
        "forgotten while a job stood still",
    ),
    figure="{wrong} traces over {ways} ways of forgetting and {searches} searches of {bytes searched} bytes; {races} races",
    needs_postgres=True,
)
