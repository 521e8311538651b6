"""Where lesson books are kept: one text per owner, which people may edit by hand at any time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from perdure.domain.scope import Owner

T = TypeVar("T")


class LessonFiles(Protocol):
    def read(self, owner: Owner) -> str:
        """The text as it stands now, edits by hand included; empty if there is none. `Corrupt` if it is not UTF-8."""

    def edit(self, owner: Owner, change: Callable[[str], tuple[str, T]]) -> T:
        """Replace the text by the first thing `change` makes of it, and answer with the second.

        Nobody else edits the book through this port meanwhile, in this or another process; `change` must not wait. The
        new text is there for good on return, after a crash before that the old one is. The same text is not written.
        """

    def erase(self, owner: Owner) -> bool:
        """Delete the book, and the folders that carry the owner's name if nothing else is in them. False if there is none."""
