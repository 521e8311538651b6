"""The journal of one owner in a SQL database: every derived row is written with one of its operations."""

from __future__ import annotations

from collections.abc import Callable

from perdure.adapters.statements import Statements
from perdure.domain.journal import Operation
from perdure.domain.scope import Owner
from perdure.ports import rows


class SqlJournal:
    __slots__ = ("_owner", "_run")

    def __init__(self, run: Statements, owner: Owner) -> None:
        self._run = run
        self._owner = owner

    def record(self, make: Callable[[int], Operation]) -> int:
        """Write the operation that `make` gives for the next number; that number."""
        [(seq,)] = self._run.all("next_operation", (self._owner.space, self._owner.user))
        operation = make(int(seq))
        self._run.put("insert_operation", [rows.operation_row(self._owner, operation)])
        self._run.journalled.append(operation.seq)
        return operation.seq
