"""Context documents: what an agent loads at its start, works on, compacts and saves; one per session.

`ContextManager` keeps them, in a folder or in a store; `ContextCompactor` keeps them small; `AsyncContextManager` is the
first one awaited; `copy_contexts` carries them over. Every error is a `PerdureError`, named by what the caller can do.
"""

from __future__ import annotations

from perdure.documents.manager import AsyncContextManager, ContextCompactor, ContextManager, copy_contexts
from perdure.domain.conversation.documents import (
    Archived,
    CompactionReport,
    ContextData,
    ContextVersion,
    Environment,
    HistoryEntry,
    Task,
    TokenUsage,
    ToolStats,
)
from perdure.engine.documents.compaction import CompactionRules
from perdure.engine.documents.json_form import read_document, render_document

__all__ = [
    "Archived",
    "AsyncContextManager",
    "CompactionReport",
    "CompactionRules",
    "ContextCompactor",
    "ContextData",
    "ContextManager",
    "ContextVersion",
    "Environment",
    "HistoryEntry",
    "Task",
    "TokenUsage",
    "ToolStats",
    "copy_contexts",
    "read_document",
    "render_document",
]
