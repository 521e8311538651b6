"""API keys: what one is bound to. The secret itself is never kept, only its digest."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from perdure.domain.text.rules import check_choice

Permission = Literal["read", "write", "admin"]
PERMISSIONS: tuple[Permission, ...] = ("read", "write", "admin")
KEY_USERS_MAX = 1_000
KEY_NAME_CHARS_MAX = 100


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key without its secret."""

    id: str
    name: str
    users: tuple[str, ...] | None
    """None: every user of the space."""
    permissions: tuple[Permission, ...]
    """`write` comes with `read`, `admin` with both."""
    made_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    agent: bool = False
    """Whether a model holds it: what it stores is the agent's word."""

    def alive(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A key as it is shown to its maker, once."""

    key: ApiKey
    secret: str


def permissions_of(highest: str) -> tuple[Permission, ...]:
    """What a key of that kind may do: each permission comes with the lesser ones."""
    check_choice(highest, "permission", PERMISSIONS)
    return PERMISSIONS[: PERMISSIONS.index(highest) + 1]
