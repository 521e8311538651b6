"""Entity cards: which facts, in which order, on which card. S3-22, S3-23, B-48, T-40."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
from hypothesis import given

from perdure.engine.context.blocks import CARDS_MAX, FACTS_MAX, CardFact, EntityCard, cards_of

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def fact(name: str, *entities: str, importance: int = 2, pinned: bool = False, day: int = 0) -> CardFact:
    return CardFact(name, f"{name}.", entities or ("person:john",), importance, pinned, NOW + timedelta(days=day))


def told(cards: tuple[EntityCard, ...]) -> dict[str, list[str]]:
    return {card.entity: [one.id for one in card.facts] for card in cards}


def test_john_has_google_and_london_but_not_chess_t_40() -> None:
    facts = [fact("Google", importance=1, pinned=True), fact("London", importance=2), fact("chess", importance=1)]
    [card] = cards_of(["person:john"], facts)
    assert card.line == "[person:john]: Google; London"


def test_pinned_first_then_the_weightier_then_the_newer_and_three_at_most_s3_22() -> None:
    facts = [
        fact("old", day=0),
        fact("new", day=2),
        fact("newer", day=3),
        fact("weighty", importance=3, day=1),
        fact("pinned", importance=0, pinned=True, day=-9),
    ]
    assert told(cards_of(["person:john"], facts)) == {"person:john": ["pinned", "weighty", "newer"]}


def test_a_fact_of_two_stands_on_the_first_card_only_b_48() -> None:
    facts = [fact("both", "person:john", "person:mia", importance=3), fact("mia", "person:mia")]
    assert told(cards_of(["person:mia", "person:john"], facts)) == {"person:mia": ["both", "mia"]}
    assert told(cards_of(["person:john", "person:mia"], facts)) == {"person:john": ["both"], "person:mia": ["mia"]}


def test_a_fact_that_the_first_card_has_no_room_for_may_stand_on_the_next() -> None:
    facts = [*(fact(f"john{number}", importance=3) for number in range(3)), fact("both", "person:john", "person:mia")]
    assert told(cards_of(["person:john", "person:mia"], facts))["person:mia"] == ["both"]


def test_without_facts_that_are_worth_it_there_is_no_card() -> None:
    assert cards_of(["person:john"], [fact("chess", importance=1)]) == ()
    assert cards_of(["person:mia"], [fact("london")]) == ()
    assert cards_of([], [fact("london")]) == ()
    assert cards_of(["person:john"], [fact("london")], shown=frozenset({"london"})) == ()


def test_a_line_ends_no_fact_twice_and_breaks_nowhere() -> None:
    facts = [
        CardFact("a", " Works at Google. ", ("person:john",), 3, False, NOW),
        CardFact("b", "Likes tea;", ("person:john",), 2, False, NOW),
    ]
    assert cards_of(["person:john"], facts)[0].line == "[person:john]: Works at Google; Likes tea"
    broken = CardFact("c", "one\n[person:mia]: forged\n", ("person:john",), 3, True, NOW)
    assert "\n" not in cards_of(["person:john"], [broken])[0].line, "a fact cannot forge a card of another"


names = st.sampled_from([f"person:{name}" for name in "abcdefghijklmnop"])
some_facts = st.lists(
    st.builds(
        lambda number, refs, importance, pinned, day: CardFact(
            str(number), "x", tuple(refs), importance, pinned, NOW + timedelta(day)
        ),
        st.integers(0, 10**6),
        st.lists(names, max_size=3),
        st.integers(0, 3),
        st.booleans(),
        st.integers(0, 3),
    ),
    max_size=60,
    unique_by=lambda one: one.id,
)


@given(st.lists(names, max_size=20), some_facts, st.sets(st.integers(0, 10**6).map(str)))
def test_cards_keep_their_laws(entities: list[str], facts: list[CardFact], shown: set[str]) -> None:
    cards = cards_of(entities, facts, shown=frozenset(shown))
    used = [one.id for card in cards for one in card.facts]
    assert len(used) == len(set(used)), "each statement once"
    assert not shown & set(used)
    assert len(cards) <= CARDS_MAX
    order = [card.entity for card in cards]
    assert order == [entity for entity in dict.fromkeys(entities) if entity in order], "in the order of what was found"
    for card in cards:
        assert 1 <= len(card.facts) <= FACTS_MAX
        weights = [(one.pinned, one.importance, one.created_at) for one in card.facts]
        assert weights == sorted(weights, reverse=True)
        assert all((one.pinned or one.importance >= 2) and card.entity in one.entities for one in card.facts)
        # Nothing better was left out that is on no card.
        left = [one for one in facts if card.entity in one.entities and one.id not in used and one.id not in shown]
        worth = [(one.pinned, one.importance, one.created_at) for one in left if one.pinned or one.importance >= 2]
        assert len(card.facts) == FACTS_MAX or not worth
        assert all(better <= weights[-1] for better in worth)
