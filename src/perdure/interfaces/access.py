"""Who is asking, and what they may do. A skin that serves several callers binds every handle through here."""

from __future__ import annotations

from perdure.app import Engine, asked_by
from perdure.domain.access import ApiKey, Asker, Face, Permission
from perdure.domain.scope import DEFAULT
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory, confined, only_reading


class AccessDenied(Exception):
    """The caller is not known (401), or may not do this (403). Says nothing about what there is."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = "unauthenticated" if status == 401 else "forbidden"


@dataclass(frozen=True, slots=True)
class CallerAccess:
    """A caller: an API key, or the person at this machine."""

    name: str
    """The key's id, or `local`: for logs and limits, never a secret."""
    users: frozenset[str] | None
    """Whose memory may be reached; None: everybody's."""
    permissions: frozenset[Permission]
    is_agent: bool = False
    """Whether what it stores is an agent's word."""

    def allow(self, need: Permission, user: str | None = None) -> None:
        """Return if this caller may do what needs `need`, for that user; else `AccessDenied`."""
        if need not in self.permissions:
            raise AccessDenied(403, f"this key does not permit {need}; ask for one that does")
        if user is not None and self.users is not None and user not in self.users:
            raise AccessDenied(403, f"this key is not for user {user!r:.80}; name a user that it is bound to")

    @property
    def actor(self) -> str:
        """The caller as the access log names them."""
        return self.name if self == LOCAL else f"key:{self.name}"

    def alone(self) -> str | None:
        """The user, if there is only one this caller can mean."""
        return next(iter(self.users)) if self.users is not None and len(self.users) == 1 else None


LOCAL = CallerAccess("local", None, frozenset({"read", "write", "admin"}))
"""The person at this machine, who shows its token and may open the file, too; with `no_auth`, anyone who reaches loopback."""


def of_key(key: ApiKey) -> CallerAccess:
    return CallerAccess(key.id, None if key.users is None else frozenset(key.users), frozenset(key.permissions), key.agent)


@dataclass(frozen=True, slots=True)
class Door:
    """An engine as one caller sees it."""

    engine: Engine
    access: CallerAccess
    face: Face
    """By which door they came."""

    @property
    def seen(self) -> Engine:
        """The engine, with this caller asking."""
        return asked_by(self.engine, Asker(self.access.actor, self.face))

    def memory(self, user: str, need: Permission, *, agent: str = DEFAULT, channel: str = DEFAULT) -> Memory:
        """A handle for that user, if the caller may; the space is the engine's own, never the caller's choice."""
        self.access.allow(need, user)
        memory = self.seen.memory(user, agent=agent, channel=channel)
        # Over MCP it is a model that calls, no matter who holds the key.
        told = memory.as_agent() if self.access.is_agent or self.face == "mcp" else memory
        if "write" not in self.access.permissions:
            told = only_reading(told)
        return told if self.access.users is None else confined(told)

    def whole(self, need: Permission = "admin") -> Engine:
        """The engine itself, for what concerns the whole store."""
        self.access.allow(need)
        if self.access.users is not None:
            raise AccessDenied(403, "this key is bound to some users; what concerns the whole store needs one for all")
        return self.seen
