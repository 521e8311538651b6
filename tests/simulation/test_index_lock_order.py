"""On a store with row locks, whatever writes the index at once takes its locks in one order: no deadlock has to be broken.

As `test_lock_order`, for those who index: messages, memories, todos, deleting, forgetting, undoing, and several workers that
make vectors and packs, of one embedder or of two.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import count

import pytest

import perdure
from perdure import Conflict, InvalidInput, Memory, NotFound
from perdure.adapters.memory.store import MemoryStore
from perdure.app import Engine
from perdure.domain.context.recall import NewEntry
from perdure.ports.store import Tx
from perdure.ports.tables.index import Pack
from perdure.ports.tables.rows import TABLES
from perdure.services.index import job
from scripted_embedder import ScriptedEmbedder
from tests.simulation.test_lock_order import deadlocks, own_database, together  # noqa: F401 - a fixture

Open = Callable[..., perdure.Engine]
ROUNDS = 8
NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.fixture
def open_engine(own_database: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:  # noqa: F811 - a fixture
    """Engines on a new store with small packs. Once they are closed, the database must not have had a deadlock to break."""
    for name, value in (("EMBED_BATCH", 3), ("PACK_ITEMS", 4), ("PAGE", 5), ("GONE_MAX", 10)):
        monkeypatch.setattr(job, name, value)
    schema = f"t_{uuid.uuid4().hex[:16]}"
    before = deadlocks(own_database)
    opened: list[perdure.Engine] = []

    def open_one(name: str = "scripted") -> perdure.Engine:
        chosen = perdure.Settings(url=own_database, postgres_schema=schema)
        opened.append(perdure.open(settings=chosen, embedder=ScriptedEmbedder(name=name)))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.close()
    assert deadlocks(own_database) == before


def speak(memory: Memory) -> None:
    for number in range(ROUNDS * 4):
        words = f"boat {number}, and from now on say boat" if number % 5 == 0 else f"boat {number}"
        with suppress(Conflict):  # the session was just deleted
            memory.append("user", words, session=f"s{number // 4}")


def know(memory: Memory) -> None:
    for number in range(ROUNDS * 2):
        memory.remember(f"Owns boat {number % 5}", "PEOPLE", entities=[f"person:Skipper {number % 3}"])
        with suppress(Conflict, NotFound, InvalidInput):
            memory.todos.add(f"Paint boat {number % 4}")
            memory.state.save(f"boat{number % 3}", number)
            listed = memory.memories.list(archived=True)
            if listed:  # they may just have been forgotten
                getattr(memory.memories, "restore" if number % 2 else "archive")(listed[number % len(listed)].memory.record_key)


def take_away(memory: Memory) -> None:
    for number in range(ROUNDS):
        with suppress(Conflict, NotFound, InvalidInput):
            memory.forget(entity=f"person:Skipper {number % 3}")
        with suppress(Conflict, NotFound, InvalidInput):
            memory.undo(memory.journal.list(1)[0].seq)
        held = memory.messages(5)
        if held:
            with suppress(NotFound):
                memory.forget(messages=(held[0].id, held[0].id))


def delete(memory: Memory) -> None:
    for number in range(ROUNDS):
        with suppress(Conflict, NotFound):
            memory.conversation.delete(f"s{number}")
        with suppress(Conflict, NotFound):
            memory.state.delete(f"boat{number % 3}")


def while_working(work: Callable[[], None], *workers: Callable[[], None]) -> None:
    """`work` once, and the others over and over until it is done."""
    done = threading.Event()

    def run() -> None:
        try:
            work()
        finally:
            done.set()

    def again(call: Callable[[], None]) -> None:
        for _ in count():
            call()
            if done.is_set():
                return

    together(run, *(partial(again, call) for call in workers))


def check(engine: perdure.Engine) -> None:
    """The index says of everything what one would that is made anew."""
    for _ in range(3):
        engine.process(30)
    assert engine.verify().findings == ()
    copy = MemoryStore()
    with engine._store.snapshot() as snapshot:
        held = ((table, snapshot.rows(table)) for table, spec in TABLES.items() if not spec.rebuilt)
        copy.restore(snapshot.schema_version, held, replace=True)
        indexed = {(row[3], row[4]): row[6] for row in snapshot.rows("index_entries") if row[6]}
    anew = Engine(copy, engine._clock, engine._settings, models={"embedder": ScriptedEmbedder()})
    anew.memory("ana").admin.reindex()
    with anew._store.snapshot() as snapshot:
        assert {(row[3], row[4]): row[6] for row in snapshot.rows("index_entries") if row[6]} == indexed


def test_whoever_drops_packs_has_the_head_first(open_engine: Open) -> None:
    """Forgetting drops all packs, and what takes an entry out drops those that hold it: at once, in both orders."""
    engine = open_engine()
    store, ana = engine._store, engine.memory("ana")
    owner = ana.scope.owner
    for number in range(6):
        store.write(owner, lambda tx, number=number: tx.index.put([NewEntry("x", f"{number}", b"body")], now=NOW))
    for number in range(6):
        store.write(owner, lambda tx: tx.index.put_pack(Pack(1, 6, "", b"pack")))
        met = threading.Barrier(2)

        def all_of_them(tx: Tx, number: int = number, met: threading.Barrier = met) -> None:
            tx.index.remove_packs()
            tx.index.put([NewEntry("y", f"{number}", b"body")], now=NOW)
            with suppress(threading.BrokenBarrierError):
                met.wait(1)

        def one_of_them(tx: Tx, number: int = number, met: threading.Barrier = met) -> None:
            tx.index.remove("x", [f"{number}"], now=NOW)
            with suppress(threading.BrokenBarrierError):
                met.wait(1)

        together(partial(store.write, owner, all_of_them), partial(store.write, owner, one_of_them))


def test_speaking_knowing_and_forgetting_while_workers_index(open_engine: Open) -> None:
    engines = [open_engine() for _ in range(2)]
    ana = engines[0].memory("ana")
    speak(ana)
    know(ana)
    engines[0].process(30)
    deeds = (speak, know, take_away, delete)
    while_working(lambda: together(*(partial(deed, ana) for deed in deeds)), *(partial(one.process, 0.3) for one in engines))
    check(engines[0])


def test_reindexing_while_others_write_and_forget(open_engine: Open) -> None:
    engines = [open_engine() for _ in range(2)]
    ana, other = (engine.memory("ana") for engine in engines)
    speak(ana)
    know(ana)
    while_working(
        lambda: together(partial(know, ana), partial(take_away, ana), partial(delete, ana)),
        other.admin.reindex,
        partial(engines[1].process, 0.3),
    )
    check(engines[0])


def test_two_embedders_at_once_while_others_write_and_forget(open_engine: Open) -> None:
    """Each worker makes the vectors of its own: whoever is last, answers, and packs come and go meanwhile."""
    one, other = open_engine("scripted"), open_engine("other")
    ana = one.memory("ana")
    speak(ana)
    know(ana)
    while_working(
        lambda: together(partial(speak, ana), partial(know, ana), partial(take_away, ana), partial(delete, ana)),
        partial(one.process, 0.3),
        partial(other.process, 0.3),
    )
    check(one)
    with one._store.snapshot() as snapshot:
        [head] = [row for row in snapshot.rows("index_heads") if row[1] == "ana"]
        assert {row[2] for row in snapshot.rows("index_vectors")} <= {head[5], head[7]}, "no vectors of nobody are left"
