"""An embedder that does what a test tells it to: places given texts where the test wants them, fails, and can change its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from perdure import Unavailable


class ScriptedEmbedder:
    """Texts that are not in the script stand where their words are: each word is a direction of its own, about."""

    def __init__(self, script: Mapping[str, Sequence[float]] | None = None, *, dims: int = 16, name: str = "scripted") -> None:
        self.name = name
        self.version = "1"
        self.script = dict(script or {})
        self.down = False
        self.asked: list[tuple[str, str]] = []
        """Every text, with its kind."""
        self._dims = dims

    @property
    def dims(self) -> int:
        if self.down:
            raise Unavailable("the embedder does not answer; try later", retry_after_s=1)
        return self._dims

    def embed(self, texts: Sequence[str], *, kind: str = "passage") -> np.ndarray:
        self.asked += [(kind, text) for text in texts]
        if self.down:
            raise Unavailable("the embedder does not answer; try later", retry_after_s=1)
        rows = [self._row(text) for text in texts]
        return np.array(rows, np.float32).reshape(-1, self._dims)

    def _row(self, text: str) -> np.ndarray:
        row = np.zeros(self._dims, np.float32)
        if text in self.script:
            row[: len(self.script[text])] = self.script[text]
        else:
            for word in text.casefold().split():
                row[blake2b(f"{self.name}{self.version}{word}".encode()).digest()[0] % self._dims] += 1
        size = float(np.linalg.norm(row))
        return row / size if size else row
