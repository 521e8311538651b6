"""`Memory.instructions`: lasting orders of the user to one agent."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.instructions import Instruction
from perdure.domain.scope import Scope
from perdure.services.instructions import Instructions


class InstructionHandle:
    """What the user has told this agent to do from now on."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, instructions: Instructions) -> None:
        self._scope = scope
        self._do = instructions

    def list(self, *, withdrawn: bool = False, limit: int = 100) -> Sequence[Instruction]:
        """Standing orders, the newest last; `withdrawn=True` adds those that stand no longer."""
        return self._do.list_(self._scope, withdrawn=withdrawn, limit=limit)

    def add(self, text: str) -> Instruction:
        """Keep an order. The same words again change nothing; one that it contradicts is withdrawn."""
        return self._do.add(self._scope, text)

    def withdraw(self, id: str) -> Instruction:
        """It stands no longer."""
        return self._do.withdraw(self._scope, id)
