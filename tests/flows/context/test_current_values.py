"""Recall after something changed: what holds now stands before what states an old value, and comes with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import perdure
from perdure import Memory
from perdure.testing import StoppedClock

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
OLD = "I live in Lisbon, in a flat near the river, and Lisbon is where I live"


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture
def ana(backend: Any, clock: StoppedClock) -> Memory:
    engine: perdure.Engine = backend.open(clock=clock)
    return engine.memory("ana", agent="coach")


def moved(ana: Memory, clock: StoppedClock) -> None:
    """The old value in a message that fits the question best, the new one beside it."""
    ana.append("user", OLD, id="old")
    ana.memories.extract()
    clock.move(days=30)
    ana.remember("Moved to Porto")


@pytest.mark.parametrize("limit", [1, 2, 10])
def test_the_current_value_stands_before_a_message_with_the_old_one(ana: Memory, clock: StoppedClock, limit: int) -> None:
    moved(ana, clock)
    hits = ana.recall("Where in Lisbon do I live, near the river?", limit=limit).hits
    assert hits[0].text == "Moved to Porto"
    assert all(hits[place].score >= hits[place + 1].score for place in range(len(hits) - 1))


def test_a_message_with_the_old_value_carries_the_newer_one(ana: Memory, clock: StoppedClock) -> None:
    moved(ana, clock)
    [hit] = ana.recall("Where do I live?", kinds=["message"]).hits
    assert [one.text for one in hit.current] == ["Moved to Porto"]
    assert hit.tokens > 0
    for _ in range(2):  # two sessions later, the message is no longer part of the conversation at hand
        clock.move(days=1)
        ana.append("user", "good morning")
    told = ana.context("Where do I live?").text
    assert told.index("Moved to Porto") < told.index("Lisbon")
    assert "[what holds now: Moved to Porto]" in told


def test_of_several_moves_the_last_one_is_carried(ana: Memory, clock: StoppedClock) -> None:
    moved(ana, clock)
    for city in ("Oslo", "Rome"):
        clock.move(days=30)
        ana.remember(f"Lives in {city}")
    [hit] = ana.recall("Where do I live?", kinds=["message"]).hits
    assert [one.text for one in hit.current] == ["Lives in Rome"]


def test_a_newer_message_stands_before_the_older_one(ana: Memory, clock: StoppedClock) -> None:
    ana.append("user", OLD, id="old")
    ana.memories.extract()
    clock.move(days=30)
    ana.append("user", "By the way, I moved to Porto.", id="new")
    ana.memories.extract()
    found = ana.recall("Where in Lisbon do I live, near the river?").hits
    places = ["new" if "Porto" in hit.text else "old" if hit.id == "old" else "" for hit in found]
    assert places.index("new") < places.index("old")


def test_what_still_holds_carries_nothing_and_looking_back_neither(ana: Memory, clock: StoppedClock) -> None:
    ana.append("user", OLD, id="old")
    ana.memories.extract()
    assert ana.recall("Where do I live?").hits[0].current == ()
    clock.move(days=30)
    ana.remember("Moved to Porto")
    back = ana.recall("Where do I live?", as_of=START).hits
    assert "Moved to Porto" not in [hit.text for hit in back]
    assert all(hit.current == () for hit in back)


def test_what_one_agent_alone_may_see_is_not_carried_to_another(ana: Memory, clock: StoppedClock, backend: Any) -> None:
    ana.append("user", OLD, id="old")
    ana.memories.extract()
    clock.move(days=30)
    ana.remember("Lives in Porto", visible_to="companion")
    [hit] = ana.recall("Where do I live?", kinds=["message"]).hits
    assert hit.current == ()


def test_a_proposal_stands_behind_the_users_word_and_is_labelled(ana: Memory, clock: StoppedClock) -> None:
    ana.remember("Lives in Porto")
    clock.move(days=1)
    ana.as_agent().remember("Lives in Minsk, the city where Ana now lives in Minsk", attribute="lives_in", value="Minsk")
    hits = ana.recall("Does Ana now live in Minsk, the city?").hits
    assert [(hit.text[:14], hit.proposes, hit.trust) for hit in hits] == [
        ("Lives in Porto", None, "user"),
        ("Lives in Minsk", "value", "agent"),
    ]
    assert [one.text for one in hits[1].current] == ["Lives in Porto"]
    told = ana.context("Where does Ana live?").text
    assert "- proposed, not confirmed by the user (assistant): Lives in Minsk" in told
    assert "Minsk" not in ana.context().text, "without a goal that asks for it, a proposal is shown to nobody"


def test_a_decided_proposal_is_found_no_more_and_never_by_looking_back(ana: Memory, clock: StoppedClock) -> None:
    ana.remember("Lives in Porto")
    clock.move(days=1)
    ana.as_agent().remember("Lives in Minsk")
    between = clock.now()
    assert [hit.text for hit in ana.recall("Lives in Minsk", kinds=["memory"], as_of=between).hits] == ["Lives in Porto"]
    clock.move(days=1)
    ana.memories.reject(ana.memories.proposals()[0].statement.id)
    for when in ({}, {"as_of": between}, {"known_at": between}):
        assert "Lives in Minsk" not in [hit.text for hit in ana.recall("Lives in Minsk", **when).hits]  # type: ignore[arg-type]
