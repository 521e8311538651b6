"""P4: all or nothing. After the faults of P1, P2, P3 and P5, message, job, index, vector and journal are all there or none.

It meets their faults itself, with seeds of its own, and judges nothing but whether the stores are whole: by `verify`, and by a
second reader of the rows that knows nothing of perdure's code.
"""

from __future__ import annotations

import importlib

from proof.harness import Promise, Round

FAULTS = {"P1": "p01_kills", "P2": "p02_every_call", "P3": "p03_power_loss", "P5": "p05_failing_disk"}
ABOUT = ("not whole", "does not heal")


def run(round: Round) -> None:
    every = round.sized(quick=["P1"], full=[*FAULTS])
    for case in round.cases(1, 3, name="rounds"):
        for name in every:
            promise: Promise = importlib.import_module(f"proof.promises.{FAULTS[name]}").PROMISE
            folder = round.folder / f"{case.number}-{name}"
            folder.mkdir()
            seed = case.chance.randrange(2**32)
            part = Round(name, seed, "quick", folder, tell=round.tell, postgres=round.postgres)
            promise.run(part)
            round.count("stores verified", part.counts["stores verified"])
            if part.counts["stores verified"] and all(part.evidence[fault] for fault in promise.evidence):
                round.met(f"the faults of {name}")
            for wrong in part.wrongs:
                if wrong.kind in ABOUT:
                    round.wrong(wrong.kind, f"{name} with seed {seed}: {wrong.what}")


PROMISE = Promise(
    "P4",
    "all or nothing: message, job, index, vector, journal",
    "`verify` and an independent reading of every row after the faults of P1, P2, P3 and P5",
    run,
    ("the faults of P1",),
    "{wrong} orphans in {stores verified} stores",
)
