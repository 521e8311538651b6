"""Connections with a deadline to the servers that a URL names, and the driver's errors in our words."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
import psycopg_pool
from psycopg import errors
from psycopg.abc import PQGen
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool

from perdure.domain.errors import Conflict, Corrupt, InvalidInput, PerdureError, Unavailable, Unsupported
from perdure.domain.scope import Owner
from perdure.ports.store import ReadOnly

RV = TypeVar("RV")

GONE = "PostgreSQL cannot be reached, refused the connection or ended it; check server, database, role and password"
REPORT = "perdure and PostgreSQL disagree; please report this"

ABANDONED_KEPT = 256
END_ABANDONED = """
SELECT pg_terminate_backend(pid) FROM pg_locks
WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND objsubid = 1 AND ((classid::bigint << 32) | objid::bigint) = ANY(%s::bigint[]) AND pid <> pg_backend_pid()
"""

# By the nearest class in an error's ancestry. A test fails on a driver error that ends at none of these.
MEANING: dict[type[Exception], tuple[type[PerdureError], str]] = {
    psycopg.OperationalError: (Unavailable, GONE),
    psycopg.InterfaceError: (Unavailable, GONE),
    psycopg.IntegrityError: (Conflict, "another row holds that place or id; read again, then decide"),
    psycopg.DataError: (InvalidInput, "PostgreSQL cannot hold a value of the call; check its size and characters"),
    psycopg.NotSupportedError: (Unsupported, "this PostgreSQL cannot do that"),
    psycopg.ProgrammingError: (PerdureError, REPORT),
    psycopg.InternalError: (PerdureError, REPORT),
    psycopg.DatabaseError: (PerdureError, REPORT),
    psycopg.Error: (PerdureError, REPORT),
    psycopg.Warning: (PerdureError, REPORT),
    errors.InsufficientPrivilege: (
        Unavailable,
        "the role lacks a privilege; see docs/how-to/postgresql.md for the grants it needs",
    ),
    errors.InvalidTextRepresentation: (
        # The policies of the tables say so; no statement of ours has PostgreSQL read a value from a text.
        Unavailable,
        "the user's name did not reach the server with its rows; if the store was distributed meanwhile, open it again",
    ),
    errors.InvalidPassword: (Unavailable, "PostgreSQL refused the password; correct it in the URL"),
    errors.InvalidAuthorizationSpecification: (Unavailable, "PostgreSQL refused the role; correct it in the URL"),
    errors.InvalidCatalogName: (Unavailable, "the database does not exist; create it, or correct the URL"),
    errors.DiskFull: (Unavailable, "the database's disk is full; free some space, then try again"),
    errors.TooManyConnections: (Unavailable, "PostgreSQL has no connection left; lower `postgres_pool_max` or raise its limit"),
    errors.QueryCanceled: (Unavailable, "PostgreSQL cancelled the statement; try again"),
    errors.IdleInTransactionSessionTimeout: (
        Unavailable,
        "PostgreSQL ended a transaction that said nothing for too long; try again",
    ),
    errors.SerializationFailure: (Unavailable, "another transaction came first, again and again; try again"),
    errors.DeadlockDetected: (Unavailable, "two transactions waited for each other, again and again; try again"),
    errors.LockNotAvailable: (Unavailable, "the row is locked by another transaction; try again"),
    errors.ReadOnlySqlTransaction: (ReadOnly, "this PostgreSQL is read-only, perhaps a replica; use the primary"),
    errors.DataCorrupted: (Corrupt, "PostgreSQL reports damaged data; stop, restore a backup"),
    errors.IndexCorrupted: (Corrupt, "PostgreSQL reports a damaged index; REINDEX, then run `perdure admin verify`"),
}


@contextmanager
def translated() -> Iterator[None]:
    """Everything the driver raises inside leaves as one of our errors, with the cause kept."""
    try:
        yield
    except psycopg.Error as error:
        raise in_our_words(error) from error


def in_our_words(error: psycopg.Error) -> PerdureError:
    if isinstance(error, DeadlineExceeded):
        return Unavailable(
            f"PostgreSQL did not answer within {error.seconds:.1f} s; check the network and its load, then try again"
        )
    if isinstance(error, AnswerLost):
        return Unavailable("PostgreSQL was lost while it committed; what was written may be there or not; look, then repeat it")
    if isinstance(error, psycopg_pool.PoolTimeout):
        return Unavailable(f"no connection to PostgreSQL in time; {GONE}")
    if isinstance(error, psycopg_pool.PoolClosed):
        return Unavailable("the store is closed; open it again")
    kind, words = next(MEANING[one] for one in type(error).__mro__ if one in MEANING)
    state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
    # The server's own message may quote a row, so only its code goes out; the cause keeps the rest.
    return kind(f"{words}{state}")


class DeadlineExceeded(psycopg.OperationalError):
    """The server said nothing for too long. The connection is closed: what it was doing is unknown."""

    def __init__(self, seconds: float) -> None:
        super().__init__("deadline exceeded")
        self.seconds = seconds


class AnswerLost(psycopg.OperationalError):
    """The connection broke during a commit: whether it happened can be asked for by its token."""

    def __init__(self, noted: tuple[Owner, int] | None, result: object) -> None:
        super().__init__("commit")
        self.noted = noted
        """Whose row the token is in; None if nothing of an owner's was changed."""
        self.result = result


class DeadlineConnection(psycopg.Connection[tuple[object, ...]]):
    """A connection whose every wait ends at `until`: no server-side setting helps when the network swallows packets."""

    until: float | None = None
    allowed_s: float = 0.0
    changed: bool = False
    """The transaction in hand has changed something of its owner's."""
    warned: bool = False
    """The server has warned of something since this was last put back."""
    made_at: float = 0.0
    place: tuple[str, str] = ("", "")
    """Host and port of the server, which a connection that is closed does not tell any more."""

    def note(self, notice: errors.Diagnostic) -> None:
        self.warned = self.warned or notice.severity_nonlocalized == "WARNING"

    def allow(self, seconds: float) -> None:
        self.allowed_s = seconds
        self.until = time.monotonic() + seconds

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        if self.until is None:
            return super().wait(gen, interval, timeout)
        remaining = self.until - time.monotonic()
        if timeout is not None and timeout < remaining:
            return super().wait(gen, interval, timeout)
        try:
            if remaining <= 0:
                raise errors._WaitTimeout("deadline passed")
            return super().wait(gen, interval, remaining)
        except errors._WaitTimeout as error:
            self.pgconn.finish()
            raise DeadlineExceeded(self.allowed_s) from error


def again(error: Exception) -> bool:
    """Whether running the same work once more can succeed. It may: a write carries its own ids, or says that it has none."""
    if isinstance(error, DeadlineExceeded | AnswerLost | psycopg_pool.PoolTimeout | psycopg_pool.PoolClosed):
        return False
    rivals = (errors.UniqueViolation, errors.ForeignKeyViolation, errors.SerializationFailure, errors.DeadlockDetected)
    lost = isinstance(error, psycopg.OperationalError) and error.sqlstate in (None, "57P01", "57P02", "08006", "08003")
    return isinstance(error, rivals) or lost


class AbandonedTransactions:
    """Transactions whose connection we lost, or dropped: the server may not know, and goes on with their locks.

    It ends a transaction that is idle. One that is cut off between a statement and the mark that follows it is not idle in
    its eyes: it waits for the mark, with all that it has locked, until TCP finds out. So the next connection ends it. Each
    holds a lock on its token, which names it beyond doubt, whichever process serves it.
    """

    def __init__(self) -> None:
        self._tokens: deque[int] = deque(maxlen=ABANDONED_KEPT)

    def note(self, token: int) -> None:
        self._tokens.append(token)

    def end_all(self, connection: psycopg.Connection[tuple[object, ...]]) -> None:
        """By a new connection of the login role, which may end what is its own."""
        tokens = [*self._tokens]
        if not tokens:
            return
        # A server may be set up to forbid even that. Those that are idle end by themselves.
        with suppress(errors.InsufficientPrivilege):
            connection.execute(END_ABANDONED, (tokens,), prepare=False)
        for token in tokens:
            with suppress(ValueError):
                self._tokens.remove(token)


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
