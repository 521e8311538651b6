"""What docs/SCALE.md says of PostgreSQL: every key starts with the user, so that the tables can be split by user as they are."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import psycopg
import pytest
from pglast.parser import parse_sql
from pglast.visitors import Visitor
from psycopg import sql

import perdure
import pg
from every_call import NOW, PREPARED, SAMPLES, furnished
from perdure.adapters.postgres import store as postgres
from perdure.adapters.postgres.connections import DeadlineConnection
from perdure.adapters.postgres.statements import READ, WRITE, begin
from perdure.adapters.sql.statements import queries, schema
from perdure.domain.scope import Owner
from perdure.ports.tables.rows import TABLES
from perdure.testing import StoppedClock

PACKAGE = "perdure.adapters.postgres"
PARTS = 3
OF_THE_STORE = {
    # The queue and the reports are about everybody; a worker may ask each shard in turn.
    "due_jobs",
    "stranded_jobs",
    "count_jobs",
    "list_dead",
    "remove_done",
    "total_usage",
    # After a restore or a migration, once.
    "seed_index_heads",
    "seed_index_jobs",
}


def partitioned(text: str) -> str:
    """The schema with every table split by user."""
    made = re.sub(r"(CREATE TABLE \w+ \(.*?\n\));", r"\1 PARTITION BY HASH (space, user_id);", text, flags=re.DOTALL)
    parts = [
        f"CREATE TABLE {table}_{number} PARTITION OF {table} FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {number});"
        for table in (*TABLES, "commits")
        for number in range(PARTS)
    ]
    return made + "\n" + "\n".join(parts)


def test_every_key_and_every_reference_of_every_table_starts_with_the_user(postgres_url, postgres_schema):
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)), psycopg.connect(postgres_url) as connection:
        found = connection.execute(
            """SELECT c.relname, k.contype::text, ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS n (num, place)
                      JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum = n.num ORDER BY n.place)
               FROM pg_constraint AS k JOIN pg_class AS c ON c.oid = k.conrelid JOIN pg_namespace AS s ON s.oid = c.relnamespace
               WHERE s.nspname = %s AND k.contype IN ('p', 'u', 'f')""",
            (postgres_schema,),
        ).fetchall()
    keyed = {table for table, kind, _ in found if kind == "p"}
    assert keyed == {*TABLES, "commits", "perdure_migrations"}
    assert [
        (table, columns) for table, _, columns in found if table != "perdure_migrations" and columns[:2] != ["space", "user_id"]
    ] == []


def test_every_statement_but_those_about_the_whole_store_names_the_user():
    """So that a router sends it to one shard, and no join crosses users."""
    named = queries(PACKAGE)
    nameless = {
        name for name, text in named.items() if not re.search(r"\buser_id = :user_id|VALUES \(:space(::text)?, :user_id", text)
    }
    assert nameless <= OF_THE_STORE, f"{nameless - OF_THE_STORE} may reach more than one user"
    assert named.keys() >= OF_THE_STORE


class Forms(Visitor):
    """What a statement does that a cluster of servers refuses, or would do to more than one user."""

    def __init__(self) -> None:
        super().__init__()
        self.locks = self.settings = self.feeds = False

    def visit_LockingClause(self, _ancestors, _node):  # noqa: N802 - the parser's names
        self.locks = True

    def visit_FuncCall(self, _ancestors, node):  # noqa: N802 - the parser's names
        self.settings |= node.funcname[-1].sval in ("set_config", "pg_advisory_lock")

    def visit_VariableSetStmt(self, _ancestors, _node):  # noqa: N802 - the parser's names
        self.settings = True

    def visit_InsertStmt(self, _ancestors, node):  # noqa: N802 - the parser's names
        self.feeds |= node.withClause is not None or getattr(node.selectStmt, "withClause", None) is not None


def forms(statement: str) -> Forms:
    """What is in a statement of ours, whose values are numbered for the parser."""
    found = Forms()
    found(parse_sql(re.sub(r"(?<!:):(\w+)", "$1", statement)))
    return found


@pytest.mark.parametrize("name", sorted(queries(PACKAGE)))
def test_no_statement_has_a_form_that_a_cluster_refuses(name):
    """No lock across users, no setting of a session, no CTE that feeds an INSERT."""
    found = forms(queries(PACKAGE)[name])
    assert not (found.locks and name in OF_THE_STORE), "rows of several users are locked by one statement"
    assert not found.settings, "a session is set"
    assert not found.feeds, "a CTE feeds an INSERT"


def test_the_forms_that_a_cluster_refuses_are_noticed():
    locked = forms("SELECT * FROM jobs WHERE due_at_us <= :now ORDER BY due_at_us FOR UPDATE SKIP LOCKED")
    fed = forms("WITH given (a) AS (VALUES (:a)) INSERT INTO series_past SELECT a FROM given")
    assert (locked.locks, fed.feeds, forms("SELECT set_config('a', :a, false)").settings) == (True, True, True)


def test_what_begins_a_transaction_sets_nothing_for_the_session():
    """P8: the next transaction of that session may be another store's."""
    for owner, role in ((None, None), (Owner("default", "ana'; SET search_path TO x; --"), "perdure_app")):
        for how in (WRITE, READ):
            statements = parse_sql(begin(how, owner, 'odd"name', role=role, silence_s=1.0).decode())
            kinds = [type(one.stmt).__name__ for one in statements]
            assert kinds[0] == "TransactionStmt"
            assert set(kinds[1:]) == {"VariableSetStmt"}
            assert all(one.stmt.is_local for one in statements[1:])


class Recording(psycopg.Cursor):
    """Notes every statement of a transaction, and whether that is one owner's or everybody's."""

    sent: ClassVar[dict[str, set[str]]] = {}
    begun: ClassVar[dict[int, str]] = {}

    def execute(self, query, params=None, **more):
        text = query.as_string(self) if isinstance(query, sql.Composable) else query
        text = text.decode() if isinstance(text, bytes) else text
        if text.startswith("BEGIN"):
            Recording.begun[id(self.connection)] = "everybody" if "perdure.everyone" in text else "owner"
        whose = Recording.begun.get(id(self.connection), "nobody")
        Recording.sent.setdefault(text, set()).add(whose)
        if text.endswith("COMMIT"):
            Recording.begun.pop(id(self.connection), None)
        return super().execute(query, params, **more)

    def executemany(self, query, params_seq, **more):
        Recording.sent.setdefault(query.decode() if isinstance(query, bytes) else query, set()).add(
            Recording.begun.get(id(self.connection), "nobody")
        )
        return super().executemany(query, params_seq, **more)


class Touched(Forms):
    """The tables of ours that a statement is about, and the columns it compares."""

    def __init__(self):
        super().__init__()
        self.tables, self.columns, self.values, self.local = set(), set(), False, True

    def visit_RangeVar(self, _ancestors, node):  # noqa: N802 - the parser's names
        self.tables |= {node.relname} & {*TABLES, "commits"}

    def visit_A_Expr(self, _ancestors, node):  # noqa: N802 - the parser's names
        if node.name[-1].sval == "=" and hasattr(node.lexpr, "fields"):
            self.columns.add(node.lexpr.fields[-1].sval)

    def visit_VariableSetStmt(self, _ancestors, node):  # noqa: N802 - the parser's names
        self.local &= bool(node.is_local)

    def visit_SelectStmt(self, _ancestors, node):  # noqa: N802 - the parser's names
        self.values |= bool(node.valuesLists)


UPKEEP = ("VACUUM", "TRUNCATE", "CREATE", "ALTER", "GRANT", "DO", "--", "DROP", "DECLARE", "FETCH", "CLOSE", "SHOW")
"""What an owner's connection does to tables as a whole, which Citus does on every node."""


def objections(text: str, whose: set[str]) -> list[str]:
    """What a cluster has against a statement that was sent in transactions of these."""
    found = Touched()
    found(parse_sql(re.sub(r"%\(\w+\)s|%s", "$1", text)))
    if text.lstrip().startswith(UPKEEP):
        return []
    names_owner = {"space", "user_id"} <= found.columns or (found.values and "INSERT" in text)
    return [
        words
        for words, holds in {
            "a CTE feeds an INSERT": found.feeds,
            "a session is set": not found.local or found.settings,
            "it does not name its owner": bool(found.tables) and "owner" in whose and not names_owner,
            "rows of several owners are locked": found.locks and not names_owner,
        }.items()
        if holds
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM jobs WHERE kind = %s", "it does not name its owner"),
        ("UPDATE jobs SET state = %s WHERE user_id = %s", "it does not name its owner"),
        ("SELECT * FROM jobs WHERE kind = %s FOR UPDATE SKIP LOCKED", "rows of several owners are locked"),
        ("BEGIN; SET search_path TO x", "a session is set"),
        ("SELECT set_config('perdure.user', %s, true)", "a session is set"),
        ("WITH given (a) AS (VALUES (%s)) INSERT INTO series_past SELECT a FROM given", "a CTE feeds an INSERT"),
    ],
)
def test_what_a_cluster_refuses_is_objected_to(text, words):
    assert words in objections(text, {"owner"})


def test_every_statement_that_any_call_sends_is_one_that_a_cluster_takes(postgres_url, postgres_schema, tmp_path, monkeypatch):
    """Named ones and those that Python puts together: what was sent while every public call was made."""
    init = DeadlineConnection.__init__

    def recording(self, *args, **kwargs):
        init(self, *args, **kwargs)
        self.cursor_factory = Recording

    monkeypatch.setattr(DeadlineConnection, "__init__", recording)
    monkeypatch.setattr(Recording, "sent", {})
    settings = pg.settings(postgres_url, postgres_schema, files_dir=str(tmp_path / "files"), transcript_messages_min=0)
    with perdure.open(settings=settings, clock=StoppedClock(NOW)) as engine:
        world = furnished(engine, tmp_path)
        for name, call in sorted(SAMPLES.items(), key=lambda one: one[0] in ("Memory.forget", "Memory.import_")):
            if name == "Engine.distribute":
                continue
            # Some want what another one has taken away meanwhile: what they sent until then counts all the same.
            with suppress(perdure.PerdureError):
                world.prepared = PREPARED[name](world) if name in PREPARED else None
                call(world)
        engine.process(60)
        engine.verify()
        engine.doctor()
        world.ana.forget(user=True)
    assert len(Recording.sent) > 200
    assert {text: found for text, whose in Recording.sent.items() if (found := objections(text, whose))} == {}


def test_a_store_split_by_user_works_as_it_is(postgres_url, postgres_schema, monkeypatch):
    """The schema with its tables partitioned by hash of the user, and nothing else changed."""
    text = partitioned(schema(PACKAGE))
    monkeypatch.setattr(postgres, "schema_sql", lambda _: text)
    start = datetime(2026, 3, 1, tzinfo=UTC)
    users = [f"user-{number}" for number in range(12)]
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        for user in users:
            memory = engine.memory(user)
            memory.append("user", f"{user} lives in Lisbon and likes long runs")
            memory.remember(f"{user} works at Acme")
            memory.state.save("home", {"city": "Lisbon"})
            entries = [{"id": "1", "timestamp": start.isoformat(), "km": 5}]
            memory.series("runs").merge(entries, window=(start, start + timedelta(days=1)))
        assert engine.process(60).failed == 0
        for user in users:
            memory = engine.memory(user)
            assert any(user in hit.text for hit in memory.recall("where does she live").hits)
            assert memory.state.load("home") == {"city": "Lisbon"}
            assert memory.series("runs").gaps(start, start + timedelta(days=2)) != ()
        engine.memory(users[0]).forget(user=True)
        assert engine.memory(users[0]).messages() == []
        assert engine.verify().findings == ()
    with psycopg.connect(postgres_url) as connection:
        held = [
            connection.execute(f"SELECT count(*) FROM {postgres_schema}.messages_{number}").fetchone()
            for number in range(PARTS)
        ]
    assert all(count > 0 for (count,) in held), "every part holds some of the users"


def test_an_engine_on_a_server_that_may_only_be_read_reads_and_refuses_to_write(postgres_url, postgres_schema):
    """As on a replica: nothing is granted, made or counted when it is opened."""
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Lisbon")
        ana.state.save("home", {"city": "Lisbon"})
        engine.process(60)
    mark = "&" if "?" in postgres_url else "?"
    reading = f"{postgres_url}{mark}options=-c%20default_transaction_read_only%3Don"
    with perdure.open(settings=pg.settings(reading, postgres_schema)) as engine:
        ana = engine.memory("ana")
        assert [one.content for one in ana.messages()] == ["I live in Lisbon"]
        assert "Lisbon" in ana.recall("where do I live").hits[0].text
        assert ana.state.load("home") == {"city": "Lisbon"}
        assert "Lisbon" in ana.context().text
        with pytest.raises(perdure.Unavailable, match="read-only"):
            ana.append("user", "I moved")
        assert len(ana.messages()) == 1


@pytest.mark.parametrize("table", TABLES)
def test_the_user_is_in_the_first_two_columns_of_every_table(table):
    assert TABLES[table].columns[:2] == ("space", "user_id")
