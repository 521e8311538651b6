"""Notes what is put into prompts, so that nothing is learned from it when it comes back as a message."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from perdure.domain.context import Block
from perdure.domain.prompts import PromptPart
from perdure.domain.scope import Owner
from perdure.engine.echoes import fingerprints
from perdure.ports.clock import Clock
from perdure.ports.store import Store

ECHOES_MAX = 10_000
"""Fingerprints that are kept for one user."""


def register_echoes(store: Store, clock: Clock, owner: Owner, blocks: Sequence[Block | PromptPart]) -> None:
    """Keep the fingerprints of the blocks that are not kept yet."""
    prints = [one for block in blocks for one in _prints_of(block.text)]
    if not prints:
        return
    held = store.read(owner, lambda view: view.records.find_echoes(prints))
    new = [one for one in dict.fromkeys(prints) if one not in held]
    now = clock.now()
    if new:
        store.write(owner, lambda tx: tx.records.put_echoes(new, at=now, keep=ECHOES_MAX))


@lru_cache(maxsize=256)
def _prints_of(text: str) -> tuple[str, ...]:
    return tuple(fingerprints(text))
