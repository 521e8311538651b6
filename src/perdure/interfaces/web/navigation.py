"""The parts of the page, in the order of the menu: where each is, what it is called, and the key that jumps to it."""

from __future__ import annotations

from typing import NamedTuple


class Section(NamedTuple):
    path: str
    """Behind `/u/{user}`; empty: the first page."""
    title: str
    key: str
    """`g` and this key go there."""
    icon: str


NAVIGATION: tuple[tuple[str, tuple[Section, ...]], ...] = (
    ("", (Section("", "Home", "h", "home"), Section("search", "Search", "f", "search"))),
    (
        "Known",
        (
            Section("memories", "Memories", "m", "memory"),
            Section("entities", "Entities", "e", "entity"),
            Section("todos", "Todos", "t", "todo"),
            Section("lessons", "Lessons", "l", "lesson"),
        ),
    ),
    (
        "Said and fetched",
        (
            Section("conversations", "Conversations", "c", "conversation"),
            Section("series", "Series", "s", "series"),
            Section("state", "State", "k", "state"),
        ),
    ),
    (
        "At work",
        (
            Section("context", "Context", "x", "context"),
            Section("journal", "Journal", "j", "journal"),
            Section("jobs", "Jobs", "b", "jobs"),
        ),
    ),
)
