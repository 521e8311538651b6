"""P16: on PostgreSQL tables are rewritten by a job, which waits for whoever still sees what was removed, and says so."""

from __future__ import annotations

import threading

import psycopg
import pytest

import perdure
from perdure.domain.scope import SYSTEM
from perdure.testing import StoppedClock
from tests import pg

pytestmark = pytest.mark.postgres
SECRET = "vqjzkwkq"


def bytes_hold(url: str, schema: str, text: str) -> bool:
    """Whether the file of the messages holds the text, as the server reads it."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        [(found,)] = connection.execute(
            "SELECT position(%s::bytea IN pg_read_binary_file(pg_relation_filepath(%s::regclass))) > 0",
            (text.encode(), f'"{schema}".messages'),
        ).fetchall()
    return bool(found)


@pytest.fixture
def reader(postgres_url):
    """A transaction that sees everything as it was when it began."""
    with psycopg.connect(postgres_url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

        def look() -> psycopg.Connection:
            connection.execute("SELECT 1 FROM pg_class")
            return connection

        yield look


def test_a_purge_waits_for_a_reader_that_still_sees_what_was_removed(postgres_url, postgres_schema, reader):
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        ana = engine.memory("ana")
        ana.append("user", f"the word is {SECRET}", id="m1")
        assert bytes_hold(postgres_url, postgres_schema, SECRET)
        connection = reader()
        ana.forget(messages=("m1", "m1"))
        ends = threading.Timer(0.5, connection.rollback)
        ends.start()
        assert engine.purge().bytes_remain == ""
        ends.join()
        assert not bytes_hold(postgres_url, postgres_schema, SECRET)


def test_forgetting_on_postgres_rewrites_no_table_and_says_that_bytes_remain(postgres_url, postgres_schema):
    clock = StoppedClock()
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema), clock=clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", f"the word is {SECRET}", id="m1")
        answer = ana.forget(messages=("m1", "m1"))
        assert "until the job `erase` has run" in answer.bytes_remain
        assert SECRET not in ana.messages()[0].content
        assert bytes_hold(postgres_url, postgres_schema, SECRET)
        assert [
            (job.kind, job.state)
            for job in engine._store.read(SYSTEM, lambda view: view.list_jobs(None, limit=20))
            if job.kind == "erase"
        ] == [("erase", "ready")]
        assert any("erasure: " in line for line in engine.doctor().degraded)
        clock.move(minutes=2)
        engine.process(60)
        assert not bytes_hold(postgres_url, postgres_schema, SECRET)
        assert not any("erasure: " in line for line in engine.doctor().degraded)


def test_an_erasure_that_a_reader_outlasts_is_tried_again_and_says_what_keeps_it(postgres_url, postgres_schema, reader):
    clock = StoppedClock()
    settings = pg.settings(postgres_url, postgres_schema, deadline_s=4.0)
    with perdure.open(settings=settings, clock=clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", f"the word is {SECRET}", id="m1")
        connection = reader()
        ana.forget(messages=("m1", "m1"))
        assert "a transaction that began before" in engine.purge().bytes_remain
        assert any("a transaction that began before" in line for line in engine.doctor().degraded)
        assert [
            job.last_error
            for job in engine._store.read(SYSTEM, lambda view: view.list_jobs("ready", limit=20))
            if job.kind == "erase"
        ] != [None]
        connection.rollback()
        clock.move(minutes=2)
        engine.process(60)
        assert not bytes_hold(postgres_url, postgres_schema, SECRET)


def test_a_table_in_use_is_not_queued_up_for(postgres_url, postgres_schema, reader):
    """Whoever waits for a table alone keeps all others waiting behind."""
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema, deadline_s=4.0)) as engine:
        ana = engine.memory("ana")
        ana.append("user", f"the word is {SECRET}", id="m1")
        connection = reader()
        connection.execute(f'SELECT 1 FROM "{postgres_schema}".messages')
        assert "still uses" in engine.purge().bytes_remain
        ana.append("user", "goes on", id="m2")
        connection.rollback()
        assert engine.purge().bytes_remain == ""


def test_many_who_forget_cause_one_rewrite_in_ten_minutes(postgres_url, postgres_schema):
    clock = StoppedClock()
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema), clock=clock) as engine:
        rewrites = []
        for _ in range(20):
            engine.memory("ana").forget(entity="person:nobody")
            clock.move(minutes=1)
            engine.process(60)
            rewrites.append(engine._store.read(SYSTEM, lambda view: view.find_job("erase", "rest")).runs)
        assert rewrites[-1] == 2
