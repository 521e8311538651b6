"""A real streaming replica: every call that reads answers, none of them writes, and a write says where to go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

import perdure
import pg
import replica
from every_call import CALLS, NOW, PREPARED, SAMPLES, Step, World, furnished
from perdure.handles.operation import Declared
from perdure.testing import StoppedClock


def _declared(name: str) -> Declared:
    kind, _, method = name.partition(".")
    return CALLS[kind][method]


READS = sorted(name for name in SAMPLES if "read" in (_declared(name).action, _declared(name).permission))
"""Every public call that is declared to read; another test holds that each call has a sample."""
# What is declared to read or change nothing, and is not logged.
LOOKS: dict[str, Step] = {
    "health": lambda world: world.engine.health().store.read_only,
    "doctor": lambda world: world.engine.doctor().degraded,
    "verify": lambda world: world.engine.verify().checked,
    "context without a goal": lambda world: world.ana.context().text,
    "every list of a key": lambda world: world.engine.api_keys.list(),
    "accesses": lambda world: world.ana.journal.accesses(),
}


def test_every_call_that_reads_answers_from_a_replica(postgres_url: str, postgres_schema: str, tmp_path: Path) -> None:
    primary = Path(parse_qs(urlsplit(postgres_url).query)["host"][0])
    clock = StoppedClock(NOW)
    settings = pg.settings(postgres_url, postgres_schema, files_dir=str(tmp_path / "files"), transcript_messages_min=0)
    assert len(READS) > 50
    with replica.streaming(primary) as reading:
        with perdure.open(settings=settings, clock=clock) as engine:
            world = furnished(engine, tmp_path)
            prepared = {name: PREPARED[name](world) for name in READS if name in PREPARED}
            world.ana.append("user", "and so on")
        going_on = _going_on(postgres_url, postgres_schema)
        assert going_on > 0
        replica.catch_up(postgres_url, reading)
        # The session is silent for too long by now: on the primary the next call would end it.
        clock.move(days=2)
        with perdure.open(settings=replace(settings, url=reading), clock=clock) as engine:
            there = replace(world, engine=engine, ana=engine.memory("ana", agent="coach", channel="c"))
            refused = []
            for name in READS:
                there.prepared = prepared.get(name)
                try:
                    SAMPLES[name](there)
                except perdure.PerdureError as error:
                    refused.append(f"{name}: {error}")
            assert refused == []
            for look in LOOKS.values():
                look(there)
            assert there.ana.memories.list().pending > 0, "it says what it may not learn"
            assert _answers(there) == _answers_of(world, replace(settings, catch_up_ms=0), clock)
            assert engine.verify().findings == ()
            assert any("can only be read" in line for line in engine.doctor().degraded)
            with pytest.raises(perdure.Unavailable, match="use the primary"):
                there.ana.append("user", "I moved")
        assert _going_on(postgres_url, postgres_schema) == going_on, "nobody ended one"


def _going_on(url: str, schema: str) -> int:
    """How many sessions have not ended on the primary."""
    with psycopg.connect(url) as connection:
        held = f"SELECT count(*) FROM {schema}.sessions WHERE ended_at_us IS NULL"
        row = connection.execute(held.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _answers(world: World) -> tuple[object, ...]:
    """Not just an answer, but what the primary says of the same rows."""
    ana = world.ana
    return (
        [hit.text for hit in ana.recall("Where do I live?").hits],
        ana.messages(),
        ana.memories.list(),
        ana.state.load("k"),
        world.runs.query("2026-01-01", "2026-01-02").entries,
    )


def _answers_of(world: World, settings: perdure.Settings, clock: StoppedClock) -> tuple[object, ...]:
    with perdure.open(settings=settings, clock=clock) as engine:
        return _answers(replace(world, engine=engine, ana=engine.memory("ana", agent="coach", channel="c")))
