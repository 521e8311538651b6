"""How the arms become one order, and that the order can be explained."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from perdure.domain.times.instants import to_us
from perdure.engine.search.allowed import Allowed
from perdure.engine.search.columns import ItemColumns, ItemRow, Voice, item_columns, rounded
from perdure.engine.search.entries import Passage, cut, telling
from perdure.engine.search.question import understand
from perdure.engine.search.ranking import WEIGHTS, Ranking, above_usual, best, fused, measured, of_best, rank, spread

NOW = datetime(2023, 5, 30, 12, tzinfo=UTC)
MAY = to_us(datetime(2023, 5, 1, tzinfo=UTC))
DAY_US = 86_400_000_000


def said(
    *texts: str, session: str = "s", role: int = Voice.NONE, speakers: tuple[str, ...] = ("",), day: int = 0
) -> list[ItemRow]:
    return [
        ItemRow(cut(text), 1, role, session, place, speakers[place % len(speakers)], MAY + day * DAY_US + place, telling(text))
        for place, text in enumerate(texts)
    ]


def everything(shelf: ItemColumns) -> Allowed:
    return Allowed(shelf, np.ones(shelf.items, np.bool_))


def search(rows: list[ItemRow], question: str, limit: int = 10) -> Ranking:
    shelf = item_columns(rows)
    asked = understand(question, NOW, "UTC", speakers=shelf.speakers)
    return rank(shelf, asked, everything(shelf), None, limit=limit)


def test_a_short_answer_is_found_by_the_question_before_it() -> None:
    rows = said("Where did you adopt your puppy?", "At the harbour.", "Nice weather, is it not?", "Yes, very.")
    assert search(rows, "Where was the puppy adopted?").items.tolist()[:2] == [0, 1]


def test_a_long_message_is_not_found_by_its_neighbour() -> None:
    long = " ".join(f"matter{place}" for place in range(200))
    shelf = item_columns(said("puppy", long, "short", session="s"))
    got = spread(shelf, np.array([1, 0, 0], np.float32))
    assert got[1] < 0.02
    assert got[2] < 0.01  # nor is what lies behind it


def test_neighbours_are_of_the_same_session() -> None:
    shelf = item_columns([*said("puppy"), *said("short", session="t")])
    assert spread(shelf, np.array([1, 0], np.float32)).tolist() == [0, 0]


def test_what_a_person_said_comes_before_what_a_machine_said_unless_it_is_asked_for() -> None:
    rows = [
        *said("Puppies need a collar.", role=Voice.ASSISTANT, session="a"),
        *said("Puppies need a collar.", role=Voice.USER),
    ]
    assert search(rows, "Which collar do my puppies need?").items.tolist() == [1, 0]
    asked_for = search(rows, "Which collar did you recommend for puppies?")
    assert asked_for.scores[0] == asked_for.scores[1]


def test_who_is_named_comes_first() -> None:
    rows = said("The trip to Rome was great.", "The trip to Rome was great.", speakers=("Ann", "Bo"))
    assert search(rows, "How was Bo's trip?").items[0] == 1
    assert search(rows, "How was Ann's trip?").items[0] == 0


def test_the_time_asked_for_comes_first_and_is_found_by_itself() -> None:
    rows = [
        *said("I did buy a lamp.", day=2),
        *said("I did buy a toaster.", session="t", day=19),
        *said("Lovely weather.", session="u", day=19),
    ]
    found = search(rows, "What did I buy 10 days ago?").items.tolist()
    assert found[0] == 1
    assert 2 in found


def test_a_plan_is_found_by_the_time_it_speaks_of() -> None:
    when = to_us(datetime(2023, 6, 7, tzinfo=UTC))
    rows = [*said("The dentist called."), replace(said("The dentist called.", session="t")[0], times=[(when, when + DAY_US)])]
    assert search(rows, "Is there a dentist next week?").items[0] == 1


def test_telling_breaks_a_tie() -> None:
    rows = [*said("I ran my marathon?", session="a", day=1), *said("I ran my marathon.", session="b")]
    assert search(rows, "marathon?").items[0] == 1


def test_nothing_speaks_for_what_is_left_out() -> None:
    found = search([*said("puppy"), *said("something else", session="t")], "puppy")
    assert found.items.tolist() == [0]
    assert search(said("something else"), "puppy").items.tolist() == []
    assert search([], "puppy").items.tolist() == []


def test_shares_are_of_the_best_and_of_what_is_above_the_usual() -> None:
    assert of_best(np.array([0, 2, 4], np.float32)).tolist() == [0, 0.5, 1]
    assert of_best(np.zeros(2, np.float32)).tolist() == [0, 0]
    shelf = item_columns(said("one", "two", "three"))
    everyone, nobody = everything(shelf), Allowed(shelf, np.zeros(3, np.bool_))
    assert above_usual(np.array([0.1, 0.2, 0.6], np.float32), everyone).tolist() == [0, 0, 1]
    assert above_usual(np.full(3, 0.4, np.float32), everyone).tolist() == [1, 1, 1]
    assert above_usual(np.zeros(3, np.float32), everyone).tolist() == [0, 0, 0]
    assert above_usual(np.array([0.1, 0.2, 0.6], np.float32), nobody).tolist() == [0, 0, 0]


def test_of_equals_the_newest_comes_first_then_the_first() -> None:
    score = np.array([1, 2, 1, 1, 0], np.float32)
    assert best(score, np.array([5, 0, 9, 5, 99], np.int64), 10).tolist() == [1, 2, 0, 3]
    assert best(score, np.zeros(5, np.int64), 2).tolist() == [1, 0]
    assert best(score, np.zeros(5, np.int64), 0).tolist() == []


texts = st.lists(
    st.sampled_from(["I", "my", "puppy", "cat", "dog", "park", "Ann", "Rome", "red", "went?", ".", "42", "the"]), max_size=14
).map(" ".join)
talks = st.lists(
    st.tuples(texts, st.sampled_from(["", "s", "t"]), st.sampled_from(["Ann", "Bo"]), st.sampled_from([0, 1, 2])), max_size=20
)
questions = st.sampled_from(
    [
        "What did Ann say about the puppy?",
        "Where did I go 10 days ago?",
        "the",
        "",
        "Which dog did you recommend?",
        "red Rome 42",
    ]
)


def shelf_of(talk: list[tuple[str, str, str, int]], places: list[int]) -> ItemColumns:
    """The messages of a talk in the order of `places`; each keeps its time, its place in the session and its vector."""
    made = []
    for place in places:
        text, session, speaker, role = talk[place]
        passages = cut(text)
        codes, scales = rounded(np.random.default_rng(place).normal(size=(len(passages), 8)).astype(np.float32))
        made.append(ItemRow(passages, 1, role, session, place, speaker, MAY + place * DAY_US, telling(text), (), codes, scales))
    return item_columns(made, dims=8)


def ranked(shelf: ItemColumns, question: str, allowed: np.ndarray, limit: int = 50) -> Ranking:
    asked = understand(question, NOW, "UTC", speakers=("Ann", "Bo"))
    return rank(shelf, asked, Allowed(shelf, allowed), np.ones(8, np.float32), limit=limit)


@given(talks, questions)
def test_what_the_arms_added_is_the_score(talk: list[tuple[str, str, str, int]], question: str) -> None:
    shelf = shelf_of(talk, list(range(len(talk))))
    found = ranked(shelf, question, np.ones(shelf.items, np.bool_))
    assert np.isfinite(found.scores).all()
    assert (found.scores > 0).all()
    assert (np.diff(found.scores) <= 0).all()
    if len(found.items):
        np.testing.assert_allclose(sum(added for _, added in found.arms.values()), found.scores, rtol=1e-4)
    assert len(set(found.items.tolist())) == len(found.items)


@given(talks, questions, st.integers(0, 2**32))
def test_the_order_of_the_shelf_does_not_matter(talk: list[tuple[str, str, str, int]], question: str, seed: int) -> None:
    places = list(range(len(talk)))
    random.Random(seed).shuffle(places)
    plain, mixed = shelf_of(talk, sorted(places)), shelf_of(talk, places)
    one, other = (ranked(shelf, question, np.ones(shelf.items, np.bool_)) for shelf in (plain, mixed))
    assert sorted(one.items.tolist()) == sorted(places[item] for item in other.items)
    scores = dict(zip(one.items.tolist(), one.scores.tolist(), strict=True))
    for item, score in zip(other.items.tolist(), other.scores.tolist(), strict=True):
        np.testing.assert_allclose(score, scores[places[item]], rtol=1e-4)


@given(talks, questions, st.data())
def test_what_may_not_be_seen_does_not_change_what_is(
    talk: list[tuple[str, str, str, int]], question: str, data: st.DataObject
) -> None:
    sessions = data.draw(st.sets(st.sampled_from(["", "s", "t"])))
    seen = [place for place, (_, session, _, _) in enumerate(talk) if session in sessions]
    whole, part = shelf_of(talk, list(range(len(talk)))), shelf_of(talk, seen)
    allowed = np.isin(np.arange(len(talk)), seen)
    one, other = ranked(whole, question, allowed), ranked(part, question, np.ones(part.items, np.bool_))
    assert set(one.items.tolist()) <= set(seen)
    assert sorted(one.items.tolist()) == sorted(seen[item] for item in other.items)
    np.testing.assert_allclose(one.scores, other.scores, rtol=1e-4)


@given(talks, questions, st.integers(0, 8))
def test_a_smaller_limit_is_the_beginning_of_a_larger_one(
    talk: list[tuple[str, str, str, int]], question: str, limit: int
) -> None:
    shelf = shelf_of(talk, list(range(len(talk))))
    everyone = np.ones(shelf.items, np.bool_)
    assert ranked(shelf, question, everyone, limit).items.tolist() == ranked(shelf, question, everyone).items.tolist()[:limit]


def test_weights_can_be_tried_without_asking_the_arms_again() -> None:
    shelf = item_columns([*said("puppy", role=Voice.ASSISTANT), *said("puppy", session="t")])
    everyone = everything(shelf)
    found = measured(shelf, understand("puppy", NOW, "UTC"), everyone, None)
    halved = fused(shelf, found, everyone, limit=2)
    equal = fused(shelf, found, everyone, limit=2, weights=replace(WEIGHTS, machine=1.0))
    assert halved.scores[0] > halved.scores[1]
    assert equal.scores[0] == equal.scores[1]


def test_a_passage_without_vector_is_near_nothing() -> None:
    shelf = item_columns([ItemRow([Passage(0, 0, {}, 0)])], dims=4)
    assert rank(shelf, understand("x", NOW, "UTC"), everything(shelf), np.ones(4, np.float32), limit=1).items.tolist() == []
