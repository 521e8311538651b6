"""A distribution with a plugin of each kind, as somebody else would publish it. Each part says in a file that it was used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from perdure.adapters.sqlite.store import SqliteStore
from perdure.domain.conversation.digests import Summary, SummaryRequest
from perdure.domain.knowledge.proposals import Evidence, Extraction, ExtractionRequest, Proposal


def used(part: str) -> None:
    with Path(os.environ["TOY_LOG"]).open("a") as log:
        log.write(f"{part}\n")


class ToyEmbedder:
    name, version = "toy", "1"

    def __init__(self, options: str) -> None:
        self.dims = int(options or "4")

    def embed(self, texts: Sequence[str], *, kind: str = "passage") -> np.ndarray:
        used(f"embedder of {self.dims}")
        rows = np.zeros((len(texts), self.dims), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[len(text) % self.dims] = 1.0
        return rows


class ToyReranker:
    name = "toy"

    def __init__(self, options: str) -> None:
        pass

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        used("reranker")
        return [float(text.count("x")) for text in texts]


class ToyExtractor:
    name = "toy/1"

    def __init__(self, options: str) -> None:
        pass

    def extract(self, request: ExtractionRequest) -> Extraction:
        used("extractor")
        told = [one for one in request.messages if one.role == "user"]
        return Extraction(
            tuple(
                Proposal(
                    "PROFILE",
                    "fact",
                    f"Spoke {len(one.content.split())} words",
                    evidence=(Evidence(one.id, 0, len(one.content), one.at),),
                )
                for one in told
            )
        )


class ToySummariser:
    name = "toy/1"

    def __init__(self, options: str) -> None:
        pass

    def summarise(self, request: SummaryRequest) -> Summary:
        used("summariser")
        return Summary("A toy has summed this up.")


def read_toy(text: str) -> Iterator[dict[str, str]]:
    used("importer")
    for line in text.splitlines():
        yield {"memory": line.removeprefix("toy> ")}


def open_store(options: str) -> SqliteStore:
    used("store")
    return SqliteStore(options)


def broken(options: str) -> object:
    raise RuntimeError("a secret of the plugin")
