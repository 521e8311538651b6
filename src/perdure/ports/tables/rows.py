"""Every stored table, and what holds for the rows of all of them."""

from __future__ import annotations

from typing import Any

from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.ports.tables.access import ACCESSES
from perdure.ports.tables.conversation import AGENT_STATES, DIGESTS, TALLIES
from perdure.ports.tables.index import INDEX_ENTRIES, INDEX_HEADS, INDEX_PACKS, INDEX_VECTORS
from perdure.ports.tables.jobs import JOBS
from perdure.ports.tables.knowledge import ECHOES, OPERATIONS, OWNERS, RECORD_TERMS, RECORDS
from perdure.ports.tables.log import MESSAGES, SESSIONS, TOOL_CALLS
from perdure.ports.tables.oversight import DECISIONS, USAGE
from perdure.ports.tables.series import (
    SERIES,
    SERIES_ENTRIES,
    SERIES_LEASES,
    SERIES_PAST,
    SERIES_WINDOWS,
    STATE_KEYS,
    STATE_REVISIONS,
)
from perdure.ports.tables.table import AnyRow, Table

# In an order in which rows can be loaded: what is referred to comes first.
_IN_ORDER: tuple[Table[Any], ...] = (
    SESSIONS,
    MESSAGES,
    TOOL_CALLS,
    JOBS,
    OWNERS,
    OPERATIONS,
    TALLIES,
    STATE_KEYS,
    STATE_REVISIONS,
    SERIES,
    SERIES_ENTRIES,
    SERIES_PAST,
    SERIES_WINDOWS,
    SERIES_LEASES,
    AGENT_STATES,
    DIGESTS,
    RECORDS,
    RECORD_TERMS,
    ECHOES,
    DECISIONS,
    USAGE,
    ACCESSES,
    INDEX_HEADS,
    INDEX_ENTRIES,
    INDEX_VECTORS,
    INDEX_PACKS,
)
TABLES = {table.name: table for table in _IN_ORDER}
STAYING = tuple(name for name, table in TABLES.items() if table.stays)
LEAVING = tuple(name for name, table in TABLES.items() if not table.stays)
"""What makes up a user's data: it can be taken elsewhere, and be replaced by what comes from there."""


def owned(owner: Owner, row: AnyRow) -> AnyRow:
    """The row as one of this owner's."""
    return (owner.space, owner.user, *row[2:])


def holds_rows(owner: Owner) -> Conflict:
    return Conflict(f"user {owner.user!r:.80} holds data already; choose another name, or replace it (`replace`, `--replace`)")
