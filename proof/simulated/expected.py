"""What must hold, in plain Python: a list for a log, a list for the revisions of a key, intervals for what a series covers.

It knows nothing of how perdure does it, and shares no code with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

WORD = re.compile(r"w\d{6}x")
"""Every text of a simulation has a word of its own, by which it is known wherever it turns up."""
Place = tuple[str, str]
"""Agent and channel."""


class Violated(Exception):
    """Something that must hold does not."""

    def __init__(self, invariant: str, detail: object) -> None:
        super().__init__(f"{invariant}: {str(detail)[:1500]}")
        self.invariant = invariant


def must(holds: bool, invariant: str, detail: object = "") -> None:
    if not holds:
        raise Violated(invariant, detail)


@dataclass(slots=True)
class Said:
    """One message: what it must say, or None once that is forgotten."""

    id: str
    role: str
    content: str | None
    session: str = ""


@dataclass(slots=True)
class Covered:
    """A series: which half-open intervals were answered for, which entries surely are there, which may be."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    sure: dict[str, Any] = field(default_factory=dict)
    delivered: dict[str, Any] = field(default_factory=dict)

    def covers(self, instant: int) -> bool:
        return any(start <= instant < end for start, end in self.spans)

    def check_gaps(self, wanted: tuple[int, int], gaps: Iterable[tuple[int, int]]) -> None:
        """At every instant where anything may change, and on both sides of it: a gap there or covered, never both or none."""
        found = list(gaps)
        edges = {edge for span in (*self.spans, *found, wanted) for edge in span}
        for instant in sorted({edge + by for edge in edges for by in (-1, 0, 1)}):
            if wanted[0] <= instant < wanted[1]:
                missing = any(start <= instant < end for start, end in found)
                must(
                    missing != self.covers(instant), "gaps are what is not covered", f"at {instant}: gaps {found}, {self.spans}"
                )


@dataclass(slots=True)
class Known:
    """All that one user was told is stored."""

    logs: dict[Place, list[Said]] = field(default_factory=dict)
    state: dict[str, list[Any]] = field(default_factory=dict)
    """Key to its revisions, oldest first; None is a deletion."""
    series: dict[str, Covered] = field(default_factory=dict)
    todos: dict[tuple[str, str], str] = field(default_factory=dict)
    """Agent and words, to `pending` or `completed`."""
    facts: set[str] = field(default_factory=set)
    lessons: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    """All words of this user's texts that were given to perdure."""

    def log(self, place: Place) -> list[Said]:
        return self.logs.setdefault(place, [])


@dataclass(slots=True)
class Expected:
    """Everybody's, and what is forgotten."""

    tokens: dict[str, str]
    """User to the mark that stands in all of that user's texts and in nobody else's."""
    known: dict[str, Known] = field(default_factory=dict)
    forgotten: set[str] = field(default_factory=set)

    def of(self, user: str) -> Known:
        return self.known.setdefault(user, Known())

    def forget(self, words: Iterable[str]) -> None:
        self.forgotten.update(words)

    def forget_user(self, user: str) -> None:
        self.forget(self.of(user).words)
        self.known[user] = Known()

    def check_seen(self, user: str, text: str) -> None:
        """What a user was shown holds nobody else's words, and nothing that is forgotten."""
        for other, token in self.tokens.items():
            must(other == user or token not in text, "nobody sees another's data", f"{user!r} was shown words of {other!r}")
        back = self.forgotten.intersection(WORD.findall(text)) if self.forgotten else ()
        must(not back, "forgotten stays gone", f"{user!r} was shown {sorted(back)[:5]} in {text[:300]}")
