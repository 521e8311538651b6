"""The words of a vault: names, escapes, links, and what the lines of a note say."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.portability import (
    block_id,
    bullet,
    bullets,
    changed_value,
    escaped,
    fenced,
    file_name,
    link,
    quoted,
    section,
    unescaped,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60)
HOSTILE = st.text(st.sampled_from("[]|#^`*_<>!-\\&;%=~$\n\r\t \u2028\u202ea0/.:{}"), max_size=30)
WORDS = st.one_of(TEXT, HOSTILE)


@given(WORDS)
def test_what_is_escaped_is_one_line_and_comes_back(text: str) -> None:
    line = escaped(text)
    assert len(line.splitlines()) <= 1
    assert unescaped(line) == text


@given(WORDS)
def test_escaped_text_makes_no_markup(text: str) -> None:
    bare = re.sub(r"\\[!-/:-@\[-`{-~]|<br>|&#\d+;", "", escaped(text))
    assert not set(bare) & set("`*_[]<>#|^~$%=!&{}\\")


@given(WORDS, WORDS)
def test_two_things_never_share_a_name(one: str, other: str) -> None:
    names = {file_name(one), file_name(other)}
    assert len({name.casefold() for name in names}) == len({one, other})


@given(WORDS)
def test_a_name_stays_in_its_folder(ref: str) -> None:
    name = file_name(ref)
    assert re.fullmatch(r"[a-z0-9_-]{1,80}", name)
    assert not name.startswith("-")


def test_plain_names_stay_as_they_are_and_others_say_what_they_mean() -> None:
    assert file_name("units") == "units"
    assert file_name("profile|place|oslo|fact").startswith("profile-place-oslo-fact-")
    assert file_name("../../etc/passwd").startswith("etc-passwd-")
    assert file_name("NUL") != file_name("nul") != "nul"
    assert len(file_name("x" * 400)) <= 80


@given(WORDS)
def test_a_link_names_a_note_and_cannot_be_closed_from_inside(label: str) -> None:
    made = link("memories", "a|b", label)
    found = re.fullmatch(r"\[\[memories/([a-z0-9-]+)\|([^\[\]|\n]+)\]\]", made)
    assert found is not None
    assert found[1] == file_name("a|b")


@given(st.lists(WORDS.filter(lambda text: text.strip() == text and text), max_size=5, unique=True))
def test_the_lines_of_a_note_say_what_was_written(texts: list[str]) -> None:
    body = "\n".join(["# Title", "", section("Statements", [bullet(text, str(place)) for place, text in enumerate(texts)])])
    found = list(bullets(body, "Statements"))
    assert [line.text for line in found] == texts
    assert [line.block for line in found] == [block_id(str(place)) for place in range(len(texts))]


def test_lines_as_people_write_them_are_understood() -> None:
    body = "# T\n- above\n## Statements\n* with a star\n  - indented\n+ plus ^abc123\n- [x] ticked\n- [ ] open\nno list\n## More\n- below"
    found = [(line.text, line.block, line.done) for line in bullets(body, "Statements")]
    assert found == [
        ("with a star", None, None),
        ("indented", None, None),
        ("plus", "abc123", None),
        ("ticked", None, True),
        ("open", None, False),
    ]
    assert len(list(bullets(body))) == 7


@given(WORDS)
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    made = fenced(text)
    fence = made.split("json")[0]
    assert fence not in text
    assert made.endswith(f"\n{fence}")


def test_a_quotation_stays_one() -> None:
    assert quoted("a\n---\n# b") == "> a\n> \\---\n> \\# b"


@pytest.mark.parametrize(
    ("content", "value", "edited", "found"),
    [
        ("Lives in Oslo", "Oslo", "Lives in Bergen", "Bergen"),
        ("Lives in Oslo", "Oslo", "Lives in ", None),
        ("Lives in Oslo", "Oslo", "Moved to Bergen", None),
        ("Oslo is Oslo", "Oslo", "Rome is Oslo", None),
        ("Likes tea", None, "Likes milk", None),
        ("aba", "b", "a", None),
    ],
)
def test_the_value_of_an_edited_line(content: str, value: str | None, edited: str, found: str | None) -> None:
    assert changed_value(content, value, edited) == found


@pytest.mark.parametrize(
    ("line", "text", "block"),
    [
        ("- a ^b1", "a", "b1"),
        ("* [x] c  d   ^e-2  ", "c  d", "e-2"),
        ("+ ^abc", "^abc", None),
        ("  - x^y", "x^y", None),
        ("- two ^marks ^b1", "two ^marks", "b1"),
        ("- " + "a\u3000" * 50_000, "a\u3000" * 49_999 + "a", None),
    ],
)
def test_the_mark_of_a_line_is_the_last_word_of_it(line: str, text: str, block: str | None) -> None:
    [found] = bullets(line)
    assert (found.text, found.block) == (text, block)


@pytest.mark.parametrize("line", ["- ", "- [ ] ", "-  ^b1", "-", "a - b"])
def test_a_line_without_words_is_no_bullet(line: str) -> None:
    assert list(bullets(line)) == []
