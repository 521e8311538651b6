"""People whose ids were chosen to be mixed up, each with marks that only their own data carries.

Texts carry one mark and names (of keys, sessions, series, people…) another. Whoever guesses a name of somebody else says its
mark, and a refusal may repeat it; nobody is ever told the mark of another's texts, so wherever that shows up, it leaked.
"""

from __future__ import annotations

import random
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# By case, blanks, wildcards, separators, composition, look-alike letters; by what SQL, paths, queries and terms are made of.
LOOKALIKES = (
    "ana",
    "Ana",
    "ana ",
    " ana",
    "ana/",
    "ana%",
    "an_",
    "a%",
    "%",
    "_",
    "ana'--",
    "'; DELETE FROM messages; --",
    "../ana",
    "ana/../bo",
    "jos\u00e9",
    "jose\u0301",
    "\u0430na",
    "\uff41na",
    "ana\u200b",
    "ana@coach",
    "ana|bo",
    "ana:default",
    "default",
    "ana%2F",
    "ana?user=bo",
    "ana#",
    "*",
    "\\ana",
    "ANA",
    "ana\t",
    "x" * 400,
    "bo",
)
NEAREST = ("ana", "Ana", "ANA", "aNa")
"""Those that a comparison without regard to case, or by a pattern, takes for one another."""
REFUSED = ("", "ana\0", "\0", "x" * 401, "\udfff", "perdure:shared", "perdure:system", "perdure:")
"""Ids that nobody may have: no store keeps them, or they are the store's own."""
SPACES = ("home", "Home", "hom_")
AGENTS = ("default", "coach", "scout")
CHANNELS = ("default", "team")
PRIVATE_TO = "coach"
"""The agent to which each person says what no other agent may be shown."""

MARK = re.compile(r"zq(?:[bdfgklmnprstvz][aeiou]){4}", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9_-]{24,}")
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
KEPT_MAX = 24


@dataclass(eq=False, slots=True)
class Person:
    """One user of one space."""

    space: str
    user: str
    text_mark: str
    name_mark: str
    secret_mark: str
    """In what was said to be for one agent alone."""
    victims: tuple[Person, ...] = ()
    """Whose names and ids this one tries, and so knows."""
    told: set[str] = field(default_factory=set)
    """Marks of names that this one has said, and may find again in what it stored."""
    held: dict[str, list[str]] = field(default_factory=dict)
    """Ids that were handed out to this person, by kind: others will try them."""

    def keep(self, kind: str, id_: str) -> None:
        known = self.held.setdefault(kind, [])
        if id_ not in known:
            known.append(id_)
            del known[:-KEPT_MAX]

    def may_see(self) -> set[str]:
        """Marks that are no leak: one's own, and names that were guessed."""
        return self.told | {self.text_mark, self.name_mark, self.secret_mark}

    def to_try(self, kind: str) -> list[str]:
        """Ids for others to try. Not those that are made of what this one said: its text would be theirs to say then."""
        return [one for one in self.held.get(kind, ()) if self.text_mark not in one and self.secret_mark not in one]

    def __repr__(self) -> str:
        return f"{self.user[:30]!r} of {self.space!r}"


def gathered(chance: random.Random, count: int) -> list[Person]:
    """So many people: look-alikes in one space, and namesakes in the others."""
    marks = _marks(chance)
    nearest = chance.sample(NEAREST, 2)
    rest = [user for user in LOOKALIKES if user not in nearest]
    # The nearest neighbours first: one of them attacks, the other is attacked.
    users = [*nearest, *chance.sample(rest, min(count, len(rest)))]
    people = [_person(SPACES[0], user, marks) for user in users[: max(2, count * 3 // 4)]]
    for space in SPACES[1:]:
        people += [_person(space, one.user, marks) for one in people[: max(1, count // 8)] if one.space == SPACES[0]]
    for one in people:
        others = [other for other in people if other is not one]
        near = [other for other in others if other.user.lower() == one.user.lower()]
        one.victims = tuple({id(other): other for other in [*near[:2], *chance.sample(others, 2)]}.values())
    return people


def _person(space: str, user: str, marks: Iterator[str]) -> Person:
    return Person(space, user, next(marks), next(marks), next(marks))


def _marks(chance: random.Random) -> Iterator[str]:
    used = set()
    while True:
        mark = "zq" + "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(4))
        if mark not in used:
            used.add(mark)
            yield mark


def marks_in(texts: Iterable[str]) -> set[str]:
    """Every mark in them, also in what is packed as a cursor is."""
    found: set[str] = set()
    for text in texts:
        found.update(mark.lower() for mark in MARK.findall(text))
        for packed in _BASE64.findall(text):
            if opened := _opened(packed):
                found.update(mark.lower() for mark in MARK.findall(opened))
    return found


def _opened(packed: str) -> str:
    try:
        return urlsafe_b64decode(packed + "=" * (-len(packed) % 4)).decode("utf-8", "replace")
    except ValueError:
        return ""
