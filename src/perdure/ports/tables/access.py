"""Storing the access log; part of a `View` and a `Tx`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from perdure.domain.access import (
    ACCESS_OUTCOMES,
    ACTIONS,
    FACES,
    Access,
    TouchedRecords,
    without_names,
)
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.text.rules import compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.ports.tables.table import AnyRow, Table, address_of


class OwnerVersion(NamedTuple):
    """What is another one once anything of the owner's was forgotten, or all of it replaced."""

    erasures: int
    incarnation: str

    def holds_since(self, before: OwnerVersion) -> bool:
        """Whether nothing was forgotten since `before`; anyone who had nothing then had nothing to forget."""
        return self.erasures == before.erasures and before.incarnation in ("", self.incarnation)


class AccessView(Protocol):
    def standing(self) -> OwnerVersion:
        """In `write`, nobody forgets anything of this owner's until the transaction ends; others may log meanwhile."""

    def version(self) -> OwnerVersion:
        """The same, and nobody is kept off.

        What was made of words that were read before is stored only if it holds since then. In a transaction it is asked for
        once the session is locked: anyone who forgets has counted before, and lets go of the session afterwards. Looking takes
        no lock: they lock the number first and the sessions then, so that the two would wait for each other.
        """

    def list_accesses(self, *, limit: int, before: str | None = None) -> Sequence[Access]:
        """The one that was stored last comes first.

        With `before`, those that were stored before the entry with that id: none, if that one is not held any more.
        """


class AccessTx(AccessView, Protocol):
    def put_access(self, access: Access, *, keep: int) -> bool:
        """Store an entry, and let go of those of the owner that were stored before the last `keep`.

        True if it is new; False, and nothing happens, if it is held already; another one under its id is a `Conflict`.
        The end of a call that is held as `begun` takes the place of that entry, and is new.
        Where several are stored at the same moment, a few more may be kept.
        """

    def strike_names(self, gone: Callable[[str], bool]) -> int:
        """Leave those names out of all entries for which `gone` says so; how many entries that changed.

        For forgetting only. What is left says that there was something, and no longer what.
        """


# -- the stored form ---------------------------------------------------------------------------------------------------


class AccessRow(NamedTuple):
    space: str
    user_id: str
    id: str
    number: int
    """In which order they were stored; several that were stored at the same moment may have the same."""
    at_us: int
    agent: str
    channel: str
    actor: str
    face: str
    call: str
    action: str
    outcome: str
    error: str
    touched: str
    operations: str


ACCESSES = Table("accesses", AccessRow, 3, stays=True)


def access_row(owner: Owner, access: Access, number: int) -> AccessRow:
    return AccessRow(
        space=owner.space,
        user_id=owner.user,
        id=access.id,
        number=number,
        at_us=to_us(access.at),
        agent=access.address.agent,
        channel=access.address.channel,
        actor=access.actor,
        face=access.face,
        call=access.call,
        action=access.action,
        outcome=access.outcome,
        error=access.error,
        touched=_touched_text(access.touched),
        operations=compact_json(list(access.operations)),
    )


def _touched_text(touched: tuple[TouchedRecords, ...]) -> str:
    return compact_json([[one.kind, one.count, list(one.names)] for one in touched])


def to_access(row: AnyRow) -> Access:
    return ACCESSES.read(row, _read_access)


def _read_access(row: AccessRow) -> Access:
    if row.number < 1 or row.face not in FACES or row.action not in ACTIONS or row.outcome not in ACCESS_OUTCOMES:
        raise ValueError(row.call)
    return Access(
        id=row.id,
        at=from_us(row.at_us),
        actor=row.actor,
        face=row.face,
        address=address_of(row.agent, row.channel),
        call=row.call,
        action=row.action,
        outcome=row.outcome,
        error=row.error,
        touched=_read_touched(row.touched),
        operations=tuple(json.loads(row.operations)),
    )


def _read_touched(text: str) -> tuple[TouchedRecords, ...]:
    return tuple(TouchedRecords(kind, count, tuple(names)) for kind, count, names in json.loads(text))


def row_without_names(row: AnyRow, gone: Callable[[str], bool]) -> AccessRow | None:
    """The row without the names that are to go; None if it has none of them."""
    held = to_access(row).touched
    left = without_names(held, gone)
    return None if left == held else ACCESSES.named(row)._replace(touched=_touched_text(left))


def ended_row(row: AnyRow, owner: Owner, access: Access) -> AccessRow | None:
    """The row of a call that was begun, as it is now that it has ended; None unless `access` is the end of that one."""
    held = to_access(row)
    if held.outcome != "begun" or access.outcome == "begun":
        return None
    begun = replace(access, at=held.at, outcome="begun", error="", touched=(), operations=())
    return access_row(owner, access, ACCESSES.named(row).number) if begun == held else None


def refuse_another(held: Access, owner: Owner, access: Access) -> None:
    """A `Conflict` unless both are the same entry, as they are after a lost answer."""
    if to_access(access_row(owner, access, 1)) != held:
        raise Conflict(f"another access has the id {access.id!r:.80}; give each its own id")
