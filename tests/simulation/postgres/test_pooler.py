"""PostgreSQL behind pgbouncer in transaction mode: nothing that a call needs may live in a session."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import psycopg
from psycopg import sql

import perdure
import pg

WRITERS = 4
MESSAGES = 40


def test_two_stores_behind_one_pooler_never_hold_a_row_of_the_other(pgbouncer_url: str, postgres_url: str) -> None:
    """Each of them writes and reads in many threads, over fewer sessions than threads."""
    troubles: list[str] = []

    def write(engine: perdure.Engine, name: str) -> None:
        try:
            ana = engine.memory("ana")
            for number in range(MESSAGES):
                ana.append("user", name, id=f"{name}-{number}")
                ana.state.save(f"{name}/{number}", name)
                assert {message.content[:5] for message in ana.messages(5)} == {name[:5]}
        except Exception as error:
            troubles.append(repr(error))

    with ExitStack() as stack:
        names = {store: stack.enter_context(pg.fresh_schema(postgres_url)) for store in ("first", "other")}
        engines = {
            store: stack.enter_context(perdure.open(settings=pg.settings(pgbouncer_url, schema)))
            for store, schema in names.items()
        }
        threads = [
            threading.Thread(target=write, args=(engine, f"{store}{number}"))
            for store, engine in engines.items()
            for number in range(WRITERS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert troubles == []
        connection = stack.enter_context(psycopg.connect(postgres_url))
        for store, schema in names.items():
            for table, column in (("messages", "content"), ("state_keys", "key")):
                query = sql.SQL("SELECT substr({}, 1, 5), count(*) FROM {} GROUP BY 1").format(
                    sql.Identifier(column), sql.Identifier(schema, table)
                )
                assert connection.execute(query).fetchall() == [(store, WRITERS * MESSAGES)]


def test_a_migration_a_backup_and_a_purge_work_through_a_pooler(pgbouncer_url: str, postgres_url: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pg.fresh_schema(postgres_url) as schema, perdure.open(settings=pg.settings(pgbouncer_url, schema)) as engine:
        ana = engine.memory("ana")
        ana.remember("Lives in Lisbon")
        saved = tmp_path / "saved.jsonl"
        engine.backup(saved)
        ana.forget(user=True)
        engine.purge()
        assert ana.memories.list() == []
        perdure.restore(saved, settings=pg.settings(pgbouncer_url, schema), replace=True)
        assert [one.content for held in ana.memories.list() for one in held.statements] == ["Lives in Lisbon"]
        assert engine.verify().findings == ()


def test_statements_are_prepared_only_where_the_session_is_ours(
    pgbouncer_url: str, postgres_url: str, postgres_schema: str
) -> None:
    for url, prepared in ((pgbouncer_url, False), (postgres_url, True)):
        with perdure.open(settings=pg.settings(url, postgres_schema)) as engine:
            with engine._store._pool.connection() as connection:  # type: ignore[attr-defined]
                assert (connection.prepare_threshold is not None) is prepared
