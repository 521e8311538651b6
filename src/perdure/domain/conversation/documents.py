"""Context documents: what an agent carries from one start to the next, as one JSON document per session.

The values are open to change, since a caller works on a loaded document in place; saving holds them to the shape. The
document's own form is `documents.json_form`, its compaction `documents.compaction`; a `ContextStore` keeps one per session,
with what compaction took out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, field

NUMBER_MAX = 2**53 - 1
"""Every reader of JSON agrees on whole numbers up to here; others lose digits beyond."""

ArchiveKind = Literal["entry", "whole", "summary", "fact", "task"]


@dataclass(slots=True)
class HistoryEntry:
    """One message of the recent history. `timestamp` is in whole seconds since 1970."""

    timestamp: int
    role: str
    """`user`, `assistant`, `tool` or `system`."""
    content: str
    token_count: int | None = None
    """What the caller says it costs; estimated where it is missing."""


@dataclass(slots=True)
class Task:
    """Something the agent works on. Instants are in whole seconds since 1970."""

    id: str
    description: str
    status: str
    """`Running`, `Completed`, `Failed`, …: any text; compaction knows the words for an end."""
    progress: float
    """From 0 to 1."""
    created_at: int
    updated_at: int


@dataclass(slots=True)
class ToolStats:
    """How often tools were called."""

    total_calls: int = 0
    by_tool: dict[str, int] = field(default_factory=dict)
    failures: int = 0

    def count(self, tool: str, *, failed: bool = False) -> None:
        """Note one call of `tool`."""
        self.total_calls += 1
        self.by_tool[tool] = self.by_tool.get(tool, 0) + 1
        self.failures += failed


@dataclass(slots=True)
class Environment:
    """What the agent last knew of its surroundings."""

    workspace: str = ""
    last_update: int = 0
    system_snapshot: dict[str, Json] = field(default_factory=dict)


@dataclass(slots=True)
class TokenUsage:
    """Tokens paid for. `by_session` is what this session cost in all."""

    total_input: int = 0
    total_output: int = 0
    by_session: int = 0

    def count(self, *, input_tokens: int = 0, output_tokens: int = 0) -> None:
        """Note the cost of one call of a model."""
        self.total_input += input_tokens
        self.total_output += output_tokens
        self.by_session += input_tokens + output_tokens


@dataclass(frozen=True, slots=True)
class Archived:
    """Something that compaction took out of a document."""

    kind: ArchiveKind
    """`entry`: of the history. `whole`: an entry of which an excerpt stays. `summary`: text. `fact`. `task`."""
    body: Json
    """The thing as the document had it: an object for an entry or a task, else text."""


@dataclass(frozen=True, slots=True)
class CompactionReport:
    """What one compaction did, or would do."""

    summarised: int = 0
    """Entries that left the history for a line of the summary."""
    shortened: int = 0
    """Entries of which an excerpt stayed."""
    condensed: int = 0
    """Lines that left the summary, because it had outgrown its budget."""
    facts_removed: int = 0
    tasks_removed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    """Of the history, stated or estimated."""

    @property
    def compacted(self) -> bool:
        """Whether history or summary changed. Facts and tasks are tidied every time and do not count."""
        return bool(self.summarised or self.shortened or self.condensed)


@dataclass(slots=True)
class ContextData:
    """One session's document. The first nine fields are the document; the others travel with it in memory only."""

    session_id: str
    system_state: dict[str, Json] = field(default_factory=dict)
    facts: list[str] = field(default_factory=list)
    recent_history: list[HistoryEntry] = field(default_factory=list)
    long_term_summary: str = ""
    active_tasks: list[Task] = field(default_factory=list)
    tool_stats: ToolStats = field(default_factory=ToolStats)
    last_known_environment: Environment = field(default_factory=Environment)
    token_usage: TokenUsage = field(default_factory=TokenUsage)

    revision: int = field(default=0, compare=False, kw_only=True)
    """The stored revision that this was loaded from, or saved as; 0 if none."""
    lineage: str = field(default="", compare=False, repr=False, kw_only=True)
    """Tells a document from a later one of the same name, made after the first was deleted."""
    archived: list[Archived] = field(default_factory=list, compare=False, repr=False, kw_only=True)
    """What compaction took out since the last save, oldest first; `save` stores it."""
    last_compaction: CompactionReport | None = field(default=None, compare=False, repr=False, kw_only=True)
    notes: list[str] = field(default_factory=list, compare=False, repr=False, kw_only=True)
    """What loading had to fix."""


@dataclass(frozen=True, slots=True)
class ContextDraft:
    """A document ready to be stored, taken from a context at one moment."""

    session_id: str
    document: bytes
    archived: tuple[Archived, ...]
    revision: int
    """The stored revision that it replaces; 0 if there must be none."""
    lineage: str
    whole: bool = False
    """It comes from another storage: all that is in it is its own, though some of it is known in its scope, too."""


@dataclass(frozen=True, slots=True)
class SavedContext:
    """Under which revision a draft was stored."""

    revision: int
    lineage: str


@dataclass(frozen=True, slots=True)
class ContextVersion:
    """One stored revision of a document."""

    revision: int
    saved_at: datetime


class ContextStore(Protocol):
    def initialize(self) -> None:
        """Make ready what is missing and clear away what interrupted saves left. Repeating it does no harm."""

    def load(self, session_id: str) -> ContextData:
        """The document as last saved, or a new one of revision 0; what had to be fixed is in its `notes`."""

    def versions(self, session_id: str) -> list[ContextVersion]:
        """The revisions that are kept, the newest first."""

    def load_version(self, session_id: str, revision: int) -> ContextData | None:
        """The document as it was saved under that revision; None if it is not kept."""

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
