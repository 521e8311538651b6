"""How the SQL stores run their named queries: what differs between the databases, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from perdure.ports.rows import AnyRow

MAX_INTEGER = 2**63 - 1


class Statements(Protocol):
    """Running named queries on a connection that is inside a transaction."""

    journalled: list[int]
    """The numbers of the operations that this transaction has recorded."""

    def all(self, name: str, values: tuple[Any, ...]) -> list[AnyRow]:
        """Every row of the query."""

    def change(self, name: str, values: tuple[Any, ...]) -> int:
        """Run it; how many rows it changed."""

    def put(self, name: str, many: Sequence[AnyRow]) -> None:
        """Run it for each row. What a constraint refuses is a `Conflict`."""

    def whole(self, table: str, owner: tuple[str, str]) -> Iterator[AnyRow]:
        """All rows of an owner in one of `ports.rows.TABLES`."""

    def replace(self, table: str, row: AnyRow) -> None:
        """Overwrite the columns outside the key of a row that is held."""

    def array(self, values: Sequence[str]) -> Any:
        """A list as one parameter."""

    def once(self) -> None:
        """What this transaction does must not be done twice: if its commit may have happened, it is not run again."""

    def shared(self, name: str) -> str:
        """The variant of a look-up that keeps off who would lock the row, but not others like this one."""

    def locked(self, name: str) -> str:
        """The variant of a look-up that keeps rivals off the row; the same one where the transaction does that anyway."""
