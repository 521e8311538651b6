"""On a store with row locks, whatever runs at once takes its locks in one order: the database never has to break a deadlock.

A broken deadlock is repeated and so does no harm to the data, but it costs a second or more each time. The counter is that
of a database of these tests' own, read when all connections have ended and so have reported.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import psycopg
import pytest
from psycopg import sql

import perdure
from perdure import Conflict, Layers, Memory, NewMessage, NotFound

LAYERS = Layers(spine_turns=1, rolling_turns=1, history_messages_max=4, fold_messages_min=3)


@pytest.fixture(scope="module")
def own_database(postgres_url: str) -> Iterator[str]:
    """The URL of a new database on the server of the tests."""
    name = f"t_{uuid.uuid4().hex[:16]}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        yield postgres_url.replace("/postgres?", f"/{name}?")
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture
def open_engine(own_database: str) -> Iterator[Callable[[], perdure.Engine]]:
    """Engines on a new store. Once they are closed, the database must not have had a deadlock to break."""
    schema = f"t_{uuid.uuid4().hex[:16]}"
    before = deadlocks(own_database)
    opened: list[perdure.Engine] = []

    def open_one() -> perdure.Engine:
        chosen = perdure.Settings(url=own_database, postgres_schema=schema, profile="complete", layers=LAYERS)
        opened.append(perdure.open(settings=chosen))
        return opened[-1]

    yield open_one
    for engine in opened:
        engine.close()
    assert deadlocks(own_database) == before


def deadlocks(url: str) -> int:
    with psycopg.connect(url) as connection:
        [(count,)] = connection.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").fetchall()
        return int(count)


def together(*work: Callable[[], object]) -> None:
    start = threading.Barrier(len(work))
    trouble: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        start.wait(30)
        try:
            call()
        except BaseException as error:
            trouble.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if trouble:
        raise trouble[0]


def speak(memory: Memory, count: int) -> None:
    for number in range(count):
        memory.append("user", f"I live in town {number}")


def command(memory: Memory, count: int) -> None:
    for number in range(count):
        memory.append("user", f"Whenever I mention item {number % 7}, give me its price.")
        memory.append("user", "Always answer in French." if number % 2 else "From now on answer in German.")


def test_giving_orders_on_several_channels_while_workers_write_and_orders_are_withdrawn(
    open_engine: Callable[[], perdure.Engine],
) -> None:
    engines = [open_engine() for _ in range(2)]
    done = threading.Event()

    def work(on: perdure.Engine) -> None:
        while not done.is_set():
            on.process(0.2)

    def withdraw() -> None:
        ana = engines[1].memory("ana")
        while not done.is_set():
            for one in ana.instructions.list():
                with suppress(Conflict, NotFound):
                    ana.instructions.withdraw(one.id)

    def talk() -> None:
        channels = [engines[0].memory("ana", channel=f"c{number}") for number in range(4)]
        try:
            together(*(partial(command, memory, 12) for memory in channels))
        finally:
            done.set()

    together(talk, withdraw, *(partial(work, engine) for engine in engines))
    engines[0].process(30)
    assert engines[0].verify().findings == ()


def test_speaking_with_and_without_the_floor(open_engine: Callable[[], perdure.Engine]) -> None:
    engine = open_engine()
    ana = engine.memory("ana")
    ana.append("user", "hello")

    def in_turns() -> None:
        for _ in range(3):
            with ana.turn() as turn:
                for number in range(8):
                    turn.append("user", str(number))

    together(in_turns, in_turns, lambda: speak(ana, 25), lambda: speak(ana, 25))
    assert ana.conversation.agent_state().turns == 99
    assert engine.verify().findings == ()


def test_speaking_on_several_channels_while_several_workers_write_all_layers(
    open_engine: Callable[[], perdure.Engine],
) -> None:
    engines = [open_engine() for _ in range(2)]
    done = threading.Event()

    def work(on: perdure.Engine) -> None:
        while not done.is_set():
            on.process(0.2)

    def talk() -> None:
        channels = [engines[0].memory("ana", channel=f"c{number}") for number in range(4)]
        try:
            together(*(partial(speak, memory, 30) for memory in channels))
        finally:
            done.set()

    together(talk, *(partial(work, engine) for engine in (*engines, engines[1])))
    engines[0].process(30)
    assert engines[0].verify().findings == ()


def test_deleting_clearing_and_resuming_while_others_speak(open_engine: Callable[[], perdure.Engine]) -> None:
    """And no count is lost on the way: whoever changes a session has locked it before reading it."""
    engine = open_engine()
    memories = [engine.memory("ana", channel=f"c{number}") for number in range(2)]
    done = threading.Event()

    def change(memory: Memory) -> None:
        for number in range(12):
            memory.append_many([NewMessage("user", f"{number}.{part}", session=f"s{number}") for part in range(3)])
            for call in ("compact", "clear", "undo", "close", "resume"):
                with suppress(NotFound, Conflict):
                    getattr(memory.conversation, call)()
            memory.context()
            if number % 3 == 2:
                memory.conversation.delete(f"s{number - 1}")

    def work() -> None:
        while not done.is_set():
            engine.process(0.2)

    def all_changes() -> None:
        try:
            together(*(partial(change, memory) for memory in memories), *(partial(speak, memory, 40) for memory in memories))
        finally:
            done.set()

    together(all_changes, work, work)
    engine.process(30)
    assert engine.verify().findings == ()
