"""Fresh schema equals migrated schema, on both databases; a newer or foreign store is refused and left as it was."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import apsw
import psycopg
import pytest
from psycopg import sql

import perdure
from perdure.adapters.postgres import schema as on_postgres
from perdure.adapters.postgres.store import PACKAGE as POSTGRES
from perdure.adapters.postgres.store import PostgresStore
from perdure.adapters.sql.statements import AppliedMigration, Migration, migrations, pending, schema
from perdure.adapters.sqlite import schema as on_sqlite
from perdure.adapters.sqlite.store import PACKAGE as SQLITE
from perdure.adapters.sqlite.store import SqliteStore
from perdure.testing.contract.samples import ANA, fill


def a_migration(version: int, sql_text: str = "SELECT 1") -> Migration:
    return Migration(version, f"step_{version}", sql_text, hashlib.sha256(sql_text.encode()).hexdigest())


EXTRA = "CREATE TABLE extra (space TEXT NOT NULL, user_id TEXT NOT NULL, PRIMARY KEY (space, user_id))"


class TestPlan:
    known = (a_migration(1, "a"), a_migration(2, "b"), a_migration(3, "c"))

    def applied(self, count: int) -> list[AppliedMigration]:
        return [AppliedMigration(one.version, one.checksum) for one in self.known[:count]]

    @pytest.mark.parametrize("count", range(4))
    def test_what_is_missing_runs_in_order(self, count: int) -> None:
        assert pending(self.known, self.applied(count)) == self.known[count:]

    def test_a_newer_store_is_refused(self) -> None:
        with pytest.raises(perdure.Conflict, match=r"schema version 3.*knows 2.*upgrade perdure"):
            pending(self.known[:2], self.applied(3))

    def test_a_changed_migration_is_refused(self) -> None:
        with pytest.raises(perdure.Corrupt, match="checksum"):
            pending(self.known, [AppliedMigration(1, "another")])

    def test_a_history_with_holes_is_refused(self) -> None:
        with pytest.raises(perdure.Corrupt, match="holes"):
            pending(self.known, [AppliedMigration(2, self.known[1].checksum)])


def test_both_databases_have_the_same_migrations_and_their_files_do_not_change() -> None:
    names = [[(one.version, one.name) for one in migrations(package)] for package in (SQLITE, POSTGRES)]
    assert names[0] == names[1]


class TestSqlite:
    def migrated(self, path: Path) -> apsw.Connection:
        connection = apsw.Connection(str(path))
        for migration in migrations(SQLITE):
            on_sqlite.apply(connection, migration)
        return connection

    def test_the_fresh_schema_equals_the_migrated_one(self, tmp_path: Path) -> None:
        fresh = apsw.Connection(":memory:")
        on_sqlite.create(fresh, schema(SQLITE), migrations(SQLITE))
        migrated = self.migrated(tmp_path / "m.db")
        assert on_sqlite.catalog(migrated) == on_sqlite.catalog(fresh)
        assert on_sqlite.applied(migrated) == on_sqlite.applied(fresh)

    def test_a_migrated_store_works_and_verifies(self, tmp_path: Path) -> None:
        self.migrated(tmp_path / "m.db").close()
        with perdure.open(f"sqlite:///{tmp_path}/m.db") as engine:
            engine.memory("ana").append("user", "x")
            assert engine.verify().clean

    def test_an_upgrade_runs_the_missing_steps_and_keeps_the_data(self, tmp_path: Path) -> None:
        store = SqliteStore(tmp_path / "a.db")
        fill(store, ANA, 1)
        store.close()
        connection = apsw.Connection(str(tmp_path / "a.db"))
        longer = (*migrations(SQLITE), a_migration(len(migrations(SQLITE)) + 1, EXTRA))
        assert on_sqlite.migrate(connection, longer, "never used") == len(longer)
        assert connection.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) FROM extra").fetchall() == [(0,)]
        connection.close()

    def test_a_step_that_fails_leaves_the_store_as_it_was(self, tmp_path: Path) -> None:
        SqliteStore(tmp_path / "a.db").close()
        connection = apsw.Connection(str(tmp_path / "a.db"))
        before = on_sqlite.catalog(connection)
        broken = (*migrations(SQLITE), a_migration(len(migrations(SQLITE)) + 1, f"{EXTRA}; SELECT nonsense FROM nowhere"))
        with pytest.raises(apsw.SQLError):
            on_sqlite.migrate(connection, broken, "never used")
        assert on_sqlite.catalog(connection) == before
        connection.close()
        SqliteStore(tmp_path / "a.db").close()

    def test_a_newer_store_is_refused_byte_for_byte_untouched(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        SqliteStore(path).close()
        connection = apsw.Connection(str(path))
        connection.execute("INSERT INTO perdure_migrations VALUES (?, 'future', 'x')", (len(migrations(SQLITE)) + 1,))
        connection.close()
        before = path.read_bytes()
        with pytest.raises(perdure.Conflict, match="upgrade perdure"):
            perdure.open(f"sqlite:///{path}")
        assert path.read_bytes() == before

    def test_a_newer_store_whose_last_writer_died_is_refused_with_its_log_untouched(self, tmp_path: Path) -> None:
        """The log holds what is not in the file yet; moving it there would be a change, by a version that may not make one."""
        SqliteStore(tmp_path / "a.db").close()
        alive = apsw.Connection(str(tmp_path / "a.db"))
        alive.execute("INSERT INTO perdure_migrations VALUES (?, 'future', 'x')", (len(migrations(SQLITE)) + 1,))
        (tmp_path / "left").mkdir()
        for name in ("a.db", "a.db-wal"):
            shutil.copy(tmp_path / name, tmp_path / "left" / name)
        alive.close()
        path, log = tmp_path / "left" / "a.db", tmp_path / "left" / "a.db-wal"
        before = (path.read_bytes(), log.read_bytes())
        assert before[1], "there is a log"
        with pytest.raises(perdure.Conflict, match="upgrade perdure"):
            perdure.open(f"sqlite:///{path}")
        assert (path.read_bytes(), log.read_bytes()) == before

    def test_another_programs_database_is_refused_and_untouched(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        connection = apsw.Connection(str(path))
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.close()
        before = path.read_bytes()
        with pytest.raises(perdure.InvalidInput, match="recipes"):
            perdure.open(f"sqlite:///{path}")
        assert path.read_bytes() == before

    def test_a_file_that_is_no_database_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "a.db"
        path.write_bytes(b"Dear diary, " * 1_000)
        with pytest.raises(perdure.Corrupt, match="not a SQLite database"):
            perdure.open(f"sqlite:///{path}")
        assert path.read_bytes() == b"Dear diary, " * 1_000

    def test_a_directory_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(perdure.Unavailable, match="directory exists"):
            perdure.open(f"sqlite:///{tmp_path}/no/such/a.db")

    @pytest.mark.slow
    def test_many_processes_may_open_a_new_store_at_once(self, tmp_path: Path) -> None:
        code = f"import perdure; perdure.open('sqlite:///{tmp_path}/a.db').memory('ana').append('user', 'x')"
        processes = [subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE) for _ in range(6)]
        outcomes = [(process.communicate(timeout=60)[1].decode(), process.returncode) for process in processes]
        assert outcomes == [("", 0)] * 6
        with perdure.open(f"sqlite:///{tmp_path}/a.db") as engine:
            assert len(engine.memory("ana").messages()) == 6
            assert engine.verify().clean


class TestPostgres:
    def test_the_fresh_schema_equals_the_migrated_one(self, postgres_url: str, postgres_schema: str) -> None:
        PostgresStore(postgres_url, schema=postgres_schema).close()
        other = f"{postgres_schema}_m"
        with psycopg.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
            try:
                cursor.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(other)))
                cursor.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(other)))
                for migration in migrations(POSTGRES):
                    on_postgres.apply(cursor, migration)
                assert on_postgres.catalog(cursor, other) == on_postgres.catalog(cursor, postgres_schema)
                assert len(on_postgres.catalog(cursor, other)) > 80
            finally:
                cursor.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(other)))

    def test_an_upgrade_runs_the_missing_steps_and_a_failing_one_leaves_nothing(
        self, postgres_url: str, postgres_schema: str
    ) -> None:
        store = PostgresStore(postgres_url, schema=postgres_schema)
        fill(store, ANA, 1)
        known = migrations(POSTGRES)
        with psycopg.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
            cursor.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(postgres_schema)))
            before = on_postgres.catalog(cursor, postgres_schema)
            broken = (*known, a_migration(len(known) + 1, f"{EXTRA}; SELECT nonsense FROM nowhere"))
            with pytest.raises(psycopg.errors.UndefinedTable):
                on_postgres.migrate(cursor, postgres_schema, broken, "never used")
            assert on_postgres.catalog(cursor, postgres_schema) == before
            longer = (*known, a_migration(len(known) + 1, EXTRA))
            assert on_postgres.migrate(cursor, postgres_schema, longer, "never used") == len(longer)
            assert cursor.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]
        store.close()
        with pytest.raises(perdure.Conflict, match="upgrade perdure"):
            PostgresStore(postgres_url, schema=postgres_schema)

    def test_a_schema_of_another_program_is_refused(self, postgres_url: str, postgres_schema: str) -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("CREATE SCHEMA {0}; CREATE TABLE {0}.recipes (name text)").format(sql.Identifier(postgres_schema))
            )
        with pytest.raises(perdure.InvalidInput, match="recipes"):
            PostgresStore(postgres_url, schema=postgres_schema)

    def test_a_store_without_a_server_is_unavailable_and_quotes_no_password(self) -> None:
        with pytest.raises(perdure.Unavailable) as caught:
            PostgresStore("postgresql://ana:hunter2@127.0.0.1:1/x", deadline_s=2)
        assert "hunter2" not in str(caught.value)


def test_a_store_whose_set_up_was_cut_short_opens_again(tmp_path: Path) -> None:
    """A rollback journal is left when the power goes while a new file is switched to WAL; who only looks cannot undo it."""
    before, after = tmp_path / "before.db", tmp_path / "after.db"
    connection = apsw.Connection(str(before))
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE half (x)")
    connection.execute("INSERT INTO half SELECT randomblob(4000) FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8))")
    shutil.copy(before, after)
    shutil.copy(f"{before}-journal", f"{after}-journal")
    connection.execute("ROLLBACK")
    connection.close()
    looking = apsw.Connection(str(after), flags=apsw.SQLITE_OPEN_READONLY)
    with pytest.raises(apsw.ReadOnlyError):
        looking.execute("SELECT name FROM sqlite_schema")
    looking.close()
    with perdure.open(f"sqlite:///{after}") as engine:
        engine.memory("ana").append("user", "hello")
        assert engine.verify().clean
