"""`distribute`: the order of its steps, what it refuses, and that a setting lost on the way can never look like an empty answer.

On a stand-in for Citus (`pretended_citus.py`); `make test-citus URL=…` runs contract and flows on a real cluster.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import psycopg
import pytest

import perdure
import pg
import pretended_citus
from in_process import InProcess
from perdure.adapters.postgres import cluster as clusters
from perdure.adapters.postgres.statements import PROPAGATE
from perdure.adapters.postgres.store import PostgresStore
from perdure.domain.scope import Owner
from perdure.testing.contract.samples import ANA, HERE, fill

ALL = [f"perdure.{table}" for table in clusters.IN_ORDER]


@pytest.fixture
def coordinator(postgres_url: str) -> Iterator[str]:
    with pretended_citus.database(postgres_url) as url:
        yield url


def calls(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        return [call for (call,) in connection.execute("SELECT call FROM citus_calls ORDER BY number").fetchall()]


def test_a_store_is_distributed_by_user_with_what_it_holds(coordinator: str) -> None:
    with perdure.open(coordinator) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Lisbon")
        report = engine.distribute()
        assert (report.nodes, report.already) == (("node-a:5432", "node-b:5432"), 0)
        assert report.tables == clusters.IN_ORDER
        ana.remember("Works at Acme")
        engine.process(60)
        assert [message.content for message in ana.messages()] == ["I live in Lisbon"]
        assert engine.verify().findings == ()
        health = engine.doctor()
        assert health.healthy, health.degraded
        assert health.versions["citus"] == "13.2-1"
    assert calls(coordinator) == [
        *(f"distribute {table} by user_id" for table in ALL),
        *(f"truncate local {table}" for table in ALL),
    ]
    with psycopg.connect(coordinator) as connection:
        places = connection.execute("SELECT DISTINCT colocationid FROM pg_dist_partition").fetchall()
        held = "SELECT bool_or(relforcerowsecurity), bool_and(relrowsecurity) FROM pg_class WHERE oid = ANY(%s::regclass[])"
        assert connection.execute(held, (ALL,)).fetchone() == (False, True)
        assert connection.execute("SELECT rolcanlogin FROM pg_roles WHERE rolname = 'perdure_app'").fetchone() == (True,)
    assert places == [(1,)], "all lie beside the first"


def test_one_that_was_stopped_goes_on_where_it_stopped(coordinator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place = clusters.place

    def stopped(cursor: object, schema: str, table: str) -> bool:
        if table == "jobs":
            raise KeyboardInterrupt
        return place(cursor, schema, table)  # type: ignore[arg-type]

    with perdure.open(coordinator) as engine:
        with monkeypatch.context() as patched:
            patched.setattr(clusters, "place", stopped)
            with pytest.raises(KeyboardInterrupt):
                engine.distribute()
        assert any("jobs is not distributed" in line for line in engine.doctor().degraded)
        assert any("jobs" in finding.where for finding in engine.verify().findings)
        report = engine.distribute()
        assert (report.tables[0], report.already) == ("jobs", clusters.IN_ORDER.index("jobs"))
        assert (engine.distribute().tables, engine.distribute().already) == ((), len(ALL))
        assert engine.verify().findings == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("DELETE FROM pg_extension WHERE extname = 'citus'", "has no Citus"),
        ("UPDATE pg_dist_local_group SET groupid = 1", "not the coordinator"),
        ("UPDATE pg_dist_node SET shouldhaveshards = false", "no node"),
    ],
)
def test_what_a_cluster_lacks_is_said_before_anything_is_changed(coordinator: str, change: str, words: str) -> None:
    with psycopg.connect(coordinator, autocommit=True) as connection:
        connection.execute("SET allow_system_table_mods = on")
        connection.execute(change.encode())
    with perdure.open(coordinator) as engine:
        with pytest.raises((perdure.Unavailable, perdure.Unsupported), match=words):
            engine.distribute()
        assert engine.verify().findings == ()
    assert calls(coordinator) == []


@pytest.mark.parametrize("url", ["memory:", "sqlite"])
def test_a_store_on_one_machine_says_what_to_use(url: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with perdure.open(f"sqlite:///{tmp_path}/a.db" if url == "sqlite" else url) as engine:
        with pytest.raises(perdure.Unsupported, match="use PostgreSQL with Citus"):
            engine.distribute()


def test_a_node_that_is_out_of_use_is_told_by_doctor(coordinator: str) -> None:
    with perdure.open(coordinator) as engine:
        engine.distribute()
        with psycopg.connect(coordinator, autocommit=True) as connection:
            connection.execute("SET allow_system_table_mods = on")
            connection.execute("UPDATE pg_dist_node SET isactive = false WHERE nodename = 'node-b'")
        assert any("node-b:5432 is out of use" in line for line in engine.doctor().degraded)


def test_the_tables_owner_serves_no_request_of_a_cluster(coordinator: str) -> None:
    """Its rows are not bound by row-level security there; it may still verify and purge."""
    name = f"owner_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(coordinator, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {connection.info.dbname} TO {name}")
        connection.execute("SET allow_system_table_mods = on")
        connection.execute(f"GRANT INSERT ON pg_dist_partition, citus_calls TO {name}")
    as_owner = coordinator.replace("postgres:@", f"{name}@").replace("postgres@", f"{name}@")
    assert name in as_owner
    try:
        with perdure.open(as_owner) as engine:
            engine.memory("ana").append("user", "before")
            engine.distribute()
            with pytest.raises(perdure.Unavailable, match="serves no request"):
                engine.memory("ana").append("user", "after")
            with pytest.raises(perdure.Unavailable, match="serves no request"):
                engine.memory("ana").messages()
            assert engine.verify().findings == ()
        with perdure.open(as_owner) as engine, pytest.raises(perdure.Unavailable, match="serves no request"):
            engine.memory("ana").messages()
        with perdure.open(coordinator) as engine:
            assert [one.content for one in engine.memory("ana").messages()] == ["before"]
    finally:
        with psycopg.connect(coordinator, autocommit=True) as connection:
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


def test_an_older_backup_is_distributed_again_when_it_is_restored(coordinator: str) -> None:
    store = PostgresStore(coordinator)
    fill(store, ANA, 1)
    store.distribute()
    with store.snapshot() as held:
        rows = list(held.rows("sessions")), list(held.rows("messages"))
    older = len(store._known) - 1
    store.restore(older, [("sessions", iter(rows[0])), ("messages", iter(rows[1]))], replace=True)
    assert store.read(ANA, lambda view: view.latest_session(HERE)) is not None
    assert list(store.check()) == []
    store.close()
    again = calls(coordinator)[2 * len(ALL) :]
    assert again[: len(ALL)] == [f"distribute {table} by user_id" for table in ALL]


def test_every_transaction_of_a_cluster_has_its_settings_sent_along(coordinator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """First of all that is set: Citus passes on what is set after it."""
    from perdure.adapters.postgres import store as module

    said: list[str] = []
    begin = module.begin

    def heard(*args, **kwargs):  # type: ignore[no-untyped-def]
        said.append(begin(*args, **kwargs).decode())
        return begin(*args, **kwargs)

    monkeypatch.setattr(module, "begin", heard)
    with perdure.open(coordinator) as engine:
        engine.memory("ana").append("user", "before")
        assert not any(PROPAGATE in one for one in said)
        engine.distribute()
        said.clear()
        engine.memory("ana").append("user", "after")
        engine.process(10)
        list(engine._store.check())
        engine.memory("ana").forget(user=True)
    assert said
    assert all(one.split("; ")[1] == PROPAGATE for one in said)


@pytest.mark.parametrize("statement", ["SELECT * FROM sessions", "UPDATE sessions SET tokens = 7", "DELETE FROM messages"])
def test_rows_whose_user_did_not_arrive_are_refused_aloud(
    postgres_url: str, postgres_schema: str, statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty answer is never a setting that was lost: not on another server, and not here."""
    from perdure.adapters.postgres import store as module

    store = PostgresStore(postgres_url, schema=postgres_schema)
    fill(store, ANA, 1)
    begin = module.begin

    def lost(*args, **kwargs):  # type: ignore[no-untyped-def]
        return b"; ".join(
            one for one in begin(*args, **kwargs).split(b"; ") if b"perdure" not in one.replace(b"perdure_app", b"")
        )

    monkeypatch.setattr(module, "begin", lost)
    with pytest.raises(perdure.Unavailable, match="did not reach the server"):
        store._transact("BEGIN", ANA, lambda cursor: cursor.execute(statement))
    with pytest.raises(perdure.Unavailable, match="did not reach the server"):
        store.read(ANA, lambda view: view.latest_session(HERE))
    with pytest.raises(perdure.Unavailable, match="did not reach the server"):
        store._transact("BEGIN", Owner("s", "u"), lambda cursor: cursor.execute("INSERT INTO owners VALUES ('s', 'u', 0)"))
    store.close()


def test_doctor_names_the_node_that_does_not_get_the_name_of_the_user(
    coordinator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with perdure.open(coordinator) as engine:
        engine.distribute()
        monkeypatch.setattr(clusters, "knows_the_owner", lambda _, owner: owner.user != _user_on(coordinator, "node-b:5432"))
        degraded = engine.doctor().degraded
    assert [line for line in degraded if "does not get the name" in line] == [
        "cluster: node node-b:5432 does not get the name of the user; is it of the same version of Citus?"
    ]


def _user_on(url: str, node: str) -> str:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        return dict(clusters.probes(cursor, "perdure"))[node]


def test_the_command_distributes_and_says_where(coordinator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open(coordinator) as engine:
        commands = InProcess(monkeypatch, engine)
        assert commands.run("admin", "distribute", "--json").json["tables"] == list(clusters.IN_ORDER)
        again = commands.run("admin", "distribute").stdout
        assert f"0 tables distributed, {len(ALL)} were already" in again
        assert "node-a:5432" in again


def test_a_plain_postgres_says_what_is_missing(postgres_url: str, postgres_schema: str) -> None:
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        with pytest.raises(perdure.Unsupported, match="CREATE EXTENSION citus"):
            engine.distribute()


class NodeLosing(psycopg.Cursor):  # type: ignore[type-arg]
    """The node that holds the rows commits, or does not; the coordinator only says that it failed, and stays connected."""

    when: str = ""

    def execute(self, query, params=None, **more):  # type: ignore[no-untyped-def]
        if not (isinstance(query, bytes) and query.endswith(b"COMMIT") and type(self).when):
            return super().execute(query, params, **more)
        when, type(self).when = type(self).when, ""
        super().execute(query if when == "after" else query.replace(b"COMMIT", b"ROLLBACK"), params, **more)
        raise psycopg.errors.InternalError_("failure on connection marked as essential")


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_node_that_fails_while_it_commits_is_asked_what_became_of_it(
    postgres_url: str, postgres_schema: str, when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XX000 of a remote COMMIT is an answer lost: the node may have committed first. The token is in the user's own rows there."""
    from perdure.adapters.postgres.connections import DeadlineConnection

    init = DeadlineConnection.__init__

    def with_losing_cursors(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        init(self, *args, **kwargs)
        self.cursor_factory = NodeLosing

    monkeypatch.setattr(DeadlineConnection, "__init__", with_losing_cursors)
    monkeypatch.setattr(NodeLosing, "when", "")
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        ana = engine.memory("ana")
        for mentions in (1, 2):
            NodeLosing.when = when
            ana.remember("Owns a boat")
            assert NodeLosing.when == "", "it failed"
            assert [one.mentions for held in ana.memories.list() for one in held.statements] == [mentions]
        NodeLosing.when = when
        ana.append("user", "hello", id="m1")
        assert [message.id for message in ana.messages()] == ["m1"]
