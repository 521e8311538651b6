"""What several commands ask for in the same way: a choice, an instant, a text, JSON, many options, a person's yes."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer

from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.text.rules import Json, brief
from perdure.interfaces.cli.output import Output

T = TypeVar("T", bound=str)


def chosen(text: str, allowed: tuple[T, ...], name: str) -> T:
    """`text` as one of the words there are, in whichever case it was written."""
    for one in allowed:
        if one.casefold() == text.casefold():
            return one
    raise InvalidInput(f"`{name}` = {brief(text)} is unknown; use one of {', '.join(allowed)}")


def read_text(file: str) -> str:
    """The text of a file, or of stdin for `-`."""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise NotFound(f"{file} does not exist; check the name") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read as text in UTF-8 ({type(error).__name__}); check what it is") from None


def text_or_stdin(text: str) -> str:
    """A text as it is given, or stdin for `-`."""
    return sys.stdin.read() if text == "-" else text


def read_json(text: str) -> Json:
    """JSON given as an argument, on stdin (`-`) or in a file (`@FILE`)."""
    source = "the value"
    if text == "-":
        text, source = sys.stdin.read(), "stdin"
    elif text.startswith("@"):
        path = Path(text[1:])
        if not path.is_file():
            raise NotFound(f"{path} does not exist; check the name")
        text, source = path.read_text(encoding="utf-8"), str(path)
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(f"{source} is not JSON ({error}); quote text as '\"text\"'") from None


def ask(out: Output, what: str) -> None:
    """Go on only if a person says so."""
    if out.as_json or not sys.stdin.isatty():
        raise InvalidInput(f"{what}; add `--yes` to do it")
    if not typer.confirm(f"{what}. Continue?", err=True):
        out.note("nothing was deleted")
        raise typer.Abort


def taking(kind: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make each field of a dataclass an option of a command, which is handed them as one value, its last argument."""

    def wrap(command: Callable[..., None]) -> Callable[..., None]:
        names = [one.name for one in fields(kind)]

        def run(**given: Any) -> None:
            value = kind(**{name: given.pop(name) for name in names})
            command(*(given[one.name] for one in kept), value)

        own = inspect.signature(command)
        kept = list(own.parameters.values())[:-1]
        hints = get_type_hints(kind, include_extras=True)
        options = [
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default, annotation=hints[one.name])
            for one in fields(kind)
        ]
        hinted = get_type_hints(command, include_extras=True)
        arguments = [one.replace(annotation=hinted[one.name]) for one in kept]
        run.__signature__ = own.replace(parameters=[*arguments, *options])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: hinted[one.name] for one in kept} | hints
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return wrap
