"""What docs/SCALE.md says of PostgreSQL: every key starts with the user, so that the tables can be split by user as they are."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

import perdure
import pg
from perdure.adapters.postgres import store as postgres
from perdure.adapters.sqlfiles import queries, schema
from perdure.ports.rows import TABLES

PACKAGE = "perdure.adapters.postgres"
PARTS = 3
OF_THE_STORE = {
    # The queue and the reports are about everybody; a worker may ask each shard in turn.
    "due_jobs", "count_jobs", "list_dead", "remove_done", "total_usage",
    # After a restore or a migration, once.
    "seed_index_heads", "seed_index_jobs",
}  # fmt: skip


def partitioned(text: str) -> str:
    """The schema with every table split by user."""
    made = re.sub(r"(CREATE TABLE \w+ \(.*?\n\));", r"\1 PARTITION BY HASH (space, user_id);", text, flags=re.DOTALL)
    parts = [
        f"CREATE TABLE {table}_{number} PARTITION OF {table} FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {number});"
        for table in TABLES
        for number in range(PARTS)
    ]
    return made + "\n" + "\n".join(parts)


def test_every_key_and_every_reference_of_every_table_starts_with_the_user(postgres_url, postgres_schema):
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)), psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            """SELECT c.relname, k.contype::text, ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS n (num, place)
                      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = n.num ORDER BY n.place)
               FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid JOIN pg_namespace AS s ON s.oid = c.relnamespace
               WHERE s.nspname = %s AND k.contype IN ('p', 'u', 'f')""",
            (postgres_schema,),
        ).fetchall()
    keyed = {table for table, kind, _ in found if kind == "p"}
    assert keyed == {*TABLES, "perdure_migrations"}
    assert [(table, columns) for table, _, columns in found if table in TABLES and columns[:2] != ["space", "user_id"]] == []


def test_every_statement_but_those_about_the_whole_store_names_the_user():
    """So that a router sends it to one shard, and no join crosses users."""
    sql = queries(PACKAGE)
    nameless = {
        name
        for name, text in sql.items()
        if not (
            re.search(r"\buser_id = %s|VALUES \(%s(::text)?, %s|\(%s, %s", text) or re.search(r"INSERT INTO \w+ VALUES", text)
        )
    }
    assert nameless <= OF_THE_STORE, f"{nameless - OF_THE_STORE} may reach more than one user"
    assert sql.keys() >= OF_THE_STORE


def test_a_store_split_by_user_works_as_it_is(postgres_url, postgres_schema, monkeypatch):
    """The schema with its tables partitioned by hash of the user, and nothing else changed."""
    text = partitioned(schema(PACKAGE))
    monkeypatch.setattr(postgres, "schema_sql", lambda _: text)
    start = datetime(2026, 3, 1, tzinfo=UTC)
    users = [f"user-{number}" for number in range(12)]
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        for user in users:
            memory = engine.memory(user)
            memory.append("user", f"{user} lives in Lisbon and likes long runs")
            memory.remember(f"{user} works at Acme")
            memory.state.save("home", {"city": "Lisbon"})
            entries = [{"id": "1", "timestamp": start.isoformat(), "km": 5}]
            memory.series("runs").merge(entries, window=(start, start + timedelta(days=1)))
        assert engine.process(60).failed == 0
        for user in users:
            memory = engine.memory(user)
            assert any(user in hit.text for hit in memory.recall("where does she live").hits)
            assert memory.state.load("home") == {"city": "Lisbon"}
            assert memory.series("runs").gaps(start, start + timedelta(days=2)) != ()
        engine.memory(users[0]).forget(user=True)
        assert engine.memory(users[0]).messages() == []
        assert engine.verify().findings == ()
    with psycopg.connect(postgres_url) as connection:
        held = [
            connection.execute(f"SELECT count(*) FROM {postgres_schema}.messages_{number}").fetchone()
            for number in range(PARTS)
        ]
    assert all(count > 0 for (count,) in held), "every part holds some of the users"


def test_an_engine_on_a_server_that_may_only_be_read_reads_and_refuses_to_write(postgres_url, postgres_schema):
    """As on a replica: nothing is granted, made or counted when it is opened."""
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Lisbon")
        ana.state.save("home", {"city": "Lisbon"})
        engine.process(60)
    mark = "&" if "?" in postgres_url else "?"
    reading = f"{postgres_url}{mark}options=-c%20default_transaction_read_only%3Don"
    with perdure.open(settings=pg.settings(reading, postgres_schema)) as engine:
        ana = engine.memory("ana")
        assert [one.content for one in ana.messages()] == ["I live in Lisbon"]
        assert "Lisbon" in ana.recall("where do I live").hits[0].text
        assert ana.state.load("home") == {"city": "Lisbon"}
        assert "Lisbon" in ana.context().text
        with pytest.raises(perdure.Unavailable, match="read-only"):
            ana.append("user", "I moved")
        assert len(ana.messages()) == 1


@pytest.mark.parametrize("table", TABLES)
def test_the_user_is_in_the_first_two_columns_of_every_table(table):
    assert TABLES[table].columns[:2] == ("space", "user_id")
