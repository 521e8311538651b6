"""The tokenizer: how many tokens a text costs the model that will read it."""

from __future__ import annotations

from typing import Protocol


class TokenCounter(Protocol):
    @property
    def name(self) -> str:
        """Which counter this is, such as `estimate/1` or `o200k`."""

    def count(self, text: str) -> int:
        """Tokens of `text`; 0 for the empty text. Deterministic, and safe to call from several threads."""
