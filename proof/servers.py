"""The PostgreSQL server of a proof run: the one the test extra installs, started when a promise first asks for it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
from tests import pg

import perdure


class Postgres:
    """Started when first asked for the URL; ended by `stop`."""

    def __init__(self) -> None:
        self._root: Path | None = None
        self._url = ""

    def url(self) -> str:
        if self._root is None:
            self._root = pg.new_root()
            self._url = pg.start(self._root)
        return self._url

    def stop(self) -> None:
        if self._root is not None:
            pg.stop(self._root)


@contextmanager
def fresh_store(url: str) -> Iterator[perdure.Settings]:
    """Settings of a PostgreSQL store in a schema of its own, dropped afterwards."""
    with pg.fresh_schema(url) as schema:
        yield pg.settings(url, schema)


def fresh_sqlite(folder: Path) -> str:
    """The URL of a SQLite store that nobody has used."""
    return f"sqlite:///{folder / f'{uuid.uuid4().hex[:8]}.db'}"
