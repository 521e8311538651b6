"""Processes that are killed with signal 9 while they index: nothing is lost, and whoever comes next makes it whole."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import perdure
from perdure import NewMessage
from perdure.engine.search.entries import passages_in
from perdure.services.index import job as indexing
from scripted_embedder import ScriptedEmbedder

ROUNDS = 8
MESSAGES = 60


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("EMBED_BATCH", 3), ("PACK_ITEMS", 8), ("PAGE", 5), ("GONE_MAX", 10)):
        monkeypatch.setattr(indexing, name, value)


def opened(backend: Any, name: str = "scripted") -> perdure.Engine:
    engine = perdure.open(settings=backend.settings, embedder=ScriptedEmbedder(name=name))
    backend._opened.append(engine)
    return engine


def word(number: int) -> str:
    return f"zq{number}x"


def fill(backend: Any) -> None:
    with opened(backend) as engine:
        ana = engine.memory("ana")
        ana.append_many([NewMessage("user", f"the boat {word(number)}") for number in range(MESSAGES)])
        for number in range(10):
            ana.remember(f"Keeps {word(1_000 + number)}")
        engine.process()


def check_sound(engine: perdure.Engine) -> None:
    """Right after a crash: no law is broken, and everything is found by its words at least."""
    assert engine.verify().findings == ()
    ana = engine.memory("ana")
    for number in (0, MESSAGES // 2, MESSAGES - 1, 1_003):
        assert word(number) in ana.recall(word(number), limit=1).hits[0].text
    found = ana.recall("boat", kinds=["message"], limit=200).hits
    assert len({hit.id for hit in found}) == len(found) == MESSAGES


def check_whole(engine: perdure.Engine, eventually: Callable[..., None], embedder: str) -> None:
    """Once the jobs have run: everything has its vectors, and an index made anew says the same of everything."""
    ana = engine.memory("ana")

    def done() -> bool:
        engine.process(2)
        return ana.recall("boat").uncovered.nothing and not [
            job for job in ana.admin.jobs() if job.state in ("ready", "running") and job.kind == "index"
        ]

    eventually(done)
    assert engine.verify().findings == ()
    with engine._store.snapshot() as snapshot:
        entries = {(row[3], row[4]): row[6] for row in snapshot.rows("index_entries") if row[6]}
        numbers = {row[2] for row in snapshot.rows("index_entries") if passages_in(row[6])}
        vectors = [(row[2], row[3]) for row in snapshot.rows("index_vectors")]
    assert {name for name, _ in vectors} == {embedder}
    assert numbers <= {number for _, number in vectors}, "what has words has vectors"
    before = {hit.id: hit.score for hit in ana.recall("boat", limit=200).hits}
    ana.admin.reindex()
    with engine._store.snapshot() as snapshot:
        assert {(row[3], row[4]): row[6] for row in snapshot.rows("index_entries") if row[6]} == entries
    assert {hit.id: hit.score for hit in ana.recall("boat", limit=200).hits} == pytest.approx(before, abs=1e-3)


@pytest.mark.parametrize("manner", ["job", "reindex", "other"])
def test_an_index_that_was_being_made_when_its_process_was_killed_is_sound_and_becomes_whole(
    sqlite: Any, start_host: Any, chance: random.Random, eventually: Callable[..., None], manner: str
) -> None:
    fill(sqlite)
    name = "other" if manner == "other" else "scripted"
    for number in range(ROUNDS):
        host = start_host("index_until_killed", sqlite.url, manner)
        host.expect("ready")
        host.kill(chance.uniform(0, 0.25))
        if number % 3 == 0:
            with opened(sqlite, name) as engine:
                check_sound(engine)
    with opened(sqlite, name) as engine:
        check_sound(engine)
        check_whole(engine, eventually, f"{name}/1/16")


def test_an_engine_that_stays_open_follows_what_a_killed_process_left(
    sqlite: Any, start_host: Any, chance: random.Random, eventually: Callable[..., None]
) -> None:
    fill(sqlite)
    survivor = opened(sqlite)
    for manner in ("reindex", "job", "reindex", "job"):
        check_sound(survivor)
        host = start_host("index_until_killed", sqlite.url, manner)
        host.expect("ready")
        host.kill(chance.uniform(0, 0.25))
        check_sound(survivor)
        with opened(sqlite) as newcomer:
            for question in ("boat", word(7), "Owns a boat"):
                one, other = (engine.memory("ana").recall(question, limit=300).hits for engine in (survivor, newcomer))
                assert {(hit.kind, hit.id): round(hit.score, 3) for hit in one} == {
                    (hit.kind, hit.id): round(hit.score, 3) for hit in other
                }
    check_whole(survivor, eventually, "scripted/1/16")
