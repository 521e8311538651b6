"""A Citus cluster that somebody has, named by `make test-citus URL=…`: tests make a schema of their own there, and drop it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psycopg
from psycopg import sql

from perdure.adapters.postgres import cluster as clusters
from perdure.adapters.postgres.store import PostgresStore

NAMED_BY = "CITUS_URL"
SHARDS = 8
"""Few: a table of the tests is empty most of the time, and each shard is one more table on a node."""
DISTRIBUTE_S = 600.0


class NoCluster(Exception):
    """What `URL` names cannot be used; the words say what is missing."""


def url() -> str | None:
    """The coordinator, if a cluster is named."""
    return os.environ.get(NAMED_BY) or None


def check(coordinator: str) -> None:
    """`NoCluster` if the tests cannot run there."""
    try:
        with psycopg.connect(coordinator, autocommit=True, connect_timeout=10) as connection:
            row = connection.execute("SELECT rolsuper, current_user FROM pg_roles WHERE rolname = current_user").fetchone()
            if row is None or not row[0]:
                raise NoCluster(
                    f"role {row and row[1]!r} is no superuser; the tests make roles and crash a node: name one that is"
                )
            with connection.cursor() as cursor:
                found = clusters.look(cursor, "none of ours")
    except psycopg.OperationalError as error:
        raise NoCluster(f"the coordinator cannot be reached: {str(error).strip()}") from error
    if found is None:
        raise NoCluster(clusters.NO_CITUS)
    if not found.nodes:
        raise NoCluster(clusters.NO_NODE)
    if found.away:
        raise NoCluster(f"node {found.away[0]} is out of use; bring it back with citus_activate_node")


@contextmanager
def distributed(coordinator: str) -> Iterator[str]:
    """The name of a schema with the tables of a new store, spread over the nodes."""
    check(coordinator)
    name = f"t_{uuid.uuid4().hex[:16]}"
    mark = "&" if "?" in coordinator else "?"
    with_shards = f"{coordinator}{mark}options={quote(f'-c citus.shard_count={SHARDS}')}"
    try:
        store = PostgresStore(with_shards, schema=name, deadline_s=DISTRIBUTE_S)
        try:
            store.distribute()
        finally:
            store.close()
        yield name
    finally:
        with psycopg.connect(coordinator, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


def empty(coordinator: str, schema: str) -> None:
    """Leave no row of a test before."""
    tables = sql.SQL(", ").join(sql.Identifier(schema, table) for table in clusters.IN_ORDER)
    with psycopg.connect(coordinator, autocommit=True) as connection:
        connection.execute(sql.SQL("TRUNCATE {}").format(tables))


def node_of(connection: psycopg.Connection[tuple[object, ...]], schema: str, user: str) -> tuple[int, str, int]:
    """The group, the host and the port of the node that holds a user's rows."""
    asked = """
        SELECT n.groupid, n.nodename, n.nodeport FROM pg_dist_placement AS p JOIN pg_dist_node AS n ON n.groupid = p.groupid
        WHERE n.noderole = 'primary' AND p.shardid = get_shard_id_for_distribution_column(%s::regclass, %s::text)
    """
    table = sql.Identifier(schema, clusters.FIRST).as_string(connection)
    [(group, host, port)] = connection.execute(asked, (table, user)).fetchall()
    return int(group), str(host), int(port)  # type: ignore[call-overload]
