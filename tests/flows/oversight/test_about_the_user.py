"""What `before` gives of the user themselves: a profile, what limits a goal, the thing it names; and nothing where none is due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import perdure
from perdure.testing import StoppedClock

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
KEYS = {
    "kudos_givers_2025": ["Bo", "Mia"],
    "wifi_settings": {"ssid": "home"},
    "household_budget": {"housing": 900, "food": 400},
    "favorite_routes": ["river loop"],
    "medication_schedule": {"evening": "one"},
    "grocery_list": ["milk"],
    "car_service": {"due": "2026-09"},
    "gym_plan": {"monday": "legs"},
    "birthday_list": ["Bo"],
}


@pytest.fixture
def ana() -> perdure.Memory:
    clock = StoppedClock(NOW)
    engine = perdure.open("memory:", clock=clock)
    ana = engine.memory("ana", agent="coach")
    for text in ("I am allergic to peanuts", "My name is Ana", "I like climbing", "I live in Lisbon", "I work at Acme"):
        ana.remember(text)
    ana.append("user", "billing-core runs on Postgres 15; its migrations are in db/versions")
    clock.move(days=2)
    engine.process()
    for key, value in KEYS.items():
        ana.state.save(key, value)
    return ana


@pytest.mark.parametrize("goal", ["What do you know about me?", "Who am I?", "What are my hobbies?", "Recommend a gift for me"])
def test_a_question_about_the_user_gets_a_short_profile(ana: perdure.Memory, goal: str) -> None:
    given = ana.before(goal)
    assert [block.kind for block in given.blocks if block.kind == "profile"] == ["profile"]
    assert all(word in given.text for word in ("peanuts", "Ana", "climbing", "Lisbon", "Acme"))
    assert given.tokens <= 300
    assert not set(KEYS) & set(given.values)


def test_an_allergy_limits_what_is_cooked_though_no_word_is_the_same(ana: perdure.Memory) -> None:
    given = ana.before("What should I cook tonight?")
    [block] = [block for block in given.blocks if block.kind == "limits"]
    assert "allergic to peanuts" in block.text


@pytest.mark.parametrize(
    ("told", "goal"),
    [
        ("Ich esse kein Schweinefleisch", "Was soll ich heute Abend kochen?"),
        ("Nussallergie, schwer, mit Notfallset", "Was gibt es heute zum Abendessen?"),
        ("je ne mange plus de viande depuis deux ans", "Propose un repas pour ce soir"),
        ("soy celíaca, nada de trigo", "¿Qué puedo cocinar hoy?"),
        ("I hate coriander", "What should I cook tonight?"),
        ("mi rodilla está operada desde marzo", "Quiero correr el domingo, hazme un plan"),
        ("J'ai mal au dos depuis la chute", "Je porte la machine au premier, une astuce ?"),
    ],
)
def test_what_limits_a_goal_is_given_in_four_languages(ana: perdure.Memory, told: str, goal: str) -> None:
    ana.remember(told)
    [block] = [block for block in ana.before(goal).blocks if block.kind == "limits"]
    assert told.split()[-1] in block.text or "coriander" in block.text


@pytest.mark.parametrize("goal", ["Was weißt du über mich?", "Que sais-tu de moi ?", "¿Qué sabes de mí?", "Qui suis-je ?"])
def test_a_question_about_the_user_gets_a_profile_in_four_languages(ana: perdure.Memory, goal: str) -> None:
    assert "profile" in [block.kind for block in ana.before(goal).blocks]


def test_small_talk_is_never_given(ana: perdure.Memory) -> None:
    ana.append("user", "I go climbing at the quarry on Fridays")
    ana.append("assistant", "Noted!")
    ana.append("user", "Got it, thanks!")
    given = ana.before("When do I go climbing?").text
    assert "quarry" in given
    assert "Noted" not in given
    assert "thanks" not in given


@pytest.mark.parametrize("goal", ["What food does Clara like?", "What is Clara's favourite food?", "Does Clara eat fish?"])
def test_a_goal_that_names_a_known_person_gets_what_is_told_of_them(ana: perdure.Memory, goal: str) -> None:
    ana.remember("Clara likes ramen", "PEOPLE", entities=["person:Clara"], attribute="likes", value="ramen")
    assert "ramen" in ana.before(goal).text


@pytest.mark.parametrize("goal", ["Mark the text in bold", "mark all emails as read", "What is the capital of France?"])
def test_a_word_that_is_also_a_name_opens_nothing(ana: perdure.Memory, goal: str) -> None:
    ana.remember("Mark is my boss", "PEOPLE", entities=["person:Mark"])
    assert "boss" not in ana.before(goal).text


def test_the_project_that_a_goal_names_is_given(ana: perdure.Memory) -> None:
    assert "Postgres 15" in ana.before("Write a migration for billing-core").text


@pytest.mark.parametrize(
    "goal",
    [
        "Hello!",
        "Good morning :)",
        "Thanks, that's all",
        "What is the capital of France?",
        "How tall is Mount Everest?",
        "What's 17 % of 2340?",
        "Translate into German: my cousin is allergic to nuts",
        "Write a limerick about a peanut",
        "What is a peanut allergy?",
    ],
)
def test_greetings_and_general_knowledge_get_nothing(ana: perdure.Memory, goal: str) -> None:
    given = ana.before(goal)
    assert given.nothing, given.text


def test_what_is_archived_or_of_another_agent_is_in_no_profile(ana: perdure.Memory) -> None:
    [old] = [one for one in ana.memories.list() if any("Acme" in each.content for each in one.statements)]
    ana.memories.archive(old.memory.key)
    assert "Acme" not in ana.before("What do you know about me?").text


def test_of_nine_keys_the_seeds_goal_loads_the_one_it_is_about(ana: perdure.Memory) -> None:
    """S1-2, S1-6, T-17: without a model."""
    given = ana.before("Which of my kudos givers from 2025 gave me kudos?", target="goal")
    assert set(given.values) & set(KEYS) == {"kudos_givers_2025"}


def test_what_is_spent_on_housing_loads_the_budget_alone(ana: perdure.Memory) -> None:
    """S1-2, T-17."""
    given = ana.before("How much do I spend on housing?", target="goal")
    assert set(given.values) & set(KEYS) == {"household_budget"}


@pytest.mark.parametrize(
    ("goal", "answer"),
    [
        ("What is my job?", "nurse"),
        ("What's my name?", "Marta"),
        ("How old am I?", "34"),
        ("Where do I live?", "Berlin"),
        ("What languages do I speak?", "Polish"),
    ],
)
def test_a_plain_question_about_ones_own_is_given_the_answer(goal: str, answer: str) -> None:
    marta = perdure.open("memory:", clock=StoppedClock(NOW)).memory("marta")
    for text in ("Works as a nurse", "Name is Marta", "Is 34 years old", "Lives in Berlin", "Speaks Polish"):
        marta.remember(text)
    assert answer in marta.before(goal).text


@pytest.mark.parametrize(
    "goal",
    ["Wer bin ich?", "Was weißt du über mich?", "Que sais-tu de moi ?", "Qui suis-je ?", "¿Qué sabes de mí?", "¿Quién soy?"],
)
def test_a_question_about_the_user_gets_a_profile_in_each_language(ana: perdure.Memory, goal: str) -> None:
    assert [block.kind for block in ana.before(goal).blocks if block.kind == "profile"] == ["profile"]


@pytest.mark.parametrize(
    ("said", "goal"),
    [
        ("Ich vertrage keine Nüsse, bin allergisch.", "Was soll ich heute kochen?"),
        ("Ich esse kein Fleisch.", "Plane das Abendessen für Freitag"),
        ("Mein Knie tut beim Bergablaufen weh.", "Plane meinen Lauf für Sonntag"),
        ("Je suis allergique aux arachides.", "Qu'est-ce que je peux cuisiner ce soir ?"),
        ("Soy alérgica a los cacahuetes.", "¿Qué puedo cocinar esta noche?"),
        ("My left achilles is acting up again so no hills", "Plan my run for Sunday"),
    ],
)
def test_what_the_user_cannot_eat_or_bear_limits_a_goal_in_each_language(said: str, goal: str) -> None:
    user = perdure.open("memory:", clock=StoppedClock(NOW)).memory("user")
    user.remember(said)
    user.remember("Speaks Portuguese")
    [block] = [block for block in user.before(goal).blocks if block.kind == "limits"]
    assert said in block.text
    assert "Portuguese" not in block.text
