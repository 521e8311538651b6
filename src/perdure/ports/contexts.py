"""Where context documents are kept: one per session id, with what compaction took out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perdure.domain.contexts import Archived, ContextData


@dataclass(frozen=True, slots=True)
class ContextDraft:
    """A document ready to be stored, taken from a context at one moment."""

    session_id: str
    document: bytes
    archived: tuple[Archived, ...]
    revision: int
    """The stored revision that it replaces; 0 if there must be none."""
    lineage: str


@dataclass(frozen=True, slots=True)
class SavedContext:
    """Under which revision a draft was stored."""

    revision: int
    lineage: str


class ContextStore(Protocol):
    def initialize(self) -> None:
        """Make ready what is missing and clear away what interrupted saves left. Repeating it does no harm."""

    def load(self, session_id: str) -> ContextData:
        """The document as last saved, or a new one of revision 0; what had to be mended is in its `notes`."""

    def save(self, draft: ContextDraft) -> SavedContext:
        """Store document and archive together, durably: both are there afterwards, or neither counts.

        `Conflict` if the stored revision is not the one that the draft replaces.
        """

    def delete(self, session_id: str) -> bool:
        """Remove the document, its revisions and its archive. True if anything was there."""

    def list_sessions(self) -> list[str]:
        """The ids of all documents, sorted by code point."""

    def with_archive(self, session_id: str) -> tuple[ContextData, Sequence[Archived]]:
        """The document, and everything that was ever taken out of it, oldest first, as of one moment."""
