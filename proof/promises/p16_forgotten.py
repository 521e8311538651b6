"""P16: what is forgotten is gone: from the bytes on the disk, from what is made afterwards, and whatever jobs were under way.

One secret is put into everything that can be stored, jobs derive from it what they can, and it is forgotten in each of the ways
there are. Then every byte of the store, its files, backups and exports is searched for it, in all the shapes it may have taken.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from unittest.mock import patch

import psycopg

import perdure
from perdure.app import Engine
from perdure.compose.store import open_store
from perdure.ports.tables.rows import TABLES
from perdure.settings import Settings
from perdure.testing import StoppedClock
from proof.harness import Case, Promise, Round
from proof.lived import MARKS, Life, Quoting, by_kind, by_name, derive, keep, secret, talk
from proof.servers import fresh_store
from proof.traces import files_below, needles, traces
from proof.wholeness import check_whole

T = TypeVar("T")
LOG = "pg_wal"
LOG_KEEPS = (
    "still has the words after a purge, until the server reuses its segments, in its own time; so have archives and replicas"
)
QUICK_ON_POSTGRES = ("a user", "messages")
QUICK_RACES = 13
CROWD = 40
RACED = ("messages", "messages", "a person", "a user")
DERIVING = {
    "curate",
    "extract",
    "index",
    "lessons",
    "periodic_flush",
    "rolling_digest",
    "session_digest",
    "spine",
    "sweep",
    "tally",
    "transcript",
}
"""Kinds of jobs that make something of what was said."""
PLAIN = {mark.encode(): mark for mark in MARKS}
STEP_S = 60.0
PAUSE_S = 1.0
SAID_ONLY = ("message", "answer", "meta", "call", "result", "thanks")
"""Kinds of which, without a model, nothing is learned: with their session they are gone."""
STORED_IN = {
    "messages",
    "operations",
    "records",
    "record_terms",
    "state_revisions",
    "series_past",
    "digests",
    "decisions",
    "agent_states",
}
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
        """Every file of the store, and what lies beside it."""
        found = files_below(self.folder)
        if self.data is not None:
            with psycopg.connect(self.settings.url, autocommit=True) as connection:
                connection.execute("CHECKPOINT")
                paths = [path for (path,) in connection.execute(FILES_OF_SCHEMA, (self.settings.postgres_schema,))]
            for path in paths:
                for part in self.data.glob(f"{path}*"):
                    found[str(part)] = part.read_bytes()
        return found

    def sample(self) -> None:
        """Have PostgreSQL take its samples of what is stored just now."""
        if self.data is not None:
            with psycopg.connect(self.settings.url, autocommit=True) as connection:
                connection.execute("ANALYZE")

    def around(self) -> dict[str, bytes]:
        """Everything else that the PostgreSQL server has changed: catalogs, statistics, its messages; and its log."""
        return {} if self.data is None else files_below(self.data, since=self.since)


FILES_OF_SCHEMA = """
    WITH tables AS (SELECT oid, reltoastrelid FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'),
         heaps AS (SELECT oid FROM tables UNION SELECT reltoastrelid FROM tables WHERE reltoastrelid <> 0)
    SELECT pg_relation_filepath(oid) FROM heaps
    UNION SELECT pg_relation_filepath(indexrelid) FROM pg_index WHERE indrelid IN (SELECT oid FROM heaps)
"""


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
            ways = HOW if place.data is None or round.size == "full" else QUICK_ON_POSTGRES
            for how in ways if round.begins else ():
                with round.guarded(f"{place.name}, {how}"):
                    _forget_and_search(round, place, how)
            for trial in (_forget_in_a_crowd, _forget_under_a_reader, _die_after_forgetting) if round.begins else ():
                with round.guarded(f"{place.name}, {trial.__name__}"):
                    trial(round, place)
        boundaries = _boundaries(places[0])
        # In the quick round the last of each kind, before its effect, and what else fits; in the full one all, on both stores.
        last = [one for one, after in pairwise([*boundaries, ("", 0)]) if one[0] != after[0]]
        for case in round.cases(quick=QUICK_RACES, full=max(100, 2 * len(boundaries)), name="races"):
            if round.size == "quick":
                place = places[case.number % 6 == 5]
                at = last[case.number] if case.number < len(last) else case.chance.choice(boundaries)
                how = "messages" if case.number < len(last) else case.chance.choice(RACED)
            else:
                place, at = places[case.number % 2], boundaries[case.number // 2 % len(boundaries)]
                how = case.chance.choice(RACED)
            with round.guarded(f"{place.name}, race"):
                _race(round, place, case, at, how)
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
    # Where all of a user goes, the name goes, too.
    user = f"{secret('user') if how == 'a user' else 'ana'}{round.counts['ways']}"
    life = by_name(user) if how == "a person" else by_kind(user)
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
        place.sample()
        answer = HOW[how](engine, life)
        if how == "a session":
            engine.process(STEP_S)
            engine.purge()
        _finish(round, place, engine, answer)
        _search(round, place, wanted, f"{how} forgotten")
        derive(engine, place.clock)
        # What jobs replace by what they make anew stands in freed space until then.
        engine.purge()
        _search(round, place, wanted, f"{how} forgotten, and jobs have run since")
        _search_copies(round, place, engine, wanted, life)
        check_whole(round, engine, when=f"{place.name}: {how} forgotten")
        round.count("ways")
        if how in ("memories", "a session"):
            _finish(round, place, engine, _mine(engine, life).forget(user=True))  # this way is meant to leave something
    _search(round, place, needles(MARKS, life.texts), f"{how} forgotten, and the store is closed")


def _finish(round: Round, place: Place, engine: Engine, answer: Any) -> None:
    """Have the job run that the answer tells of; if it tells of none, there is nothing to wait for."""
    remain = getattr(answer, "bytes_remain", "later")
    told = any("erasure: " in line for line in engine.doctor().degraded)
    unsaid = not hasattr(answer, "bytes_remain")
    round.check(unsaid or bool(remain) == told, "silent", f"{place.name}: the answer says {remain!r}, `doctor` {told}")
    if remain:
        place.clock.move(minutes=11)
        engine.process(STEP_S)
        round.met(f"{place.name}: bytes were erased by the job")
        round.check(engine._services.admin.erasures.waiting() is None, "erasure hangs", place.name)


def _forget_in_a_crowd(round: Round, place: Place) -> None:
    """Rows of many users move from page to page while others come; then every second user goes."""
    names = [f"{secret('crowd')}{number:02}" for number in range(CROWD)]
    gone = needles(names[::2])
    with place.open() as engine:
        for turn in range(3):
            for user in Random(f"{round.seed}/{turn}").sample(names, CROWD):
                said = [
                    {"id": f"{turn}-{one}", "memory": f"{user} has {one} boats{'!' * (31 * one % 300)}"} for one in range(15)
                ]
                engine.memory(user).import_(BytesIO(json.dumps([{**one, "user_id": user} for one in said]).encode()))
        place.sample()
        for user in names[::2]:
            answer = engine.memory(user).forget(user=True)
        _finish(round, place, engine, answer)
        _search(round, place, gone, "every second user of a crowd forgotten")
        round.met(f"{place.name}: the others are still there", len(traces(place.bytes(), needles(names[1::2]))))
        check_whole(round, engine, when=f"{place.name}: every second user of a crowd forgotten")
        for user in names[1::2]:
            answer = engine.memory(user).forget(user=True)
        _finish(round, place, engine, answer)


def _forget_under_a_reader(round: Round, place: Place) -> None:
    """Somebody reads on as of before: the answer says that bytes remain, and once the reader is gone a worker erases them."""
    life = by_kind("read")
    short = replace(place, settings=replace(place.settings, deadline_s=1.0))
    with short.open() as engine:
        talk(engine, life)
        with engine._store.snapshot() as snapshot:
            next(iter(snapshot.rows("messages")))
            answer = _mine(engine, life).forget(user=True)
            round.check(bool(answer.bytes_remain), "silent", f"{place.name}: a reader held the bytes, and the answer was none")
            round.check(
                bool(engine.purge().bytes_remain), "silent", f"{place.name}: a reader held the bytes, and a purge was done"
            )
            round.met(f"{place.name}: a reader held the bytes", len(traces(place.bytes(), PLAIN)))
        _finish(round, place, engine, answer)
        _search(round, place, needles(MARKS, life.texts), "a user forgotten under a reader")


def _die_after_forgetting(round: Round, place: Place) -> None:
    """The process ends between the two: a worker finds what is to be erased."""
    life = by_kind("dying")
    with place.open() as engine:
        talk(engine, life)
        with patch.object(type(engine._store), "overwrite", side_effect=KeyboardInterrupt), suppress(KeyboardInterrupt):
            _mine(engine, life).forget(user=True)
        round.met(f"{place.name}: died with bytes on the disk", len(traces(place.bytes(), PLAIN)))
    with place.open() as engine:
        _finish(round, place, engine, None)
        _search(round, place, needles(MARKS, life.texts), "a user forgotten by a process that died")


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
    plain = {needle: what for needle, what in wanted.items() if what.endswith(" as utf-8")}
    for trace in traces(place.around(), plain):
        if LOG in trace:
            round.facts["PostgreSQL's own write-ahead log"] = LOG_KEEPS
        else:
            round.wrong("trace", f"{place.name}: {when}: {trace}")


def _search_copies(round: Round, place: Place, engine: Engine, wanted: dict[bytes, str], life: Life) -> None:
    """Whatever is copied out of the store now has none of it either."""
    folder = place.folder / "copies"
    folder.mkdir()
    engine.backup(folder / "backup")
    engine.export(folder / "all.jsonl.gz")
    if secret("user") not in life.user:  # or it would be named by whoever asks for it
        _mine(engine, life).export(folder / "one.jsonl")
        _mine(engine, life).export(folder / "vault", "vault")
    for trace in traces(files_below(folder), wanted)[:10]:
        round.wrong("trace in a copy", f"{place.name}: {trace}")
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
    """A store that stands still once, where a job of some kind has read or is about to write, as if a model took its time."""

    def __init__(self, store: Any, kind: str, pause_at: int) -> None:
        self._store = store
        self._kind, self._left = kind, pause_at
        self.kind = ""
        """Of the job that runs."""
        self.passed: Counter[str] = Counter()
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
        self.passed[self.kind] += 1
        if self.kind == self._kind:
            self._left -= 1
            if self._left == 0:
                self.reached.set()
                self.go_on.wait(STEP_S)


def _working(place: Place, kind: str, pause_at: int) -> tuple[PausingStore, Engine]:
    store = PausingStore(open_store(place.settings), kind, pause_at)
    engine = Engine(store, place.clock, place.settings, models={"summariser": Quoting(), "extractor": Quoting()})

    def noting(kind: str, handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def handle(job: Any) -> Any:
            store.kind = kind
            return handler(job)

        return handle

    composed = engine._composed
    handlers = {kind: noting(kind, handler) for kind, handler in composed.handlers.items()}
    engine._composed = replace(composed, handlers=handlers)
    return store, engine


def _boundaries(place: Place) -> list[tuple[str, int]]:
    """Where the jobs of such a life could be interrupted: the kind, and how often it has read or written by then."""
    with place.open() as engine:
        talk(engine, by_kind("dry"))
    store, working = _working(place, "", 0)
    with working:
        derive(working, place.clock)
        working.memory("dry").forget(user=True)
    counts = {kind: count for kind, count in store.passed.items() if kind in DERIVING}
    return [(kind, number) for kind in sorted(counts) for number in range(1, counts[kind] + 1)]


def _race(round: Round, place: Place, case: Case, at: tuple[str, int], how: str) -> None:
    """Something is forgotten while a job that has read it stands still; then the job goes on."""
    user = f"racing{case.number}"
    life = by_name(user) if how == "a person" else by_kind(user)
    with place.open() as engine:
        talk(engine, life)
        if how == "a person":
            engine.memory(user).remember("Is a friend", "PEOPLE", entities=[f"person:{life.name}"])
        store, working = _working(place, *at)
        worker = threading.Thread(target=derive, args=(working, place.clock))
        worker.start()
        while worker.is_alive() and not store.reached.wait(0.01):
            pass
        round.met("forgotten while a job stood still", store.reached.is_set())
        round.met(f"a job stood still: {at[0]}", store.reached.is_set())
        # A job may hold the lock of a file where it stands: then forgetting has to wait for it.
        waking = threading.Timer(PAUSE_S, store.go_on.set)
        waking.start()
        HOW[how](engine, life)
        waking.cancel()
        store.go_on.set()
        worker.join(STEP_S)
        round.check(not worker.is_alive(), "job hangs", f"{place.name}: {how}, {at}")
        working.close()
        derive(engine, place.clock)
        when = f"{place.name}: {how} forgotten while {at[0]} stood at its boundary {at[1]}"
        for table, row in _rows(engine):
            if user in row and any(mark in row for mark in MARKS):
                round.wrong("resurrected", f"{when}: in {table}: {row[:500]}")
        files = files_below(place.folder / "files" / "default" / user) | files_below(place.folder / "agents")
        for trace in traces(files, PLAIN)[:3]:
            round.wrong("resurrected", f"{when}: {trace}")
        check_whole(round, engine, when=when)


PROMISE = Promise(
    id="P16",
    says="forgotten means gone: from every byte that is left, and never brought back",
    tried_by="one secret in every kind of thing that can be stored, forgotten in each way there is; then database, log, index, "
    "files, backups and exports are searched for it in every encoding; in a crowd, under a reader and by a process that dies, whose bytes "
    "a job erases; and forgetting races jobs that have read it, on both stores",
    run=_run,
    evidence=(
        "SQLite: the secret was on the disk",
        "PostgreSQL: the secret was on the disk",
        "forgotten while a job stood still",
        "SQLite: a reader held the bytes",
        "PostgreSQL: a reader held the bytes",
        "PostgreSQL: bytes were erased by the job",
        "SQLite: died with bytes on the disk",
    ),
    figure="{wrong} traces over {ways} ways of forgetting and {searches} searches of {bytes searched} bytes; {races} races",
)
