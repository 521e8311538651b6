"""Pages, help, docs and messages speak plain English: phrases that read as if translated stay out of what users see."""

from __future__ import annotations

import ast
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
    "hand over",
    "handed over",
    "give back",
    "could be had",
    "to be had",
    "rows are meant",
    "is to be replaced",
    "as it was built",
    "as it was exported",
    "carry on",
    "carries on",
    "takes it over",
    "told of itself",
    "that nobody sees",
    "what is held",
    "bear on",
)
COMMENT = re.compile(r"\{#.*?#\}", re.DOTALL)
FOUND = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)
SAID = re.compile(
    rf"\b({'|'.join((*(one for one in AVOIDED if one != 'what is known'), 'mend', 'bears', 'to go by'))})\b", re.IGNORECASE
)


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


ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "perdure"
NEVER = re.compile(r"\b(whoever|put away|bears on|what is so|mend the|gave up)\b|let in:", re.IGNORECASE)
"""Nobody says these: they stay out of comments, docstrings, errors, reasons and prompts, too."""
WELL_SAID_IN_DOCS = {"at work", "talking with", "what is known"}
"""As names of parts of the page these were riddles; in a sentence they are plain."""
PROSE = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]


@pytest.mark.parametrize("page", [one for one in PROSE if one.name != "CHANGELOG.md"], ids=lambda path: path.stem)
def test_the_documentation_has_none_of_them(page: Path) -> None:
    found = {phrase.lower() for phrase in FOUND.findall(page.read_text(encoding="utf-8"))}
    assert found - WELL_SAID_IN_DOCS == set()


def test_no_source_has_the_worst_of_them() -> None:
    """Words in bulk are data: what people say may be read there."""
    files = [one for kind in ("*.py", "*.html", "*.js") for one in SOURCE.rglob(kind) if "vendor" not in one.parts]
    files += (SOURCE / "prompts").glob("*.md")
    assert len(files) > 400
    wrong = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if NEVER.search(line)
    ]
    assert wrong == []


def test_what_the_program_says_has_none_of_them() -> None:
    """Errors, reasons, notes and reports: every text in the code but docstrings."""
    wrong = []
    for module in SOURCE.rglob("*.py"):
        if "testing" in module.parts or "demo" in module.parts:
            continue
        tree = ast.parse(module.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                wrong += [f"{module.relative_to(SOURCE)}:{node.lineno}: {one}" for one in SAID.findall(node.value)]
    assert wrong == []
