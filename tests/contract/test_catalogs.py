"""Isolation by construction, read from the databases themselves: every key starts with space and user."""

from __future__ import annotations

from pathlib import Path

import apsw
import psycopg
import pytest
from psycopg import sql

import perdure
from perdure.adapters.postgres import schema as postgres_migrating
from perdure.adapters.postgres.store import PostgresStore
from perdure.adapters.sql.statements import queries
from perdure.adapters.sqlite.store import SqliteStore
from perdure.domain.scope import Owner
from perdure.ports.tables.rows import TABLES
from perdure.testing.contract.samples import ANA, BOB, HERE, fill

PREFIX = ["space", "user_id"]
# The worker looks for due work of everybody. No call about a user reads this index, and it is not unique.
NOT_BY_OWNER = {"jobs_due"}


def sqlite_indexes(path: Path) -> dict[str, list[str]]:
    connection = apsw.Connection(str(path))
    found = {}
    for table in TABLES:
        for _, name, *_ in connection.execute(f"PRAGMA index_list({table})").fetchall():
            found[name] = [row[2] for row in connection.execute(f"PRAGMA index_info({name!r})").fetchall()]
    connection.close()
    return found


def test_sqlite_keys_and_indexes_start_with_the_owner(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a.db").close()
    indexes = sqlite_indexes(tmp_path / "a.db")
    assert len(indexes) >= len(TABLES)
    assert {name for name, columns in indexes.items() if columns[:2] != PREFIX} == NOT_BY_OWNER


def test_sqlite_foreign_keys_stay_within_the_owner(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a.db").close()
    connection = apsw.Connection(str(tmp_path / "a.db"))
    seen = 0
    for table in TABLES:
        keys: dict[int, list[tuple[str, str]]] = {}
        for number, _, _, ours, theirs, *_ in connection.execute(f"PRAGMA foreign_key_list({table})").fetchall():
            keys.setdefault(number, []).append((ours, theirs))
        for pairs in keys.values():
            seen += 1
            assert pairs[:2] == [("space", "space"), ("user_id", "user_id")]
    assert seen >= 6
    connection.close()


def test_sqlite_tables_are_strict_and_complete(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "a.db").close()
    connection = apsw.Connection(str(tmp_path / "a.db"))
    found = {
        name: strict
        for _, name, kind, _, _, strict in connection.execute("PRAGMA table_list")
        if kind == "table" and not name.startswith("sqlite_")
    }
    assert found.keys() == TABLES.keys() | {"perdure_migrations"}
    assert set(found.values()) == {1}
    connection.close()


@pytest.fixture
def postgres(postgres_url: str, postgres_schema: str):  # type: ignore[no-untyped-def]
    PostgresStore(postgres_url, schema=postgres_schema).close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(postgres_schema)))
        yield connection


def test_postgres_keys_and_indexes_start_with_the_owner(postgres: psycopg.Connection, postgres_schema: str) -> None:
    found = postgres.execute(
        """SELECT c.relname, array(SELECT a.attname::text FROM unnest(i.indkey) WITH ORDINALITY AS k(n, o)
                                   JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.n ORDER BY k.o)
           FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid JOIN pg_class AS t ON t.oid = i.indrelid
           WHERE t.relnamespace = to_regnamespace(%s) AND t.relname <> 'perdure_migrations'""",
        (postgres_schema,),
    ).fetchall()
    assert len(found) >= len(TABLES)
    assert {name for name, columns in found if columns[:2] != PREFIX} == NOT_BY_OWNER


def test_postgres_foreign_keys_stay_within_the_owner(postgres: psycopg.Connection, postgres_schema: str) -> None:
    found = postgres.execute(
        """SELECT array(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS x(n, o)
                        JOIN pg_attribute AS a ON a.attrelid = k.conrelid AND a.attnum = x.n ORDER BY x.o),
                  array(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS x(n, o)
                        JOIN pg_attribute AS a ON a.attrelid = k.confrelid AND a.attnum = x.n ORDER BY x.o)
           FROM pg_constraint AS k WHERE k.contype = 'f' AND k.connamespace = to_regnamespace(%s)""",
        (postgres_schema,),
    ).fetchall()
    assert len(found) >= 6
    assert all(ours[:2] == PREFIX and theirs[:2] == PREFIX for ours, theirs in found)


def test_postgres_row_security_is_forced_on_every_table(postgres: psycopg.Connection, postgres_schema: str) -> None:
    found = dict(
        postgres.execute(
            "SELECT relname, relrowsecurity AND relforcerowsecurity FROM pg_class "
            "WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'",
            (postgres_schema,),
        ).fetchall()
    )
    assert found == {**dict.fromkeys((*TABLES, "commits"), True), "perdure_migrations": False}


def test_postgres_keeps_no_samples_of_what_was_said_or_named(postgres_url: str, postgres_schema: str) -> None:
    """P16: they would lie in a catalog that only a superuser can clean, after all else was forgotten and purged."""
    settings = perdure.Settings(url=postgres_url, postgres_schema=postgres_schema, access_log="all")
    with perdure.open(settings=settings) as engine:
        ana = engine.memory("vqjzk-user", agent="vqjzk-agent", channel="vqjzk-channel")
        for number in range(4):
            ana.append("user", f"vqjzk likes tea {number}", id=f"vqjzk-{number}", metadata={"vqjzk": number}, session="vqjzk")
            ana.append("user", "vqjzk likes tea", session="vqjzk")
            ana.state.save(f"vqjzk/{number}", "vqjzk")
            ana.state.save("vqjzk", f"vqjzk {number}", request=f"vqjzk-{number}")
            day, after = f"2026-01-0{number + 1}", f"2026-01-0{number + 2}"
            ana.series("vqjzk").merge([{"id": f"vqjzk-{number}", "timestamp": day, "a": "vqjzk"}], window=(day, after))
            ana.todos.add(f"write to vqjzk {number}")
            ana.remember(f"vqjzk owns {number} boats", entities=[f"person:vqjzk{number}"])
        engine.process(60)
        ana.before("what does vqjzk like?")
        with psycopg.connect(postgres_url, autocommit=True) as superuser:
            superuser.execute("ANALYZE")
            samples = superuser.execute(
                "SELECT tablename, attname, concat(most_common_vals, histogram_bounds) FROM pg_stats WHERE schemaname = %s",
                (postgres_schema,),
            ).fetchall()
    assert any(name == "role" and "user" in text for _, name, text in samples), "it does sample"
    assert [(table, name) for table, name, text in samples if "vqjzk" in text] == []


def test_samples_of_names_from_before_are_gone_after_the_migration(postgres_url: str, postgres_schema: str) -> None:
    """P16: ANALYZE does not touch the samples of a column that it is to sample no more."""
    chosen = perdure.Settings(url=postgres_url, postgres_schema=postgres_schema)
    with perdure.open(settings=chosen) as engine:
        for number in range(4):
            engine.memory("vqjzk-user", agent="vqjzk-agent").append("user", f"hello {number}")
    named = "SELECT tablename, attname FROM pg_stats WHERE schemaname = %s AND attname IN ('user_id', 'agent', 'content')"
    with psycopg.connect(postgres_url, autocommit=True) as superuser:
        superuser.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(postgres_schema)))
        for column in ("user_id", "agent"):
            superuser.execute(f"ALTER TABLE messages ALTER COLUMN {column} SET STATISTICS -1".encode())
        superuser.execute("CREATE VIEW of_somebody_else AS SELECT user_id FROM sessions")
        superuser.execute("DELETE FROM perdure_migrations WHERE version >= 11")
        superuser.execute("ANALYZE")
        assert superuser.execute(named, (postgres_schema,)).fetchall() != []
        files = (
            "SELECT relname, relfilenode FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'i') "
            "AND relname NOT IN ('jobs_open', 'sessions_open') ORDER BY 1"
        )
        before = superuser.execute(files, (postgres_schema,)).fetchall()
        with perdure.open(settings=chosen) as engine:
            assert superuser.execute(named, (postgres_schema,)).fetchall() == []
            assert superuser.execute(files, (postgres_schema,)).fetchall() == before, "something was written anew"
            superuser.execute("ANALYZE")
            assert superuser.execute(named, (postgres_schema,)).fetchall() == []
            superuser.execute("DROP VIEW of_somebody_else")
            assert engine.verify().clean


def test_postgres_itself_refuses_other_owners_rows_when_our_conditions_are_gone(
    postgres_url: str, postgres_schema: str
) -> None:
    """The application's role and transaction, but statements without any WHERE."""
    store = PostgresStore(postgres_url, schema=postgres_schema)
    fill(store, ANA, 1, 2)
    fill(store, BOB, 1)

    def unconditioned(cursor: psycopg.Cursor) -> tuple[int, int, int]:
        seen = len(cursor.execute("SELECT * FROM messages").fetchall())
        changed = cursor.execute("UPDATE sessions SET tokens = 7").rowcount
        deleted = cursor.execute("DELETE FROM messages").rowcount
        return seen, changed, deleted

    assert store._transact("BEGIN", BOB, unconditioned) == (1, 1, 1)
    assert store._transact("BEGIN", Owner("default", "nobody"), unconditioned) == (0, 0, 0)
    with pytest.raises(Exception, match=r"perdure and PostgreSQL disagree|privilege"):
        store._transact("BEGIN", BOB, lambda cursor: cursor.execute("INSERT INTO owners VALUES ('default', 'ana', 0)"))
    with store.snapshot() as snapshot:
        assert len(list(snapshot.rows("messages"))) == 2
    assert store.read(ANA, lambda view: view.latest_session(HERE)).tokens == 2
    store.close()


def test_postgres_works_under_a_role_that_owns_nothing(postgres_url: str, postgres_schema: str) -> None:
    store = PostgresStore(postgres_url, schema=postgres_schema)

    def who(cursor: psycopg.Cursor) -> tuple[object, ...]:
        return cursor.execute(
            "SELECT current_user::text, rolsuper, rolbypassrls, "
            "(SELECT count(*) FROM pg_class WHERE relowner = r.oid) FROM pg_roles AS r WHERE rolname = current_user"
        ).fetchone()

    assert store._transact("BEGIN", ANA, who) == (postgres_migrating.APP_ROLE, False, False, 0)
    store.close()


def test_both_databases_have_the_same_queries() -> None:
    """A `_locked` or `_shared` variant exists where rows can be locked one by one."""
    sqlite = queries("perdure.adapters.sqlite").keys()
    postgres = queries("perdure.adapters.postgres").keys()
    assert sqlite == {name for name in postgres if not name.endswith(("_locked", "_shared"))}
    assert {name.removesuffix("_locked").removesuffix("_shared") for name in postgres} == sqlite
