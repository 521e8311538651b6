"""The floor of a channel: one turn at a time, held by a lease that a crashed holder loses."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import timedelta

from perdure.domain.conversation.agent_state import TurnLease
from perdure.domain.errors import InvalidInput, PerdureError, Unavailable
from perdure.domain.scope import Scope
from perdure.domain.text.rules import brief
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx

POLL_S = 0.05
LEASE_S = 20.0
WAIT_S = 30.0
"""Longer than a lease: anyone who waits outlives a holder that has died."""
SECONDS_MAX = 86_400.0


@dataclass(frozen=True, slots=True)
class Turns:
    store: Store
    clock: Clock

    def take(self, scope: Scope, *, wait_s: float, lease_s: float) -> HeldTurn:
        """The floor of the channel, waiting for its holder; `Unavailable` when that takes longer than `wait_s`."""
        for name, value in (("wait_s", wait_s), ("lease_s", lease_s)):
            least = 0 if name == "wait_s" else 1
            if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= SECONDS_MAX:
                raise InvalidInput(f"`{name}` = {brief(value)} must be a number of seconds from {least} to {SECONDS_MAX:g}")
        holder = self.clock.new_id()
        pause = threading.Event()
        waited = 0.0
        while not self._take(scope, holder, lease_s):
            if waited >= wait_s:
                raise Unavailable(
                    f"another turn has held this channel for {wait_s:g} s; wait longer with `wait_s`, or try later",
                    retry_after_s=lease_s,
                )
            pause.wait(POLL_S)
            waited += POLL_S
        return HeldTurn(self, scope, holder, lease_s)

    def _take(self, scope: Scope, holder: str, lease_s: float) -> bool:
        now = self.clock.now()
        until = now + timedelta(seconds=lease_s)

        def work(tx: Tx) -> bool:
            held = tx.conversation.lock_turn(scope.address)
            # A lease that ends later than any could was taken before the clock was set back.
            if held is not None and held.holder != holder and now < held.until <= now + timedelta(seconds=SECONDS_MAX):
                return False
            tx.conversation.put_turn(scope.address, TurnLease(holder, until))
            return True

        return self.store.write(scope.owner, work)

    def prolong(self, scope: Scope, holder: str, lease_s: float) -> bool:
        """False if the floor is another's by now."""
        until = self.clock.now() + timedelta(seconds=lease_s)

        def work(tx: Tx) -> bool:
            held = tx.conversation.lock_turn(scope.address)
            if held is None or held.holder != holder:
                return False
            tx.conversation.put_turn(scope.address, TurnLease(holder, until))
            return True

        return self.store.write(scope.owner, work)

    def give_back(self, scope: Scope, holder: str) -> None:
        def work(tx: Tx) -> None:
            held = tx.conversation.lock_turn(scope.address)
            if held is not None and held.holder == holder:
                tx.conversation.put_turn(scope.address, None)

        self.store.write(scope.owner, work)


class HeldTurn:
    """A taken floor, prolonged by a thread of its own until it is given back or its process ends."""

    def __init__(self, turns: Turns, scope: Scope, holder: str, lease_s: float) -> None:
        self._turns = turns
        self._scope = scope
        self._lease_s = lease_s
        self.holder = holder
        self.missed = 0
        """Prolongations that the store refused or could not make."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="perdure-turn", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Give the floor back."""
        self._stop.set()
        self._thread.join()
        self._turns.give_back(self._scope, self.holder)

    def _keep(self) -> None:
        while not self._stop.wait(self._lease_s / 3):
            try:
                if not self._turns.prolong(self._scope, self.holder, self._lease_s):
                    self.missed += 1
                    return
            except PerdureError:
                # Another may take the floor now; the appends of this turn then say so.
                self.missed += 1
