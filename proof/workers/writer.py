"""A process that writes until it is killed, and notes in its ledgers what it is about to do and what was acknowledged."""

from __future__ import annotations

import random
import sys
import threading
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
class Lane:
    """One writer, in a thread of its own, with a ledger of its own."""

    writer: int
    ledger: Path
    first: int = 0
    """The number of its first new request."""
    again: Request | None = None
    """What its predecessor did not live to see acknowledged, and is asked for once more."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one process is to do."""

    settings: perdure.Settings
    lanes: tuple[Lane, ...]
    seed: str
    kinds: tuple[str, ...] = KINDS


def write_until_killed(given: Assignment) -> None:
    """The first lane opens the store for all; they share the engine, as the threads of a host do."""
    ledgers = [Ledger(lane.ledger) for lane in given.lanes]
    try:
        ledgers[0].note("opening")
        engine = perdure.open(settings=given.settings)
        ledgers[0].note("open")
    except BaseException as error:
        ledgers[0].note("refused", f"{type(error).__name__}: {error}")
        raise
    for lane, ledger in [*zip(given.lanes, ledgers, strict=True)][1:]:
        threading.Thread(target=_write, args=(engine, given, lane, ledger), daemon=True).start()
    _write(engine, given, given.lanes[0], ledgers[0])


def _write(engine: perdure.Engine, given: Assignment, lane: Lane, ledger: Ledger) -> None:
    chance = random.Random(f"{given.seed}/{lane.writer}")
    memory = engine.memory(USER)
    worker = replace(engine.worker(), lease_s=LEASE_S)
    try:
        if lane.again is not None:
            _make(memory, ledger, lane.again)
        for number in range(lane.first, sys.maxsize):
            request = Request(lane.writer, number, chance.choice(given.kinds))
            if chance.random() < WORK_SHARE:
                ledger.note("begin", [lane.writer, number, WORK])
                worker.process(WORK_S)
                ledger.note("done", [lane.writer, number, WORK, None])
            else:
                _make(memory, ledger, request)
    except BaseException as error:
        ledger.note("refused", f"{type(error).__name__}: {error}")
        raise


def _make(memory: perdure.Memory, ledger: Ledger, request: Request) -> None:
    ledger.note("begin", request.plain())
    answer = made(memory, request)
    ledger.note("done", [*request.plain(), answer])
