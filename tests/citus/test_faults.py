"""A node that crashes in the middle of writes, and a shard that is moved while it is written to: nothing acknowledged is lost."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql

import citus_cluster
import perdure
from perdure.adapters.postgres import cluster as clusters

USERS = tuple(f"user-{number}" for number in range(16))
PATIENCE_S = 180.0
KILL, START = "CITUS_KILL", "CITUS_START"
"""Commands of a shell that end a node and start it again, for who wants more than a crash of its PostgreSQL: `NODE` is its host."""
CRASH = """
DO $do$ BEGIN
    IF (SELECT groupid FROM pg_dist_local_group) = {group} THEN
        EXECUTE format('COPY (SELECT 1) TO PROGRAM %L', 'kill -9 ' || pg_backend_pid());
    END IF;
END $do$
"""


class Writers:
    """Append for every user, over and over, under ids of their own; whoever is refused tries the same id again."""

    def __init__(self, engine: perdure.Engine) -> None:
        self._engine = engine
        self.acknowledged: dict[str, list[str]] = defaultdict(list)
        self.refused: dict[str, list[str]] = defaultdict(list)
        self.slowest_s = 0.0
        self.broken: list[str] = []
        self._stop = threading.Event()

    def _write(self, user: str) -> None:
        memory, number = self._engine.memory(user), 0
        try:
            while not self._stop.is_set():
                began = time.monotonic()
                try:
                    memory.append("user", f"message {number}", id=f"{user}-{number}")
                except perdure.Unavailable as error:
                    self.refused[user].append(str(error))
                    self._stop.wait(0.2)
                    continue
                self.acknowledged[user].append(f"{user}-{number}")
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                number += 1
        except Exception as error:
            self.broken.append(f"{user}: {error!r}")

    @contextmanager
    def at_work(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._write, args=(user,)) for user in USERS]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join()

    def wait_for_more(self, users: tuple[str, ...] = USERS, count: int = 10) -> None:
        """Until each of them was acknowledged so often once more."""
        wanted = {user: len(self.acknowledged[user]) + count for user in users}
        _wait(lambda: bool(self.broken) or all(len(self.acknowledged[user]) >= wanted[user] for user in users))
        assert self.broken == []


def _wait(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until, f"it did not happen within {PATIENCE_S:g} s"
        time.sleep(0.05)


@pytest.fixture
def cluster(distributed_schema: tuple[str, str]) -> Iterator[tuple[str, str, perdure.Engine]]:
    url, schema = distributed_schema
    citus_cluster.empty(url, schema)
    settings = perdure.Settings(url=url, postgres_schema=schema, deadline_s=10.0, postgres_pool_max=len(USERS))
    with perdure.open(settings=settings) as engine:
        yield url, schema, engine


def _check_nothing_is_lost(url: str, schema: str, engine: perdure.Engine, writers: Writers) -> None:
    query = sql.SQL("SELECT user_id, id FROM {} ORDER BY user_id, session_number, seq").format(
        sql.Identifier(schema, "messages")
    )
    held: dict[str, list[str]] = defaultdict(list)
    with psycopg.connect(url) as connection:
        for user, name in connection.execute(query).fetchall():
            held[user].append(name)
    for user in USERS:
        assert len(held[user]) == len(set(held[user])), f"{user}: something is there twice"
        # The last one may have been stored without that anybody heard of it.
        assert held[user][: len(writers.acknowledged[user])] == writers.acknowledged[user], f"{user}: lost, or out of order"
        assert len(held[user]) <= len(writers.acknowledged[user]) + 1
    assert engine.verify().findings == ()
    total = sum(map(len, writers.acknowledged.values()))
    refused = sum(map(len, writers.refused.values()))
    print(f"{total:,} acknowledged, 0 lost, {refused:,} refused and tried again, slowest {writers.slowest_s:.1f} s")


def _crash(url: str, group: int, host: str) -> None:
    if os.environ.get(KILL):
        subprocess.run(os.environ[KILL], shell=True, check=True, env={**os.environ, "NODE": host})
        return
    with psycopg.connect(url, autocommit=True) as connection:
        # The node throws everybody out and recovers, as after any crash of one of its processes.
        connection.execute("SELECT count(*) FROM run_command_on_workers(%s)", (CRASH.format(group=group),))


def test_a_node_that_crashes_in_the_middle_of_writes_loses_nothing(cluster: tuple[str, str, perdure.Engine]) -> None:
    url, schema, engine = cluster
    with psycopg.connect(url, autocommit=True) as connection:
        places = {user: citus_cluster.node_of(connection, schema, user) for user in USERS}
    # A coordinator that holds shards, too, is not crashed: everybody goes through it.
    victims = sorted({place for place in places.values() if place[0] != 0})
    if not victims:
        pytest.fail("all users are on the coordinator; add a node with citus_add_node", pytrace=False)
    group, host, _ = victims[0]
    there = tuple(user for user in USERS if places[user][0] == group)
    elsewhere = tuple(user for user in USERS if places[user][0] != group)
    writers = Writers(engine)
    with writers.at_work():
        writers.wait_for_more()
        _crash(url, group, host)
        if elsewhere:
            writers.wait_for_more(elsewhere)
        if os.environ.get(START):
            subprocess.run(os.environ[START], shell=True, check=True, env={**os.environ, "NODE": host})
        writers.wait_for_more(there)
    assert {user: writers.refused[user] for user in elsewhere if writers.refused[user]} == {}, (
        "the other nodes served throughout"
    )
    _check_nothing_is_lost(url, schema, engine, writers)


def test_a_shard_that_is_moved_while_it_is_written_to_loses_nothing(cluster: tuple[str, str, perdure.Engine]) -> None:
    url, schema, engine = cluster
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        nodes = [tuple(node.rsplit(":", 1)) for node in getattr(clusters.look(cursor, schema), "nodes", ())]
        user = USERS[0]
        _, host, port = citus_cluster.node_of(connection, schema, user)
        targets = [(name, int(number)) for name, number in nodes if (name, int(number)) != (host, port)]
        if not targets:
            pytest.fail("there is one node only; add another one with citus_add_node to move a shard to", pytrace=False)
        table = sql.Identifier(schema, clusters.FIRST).as_string(connection)
        [(shard,)] = connection.execute(
            "SELECT get_shard_id_for_distribution_column(%s::regclass, %s::text)", (table, user)
        ).fetchall()
        writers = Writers(engine)
        with writers.at_work():
            writers.wait_for_more()
            move = "SELECT citus_move_shard_placement(%s, %s, %s, %s, %s, shard_transfer_mode => 'force_logical')"
            try:
                connection.execute(move, (shard, host, port, *targets[0]))
            except psycopg.Error as error:
                if "wal_level" in str(error):
                    pytest.fail("the nodes have no logical decoding; set wal_level = logical there", pytrace=False)
                raise
            writers.wait_for_more()
        assert citus_cluster.node_of(connection, schema, user)[1:] == targets[0]
    _check_nothing_is_lost(url, schema, engine, writers)
