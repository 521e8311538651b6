"""The servers that a URL names: how to connect to them, and to which of them first."""

from __future__ import annotations

import time
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from perdure.adapters.postgres.connections import AbandonedTransactions, AnswerLost, DeadlineConnection, DeadlineExceeded, again

RECONNECT_S = 1.0
"""How long the pool goes on with one attempt to connect. It pauses twice as long after each failure: a server that was away
for minutes would be missed for minutes more. The next call begins a new attempt at once, and so does one that still waits."""
EACH_S = 3
"""How long one of several servers may take to answer at all: one that is cut off must not use up the time for the others."""


class Servers:
    """One server, or several of which one takes writes: the primary.

    Where the URL asks for it (`target_session_attrs`), a failover is followed: connections to a server that is gone, silent or
    read-only by now are given up together, and the next ones go to whichever server has become the primary.
    """

    def __init__(self, url: str, *, deadline_s: float) -> None:
        self._url = url
        self._deadline_s = deadline_s
        self._left_at = 0.0
        parts = conninfo_to_dict(url)
        self._wants_primary = parts.get("target_session_attrs") in ("read-write", "primary")
        self._database = str(parts.get("dbname") or "")
        hosts = str(parts.get("host") or "localhost").split(",")
        ports = str(parts.get("port") or "").split(",")
        self._places = [*zip(hosts, ports if len(ports) == len(hosts) else ports[:1] * len(hosts), strict=True)]
        """In the order in which they are asked: first the one that was the primary, last the one that failed."""
        self._movable = len(hosts) > 1 and "hostaddr" not in parts

    def options(self) -> dict[str, Any]:
        # libpq counts whole seconds and takes less than two as two.
        seconds = int(self._deadline_s) if len(self._places) == 1 else min(int(self._deadline_s), EACH_S)
        return {"autocommit": True, "connect_timeout": max(2, seconds), "application_name": "perdure"}

    def address(self) -> str:
        """What to connect to."""
        if not self._movable:
            return self._url
        hosts, ports = zip(*self._places, strict=True)
        return make_conninfo(self._url, host=",".join(hosts), port=",".join(ports))

    def pool(self, size_max: int, abandoned: AbandonedTransactions) -> ConnectionPool[DeadlineConnection]:
        """Connections that are kept, to the server that is wanted."""

        def configure(connection: DeadlineConnection) -> None:
            connection.allow(self._deadline_s)
            connection.made_at = time.monotonic()
            connection.place = (connection.info.host, str(connection.info.port))
            if self._wants_primary:
                self._ask(connection, first=True)
            connection.add_notice_handler(connection.note)
            [(process,)] = connection.execute("SELECT pg_backend_pid()", prepare=False).fetchall()
            if process != connection.info.backend_pid:
                # Somebody stands between, and the next transaction may be served by a process that knows no statement of ours.
                connection.prepare_threshold = None
            abandoned.end_all(connection)

        pool = ConnectionPool(
            self.address,
            connection_class=DeadlineConnection,
            kwargs=self.options(),
            min_size=1,
            max_size=size_max,
            timeout=self._deadline_s,
            reconnect_timeout=RECONNECT_S,
            reconnect_failed=_try_on,
            configure=configure,
            check=None,
            open=False,
            name="perdure-pool",
        )
        pool.open()
        return pool

    def moved(self, error: BaseException) -> bool:
        """Whether the server that said this has stopped to be the primary, so that there is or will be another one."""
        return self._wants_primary and isinstance(error, errors.ReadOnlySqlTransaction)

    def left(self, connection: DeadlineConnection, error: BaseException) -> bool:
        """Note what became of a connection; whether the others that were made before it was found out are of no use either."""
        lost = connection.closed and isinstance(error, psycopg.Error) and (again(error) or isinstance(error, AnswerLost))
        silent = self._wants_primary and isinstance(error, DeadlineExceeded)
        if not (lost or silent or self.moved(error)) or connection.made_at <= self._left_at:
            return False
        self._left_at = time.monotonic()
        self._ask(connection, first=False)
        return True

    def _ask(self, connection: DeadlineConnection, *, first: bool) -> None:
        """Ask the server of a connection before or after all others, from now on."""
        host, port = connection.place
        # One that names no port has the usual one.
        self._places = sorted(self._places, key=lambda one: (one[0] == host and one[1] in ("", port)) is not first)

    def location(self, connection: psycopg.Connection[Any]) -> str:
        """The server in use, in words; the URL itself may hold a password."""
        if len(self._places) == 1:
            return f"{self._places[0][0]}/{self._database}"
        return f"{connection.info.host}:{connection.info.port} (one of {len(self._places)} servers)/{self._database}"


def _try_on(pool: ConnectionPool[Any]) -> None:
    """The pool has given up an attempt. It would begin another with the next call only: those that wait would wait in vain."""
    if pool.get_stats()["requests_waiting"]:
        pool.check()
