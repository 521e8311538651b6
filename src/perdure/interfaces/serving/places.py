"""Who holds how many of the places there are. Anyone who comes first leaves room for those who come later."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Protocol


class Places:
    """A caller may hold at most as many as are still free: one alone gets half of them, the next one half of the rest.

    So however many one holds, another one who holds none finds a place.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._taken: Counter[str] = Counter()
        self._used = 0

    def take(self, caller: str) -> bool:
        """Whether there is a place for this caller, which is then taken."""
        if self._taken[caller] >= self._count - self._used:
            if not self._taken[caller]:
                del self._taken[caller]
            return False
        self._taken[caller] += 1
        self._used += 1
        return True

    def leave(self, caller: str) -> None:
        self._used -= 1
        self._taken[caller] -= 1
        if not self._taken[caller]:
            del self._taken[caller]


class Waiting(Protocol):
    """A connection on which no request is going on."""

    def give_up(self) -> None: ...


class WaitingRoom:
    """Connections that have not said what they want, by where they come from. The one that waited longest makes room.

    Nobody can be told apart before they have spoken: refusing the next one would let the silent ones shut the others out.
    """

    def __init__(self, per_address: int, in_all: int) -> None:
        self._per_address = per_address
        self._in_all = in_all
        self._held: OrderedDict[Waiting, str] = OrderedDict()
        self._by_address: dict[str, OrderedDict[Waiting, None]] = {}

    def enter(self, one: Waiting, address: str) -> None:
        """Begin to wait; one that waits already keeps its place."""
        if one in self._held:
            return
        self._held[one] = address
        mine = self._by_address.setdefault(address, OrderedDict())
        mine[one] = None
        if len(mine) > self._per_address:
            self._drop(next(iter(mine)))
        elif len(self._held) > self._in_all:
            self._drop(next(iter(self._held)))

    def leave(self, one: Waiting) -> None:
        address = self._held.pop(one, None)
        if address is None:
            return
        mine = self._by_address[address]
        del mine[one]
        if not mine:
            del self._by_address[address]

    def _drop(self, one: Waiting) -> None:
        self.leave(one)
        one.give_up()
