"""Which items may answer, and what their statistics are: they come from these items alone, and are worked out once.

What an agent may not see cannot show through a score. Most questions of an agent are asked of the same items, so that a
shelf keeps what was worked out for them.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from perdure.engine.search.columns import Flags, ItemColumns


class SessionSizes(NamedTuple):
    """The sessions of the items that may answer."""

    inside: Flags
    """Which of these items are of a session."""
    lengths: NDArray[np.float64]
    """Terms of each session in all."""
    total: int
    """How many sessions have any of these items."""


class Allowed:
    """Some items of a shelf, never changed."""

    def __init__(self, shelf: ItemColumns, mask: Flags) -> None:
        self._shelf = shelf
        self.mask = mask

    @cached_property
    def items(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def passages(self) -> Flags:
        """The same by passage."""
        return self.mask if self._shelf.one_passage_each else self.mask[self._shelf.passage_item]

    @cached_property
    def passages_count(self) -> int:
        return int(np.count_nonzero(self.passages))

    @cached_property
    def usual_length(self) -> float:
        """Terms of a passage, on average; at least 1."""
        if not self.passages_count:
            return 1.0
        return max(1.0, float(np.dot(self._shelf.passage_length, self.passages)) / self.passages_count)

    @cached_property
    def sessions(self) -> SessionSizes:
        shelf = self._shelf
        inside = self.mask & (shelf.session_code >= 0)
        codes = shelf.session_code[inside]
        lengths = np.bincount(codes, shelf.length[inside], shelf.sessions).astype(np.float64)
        return SessionSizes(inside, lengths, int(np.count_nonzero(np.bincount(codes, minlength=shelf.sessions))))

    @cached_property
    def without_vector(self) -> Flags | None:
        """Which items of the shelf have no vector, if some of these have none and others do."""
        waiting = self._shelf.unseen & self.mask
        return self._shelf.unseen if waiting.any() and not np.array_equal(waiting, self.mask) else None
