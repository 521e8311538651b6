"""The overseer with a real model: right in easy cases, and whatever the model says, only what there is, as it is."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

import perdure
from perdure.domain.models import OUTCOMES
from perdure.domain.oversight import Injection
from perdure.ports.models import ChatModel
from tests.model.contracts import check_usage

pytestmark = pytest.mark.model

KUDOS = "Who from my kudos list was active recently?"
SAVED = {"kudos_givers_2025": ["athlete_123", "athlete_456"], "favorite_routes": ["river loop", "hill climb"]}
PROFILE = {"name": "Ana Sousa", "city": "Lisbon", "language": "pt", "units": "metric"}
PATIENCE_S = 300.0
ACTIONS = ("none", "suggested", "saved", "merged", "unchanged", "refused")


def saved(engine: perdure.Engine) -> perdure.Memory:
    ana = engine.memory("ana")
    for key, value in SAVED.items():
        ana.state.save(key, value)
    return ana


def check_injection(ana: perdure.Memory, given: Injection) -> None:
    """Only what there is, with the values it has; within the budget; recorded with an outcome that we know."""
    assert {choice.id for choice in given.choices if choice.kind == "state"} <= SAVED.keys()
    assert given.values.keys() <= SAVED.keys()
    assert all(given.values[key] == SAVED[key] for key in given.values)
    assert given.text.startswith(given.goal)
    assert given.tokens <= given.budget_tokens
    assert given.outcome in (*OUTCOMES, "rules")
    assert ana.journal.decisions("before")[0].id == given.id
    keys = ana.state.keys()
    assert {key: ana.state.load(key) for key in keys} == SAVED


def test_the_kudos_list_is_chosen_and_the_routes_are_not(right: str, opened: Callable[..., perdure.Engine]) -> None:
    ana = saved(opened(right))
    given = ana.before(KUDOS, target="goal", deadline_s=PATIENCE_S)
    check_injection(ana, given)
    assert given.outcome in ("ok", "repaired")
    assert given.values == {"kudos_givers_2025": SAVED["kudos_givers_2025"]}
    check_usage(ana, "relevance")


@pytest.mark.parametrize("goal", [KUDOS, "Plan a run on one of my favourite routes", "What is the capital of Portugal?"])
def test_only_real_keys_are_given_whatever_is_chosen(
    goal: str, wrong: ChatModel, opened: Callable[..., perdure.Engine]
) -> None:
    ana = saved(opened(wrong))
    given = ana.before(goal, target="goal", deadline_s=PATIENCE_S)
    check_injection(ana, given)
    assert given.model_calls in (1, 2)
    check_usage(ana, "relevance")


def test_a_time_that_the_goal_does_not_name_is_not_made_up(right: str, opened: Callable[..., perdure.Engine]) -> None:
    """Models repeat examples out of a prompt: a time is taken from the goal or not at all."""
    ana = saved(opened(right))
    given = ana.before("Plan a run on one of my favourite routes", deadline_s=PATIENCE_S)
    assert given.outcome in ("ok", "repaired")
    assert given.time_range is None


def test_nothing_saved_asks_nobody(wrong: ChatModel, opened: Callable[..., perdure.Engine]) -> None:
    ana = opened(wrong).memory("ana")
    given = ana.before(KUDOS, target="goal", deadline_s=PATIENCE_S)
    assert (given.text, given.model_calls) == (KUDOS, 0)
    assert ana.admin.usage() == []


def test_a_model_that_is_too_slow_is_not_waited_for(right: str, opened: Callable[..., perdure.Engine]) -> None:
    ana = saved(opened(right))
    started = time.monotonic()
    given = ana.before(f"{KUDOS} Think about it first.", target="goal", deadline_s=0.2)
    assert time.monotonic() - started < 5
    assert given.outcome == "timeout"
    check_injection(ana, given)
    assert "kudos_givers_2025" in given.values, "the rules have chosen"


def test_a_profile_is_worth_keeping(right: str, opened: Callable[..., perdure.Engine]) -> None:
    ana = opened(right, save_results="auto").memory("ana")
    kept = ana.after("getUserProfile", PROFILE, "Greet me in my own language", deadline_s=PATIENCE_S)
    assert (kept.action, kept.outcome) == ("saved", "ok")
    assert kept.key is not None
    assert ana.state.load(kept.key) == PROFILE
    check_usage(ana, "storage")


def test_what_time_it_is_is_never_asked_about(wrong: ChatModel, opened: Callable[..., perdure.Engine]) -> None:
    ana = opened(wrong, save_results="auto").memory("ana")
    kept = ana.after("getCurrentDate", {"date": "2026-01-05"}, "What day is it?")
    assert (kept.action, kept.model_calls, ana.state.keys(), ana.admin.usage()) == ("none", 0, [], [])


def test_whatever_is_decided_what_was_saved_is_the_result_and_nothing_else_changes(
    wrong: ChatModel, opened: Callable[..., perdure.Engine]
) -> None:
    ana = saved(opened(wrong, save_results="auto"))
    first = ana.after("getUserProfile", PROFILE, "Greet me in my own language", deadline_s=PATIENCE_S)
    assert first.action in ACTIONS
    assert first.outcome in OUTCOMES
    later = PROFILE | {"city": "Porto"}
    second = ana.after("getUserProfile", later, "Greet me in my own language", deadline_s=PATIENCE_S)
    for kept, value in ((first, PROFILE), (second, later)):
        if kept.saved:
            assert kept.key is not None
            assert ana.state.load(kept.key, revision=kept.revision) == value
    unharmed = {key for key in SAVED if key not in (first.key, second.key)}
    assert {key: ana.state.load(key) for key in unharmed} == {key: SAVED[key] for key in unharmed}
    assert [decision.id for decision in ana.journal.decisions("after")] == [second.id, first.id]
    check_usage(ana, "storage")


def test_an_agent_is_given_what_it_needs_and_its_results_are_looked_at(
    right: str, opened: Callable[..., perdure.Engine]
) -> None:
    ana = saved(opened(right))

    def agent(text: str, tools: dict[str, Callable[[], object]]) -> object:
        assert "athlete_123" in text
        return tools["getUserProfile"]()

    ran = ana.run(KUDOS, agent, {"getUserProfile": lambda: PROFILE}, deadline_s=PATIENCE_S, mode="suggest")
    assert ran.answer == PROFILE
    assert [kept.tool for kept in ran.kept] == ["getUserProfile"]
    assert ana.state.keys() == sorted(SAVED)
