"""The PostgreSQL server of a proof run: the one the test extra installs, started when a promise first asks for it.

Where one runs already, `PROOF_POSTGRES` may name it: then each run makes a database of its own there.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

sys.path.append(str(Path(__file__).parents[1]))
import perdure
from tests import pg

RUNNING = "PROOF_POSTGRES"


class Postgres:
    """Started when first asked for the URL; ended by `stop`."""

    def __init__(self) -> None:
        self._running = os.environ.get(RUNNING, "")
        self._root: Path | None = None
        self._database = ""
        self._url = ""

    def url(self) -> str:
        if not self._url and self._running:
            self._database = f"proof_{uuid.uuid4().hex[:16]}"
            self._execute(f"CREATE DATABASE {self._database}")
            self._url = urlsplit(self._running)._replace(path=f"/{self._database}").geturl()
        elif not self._url:
            self._root = pg.new_root()
            self._url = pg.start(self._root)
        return self._url

    def stop(self) -> None:
        if self._root is not None:
            pg.stop(self._root)
        if self._database:
            self._execute(f"DROP DATABASE {self._database} WITH (FORCE)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(self._running, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def fresh_store(url: str) -> Iterator[perdure.Settings]:
    """Settings of a PostgreSQL store in a schema of its own, dropped afterwards."""
    with pg.fresh_schema(url) as schema:
        yield pg.settings(url, schema)


def fresh_sqlite(folder: Path) -> str:
    """The URL of a SQLite store that nobody has used."""
    return f"sqlite:///{folder / f'{uuid.uuid4().hex[:8]}.db'}"
