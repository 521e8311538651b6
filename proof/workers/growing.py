"""A process that appends message after message: what memory it takes, what each append costs, and how far the file grows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import perdure
from proof.workers.flooded import resident_bytes

PARTS = 10
SINGLE, BATCH = 10, 100
"""One in ten is appended by itself, and its cost measured; the others come in batches."""
TEXT = "the boat of John Doe was painted green again, and the harbour master wants to be told by Friday"


def grow(there: Any, path: str, appends: int) -> None:
    """Tell, for each tenth: the processor's time of one append, the memory and the bytes of the store at its end."""
    settings = perdure.Settings(url=f"sqlite:///{path}", durability="normal", embedder="none")
    told = []
    with perdure.open(settings=settings) as engine:
        ana = engine.memory("ana")
        for part in range(PARTS):
            first, last = part * appends // PARTS, (part + 1) * appends // PARTS
            single = last - (last - first) // SINGLE
            for number in range(first, single, BATCH):
                ana.append_many([_message(one) for one in range(number, min(number + BATCH, single))])
            began = time.process_time()
            for number in range(single, last):
                one = _message(number)
                ana.append(one.role, one.content, id=one.id)
            spent = time.process_time() - began
            told.append({"append_s": spent / (last - single), "memory": resident_bytes(), "bytes": _bytes(path)})
        last = ana.messages(1)[-1].id
    there.send({"parts": told, "last": last})
    there.close()


def _message(number: int) -> perdure.NewMessage:
    return perdure.NewMessage("user" if number % 2 else "assistant", f"{number}: {TEXT}", id=f"m{number}")


def _bytes(path: str) -> int:
    return sum(one.stat().st_size for one in (Path(path), Path(f"{path}-wal")) if one.exists())
