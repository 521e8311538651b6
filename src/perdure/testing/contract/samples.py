"""Small values the contract is told with, and how work is run by many threads at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

from perdure.domain.conversation.messages import Message, Session
from perdure.domain.jobs import Claim, Job, NewJob, Settlement
from perdure.domain.scope import Address, MessageId, Owner, SessionId
from perdure.ports.store import Store, Tx

ANA = Owner("default", "ana")
BOB = Owner("default", "bob")
HERE = Address("coach", "discord:42")
THERE = Address("coach", "discord:43")
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
DONE = Settlement("done", None, 1, None, failed=False)


def a_session(number: int = 1, *, address: Address = HERE, messages: int = 0, name: str | None = None) -> Session:
    return Session(
        address=address,
        number=number,
        id=SessionId(name or f"s{number}"),
        opened_at=NOW,
        last_at=NOW,
        ended_at=None,
        messages=messages,
        tokens=messages,
    )


def a_message(seq: int = 1, *, number: int = 1, address: Address = HERE, name: str | None = None) -> Message:
    return Message(
        id=MessageId(name or f"m{number}.{seq}"),
        session=SessionId(f"s{number}"),
        session_number=number,
        seq=seq,
        role="user",
        content=f"message {seq}",
        at=NOW,
        tokens=1,
        metadata={},
        address=address,
    )


def fill(store: Store, owner: Owner, *seqs: int, number: int = 1, address: Address = HERE) -> None:
    """Append messages with these seqs to a session, made on the way."""

    def work(tx: Tx) -> None:
        tx.put_sessions([a_session(number, address=address, messages=max(seqs))])
        tx.append([a_message(seq, number=number, address=address, name=f"{address.channel}/{number}.{seq}") for seq in seqs])

    store.write(owner, work)


def a_job(key: str = "k", *, kind: str = "count", due_at: datetime = NOW, repeat: str | None = None) -> NewJob:
    return NewJob(kind, key, due_at, {"n": 1}, attempts_max=3, repeat=repeat)


def enqueue(store: Store, job: NewJob, owner: Owner = ANA, *, now: datetime = NOW, queue_max: int = 100) -> bool:
    return store.write(owner, lambda tx: tx.enqueue(job, now=now, queue_max=queue_max))


def claim(store: Store, *, now: datetime = NOW, limit: int = 1, owner: Owner | None = None, lease_s: float = 60.0) -> list[Job]:
    return store.claim(Claim(worker="w", kinds=("count",), now=now, lease_s=lease_s, limit=limit, owner=owner))


def settle(store: Store, job: Job, end: Settlement = DONE, *, now: datetime = NOW) -> bool:
    return store.write(job.owner, lambda tx: tx.settle(job, end, now=now))


def held_job(store: Store, key: str = "k", owner: Owner = ANA) -> Job:
    job = store.read(owner, lambda view: view.find_job("count", key))
    assert job is not None
    return job


def run_together(work: Callable[[], object], *, threads: int) -> None:
    """The same work in many threads that start at one moment; what any of them raises is raised."""
    start = threading.Barrier(threads)
    trouble: list[BaseException] = []

    def run() -> None:
        start.wait(30)
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - handed on below
            trouble.append(error)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if trouble:
        raise trouble[0]
