"""Who data belongs to. Every key in every store starts with the owner, so nothing is reachable without one."""

from __future__ import annotations

from typing import NewType

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import check_held_id, check_no_secret
from perdure.domain.values import dataclass

MessageId = NewType("MessageId", str)
SessionId = NewType("SessionId", str)
ToolCallId = NewType("ToolCallId", str)

DEFAULT = "default"

# Five ids and a counter must fit into one index row; PostgreSQL allows 2,704 bytes.
ID_BYTES_MAX = 400


@dataclass(frozen=True, slots=True)
class Owner:
    """One user within one space (an application or a customer). The unit of isolation and of distribution."""

    space: str
    user: str

    def __post_init__(self) -> None:
        check_held_id(self.space, "space", bytes_max=ID_BYTES_MAX)
        check_held_id(self.user, "user", bytes_max=ID_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class Address:
    """Where a user talks: with which agent (the seeds also say persona), on which channel."""

    agent: str = DEFAULT
    channel: str = DEFAULT

    def __post_init__(self) -> None:
        check_held_id(self.agent, "agent", bytes_max=ID_BYTES_MAX)
        check_held_id(self.channel, "channel", bytes_max=ID_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class Scope:
    """Owner and address: what a handle is bound to."""

    owner: Owner
    address: Address

    @classmethod
    def of(cls, user: str, *, agent: str = DEFAULT, channel: str = DEFAULT, space: str = DEFAULT) -> Scope:
        if isinstance(space, str) and space.startswith(RESERVED):
            raise InvalidInput(f"`space` = {space!r:.60} starts with `{RESERVED}`, which is reserved; choose another name")
        if isinstance(user, str) and user.startswith(RESERVED):
            raise InvalidInput(f"`user` = {user!r:.60} starts with `{RESERVED}`, which is reserved; choose another name")
        scope = cls(Owner(space, user), Address(agent, channel))
        for what, name in (("space", space), ("user", user), ("agent", agent), ("channel", channel)):
            check_no_secret(name, what)
        return scope


# Work that concerns the whole store (tidying, probing) belongs to owners whose space starts with this. `Scope.of`, the
# only way from a caller's ids to a scope, refuses it.
RESERVED = "perdure:"
SYSTEM = Owner(f"{RESERVED}system", "system")
ERASURES = f"{RESERVED}erasures"
"""The state key of an owner whose revision says how often something of theirs was forgotten."""


def shared_owner(space: str) -> Owner:
    """Whose is what all users of a space share: its agents, and the lessons that reach everybody."""
    return Owner(space, f"{RESERVED}shared")
