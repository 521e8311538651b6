"""Requests that can be told apart for ever: from its name, what each must have left in a store follows to the letter."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import perdure

KINDS = ("append", "append_many", "remember", "save", "save_own", "merge", "merge_own", "todo")
STEP_S = 100
"""A merge covers so long a window; no two cover the same."""
FIRST_S = 1_000_000_000
NUMBERS_MAX = 100_000


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """One call that a writer makes. Writers have numbers, and number their requests."""

    writer: int
    number: int
    kind: str

    @property
    def id(self) -> str:
        return f"w{self.writer}r{self.number}"

    @property
    def parts(self) -> int:
        """How many messages, or entries of a series, it consists of."""
        return 2 + self.number % 7 if self.kind in ("append_many", "merge", "merge_own") else 1

    def part_id(self, part: int) -> str:
        return f"{self.id}p{part}"

    def text(self, part: int = 0) -> str:
        """What it says, with a digest all through it, so that half of it would be noticed."""
        digest = hashlib.sha256(self.part_id(part).encode()).hexdigest()
        return f"{self.part_id(part)} of {self.parts} {digest * (1 + self.number % 5)}"

    @property
    def key(self) -> str:
        """Of the state or the series it is about."""
        return "shared" if self.kind in ("save", "merge") else f"own-{self.writer}"

    @property
    def window(self) -> tuple[int, int]:
        start = FIRST_S + STEP_S * (self.writer * NUMBERS_MAX + self.number)
        return start, start + STEP_S

    def entries(self) -> list[dict[str, Any]]:
        start, _ = self.window
        return [{"id": self.part_id(one), "timestamp": start + one, "text": self.text(one)} for one in range(self.parts)]

    def plain(self) -> list[Any]:
        return [self.writer, self.number, self.kind]


def made(memory: perdure.Memory, request: Request) -> Any:
    """Make the request; what was answered, as far as it must be so ever after."""
    match request.kind:
        case "append":
            return memory.append("user", request.text(), id=request.part_id(0)).seq
        case "append_many":
            batch = [perdure.NewMessage("user", request.text(one), id=request.part_id(one)) for one in range(request.parts)]
            return [message.seq for message in memory.append_many(batch)]
        case "remember":
            # A memory of its own each: what says nearly the same would be told apart by judgement, which is not at stake.
            return memory.remember(request.text(), attribute=f"fact_{request.id}", value=request.id).verdict
        case "save" | "save_own":
            return memory.state.save(request.key, {"by": request.id, "text": request.text()}, request=request.id)
        case "merge" | "merge_own":
            series = memory.series(request.key, max_entries=None)
            return series.merge(request.entries(), window=request.window, request=request.id).total_count
        case "todo":
            return memory.todos.add(request.text()).id
    raise ValueError(request.kind)
