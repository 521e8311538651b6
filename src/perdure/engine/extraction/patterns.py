"""Forms of a data file spelled out as regular expressions, and the English ones of `en.toml`, each when first asked for.

In a form `{NAME}` stands for a piece or for any word of a list, `'` for every apostrophe, and a line break with the blanks
around it for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from perdure.engine.words import table


def spelled(form: str, pieces: Mapping[str, str]) -> str:
    """A form as a regular expression. What is named in it but is no piece keeps its braces."""
    return _filled(form, pieces).replace("'", "['’]")


def pieces_of(forms: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The `known` pieces and those of `forms`, each of which may name the ones before it."""
    pieces = dict(known)
    for name, form in forms.items():
        pieces[name] = _filled(form, pieces)
    return pieces


def word_lists(texts: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The words of each text by its name; `{NAME}` stands for the words of a list before it."""
    lists: dict[str, tuple[str, ...]] = {}
    for name, text in texts.items():
        parts = (lists[word[1:-1]] if word.startswith("{") else (word,) for word in text.split())
        lists[name] = tuple(word for part in parts for word in part)
    return lists


def any_of(words: Iterable[str]) -> str:
    """A piece that matches one of the words, of two that begin alike the longer one."""
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


def _filled(form: str, pieces: Mapping[str, str]) -> str:
    def piece(name: re.Match[str]) -> str:
        found = pieces.get(name[1], name[0])
        # Groups take time to compile: what is one character needs none.
        return f"(?:{found})" if name[1] in pieces and not re.fullmatch(r"\[[^]]+\]", found) else found

    return re.sub(r"\{([A-Z_]+)\}", piece, re.sub(r"\s*\n\s*", "", form))


def english() -> Mapping[str, Any]:
    """All of `en.toml`, as it is written."""
    return table(__package__, "en.toml")


@cache
def words(name: str) -> frozenset[str]:
    """The words of an English list."""
    return frozenset(_lists()[name])


@cache
def forms(name: str) -> Mapping[str, str]:
    """The word that each form in an English map belongs to."""
    return {form: word for word, text in english()["maps"][name].items() for form in text.split(", ")}


@cache
def pattern(name: str) -> re.Pattern[str]:
    """An English pattern by its name."""
    return compiled(english()["patterns"][name])


def compiled(form: str) -> re.Pattern[str]:
    """An English form, ready to match."""
    return re.compile(spelled(form, _pieces()))


@cache
def _lists() -> Mapping[str, tuple[str, ...]]:
    return word_lists(english()["words"])


@cache
def _pieces() -> Mapping[str, str]:
    known = {**_lists(), **{name: tuple(forms(name)) for name in english()["maps"]}}
    return pieces_of(english()["pieces"], {name: any_of(words) for name, words in known.items()})
