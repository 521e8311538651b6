"""The journal: every change to derived data is an attributed operation with before and after.

The rule: a store offers no way to write a derived row without an `Attribution`, and the row carries the number of the
operation that wrote it. Canonical rows (messages, sessions) are not journalled: they are their own record.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass


@dataclass(frozen=True, slots=True)
class Attribution:
    """Who changes something, when and why."""

    actor: str
    """`user`, `agent:NAME`, or a component with its version, such as `tally/1`."""
    at: datetime
    why: str
    batch: int | None = None
    """The number of the action that this is a part of; None: it is an action of its own."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One change. `seq` counts the operations of an owner from 1 without holes."""

    seq: int
    at: datetime
    actor: str
    action: str
    kind: str
    key: str
    before: Json
    after: Json
    why: str
    batch: int = 0
    """The number of the first operation of the action it belongs to."""


WORDS = ("content", "text", "label", "description", "why", "ref", "summary")


def words_of(operation: Operation) -> str:
    """What the row says that an operation changed, whichever kind it is; nothing if it holds no words."""
    body = operation.after if isinstance(operation.after, Mapping) else operation.before
    held: Mapping[str, Json] = body if isinstance(body, Mapping) else {}
    return next((str(held[name]) for name in WORDS if held.get(name)), "")


def is_for(operation: Operation, agent: str) -> bool:
    """Whether an agent may see it: what was told to another agent alone is not shown, not even its history."""
    field = "agent" if operation.kind == "lesson" else "visible_to"
    for body in (operation.before, operation.after):
        if isinstance(body, Mapping) and body.get(field) not in (None, agent):
            return False
    return True
