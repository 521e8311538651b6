"""The demo data: a life to look at, always the same one, and sound."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import perdure
from perdure.domain.errors import NotFound
from perdure.interfaces.demo import data as demo_data
from perdure.testing import StoppedClock

NOW = datetime(2026, 6, 15, 10, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def filled() -> perdure.Engine:
    engine = perdure.open("memory:", clock=StoppedClock(NOW))
    demo_data.fill(engine)
    return engine


def places(engine: perdure.Engine) -> list[perdure.Memory]:
    return [engine.memory(demo_data.USER, agent=agent, channel=channel) for agent, channel in demo_data.PLACES.values()]


def test_every_page_has_something_to_show(filled: perdure.Engine) -> None:
    coach, clerk, planner = places(filled)
    assert filled.users() == [demo_data.USER]
    assert len(coach.conversation.list_sessions()) >= 20
    kinds = {digest.kind for place in places(filled) for digest in place.conversation.digests(limit=100)}
    assert kinds == {"fold", "rolling", "session"}
    assert coach.conversation.digests("spine")
    assert len(planner.conversation.digests("fold", session="kitchen-plan")) >= 3
    assert any(digest.undone for digest in planner.conversation.digests("fold"))

    memories = coach.memories.list(archived=True, limit=200)
    assert len(memories) >= 50
    assert {one.memory.type for one in memories} == {"PROFILE", "PEOPLE", "PROJECT"}
    assert {one.memory.status for one in memories} == {"ACTIVE", "ARCHIVED"}
    assert len(coach.memories.foundation()[0]) >= 3
    assert len(coach.memories.rejections()) >= 2
    assert {one.what for one in coach.entities.suggestions()} == {"merge", "contradiction"}
    assert any(entity.aliases for entity in coach.entities.list())

    todos = [todo for place in places(filled) for todo in place.todos.list(closed=True)]
    assert {todo.state for todo in todos} == {"pending", "completed", "skipped"}
    assert any(todo.recurrence for todo in todos)
    assert any(todo.due_at is not None and todo.due_at.date() == NOW.date() for todo in todos if todo.state == "pending")
    assert {lesson.scope for place in places(filled) for lesson in place.lessons.list()} == {
        "global",
        "agent",
        "user",
        "channel",
    }
    assert {task.state for place in places(filled) for task in place.todos.tasks.list(closed=True)} == {
        "running",
        "completed",
        "failed",
    }
    assert coach.instructions.list()
    assert clerk.instructions.list()
    assert {decision.kind for decision in coach.journal.decisions()} == {"before", "after"}
    assert coach.admin.usage()


def test_what_changed_in_the_life_stays_in_its_history(filled: perdure.Engine) -> None:
    coach = places(filled)[0]
    old, new = coach.memories.history("profile|place|lisbon|fact")
    assert (old.content, new.content) == ("Lives in Porto", "Lives in Lisbon")
    assert old.valid_to is not None
    assert old.valid_to < NOW
    assert coach.conversation.message(new.evidence[0].message).content.startswith("I moved to Lisbon")
    assert any(operation.action == "undo" for operation in coach.journal.list(500))
    assert [revision.number for revision in coach.state.history("training/plan")] == [5, 4, 3, 2, 1]


def test_series_show_what_is_held_provisional_and_missing(filled: perdure.Engine) -> None:
    coach = places(filled)[0]
    kudos = coach.series("kudos_timeseries")
    answer = kudos.query(datetime(2026, 3, 1, tzinfo=UTC), NOW)
    assert answer.coverage == "partial"
    assert min(len(answer.gaps), len(answer.provisional)) > 0
    assert answer.count > 100
    assert kudos.about().duplicates > 0
    assert len(coach.series.list()) >= 4
    runs = coach.series("runs_timeseries")
    assert any(runs.history(entry.id) for entry in runs.entries())


def test_the_demo_opens_without_a_failed_job(filled: perdure.Engine) -> None:
    assert places(filled)[0].admin.jobs("dead") == []
    assert [line for line in filled.health().degraded if line.startswith(("jobs", "model"))] == []


def test_the_demo_is_added_to_a_store_in_use_and_removed_from_it(filled: perdure.Engine) -> None:
    with perdure.open("memory:", clock=StoppedClock(NOW)) as engine:
        engine.memory("ana").remember("Lives in Lisbon", attribute="lives_in", value="Lisbon")
        assert demo_data.add(engine)
        assert not demo_data.add(engine)
        for one, other in zip(places(engine), places(filled), strict=True):
            assert one.messages(500) == other.messages(500)
        assert len(places(engine)[0].memories.list(limit=1_000)) == len(places(filled)[0].memories.list(limit=1_000))
        demo_data.remove(engine)
        assert engine.users() == ["ana"]
        assert engine.verify().clean


def test_what_is_not_the_demo_is_never_removed_as_if_it_were() -> None:
    with perdure.open("memory:") as engine:
        engine.memory(demo_data.USER).remember("Lives in Lisbon", attribute="lives_in", value="Lisbon")
        with pytest.raises(NotFound, match="nothing was removed"):
            demo_data.remove(engine)
        assert engine.users() == [demo_data.USER]


def test_filling_again_changes_nothing_and_the_store_is_sound(filled: perdure.Engine) -> None:
    before = [one.seq for one in places(filled)[0].journal.list(1)]
    demo_data.fill(filled)
    assert [one.seq for one in places(filled)[0].journal.list(1)] == before
    assert filled.verify().clean


@pytest.mark.slow
def test_the_same_now_gives_the_same_life(filled: perdure.Engine) -> None:
    with perdure.open("memory:", clock=StoppedClock(NOW)) as engine:
        demo_data.fill(engine)
        for one, other in zip(places(engine), places(filled), strict=True):
            assert one.journal.list(1_000) == other.journal.list(1_000)
            assert one.messages(500) == other.messages(500)
