"""The extractor: what a stretch of conversation says about the user's world. It proposes; others decide."""

from __future__ import annotations

from typing import Protocol

from perdure.domain.knowledge import Extraction, ExtractionRequest


class Extractor(Protocol):
    @property
    def name(self) -> str:
        """Name and version, such as `rules/1`; kept with everything it proposes."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals from `messages`, each with evidence in one of them.

        May be slow, may be called from several threads, and is never called inside a transaction. The same request gives
        the same answer, or one that means the same.
        """
