"""Where transcripts are kept: one file per session. What stands in them is others' business; here they are bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from perdure.domain.scope import Address, Owner, SessionId

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
    """When the newest message was sent. It becomes the time of the file, by which files are put away."""
    opened_at: datetime
    """With `topic`, a part of the name of a new file; one that exists keeps its name."""
    topic: str
    """At most `engine.transcripts.TOPIC_BYTES_MAX` bytes of small letters, digits and hyphens, in any script."""


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
        """The whole file of the session, put away or not; None if there is none. Its end may be half-written."""

    def extend(self, place: TranscriptPlace, decide: Callable[[bytes], Extension | None]) -> None:
        """Hand what the file holds (nothing, if there is none) to `decide`, and do what it says; None means nothing to do.

        Nobody else changes the owner's files meanwhile, in this or another process; `decide` must not wait. A new file
        appears whole or not at all. What is added to an older one is durable on return; after a crash before that, any
        beginning of it may be there. A file that was put away comes back first.
        """

    def list_(self, owner: Owner, *, limit: int) -> list[TranscriptFile]:
        """The newest `limit` files by `last_at`, newest first, including those put away; ties by path."""

    def archive(self, owner: Owner, *, before: datetime | None, keep: int | None) -> int:
        """Put away files whose newest message is older than `before`, and all but the newest `keep`; how many that were."""

    def prune(self, owner: Owner, *, before: datetime | None, keep: int | None) -> int:
        """Delete, of those put away, the ones older than `before` and all but the newest `keep`; how many that were."""

    def remove(self, place: TranscriptPlace) -> bool:
        """Delete the session's file, put away or not. False if there was none."""

    def erase(self, owner: Owner) -> int:
        """Delete all files of the owner, and the folders that carry the owner's name; how many files there were."""
