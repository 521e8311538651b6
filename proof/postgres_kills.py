"""Migrations on PostgreSQL whose backend is ended: at each statement that perdure sends, and within its scripts.

A script of a migration is one message with many statements; an event trigger in the server ends the backend in the middle
of it. Between two messages, another connection does.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import psycopg
from psycopg import sql

import perdure
from perdure.adapters.postgres import schema as migrating
from perdure.adapters.postgres.store import PACKAGE
from perdure.adapters.sql.statements import migrations
from proof.harness import Round
from proof.old_scenes import NEWEST, OLD_VERSIONS, build_postgres, rows_at
from proof.operations import SteppedClock, state_of
from proof.servers import pg
from proof.wholeness import check_heals, check_whole
from tests.old_stores import Rows

GONE_S = 10.0
TRIGGER = """
CREATE SEQUENCE {home}.ends;
CREATE TABLE {home}.plan (at bigint);
INSERT INTO {home}.plan VALUES (0);
CREATE FUNCTION {home}.met() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    -- A sequence counts on, whatever is rolled back.
    IF nextval('{home}.ends') = (SELECT at FROM {home}.plan) THEN
        PERFORM pg_terminate_backend(pg_backend_pid());
        PERFORM pg_sleep(10);
    END IF;
END $$;
CREATE EVENT TRIGGER {home} ON ddl_command_end EXECUTE FUNCTION {home}.met();
ALTER EVENT TRIGGER {home} DISABLE;
"""
Where = Literal["script", "before", "after"]


@dataclass(slots=True)
class Server:
    """An own connection to the server, and the trigger in it."""

    url: str
    admin: psycopg.Connection[Any]
    home: str
    rows: dict[int, Rows] = field(default_factory=dict)

    def arm(self, at: int) -> None:
        self.admin.execute(f"UPDATE {self.home}.plan SET at = {at}".encode())
        self.admin.execute(f"SELECT setval('{self.home}.ends', 1, false)".encode())
        self.admin.execute(f"ALTER EVENT TRIGGER {self.home} ENABLE".encode())

    def disarm(self) -> int:
        """How many statements the trigger saw."""
        self.admin.execute(f"ALTER EVENT TRIGGER {self.home} DISABLE".encode())
        [(last, called)] = self.admin.execute(f"SELECT last_value, is_called FROM {self.home}.ends".encode()).fetchall()
        return int(last) if called else 0

    def end(self, pid: int) -> None:
        """End a backend and wait until it is gone."""
        self.admin.execute("SELECT pg_terminate_backend(%s)", (pid,))
        until = time.monotonic() + GONE_S
        while self.admin.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (pid,)).fetchone():
            if time.monotonic() > until:
                raise TimeoutError("a backend was told to end and did not")
            time.sleep(0.002)

    def catalog(self, schema: str) -> tuple[int, set[tuple[str, str, str]]]:
        """The version that a schema says it has, and what is in it."""
        with self.admin.cursor() as cursor:
            cursor.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
            return len(migrating.applied(cursor, schema)), migrating.catalog(cursor, schema)


@contextmanager
def _server(url: str) -> Iterator[Server]:
    with psycopg.connect(url, autocommit=True) as admin, pg.fresh_schema(url) as home:
        admin.execute(f"CREATE SCHEMA {home};{TRIGGER.format(home=home)}".encode())
        try:
            yield Server(url, admin, home)
        finally:
            admin.execute(f"DROP EVENT TRIGGER {home}".encode())


@contextmanager
def _old_store(server: Server, version: int) -> Iterator[perdure.Settings]:
    if version not in server.rows:
        server.rows[version] = rows_at(version)
    with pg.fresh_schema(server.url) as schema:
        build_postgres(server.url, schema, version, server.rows[version])
        yield pg.settings(server.url, schema, deadline_s=10.0)


class Statements:
    """Counts what this process sends, and ends the backend before or after the N-th statement."""

    def __init__(self, server: Server, where: Where, at: int) -> None:
        self._server, self._where, self._at = server, where, at
        self.seen = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        execute = psycopg.Cursor.execute

        def watching(cursor: Any, *args: Any, **named: Any) -> Any:
            if cursor.connection is self._server.admin:
                return execute(cursor, *args, **named)
            self.seen += 1
            mine = self.seen == self._at
            if mine and self._where == "before":
                self._server.end(cursor.connection.info.backend_pid)
            answer = execute(cursor, *args, **named)
            if mine and self._where == "after":
                self._server.end(cursor.connection.info.backend_pid)
            return answer

        psycopg.Cursor.execute = watching  # type: ignore[method-assign]
        try:
            yield
        finally:
            psycopg.Cursor.execute = execute  # type: ignore[method-assign]


def die_on_postgres(round: Round, url: str) -> None:
    """End the backend everywhere in the migration from the first version, and everywhere in the first step from each other."""
    with _server(url) as server:
        expected = _catalogs(server)
        states, scripts, sent = {}, {}, {}
        for version in OLD_VERSIONS:
            with _old_store(server, version) as settings:
                states[version], scripts[version], sent[version] = _undisturbed(round, server, settings)
        places = [
            (version, where, at)
            for version in OLD_VERSIONS
            for where, counts in (("script", scripts), ("before", sent), ("after", sent))
            for at in range(1, 1 + (counts[version] if version == 1 else counts[version] - counts.get(version + 1, 0)))
        ]
        round.facts["statements on PostgreSQL"] = len(places)
        for case in round.cases(quick=6, full=len(places), name="backend ends"):
            version, where, at = _chosen(round, places, case.number, case.chance)
            with _old_store(server, version) as settings:
                when = f"PostgreSQL, from version {version}, {where} {at}"
                _struck(round, server, settings, where, at, when)
                held, catalog = server.catalog(settings.postgres_schema)
                round.check(catalog == expected[held], "half a step", f"{when}: says it is version {held}")
                _completed(round, settings, states[version], when)


def _chosen(round: Round, places: list[tuple[int, Where, int]], number: int, chance: Random) -> tuple[int, Where, int]:
    """The quick round takes some of each manner."""
    if round.size == "full":
        return places[number]
    where = ("script", "before", "after")[number % 3]
    return chance.choice([place for place in places if place[1] == where])


def _catalogs(server: Server) -> dict[int, set[tuple[str, str, str]]]:
    """What each version has."""
    found = {}
    with pg.fresh_schema(server.url) as schema, server.admin.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA {0}; SET search_path TO {0}").format(sql.Identifier(schema)))
        for one in migrations(PACKAGE):
            migrating.apply(cursor, one)
            found[one.version] = migrating.catalog(cursor, schema)
    return found


def _undisturbed(round: Round, server: Server, settings: perdure.Settings) -> tuple[str, int, int]:
    """The state that the migration leaves, the statements in its scripts, and those that are sent."""
    counting = Statements(server, "before", 0)
    server.arm(0)
    with counting.watched():
        engine = perdure.open(settings=settings, clock=SteppedClock())
    scripts = server.disarm()
    with engine:
        check_whole(round, engine, when="PostgreSQL, undisturbed")
        return state_of(engine, Path("/nowhere")), scripts, counting.seen


def _struck(round: Round, server: Server, settings: perdure.Settings, where: Where, at: int, when: str) -> None:
    if where == "script":
        server.arm(at)
    watching = Statements(server, where, 0 if where == "script" else at)
    try:
        with watching.watched():
            perdure.open(settings=settings, clock=SteppedClock()).close()
    except perdure.Unavailable:
        round.met("backend ended within a script" if where == "script" else "backend ended between statements")
    except Exception as error:
        round.wrong("not a named error", f"{when}: {error!r}")
    else:
        # Ended after its last statement, the connection was not needed any more.
        round.count("ends without effect")
    finally:
        if where == "script":
            server.disarm()


def _completed(round: Round, settings: perdure.Settings, state: str, when: str) -> None:
    with round.guarded("does not open"), perdure.open(settings=settings, clock=SteppedClock()) as engine:
        round.check(state_of(engine, Path("/nowhere")) == state, "another state", f"{when}: opened again, the rows differ")
        check_heals(round, engine, when=when)


def refuse_newer_on_postgres(round: Round, url: str) -> None:
    """A schema of a newer version is refused in words, and stays as it is."""
    with psycopg.connect(url, autocommit=True) as admin, pg.fresh_schema(url) as schema:
        settings = pg.settings(url, schema)
        with perdure.open(settings=settings) as engine:
            engine.memory("ana").append("user", "hello")
        admin.execute(f"INSERT INTO {schema}.perdure_migrations VALUES ({NEWEST + 1}, 'future', 'x')".encode())
        admin.execute(f"CREATE TABLE {schema}.future (a text)".encode())
        before = _everything(admin, schema)
        try:
            perdure.open(settings=settings).close()
        except perdure.Conflict as error:
            round.met("newer schema refused")
            round.check("upgrade perdure" in str(error), "refused in wrong words", f"PostgreSQL: {error}")
        except Exception as error:
            round.wrong("refused in wrong words", f"PostgreSQL: {error!r}")
        else:
            round.wrong("newer store taken", "PostgreSQL")
        round.check(_everything(admin, schema) == before, "newer store changed", "PostgreSQL: schema or rows differ")
        round.count("newer stores")


def _everything(admin: psycopg.Connection[Any], schema: str) -> str:
    """A digest of the schema, of who may do what in it, and of every row."""
    with admin.cursor() as cursor:
        told = [repr(sorted(migrating.catalog(cursor, schema)))]
        cursor.execute("SELECT relname, relacl::text FROM pg_class WHERE relnamespace = %s::regnamespace ORDER BY 1", (schema,))
        told.append(repr(cursor.fetchall()))
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s ORDER BY 1", (schema,))
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT t::text FROM {schema}.{table} AS t ORDER BY 1".encode())
            told.append(repr((table, cursor.fetchall())))
    return hashlib.sha256("\n".join(told).encode()).hexdigest()
