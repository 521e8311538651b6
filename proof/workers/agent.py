"""One of many agents at once: it appends to lists and to a log, reads them, and notes each call with its beginning and end.

Lists are appended to as programs do it: read, add, save if nobody was faster, else begin again.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from pathlib import Path

import perdure
from proof.ledgers import Ledger
from proof.processes import until

USER = "ana"
LOG = "log"
LISTS = ("list-0", "list-1")
LOG_SHOWN = 25
ATTEMPTS_MAX = 100
"""One of those who try at the same time succeeds, so that so many failures in a row are no chance any more."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one agent is to do."""

    settings: perdure.Settings
    ledger: Path
    go: Path
    """It begins when this file is there, together with the others."""
    name: str
    seed: str
    calls: int


def act(part: Part) -> None:
    ledger = Ledger(part.ledger)
    chance = random.Random(part.seed)
    try:
        with perdure.open(settings=part.settings) as engine:
            memory = engine.memory(USER)
            memory.messages(1)
            ledger.note("ready")
            until(part.go.exists, "the others are ready")
            for number in range(part.calls):
                what = chance.choices(("add", "append", "read list", "read log"), (35, 25, 25, 15))[0]
                key = chance.choice(LISTS)
                name = f"{part.name}-{number}"
                if what == "add":
                    _add(memory, ledger, key, name)
                elif what == "append":
                    began = time.monotonic_ns()
                    seq = memory.append("user", name).seq
                    ledger.note("added", [LOG, name, seq, began, time.monotonic_ns()])
                elif what == "read list":
                    _read(memory, ledger, key)
                else:
                    began = time.monotonic_ns()
                    shown = [(one.seq, one.content) for one in memory.messages(LOG_SHOWN)]
                    ledger.note("log read", [shown, began, time.monotonic_ns()])
        ledger.note("end")
    except BaseException as error:
        ledger.note("refused", f"{type(error).__name__}: {error}")
        raise


def _read(memory: perdure.Memory, ledger: Ledger, key: str) -> tuple[list[str], int]:
    began = time.monotonic_ns()
    held = memory.state.find(key)
    value = held.value if isinstance(held.value, list) else []
    ledger.note("list read", [key, value, held.revision, began, time.monotonic_ns()])
    return [str(one) for one in value], held.revision


def _add(memory: perdure.Memory, ledger: Ledger, key: str, name: str) -> None:
    for attempt in range(ATTEMPTS_MAX):
        value, revision = _read(memory, ledger, key)
        # Each attempt has a name of its own: one that was refused must leave nothing.
        element = f"{name}.{attempt}"
        began = time.monotonic_ns()
        try:
            number = memory.state.save(key, [*value, element], expected=revision)
        except perdure.Conflict:
            ledger.note("too late", [key, element, revision, began, time.monotonic_ns()])
            continue
        ledger.note("added", [key, element, number, began, time.monotonic_ns()])
        return
    raise TimeoutError(f"others were faster {ATTEMPTS_MAX} times in a row")
