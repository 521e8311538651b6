"""A PostgreSQL server of our own that may be killed, frozen and started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from tests import pg

START_S = 60.0


class CrashingServer:
    """Started at once; `stop` ends it and removes everything of it. Only processes of this server are ever signalled."""

    def __init__(self) -> None:
        self._root = pg.new_root()
        self.url = pg.start(self._root)
        self.data = self._root / "data"

    @property
    def socket(self) -> str:
        return str(self.data / ".s.PGSQL.5432")

    def stop(self) -> None:
        with suppress(Exception):
            self.restart()
        pg.stop(self._root)

    # -- crashes

    def kill_a_backend(self) -> None:
        """kill -9 of a process that serves perdure: the server then throws everybody out and recovers."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'perdure' AND pid <> pg_backend_pid()"
            [(pid,), *_] = connection.execute(ours).fetchall()
            os.kill(pid, signal.SIGKILL)

    def kill_the_server(self) -> None:
        """kill -9 of the parent of all; the backends notice, and end."""
        self._end(signal.SIGKILL)

    def kill_them_all(self) -> None:
        """kill -9 of the parent and of all it started, as the kernel does when memory runs out."""
        everyone = [self._pid(), *_children(self._pid())]
        for pid in everyone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _waited(lambda: not any(map(_alive, everyone)), START_S)

    def stop_immediately(self) -> None:
        """As `pg_ctl stop -m immediate`: nothing is written out, the next start recovers."""
        self._end(signal.SIGQUIT)

    def stop_fast(self) -> None:
        """As an orderly restart: everybody is thrown out."""
        self._end(signal.SIGINT)

    def freeze(self, seconds: float) -> None:
        """Every process of it stands still for so long: nothing is refused, nothing is answered."""
        everyone = [self._pid(), *_children(self._pid())]
        for pid in everyone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        for pid in everyone:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def restart(self) -> None:
        """Bring it up again, if it is down. What others still hold of the old one is waited for."""
        until = time.monotonic() + START_S
        while True:
            try:
                pg._attached(self._root).ensure_postgres_running()
                with psycopg.connect(self.url, connect_timeout=5):
                    return
            except Exception:
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def _pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _end(self, how: signal.Signals) -> None:
        everyone = [self._pid(), *_children(self._pid())]
        os.kill(everyone[0], how)
        # No new server starts while one of the old processes is left.
        _waited(lambda: not any(map(_alive, everyone)), START_S)


def _alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _children(parent: int) -> list[int]:
    import psutil

    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(parent).children(recursive=True)]
    return []


def _waited(done: Callable[[], Any], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
