"""Writes the commands of `docs/reference/cli.md` from the command line itself. What is written by hand around them stays.

python tools/cli_reference.py        writes the page
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import typer.main

from perdure.interfaces.cli.commands import SECTIONS, app
from perdure.interfaces.cli.derived import name_of

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
PART = re.compile(r"(?<=<!-- commands -->\n).*?(?=<!-- end -->)", re.DOTALL)
SELF_EVIDENT = re.compile(r"The \w+('s \w+)?\.")
"""What says no more of an argument than its name."""
BLANK_LINE = "\n\n"
COMMON_MIN = 3
"""What means the same for so many commands is described once."""


def page() -> str:
    """The whole page as it should be."""
    return PART.sub(lambda _: "\n" + "\n".join(_sections()) + "\n", PAGE.read_text(encoding="utf-8"))


def _sections() -> Iterator[str]:
    group: Any = typer.main.get_command(app)
    sections = {
        title: [one for name in map(name_of, entries) for one in leaves(group.commands[name], f"perdure {name}")]
        for title, entries in SECTIONS.items()
    }
    lines = Counter(line for commands in sections.values() for _, command in commands for line in _lines(command).values())
    common = {line for line, count in lines.items() if count >= COMMON_MIN}
    yield "\n".join(["## Common arguments and options\n", *sorted(common), ""])
    for title, commands in sections.items():
        yield f"## {title}\n"
        for words, command in commands:
            yield from _command(words, command, common)


def leaves(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Each command with all its words."""
    if not hasattr(command, "commands"):
        yield words, command
        return
    for name, child in command.commands.items():
        yield from leaves(child, f"{words} {name}")


def _command(words: str, command: Any, common: Collection[str]) -> Iterator[str]:
    said, _, examples = (command.help or "").partition("Example")
    placed = [_flags(one) for one in command.params if one.param_type_name == "argument"]
    yield f"### `{' '.join([words, *placed])}`\n\n{_joined(said.partition(BLANK_LINE)[0])}\n"
    lines = _lines(command)
    rows = [f"{line}{_default(one)}" for one, line in lines.items() if line not in common]
    also = [
        f"`{_flags(one)}`{_default(one)}" for one, line in lines.items() if line in common and one.param_type_name == "option"
    ]
    rows += [f"- Also {', '.join(also)}."] if also else []
    yield from (["\n".join([*rows, ""])] if rows else [])
    example = next(iter(re.findall(r"perdure .+", examples)), words)
    if example.removesuffix(" --user ana") != words:
        yield f"Example: `{example}`\n"


def _lines(command: Any) -> dict[Any, str]:
    """The line of each parameter, but for what its name says already."""
    found = ((one, _joined(one.help or "")) for one in command.params if "--help" not in one.opts)
    return {one: f"- `{_flags(one)}`: {said}" for one, said in found if _needs_words(one, said)}


def _needs_words(one: Any, said: str) -> bool:
    return bool(said) and (one.param_type_name == "option" or not SELF_EVIDENT.fullmatch(said))


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
