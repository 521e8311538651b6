"""The chat model: words for words. What the words are worth is decided by others.

The embedder: texts as points, near one another when they mean alike. Where the points are kept is left to others.

The extractor: what a stretch of conversation says about the user's world. It proposes; others decide.

The reranker: an optional second look at the best hits, by a model that reads question and text together.

The summariser: words for a stretch of conversation. What the words must contain is checked by others.

The tokenizer: how many tokens a text costs the model that will read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

from perdure.domain.conversation.digests import Summary, SummaryRequest
from perdure.domain.errors import Unavailable
from perdure.domain.knowledge.proposals import Extraction, ExtractionRequest
from perdure.domain.models import ChatReply, ChatRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]


class ModelTimeout(Unavailable):
    """No answer within the deadline of the request."""


class ModelRefused(Unavailable):
    """The model or its server will not answer: a refusal, a filter, a key that is not accepted, a model unknown to it."""


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """The model as its server knows it; kept with what it wrote."""

    def chat(self, request: ChatRequest) -> ChatReply:
        """The answer. `ModelTimeout`, `ModelRefused`, or another `Unavailable` where a later try may succeed.

        May be slow, may be called from several threads, and is never called inside a transaction. It ends by the
        request's deadline. The server's words are in no error: some servers quote what they were sent, some the key.
        """


TextKind = Literal["query", "passage"]


class Embedder(Protocol):
    @property
    def name(self) -> str:
        """The model, such as `perdure-static-2`. Vectors of two names are never compared."""

    @property
    def version(self) -> str:
        """What else decides a vector: the fingerprint of the weights, or empty where the model's server does not say.

        The same name with another version is another model: its vectors are made again.
        """

    @property
    def dims(self) -> int:
        """Numbers per vector. May ask the model, so it may raise what `embed` raises."""

    def embed(self, texts: Sequence[str], *, kind: TextKind = "passage") -> Vectors:
        """One row of float32 per text, in the order of `texts`, of length 1; no texts give no rows.

        A text in which the model knows no word gives a row of zeros: it is near nothing. The same text gives the same
        row, whatever stands beside it, up to the rounding of the arithmetic. `kind` says whether the text asks or is
        searched; a model that makes no difference between them ignores it. A long text is read up to the model's bound
        or refused with `InvalidInput`, as the model's own docstring says.

        May be slow, may be called from several threads, and is never called inside a transaction. `Unavailable` means
        that a later try may succeed; `InvalidInput` and `Unsupported` mean that it cannot.
        """


class Extractor(Protocol):
    @property
    def name(self) -> str:
        """Name and version, such as `rules/1`; kept with everything it proposes."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        """Proposals from `messages`, each with evidence in one of them.

        May be slow, may be called from several threads, and is never called inside a transaction. The same request gives
        the same answer, or one that means the same.
        """


class Reranker(Protocol):
    @property
    def name(self) -> str:
        """Its name in the trace of a hit."""

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """One score per text, higher is better, in the order of `texts`. Never called inside a transaction."""


class Summariser(Protocol):
    @property
    def name(self) -> str:
        """Name and version, such as `extractive/1`; kept with every digest it writes."""

    def summarise(self, request: SummaryRequest) -> Summary:
        """A text within `chars_max` (and `words_max`, if given) that carries `previous` on over `messages`.

        May be slow, may be called from several threads, and is never called inside a transaction. `Unavailable` means
        that a later try may succeed; whatever else it raises counts as a failure of this try, too.
        """


class TokenCounter(Protocol):
    @property
    def name(self) -> str:
        """Which counter this is, such as `estimate/1` or `o200k`."""

    def count(self, text: str) -> int:
        """Tokens of `text`; 0 for the empty text. Deterministic, and safe to call from several threads."""
