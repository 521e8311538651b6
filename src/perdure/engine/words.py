"""Words in bulk are data: files beside the module that reads them, each read once and when first needed.

A `.txt` file has one entry a line; what stands behind `#` is a comment, and a `[heading]` begins a section. A `.toml` file is
for tables with a structure, a `.json` or `.bin` file for what a tool writes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def load_readers() -> None:
    """Load what reads the files. Called before an engine is open: a child of a fork would wait for ever for what another
    thread was loading.
    """
    import tomllib  # noqa: F401 - for those that come later

    _folder(__name__.rpartition(".")[0])


@cache
def lines(package: str, name: str) -> tuple[str, ...]:
    """The entries of a text file of `package` (pass `__package__`), in order, without comments and empty lines."""
    entries = (line.split("#", 1)[0].strip() for line in _text(package, name).splitlines())
    return tuple(entry for entry in entries if entry)


@cache
def sections(package: str, name: str) -> Mapping[str, tuple[str, ...]]:
    """The entries of a text file by the heading above them, in order. Callers must not change it."""
    found: dict[str, list[str]] = {}
    heading = ""
    for entry in lines(package, name):
        if entry[0] == "[" and entry[-1] == "]":
            heading = entry[1:-1]
            found.setdefault(heading, [])
        else:
            found[heading].append(entry)
    return {heading: tuple(entries) for heading, entries in found.items()}


@cache
def table(package: str, name: str) -> Mapping[str, Any]:
    """A TOML file of `package` (pass `__package__`) as it is written. Callers must not change it."""
    import tomllib  # loaded with the first table: it takes as long as some of them

    return tomllib.loads(_text(package, name))


@cache
def tables(package: str, name: str) -> Mapping[str, Mapping[str, Any]]:
    """The TOML files `NAME.LANGUAGE.toml` of `package`, by language: another file is another language."""
    found = [entry.name.split(".") for entry in _folder(package).iterdir()]
    languages = sorted(parts[1] for parts in found if len(parts) == 3 and (parts[0], parts[2]) == (name, "toml"))
    return {language: table(package, f"{name}.{language}.toml") for language in languages}


@cache
def fitted(package: str, name: str) -> Mapping[str, Any]:
    """A JSON file of `package` (pass `__package__`) as a tool wrote it. Callers must not change it."""
    found: Mapping[str, Any] = json.loads(_text(package, name))
    return found


def raw(package: str, name: str) -> bytes:
    """A file of `package` (pass `__package__`) that a tool wrote in a form of its own."""
    return _folder(package).joinpath(name).read_bytes()


def word_set(entries: Iterable[str]) -> frozenset[str]:
    """The words of all entries."""
    return frozenset(word for entry in entries for word in entry.split())


def word_map(entries: Iterable[str]) -> dict[str, str]:
    """Entries that are pairs: `mt = mount`."""
    pairs = (entry.partition("=") for entry in entries)
    return {word.strip(): meaning.strip() for word, _, meaning in pairs}


def _text(package: str, name: str) -> str:
    return _folder(package).joinpath(name).read_text(encoding="utf-8")


def _folder(package: str) -> Traversable:
    from importlib.resources import files  # loaded with the first file: it brings along what reads archives

    return files(package)
