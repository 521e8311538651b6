"""PostgreSQL of which another server takes over: a URL with several hosts finds it, and what was acknowledged is there."""

from __future__ import annotations

import os
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import psycopg
import psycopg_pool
import pytest

import etcd_server
import perdure
import pg
import replica
from perdure.adapters.postgres import connections
from proof.cluster import Cluster, patroni_cluster
from proof.crashing import CrashingServer
from system_programs import NotToBeHad

WRITERS = 3
MESSAGES_AFTER = 5
PATIENCE_S = 90.0
WAITING = "SELECT pid, query FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

Eventually = Callable[..., None]


@pytest.fixture(scope="module")
def server() -> Iterator[CrashingServer]:
    """A server that may be stopped and set up anew; each test has a store of its own on it, and leaves the server as it was."""
    server = CrashingServer()
    yield server
    server.stop()


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    """The name of a store that no other test uses."""
    return f"store_{zlib.crc32(request.node.name.encode())}"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three servers under Patroni. Where etcd cannot be had, its tests are left out and say so; in CI they fail."""
    try:
        etcd_server.find()
    except NotToBeHad as error:
        if os.environ.get("CI"):
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        pytest.skip(f"left out: {error}")
    with patroni_cluster() as cluster:
        yield cluster


@pytest.fixture
def aside() -> Iterator[Callable[..., Future[Any]]]:
    """Make a call in a thread of its own."""
    with ThreadPoolExecutor(4) as pool:
        yield pool.submit


# -- one server that comes back, or stands still


def test_a_call_that_waits_for_the_server_goes_on_when_it_is_back(
    server: CrashingServer, store: str, aside: Callable[..., Future[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pool gives up an attempt after a while, and begins another for whoever still waits, not for the next call alone."""
    given_up = threading.Semaphore(0)
    failed = psycopg_pool.ConnectionPool.reconnect_failed

    def noticed(pool: Any) -> None:
        failed(pool)
        given_up.release()

    monkeypatch.setattr(psycopg_pool.ConnectionPool, "reconnect_failed", noticed)
    monkeypatch.setattr(connections, "RECONNECT_S", 0.05)
    with perdure.open(settings=pg.settings(server.url, store, deadline_s=60.0)) as engine:
        ana = engine.memory("ana")
        ana.append("user", "before")
        server.stop_immediately()
        waiting = aside(ana.append, "user", "after")
        for _ in range(4):
            assert given_up.acquire(timeout=20.0), "nobody tries to connect any more"
        server.restart()
        waiting.result(30.0)
        assert [message.content for message in ana.messages()] == ["before", "after"]


def test_a_server_that_is_silent_from_the_start_leaves_time_for_the_others(postgres_url: str, postgres_schema: str) -> None:
    """It takes the connection and says nothing, as one that is paused: it may use a part of the time, not all of it."""
    folder = postgres_url.rsplit("host=", 1)[1]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"host=127.0.0.1,{folder}&port={silent.getsockname()[1]},5432"
        url = f"postgresql://postgres@/postgres?{hosts}&target_session_attrs=read-write"
        settings = perdure.Settings(url=url, postgres_schema=postgres_schema, deadline_s=600.0)
        with perdure.open(settings=settings) as engine:
            engine.memory("ana").append("user", "hello")
            assert engine.doctor().store.location == f"{folder}:5432 (one of 2 servers)/postgres, schema {postgres_schema}"
            # The pool has learned whom to ask first.
            assert engine._store._servers.address().index(folder) < engine._store._servers.address().index("127.0.0.1")  # type: ignore[attr-defined]


# -- a primary that was


def test_a_primary_that_turns_read_only_is_left_for_the_one_that_takes_over(
    server: CrashingServer, store: str, aside: Callable[..., Future[Any]], eventually: Eventually
) -> None:
    """Its sessions live on, as behind a proxy or before a planned switch; a call waits for the new primary and returns."""
    with replica.streaming(server.data) as follower:
        follower_folder = follower.rsplit("host=", 1)[1]
        url = f"postgresql://postgres@/postgres?host={server.data},{follower_folder}&target_session_attrs=read-write"
        with (
            perdure.open(settings=pg.settings(url, store, deadline_s=60.0)) as engine,
            psycopg.connect(server.url, autocommit=True) as watching,
        ):
            ana = engine.memory("ana")
            ana.append("user", "before", id="m0")
            assert f"{server.data}:5432 (one of 2 servers)" in engine.doctor().store.location
            _set(watching, "default_transaction_read_only", "on", eventually)
            waiting = aside(ana.append, "user", "after", id="m1")
            replica.catch_up(server.url, follower)
            with psycopg.connect(follower, autocommit=True) as promoting:
                promoting.execute("SELECT pg_promote()")
            assert not waiting.result(50.0).repeated
            assert [message.id for message in ana.messages()] == ["m0", "m1"]
            assert f"{follower_folder}:5432 (one of 2 servers)" in engine.doctor().store.location
            assert engine.verify().findings == ()
            _set(watching, "default_transaction_read_only", "off", eventually)


def test_a_replica_says_that_it_is_one_at_once_where_no_primary_was_asked_for(server: CrashingServer, store: str) -> None:
    with perdure.open(settings=pg.settings(server.url, store)) as engine:
        engine.memory("ana").append("user", "hello")
    with replica.streaming(server.data) as follower:
        replica.catch_up(server.url, follower)
        with perdure.open(settings=pg.settings(follower, store, deadline_s=3_600.0)) as reading:
            with pytest.raises(perdure.Unavailable, match="use the primary"):
                reading.memory("ana").append("user", "hello again")


def test_a_commit_whose_wait_for_the_replica_was_cancelled_is_not_acknowledged_until_the_replica_has_it(
    server: CrashingServer, store: str, aside: Callable[..., Future[Any]], eventually: Eventually
) -> None:
    """PostgreSQL answers such a COMMIT with success and a warning: after a failover it would be gone."""
    with (
        perdure.open(settings=pg.settings(server.url, store, deadline_s=60.0)) as engine,
        psycopg.connect(server.url, autocommit=True) as watching,
    ):
        ana = engine.memory("ana")
        ana.append("user", "before", id="m0")
        _set(watching, "synchronous_standby_names", "nobody", eventually)
        waiting = aside(ana.state.save, "count", 1)
        eventually(lambda: watching.execute(WAITING).fetchone() is not None)
        [(process, query)] = watching.execute(WAITING).fetchall()
        watching.execute("SELECT pg_cancel_backend(%s)", (process,))
        # It is asked for by its token, which waits for the replica in turn.
        eventually(lambda: waiting.done() or any(said != query for _, said in watching.execute(WAITING).fetchall()))
        assert not waiting.done()
        _set(watching, "synchronous_standby_names", "", eventually)
        assert waiting.result(50.0) == 1
        assert [revision.number for revision in ana.state.history("count")] == [1]


def _set(connection: psycopg.Connection[Any], name: str, value: str, eventually: Eventually) -> None:
    connection.execute(f"ALTER SYSTEM SET {name} = '{value}'".encode())
    connection.execute("SELECT pg_reload_conf()")
    eventually(lambda: connection.execute(f"SHOW {name}".encode()).fetchone() == (value,))


# -- Patroni


def test_three_servers_lose_and_double_nothing_when_the_primary_is_killed_under_load(
    cluster: Cluster, eventually: Eventually
) -> None:
    """Synchronous replication; every writer repeats what was refused, under the same id."""
    acknowledged: dict[str, list[str]] = {f"user-{number}": [] for number in range(WRITERS)}
    answered: list[float] = []
    troubles: list[str] = []
    enough = threading.Event()

    def write(engine: perdure.Engine, user: str) -> None:
        memory = engine.memory(user)
        until = time.monotonic() + PATIENCE_S
        while not enough.is_set() and time.monotonic() < until:
            name = f"{user}-{len(acknowledged[user])}"
            try:
                memory.append("user", f"message {name}", id=name)
            except perdure.Unavailable:
                continue
            except Exception as error:
                troubles.append(repr(error))
                return
            acknowledged[user].append(name)
            answered.append(time.monotonic())

    with perdure.open(settings=perdure.Settings(url=cluster.url, deadline_s=5.0)) as engine:
        threads = [threading.Thread(target=write, args=(engine, user)) for user in acknowledged]
        for thread in threads:
            thread.start()
        eventually(lambda: troubles or all(len(ids) >= MESSAGES_AFTER for ids in acknowledged.values()), seconds=30.0)
        old = cluster.primary()
        old.kill_postgres()
        killed_at = time.monotonic()
        new = cluster.another_primary(old)
        before = {user: len(ids) for user, ids in acknowledged.items()}
        eventually(
            lambda: troubles or all(len(ids) >= before[user] + MESSAGES_AFTER for user, ids in acknowledged.items()),
            seconds=PATIENCE_S,
        )
        enough.set()
        for thread in threads:
            thread.join()
        assert troubles == []
        times = [killed_at, *(one for one in sorted(answered) if one > killed_at)]
        gap = max(later - earlier for earlier, later in pairwise(times))
        print(f"without service for {gap:.1f} s; acknowledged: {sum(map(len, acknowledged.values()))}")
        for user, ids in acknowledged.items():
            held = [message.id for message in engine.memory(user).messages(10_000)]
            assert held[: len(ids)] == ids
            assert len(held) <= len(ids) + 1, "at most what was on its way when it ended"
        assert engine.verify().findings == ()
        assert f":{new.from_clients.port} (one of 3 servers)" in engine.doctor().store.location
