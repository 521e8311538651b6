"""Processes that carry a request out and die before they can say so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import apsw

import perdure
from proof.ledgers import Ledger
from proof.processes import die
from proof.requests import Request, made

When = Literal["before", "after"]


@dataclass(slots=True)
class Trap:
    """Kills this process at a commit of SQLite: the last thing before it, or the first thing after it."""

    when: When
    left: int
    set: bool = False

    def put_up(self) -> None:
        apsw.connection_hooks.append(self._hook)

    def _hook(self, connection: apsw.Connection) -> None:
        # SQLite calls the one when the transaction is about to be written, the other when it is written and synced.
        if self.when == "before":
            connection.set_commit_hook(lambda: self._step(False))
        else:
            connection.set_wal_hook(lambda *_: self._step(0))

    def _step(self, goes_on: int) -> int:
        if self.set:
            self.left -= 1
            if self.left == 0:
                die()
        return goes_on


def ask_and_die(settings: perdure.Settings, user: str, request: Request, when: When) -> None:
    """Make the request; this process does not outlive its commit."""
    trap = Trap(when, 1)
    trap.put_up()
    with perdure.open(settings=settings) as engine:
        memory = engine.memory(user)
        memory.messages(1)
        trap.set = True
        made(memory, request)


def serve(settings: perdure.Settings, ledger: Path, trap: Trap | None) -> None:
    """The HTTP API until killed; with a trap, until that many commits from now. Where it listens stands in the ledger."""
    from perdure.interfaces import server

    if trap is not None:
        trap.put_up()
    told = Ledger(ledger)
    listening = server.listen("127.0.0.1", 0)
    with perdure.open(settings=settings) as engine:
        app = server.build(engine, server.Options(no_auth=True))
        if trap is not None:
            trap.set = True
        server.run(app, listening, lambda: told.note("listening", listening.port))
