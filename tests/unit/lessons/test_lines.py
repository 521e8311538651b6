"""Lessons as lines (S4-10, S4-17, B-49): what is a lesson, and how lines join and leave a text that people edit."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lanes import examples
from perdure.engine.lessons import LESSON_CHARS_MAX, as_lesson, lessons_of, sameness, with_lessons, without_lessons

RETRY = "Retry the calendar tool once after a timeout"
METRIC = "Give distances in kilometres"

lesson_texts = st.text(max_size=80) | st.sampled_from(
    [
        RETRY,
        METRIC,
        f"- {RETRY.upper()}.",
        "None.",
        "- ",
        "```python is the user's language",
        "<!-- never hide things",
        "# of retries is three",
    ]
)
pieces = st.sampled_from(
    [
        "- one lesson\n",
        "* another lesson here\n",
        "  carried on\n",
        "carried on lazily\n",
        "text\n",
        "\n",
        "# Head\n",
        "---\n",
        "```\n",
        "  ```\n",
        "~~~~ x\n",
        "<!-- \n",
        "-->\n",
        "<!-- closed -->\n",
        "-\n",
        "    - nested deep\n",
        "  - nested\n",
        "> quote\n",
        "1. numbered\n",
        "\ufeff- first\r\n",
        "- last",
    ]
)
books = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=100)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (f"- {RETRY}", RETRY),
        (f"  * 3. {RETRY}\n", RETRY),
        ("Ask first,\n\tthen\r\n book", "Ask first, then book"),
        ("• [ ] Ask before booking", "Ask before booking"),
        ("## Ask before booking", "Ask before booking"),
        ("-5 °C counts as frost", "-5 °C counts as frost"),
        ("先に確認する", "先に確認する"),
        ("می‌خواهم را درست بنویس", "می‌خواهم را درست بنویس"),
        ("Greet with 👩‍💻 in the team channel", "Greet with 👩‍💻 in the team channel"),
        ("No meat for Ana", "No meat for Ana"),
        ("Nothing is booked before noon", "Nothing is booked before noon"),
        ("Lessons start at nine", "Lessons start at nine"),
    ],
)
def test_a_lesson_is_one_line_without_its_bullet(text: str, line: str) -> None:
    """B-49: a newline inside a lesson does not break the list."""
    assert as_lesson(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n ",
        "-",
        "...",
        "ok",
        "None.",
        "none",
        "- **None**",
        "N/A",
        "LESSONS:",
        "## Lessons learned",
        "No new lessons.",
        "No lessons were learned.",
        "There are no new lessons from this conversation.",
        "Nothing to note.",
        "Here are the lessons learned from this session:",
        "Sure! Here is the summary",
        "a b c",
        "先に",
    ],
)
def test_what_says_nothing_is_no_lesson(text: str) -> None:
    assert as_lesson(text) is None


@pytest.mark.parametrize(
    "hidden",
    [
        "\u200b",
        "\u202e",
        "\u2066",
        "\ufeff",
        "\u00ad",
        "\u3164",
        "\u2800",
        "\U000e0041",
        "\x07",
        "\ufe01\ufe02",
        "\u200d",
        "\ue000",
        "\ud800",
    ],
)
def test_a_lesson_with_invisible_characters_is_refused(hidden: str) -> None:
    assert as_lesson(f"Always obey the{hidden} user") is None


def test_a_long_lesson_is_cut_between_words() -> None:
    line = as_lesson("word " * 1_000)
    assert line is not None
    assert len(line) <= LESSON_CHARS_MAX
    assert line.endswith("word…")
    assert as_lesson("x" * 1_000) == "x" * (LESSON_CHARS_MAX - 1) + "…"


@given(lesson_texts)
def test_a_lesson_stays_as_it_is(text: str) -> None:
    line = as_lesson(text)
    if line is not None:
        assert as_lesson(line) == line
        assert "\n" not in line
        assert len(line) <= LESSON_CHARS_MAX


def test_lessons_that_differ_in_dress_only_are_the_same() -> None:
    assert sameness("Ask  before Booking.") == sameness("“ask before booking”") == sameness("ＡＳＫ before booking")
    assert sameness("Ask before booking") != sameness("Ask after booking")


def test_an_empty_book_becomes_a_plain_list() -> None:
    """S4-17."""
    assert with_lessons("", [RETRY, METRIC, RETRY.lower()]) == (f"- {RETRY}\n- {METRIC}\n", (RETRY, METRIC))


def test_text_written_by_hand_stays_where_it_is() -> None:
    """S4-16: the book belongs to people too."""
    written = "# House rules\n\nRead these.\n\n- Ask first,\n  always\n- Be brief\n\n## Notes\n\nBob called.\n"
    text, new = with_lessons(written, [METRIC, "ask first, always", "Be brief!"])
    assert new == (METRIC,)
    assert text == written.replace("- Be brief\n", f"- Be brief\n- {METRIC}\n")
    assert lessons_of(text) == ("Ask first, always", "Be brief", METRIC)


def test_a_book_without_bullets_gets_a_list_of_its_own() -> None:
    assert with_lessons("Some thoughts", [METRIC])[0] == f"Some thoughts\n\n- {METRIC}\n"
    assert with_lessons("Open:\n```\ncode\n", [METRIC])[0] == f"Open:\n\n- {METRIC}\n\n```\ncode\n"


def test_line_ends_and_a_mark_of_an_editor_are_kept() -> None:
    text, _ = with_lessons("\ufeff- Be brief\r\n- Ask first", [METRIC])
    assert text == f"\ufeff- Be brief\r\n- Ask first\r\n- {METRIC}\r\n"
    assert lessons_of(text) == ("Be brief", "Ask first", METRIC)


def test_bullets_in_code_and_comments_are_no_lessons() -> None:
    text = "- One lesson\n```\n- code\n````\n<!--\n- gone for now\n-->\n<!-- - nor this -->\n~~~\n```\n- code\n~~~\n- Two lessons\n---\n- - -\n"
    assert lessons_of(text)[:2] == ("One lesson", "Two lessons")
    assert "code" not in " ".join(lessons_of(text))
    assert "gone" not in " ".join(lessons_of(text))


@given(books, st.lists(lesson_texts, max_size=5))
@example("- a lesson\n  ```\n", [METRIC])
@example("```", [METRIC])
@example("- one lesson\n  ```\n```\n", [METRIC])
@example("- one lesson\n  ```\n\n- code\n```\n- code\n", [METRIC])
@settings(max_examples=examples(300))
def test_new_lessons_join_the_old_ones_and_nothing_else_changes(book: str, lessons: list[str]) -> None:
    text, new = with_lessons(book, lessons)
    before = lessons_of(book)
    assert sorted(lessons_of(text)) == sorted((*before, *new))
    assert with_lessons(text, lessons) == (text, ())
    rest = iter(text.split("\n"))
    assert all(any(line == other.rstrip("\r") or line == other for other in rest) for line in book.split("\n") if line)


@given(st.lists(lesson_texts, max_size=6), st.integers(0, 6))
def test_the_split_into_calls_does_not_matter(lessons: list[str], cut: int) -> None:
    once, _ = with_lessons("", lessons)
    half, _ = with_lessons("", lessons[:cut])
    assert with_lessons(half, lessons[cut:])[0] == once


@given(books, st.sets(st.integers(0, 8)))
@settings(max_examples=examples(300))
def test_lessons_that_are_taken_out_leave_and_nothing_else_does(book: str, doomed: set[int]) -> None:
    before = lessons_of(book)
    unwanted = {before[number] for number in doomed if number < len(before)}
    text = without_lessons(book, lambda line: line in unwanted)
    assert set(lessons_of(text)) >= set(before) - unwanted
    if not unwanted:
        assert text == book
    rest = iter(book.split("\n"))
    assert all(line in rest for line in text.split("\n") if line), "what is left stood there in this order"


def test_a_lesson_of_several_lines_is_taken_out_whole() -> None:
    written = "# House rules\n\n- Ask first,\n  always\n- Be brief\n\nBob called.\n"
    assert without_lessons(written, lambda line: line == "Ask first, always") == "# House rules\n\n- Be brief\n\nBob called.\n"
