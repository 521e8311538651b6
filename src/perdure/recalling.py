"""The values of recall, for those who read what `recall` answers, or bring an embedder or a reranker of their own.

>>> from perdure.recalling import Hit
>>> def quoted(hit: Hit) -> str:
...     return f"{hit.speaker}, {hit.at:%Y-%m-%d}: {hit.text}"
"""

from perdure.domain.instructions import Instruction
from perdure.domain.recall import (
    Arm,
    Blend,
    EntryKind,
    Hit,
    LeftOut,
    Neighbour,
    Recall,
    SeriesGap,
    Trace,
    Uncovered,
    Understood,
)
from perdure.handles.recall import RecallFields
from perdure.ports.embedding import Embedder
from perdure.ports.rerank import Reranker

__all__ = [
    "Arm",
    "Blend",
    "Embedder",
    "EntryKind",
    "Hit",
    "Instruction",
    "LeftOut",
    "Neighbour",
    "Recall",
    "RecallFields",
    "Reranker",
    "SeriesGap",
    "Trace",
    "Uncovered",
    "Understood",
]
