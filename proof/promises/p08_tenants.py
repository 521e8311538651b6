"""P8: nobody sees, changes or infers what is another's, whichever way they ask."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

import psycopg
import pytest
from psycopg import sql

import perdure
from perdure import InvalidInput
from proof.crowd import REFUSED, SPACES, gathered
from proof.harness import Case, Promise, Round
from proof.servers import fresh_sqlite, fresh_store
from proof.tenancy import Attack, Tried, World, changed, repeat, settle_in
from proof.unfiltered import ask_for_everything, without_conditions

LOGINS = ("superuser", "service", "owner")
"""The set-ups of `docs/how-to/postgresql.md`: for a superuser perdure takes on another role; a service owns nothing."""
SLOW_TO_LOAD = frozenset({"series.to_arrow", "series.to_pandas", "series.to_polars"})
"""What `series.rows` answers, in the terms of large libraries."""


def run(round: Round) -> None:
    tried = {"SQLite": Tried(), "PostgreSQL": Tried()}
    for case in round.cases(quick=2, full=24, name="stores"):
        backend = ("SQLite", "PostgreSQL")[case.number % 2]
        with ExitStack() as stack:
            _one_store(round, case, backend, tried[backend], stack)
    for backend, seen in tried.items():
        _exercised(round, backend, seen)


def _one_store(round: Round, case: Case, backend: str, tried: Tried, stack: ExitStack) -> None:
    chance = case.chance
    people = gathered(chance, round.sized(quick=6, full=16))
    actors = people[chance.randrange(2) :: 2]
    still = [one for one in people if one not in actors]
    login = LOGINS[case.number // 2 % len(LOGINS)]
    world = World(stack.enter_context(_store(round, backend, login)), people, stack, round.folder / f"{case.number}")
    _refuse_impossible(round, world.engine)
    for person in people:
        with round.guarded("in each other's way"):
            settle_in(world, person)
    attack = Attack(round, world, chance, tried, left_out=round.sized(quick=SLOW_TO_LOAD, full=frozenset()))
    watched = chance.choice([one for one in actors if one.space == SPACES[0]])
    attack.said[watched] = []
    # An application takes longer to build than to ask: in a quick round the answers of the web are compared on SQLite only.
    web = round.size == "full" or backend == "SQLite"
    attack.without_web = () if web else (watched,)
    for person in people:
        attack.look_around(person)
    before = world.digests(still)
    calls = round.sized(quick=360, full=8_400)
    for _ in range(calls // 2):
        attack.one(actors)
    with without_conditions(round) if backend == "PostgreSQL" else ExitStack():
        for _ in range(calls - calls // 2):
            attack.one(actors)
        for person in people:
            attack.take_away(person)
    round.count(f"calls on {backend}", calls)
    for line in changed(before, world.digests(still)):
        round.wrong("changed", line)
    round.met("people kept still meanwhile", len(still))
    if backend == "PostgreSQL":
        ask_for_everything(round, world.engine, actors[0], still[0])
    with ExitStack() as alone:
        empty = alone.enter_context(_store(round, backend, login))
        repeated = World(empty, [watched], alone, round.folder / f"{case.number}-alone", web=web)
        with round.guarded("not repeated"):
            settle_in(repeated, watched)
        repeat(round, repeated, attack.said[watched])
    _ends_well(round, world.engine)


def _ends_well(round: Round, engine: perdure.Engine) -> None:
    """Whatever was queued is done, and the store is whole."""
    done = engine.process(120)
    round.check(done.failed == 0, "not whole", f"{done.failed} jobs failed")
    findings = engine.verify().findings
    round.check(not findings, "not whole", findings[:3])


@contextmanager
def _store(round: Round, backend: str, login: str) -> Iterator[perdure.Settings]:
    """An empty store; on PostgreSQL for one of the three set-ups of roles that are documented."""
    if backend == "SQLite":
        yield perdure.Settings(url=fresh_sqlite(round.folder), durability="normal")
        return
    assert round.postgres is not None
    with fresh_store(round.postgres()) as settings:
        yield _as_role(settings, login)


def _as_role(settings: perdure.Settings, login: str) -> perdure.Settings:
    if login == "superuser":
        return settings
    if login == "service":
        perdure.open(settings=settings).close()
    name = f"perdure_proof_{login}"
    role, schema = sql.Identifier(name), sql.Identifier(settings.postgres_schema)
    grants = (
        "GRANT USAGE ON SCHEMA {schema} TO {role}; "
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
    )
    with psycopg.connect(settings.url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,)).fetchone() is None:
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        made = grants if login == "service" else "CREATE SCHEMA {schema} AUTHORIZATION {role}"
        connection.execute(sql.SQL(made).format(schema=schema, role=role))
    return replace(settings, url=re.sub("//[^/@]*@", f"//{name}@", settings.url))


def _refuse_impossible(round: Round, engine: perdure.Engine) -> None:
    for user in REFUSED:
        with round.guarded("an id that nobody may have"), pytest.raises(InvalidInput):
            engine.memory(user)
        round.count("impossible ids")


def _exercised(round: Round, backend: str, tried: Tried) -> None:
    """Every call there is was made, so that a new one cannot be forgotten."""
    missed = sorted(tried.offered - tried.called.keys())
    unanswered = sorted(tried.called.keys() - tried.answered.keys())
    round.facts[f"operations on {backend}"] = len(tried.offered)
    round.facts[f"never answered on {backend}"] = [" ".join(one) for one in unanswered]
    if round.size == "full" and round.is_whole:
        round.check(not missed, "never called", f"{backend}: {missed}")


PROMISE = Promise(
    id="P8",
    says="nobody sees, changes or infers what is another's",
    tried_by="random calls of everything there is, by look-alike and hostile users, through Python, CLI, HTTP and MCP on SQLite "
    "and PostgreSQL; half of them on PostgreSQL with the conditions taken out of our statements; answers compared with those on a "
    "store that nobody else uses",
    run=run,
    evidence=(
        "a key of one user named another",
        "somebody was shown what is theirs",
        "people kept still meanwhile",
        "a statement without its condition was run",
        "a table was read without a condition",
        "a table was changed without a condition",
        "a row was stored as another's",
        "a connection that stands for nobody was asked",
        "a role that owns nothing was bound",
    ),
    figure="{wrong} leaks over {calls on SQLite} calls on SQLite and {calls on PostgreSQL} on PostgreSQL",
)
