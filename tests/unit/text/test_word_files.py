"""Words in files: what a file says, that every heading is read, and that nothing is read or compiled at import."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import perdure
from perdure.domain.text.patterns import pattern
from perdure.engine.text import cues
from perdure.engine.words import lines, sections, word_map, word_set

ENGINE = Path(perdure.__file__).parent / "engine"
LANGUAGES = lines("perdure.engine.text", "cues/languages.txt")
AT_IMPORT = """
import re, sys
compiled = []
make = re.compile
def noted(source, flags=0):
    compiled.append(sys._getframe(1).f_globals["__name__"])
    return make(source, flags)
re.compile = noted
import perdure.app
print(*{name for name in compiled if name.startswith(("perdure.engine.", "perdure.domain."))})
print(*{"numpy", "snowballstemmer", "rapidfuzz", "tomllib", "importlib.resources"} & set(sys.modules))
"""
STILL_COMPILED = ("extraction", "times", "portability", "documents", "conversation", "context.blocks", "knowledge.keys")
"""Small ones. This list may only shrink."""


@cache
def source() -> str:
    return "".join(path.read_text() for path in ENGINE.rglob("*.py"))


def test_importing_reads_no_words_and_compiles_no_patterns() -> None:
    told = subprocess.run([sys.executable, "-c", AT_IMPORT], capture_output=True, text=True, check=True).stdout
    compiled, loaded = (line.split() for line in told.split("\n")[:2])
    assert [name for name in compiled if not any(part in name for part in STILL_COMPILED)] == []
    assert loaded == []


def test_every_language_has_a_file_and_every_file_a_language() -> None:
    files = {path.stem for path in (ENGINE / "text" / "cues").glob("*.txt")}
    assert files == {*LANGUAGES, "languages"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_headings_of_a_language_are_those_of_english(language: str) -> None:
    assert (
        sections("perdure.engine.text", f"cues/{language}.txt").keys() <= sections("perdure.engine.text", "cues/en.txt").keys()
    )


def test_every_heading_is_read_by_somebody() -> None:
    headings = sections("perdure.engine.text", "cues/en.txt")
    assert [heading for heading in headings if not re.search(rf"""["']{heading}["']""", source())] == []


@pytest.mark.parametrize("path", sorted(ENGINE.rglob("*.txt")), ids=lambda path: path.name)
def test_a_file_says_at_its_top_how_to_add_to_it(path: Path) -> None:
    head = path.read_text().split("\n\n")[0]
    assert all(line.startswith("#") for line in head.split("\n"))
    assert "To add" in head or path.name == "numbers.txt"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_cue_of_a_language_is_a_regular_expression_of_its_own(language: str) -> None:
    for entries in sections("perdure.engine.text", f"cues/{language}.txt").values():
        for entry in entries:
            re.compile(entry)


def test_a_cue_has_the_words_of_every_language() -> None:
    for sentence in (
        "Never do that",
        "Das ist verboten",
        "jamais",
        "nunca",
        "não pode",
        "mai",
        "altijd",
        "никогда",
        "禁止",
        "절대",
    ):
        assert cues.RULE.search(sentence), sentence
    assert cues.RULE.place("you must go") == (4, 8)
    with pytest.raises(KeyError):
        cues.entries("no such heading")


def test_entries_sections_and_pairs_are_read_from_text() -> None:
    listed = sections("perdure.engine.names", "people.txt")
    assert word_set(listed["degrees"]) >= {"phd", "md"}
    assert word_map(listed["generations"])["jr"] == "junior"
    assert "de" in LANGUAGES, "what stands behind a # is a comment"


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    made: list[str] = []
    words = pattern(lambda: made.append("made") or r"a(b+)", re.IGNORECASE)  # type: ignore[func-returns-value]
    assert made == []
    found = words.search("xABB")
    assert found is not None
    assert (found[1], words.sub("-", "ab"), words.pattern, made) == ("BB", "-", r"a(b+)", ["made"])
    with pytest.raises(AttributeError):
        words.unknown  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(re.error):
        pattern("(").search("")
