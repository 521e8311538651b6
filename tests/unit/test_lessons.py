"""Lesson books (S4-10, S4-12, S4-16, S4-17, B-49, T-47): what is a lesson, and what becomes of a book that people edit."""

from __future__ import annotations

import multiprocessing
import os
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from perdure.adapters.lessons import LessonFolder
from perdure.domain.errors import Corrupt, InvalidInput, LimitExceeded, Unavailable
from perdure.domain.jobs import NewJob, new_job
from perdure.domain.scope import Owner
from perdure.engine.lessons import LESSON_CHARS_MAX, as_lesson, lessons_of, sameness, with_lessons
from perdure.services import lessons as service
from perdure.services.lessons import LessonBook, lessons_handler

ANA = Owner("default", "ana")
BOB = Owner("default", "bob")
NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
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
    ["- one lesson\n", "* another lesson here\n", "  carried on\n", "carried on lazily\n", "text\n", "\n", "# Head\n", "---\n", "```\n", "  ```\n",
     "~~~~ x\n", "<!-- \n", "-->\n", "<!-- closed -->\n", "-\n", "    - nested deep\n", "  - nested\n", "> quote\n", "1. numbered\n", "\ufeff- first\r\n", "- last"]
)  # fmt: skip
books = st.lists(pieces, max_size=12).map("".join) | st.text(max_size=100)


@pytest.fixture
def book(tmp_path: Path) -> LessonBook:
    return LessonBook(LessonFolder(tmp_path / "files"))


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
        "", " \n ", "-", "...", "ok", "None.", "none", "- **None**", "N/A", "LESSONS:", "## Lessons learned", "No new lessons.", "No lessons were learned.",
        "There are no new lessons from this conversation.", "Nothing to note.", "Here are the lessons learned from this session:",
        "Sure! Here is the summary", "a b c", "先に",
    ],
)  # fmt: skip
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
@settings(max_examples=300)
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


def test_two_lessons_of_a_fold_are_in_memory_md(book: LessonBook, tmp_path: Path) -> None:
    """T-47, S4-12."""
    assert book.append(ANA, [RETRY, METRIC]) == (RETRY, METRIC)
    assert (tmp_path / "files/default/ana/memory.md").read_text() == f"- {RETRY}\n- {METRIC}\n"
    assert book.read(ANA) == (RETRY, METRIC)
    assert book.append(ANA, [f"{RETRY}."]) == ()


def test_owners_have_books_of_their_own(book: LessonBook, tmp_path: Path) -> None:
    """X-36, B-29."""
    for owner in (ANA, BOB, Owner("other", "ana"), Owner("default", "ANA"), Owner("default", "../bob"), Owner("..", "CON")):
        assert book.append(owner, [f"This is the book of {owner.user} in {owner.space}"])
        assert len(book.read(owner)) == 1
    files = list(tmp_path.rglob("memory.md"))
    assert len({str(path).lower() for path in files}) == 6
    assert all(path.is_relative_to(tmp_path / "files") for path in files)


def test_others_on_the_machine_cannot_look_in(book: LessonBook, tmp_path: Path) -> None:
    book.append(ANA, [METRIC])
    if os.name == "posix":
        assert stat.S_IMODE((tmp_path / "files/default/ana").stat().st_mode) == 0o700


def test_an_edit_by_hand_is_seen_at_once(book: LessonBook, tmp_path: Path) -> None:
    """S4-16."""
    book.append(ANA, [METRIC, RETRY])
    path = tmp_path / "files/default/ana/memory.md"
    path.write_text("# Mine\n\n- Be brief\n")
    assert book.read(ANA) == ("Be brief",)
    assert book.append(ANA, [METRIC]) == (METRIC,)
    assert book.text(ANA) == f"# Mine\n\n- Be brief\n- {METRIC}\n"


def test_nothing_new_writes_nothing(book: LessonBook, tmp_path: Path) -> None:
    assert book.append(ANA, ["None."]) == ()
    assert not (tmp_path / "files/default").exists()
    book.append(ANA, [METRIC])
    path = tmp_path / "files/default/ana/memory.md"
    before = path.stat().st_ino
    book.append(ANA, [METRIC])
    assert path.stat().st_ino == before


def test_a_book_in_another_encoding_is_left_alone(book: LessonBook, tmp_path: Path) -> None:
    book.append(ANA, [METRIC])
    path = tmp_path / "files/default/ana/memory.md"
    path.write_bytes(b"- caf\xe9 au lait\n")
    with pytest.raises(Corrupt, match="not UTF-8 at byte 5; save it"):
        book.append(ANA, [RETRY])
    assert path.read_bytes() == b"- caf\xe9 au lait\n"


def test_a_book_that_cannot_be_read_is_unavailable(book: LessonBook, tmp_path: Path) -> None:
    (tmp_path / "files/default/ana/memory.md").mkdir(parents=True)
    with pytest.raises(Unavailable, match="cannot be read"):
        book.read(ANA)


def test_a_book_has_a_bound(book: LessonBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "BOOK_CHARS_MAX", 50)
    book.append(ANA, [METRIC])
    with pytest.raises(LimitExceeded, match="more than 50 characters"):
        book.append(ANA, [RETRY])
    assert book.read(ANA) == (METRIC,)


def test_lessons_are_text(book: LessonBook) -> None:
    with pytest.raises(InvalidInput, match="pass a list"):
        book.append(ANA, "one lesson")
    with pytest.raises(InvalidInput, match="pass a list"):
        book.append(ANA, [1])  # type: ignore[list-item]


def test_an_erased_book_leaves_no_trace_of_its_owner(book: LessonBook, tmp_path: Path) -> None:
    """T-54."""
    book.append(ANA, [METRIC])
    (tmp_path / "files/default/ana/.memory.md.00.tmp").write_text("half a book")
    assert book.erase(ANA)
    assert not book.erase(ANA)
    assert [path for path in tmp_path.rglob("*") if "ana" in path.name] == []
    assert book.read(ANA) == ()


def test_a_job_writes_lessons_and_may_run_twice(book: LessonBook) -> None:
    handle = lessons_handler(book)
    job = new_job(ANA, NewJob("lessons", "k", NOW, {"lessons": [RETRY, METRIC]}), NOW)
    for _ in range(2):
        assert handle(job) is None
    assert book.read(ANA) == (RETRY, METRIC)
    handle(replace(job, payload={}))
    assert book.read(ANA) == (RETRY, METRIC)
    with pytest.raises(InvalidInput):
        handle(replace(job, payload={"lessons": [None]}))


def write_some(root: Path, name: str) -> None:
    book = LessonBook(LessonFolder(root))
    for number in range(25):
        book.append(ANA, [f"Process {name} learned thing number {number}", f"Everybody learned thing number {number}"])


def test_processes_that_write_at_once_lose_no_lesson(tmp_path: Path) -> None:
    """B-49."""
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_some, args=(tmp_path, name)) for name in ("one", "two", "three")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    lessons = LessonBook(LessonFolder(tmp_path)).read(ANA)
    assert len(lessons) == len(set(lessons)) == 25 * 4
