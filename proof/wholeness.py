"""All or nothing: after a fault, the store must be whole. Every promise that meets faults asks here (P4 counts it all)."""

from __future__ import annotations

import perdure
from proof.harness import Round


def check_whole(round: Round, engine: perdure.Engine, *, when: str) -> bool:
    """Nothing in the store is orphaned, torn or contradictory; each finding is a violation."""
    findings = engine.verify().findings
    round.count("stores verified")
    for finding in findings:
        round.wrong("not whole", f"{when}: {finding}")
    return not findings


def check_heals(round: Round, engine: perdure.Engine, *, when: str, seconds: float = 30.0) -> bool:
    """The fault is over: a new write succeeds, the jobs drain without failing, and the store is whole."""
    with round.guarded("does not heal"):
        memory = engine.memory("healing")
        stored = memory.append("user", f"after {when}")
        round.check(memory.messages(1)[-1].id == stored.id, "does not heal", f"{when}: what was just stored is not read back")
        done = engine.process(seconds)
        round.check(done.failed == 0, "does not heal", f"{when}: {done.failed} jobs failed")
        round.count("recoveries")
    return check_whole(round, engine, when=when)
