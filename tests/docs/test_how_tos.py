"""A how-to page is understood in ten seconds: its title, a few words on the task, then an example of at most ten lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").rglob("*.md"))
BEGINNING = re.compile(
    r"# (?P<title>[^\n]+)\n\n(?P<task>.*?)^```(?P<language>\w+)\n(?P<example>.*?)^```$", re.MULTILINE | re.DOTALL
)
TITLE_WORDS = 6
FIRST_SENTENCE_WORDS = 30
WORDS_BEFORE_THE_EXAMPLE = 70
LINES = 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_begins_with_its_task_and_a_short_example(page: Path) -> None:
    found = BEGINNING.match(page.read_text(encoding="utf-8"))
    assert found, "it begins with a title, a sentence on the task, and an example"
    assert len(found["title"].split()) <= TITLE_WORDS
    first = re.split(r"(?<=[.:])\s", found["task"], maxsplit=1)[0]
    assert len(first.split()) <= FIRST_SENTENCE_WORDS, first
    assert len(found["task"].split()) <= WORDS_BEFORE_THE_EXAMPLE
    lines = [line for line in found["example"].splitlines() if line.strip()]
    if found["language"] == "console":
        lines = [line for line in lines if line.startswith("$ ")]
    assert len(lines) <= LINES


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_what_is_read_first_is_short(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= 120
