"""Where books are kept as text that people may edit by hand at any time, and where agents are kept as folders."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from perdure.domain.lessons import Book

T = TypeVar("T")

Change = Callable[[str | None, frozenset[str]], tuple[str, Sequence[str], T]]
"""From the text (None: there is no file) and the lessons it held when it was last left: the new text, the lessons that stand
in it, and an answer."""


class LessonFiles(Protocol):
    def keeps(self, book: Book) -> bool:
        """Whether there is a place for the text of this book."""

    def read(self, book: Book) -> str:
        """The text as it stands now, edits by hand included; empty if there is none. `Corrupt` if it is not UTF-8."""

    def is_as_left(self, book: Book, rows: str) -> bool:
        """Whether nobody has touched the text since `edit` left it, and `rows` is what was noted then. Cheap.

        `rows` is the store's own mark and what stands for its lessons, with a slash between; nothing behind it: none.
        """

    def is_anothers(self, book: Book, rows: str) -> bool:
        """Whether the text of a user was left by another store, or before that user was forgotten in this one.

        The two look alike, so nothing is taken in and nothing is taken out until a person decides.
        """

    def edit(self, book: Book, change: Change[T], *, rows: Callable[[], str]) -> T:
        """Replace the text by what `change` makes of it, note the lessons and what `rows` says then, and give the answer.

        `change` gets the text and the lessons that stood in it when this store was last here; none, if another store was.
        Nobody else edits the book through this port meanwhile, in this or another process. Should somebody replace the text
        by other means while `change` is at work, it is called again with that text: it must bear being repeated. The new text
        is there for good on return; after a crash before that, the old one is. The same text is not written.
        """

    def erase(self, book: Book) -> bool:
        """Delete the text, and folders that carry the owner's name if nothing else is in them. False if there is none."""


class AgentFiles(Protocol):
    def find(self, agent: str) -> dict[str, str] | None:
        """The texts that the agent's folder has, by name (`soul`, `mood`, `skill`); None if there is no such folder."""

    def put(self, agent: str, texts: dict[str, str]) -> None:
        """Write these texts into the agent's folder, making it if it is new; an empty one is removed."""

    def list_(self) -> list[str]:
        """The ids of all agents that have a folder, in order."""

    def remove(self, agent: str) -> bool:
        """Remove the agent's texts, and the folder if nothing else is in it. False if there is nothing."""
