"""Lasting orders of the user, awaited."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.aio.threads import Threads
from perdure.domain.instructions import Instruction
from perdure.handles.instructions import InstructionHandle


class AsyncInstructions:
    """`Memory.instructions`, awaited."""

    __slots__ = ("_instructions", "_threads")

    def __init__(self, instructions: InstructionHandle, threads: Threads) -> None:
        self._instructions = instructions
        self._threads = threads

    async def list(self, *, withdrawn: bool = False, limit: int = 100) -> Sequence[Instruction]:
        return await self._threads.run(self._instructions.list, withdrawn=withdrawn, limit=limit)

    async def add(self, text: str) -> Instruction:
        return await self._threads.run(self._instructions.add, text)

    async def withdraw(self, id: str) -> Instruction:
        return await self._threads.run(self._instructions.withdraw, id)
