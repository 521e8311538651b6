"""A stored table: a class of rows with named columns, the same in every store and every backup.

A row that cannot be read back is `Corrupt`, never skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

from perdure.domain.errors import Corrupt, PerdureError
from perdure.domain.scope import Address
from perdure.domain.times.instants import from_us, to_us

T = TypeVar("T")
R = TypeVar("R", bound=NamedTuple)
# Rows come from a driver, which cannot say more of their types than this; the readers check what they rely on.
AnyRow = tuple[Any, ...]
_new = tuple.__new__


class Table(Generic[R]):
    """A stored table: the fields of `row` are its columns in order; the first `key` of them are the primary key."""

    __slots__ = ("columns", "key", "name", "rebuilt", "row", "stays", "width")

    def __init__(self, name: str, row: type[R], key: int, *, rebuilt: bool = False, stays: bool = False) -> None:
        self.name = name
        self.row = row
        self.columns: tuple[str, ...] = row._fields
        self.width = len(self.columns)
        self.key = key
        self.rebuilt = rebuilt
        """Made anew from the others by a job; backups leave it out, and it holds no text of a user's."""
        self.stays = stays
        """It tells what was done in this store: exports leave it out, and imports leave it alone."""

    def key_of(self, row: AnyRow) -> AnyRow:
        """The primary key of a row."""
        return row[: self.key]

    def named(self, row: AnyRow) -> R:
        """The row with its columns as fields."""
        return self.row._make(row)

    def read(self, row: AnyRow, reader: Callable[[R], T]) -> T:
        """What `reader` makes of the named row; whatever goes wrong is `Corrupt` and names the row by its key."""
        try:
            if len(row) != self.width:
                raise ValueError("another number of columns")
            # As `_make` does it, in half its time: messages and entries are read by the thousand.
            return reader(_new(self.row, row))
        except (
            ValueError,
            TypeError,
            KeyError,
            IndexError,
            AttributeError,
            OverflowError,
            RecursionError,
            PerdureError,
        ) as error:
            raise Corrupt(
                f"row {self.key_of(row)!r:.200} of table `{self.name}` cannot be read ({type(error).__name__}); "
                f"run `perdure admin verify`"
            ) from error


@lru_cache(maxsize=1024)
def address_of(agent: str, channel: str) -> Address:
    return Address(agent, channel)


def us_or_none(instant: datetime | None) -> int | None:
    return None if instant is None else to_us(instant)


def instant_or_none(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)
