"""A store that fails when told to, to see what callers make of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from perdure.domain.errors import PerdureError, Unavailable
from perdure.domain.scope import Owner
from perdure.ports.store import Store, Tx, View

if TYPE_CHECKING:
    from typing import Any

T = TypeVar("T")


class FailingStore:
    """A store that fails on demand, over another store."""

    def __init__(self, inner: Store) -> None:
        self._inner = inner
        self._before: list[PerdureError] = []
        self._after: list[PerdureError] = []

    def fail_next(self, *errors: PerdureError) -> None:
        """The next transactions raise these and do nothing."""
        self._before.extend(errors)

    def lose_next_answer(self, times: int = 1) -> None:
        """The next writes are made, but the caller is told otherwise, as when a connection breaks during COMMIT."""
        self._after.extend(Unavailable("the answer was lost; try again") for _ in range(times))

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        if self._before:
            raise self._before.pop(0)
        return self._inner.read(owner, work, deadline_s=deadline_s)

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        if self._before:
            raise self._before.pop(0)
        result = self._inner.write(owner, work, deadline_s=deadline_s)
        if self._after:
            raise self._after.pop(0)
        return result

    def __getattr__(self, name: str) -> Any:
        # Whatever else the port has is passed on unchanged; the port's own type says what that is.
        return getattr(self._inner, name)
