"""Values of the state that are found by meaning: on every store."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import pytest

import perdure
from perdure import InvalidInput, LimitExceeded
from perdure.testing import StoppedClock

NINE = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
SECRET = "AKIA" + "Q3EGRTNW7PLKYJXZ"
PASTA = {"title": "Carbonara", "packed": b"\0\1"}


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(NINE)


@pytest.fixture
def engine(backend: Any, clock: StoppedClock) -> Iterator[perdure.Engine]:
    """Whatever a test does to it, the store is sound at its end."""
    opened = backend.open(clock=clock)
    yield opened
    assert opened.verify().findings == ()


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    kept = engine.memory("ana")
    kept.state.save("recipes/1", PASTA, index=["Carbonara: a pasta with eggs and bacon", "Rome"])
    kept.state.save("recipes/2", {"title": "Brownies"}, index=["A sweet chocolate cake"])
    kept.state.save("cars/1", {"title": "Beetle"}, index=["A car with the engine at the back"])
    return kept


def test_the_nearest_in_meaning_comes_first_and_comes_back_as_it_is(ana: perdure.Memory) -> None:
    found = ana.state.search(query="noodles for dinner")
    assert found.matches[0] == "recipes/1"
    assert found.results["recipes/1"] == PASTA
    assert list(found.scores.values()) == sorted(found.scores.values(), reverse=True)
    assert not found.truncated


def test_each_text_of_a_value_is_compared_on_its_own(ana: perdure.Memory) -> None:
    assert ana.state.search(query="Rome").scores["recipes/1"] == pytest.approx(1, abs=0.01)


def test_a_pattern_and_a_limit_bound_what_is_found(ana: perdure.Memory) -> None:
    found = ana.state.search("recipes/*", query="an automobile", limit=1)
    assert len(found.matches) == 1
    assert found.matches[0].startswith("recipes/")
    assert found.truncated


def test_a_plain_value_is_found_by_its_key_and_beginning(ana: perdure.Memory) -> None:
    ana.state.save("favourite_colour", "green")
    assert ana.state.search(query="the colour green").matches[0] == "favourite_colour"


def test_a_verbatim_value_without_texts_is_not_found(ana: perdure.Memory) -> None:
    ana.state.save("recipes/1", PASTA, verbatim=True)
    assert "recipes/1" not in ana.state.search(query="Carbonara, a pasta with eggs and bacon").matches


def test_what_has_expired_or_is_deleted_is_not_found(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.state.save("recipes/3", {"title": "Pesto"}, index=["Pasta with basil"], expires_in_s=60)
    assert "recipes/3" in ana.state.search(query="pasta").matches
    clock.move(seconds=61)
    ana.state.delete("recipes/1")
    assert set(ana.state.search(query="pasta").matches) == {"recipes/2", "cars/1"}


def test_a_new_value_is_found_by_its_own_texts_and_no_longer_by_the_old_ones(ana: perdure.Memory) -> None:
    before = ana.state.search(query="chocolate cake").scores["recipes/2"]
    ana.state.save("recipes/2", {"title": "Soup"}, index=["A hot soup of leeks"])
    assert ana.state.search(query="chocolate cake").scores["recipes/2"] < before
    ana.state.restore("recipes/2", 1)
    assert ana.state.search(query="chocolate cake").scores["recipes/2"] == pytest.approx(before)


def test_recall_finds_it_by_its_texts_without_the_secrets_in_them(ana: perdure.Memory) -> None:
    ana.state.save("keys", {"key": SECRET}, index=[f"The key of the kitchen server is {SECRET}"])
    [hit] = [hit for hit in ana.recall("key of the kitchen server").hits if hit.id == "keys"]
    assert hit.text.startswith("The key of the kitchen server")
    assert SECRET not in hit.text
    assert ana.state.load("keys") == {"key": SECRET}


def test_forgetting_reaches_the_texts_and_the_value(engine: perdure.Engine, ana: perdure.Memory) -> None:
    ana.state.save("note", {"id": 7}, index=["Maria plays chess"])
    ana.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
    ana.forget(entity="person:maria")
    assert ana.state.load("note") == "[forgotten]"
    assert "note" not in ana.state.search(query="Maria plays chess").matches
    assert ana.state.load("recipes/1") == PASTA


def test_it_is_found_where_it_is_imported_and_after_indexing_anew(engine: perdure.Engine, ana: perdure.Memory) -> None:
    written = BytesIO()
    ana.export(written)
    written.seek(0)
    bea = engine.memory("bea")
    bea.import_(written)
    engine.process()
    wanted = ana.state.search(query="noodles").scores
    assert bea.state.search(query="noodles").scores == pytest.approx(wanted)
    engine.reindex()
    assert ana.state.search(query="noodles").scores == pytest.approx(wanted)


def test_without_an_embedder_words_decide(backend: Any) -> None:
    engine = backend.open(embedder="none")
    ana = engine.memory("ana")
    ana.state.save("a", 1, index=["A pasta with eggs"])
    ana.state.save("b", 2, index=["A sweet cake"])
    found = ana.state.search(query="pasta with eggs")
    assert found.scores == {"a": pytest.approx(1.0)}


def test_a_store_in_memory_answers_as_one_on_disk(ana: perdure.Memory) -> None:
    with perdure.open("memory:", background=False) as engine:
        bea = engine.memory("bea")
        for key, index in (("recipes/1", ["Carbonara: a pasta with eggs and bacon", "Rome"]), ("cars/1", ["A car"])):
            bea.state.save(key, key, index=index)
        found = bea.state.search(query="noodles for dinner")
        assert found.matches == ("recipes/1", "cars/1")
        assert found.scores["recipes/1"] == pytest.approx(ana.state.search(query="noodles for dinner").scores["recipes/1"])


def test_nobody_else_finds_it(engine: perdure.Engine, ana: perdure.Memory) -> None:
    assert engine.memory("bea").state.search(query="pasta").matches == ()


def test_bad_texts_and_questions_are_refused_with_what_to_do(ana: perdure.Memory) -> None:
    for index, why in (
        ("text", "must be a list of texts"),
        ([1], r"`index\[0\]` = 1 must be a text"),
        (["x"] * 65, "65 texts, more than 64"),
        (["\ud800"], "lone surrogate"),
    ):
        with pytest.raises(InvalidInput, match=why):
            ana.state.save("k", 1, index=index)  # type: ignore[arg-type]
    for query in (" ", 7):
        with pytest.raises(InvalidInput, match="must be a question in words"):
            ana.state.search(query=query)  # type: ignore[arg-type]
    with pytest.raises(LimitExceeded, match="more than 100000 bytes"):
        ana.state.search(query="x" * 100_001)
    with pytest.raises(InvalidInput, match="begins with the key 'perdure:verbatim', which is reserved"):
        ana.state.save("k", {"perdure:verbatim": 1, "more": 2})
    with pytest.raises(InvalidInput, match="longer than 1000 bytes"):
        ana.state.search("x" * 1_001, query="pasta")
