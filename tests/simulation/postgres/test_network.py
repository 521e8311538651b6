"""PostgreSQL behind a network that misbehaves: no call outlives its deadline, and work goes on when the network does."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

import perdure
from perdure.domain.models import Usage
from perdure.domain.scope import Owner
from perdure.ports.store import Tx
from perdure.testing.contract.oversight import a_decision
from perdure.testing.contract.samples import NOW
from proof.crashing import CrashingServer
from proof.network import Proxy as StrikingProxy
from proof.network import Weather

DEADLINE_S = 2.0
# What a call may take beyond its deadline before we say that it hangs; a loaded machine is slow, a black hole is for ever.
GRACE_S = 13.0


class Proxy:
    """Passes bytes between TCP on loopback and the server's socket, until told to swallow or to cut."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.swallowing = threading.Event()
        self._sockets: list[socket.socket] = []
        self._stopped = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while not self._stopped:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._server)
            self._sockets += [client, server]
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65_536):
                if not self.swallowing.is_set():
                    target.sendall(data)
        except OSError:
            pass

    def cut(self) -> None:
        """End every connection, as a crashed server or a broken cable does."""
        while self._sockets:
            self._sockets.pop().close()

    def close(self) -> None:
        self._stopped = True
        self._listener.close()
        self.cut()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    folder = parse_qs(urlsplit(postgres_url).query)["host"][0]
    proxy = Proxy(f"{folder}/.s.PGSQL.5432")
    yield proxy
    proxy.close()


@pytest.fixture
def engine(proxy: Proxy, postgres_schema: str) -> Iterator[perdure.Engine]:
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres"
    settings = perdure.Settings(url=url, postgres_schema=postgres_schema, deadline_s=DEADLINE_S, postgres_pool_max=2)
    with perdure.open(settings=settings) as engine:
        yield engine


def test_who_vanishes_in_the_middle_of_a_transaction_keeps_nobody_waiting(
    engine: perdure.Engine, proxy: Proxy, postgres_url: str, postgres_schema: str
) -> None:
    """The server never hears that the client has given up: it must give up, too, or it holds the client's locks for hours."""
    ana = engine.memory("ana")
    ana.append("user", "before")

    def vanish(tx: Tx) -> None:
        assert tx.latest_session(ana.scope.address) is not None  # which locks it
        proxy.swallowing.set()

    with pytest.raises(perdure.Unavailable):
        engine._store.write(ana.scope.owner, vanish)
    # The first one stays cut off: nobody but the server itself can end its transaction.
    with perdure.open(settings=perdure.Settings(url=postgres_url, postgres_schema=postgres_schema)) as another:
        _sooner_or_later(lambda: another.memory("ana").append("user", "after", id="m1"))
        assert [message.content for message in another.memory("ana").messages()] == ["before", "after"]


def test_an_owner_who_falls_silent_in_a_restore_is_given_up_too(engine: perdure.Engine) -> None:
    with engine._store._owner_transaction(None) as cursor:  # type: ignore[attr-defined]
        assert cursor.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("10min",)


def test_a_transaction_cut_off_within_a_statement_is_ended_by_the_next_connection(
    postgres_url: str, postgres_schema: str
) -> None:
    """PostgreSQL has run the statement and waits for the mark that ends it: in its eyes that is not idle, so no timeout ends it."""
    folder = parse_qs(urlsplit(postgres_url).query)["host"][0]
    network = StrikingProxy(f"{folder}/.s.PGSQL.5432", random.Random(1))
    url = f"postgresql://postgres@127.0.0.1:{network.port}/postgres?sslmode=disable&gssencmode=disable"
    settings = perdure.Settings(url=url, postgres_schema=postgres_schema, deadline_s=DEADLINE_S, postgres_pool_max=2)
    try:
        with perdure.open(settings=settings) as engine:
            ana = engine.memory("ana")
            ana.append("user", "before")
            network.set(Weather("lost", mid_statement=True, aim=b"cut off", times=1))
            with pytest.raises(perdure.Unavailable):
                ana.append("user", "cut off", id="m1")
            assert network.met["lost"] == 1
            _sooner_or_later(lambda: ana.append("user", "cut off", id="m1"))
            assert [message.content for message in ana.messages()] == ["before", "cut off"]
    finally:
        network.close()


def test_a_server_that_lets_nobody_end_a_process_is_served_all_the_same(postgres_url: str) -> None:
    from perdure.adapters.postgres.connections import END_ABANDONED, AbandonedTransactions

    class Hardened:
        asked: ClassVar[list[object]] = []

        def execute(self, query: str, values: object, *, prepare: bool) -> None:
            assert query == END_ABANDONED
            self.asked.append(values)
            raise psycopg.errors.InsufficientPrivilege("permission denied for function pg_terminate_backend")

    abandoned = AbandonedTransactions()
    abandoned.end_all(Hardened())  # type: ignore[arg-type] # nothing was abandoned, so nothing is asked
    assert Hardened.asked == []
    abandoned.note(7)
    abandoned.end_all(Hardened())  # type: ignore[arg-type]
    abandoned.end_all(Hardened())  # type: ignore[arg-type]
    assert Hardened.asked == [([7],)], "once is enough"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        abandoned.note(7)
        abandoned.end_all(connection)  # a number that nobody works under any more ends nobody
        assert connection.execute("SELECT 1").fetchone() == (1,)


def _sooner_or_later(call: Callable[[], object]) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            call()
            return
        except perdure.Unavailable:
            assert time.monotonic() < until


class Losing(psycopg.Cursor):  # type: ignore[type-arg]
    """Commits, and loses the connection before it can say so; or loses it first."""

    when: str = ""
    lost: int = 0

    def execute(self, query, params=None, **more):  # type: ignore[no-untyped-def]
        ours = isinstance(query, bytes) and query.endswith(b"COMMIT") and type(self).when
        if not ours:
            return super().execute(query, params, **more)
        type(self).lost += 1
        when, type(self).when = type(self).when, ""
        if when == "after":
            super().execute(query, params, **more)
        self.connection.pgconn.finish()
        raise psycopg.OperationalError("the connection is lost")


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_carries_no_id_is_counted_once_when_the_answer_of_a_commit_is_lost(
    postgres_url: str, postgres_schema: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decision has an id, and would be met when it is stored again. A count has none: there the server is asked."""
    from perdure.adapters.postgres.connections import DeadlineConnection
    from perdure.adapters.postgres.store import PostgresStore

    init = DeadlineConnection.__init__

    def with_losing_cursors(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        init(self, *args, **kwargs)
        self.cursor_factory = Losing

    monkeypatch.setattr(DeadlineConnection, "__init__", with_losing_cursors)
    monkeypatch.setattr(Losing, "when", "")
    monkeypatch.setattr(Losing, "lost", 0)
    store = PostgresStore(postgres_url, schema=postgres_schema, deadline_s=20.0)
    ana = Owner("default", "ana")
    runs = 0

    def decide(tx: Tx) -> bool:
        nonlocal runs
        runs += 1
        return tx.oversight.put_decision(a_decision("d1"), keep=9)

    def ask(tx: Tx) -> None:
        nonlocal runs
        runs += 1
        tx.oversight.add_usage(Usage("chat", "ok", 1, 2, 3, 4.0, NOW))

    tries = 1 if when == "after" else 2
    Losing.when = when
    assert store.write(ana, decide), "it is new, whoever heard of it first"
    assert (runs, Losing.lost) == (tries, 1)
    Losing.when = when
    store.write(ana, ask)
    assert (runs, Losing.lost) == (2 * tries, 2)
    assert [one.calls for one in store.usage()] == [1]
    store.write(ana, ask)
    assert [one.calls for one in store.usage()] == [2]
    store.close()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_count_whose_commit_nobody_can_tell_about_is_left_to_the_caller(
    postgres_url: str, postgres_schema: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure.adapters.postgres.connections import AnswerLost
    from perdure.adapters.postgres.store import PostgresStore

    store = PostgresStore(postgres_url, schema=postgres_schema, deadline_s=1.0)
    ana = Owner("default", "ana")
    run = store._transact_once

    def lost(begin, owner, work, seconds):  # type: ignore[no-untyped-def]
        if begin != "BEGIN":
            return run(begin, owner, work, seconds)
        if when == "after" and not asked:
            run(begin, owner, work, seconds)
        # Nor does whoever asks hear anything.
        asked.append(seconds)
        raise AnswerLost((ana, 7), None)

    asked: list[float] = []

    monkeypatch.setattr(store, "_transact_once", lost)
    with pytest.raises(perdure.Unavailable, match="may be there or not") as caught:
        store.write(ana, lambda tx: tx.oversight.add_usage(Usage("chat", "ok", 1, 2, 3, 4.0, NOW)))
    assert caught.value.retriable
    assert [one.calls for one in store.usage()] == ([1] if when == "after" else [])
    store.close()


def test_a_mention_is_counted_once_when_the_answer_of_its_commit_is_lost(
    postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure.adapters.postgres.connections import DeadlineConnection

    init = DeadlineConnection.__init__

    def with_losing_cursors(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        init(self, *args, **kwargs)
        self.cursor_factory = Losing

    monkeypatch.setattr(DeadlineConnection, "__init__", with_losing_cursors)
    monkeypatch.setattr(Losing, "when", "")
    with perdure.open(settings=perdure.Settings(url=postgres_url, postgres_schema=postgres_schema)) as engine:
        ana = engine.memory("ana")
        for mentions in (1, 2):
            Losing.when = "after"
            ana.remember("Owns a boat")
            assert [one.mentions for held in ana.memories.list() for one in held.statements] == [mentions]
        walk = ana.todos.add("walk the dog", "habit", recurrence="0 9 * * *")
        Losing.when = "after"
        assert ana.todos.complete(walk.id).completions == 1
        assert [one.completions for one in ana.todos.list()] == [1]


class Crashing(psycopg.Cursor):  # type: ignore[type-arg]
    """The server crashes just before it hears of the first commit; another client is then given the number it had."""

    server: ClassVar[CrashingServer | None] = None
    number: ClassVar[int] = 0

    def execute(self, query, params=None, **more):  # type: ignore[no-untyped-def]
        server = type(self).server
        if server is None or not (isinstance(query, bytes) and query.endswith(b"COMMIT")):
            return super().execute(query, params, **more)
        type(self).server = None
        [(number,)] = super().execute("SELECT pg_current_xact_id()::text::bigint").fetchall()
        server.stop_immediately()
        server.restart()
        with psycopg.connect(server.url, autocommit=True) as other:
            while type(self).number < number:
                given = "INSERT INTO other_program DEFAULT VALUES RETURNING pg_current_xact_id()::text::bigint"
                [(type(self).number,)] = other.execute(given).fetchall()
        assert type(self).number == number, "the number was not given again, so nothing is shown"
        self.connection.pgconn.finish()
        raise psycopg.OperationalError("the connection is lost")


def test_a_write_that_a_crash_took_is_not_acknowledged_for_a_commit_of_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of a transaction that was not flushed is given to the next one: it says nothing of ours."""
    from perdure.adapters.postgres.connections import DeadlineConnection

    init = DeadlineConnection.__init__

    def with_crashing_cursors(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        init(self, *args, **kwargs)
        self.cursor_factory = Crashing

    server = CrashingServer()
    try:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE other_program (row bigint GENERATED ALWAYS AS IDENTITY)")
            # What is not committed stays in memory until a commit has it written.
            connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            connection.execute("SELECT pg_reload_conf()")
        monkeypatch.setattr(DeadlineConnection, "__init__", with_crashing_cursors)
        with perdure.open(settings=perdure.Settings(url=server.url, deadline_s=60.0)) as engine:
            ana = engine.memory("ana")
            ana.append("user", "first", id="m0")
            Crashing.server = server
            ana.append("user", "second", id="m1")
            assert Crashing.number, "it crashed"
            assert [message.id for message in ana.messages()] == ["m0", "m1"]
            assert ana.state.save("count", 1) == 1
    finally:
        Crashing.server = None
        server.stop()
