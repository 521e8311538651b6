"""Processes that back up or restore and note how far they are, to be killed in the middle."""

from __future__ import annotations

from pathlib import Path

import perdure
from proof.ledgers import Ledger
from proof.workers.answering import Trap


def back_up(settings: perdure.Settings, path: Path, ledger: Path) -> None:
    told = Ledger(ledger)
    with perdure.open(settings=settings) as engine:
        told.note("begin")
        engine.backup(path, progress=lambda table, rows: told.note(table, rows))
        told.note("end")


def restore(settings: perdure.Settings, path: Path, ledger: Path, trap: Trap | None) -> None:
    told = Ledger(ledger)
    if trap is not None:
        trap.put_up()
        trap.set = True
    told.note("begin")
    perdure.restore(path, settings=settings, replace=True, progress=lambda table, rows: told.note(table, rows))
    told.note("end")
