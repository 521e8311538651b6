"""What a question asks for: terms, whose words, which time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import given

from perdure.domain.times.instants import from_us
from perdure.engine.search.question import FRAME_WEIGHT, NEARNESS_MIN, TERMS_MAX, TIME_WEIGHT, SearchQuestion, understand

NOW = datetime(2023, 5, 30, 12, tzinfo=UTC)


def ask(question: str, *speakers: str, at: datetime | None = NOW) -> SearchQuestion:
    return understand(question, at, "UTC", speakers=speakers)


def weights(asked: SearchQuestion) -> dict[str, float]:
    return {sought.term: sought.weight for sought in asked.terms}


def days(asked: SearchQuestion) -> list[tuple[str, str]]:
    return [(from_us(one.start_us).date().isoformat(), from_us(one.end_us).date().isoformat()) for one in asked.stretches]


def test_what_it_is_about_counts_more_than_how_it_is_asked() -> None:
    assert weights(ask("How many different doctors did I visit in March?")) == {
        "mani": FRAME_WEIGHT,
        "differ": FRAME_WEIGHT,
        "doctor": 1.0,
        "visit": 1.0,
        "march": TIME_WEIGHT,
    }


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Caroline research?", {"Caroline"}),
        ("what did caroline research", {"Caroline"}),
        ("What is Mel's favourite book?", {"Melanie Díaz"}),
        ("Did Diaz move?", {"Melanie Díaz"}),
        ("What did Caroline give to Melanie?", set()),
        ("Where do they live?", set()),
        ("What is a melanie?", set()),  # the question has a capital, so a name would have one
    ],
)
def test_a_speaker_is_named_in_full_in_part_or_in_short(question: str, named: set[str]) -> None:
    assert ask(question, "Caroline", "Melanie Díaz").named == named


def test_names_of_speakers_are_not_looked_for_as_words() -> None:
    asked = ask("What did Caroline research?", "Caroline", "Melanie")
    assert asked.words == ("research",)
    assert asked.meaning == "research"


def test_a_question_of_names_alone_keeps_them() -> None:
    assert ask("Who is Caroline?", "Caroline", "Melanie").words == ("carolin",)


def test_names_that_begin_alike_are_told_apart_by_the_rest() -> None:
    assert ask("What does Speaker 2 want?", "Speaker 1", "Speaker 2").named == {"Speaker 2"}
    assert ask("What does Zoe want?", "Zoë Müller", "Zoë Schmidt").named == frozenset()


def test_roles_are_no_names() -> None:
    assert ask("Which User did I ask?", "user", "assistant").named == frozenset()


@pytest.mark.parametrize(
    ("question", "of_the_assistant"),
    [
        ("What hostel did you recommend last time?", True),
        ("the seventh job in the list you provided", True),
        ("What was it you've suggested?", True),
        ("Welches Buch hast du mir empfohlen?", True),
        ("Can you recommend a hostel?", False),
        ("What would you suggest I use?", False),
        ("Where did I buy my bike?", False),
    ],
)
def test_what_you_said_is_not_what_you_are_asked_to_say(question: str, of_the_assistant: bool) -> None:
    asked = ask(question)
    assert asked.of_the_assistant is of_the_assistant
    assert asked.roles == (("assistant",) if of_the_assistant else ())


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did I buy 10 days ago?", [("2023-05-20", "2023-05-21")]),
        ("What was it that I took part in a week ago?", [("2023-05-22", "2023-05-29")]),
        ("What did I buy in the past two weeks?", [("2023-05-16", "2023-05-30")]),
        ("What did I finish last month?", [("2023-04-01", "2023-05-30")]),
        ("Who called on May 3, 2022?", [("2022-05-03", "2022-05-04")]),
        ("What do I do every Monday?", []),
        ("What shall I do next week?", [("2023-06-05", "2023-06-12")]),
        ("What did I do before May 2023?", []),
        ("Who is Ann?", []),
    ],
)
def test_times_are_those_in_which_the_answer_was_said(question: str, expected: list[tuple[str, str]]) -> None:
    assert days(ask(question)) == expected


def test_without_a_moment_only_dates_that_never_move_are_understood() -> None:
    asked = ask("What did I do last week, and in May 2023?", at=None)
    assert days(asked) == [("2023-05-01", "2023-06-01")]
    assert asked.time_range is not None


def test_the_longer_ago_the_less_exact() -> None:
    near, far = ask("What did I buy 2 days ago?"), ask("What did I buy 100 days ago?")
    assert near.stretches[0].slack_us < far.stretches[0].slack_us


def test_words_near_in_meaning_count_less_and_know_whose_place_they_take() -> None:
    table = {"doctor": [("physician", 0.8), ("doctors", 0.95), ("nurse", NEARNESS_MIN)], "visit": [("physician", 0.6)]}
    asked = understand("Which doctor did I visit?", NOW, "UTC", near=lambda word: table.get(word, []))
    (physician,) = [sought for sought in asked.terms if sought.kin_of >= 0]
    assert (physician.term, asked.terms[physician.kin_of].term) == ("physician", "doctor")
    assert 0 < physician.weight < 1
    assert asked.words == ("doctor", "visit")


def test_names_have_other_names_but_nothing_near_them() -> None:
    def other(word: str) -> list[tuple[str, float]]:
        return [("rae", 1.0)] if word == "rachel" else []

    def near(word: str) -> list[tuple[str, float]]:
        return [("monica", 0.9)] if word == "rachel" else [("kin", 0.9)]

    def stand_ins(question: str) -> list[str]:
        return [one.term for one in understand(question, NOW, "UTC", kin=other, near=near).terms if one.kin_of >= 0]

    assert stand_ins("Where did I meet Rachel?") == ["kin", "rae"]
    assert stand_ins("How many weeks ago?") == []


@given(st.text(max_size=200), st.lists(st.text(max_size=12), max_size=4), st.booleans())
def test_any_question_is_understood_somehow(question: str, speakers: list[str], dated: bool) -> None:
    asked = understand(
        question,
        NOW if dated else None,
        "UTC",
        speakers=speakers,
        kin=lambda word: [(word[::-1], 0.9)],
        near=lambda word: [(word * 2, 0.7)],
    )
    assert len({sought.term for sought in asked.terms}) == len(asked.terms)
    assert all(0 < sought.weight <= 1 and sought.kin_of < len(asked.words) for sought in asked.terms)
    assert len(asked.words) <= TERMS_MAX
    assert asked.named <= set(speakers)
    assert all(one.start_us <= one.end_us and one.slack_us > 0 for one in asked.stretches)


@given(st.datetimes(datetime(1990, 1, 1), datetime(2090, 1, 1)))
def test_ago_is_before_the_moment_of_asking(naive: datetime) -> None:
    now = naive.replace(tzinfo=UTC)
    (stretch,) = ask("What did I eat 3 days ago?", at=now).stretches
    assert from_us(stretch.end_us) <= now
    assert now - from_us(stretch.start_us) <= timedelta(days=4)
