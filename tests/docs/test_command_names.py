"""Every command line that a page or the program itself names is one that there is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from perdure.interfaces.cli.commands import COMPLETION, GLOBAL_FLAGS, GLOBAL_OPTIONS, app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(page for name in ("docs", "proof", "bench") for page in (ROOT / name).rglob("*.md"))])
MODULES = sorted((ROOT / "src").rglob("*.py"))
TEMPLATES = sorted(one for one in (ROOT / "src").rglob("*") if one.suffix in (".html", ".md", ".txt", ".toml", ".sql"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`|<code>([^<]+)</code>|^\s*Example: (.+)$", re.MULTILINE)
LINE = re.compile(r"(?:^|[|;(]\s*|&& |[A-Z_]+=\S+ )perdure (?P<words>[^|;)$]*(?:\|\w[^|;)$]*)*)")
GROUP: Any = typer.main.get_command(app)


def lines_in(text: str) -> Iterator[str]:
    """What stands behind `perdure` in each command line that a text has between backticks, as an example, or in a console."""
    for language, block in FENCE.findall(text):
        if language in ("console", "sh"):
            yield from (found["words"] for line in block.splitlines() for found in LINE.finditer(line.removeprefix("$ ")))
    for found in CODE.finditer(FENCE.sub("", text)):
        yield from (line["words"] for line in LINE.finditer(next(one for one in found.groups() if one)))


def strings_in(module: Path) -> Iterator[str]:
    """The texts of a module, with `X` for what is filled in."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(one.value if isinstance(one, ast.Constant) else "X" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def unknown(line: str) -> str | None:
    """The first word of a command line that names no command; None if all do. `memory|todo …` names two groups."""
    words, groups = iter(line.split()), [GROUP]
    for word in words:
        if word in GLOBAL_OPTIONS or word in COMPLETION:
            next(words, None)
        elif word in GLOBAL_FLAGS or (word.startswith("--") and groups == [GROUP]):
            continue
        else:
            names = word.strip(",.").split("|")
            if groups == [] or word in ("…", "COMMAND") or not re.match(r"[a-z]", word):
                return None
            for name in names:
                if not any(name in one.commands for one in groups):
                    return name
            found = [one.commands[name] for one in groups for name in names if name in one.commands]
            groups = [one for one in found if hasattr(one, "commands")]
    return None


@pytest.mark.parametrize("page", [*PAGES, *TEMPLATES], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_commands_that_there_are(page: Path) -> None:
    assert [line for line in lines_in(page.read_text(encoding="utf-8")) if unknown(line)] == []


def helps(command: Any) -> Iterator[str]:
    """The help of every command, which ends with an example."""
    yield command.help or ""
    for child in getattr(command, "commands", {}).values():
        yield from helps(child)


def test_the_program_names_commands_that_there_are() -> None:
    examples = [line for text in helps(GROUP) for line in lines_in(text)]
    assert [line for line in examples if unknown(line)] == []
    wrong, seen = [], len(examples)
    for module in MODULES:
        own = "interfaces/cli" in module.as_posix()
        texts = [f"Example: {one}" if own and one.startswith("perdure ") else one for one in strings_in(module)]
        for line in (line for text in texts for line in lines_in(text)):
            seen += 1
            if unknown(line):
                wrong.append(f"{module.relative_to(ROOT)}: perdure {line}")
    assert wrong == []
    assert seen > 200, "examples, hints and errors are looked at"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("run `perdure verify`", "verify"),
        ("run `perdure admin verify`", None),
        ("`perdure memory add X`", "add"),
        ("`perdure --user ana tally`", "tally"),
        ("`perdure memory|task …`", "task"),
        ("`perdure admin key list|make`", "make"),
        ("```console\n$ echo x | perdure append user -\n```", None),
        ("```console\n$ A=b perdure sessions --json\n```", "sessions"),
        ("Example: perdure seed profile.txt --user ana", "seed"),
        ("<code>perdure key create</code>", "key"),
        ("```python\nfrom perdure import open\n```", None),
        ("`perdure serve --no-auth`", None),
        ('```console\n$ perdure todo done "$(perdure tasks list)"\n```', "tasks"),
    ],
)
def test_a_command_that_is_not_there_is_noticed(text: str, wrong: str | None) -> None:
    assert next((found for line in lines_in(text) if (found := unknown(line))), None) == wrong
