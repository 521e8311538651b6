"""Whether PostgreSQL goes by indexes although it keeps no samples of users, agents and channels.

At a million messages of 10,000 users, with statistics gathered, calls of every kind are made, and the server counts how often
it read a large table from end to end. Then the plans of some look-ups are printed. `--url` is a server that may be written to;
the schema is dropped afterwards.
"""

from __future__ import annotations

import argparse
import sys
import time
import uuid
from pathlib import Path

sys.path.append(str(Path(__file__).parent))

import psycopg
from psycopg import sql

import crowd
import perdure

NUMBERS = "SELECT generate_series({first}, {last}) AS n"
MESSAGES_EACH = 100
LARGE_ROWS = 20_000
LOOKED_UP = {
    "a session's messages": "SELECT * FROM messages WHERE space = 'default' AND user_id = 'user-77' AND agent = 'default' "
    "AND channel = 'default' AND session_number = 1 ORDER BY seq DESC LIMIT 20",
    "a message by its id": "SELECT * FROM messages WHERE space = 'default' AND user_id = 'user-77' AND id = 'x'",
    "records of a kind": "SELECT * FROM records WHERE space = 'default' AND user_id = 'user-77' AND kind = 'memory' "
    "ORDER BY key",
    "new entries of the index": "SELECT * FROM index_entries WHERE space = 'default' AND user_id = 'user-77' AND number > 5 "
    "ORDER BY number",
    "the journal": "SELECT * FROM operations WHERE space = 'default' AND user_id = 'user-77' ORDER BY seq DESC LIMIT 50",
    "all of a user": "DELETE FROM messages WHERE space = 'default' AND user_id = 'user-77'",
}
SCANS = "SELECT relname, seq_scan, n_live_tup FROM pg_stat_user_tables WHERE schemaname = %s"


def visit(engine: perdure.Engine, number: int) -> None:
    """Calls of every kind for one user, and the jobs they cause."""
    memory = engine.memory(f"user-{number}")
    memory.append("user", "I have a boat in harbour 7", id=f"visit-{number}")
    memory.messages(20)
    memory.recall("boats in the harbour")
    memory.context("what about the boats?")
    memory.before("what about the boats?")
    memory.remember("Has 7 boats", entities=["person:skipper7"])
    memory.state.load("harbour 1")
    memory.series("runs").query("2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z")
    memory.journal.list()
    memory.forget(entity="person:skipper1")
    memory.admin.jobs()
    engine.process(5)


def fill(connection: psycopg.Connection, schema: str, users: int) -> None:
    connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
    connection.execute("SET session_replication_role = replica")  # what is copied refers to what is copied

    def columns(table: str) -> list[str]:
        found = "SELECT column_name FROM information_schema.columns WHERE table_schema = %s AND table_name = %s"
        return [name for (name,) in connection.execute(found, (schema, table)).fetchall()]

    crowd.multiply(lambda query: connection.execute(query.encode()), columns, 1, users, NUMBERS)
    connection.execute("SET session_replication_role = origin")
    connection.execute("ANALYZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--users", type=int, default=10_000)
    chosen = parser.parse_args()
    schema = f"plans_{uuid.uuid4().hex[:8]}"
    settings = perdure.Settings(url=chosen.url, postgres_schema=schema)
    with psycopg.connect(chosen.url, autocommit=True) as connection:
        try:
            with perdure.open(settings=settings) as engine:
                crowd.make_template(engine, MESSAGES_EACH)
                began = time.perf_counter()
                fill(connection, schema, chosen.users)
                print(f"filled in {time.perf_counter() - began:.0f} s")
                connection.execute("SELECT pg_stat_clear_snapshot()")
                time.sleep(1.5)  # the server tells its counts once a second
                before = {name: scans for name, scans, _ in connection.execute(SCANS, (schema,)).fetchall()}
                for number in (17, 4_711 % chosen.users, chosen.users - 1):
                    visit(engine, number)
            time.sleep(1.5)
            connection.execute("SELECT pg_stat_clear_snapshot()")
            large = [
                (name, n - before[name], rows) for name, n, rows in connection.execute(SCANS, (schema,)) if rows > LARGE_ROWS
            ]
            for name, scans, rows in sorted(large):
                print(f"{name:16} {rows:9,} rows, read from end to end {scans} times")
            for what, query in LOOKED_UP.items():
                plan = [line for (line,) in connection.execute(f"EXPLAIN {query}".encode()).fetchall()]
                print(f"\n{what}:")
                print("\n".join(f"    {line}" for line in plan))
        finally:
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


if __name__ == "__main__":
    main()
