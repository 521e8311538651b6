"""What may name a file: rules that every place shares which is given a path.

Where books are kept as text that people may edit by hand at any time, and where agents are kept as folders.

Where transcripts are kept: one file per session. What stands in them is others' business; here they are bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import IO, Protocol, TypeVar

from perdure.domain.errors import InvalidInput
from perdure.domain.lessons import Book
from perdure.domain.scope import Address, Owner, SessionId
from perdure.domain.values import dataclass

Target = str | os.PathLike[str] | IO[bytes]
Source = str | os.PathLike[str] | IO[bytes]
"""A file that is written or read: by name, or open in binary mode."""
PATH_BYTES_MAX, NAME_BYTES_MAX = 4_000, 255
"""What file systems allow, but for a little room that a temporary name needs."""


def check_path(value: str | os.PathLike[str], what: str) -> Path:
    """`value` as a path, if the system can have a file of that name."""
    text = str.__str__(value) if isinstance(value, str) else os.fspath(value) if isinstance(value, os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidInput(f"`{what}` must be the name of a file, not a `{type(value).__name__}`; pass a text or a path")
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidInput(f"`{what}` contains a lone surrogate, which no file is named by; remove it") from None
    if b"\0" in raw:
        raise InvalidInput(f"`{what}` contains a NUL character, which no file is named by; remove it")
    if len(raw) > PATH_BYTES_MAX or any(len(part) > NAME_BYTES_MAX for part in raw.split(b"/")):
        raise InvalidInput(
            f"`{what}` is longer than the {PATH_BYTES_MAX} bytes of a path or the {NAME_BYTES_MAX} of a name; use a shorter one"
        )
    return Path(text)


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


BEGIN_BYTES_MAX = 32_768


@dataclass(frozen=True, slots=True)
class TranscriptPlace:
    """Whose transcript, of which session. Two agents may have sessions of the same id."""

    owner: Owner
    address: Address
    session: SessionId


@dataclass(frozen=True, slots=True)
class Extension:
    """What becomes of a file: its first `keep` bytes stay, and `more` follows them."""

    keep: int
    more: bytes
    last_at: datetime
    """When the newest message was sent. It becomes the time of the file, by which files are archived."""
    opened_at: datetime
    """With `topic`, a part of the name of a new file; one that exists keeps its name."""
    topic: str
    """At most `engine.conversation.transcript.TOPIC_BYTES_MAX` bytes of small letters, digits and hyphens, in any script."""


@dataclass(frozen=True, slots=True)
class TranscriptFile:
    """One file, as a listing shows it."""

    path: str
    begin: bytes
    """Its first bytes, at most `BEGIN_BYTES_MAX`: everything that precedes the first message, and more."""
    size: int
    last_at: datetime
    archived: bool


class TranscriptFiles(Protocol):
    def find(self, place: TranscriptPlace) -> bytes | None:
        """The whole file of the session, archived or not; None if there is none. Its end may be half-written."""

    def extend(self, place: TranscriptPlace, decide: Callable[[bytes], Extension | None]) -> None:
        """Hand what the file holds (nothing, if there is none) to `decide`, and do what it says; None means nothing to do.

        Nobody else changes the owner's files meanwhile, in this or another process; `decide` must not wait. A new file
        appears whole or not at all. What is added to an older one is durable on return; after a crash before that, any
        beginning of it may be there. An archived file comes back first.
        """

    def list_(self, owner: Owner, *, limit: int) -> list[TranscriptFile]:
        """The newest `limit` files by `last_at`, newest first, archived ones included; ties by path."""

    def archive(self, owner: Owner, *, before: datetime | None, keep: int | None) -> int:
        """Archive files whose newest message is older than `before`, and all but the newest `keep`; how many that were."""

    def prune(self, owner: Owner, *, before: datetime | None, keep: int | None) -> int:
        """Delete, of the archived ones, those older than `before` and all but the newest `keep`; how many that were."""

    def remove(self, place: TranscriptPlace) -> bool:
        """Delete the session's file, archived or not. False if there was none."""

    def erase(self, owner: Owner) -> int:
        """Delete all files of the owner, and the folders that carry the owner's name; how many files there were."""
