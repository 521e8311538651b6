"""The embedder: texts as points, near one another when they mean alike. Where the points are kept is left to others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

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
