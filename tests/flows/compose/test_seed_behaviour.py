"""What the seed documents ask for otherwise stays available: each as a switch in Python, and all of a seed by one setting."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import perdure
from perdure.domain.limits import Switches
from perdure.settings import load
from perdure.testing import StoppedClock

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def opened(clock: StoppedClock | None = None, **given: object) -> perdure.Engine:
    settings = perdure.Settings(url="memory:", **given)  # type: ignore[arg-type]
    return perdure.open(settings=settings, clock=clock or StoppedClock(NOON))


def switched(**switches: object) -> Switches:
    return Switches(**switches)  # type: ignore[arg-type]


def seen(ana: perdure.Memory, goal: str) -> set[str]:
    return set(ana.before(goal, target="goal").values)


def test_the_gate_of_words_offers_series_or_plain_keys() -> None:
    """X-7: with it, a word of time hides every plain key, as the seed's own example shows."""
    for gate, expected in (("all", {"kudos_givers_2025"}), ("keyword_gate", set())):
        with opened(switches=switched(relevance=gate)) as engine:
            ana = engine.memory("ana")
            ana.state.save("kudos_givers_2025", ["athlete_123"])
            assert seen(ana, "Who from my kudos list was active recently?") == expected
            assert seen(ana, "Who is on my kudos list?") == {"kudos_givers_2025"}


def test_the_oldest_entry_decides_what_is_covered() -> None:
    """X-1: the seed's rule, by default or for one query; the future is covered by neither."""
    entries = [{"id": day, "timestamp": (NOON - day * DAY).isoformat()} for day in (1, 10)]
    for rule, expected in (("ledger", "none"), ("seed_span", "full")):
        with opened(switches=switched(coverage=rule)) as engine:
            kudos = engine.memory("ana").series("kudos")
            kudos.merge(entries)
            assert kudos.query(NOON - 10 * DAY, NOON).coverage == expected
            assert kudos.query(NOON - 10 * DAY, NOON, coverage="seed_span").coverage == "full"
            assert kudos.query(NOON, NOON + DAY).coverage == "none"


@pytest.mark.parametrize(("clears", "working"), [(True, 0), (False, 2)])
def test_small_silent_sessions_are_left_alone(clears: bool, working: int) -> None:
    """X-17."""
    clock = StoppedClock(NOON)
    with opened(clock, profile="channel_bot", switches=switched(clear_small=clears)) as engine:
        ana = engine.memory("ana", channel="discord:42")
        ana.append_many([perdure.NewMessage("user", "Hello"), perdure.NewMessage("assistant", "Hi")])
        engine.process()
        clock.move(hours=2)
        engine.process()
        assert ana.conversation.session().working == working


@pytest.mark.parametrize(("scope", "shown"), [("session", "left_off"), ("persona", "rolling_digest")])
def test_a_new_session_goes_on_with_the_rolling_digest(scope: str, shown: str) -> None:
    """X-20."""
    clock = StoppedClock(NOON)
    with opened(clock, switches=switched(rolling_scope=scope)) as engine:
        ana = engine.memory("ana")
        for text in ("I plan a 10 k in May", "It is in Austin", "I run on Mondays", "And on Fridays"):
            ana.append("user", text)
        engine.process()
        clock.move(hours=1)
        ana.append("user", "I am back")
        kinds = [block.kind for block in ana.context().blocks]
        assert [one for one in kinds if one in ("rolling_digest", "left_off")] == [shown]


@pytest.mark.parametrize(("unit", "due"), [("turns", 21), ("messages", 11)])
def test_the_spine_counts_turns_or_messages(unit: str, due: int) -> None:
    """X-21."""
    with opened(switches=switched(spine_unit=unit)) as engine:
        ana = engine.memory("ana")
        for number in range(1, due + 1):
            assert ana.conversation.digests("spine") == []
            ana.append_many([perdure.NewMessage("user", f"Town {number}"), perdure.NewMessage("assistant", "Noted.")])
            engine.process()
        assert [one.version for one in ana.conversation.digests("spine")] == [1]


def test_a_newer_statement_replaces_the_other_under_its_key() -> None:
    """X-23: as the seed has it, which loses a fact; ours keeps both."""
    said = ("Mom lives in Seattle", "Mom is a nurse")
    for how, expected in (("add", "; ".join(said)), ("replace", said[1])):
        with opened(switches=switched(statements=how, attributes=False)) as engine:
            ana = engine.memory("ana")
            for text in said:
                ana.remember(text, "PEOPLE", entities=["person:Mom"])
            [held] = ana.memories.list("PEOPLE")
            assert held.content == expected
            assert [one.content for one in ana.memories.history(held.memory.record_key)] == list(said), "nothing is lost"


def test_every_lesson_is_in_the_prompt() -> None:
    """X-35."""
    for how in ("budget", "all"):
        with opened(switches=switched(lessons=how)) as engine:
            ana = engine.memory("ana")
            for number in range(60):
                ana.lessons.add(f"Check the log of server {number} before you restart it", "user")
            told = ana.prompt(budget_tokens=200)
            shown = sum(f"of server {number} before" in told.text for number in range(60))
            assert (shown == 60) == (how == "all")


def test_a_transcript_is_a_new_file_each_time(tmp_path: Path) -> None:
    """X-38, S4-20: the old files stay, and the newest has all of it."""
    for how, files in (("one", 1), ("new_each_time", 3)):
        clock, folder = StoppedClock(NOON), tmp_path / how
        with opened(clock, files_dir=str(folder), switches=switched(transcript=how)) as engine:
            ana = engine.memory("ana")
            for number in range(6):
                ana.append("user", f"Message {number}", session="s1")
                engine.process()
                clock.move(minutes=1)
            assert len(list(folder.rglob("session-memory-s1-*.md"))) == files
            assert [one.content for one in ana.conversation.transcripts.read("s1")] == [f"Message {n}" for n in range(6)]


@pytest.mark.parametrize(("grows", "importance"), [(True, 2), (False, 1)])
def test_what_is_said_often_becomes_more_important_or_not(grows: bool, importance: int) -> None:
    """X-44, S3-46."""
    clock = StoppedClock(NOON)
    with opened(clock, switches=switched(importance_growth=grows)) as engine:
        ana = engine.memory("ana")
        for _ in range(6):
            ana.remember("Drinks tea", importance=1)
            clock.move(days=1)
        assert ana.memories.list()[0].memory.importance == importance


@pytest.mark.parametrize(
    ("attributes", "current"), [(True, {"Lives in Seattle"}), (False, {"Lives in Austin", "Lives in Seattle"})]
)
def test_an_attribute_closes_the_value_before_or_not(attributes: bool, current: set[str]) -> None:
    """X-46."""
    with opened(switches=switched(attributes=attributes)) as engine:
        ana = engine.memory("ana")
        for city in ("Austin", "Seattle"):
            ana.remember(f"Lives in {city}", entities=[f"place:{city}"], attribute="lives_in", value=city)
        assert {one.content for one in ana.memories.list()} == current


@pytest.mark.parametrize("wrong", [{"relevance": "some"}, {"clear_small": "no"}, {"coverage": ""}])
def test_a_switch_is_one_of_its_values(wrong: dict[str, object]) -> None:
    with pytest.raises(perdure.InvalidInput, match=f"switch `{next(iter(wrong))}`"):
        switched(**wrong)


# -- all of a seed


def test_one_setting_is_the_whole_of_seed_4() -> None:
    """S4-5, S4-8, S4-12, S4-20, S4-32: eight messages, half an hour, `memory.md`, MEMORY_APPEND for everybody."""
    chosen = load({"PERDURE_SEED": "4", "PERDURE_CONFIG": ""}, url="memory:")
    assert (chosen.profile, chosen.lessons_scope) == ("channel_bot", "global")
    assert (chosen.layers.fold_messages_min, chosen.layers.flush_every_s, chosen.layers.window_messages) == (8, 1800, 20)
    assert (Path(chosen.agents_dir).name, Path(chosen.files_dir).name) == ("agents", "session")
    assert chosen.switches == Switches(clear_small=False, lessons="all", transcript="new_each_time")


def test_lessons_of_seed_4_stand_in_memory_md_for_every_agent(tmp_path: Path) -> None:
    """S4-12 to S4-16."""
    with opened(seed="4", agents_dir=str(tmp_path / "agents"), files_dir=str(tmp_path / "session")) as engine:
        engine.memory("ana", agent="007", channel="discord:42").lessons.take_from(
            "Done.\nMEMORY_APPEND: Ask before you restart"
        )
        assert (tmp_path / "agents" / "memory.md").read_text() == "- Ask before you restart\n"
        assert "Ask before you restart" in engine.memory("ben", agent="other").prompt().text


@pytest.mark.parametrize(
    ("seed", "profile", "switches"),
    [
        ("0", "companion", Switches(relevance="keyword_gate", coverage="seed_span")),
        ("1", "companion", Switches()),
        ("2", "task_agent", Switches()),
        (
            "3",
            "companion",
            Switches(
                rolling_scope="persona", spine_unit="messages", statements="replace", importance_growth=False, attributes=False
            ),
        ),
    ],
)
def test_each_seed_has_its_profile_and_switches(seed: str, profile: str, switches: Switches) -> None:
    chosen = perdure.Settings(seed=seed)
    assert (chosen.profile, chosen.switches) == (profile, switches)


def test_what_was_set_otherwise_stays() -> None:
    chosen = perdure.Settings(seed="4", profile="complete", agents_dir="mine", switches=Switches(lessons="all"))
    assert (chosen.profile, chosen.agents_dir, chosen.switches) == ("complete", "mine", Switches(lessons="all"))
    with pytest.raises(perdure.InvalidInput, match="setting `seed` = '5' is unknown"):
        perdure.Settings(seed="5")
