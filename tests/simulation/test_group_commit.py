"""Writes that arrive together share one sync, and each caller waits for it."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

import perdure
from perdure.adapters.sqlite.store import SqliteStore
from perdure.domain.conversation.messages import Session
from perdure.domain.scope import Address, Owner, SessionId
from perdure.ports.store import Tx
from tests.simulation.watched_disk import Image, WatchedDisk, ids_after_power_cut, watched_disk

THREADS = 16
EACH = 10


@pytest.fixture
def disk() -> Iterator[WatchedDisk]:
    with watched_disk() as disk:
        yield disk


def in_threads(work: Callable[[int], None], count: int) -> list[threading.Thread]:
    """Threads that start together; what one of them raises fails the test."""
    together = threading.Barrier(count)

    def run(number: int) -> None:
        together.wait(30)
        work(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def append_in_threads(memory: perdure.Memory, disk: WatchedDisk) -> list[tuple[str, Image]]:
    """Each acknowledged id, and what a power cut would have left right after the acknowledgement."""
    acknowledged: list[tuple[str, Image]] = []

    def append(number: int) -> None:
        for turn in range(EACH):
            message = memory.append("user", f"{number} {turn}")
            acknowledged.append((message.id, disk.durable()))

    for thread in in_threads(append, THREADS):
        thread.join(60)
    assert len(acknowledged) == THREADS * EACH
    return acknowledged


def lost_by_power_cut(acknowledged: list[tuple[str, Image]], directory: Path) -> list[str]:
    """The ids that a power cut right after their acknowledgement would have taken away."""
    held: dict[int, set[str]] = {}
    for _, image in acknowledged:
        if id(image) not in held:
            held[id(image)] = ids_after_power_cut(image, directory / f"cut-{len(held)}")
    return [found for found, image in acknowledged if found not in held[id(image)]]


def test_appends_that_arrive_together_share_a_sync_and_return_when_it_is_done(disk, sqlite, tmp_path):
    with sqlite.open() as engine:
        memory = engine.memory("ana")
        memory.append("user", "the file is there")
        disk.log_sync_s = 0.02
        before = disk.log_syncs
        acknowledged = append_in_threads(memory, disk)
        syncs = disk.log_syncs - before
        assert engine.verify().findings == ()
    print(f"{len(acknowledged)} appends, {syncs} syncs")
    assert syncs <= 60
    assert lost_by_power_cut(acknowledged, tmp_path) == []


def test_a_store_told_to_be_fast_returns_before_the_disk_has_it(disk, sqlite, tmp_path):
    """The control of the one above: what shows that nothing is lost can show that something is."""
    with sqlite.open(durability="normal") as engine:
        acknowledged = append_in_threads(engine.memory("ana"), disk)
    assert len(lost_by_power_cut(acknowledged, tmp_path)) > 0


def test_a_lone_writer_pays_one_sync_for_each_append(disk, sqlite, tmp_path):
    with sqlite.open() as engine:
        memory = engine.memory("ana")
        memory.append("user", "the file is there")
        before = disk.log_syncs
        for number in range(10):
            message = memory.append("user", str(number))
            assert disk.log_syncs - before == number + 1
            assert message.id in ids_after_power_cut(disk.durable(), tmp_path / f"cut-{number}")


def test_no_append_returns_while_its_sync_is_under_way(disk, sqlite):
    with sqlite.open() as engine:
        memory = engine.memory("ana")
        memory.append("user", "the file is there")
        disk.passable.clear()
        returned = threading.Event()

        def append(_: int) -> None:
            memory.append("user", "patience")
            returned.set()

        threads = in_threads(append, 3)
        assert disk.stuck.wait(30)
        assert not returned.wait(0.05)
        disk.passable.set()
        for thread in threads:
            thread.join(30)
        assert returned.is_set()


ANA = Owner("default", "ana")


def put(number: int) -> Callable[[Tx], int]:
    """Work that leaves one row behind, a session without messages."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    session = Session(Address(), number, SessionId(f"s{number}"), at, at, None, 0, 0)

    def work(tx: Tx) -> int:
        tx.put_sessions([session])
        return number

    return work


class Clumsy(Exception):
    """What somebody's work raises."""


def test_work_that_fails_in_a_group_fails_alone(disk, tmp_path, eventually):
    """Whether it had written before or not, nothing of it remains, and the others are committed, with one sync."""
    store = SqliteStore(tmp_path / "perdure.db")

    def fail_at_once(tx: Tx) -> int:
        raise Clumsy

    def fail_after_writing(tx: Tx) -> int:
        put(100)(tx)
        raise Clumsy

    works = [put(3), fail_after_writing, put(4), fail_at_once, put(5), fail_after_writing, put(6)]
    outcomes: dict[int, object] = {}

    def write(number: int) -> None:
        try:
            outcomes[number] = store.write(ANA, works[number])
        except Clumsy as error:
            outcomes[number] = type(error)

    try:
        store.write(ANA, put(1))
        disk.passable.clear()
        leader = in_threads(lambda _: store.write(ANA, put(2)), 1)
        assert disk.stuck.wait(30)
        others = in_threads(write, len(works))
        eventually(lambda: len(store._group._queue) == len(works))
        before = disk.log_syncs
        disk.passable.set()
        for thread in leader + others:
            thread.join(30)
        assert outcomes == {0: 3, 1: Clumsy, 2: 4, 3: Clumsy, 4: 5, 5: Clumsy, 6: 6}
        assert disk.log_syncs == before + 1
        sessions = store.read(ANA, lambda view: view.list_sessions(None, limit=100))
        assert sorted(session.number for session in sessions) == [1, 2, 3, 4, 5, 6]
    finally:
        store.close()


def test_a_sync_that_fails_is_an_error_to_everybody_in_the_group_and_the_store_goes_on(disk, sqlite):
    with sqlite.open() as engine:
        memory = engine.memory("ana")
        memory.append("user", "the file is there")
        errors: list[str] = []

        def append(number: int) -> None:
            try:
                memory.append("user", "hello", id=f"m{number}")
            except perdure.Unavailable:
                errors.append(f"m{number}")

        disk.log_sync_s = 0.01
        disk.broken = True
        for thread in in_threads(append, 6):
            thread.join(60)
        assert sorted(errors) == [f"m{number}" for number in range(6)]

        disk.broken = False
        assert memory.append("user", "again").id in {message.id for message in memory.messages()}
        for number in range(6):
            memory.append("user", "hello", id=f"m{number}")
        assert len(memory.messages()) == 8
        assert engine.verify().findings == ()
