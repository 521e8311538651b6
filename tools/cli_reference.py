"""Writes the commands of `docs/reference/cli.md` from the command line itself. What is written by hand around them stays.

python tools/cli_reference.py        writes the page
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from perdure.interfaces.cli.commands import SECTIONS, app
from perdure.interfaces.cli.derived import name_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
PART = re.compile(r"(?<=<!-- commands -->\n).*?(?=<!-- end -->)", re.DOTALL)
BLANK_LINE = "\n\n"
SENTENCE_END = re.compile(r"(?<=[.?!]) (?=[A-Z`])")
ABOUT_OPTIONS = "Options of several commands; `--help` after a command describes its own, and its arguments.\n"


def page() -> str:
    """The whole page as it should be."""
    return PART.sub(lambda _: "\n" + "\n".join(_sections()) + "\n", PAGE.read_text(encoding="utf-8"))


def _sections() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    said: dict[str, Counter[str]] = {}
    for title, entries in SECTIONS.items():
        yield f"## {title}\n"
        for name in map(name_of, entries):
            for words, command in leaves(group.commands[name], f"perdure {name}"):
                yield _command(words, command)
                for flags, text in _meanings(command):
                    said.setdefault(flags, Counter())[text] += 1
        yield ""
    yield f"## Options\n\n{ABOUT_OPTIONS}"
    ordered = sorted(said.items(), key=lambda one: one[0].strip("`-[]").lower())
    yield from (f"- {flags}: {texts.most_common(1)[0][0]}" for flags, texts in ordered if texts.total() > 1)
    yield ""


def leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Each command with all its words."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, child in command.commands.items():
        yield from leaves(child, f"{words} {name}")


def _command(words: str, command: Any) -> str:
    """A command in a line: what it takes, what it does, and its options with their defaults."""
    placed = [_flags(one) for one in command.params if one.param_type_name == "argument"]
    options = [f"`{_flags(one)}`{_default(one)}" for one in command.params if one.param_type_name == "option" and _offered(one)]
    does = SENTENCE_END.split(_joined((command.help or "").partition(BLANK_LINE)[0]), maxsplit=1)[0]
    return f"- `{' '.join([words, *placed])}`: {does}" + (f" Options: {', '.join(options)}." if options else "")


def _meanings(command: Any) -> Iterator[tuple[str, str]]:
    """The words of each option."""
    for one in command.params:
        text = _joined(one.help or "")
        if text and _offered(one) and one.param_type_name == "option":
            yield f"`{_flags(one).strip('[]')}`", text


def _offered(one: Any) -> bool:
    return "--help" not in one.opts


def _flags(one: Any) -> str:
    if one.param_type_name == "option":
        return "`, `".join((*one.opts, *one.secondary_opts))
    name = one.name.upper().replace("_", "-")
    return name if one.required else f"[{name}]"


def _default(one: Any) -> str:
    """What it is if it is left out, where that is neither nothing nor no."""
    value = one.default
    plain = isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
    return f" ({value})" if plain else ""


def _joined(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
