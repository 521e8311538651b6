"""The page and `--help` speak plain English: phrases that read as if translated stay out of what users see."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from perdure.interfaces.cli.commands import app
from perdure.interfaces.web.page import NAVIGATION, TEMPLATES

AVOIDED = (
    "what is so",
    "what was so",
    "what is known",
    "said and fetched",
    "at work",
    "talking with",
    "put away",
    "goes on",
    "carried on",
    "mend the cause",
    "gave up",
    "given up",
    "gives back",
    "hands over",
    "what was made of it",
    "bears on",
    "its books",
    "whom it reaches",
    "what to go by",
    "versions that lost",
    "as it was on",
    "let in",
    "whoever",
    "that which",
)
COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
FOUND = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)


@pytest.mark.parametrize("template", sorted(TEMPLATES.glob("*.html")), ids=lambda path: path.stem)
def test_a_page_has_none_of_the_avoided_phrases(template: Path) -> None:
    assert FOUND.findall(COMMENT.sub("", template.read_text(encoding="utf-8"))) == []


def test_what_pages_answer_has_none_of_them() -> None:
    wrong = []
    for module in sorted(TEMPLATES.parent.rglob("*.py")):
        for text in re.findall(r'(?<!")"([^"\n]+)"(?!")', module.read_text(encoding="utf-8")):
            wrong += [(module.name, phrase) for phrase in FOUND.findall(text)]
    assert wrong == []


def test_the_navigation_has_none_of_them() -> None:
    words = [title for title, _ in NAVIGATION] + [one.title for _, sections in NAVIGATION for one in sections]
    assert [word for word in words if FOUND.search(word)] == []


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    for name, one in getattr(group, "commands", {}).items():
        yield from commands(one, (*path, name))


def test_no_help_has_any_of_them() -> None:
    wrong = []
    for path in commands(typer.main.get_command(app)):
        told = CliRunner().invoke(app, [*path, "--help"], terminal_width=200)
        assert told.exit_code == 0, path
        wrong += [(" ".join(path), phrase) for phrase in FOUND.findall(" ".join(told.output.split()))]
    assert wrong == []
