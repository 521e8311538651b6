"""The access log: who asked for what of a user's data, by which door, and what that touched. Never what it said.

And API keys: what one is bound to. The secret itself is never kept, only its digest.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.scope import DEFAULT, RESERVED, Address, Scope
from perdure.domain.text.rules import check_choice
from perdure.domain.values import dataclass

Face = Literal["python", "cli", "http", "mcp", "web"]
Action = Literal["read", "change", "erase", "admin"]
"""What a call is for: to hand out data, to add to it or change it, to remove it for good, or upkeep."""
AccessOutcome = Literal["begun", "done", "refused"]
"""`begun` is what stays if the end of a call could not be noted: it may have been carried out."""
AccessMode = Literal["off", "changes", "all"]
"""What is logged: nothing, everything but reads, or every call."""
FACES: tuple[Face, ...] = get_args(Face)
ACTIONS: tuple[Action, ...] = get_args(Action)
ACCESS_OUTCOMES: tuple[AccessOutcome, ...] = get_args(AccessOutcome)
ACCESS_MODES: tuple[AccessMode, ...] = get_args(AccessMode)
NAMES_MAX = 50
"""An entry names so many records; of the others it has the number."""
OPERATIONS_MAX = 1_000
"""So many operations of the journal an entry names; a longer action is told by its first ones."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who is asking, and by which door."""

    actor: str
    """`key:ID` for the holder of an API key, `local` for the person at the server's machine, `cli`; empty: the program."""
    face: Face

    def named(self, scope: Scope) -> str:
        """The actor of a call: a program acts for the agent that its handle is bound to, or else for the user."""
        if self.actor or scope.address.agent != DEFAULT:
            return self.actor or f"agent:{scope.address.agent}"
        return "program" if scope.owner.user.startswith(RESERVED) else "user"


PROGRAM = Asker("", "python")
"""A program that calls the library."""
COMMAND_LINE = Asker("cli", "cli")


@dataclass(frozen=True, slots=True)
class TouchedRecords:
    """Records of one kind that a call handed out or changed."""

    kind: str
    count: int
    names: tuple[str, ...] = ()
    """Their ids, as far as they are named: fewer than counted if there were many, or if some were forgotten since."""


@dataclass(frozen=True, slots=True)
class Access:
    """One call, as the log has it."""

    id: str
    at: datetime
    actor: str
    face: Face
    address: Address
    call: str
    """The public name of the call, such as `recall` or `state.save`."""
    action: Action
    outcome: AccessOutcome = "done"
    error: str = ""
    """The class of the error, if it was refused; never its words."""
    touched: tuple[TouchedRecords, ...] = ()
    operations: tuple[int, ...] = ()
    """The numbers under which the journal has what it changed."""


def without_names(touched: tuple[TouchedRecords, ...], gone: Callable[[str], bool]) -> tuple[TouchedRecords, ...]:
    """The same without the names for which `gone` says so; the counts stay."""
    return tuple(TouchedRecords(one.kind, one.count, tuple(name for name in one.names if not gone(name))) for one in touched)


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
