"""Stores as earlier versions of perdure left them, filled with what a store of today holds."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import perdure
from perdure.adapters.sql.statements import migrations
from perdure.adapters.sqlite.store import PACKAGE
from proof.operations import STORE, WINDOW, a_run, fill, opened
from proof.servers import pg  # noqa: F401 - puts the folder of `tests` on the path
from tests.old_stores import Rows, build, columns_of, rows_of

NEWEST = len(migrations(PACKAGE))
OLD_VERSIONS = tuple(range(1, NEWEST))
KNOWLEDGE_SINCE = 4
"""Before that version, messages were counted, state and series kept, and nothing else was derived."""


def _fill_early(engine: perdure.Engine) -> None:
    for user in ("ana", "bob"):
        memory = engine.memory(user)
        for number in range(6):
            memory.append("user", f"Number {number}: John Doe of Austin called me about the boat.", id=f"q{number}")
            memory.append("assistant", f"Noted as {number}.", id=f"a{number}")
        memory.state.save("theme", "dark")
        memory.series("runs").merge([a_run(number) for number in range(5)], window=WINDOW, request="first")
    worker = engine.worker()
    worker.handlers = {"tally": worker.handlers["tally"]}
    worker.process(60)


def rows_at(version: int) -> Rows:
    """What a store of that version would hold; the only jobs that all versions know are those that count messages."""
    found = _rows(early=version < KNOWLEDGE_SINCE)[version]
    kind = columns_of(version)["jobs"].index("kind")
    return {**found, "jobs": [row for row in found["jobs"] if row[kind] == "tally"]}


@cache
def _rows(*, early: bool) -> dict[int, Rows]:
    """What a store of today holds, in the columns of each old version."""
    with tempfile.TemporaryDirectory(prefix="proof-old-") as name, opened(Path(name)) as engine:
        if early:
            _fill_early(engine)
        else:
            fill(engine, Path(name))
        return {version: rows_of(engine, version) for version in OLD_VERSIONS if early == (version < KNOWLEDGE_SINCE)}


def build_sqlite(folder: Path, version: int) -> None:
    """A store of that version, in a folder of its own."""
    build(SimpleNamespace(name="sqlite", url=f"sqlite:///{folder / STORE}"), version, rows_at(version))


def build_postgres(url: str, schema: str, version: int, rows: Rows) -> None:
    build(SimpleNamespace(name="postgres", url=url, schema=schema), version, rows)
