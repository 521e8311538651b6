"""Storing the access log; part of a `View` and a `Tx`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from perdure.domain.accesses import ACCESS_OUTCOMES, ACTIONS, FACES, Access, Touched, without_names
from perdure.domain.errors import Conflict
from perdure.domain.scope import Owner
from perdure.domain.times import from_us, to_us
from perdure.ports.rows import TABLES, AnyRow, address_of, dump, readable

NUMBER, TOUCHED = (TABLES["accesses"].columns.index(name) for name in ("number", "touched"))


class Standing(NamedTuple):
    """What is another one once anything of the owner's was forgotten, or all of it replaced."""

    erasures: int
    incarnation: str

    def holds_since(self, before: Standing) -> bool:
        """Whether nothing was forgotten since `before`; whoever had nothing then had nothing to forget."""
        return self.erasures == before.erasures and before.incarnation in ("", self.incarnation)


class AccessView(Protocol):
    def standing(self) -> Standing:
        """In `write`, nobody forgets anything of this owner's until the transaction ends; others may log meanwhile."""

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


def access_row(owner: Owner, access: Access, number: int) -> AnyRow:
    """`number` says in which order they were stored; several that were stored at the same moment may have the same."""
    return (
        owner.space, owner.user, access.id, number, to_us(access.at), access.address.agent, access.address.channel,
        access.actor, access.face, access.call, access.action, access.outcome, access.error, _dumped(access.touched),
        dump(list(access.operations)),
    )  # fmt: skip


def _dumped(touched: tuple[Touched, ...]) -> str:
    return dump([[one.kind, one.count, list(one.names)] for one in touched])


def to_access(row: AnyRow) -> Access:
    return readable("accesses", _read_access, row)


def _read_access(row: AnyRow) -> Access:
    _, _, name, number, at, agent, channel, actor, face, call, action, outcome, error, touched, operations = row
    if number < 1 or face not in FACES or action not in ACTIONS or outcome not in ACCESS_OUTCOMES:
        raise ValueError(call)
    return Access(
        name, from_us(at), actor, face, address_of(agent, channel), call, action, outcome, error, _read_touched(touched),
        tuple(json.loads(operations)),
    )  # fmt: skip


def _read_touched(text: str) -> tuple[Touched, ...]:
    return tuple(Touched(kind, count, tuple(names)) for kind, count, names in json.loads(text))


def struck(row: AnyRow, gone: Callable[[str], bool]) -> AnyRow | None:
    """The row without the names that are to go; None if it has none of them."""
    held = to_access(row).touched
    left = without_names(held, gone)
    return None if left == held else (*row[:TOUCHED], _dumped(left), *row[TOUCHED + 1 :])


def ended(row: AnyRow, owner: Owner, access: Access) -> AnyRow | None:
    """The row of a call that was begun, as it is now that it has ended; None unless `access` is the end of that one."""
    held = to_access(row)
    if held.outcome != "begun" or access.outcome == "begun":
        return None
    begun = replace(access, at=held.at, outcome="begun", error="", touched=(), operations=())
    return access_row(owner, access, row[NUMBER]) if begun == held else None


def refuse_another(held: Access, owner: Owner, access: Access) -> None:
    """A `Conflict` unless both are the same entry, as they are after a lost answer."""
    if to_access(access_row(owner, access, 1)) != held:
        raise Conflict(f"another access has the id {access.id!r:.80}; give each an id of its own")
