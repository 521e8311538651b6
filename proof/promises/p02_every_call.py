"""P2: at whatever call the process dies, what returned is stored, and what did not is there wholly or not at all."""

from __future__ import annotations

from proof.harness import Promise, Round
from proof.kills import die_everywhere, target
from proof.old_scenes import build_sqlite
from proof.operations import OPERATIONS, migration
from proof.strikes import arena


def run(round: Round) -> None:
    with arena() as made:
        oldest = migration(1)
        build_sqlite(made.scene(oldest.scene), 1)
        targets = [target(round, made, operation) for operation in (*OPERATIONS, oldest)]
        round.facts["calls"] = {one.operation.name: one.points[-1][1] for one in targets}
        # A backup is few calls, most of which matter.
        backup = next(one for one in targets if one.operation.name == "backup")
        always = [(backup, act, at) for act, at in backup.parts[1]]
        die_everywhere(round, made, targets, turns=2, always=always)


PROMISE = Promise(
    id="P2",
    says="what returned is stored, and what did not is there wholly or not at all, at whatever call the process dies",
    tried_by="a shim (LD_PRELOAD) kills the process at each system call that changes its files, and halfway through each write, "
    "of append, remember, merge, compact, curate, forget, backup, export, restore, import, jobs, purge, first opening, migration",
    run=run,
    evidence=("died before a call", "died halfway through a write", "found done", "found undone"),
    figure="{wrong} wrong over {kills} kills at {calls} calls",
)
