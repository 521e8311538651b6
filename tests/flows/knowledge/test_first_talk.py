"""What is made of the first things that people tell: how important they are, whole names, one employer after the other."""

from __future__ import annotations

from typing import Any

import pytest

import perdure
from perdure.testing import StoppedClock


@pytest.fixture
def ana(backend: Any) -> perdure.Memory:
    return backend.open(clock=StoppedClock()).memory("ana")


@pytest.mark.parametrize(
    ("said", "content", "importance"),
    [
        ("My name is Ana.", "Name is Ana", 3),
        ("John is my cofounder.", "John is my cofounder", 2),
        ("Rosa is my mother.", "Rosa is my mother", 2),
        ("I am allergic to peanuts.", "Is allergic to peanuts", 2),
        ("I am diabetic.", "Is diabetic", 2),
        ("I like jazz.", "Likes jazz", 1),
    ],
)
def test_names_relations_and_health_matter_more_than_taste(
    ana: perdure.Memory, said: str, content: str, importance: int
) -> None:
    """S3-9, S3-22."""
    ana.append("user", said)
    [found] = ana.memories.list()
    assert (found.content, found.memory.importance) == (content, importance)


@pytest.mark.parametrize(
    ("said", "importance"),
    [
        ("I take 5 mg of warfarin daily", 2),
        ("My emergency contact is Bob, 555-1234", 2),
        ("I carry an EpiPen", 2),
        ("Had a heart attack in 2019", 2),
        ("Meine Blutgruppe ist 0 negativ", 2),
        ("Je suis allergique aux noix", 2),
        ("Soy alérgica a las nueces", 2),
        ("Ich heiße Ana Lee", 3),
        ("Je m'appelle Ana Lee", 3),
        ("Me llamo Ana Lee", 3),
        ("Paints with blood oranges", 1),
        ("Wrote a hymn called Strokes", 1),
    ],
)
def test_what_is_remembered_of_health_and_names_matters_in_each_language(
    ana: perdure.Memory, said: str, importance: int
) -> None:
    """S3-9: health and safety at least 2, the name 3, also where the words are kept as they are."""
    ana.remember(said)
    assert [one.memory.importance for one in ana.memories.list()] == [importance]


@pytest.mark.parametrize(
    ("said", "entities", "key"),
    [
        ("John is my cofounder; handles backend", [], "people|person|john|relationship"),
        ("John is my cofounder", ["person:John Doe"], "people|person|john_doe|relationship"),
        ("Rosa is my mother", [], "people|person|rosa|relationship"),
        ("My boss is Tom", [], "people|person|tom|relationship"),
        ("My wife is called Rosa", ["person:Rosa"], "people|person|rosa|relationship"),
    ],
)
def test_a_relation_is_one_if_it_is_remembered_under_people(
    ana: perdure.Memory, said: str, entities: list[str], key: str
) -> None:
    """S3-2, S3-8, S3-9: the type that a caller names leaves open of which kind the fact is."""
    ana.remember(said, "PEOPLE", entities=entities)
    [held] = ana.memories.list("PEOPLE", form="seed")
    assert "memoryKey" in held  # type: ignore[operator]
    assert "importance_score" not in held  # type: ignore[operator]
    assert (held["memoryKey"], held["importance"], held["content"]) == (key, 2, said)


def test_what_the_user_works_on_is_a_project_however_it_is_said(ana: perdure.Memory) -> None:
    """S3-3, S3-5: the seed's own example, said and remembered, is one memory."""
    ana.append("user", "I'm working on the dashboard redesign.")
    ana.remember("Working on dashboard redesign", "PROJECT")
    [held] = ana.memories.list("PROJECT", form="seed")
    assert (held["memoryKey"], held["entityRefs"]) == (
        "project|project|dashboard_redesign|fact",
        ["project:dashboard_redesign"],
    )
    assert (held["entityLabel"], held["content"]) == ("dashboard redesign", "Working on dashboard redesign")


def test_a_private_memory_is_found_by_its_key_as_listed(ana: perdure.Memory) -> None:
    """S3-11, S3-12, X-45: `memoryKey` alone, by the agent that sees it."""
    ana.remember("Is afraid of races", visible_to=ana.scope.address.agent)
    [held] = ana.memories.list(form="seed")
    assert held["id"] != held["memoryKey"]
    assert ana.memories.pin(held["memoryKey"]).memory.pinned
    assert ana.memories.get(held["memoryKey"]).content == "Is afraid of races"


def test_what_is_said_of_somebody_else_than_its_words_name_stays_as_it_is(ana: perdure.Memory) -> None:
    ana.remember("My boss is Tom", "PEOPLE", entities=["person:John Doe"])
    [held] = ana.memories.list("PEOPLE", form="seed")
    assert (held["memoryKey"], held["importance"]) == ("people|person|john_doe|fact", 1)


def test_a_person_who_matters_has_a_card(ana: perdure.Memory) -> None:
    """S3-49: a card shows what has an importance of at least 2."""
    ana.append("user", "Rosa is my mother.")
    given = ana.context("What could I cook for Rosa?", budget_tokens=2_000)
    [card] = [block for block in given.blocks if block.kind == "memories"]
    assert "[person:rosa]: Rosa is my mother" in card.text


@pytest.mark.parametrize(
    ("said", "content"),
    [
        ("I work at St. Mary's hospital.", "Works at St. Mary's hospital"),
        ("I work for the U.S. Navy. It is hard.", "Works at the U.S. Navy"),
        ("I live in St. Louis.", "Lives in St. Louis"),
        ("I moved to the U.S. Next year we marry.", "Lives in the U.S."),
        ("I work for Apple Inc. and live in St. Paul.", "Works at Apple Inc"),
        ("I work for Apple Inc. and live in St. Paul.", "Lives in St. Paul"),
        ("I live in St. Paul and work for J. P. Morgan Inc.", "Works at J. P. Morgan Inc"),
        ("I quit my job at J. Crew last month and joined L. L. Bean.", "Works at L. L. Bean"),
        ("My uncle Sgt. Pepper lives in Mt. Vernon.", "Sgt. Pepper lives in Mt. Vernon"),
        ("My lawyer is Lt. Col. Frank Slade.", "Lt. Col. Frank Slade is my lawyer"),
        ("Gen. Patton is my grandfather.", "Gen. Patton is my grandfather"),
    ],
)
def test_names_with_full_stops_are_whole(ana: perdure.Memory, said: str, content: str) -> None:
    ana.append("user", said)
    assert content in [found.content for found in ana.memories.list()]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "said",
    [
        "I quit my job at Google last month and joined Stripe.",
        "I left Google and joined Stripe.",
        "I resigned from my position at Google in March and started working at Stripe.",
    ],
)
def test_one_sentence_ends_one_employer_and_begins_another(ana: perdure.Memory, said: str, *, known: bool) -> None:
    if known:
        ana.append("user", "I work at Google.")
        assert [found.content for found in ana.memories.list()] == ["Works at Google"]
    ana.append("user", said)
    assert [found.content for found in ana.memories.list()] == ["Works at Stripe"]


@pytest.mark.parametrize(
    "said",
    [
        "I used to work at Google, now I'm at Stripe.",
        "I no longer work at Google, I'm at Stripe now.",
        "I don't work at Google anymore and I'm now with Stripe.",
        "I resigned from Google and started at Stripe last week.",
        "Last month I quit my job at Google and joined Stripe.",
        "I quit my job at Google last month. I joined Stripe.",
    ],
)
@pytest.mark.parametrize("remembered", [True, False])
def test_both_employers_of_a_sentence_are_read_however_it_is_told(ana: perdure.Memory, said: str, *, remembered: bool) -> None:
    """S3-49."""
    for text in ("I work at Google.", said):
        if remembered:
            ana.remember(text)
        else:
            ana.append("user", text)
    assert [found.content for found in ana.memories.list()] == ["Works at Stripe"]


@pytest.mark.parametrize(
    "said",
    [
        "I quit Google and joined Stripe.",
        "I moved from Google to Stripe.",
        "I've just switched from Google to Stripe.",
    ],
)
def test_a_known_employer_is_left_for_another_one(ana: perdure.Memory, said: str) -> None:
    """S3-49: "Lives in Stripe" was learned, or nothing."""
    ana.append("user", "I work at Google.")
    ana.append("user", said)
    assert [found.content for found in ana.memories.list()] == ["Works at Stripe"]


@pytest.mark.parametrize(
    ("said", "contents"),
    [
        ("I work at Google as an engineer.", {"Works at Google", "Works as an engineer"}),
        ("My sister works at Google as an architect.", {"My sister works at Google; My sister is an architect"}),
    ],
)
def test_an_occupation_has_no_part_of_its_article(ana: perdure.Memory, said: str, contents: set[str]) -> None:
    """S3-1."""
    ana.append("user", said)
    assert {found.content for found in ana.memories.list()} == contents


@pytest.mark.parametrize(
    "said", ["I left Austin last year and moved to Seattle.", "I quit my job at Google in May and moved to Seattle."]
)
def test_a_place_that_somebody_moved_to_is_no_employer(ana: perdure.Memory, said: str) -> None:
    """S3-1."""
    ana.append("user", "I live in Austin.")
    ana.append("user", said)
    assert "Works at Seattle" not in [found.content for found in ana.memories.list()]


@pytest.mark.parametrize(
    ("said", "contents"),
    [
        ("I work at Google and I live in Rome.", {"Works at Google", "Lives in Rome"}),
        ("I study at Oxford and I am 20.", {"Studies at Oxford", "Is 20 years old"}),
        ("I work for Johnson and Johnson.", {"Works at Johnson and Johnson"}),
    ],
)
def test_the_name_of_a_company_ends_before_the_next_clause(ana: perdure.Memory, said: str, contents: set[str]) -> None:
    """S3-1: "Works at Google and" was learned, and the rest was not."""
    ana.append("user", said)
    assert {found.content for found in ana.memories.list()} == contents


def test_the_health_of_those_who_matter_is_on_their_cards(ana: perdure.Memory) -> None:
    """S3-9, S3-22: of "My daughter Mia has asthma" only that she is the daughter was kept."""
    ana.append("user", "My daughter Mia has asthma.")
    held = {one["content"]: (one["importance"], one["entityRefs"]) for one in ana.memories.list(form="seed")}
    assert held == {"Mia is my daughter": (2, ["person:mia"]), "My daughter Mia has asthma.": (2, ["person:mia"])}
    [card] = [block.text for block in ana.context("What should Mia avoid?").blocks if block.kind == "memories"]
    assert "asthma" in card.splitlines()[0]
    assert card.startswith("[person:mia]: ")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("My wife Eva is diabetic.", "My wife Eva is diabetic."),
        ("My father has a pacemaker.", "My father has a pacemaker."),
        ("I work at Google and I have diabetes.", "I have diabetes."),
    ],
)
def test_what_is_said_of_health_beside_something_else_is_kept(ana: perdure.Memory, said: str, kept: str) -> None:
    """S3-9."""
    ana.append("user", said)
    important = [one.content for memory in ana.memories.list() if memory.memory.importance >= 2 for one in memory.statements]
    assert important.count(kept) == 1


def test_originals_of_a_fold_are_listed_with_what_they_said(ana: perdure.Memory) -> None:
    """S3-15, S3-48."""
    told = {
        "fact": ["Rosa is a nurse", "Rosa lives in Porto"],
        "preference": ["Rosa loves roses", "Rosa likes tea"],
        "habit": ["Rosa swims on Mondays"],
        "relationship": ["Rosa is my mother"],
        "friction": ["Rosa hates queues"],
    }
    for fact_type, contents in told.items():
        for content in contents:
            ana.remember(content, "PEOPLE", entities=["person:Rosa"], fact_type=fact_type)  # type: ignore[arg-type]
    assert len(ana.memories.curate().folds) == 1
    listed = ana.memories.list(archived=True)
    originals = {one.memory.fact_type: one for one in listed if one.memory.status == "ARCHIVED"}
    assert {kind: [one.content for one in held.statements] for kind, held in originals.items()} == told
    key = originals["habit"].memory.record_key
    assert ana.memories.get(key).content == "Rosa swims on Mondays"
    assert [one.content for one in ana.memories.history(key)] == ["Rosa swims on Mondays"]
    [fold] = ana.memories.list()
    assert sorted(one.content for one in fold.statements) == sorted(one for some in told.values() for one in some)
    [hit, *_] = ana.recall("When does Rosa swim?").hits
    assert hit.memory == fold.memory.record_key, "it is told once"
    ana.forget(memory=fold.memory.record_key)
    assert "swims" not in str(ana.memories.list(archived=True))


def test_the_key_of_a_listed_memory_is_the_one_that_calls_take(ana: perdure.Memory) -> None:
    ana.remember("Is vegetarian", visible_to="default")
    [one] = ana.memories.list()
    assert ana.memories.get(one.key) == one
    assert ana.forget(memory=one.key).removed["statement"] == 1
    assert ana.memories.list() == []


def test_what_is_refused_for_its_length_is_shown_by_how_it_begins(ana: perdure.Memory) -> None:
    refused = str(ana.remember("word " * 20_000))
    assert refused.startswith("refused: word word")
    assert refused.endswith("\n  the content is too long for one statement")
    assert len(refused) < 1_100
