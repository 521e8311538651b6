"""A process that writes until it is killed, and notes in its ledger what it is about to do and what was acknowledged."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import perdure
from proof.ledgers import Ledger
from proof.requests import KINDS, Request, made

USER = "ana"
WORK = "work"
"""Not a request: the writer runs jobs for a moment, as the background thread of a host does."""
LEASE_S = 0.3
WORK_S = 0.02
WORK_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one writer is to do."""

    settings: perdure.Settings
    ledger: Path
    writer: int
    first: int
    """The number of its first new request."""
    seed: str
    again: Request | None = None
    """What its predecessor did not live to see acknowledged, and is asked for once more."""
    kinds: tuple[str, ...] = KINDS
    works: bool = True


def write_until_killed(given: Assignment) -> None:
    ledger = Ledger(given.ledger)
    try:
        ledger.note("opening")
        engine = perdure.open(settings=given.settings)
        ledger.note("open")
        chance = random.Random(given.seed)
        memory = engine.memory(USER)
        worker = replace(engine.worker(), lease_s=LEASE_S)
        if given.again is not None:
            _make(memory, ledger, given.again)
        for number in range(given.first, sys.maxsize):
            request = Request(given.writer, number, chance.choice(given.kinds))
            if given.works and chance.random() < WORK_SHARE:
                ledger.note("begin", [given.writer, number, WORK])
                worker.process(WORK_S)
                ledger.note("done", [given.writer, number, WORK, None])
            else:
                _make(memory, ledger, request)
    except BaseException as error:
        ledger.note("refused", f"{type(error).__name__}: {error}")
        raise


def _make(memory: perdure.Memory, ledger: Ledger, request: Request) -> None:
    ledger.note("begin", request.plain())
    answer = made(memory, request)
    ledger.note("done", [*request.plain(), answer])
