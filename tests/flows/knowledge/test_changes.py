"""What is said ends or replaces what was known before in other words: rather too seldom than wrongly."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import perdure
from perdure import Memory
from perdure.engine.knowledge.changes import closed_by
from perdure.testing import StoppedClock

START = datetime(2026, 6, 15, 8, tzinfo=UTC)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture
def engine(backend: Any, clock: StoppedClock) -> Iterator[perdure.Engine]:
    engine: perdure.Engine = backend.open(clock=clock)
    yield engine
    assert engine.verify().findings == ()


@pytest.fixture
def ana(engine: perdure.Engine) -> Memory:
    return engine.memory("ana", agent="coach")


def contents(ana: Memory) -> list[str]:
    return sorted(one.content for memory in ana.memories.list() for one in memory.statements)


def hear(engine: perdure.Engine, clock: StoppedClock, ana: Memory, text: str) -> None:
    clock.move(days=1)
    ana.append("user", text)
    engine.process()


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("Drives a Ford Fiesta, a blue car", "sold the car last week"),
        ("been working at google for five years", "quit Google, joined Stripe"),
        ("arbeitet seit 2015 bei Siemens in Erlangen", "bin nicht mehr bei Siemens"),
        ("travaille chez Renault", "je ne travaille plus chez renault depuis lundi"),
        ("Trabaja en Telefónica", "ya no trabajo en telefónica"),
        ("Trip to Lisbon in May", "the Lisbon trip is cancelled, we got the money back"),
    ],
)
def test_what_is_over_is_closed_by_the_words_that_say_so(
    engine: perdure.Engine, clock: StoppedClock, ana: Memory, known: str, said: str
) -> None:
    ana.remember(known)
    hear(engine, clock, ana, said)
    assert known not in contents(ana)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("Drives a Ford Fiesta, a blue car", "my brother sold his Fiesta last week"),
        ("Drives a Ford Fiesta, a blue car", "should i sell the car?"),
        ("been working at google for five years", "my roommate quit google to open a bakery"),
        ("been working at google for five years", "thinking about leaving google one day"),
        ("Arbeitet bei Siemens", "mein Schwager ist nicht mehr bei Siemens"),
        ("Vive en Sevilla", "mi hermana se mudó a Málaga"),
        ("Has a dog called Rex", "the neighbour's dog died yesterday"),
        ("Wife is called Ines", "we sold the caravan last week"),
    ],
)
def test_what_happens_to_others_is_asked_or_wished_ends_nothing(
    engine: perdure.Engine, clock: StoppedClock, ana: Memory, known: str, said: str
) -> None:
    ana.remember(known)
    hear(engine, clock, ana, said)
    assert known in contents(ana)


def test_two_sentences_of_a_message_end_one_thing(engine: perdure.Engine, clock: StoppedClock, ana: Memory) -> None:
    ana.remember("Trip to Lisbon in May")
    ana.remember("Trip to Lisbon with Ines")
    hear(engine, clock, ana, "The Lisbon trip is cancelled. We got the money for Lisbon back.")
    assert len({"Trip to Lisbon in May", "Trip to Lisbon with Ines"} & set(contents(ana))) == 1


def test_the_closed_statement_names_what_closed_it_and_can_be_brought_back(
    engine: perdure.Engine, clock: StoppedClock, ana: Memory
) -> None:
    ana.remember("Trip to Lisbon in May")
    clock.move(days=1)
    ana.append("user", "the Lisbon trip is cancelled, we got the money back")
    found = ana.memories.extract()
    [outcome] = [one for one in found.outcomes if one.closed]
    [over] = outcome.closed
    assert outcome.statement is not None
    assert (outcome.verdict, over.content, over.closed_by) == ("superseded", "Trip to Lisbon in May", outcome.statement.id)
    assert over.valid_to == clock.now()
    closing = next(one for one in ana.journal.list() if one.action == "supersede")
    ana.undo(closing.seq)
    assert "Trip to Lisbon in May" in contents(ana)


def test_a_pinned_memory_is_not_closed_by_what_only_sounds_like_its_end(
    engine: perdure.Engine, clock: StoppedClock, ana: Memory
) -> None:
    ana.remember("Trip to Lisbon in May", pinned=True)
    hear(engine, clock, ana, "the Lisbon trip is cancelled, we got the money back")
    assert "Trip to Lisbon in May" in contents(ana)


def test_words_that_only_sound_like_a_change_are_not_kept_when_nothing_changes(
    engine: perdure.Engine, clock: StoppedClock, ana: Memory
) -> None:
    hear(engine, clock, ana, "quit the band")
    assert contents(ana) == []
    ana.remember("Plays in a band")
    hear(engine, clock, ana, "quit the band")
    assert contents(ana) == ["quit the band"]


def test_what_was_said_later_is_not_ended_by_an_older_message(engine: perdure.Engine, clock: StoppedClock, ana: Memory) -> None:
    ana.append("user", "the Lisbon trip is cancelled, we got the money back")
    clock.move(days=2)
    ana.remember("Trip to Lisbon in May")
    engine.process()
    assert "Trip to Lisbon in May" in contents(ana)


def test_what_only_one_agent_may_see_is_not_ended_by_what_all_hear(
    engine: perdure.Engine, clock: StoppedClock, ana: Memory
) -> None:
    ana.remember("Trip to Lisbon in May", visible_to="coach")
    hear(engine, clock, ana, "the Lisbon trip is cancelled, we got the money back")
    assert "Trip to Lisbon in May" in contents(ana)


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ("Drinks coffee after noon", "16 km. The longest since last year!"),
        ("boat number 4 " + "and so on " * 10, "boat number 5 " + "and so on " * 10),
    ],
)
def test_an_article_is_no_drink_and_more_words_than_were_learned_from_end_nothing(known: str, said: str) -> None:
    assert closed_by(said, [known]) is None


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("Is allergic to peanuts", "Is not allergic to peanuts"),
        ("Is vegetarian", "I'm not vegetarian"),
        ("Has a dog named Rex", "No longer has a dog named Rex"),
        ("Works from home", "Doesn't work from home any more"),
        ("Spielt Tennis", "Spielt kein Tennis mehr"),
        ("Fume", "Ne fume plus"),
        ("Aime le café", "N'aime pas le café"),
        ("Habla español", "Ya no habla español"),
    ],
)
def test_of_a_statement_and_its_denial_the_later_one_holds(clock: StoppedClock, ana: Memory, held: str, said: str) -> None:
    """In the words of the user; an agent's stand beside them as a proposal."""
    ana.remember(held)
    clock.move(days=1)
    proposed = ana.as_agent().remember(said)
    assert (proposed.verdict, contents(ana)) == ("proposed", [held])
    done = ana.remember(said)
    assert ([one.content for one in done.closed], contents(ana)) == ([held], [said])


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("Plays tennis on Mondays", "Does not play tennis on Fridays"),
        ("Went to the party", "Did not go to the party"),
        ("Does not like rain", "Does not like snow"),
        ("Anna is vegetarian", "Is not vegetarian"),
    ],
)
def test_a_denial_of_something_else_closes_nothing(clock: StoppedClock, ana: Memory, held: str, said: str) -> None:
    ana.remember(held)
    clock.move(days=1)
    ana.remember(said)
    assert contents(ana) == sorted([held, said])


@pytest.mark.parametrize(
    ("known", "said", "over"),
    [
        ("Yoga on Tuesdays", "yoga is on Fridays now", True),
        ("Yoga on Tuesdays", "yoga is on Friday this week only", False),
        ("Rent is 900 a month", "the rent went up to 990", True),
        ("Rent is 900 a month", "my brother's rent went up to 990", False),
        ("Cuida a su padre", "papá murió el lunes", True),
        ("Cuida a su padre", "mi vecina murió el lunes", False),
    ],
)
def test_another_day_or_number_and_other_words_for_the_same_person_count(known: str, said: str, *, over: bool) -> None:
    assert (closed_by(said, [known]) == 0) is over


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"content": "Is vegetarian"}, {"content": "Is not vegetarian", "subject": "person:Tom"}),
        ({"content": "Is vegetarian"}, {"content": "Is not vegetarian", "entities": ["person:Tom"]}),
        (
            {"content": "Uses Redis", "type": "PROJECT", "entities": ["project:Alpha"]},
            {"content": "Does not use Redis", "type": "PROJECT", "entities": ["project:Beta"]},
        ),
    ],
)
def test_a_denial_of_one_closes_nothing_of_another(
    clock: StoppedClock, ana: Memory, held: dict[str, Any], said: dict[str, Any]
) -> None:
    ana.remember(**held)
    clock.move(days=1)
    assert ana.remember(**said).closed == ()
    assert contents(ana) == sorted([held["content"], said["content"]])


@pytest.mark.parametrize("entities", [[], ["person:Tom"]])
def test_a_denial_closes_what_names_the_same_one_in_its_words_and_says_why(
    clock: StoppedClock, ana: Memory, entities: list[str]
) -> None:
    ana.remember("Tom is vegetarian", "PEOPLE", entities=["person:Tom"])
    clock.move(days=1)
    [over] = ana.remember("Tom is not vegetarian", "PEOPLE", entities=entities).closed
    assert (over.content, over.reason) == ("Tom is vegetarian", "what was said since ends or replaces it")
