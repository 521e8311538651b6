"""Rows of numbers, made comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from perdure.ports.embedding import Vectors


def unit(rows: NDArray[np.floating]) -> Vectors:
    """The rows at length 1, as float32; a row of zeros stays one."""
    import numpy as np

    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    lengths[lengths == 0] = 1
    scaled: Vectors = (rows / lengths).astype(np.float32, copy=False)
    return scaled
