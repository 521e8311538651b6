"""What a page shows of a whole memory: counts and days, what hangs together, what was done to a memory, what was left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import perdure
from perdure.domain.errors import InvalidInput, NotFound
from perdure.testing import StoppedClock

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture
def ana(clock: StoppedClock) -> Iterator[perdure.Memory]:
    with perdure.open("memory:", clock=clock) as engine:
        yield engine.memory("ana")


def test_an_empty_memory_holds_nothing_on_every_day(ana: perdure.Memory) -> None:
    seen = ana.admin.overview(days=7)
    assert set(seen.counts.values()) == {0}
    assert [one.day for one in seen.days] == [(START - timedelta(days=back)).date() for back in range(6, -1, -1)]
    assert all(one.messages == one.changes == 0 for one in seen.days)
    assert not seen.partial


def test_each_day_counts_what_was_said_and_changed_on_it(ana: perdure.Memory, clock: StoppedClock) -> None:
    ana.append("user", "Hello")
    ana.remember("Likes tea")
    clock.set(START + timedelta(days=2))
    ana.append("user", "Hello again")
    ana.append("assistant", "Hello")
    ana.todos.add("Call the bank")
    ana.state.save("units", "metric")
    seen = ana.admin.overview(days=3)
    assert [one.messages for one in seen.days] == [1, 0, 2]
    assert seen.days[0].changes >= 1
    assert seen.days[2].changes >= 1
    assert (seen.counts["messages"], seen.counts["sessions"], seen.counts["memories"]) == (3, 2, 1)
    assert (seen.counts["todos"], seen.counts["state"]) == (1, 1)
    assert [one.messages for one in ana.admin.overview(days=1).days] == [2]


@pytest.mark.parametrize("days", [0, 367, True, 1.5])
def test_a_wrong_number_of_days_is_refused(ana: perdure.Memory, days: object) -> None:
    with pytest.raises(InvalidInput, match="days"):
        ana.admin.overview(days=days)  # type: ignore[arg-type]


def test_entities_hang_together_if_statements_name_them_together(ana: perdure.Memory) -> None:
    ana.remember("John works at Acme", "PEOPLE", entities=["person:John Doe", "org:Acme"], subject="person:John Doe")
    ana.remember("John is my cofounder", "PEOPLE", entities=["person:John Doe"], fact_type="relationship")
    links = {(one.one, one.other): one.statements for one in ana.entities.links()}
    assert links[("org:acme", "person:john_doe")] == 1
    assert links[("user", "person:john_doe")] == 1
    assert len(ana.entities.links(limit=1)) == 1


def test_the_changes_of_a_memory_are_its_part_of_the_journal(ana: perdure.Memory) -> None:
    kept = ana.remember("Likes tea").statement
    other = ana.remember("Lives in Lisbon", attribute="lives_in", value="Lisbon").statement
    assert kept is not None
    assert other is not None
    ana.memories.pin(kept.memory)
    changes = ana.memories.changes(kept.memory)
    assert [one.seq for one in changes] == sorted((one.seq for one in changes), reverse=True)
    assert changes[0].action == "pin"
    assert {(one.kind, one.key) for one in changes} == {("memory", kept.memory), ("statement", kept.id)}
    with pytest.raises(NotFound):
        ana.memories.changes("profile||nothing|fact")


def test_an_explained_answer_names_what_was_left_out_and_why(ana: perdure.Memory) -> None:
    for number in range(4):
        ana.remember(f"Keeps tea number {number} in the kitchen")
    found = ana.recall("tea in the kitchen", limit=1, explain=True)
    assert len(found.hits) == 1
    assert found.hits[0].memory is not None
    assert ana.memories.get(found.hits[0].memory).content == found.hits[0].text
    assert [one.hit.kind for one in found.left_out] == ["memory"] * 3
    assert "1 hits fit better" in found.left_out[0].why
    assert "left out: memory" in found.explanation
    assert ana.recall("tea in the kitchen", limit=1).left_out == ()
    short = ana.recall("tea in the kitchen", limit=4, budget_tokens=1, explain=True)
    assert short.hits == ()
    assert all("did not fit into the budget" in one.why for one in short.left_out)
