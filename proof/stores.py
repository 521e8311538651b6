"""Stores of either backend for a trial, and what a trial must know of the server behind one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import psycopg

import perdure
from proof.harness import Round
from proof.processes import until
from proof.servers import fresh_sqlite, fresh_store

CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'perdure' AND datname = current_database()"

Backend = Literal["SQLite", "PostgreSQL"]
BACKENDS: tuple[Backend, ...] = ("SQLite", "PostgreSQL")


@contextmanager
def new_store(round: Round, backend: Backend, folder: Path) -> Iterator[perdure.Settings]:
    """Settings of a store that nobody has made yet."""
    if backend == "SQLite":
        yield perdure.Settings(url=fresh_sqlite(folder))
        return
    assert round.postgres is not None
    with fresh_store(round.postgres()) as settings:
        yield settings


def wait_for_the_server(backend: Backend, settings: perdure.Settings) -> None:
    """A server goes on for a moment with what a dead client sent last."""
    if backend == "SQLite":
        return
    with psycopg.connect(settings.url, autocommit=True) as connection:

        def alone() -> bool:
            found = connection.execute(CLIENTS).fetchone()
            return found == (0,)

        until(alone, "the server notices that its clients are gone")
