"""Embedders behind a server: OpenAI's protocol, which most servers speak, and Ollama's own. Needs the extra `models`.

What the server says is checked here and nothing of it is trusted. The way there and back is in `adapters/wire.py`.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

from perdure.adapters.embedding.static import unit
from perdure.adapters.wire import Peer, RequestRefused, Wire, check_address, unreadable
from perdure.domain.errors import InvalidInput
from perdure.domain.values import dataclass, field

if TYPE_CHECKING:
    from perdure.ports.models import TextKind, Vectors

BATCH_TEXTS_MAX = 64
BATCH_CHARS_MAX = 100_000
SURE_CHARS = 2000
"""Every model takes this much. A longer text that is refused is tried by halves; see `HttpEmbedder.embed`."""
REPLY_BYTES_MAX = 64 * 1024 * 1024
CALLS_MAX = 8
DIMS_MAX = 16_384
"""No model's vectors are as long; an answer of more is taken for no answer."""
NUMBER_MAX = 1e100
"""Nothing a model means is as large; its square still fits."""


@dataclass(frozen=True, slots=True)
class ServerModel:
    """Where the model is and how it wants to be asked. The key goes into a header and is shown nowhere."""

    base_url: str
    model: str
    api_key: str = field(default="", repr=False)
    query_prefix: str = ""
    """What the model wants before a text that asks, such as `search_query: `; the model's card says."""
    passage_prefix: str = ""
    deadline_s: float = 60.0
    """How long one call of `embed` may take, pauses included."""

    def __post_init__(self) -> None:
        check_address("embedder", self.base_url, self.model, self.api_key)
        if not 0 < self.deadline_s <= 3600:
            raise InvalidInput(f"the embedder's `deadline_s` = {self.deadline_s} must be more than 0 and at most 3600 seconds")


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between servers: the path, the question, and where the rows are in the answer."""

    path: str
    question: Callable[[str, list[str]], Mapping[str, object]]
    rows: Callable[[Any], list[Any]]
    """Picks the rows in order; whatever it raises over an answer of another shape means that the answer is unreadable."""


def _by_index(answer: Any) -> list[Any]:
    """OpenAI does not promise the order of `data`, so each row says its place; a place missing or taken twice is an error."""
    places = {entry["index"]: entry["embedding"] for entry in answer["data"]}
    rows = [places[at] for at in range(len(places))]
    if len(rows) != len(answer["data"]):
        raise ValueError("a place is taken twice")
    return rows


OPENAI = Dialect("/v1/embeddings", lambda model, texts: {"model": model, "input": texts}, _by_index)
# `truncate` off: a text cut by the server is cut without a word, and where depends on its settings.
OLLAMA = Dialect(
    "/api/embed", lambda model, texts: {"model": model, "input": texts, "truncate": False}, lambda answer: answer["embeddings"]
)


def openai_embedder(server: ServerModel) -> HttpEmbedder:
    """A model behind `POST {base_url}/v1/embeddings`; a `base_url` that ends in `/v1` already is taken as it is."""
    return HttpEmbedder(server, OPENAI)


def ollama_embedder(server: ServerModel) -> HttpEmbedder:
    """A model behind Ollama's `POST {base_url}/api/embed`."""
    return HttpEmbedder(server, OLLAMA)


class HttpEmbedder:
    """Embeds over HTTP: in batches, one after another, within a deadline. Safe to share between threads."""

    def __init__(self, server: ServerModel, dialect: Dialect, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._server = server
        self._dialect = dialect
        base = server.base_url.rstrip("/")
        self._url = base.removesuffix("/v1") + dialect.path if dialect is OPENAI else base + dialect.path
        peer = Peer("embedder", self._url, server.api_key, REPLY_BYTES_MAX, CALLS_MAX)
        self._who = peer.who
        self._wire = Wire(peer, pause=pause)
        self._lock = Lock()
        self._dims: int | None = None

    def __repr__(self) -> str:
        return f"HttpEmbedder({self._url!r}, model={self._server.model!r})"

    @property
    def name(self) -> str:
        return self._server.model

    @property
    def version(self) -> str:
        """Empty, or the fingerprint of the prefixes: no server tells the version of its weights."""
        prefixes = (self._server.query_prefix, self._server.passage_prefix)
        return hashlib.sha256(json.dumps(prefixes).encode()).hexdigest()[:12] if any(prefixes) else ""

    @property
    def dims(self) -> int:
        """Learned from the first answer; asks for one when there was none yet."""
        if self._dims is None:
            return int(self.embed(["length"]).shape[1])
        return self._dims

    def embed(self, texts: Sequence[str], *, kind: TextKind = "passage") -> Vectors:
        """As the port says. Blank texts are not sent; half surrogates are sent as `?`.

        A text that the server refuses as too long is asked for again by its first half, and so on down to `SURE_CHARS`:
        one long text must not keep the others of its batch from being found. What is refused even then is `InvalidInput`.
        """
        import numpy as np

        until = time.monotonic() + self._server.deadline_s
        prefix = self._server.query_prefix if kind == "query" else self._server.passage_prefix
        sent = {row: prefix + _sendable(text) for row, text in enumerate(texts) if text.strip()}
        found = [(rows, self._vectors([sent[row] for row in rows], until)) for rows in _batches(sent)]
        dims = found[0][1].shape[1] if found else self.dims if texts else self._dims or 0
        vectors = np.zeros((len(texts), dims), np.float32)
        for rows, part in found:
            vectors[rows] = part
        return vectors

    def close(self) -> None:
        """Give the connections back. The embedder can be used again: it connects anew."""
        self._wire.close()

    def _vectors(self, texts: list[str], until: float) -> Vectors:
        import numpy as np

        try:
            return self._checked(self._ask(texts, until), len(texts))
        except RequestRefused as error:
            longest = max(map(len, texts))
            if longest <= SURE_CHARS or not error.may_be_length:
                raise
        if len(texts) == 1:
            return self._vectors([texts[0][: max(SURE_CHARS, longest // 2)]], until)
        middle = len(texts) // 2
        return np.concatenate([self._vectors(texts[:middle], until), self._vectors(texts[middle:], until)])

    def _ask(self, texts: list[str], until: float) -> object:
        question = self._dialect.question(self._server.model, texts)
        return self._wire.ask(question, until=until, deadline_s=self._server.deadline_s)

    def _checked(self, answer: object, count: int) -> Vectors:
        import numpy as np

        try:
            table = np.array(self._dialect.rows(answer))
        except (KeyError, TypeError, ValueError) as error:
            raise unreadable(self._who, "it has no rows where they belong") from error
        if table.ndim != 2 or not 0 < table.shape[1] <= DIMS_MAX or table.dtype.kind not in "fiu":
            raise unreadable(self._who, f"its rows are not numbers, of one length up to {DIMS_MAX}")
        if len(table) != count:
            raise unreadable(self._who, f"it has {len(table)} rows for {count} texts")
        if not (np.abs(table) < NUMBER_MAX).all():  # false for NaN, too
            raise unreadable(self._who, "it has numbers that are not finite")
        rows = unit(table.astype(np.float64))
        if not rows.any(axis=1).all():
            # No model means nothing by a text that is not blank; kept, it would hide the text from meaning for good.
            raise unreadable(self._who, "it has rows of zeros")
        with self._lock:
            known = self._dims
            fits = known in (None, table.shape[1])
            # Which of two lengths was wrong, only the next answer can tell: it is learned anew.
            self._dims = table.shape[1] if fits else None
        if not fits:
            raise unreadable(self._who, f"it has {table.shape[1]} numbers a text, where {known} were given before")
        return rows


def _batches(sent: Mapping[int, str]) -> Iterator[list[int]]:
    rows: list[int] = []
    chars = 0
    for row, text in sent.items():
        if rows and (len(rows) == BATCH_TEXTS_MAX or chars + len(text) > BATCH_CHARS_MAX):
            yield rows
            rows, chars = [], 0
        rows.append(row)
        chars += len(text)
    if rows:
        yield rows


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
