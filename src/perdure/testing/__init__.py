"""For your own tests: a clock that stands still, a store that fails on demand, and the contract every store keeps.

`StoreContract` needs pytest; the rest does not.
"""

from typing import TYPE_CHECKING

from perdure.testing.clock import StoppedClock
from perdure.testing.failing import FailingStore

if TYPE_CHECKING:
    from perdure.testing.contract import StoreContract

__all__ = ["FailingStore", "StoppedClock", "StoreContract"]


def __getattr__(name: str) -> object:
    if name != "StoreContract":
        raise AttributeError(f"module 'perdure.testing' has no attribute {name!r}")
    from perdure.testing.contract import StoreContract

    return StoreContract
