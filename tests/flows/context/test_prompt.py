"""The combined prompt (S4-6, S4-13, S4-14, T-50, T-52): soul, mood, memory, skill in that order, then the time; within a budget."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import perdure
from lanes import examples
from perdure import InvalidInput, LimitExceeded, NotFound
from perdure.domain.context.context import PART_KINDS
from perdure.domain.lessons import Lesson
from perdure.engine.context.prompt import combine
from perdure.engine.text.tokens import estimate_tokens
from perdure.testing import StoppedClock

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
SOUL, MOOD, SKILL = "You are Bond, a patient clerk.", "Cheerful today.", "You can book rooms with `book(room)`."
METRIC = "Give distances in kilometres"
HEADING = "## Memory (lessons learned — follow these)"


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture(params=["folders", "rows"])
def engine(request: pytest.FixtureRequest, backend: Any, clock: StoppedClock, tmp_path: Path) -> perdure.Engine:
    folder = str(tmp_path / "agents") if request.param == "folders" else ""
    return backend.open(clock=clock, agents_dir=folder, user="ana")  # type: ignore[no-any-return]


def test_soul_mood_memory_and_skill_stand_in_that_order_t_50_s4_13(engine: perdure.Engine) -> None:
    engine.agents.save("007", skill=SKILL, mood=MOOD, soul=SOUL)
    ana = engine.memory("ana", agent="007")
    ana.lessons.add(METRIC)
    prompt = ana.prompt("how far is it?")
    assert [part.kind for part in prompt.parts] == list(PART_KINDS)
    places = [prompt.text.index(piece) for piece in (SOUL, MOOD, f"{HEADING}\n- {METRIC}", SKILL, "It is Monday")]
    assert places == sorted(places)
    assert prompt.text.endswith(prompt.part("time"))
    assert (prompt.agent, prompt.period, prompt.dropped, prompt.notes) == ("007", "morning", (), ())
    assert prompt.tokens == sum(part.tokens for part in prompt.parts) <= prompt.budget_tokens == 4_000
    bare = engine.memory("ana", agent="nobody").prompt()
    assert [part.kind for part in bare.parts] == ["memory", "time"]


def test_an_agent_is_its_folder_and_an_edit_there_is_in_the_next_prompt_s4_16(
    backend: Any, clock: StoppedClock, tmp_path: Path
) -> None:
    folder = tmp_path / "agents/agent-Coach"
    folder.mkdir(parents=True)
    (folder / "soul.md").write_text(f"\ufeff{SOUL}\r\n")
    (folder / "memory.md").write_text(f"# Notes\n\n- {METRIC}\n")
    engine = backend.open(clock=clock, agents_dir=str(tmp_path / "agents"))
    ana = engine.memory("ana", agent="Coach")
    prompt = ana.prompt()
    assert (prompt.part("soul"), prompt.part("memory")) == (SOUL, f"{HEADING}\n- {METRIC}")
    (folder / "soul.md").write_text("You are somebody else.")
    (folder / "skill.md").write_text(SKILL)
    assert [ana.prompt().part("soul"), ana.prompt().part("skill")] == ["You are somebody else.", SKILL]
    assert [agent.id for agent in engine.agents.list()] == ["Coach"]
    assert METRIC not in engine.memory("ana", agent="coach").prompt().text
    (folder / "mood.md").write_bytes(b"\xff")
    broken = ana.prompt()
    assert any("mood.md is not UTF-8" in note for note in broken.notes)
    assert METRIC in broken.text


def test_agents_are_saved_changed_listed_and_removed(engine: perdure.Engine) -> None:
    agents = engine.agents
    assert (agents.list(), agents.remove("007")) == ([], False)
    with pytest.raises(NotFound, match="007"):
        agents.get("007")
    agents.save("007", soul=SOUL, mood=MOOD)
    saved = agents.save("007", mood="", skill=SKILL)
    assert (saved.soul, saved.mood, saved.skill) == (SOUL, "", SKILL)
    assert agents.get("007") == saved
    for odd in ("../x", "a b", "Ärger", "con"):
        agents.save(odd, soul=f"You are {odd}.")
        assert agents.get(odd).soul == f"You are {odd}."
    assert [one.id for one in agents.list()] == sorted(["007", "../x", "a b", "Ärger", "con"])
    assert agents.remove("../x")
    assert len(agents.list()) == 4
    with pytest.raises(LimitExceeded):
        agents.save("007", soul="x" * 200_001)
    for wrong in ("", "x" * 401, 7):
        with pytest.raises(InvalidInput):
            agents.save(wrong, soul=SOUL)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        agents.save("007", soul=7)  # type: ignore[arg-type]
    assert engine.verify().clean


def test_a_channel_has_its_agent_where_the_caller_names_none(engine: perdure.Engine) -> None:
    engine.agents.save("007", soul=SOUL)
    mapped = engine.agents.map_channel("discord:42", "007")
    assert engine.agents.map_channel("discord:42", "007") == mapped
    assert [(one.channel, one.agent) for one in engine.agents.channels()] == [("discord:42", "007")]
    assert engine.memory("ana", channel="discord:42").prompt().part("soul") == SOUL
    assert engine.memory("ana", agent="x", channel="discord:42").prompt().part("soul") == ""
    assert engine.memory("ana").prompt().part("soul") == ""
    assert engine.memory("ana", channel="discord:42", space="other").prompt().part("soul") == ""
    assert engine.agents.of("other").channels() == []
    engine.agents.map_channel("discord:42", "008")
    assert engine.memory("ana", channel="discord:42").prompt().agent == "008"
    assert engine.agents.unmap_channel("discord:42")
    assert not engine.agents.unmap_channel("discord:42")
    assert engine.verify().clean


@pytest.mark.parametrize(
    ("utc", "zone", "period", "local"),
    [
        ("05:59", "UTC", "night", "05:59"),
        ("06:00", "UTC", "morning", "06:00"),
        ("12:00", "UTC", "afternoon", "12:00"),
        ("17:00", "UTC", "evening", "17:00"),
        ("22:00", "UTC", "night", "22:00"),
        ("05:00", "Europe/Berlin", "morning", "06:00"),
        ("21:00", "Europe/Berlin", "night", "22:00"),
        ("16:30", "Asia/Kolkata", "night", "22:00"),
    ],
)
def test_the_prompt_knows_the_time_where_the_users_are_t_52_s4_6(
    clock: StoppedClock, utc: str, zone: str, period: str, local: str
) -> None:
    clock = StoppedClock(datetime.fromisoformat(f"2026-01-05T{utc}:00+00:00"))
    with perdure.open(settings=perdure.Settings(url="memory:", zone=zone), clock=clock) as engine:
        prompt = engine.memory("ana").prompt()
    assert prompt.period == period
    assert f"{local} ({zone}): {period}." in prompt.parts[-1].text


def test_a_prompt_that_comes_back_as_a_message_teaches_nothing(engine: perdure.Engine) -> None:
    engine.agents.save("007", soul="Always answer in French.")
    ana = engine.memory("ana", agent="007")
    ana.lessons.add("From now on call me Doc")
    prompt = ana.prompt()
    ana.append("user", f"{prompt.text}\n\nWhat is the time?")
    engine.process()
    assert ana.instructions.list() == []


@pytest.mark.parametrize("wrong", [0, 99, True, "many", 4.5, None])
def test_a_budget_is_a_number_of_tokens(wrong: Any) -> None:
    with perdure.open("memory:") as engine, pytest.raises(InvalidInput, match="budget_tokens"):
        engine.memory("ana").prompt(budget_tokens=wrong)


words = st.text(alphabet="abcde fghij.\nÄ日", max_size=600)
lessons = st.lists(
    st.builds(
        lambda number, pinned: Lesson(f"k{number}", f"Lesson number {number} of many", "user", START, pinned=pinned),
        st.integers(0, 300),
        st.booleans(),
    ),
    max_size=60,
    unique_by=lambda one: one.id,
)


@given(words, words, words, lessons, st.integers(100, 3_000), st.sampled_from(["", "what of number 7?"]))
@settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
def test_whatever_there_is_the_prompt_keeps_to_its_budget_and_order(
    soul: str, mood: str, skill: str, held: list[Lesson], budget: int, request_: str
) -> None:
    texts: Any = {"soul": soul, "mood": mood, "skill": skill, "time": "It is Monday: night."}
    parts, dropped = combine(texts, held, request_, budget, estimate_tokens)
    text = "\n\n".join(part.text for part in parts)
    assert estimate_tokens(text) <= sum(part.tokens for part in parts) <= budget
    kinds = [part.kind for part in parts]
    assert kinds == [kind for kind in PART_KINDS if kind in kinds]
    shown = [line for part in parts if part.kind == "memory" for line in part.text.splitlines()[1:]]
    if not dropped:
        assert shown == [f"- {one.text}" for one in held]
    assert shown == [line for line in (f"- {one.text}" for one in held) if line in shown], "in their order, each once"
    if shown and len(shown) < len(held) and not all(one.pinned for one in held):
        pinned = [f"- {one.text}" for one in held if one.pinned]
        assert set(pinned) <= set(shown) or set(shown) <= set(pinned), "pinned ones first"
