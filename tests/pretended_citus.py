"""A database that answers like one with Citus: its catalogs and functions, as far as perdure asks for them, on one plain server.

What cannot be had here is a second server, so nothing is moved. What is told apart is what Citus refuses or demands: which
table comes first, beside which one it lies, what was set before, under which role. Calls are noted in `pg_catalog.citus_calls`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

NODES = (("node-a", 5432), ("node-b", 5432))

CATALOGS = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.citus_calls (number bigint GENERATED ALWAYS AS IDENTITY, call text, role name DEFAULT current_user);
CREATE TABLE pg_catalog.pg_dist_local_group (groupid int);
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass PRIMARY KEY, partmethod "char", colocationid int);
CREATE TABLE pg_catalog.pg_dist_node (groupid int, nodename text, nodeport int, isactive bool, noderole text, shouldhaveshards bool);
CREATE TABLE pg_catalog.pg_dist_placement (shardid bigint, groupid int);
INSERT INTO pg_catalog.pg_dist_local_group VALUES (0);
INSERT INTO pg_catalog.pg_dist_placement VALUES (102008, 1), (102009, 2);
GRANT SELECT ON ALL TABLES IN SCHEMA pg_catalog TO public;

CREATE FUNCTION pg_catalog.create_distributed_table(
    held regclass, by_column text, distribution_type text DEFAULT 'hash', colocate_with text DEFAULT 'default'
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE beside int := 0;
BEGIN
    IF EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = held) THEN
        RAISE EXCEPTION 'table % is already distributed', held;
    END IF;
    IF EXISTS (SELECT FROM pg_constraint AS k WHERE k.conrelid = held AND k.contype = 'f' AND k.confrelid <> held
               AND NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = k.confrelid)) THEN
        RAISE EXCEPTION 'table % refers to a table that is not distributed', held;
    END IF;
    IF colocate_with <> 'none' THEN
        SELECT colocationid INTO STRICT beside FROM pg_dist_partition WHERE logicalrelid = colocate_with::regclass;
    ELSE
        SELECT 1 + coalesce(max(colocationid), 0) INTO beside FROM pg_dist_partition;
    END IF;
    INSERT INTO pg_dist_partition VALUES (held, 'h', beside);
    INSERT INTO citus_calls (call) VALUES (format('distribute %s by %s', held, by_column));
END $$;

CREATE FUNCTION pg_catalog.truncate_local_data_after_distributing_table(held regclass) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    -- Here the local rows are the only ones: they stay.
    IF NOT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = held) THEN
        RAISE EXCEPTION 'table % is not distributed', held;
    END IF;
    INSERT INTO citus_calls (call) VALUES (format('truncate local %s', held));
END $$;

CREATE FUNCTION pg_catalog.get_shard_id_for_distribution_column(held regclass, chosen text) RETURNS bigint LANGUAGE sql AS $$
    SELECT 102008 + abs(hashtext(chosen)) % 2
$$;

CREATE FUNCTION pg_catalog.citus_total_relation_size(held regclass) RETURNS bigint LANGUAGE sql AS $$
    SELECT pg_total_relation_size(held)
$$;

CREATE FUNCTION pg_catalog.run_command_on_workers(command text)
RETURNS TABLE (nodename text, nodeport int, success bool, result text) LANGUAGE plpgsql AS $$
DECLARE answer text := 'DO';
BEGIN
    IF command LIKE 'SELECT%' THEN EXECUTE command INTO answer; ELSE EXECUTE command; END IF;
    answer := CASE answer WHEN 'true' THEN 't' WHEN 'false' THEN 'f' ELSE answer END;
    RETURN QUERY SELECT n.nodename, n.nodeport, true, answer FROM pg_dist_node AS n WHERE n.isactive;
END $$;

INSERT INTO pg_catalog.pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
VALUES (99999, 'citus', 10, 11, false, '13.2-1');
"""


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a new database on that server."""
    name = f"citus_{uuid.uuid4().hex[:12]}"
    parts = urlsplit(server)
    url = urlunsplit(parts._replace(path=f"/{name}"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(CATALOGS.encode())
            for group, (host, port) in enumerate(NODES, start=1):
                added = "INSERT INTO pg_dist_node VALUES (%s, %s, %s, true, 'primary', true)"
                connection.execute("SET allow_system_table_mods = on")
                connection.execute(added, (group, host, port))
        yield url
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
