"""Tables spread over many servers by Citus: how they get there, and whether they are as they should be.

What a cluster needs was found out on Citus 13.2 over PostgreSQL 15; docs/SCALE.md tells it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from psycopg import Cursor, sql

from perdure.adapters.postgres.schema import LOCK
from perdure.adapters.postgres.schema import size as local_size
from perdure.adapters.postgres.statements import COMMITS, quoted
from perdure.domain.errors import PerdureError, Unavailable, Unsupported
from perdure.domain.reports import Finding
from perdure.domain.scope import RESERVED, Owner
from perdure.domain.values import dataclass
from perdure.ports.tables.rows import TABLES

BY = "user_id"
"""The column that says which server a row is on: all that a call touches is one user's."""
IN_ORDER = (*TABLES, COMMITS)
"""What is referred to comes first: a table can only refer to one that is distributed."""
FIRST = IN_ORDER[0]
PROBES = 1_000
"""So many made-up users are enough to find one on each node."""
LAW = "the tables are distributed alike"

NO_CITUS = (
    "this PostgreSQL has no Citus; install it on every server, run CREATE EXTENSION citus in the database, add the others with "
    "citus_add_node, then try again"
)
NO_NODE = "the cluster has no node that may hold shards; add one with citus_add_node, then try again"
NOT_COORDINATOR = "this server is not the coordinator of the cluster; run it there"
NOT_OWNER = "only the owner of the tables can distribute them; run it as that role"
OWNER_SERVES = (
    "the role owns the tables, and in a cluster row-level security does not bind their owner, so it serves no request; connect "
    "as another role, see docs/how-to/cluster.md"
)

# The catalogs of Citus, which every role may read.
HELD = """
SELECT c.relname, p.colocationid, c.relforcerowsecurity FROM pg_dist_partition AS p JOIN pg_class AS c ON c.oid = p.logicalrelid
WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)
"""
NODES = """
SELECT nodename, nodeport, isactive FROM pg_dist_node WHERE noderole = 'primary' AND shouldhaveshards
ORDER BY nodename, nodeport
"""
ON_EACH_NODE = """
SELECT DISTINCT ON (n.nodename, n.nodeport) n.nodename || ':' || n.nodeport, probe.name
FROM (SELECT 'perdure:probe-' || number AS name FROM generate_series(1, %s) AS number) AS probe
JOIN pg_dist_placement AS p ON p.shardid = get_shard_id_for_distribution_column(%s::regclass, probe.name)
JOIN pg_dist_node AS n ON n.groupid = p.groupid AND n.noderole = 'primary'
ORDER BY n.nodename, n.nodeport, probe.name
"""
# Answered by the server that holds the rows, of which there need not be any: what is set there, not here.
ARRIVED = f"""
SELECT current_setting('perdure.space', true), current_setting('perdure.user', true), count(*) FROM {FIRST}
WHERE space = %s AND user_id = %s
"""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What Citus says of the store."""

    version: str
    places: dict[str, int]
    """Of each table that is distributed, by which others it lies."""
    forced: frozenset[str]
    """Those whose owner is bound by row-level security, too: their shards cannot be moved while they are in use."""
    nodes: tuple[str, ...]
    away: tuple[str, ...]
    """Nodes that are out of use."""

    @property
    def spread(self) -> bool:
        """Whether rows are on other servers, if only those of some tables."""
        return bool(self.places)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(table for table in IN_ORDER if table not in self.places)


def look(cursor: Cursor[Any], schema: str) -> Cluster | None:
    """The cluster that this server coordinates or belongs to; None if it has no Citus."""
    found = cursor.execute("SELECT extversion FROM pg_extension WHERE extname = 'citus'").fetchone()
    if found is None:
        return None
    held = [row for row in cursor.execute(HELD, (schema,)).fetchall() if row[0] in IN_ORDER]
    nodes = cursor.execute(NODES).fetchall()
    return Cluster(
        version=found[0],
        places={name: place for name, place, _ in held},
        forced=frozenset(name for name, _, forced in held if forced),
        nodes=tuple(f"{host}:{port}" for host, port, active in nodes if active),
        away=tuple(f"{host}:{port}" for host, port, active in nodes if not active),
    )


def prepare(cursor: Cursor[Any], schema: str, role: str | None) -> Cluster:
    """The cluster, ready to take the tables: or an error that says what is missing. `role` is who will serve requests."""
    cluster = look(cursor, schema)
    if cluster is None:
        raise Unsupported(NO_CITUS)
    if cursor.execute("SELECT groupid FROM pg_dist_local_group").fetchone() != (0,):
        raise Unavailable(NOT_COORDINATOR)
    if not cluster.nodes:
        raise Unavailable(NO_NODE)
    tables = [f"{quoted(schema)}.{table}" for table in IN_ORDER]
    owned = "SELECT bool_and(pg_has_role(relowner, 'USAGE')) FROM pg_class WHERE oid = ANY(%s::regclass[])"
    if cursor.execute(owned, (tables,)).fetchone() != (True,):
        raise Unavailable(NOT_OWNER)
    if role is not None:
        _let_in(cursor, role)
    return cluster


def _let_in(cursor: Cursor[Any], role: str) -> None:
    """The nodes are connected to as the role that serves: it is on all of them, and may log in."""
    cursor.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(role)))
    # One that was made before the cluster was is on this server only. `DO`, because a node runs one statement at a time.
    name = sql.quote(role)
    made = (
        "DO $do$ BEGIN PERFORM set_config('citus.enable_create_role_propagation', 'off', true), "
        "set_config('citus.enable_alter_role_propagation', 'off', true); "
        f"IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {name}) THEN CREATE ROLE {quoted(role)} LOGIN; "
        f"ELSIF NOT (SELECT rolcanlogin FROM pg_roles WHERE rolname = {name}) THEN ALTER ROLE {quoted(role)} LOGIN; "
        "END IF; END $do$"
    )
    cursor.execute("SELECT count(*) FROM run_command_on_workers(%s)", (made,))
    asked = f"SELECT rolcanlogin FROM pg_roles WHERE rolname = {name}"
    told = "SELECT nodename || ':' || nodeport, success AND result = 't' FROM run_command_on_workers(%s)"
    out = [node for node, may in cursor.execute(told, (asked,)).fetchall() if not may]
    if out:
        raise Unavailable(
            f"role `{role}` cannot log in on {', '.join(out)}, which the cluster connects to as that role; "
            f"run CREATE ROLE {quoted(role)} LOGIN there, then try again"
        )


def place(cursor: Cursor[Any], schema: str, table: str) -> bool:
    """Distribute one table by user, beside the first one, in a transaction of its own; False if it was already."""
    name = f"{quoted(schema)}.{quoted(table)}"
    beside = "none" if table == FIRST else f"{quoted(schema)}.{quoted(FIRST)}"
    with cursor.connection.transaction():
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
        cluster = look(cursor, schema)
        if cluster is not None and table in cluster.places:
            return False
        # Forced, it keeps shards from being moved while they are in use. The tables' owner serves no request instead.
        cursor.execute(f"ALTER TABLE {name} NO FORCE ROW LEVEL SECURITY".encode())
        cursor.execute("SELECT create_distributed_table(%s::regclass, %s, colocate_with => %s)", (name, BY, beside))
    return True


def leave_nothing(cursor: Cursor[Any], schema: str) -> None:
    """What was copied to the nodes stays in the local tables, where no call sees it, until it is removed."""
    for table in IN_ORDER:
        cursor.execute(
            "SELECT truncate_local_data_after_distributing_table(%s::regclass)", (f"{quoted(schema)}.{quoted(table)}",)
        )


def probes(cursor: Cursor[Any], schema: str) -> Sequence[tuple[str, str]]:
    """Each node, with the name of a user whose rows would be there."""
    return cursor.execute(ON_EACH_NODE, (PROBES, f"{quoted(schema)}.{quoted(FIRST)}")).fetchall()


def knows_the_owner(cursor: Cursor[Any], *, owner: Owner) -> bool:
    """Whether the server that holds the owner's rows knows whose are meant."""
    [(space, user, _)] = cursor.execute(ARRIVED, (owner.space, owner.user)).fetchall()
    return (space, user) == (owner.space, owner.user)


def lost_on_the_way(read: Callable[[Owner | None, Callable[[Cursor[Any]], Any]], Any], schema: str) -> list[str]:
    """The nodes that do not answer under the role that serves, or do not hear whose rows are meant. `read` is a transaction."""
    found = []
    for node, user in read(None, lambda cursor: probes(cursor, schema)):
        owner = Owner(f"{RESERVED}probe", user)
        try:
            known = read(owner, partial(knows_the_owner, owner=owner))
        except PerdureError as error:
            found.append(f"cluster: node {node} does not answer a request: {error}")
            continue
        if not known:
            found.append(f"cluster: node {node} does not get the name of the user; is it of the same version of Citus?")
    return found


def size(cursor: Cursor[Any], schema: str, cluster: Cluster | None) -> int:
    """The bytes of all tables, on all nodes."""
    if cluster is None or not cluster.spread:
        return local_size(cursor, schema)
    total = "SELECT coalesce(sum(citus_total_relation_size(p.logicalrelid)), 0)::bigint FROM pg_dist_partition AS p"
    named = (
        "JOIN pg_class AS c ON c.oid = p.logicalrelid WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = %s)"
    )
    [(held,)] = cursor.execute(f"{total} {named}".encode(), (schema,)).fetchall()
    return int(held)


def findings(cluster: Cluster) -> Iterator[Finding]:
    """What is not as `prepare` and `place` leave it."""
    if not cluster.spread:
        return
    for table in cluster.missing:
        yield Finding(LAW, f"table {table}", "is not distributed, although others are; run `perdure admin distribute`")
    first = cluster.places.get(FIRST)
    for table, where in cluster.places.items():
        if where != first:
            yield Finding(LAW, f"table {table}", f"does not lie beside table {FIRST}")
        if table in cluster.forced:
            yield Finding(LAW, f"table {table}", "has forced row-level security, so that its shards cannot be moved in use")


def degraded(cluster: Cluster) -> list[str]:
    """The same in words for `doctor`, and the nodes that are out of use."""
    lines = [f"cluster: {one.where} {one.seen}" for one in findings(cluster)]
    lines += [f"cluster: node {node} is out of use; bring it back with citus_activate_node" for node in cluster.away]
    return lines


Catalog = set[tuple[str, str, str]]


def differences(held: Catalog, fresh: Catalog, cluster: Cluster | None) -> Catalog:
    """What a store's catalog has otherwise than a new one's. Once distributed, row-level security is not forced."""
    if cluster is None or not cluster.spread:
        return held ^ fresh
    expected = {
        (kind, name, "true false") if kind == "row security" and name in IN_ORDER else (kind, name, text)
        for kind, name, text in fresh
    }
    # A coordinator may hold shards itself: tables of the same names with numbers behind them.
    return {one for one in held if not _SHARD.fullmatch(one[1])} ^ expected


_SHARD = re.compile(rf"({'|'.join(IN_ORDER)})_\w*?\d{{5,}}(\..*)?")
