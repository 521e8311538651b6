"""Key-value state: any JSON under a key, with every revision kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from perdure.domain.text import Json


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a key's value. A deletion is a revision too, so that it can be taken back."""

    key: str
    number: int
    body: str | None
    """The value as JSON text; None for a deletion."""
    saved_at: datetime
    expires_at: datetime | None = None
    request: str = ""
    """The caller's id of the save, or one of ours: the same save twice is one revision."""

    def alive(self, now: datetime) -> bool:
        return self.body is not None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A value as it was found; `found` tells a stored null from a missing key."""

    key: str
    found: bool
    value: Json = None
    revision: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key without its value."""

    key: str
    updated_at: datetime
    size_bytes: int
    revision: int
    preview: str | None = None
