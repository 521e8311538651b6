"""The values of the overseer, for those who read what `before`, `after` and `run` answer.

>>> from perdure.oversight import Injection
>>> def why(given: Injection) -> list[str]:
...     return [f"{choice.kind} {choice.id}: {choice.reason}" for choice in given.choices if choice.included]
"""

from perdure.domain.context import Block
from perdure.domain.oversight import Choice, Decision, Injection, Kept, SaveMode, SeriesOffer, Target
from perdure.handles.oversight import AfterFields, BeforeFields, Ran, RunFields

__all__ = [
    "AfterFields",
    "BeforeFields",
    "Block",
    "Choice",
    "Decision",
    "Injection",
    "Kept",
    "Ran",
    "RunFields",
    "SaveMode",
    "SeriesOffer",
    "Target",
]
