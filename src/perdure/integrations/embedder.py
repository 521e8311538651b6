"""Embeddings of LangChain as an embedder of the engine: `perdure.open(…, embedder=EmbedderFrom(embeddings, …))`.

It asks for two calls, `embed_documents` and `embed_query`, and imports nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from perdure.domain.errors import InvalidInput


class TextEmbeddings(Protocol):
    """What of LangChain's `Embeddings` is called."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]: ...
    def embed_query(self, text: str) -> list[float]: ...


class EmbedderFrom:
    """Vectors are kept under `name`, `version` and `dims`: a change of any has them made anew."""

    def __init__(self, embeddings: TextEmbeddings, *, name: str, dims: int, version: str = "1") -> None:
        if not callable(getattr(embeddings, "embed_documents", None)) or not callable(getattr(embeddings, "embed_query", None)):
            raise InvalidInput(f"`embeddings` is a `{type(embeddings).__name__}`; it needs `embed_documents` and `embed_query`")
        self.name, self.dims, self.version = name, dims, version
        self._embeddings = embeddings

    def embed(self, texts: Sequence[str], *, kind: str) -> list[list[float]]:
        """A vector for each text; `kind` is `query` for what is asked, `passage` for what is kept."""
        if kind == "query":
            return [self._embeddings.embed_query(text) for text in texts]
        return self._embeddings.embed_documents(list(texts))
