"""A store, or a backup, from before conversations had layers: what is counted now was counted for what was said then, too."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from psycopg import sql

import perdure
from perdure import ToolCall
from perdure.adapters.postgres import schema as on_postgres
from perdure.adapters.postgres.store import PACKAGE as POSTGRES
from perdure.adapters.sql.statements import migrations
from perdure.adapters.sqlite import schema as on_sqlite
from perdure.adapters.sqlite.store import PACKAGE as SQLITE
from perdure.ports.store import Row
from perdure.ports.tables.rows import TABLES
from perdure.testing import StoppedClock

OLD = 2
START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
Columns = dict[str, list[str]]


def talk(engine: perdure.Engine, clock: StoppedClock) -> None:
    """Two users, two addresses, an ended session and an open one, and an agent that spoke last."""
    for user, channel, turns in (("ana", "a", 5), ("ana", "b", 1), ("bob", "a", 2)):
        memory = engine.memory(user, agent="coach", channel=channel)
        for turn in range(turns):
            memory.append("user", f"question {turn} of {user} on {channel}")
            memory.append("assistant", "", tool_calls=[ToolCall(f"c{turn}", "look", {})])  # type: ignore[arg-type]
            clock.move(minutes=20)
            memory.append("tool", "found", tool_call_id=f"c{turn}")
            memory.append("assistant", f"answer {turn}")
            clock.move(minutes=31 if turn == 2 else 1)
    engine.memory("cy").append("assistant", "nobody answers")
    worker = engine.worker()
    worker.handlers = {"tally": worker.handlers["tally"]}
    worker.process(60)


@pytest.fixture(scope="module")
def old_columns() -> Columns:
    """The columns of every table of the old schema."""
    connection = apsw.Connection(":memory:")
    for migration in migrations(SQLITE)[:OLD]:
        on_sqlite.apply(connection, migration)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")] for name in names if name in TABLES}


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture
def today(clock: StoppedClock) -> Iterator[perdure.Engine]:
    """The same conversations, as this version keeps them."""
    with perdure.open("memory:", clock=clock) as engine:
        talk(engine, clock)
        yield engine


@pytest.fixture
def old_rows(today: perdure.Engine, old_columns: Columns) -> dict[str, list[Row]]:
    """What the old version had stored of them: no layers, and no jobs but the count."""
    found: dict[str, list[Row]] = {}
    with today._store.snapshot() as snapshot:
        for table, columns in old_columns.items():
            places = [TABLES[table].columns.index(name) for name in columns]
            found[table] = [tuple(row[place] for place in places) for row in snapshot.rows(table)]
    kind = old_columns["jobs"].index("kind")
    found["jobs"] = [row for row in found["jobs"] if row[kind] == "tally"]
    about = old_columns["operations"].index("kind")
    assert {row[about] for row in found["operations"]} == {"tally"}
    return found


def build(backend: Any, rows: dict[str, list[Row]]) -> None:
    """A store of the old schema with these rows."""
    if backend.name == "sqlite":
        connection = apsw.Connection(backend.url.removeprefix("sqlite:///"))
        for migration in migrations(SQLITE)[:OLD]:
            on_sqlite.apply(connection, migration)
        connection.execute("BEGIN; PRAGMA defer_foreign_keys = ON")
        for table, content in rows.items():
            for row in content:
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("COMMIT")
        connection.close()
        return
    with psycopg.connect(backend.url) as connection, connection.cursor() as cursor:
        cursor.execute(sql.SQL("CREATE SCHEMA {0}; SET search_path TO {0}").format(sql.Identifier(backend.schema)))
        for migration in migrations(POSTGRES)[:OLD]:
            on_postgres.apply(cursor, migration)
        for table in (name for name in TABLES if name in rows):
            for row in rows[table]:
                cursor.execute(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(row))})".encode(), row)


def write_backup(path: Path, rows: dict[str, list[Row]], columns: Columns) -> Path:
    """A backup as the old version wrote it."""
    lines: list[object] = [{"format": "perdure-backup", "version": 1, "schema": OLD}]
    for table in (name for name in TABLES if name in rows):
        lines += [{"table": table, "columns": columns[table]}, *(list(row) for row in rows[table])]
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    footer = {
        "rows": {table: len(rows[table]) for table in TABLES if table in rows},
        "sha256": hashlib.sha256(body).hexdigest(),
    }
    path.write_bytes(gzip.compress(body + json.dumps(footer).encode() + b"\n"))
    return path


def check(engine: perdure.Engine, today: perdure.Engine, clock: StoppedClock) -> None:
    """The old store tells what a store of today would, and the layers find everything in it."""
    assert engine.verify().findings == ()
    for user, channel in (("ana", "a"), ("ana", "b"), ("bob", "a")):
        memory = engine.memory(user, agent="coach", channel=channel)
        same = today.memory(user, agent="coach", channel=channel)
        assert memory.conversation.sessions() == same.conversation.sessions()
        assert memory.messages(100) == same.messages(100)
        state, expected = memory.conversation.agent_state(), same.conversation.agent_state()
        assert (state.turns, state.last_at) == (expected.turns, expected.last_at)
        assert state.last_text in (None, expected.last_text)
        assert (state.profile, state.casual, state.rolling_error) == (None, False, None)
        assert memory.context().messages == same.context().messages
    silent = engine.memory("cy").conversation.agent_state()
    assert (silent.turns, silent.last_at) == (0, None)
    # The layers go on from here.
    ana = engine.memory("ana", agent="coach", channel="a")
    for turn in range(16):
        ana.append("user", f"new turn {turn}")
    engine.process()
    [spine] = ana.conversation.digests("spine")
    assert len(list(ana.conversation.expand(spine))) == sum(
        session.messages for line in ana.conversation.list_sessions() for session in [line.session]
    )
    clock.move(hours=1)
    engine.process()
    assert ana.conversation.digests("session")[0].session_number == ana.conversation.sessions()[0].number
    assert engine.verify().findings == ()


def test_an_old_store_counts_what_was_said_before(
    backend: Any, clock: StoppedClock, today: perdure.Engine, old_rows: dict[str, list[Row]]
) -> None:
    build(backend, old_rows)
    check(backend.open(clock=clock), today, clock)


def test_an_old_backup_restores_into_either_database(
    backend: Any,
    clock: StoppedClock,
    today: perdure.Engine,
    old_rows: dict[str, list[Row]],
    old_columns: Columns,
    tmp_path: Path,
) -> None:
    path = write_backup(tmp_path / "old.perdure", old_rows, old_columns)
    perdure.restore(path, settings=backend.settings)
    check(backend.open(clock=clock), today, clock)


def test_a_session_left_open_by_the_old_version_ends_when_it_has_been_silent_b_46(
    backend: Any, clock: StoppedClock, old_rows: dict[str, list[Row]]
) -> None:
    """Nothing needs to be said for that: the old version had no sweeper, so it left no job behind."""
    build(backend, old_rows)
    engine = backend.open(clock=clock)
    clock.move(hours=3)
    engine.process()
    clock.move(hours=1)
    engine.process()
    for user, channel in (("ana", "a"), ("ana", "b"), ("bob", "a")):
        newest = engine.memory(user, agent="coach", channel=channel).conversation.sessions()[0]
        assert newest.ended_at == newest.last_at
    assert engine.verify().findings == ()


def test_migrating_twice_is_once(backend: Any, clock: StoppedClock, old_rows: dict[str, list[Row]]) -> None:
    build(backend, old_rows)
    with backend.open(clock=clock) as engine:
        first = engine.memory("ana", agent="coach", channel="a").conversation.agent_state()
    with backend.open(clock=clock) as engine:
        assert engine.memory("ana", agent="coach", channel="a").conversation.agent_state() == first
        assert first.turns == 5
        assert first.last_at is not None
        assert first.last_at < START + timedelta(hours=3)
