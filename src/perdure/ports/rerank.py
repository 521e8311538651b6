"""The reranker: an optional second look at the best hits, by a model that reads question and text together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    @property
    def name(self) -> str:
        """What it is called in the trace of a hit."""

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """One score per text, higher is better, in the order of `texts`. Never called inside a transaction."""
