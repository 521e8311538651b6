"""P5: a disk that is full or fails is a named error to the caller, loses nothing, and needs no restart when it is well again."""

from __future__ import annotations

import errno
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import perdure
from proof.harness import Promise, Round
from proof.old_scenes import build_sqlite
from proof.operations import OPERATIONS, WAIT, Operation, SteppedClock, migration, opened, stuck_jobs
from proof.strikes import Ahead, Arena, Lives, Struck, arena
from proof.syscalls import KINDS, Act, Plan
from proof.wholeness import check_heals, check_whole

PLACES_MAX = 16
"""So many calls of one kind in one operation fail in turn, spread over all of them."""
WAITS_MAX = 3
"""A lock that cannot be had looks like one that others hold: each such call waits for its whole deadline."""
ROOMS = (0, 4_096, 40_000, 200_000)
"""Bytes that are left on a full disk."""
FULL, FILE_LIMIT = "disk full", "file size limit"
AT_WORK = "no room for jobs"
REFUSED_ONCE = "a job refused once"
WORK = "work on much"
ROOMS_AT_WORK = range(0, 320_000, 10_000)
"""The disk is full within one job after the other."""
QUICK_ROUNDS = 2
"""How often the quick round meets each kind."""
QUICK_TRIES = 10
"""It looks so often for a fault that is really met: an operation that needs little room may end on a full disk, too."""
QUICK_OPERATIONS = ("create", "append", "remember", "merge", "forget entity", "backup", "restore", "work", WORK, "purge")
NAMED = frozenset(one.__name__ for one in (perdure.Unavailable, perdure.LimitExceeded))
"""What a caller may be told: to try again later. The other names would say that the call, or the data, is wrong."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: which calls fail, and how."""

    name: str
    calls: tuple[str, ...]
    error: str
    act: Act = "fail"


KINDS_OF_FAULT = (
    Kind("EIO on write", ("write",), "EIO"),
    Kind("ENOSPC on write", ("write",), "ENOSPC"),
    Kind("a write cut short", ("write",), "ENOSPC", "shorten"),
    Kind("EIO on fsync", ("fsync",), "EIO"),
    Kind("EIO on fdatasync", ("fdatasync",), "EIO"),
    Kind("ENOSPC on truncate", ("truncate",), "ENOSPC"),
    Kind("EIO on read", ("read",), "EIO"),
    Kind("EACCES on open", ("open", "create"), "EACCES"),
    Kind("EROFS on create", ("create", "mkdir", "unlink", "rename"), "EROFS"),
    Kind("EMFILE on open", ("open", "create"), "EMFILE"),
    Kind("ENOSPC on mkdir", ("mkdir",), "ENOSPC"),
    Kind("EIO on rename", ("rename",), "EIO"),
    Kind("EIO on unlink", ("unlink",), "EIO"),
    Kind("EIO on lock", ("lock",), "EIO"),
    Kind("ENOMEM on map", ("map",), "ENOMEM"),
    Kind("EIO on close", ("close",), "EIO"),
)


@dataclass(frozen=True, slots=True)
class Trial:
    """One operation that meets one fault."""

    operation: Operation
    states: tuple[str, ...]
    kind: str
    words: str
    plan: Plan
    lives: Lives
    made: tuple[str, ...] = ()
    """What its jobs make when nothing disturbs them."""


def run(round: Round) -> None:
    with arena() as made:
        oldest = migration(1)
        build_sqlite(made.scene(oldest.scene), 1)
        chosen = [one for one in OPERATIONS if one.name in QUICK_OPERATIONS or round.size == "full"]
        everything = [trial for operation in (*chosen, oldest) for trial in _trials(round, made, operation)]
        groups: dict[str, list[Trial]] = {}
        for trial in everything:
            groups.setdefault(trial.kind, []).append(trial)
        round.count("kinds", len(groups))
        kinds = [*groups]
        whole = round.size == "full"

        def struck_by(trial: Trial) -> Struck:
            return made.strike(trial.operation, trial.plan, states=trial.states, **trial.lives)

        with Ahead(struck_by, everything, in_turn=round.numbers(len(everything)) if whole else range(0)) as ahead:
            for case in round.cases(quick=QUICK_ROUNDS * len(kinds), full=len(everything), name="faults"):
                if whole:
                    trial = everything[case.number]
                    _judge(round, trial, ahead.struck(trial, case.number))
                    continue
                some = groups[kinds[case.number % len(kinds)]]
                for trial in case.chance.sample(some, min(QUICK_TRIES, len(some))):
                    if _judge(round, trial, ahead.struck(trial, case.number)):
                        break
        if round.begins:
            _background(round, made)


def _trials(round: Round, arena: Arena, operation: Operation) -> Iterator[Trial]:
    """Every kind of fault at the calls of an operation, once and for good, and a disk without room."""
    states, _ = arena.states(operation)
    counted = arena.strike(operation, Plan(kinds=KINDS))
    # Up to the last step: nobody waits for an answer of `close`.
    log = arena.control.log()[: counted.said("acked")[-1]]
    shutil.rmtree(counted.folder)
    round.count("calls", len(log))
    made = tuple(arena.made(operation)) if operation.jobs_alone else ()
    for trial in _trials_at(operation, tuple(states), log):
        yield replace(trial, made=made)


def _trials_at(operation: Operation, states: tuple[str, ...], log: Sequence[str]) -> Iterator[Trial]:
    for kind in KINDS_OF_FAULT:
        calls = sum(one in kind.calls for one in log)
        for lasting in (False, True):
            for at in _spread(calls, WAITS_MAX if lasting and kind.calls == ("lock",) else PLACES_MAX):
                plan = Plan(kind.calls, at, kind.act, kind.error)
                words = f"{kind.name}, {at} of {calls}, {'for good' if lasting else 'once'}"
                name = REFUSED_ONCE if operation.jobs_alone and kind.calls == ("write",) and not lasting else kind.name
                yield Trial(operation, states, name, words, replace(plan, lasting=lasting), {})
    if operation.name == WORK:
        for room in ROOMS_AT_WORK:
            yield Trial(operation, states, AT_WORK, f"a disk with {room} bytes left", Plan(KINDS), {"room": room})
            words = f"no file may grow by more than {room} bytes"
            yield Trial(operation, states, AT_WORK, words, Plan(KINDS), {"bytes_left": room})
        return
    for room in ROOMS:
        words = f"no file may grow by more than {room} bytes"
        yield Trial(operation, states, FILE_LIMIT, words, Plan(KINDS), {"bytes_left": room})
        yield Trial(operation, states, FULL, f"a disk with {room} bytes left", Plan(KINDS), {"room": room})


def _spread(calls: int, most: int) -> Sequence[int]:
    """All of them, or so many of them, the first and the last included."""
    if calls <= most:
        return range(1, calls + 1)
    return sorted({1 + round(number * (calls - 1) / (most - 1)) for number in range(most)})


def _judge(round: Round, trial: Trial, struck: Struck) -> bool:
    """Look at what came of it. Whether the fault was met, or can be met nowhere here."""
    when = f"{trial.operation.name}: {trial.words}"
    left = [struck.folder]
    if trial.lives.get("room") is not None:
        left.append(Path(f"{struck.folder}-left"))
        if struck.said("not permitted"):
            round.facts["a small file system"] = "not permitted here"
            shutil.rmtree(struck.folder)
            return True
    met = _note_met(round, trial, struck)
    for one in struck.told:
        if "error" in one:
            # SQLite takes a page that the disk does not give back for damage, and so it looks.
            fits = one["error"] in NAMED or (one["error"] == "Corrupt" and "read" in trial.plan.kinds and not trial.lives)
            round.check(fits, "unhandled", f"{when}: at {one['at']}: {one['error']}: {one['says']}")
            round.count("refusals")
        for told in one.get("findings", ()):
            round.wrong("not whole", f"{when}: {told}")
    for text in struck.said("broken"):
        round.wrong("does not heal", f"{when}: {text}")
    round.check(-1 not in struck.said("place"), "torn or lost", f"{when}: {struck.told}")
    if struck.status != 0 and not struck.said("broken"):
        round.wrong("died", f"{when}: ended with {struck.status}")
    for state in struck.said("state"):
        if trial.operation.exact:
            round.check(state == trial.states[-1], "another state", f"{when}: finished, it left another state")
    for one in chain.from_iterable(struck.said("stuck")):
        round.wrong("stuck job", f"{when}: {one}")
    for made in struck.said("made"):
        missing, more = Counter(trial.made) - Counter(made), Counter(made) - Counter(trial.made)
        round.check(not missing and not more, "lost work", f"{when}: missing {[*missing][:5]}, too much {[*more][:5]}")
        round.count("stores whose jobs were compared")
    _look_again(round, trial, struck, left[-1], when)
    for path in left:
        shutil.rmtree(path, ignore_errors=True)
    return met


def _look_again(round: Round, trial: Trial, struck: Struck, folder: Path, when: str) -> None:
    """The process has ended without closing anything: what it acknowledged is there."""
    if not struck.said("state"):
        return
    clock = SteppedClock(2 * len(trial.operation.steps))
    if trial.operation.waits:
        clock.move(seconds=WAIT.total_seconds())  # where the process that has ended has left it
    with round.guarded("does not open"), opened(folder, clock=clock) as engine:
        if trial.operation.exact:
            state = trial.operation.state(engine, folder)
            round.check(state == trial.states[-1], "lost", f"{when}: after its end, the state is another")
        check_whole(round, engine, when=when)
        if not trial.operation.exact:
            check_heals(round, engine, when=when)
            for one in stuck_jobs(engine, clock.now()):
                round.wrong("stuck job", f"{when}: after its end, {one}")


def _note_met(round: Round, trial: Trial, struck: Struck) -> bool:
    refused = bool(struck.said("error"))
    if trial.lives:
        round.count(f"{trial.kind}: refused" if refused else f"{trial.kind}: room enough")
        if refused:
            round.met(trial.kind)
        return refused
    if struck.acted:
        round.met(trial.kind)
        round.met("failed for good" if trial.plan.lasting else "failed once")
        round.count("failed calls", struck.acted)
        for read in struck.said("read"):
            round.count("read meanwhile" if read else "not read meanwhile")
    else:
        round.count("calls not reached")
    return bool(struck.acted)


def _background(round: Round, arena: Arena) -> None:
    """The thread that runs the jobs outlives the fault, and then does what has waited."""
    kinds = [kind for kind in KINDS_OF_FAULT if kind.calls[0] in ("write", "fdatasync", "read", "lock")]
    for kind in round.sized(quick=kinds[:1], full=kinds):
        plan = Plan(kind.calls, 3, kind.act, kind.error, lasting=True)
        struck = arena.strike(OPERATIONS[1], plan, states=(), background=True)
        when = f"background worker: {kind.name}"
        round.count("background workers")
        for one in struck.told:
            if "error" in one:
                fits = one["error"] in NAMED or (one["error"] == "Corrupt" and "read" in kind.calls)
                round.check(fits, "unhandled", f"{when}: {one['says']}")
            if one.get("troubled"):
                round.met("background worker in trouble")
        after = next((one for one in struck.told if "alive" in one), None)
        if after is None:
            round.wrong("does not heal", f"{when}: {struck.told[-1:]}")
        else:
            round.check(after["alive"], "worker died", when)
            round.check(not after["missing"], "lost", f"{when}: {after['missing'][:5]}")
            round.check(not after["waiting"] and not after["trouble"], "does not heal", f"{when}: {after}")
            round.check(not after["findings"], "not whole", f"{when}: {after['findings'][:5]}")
        shutil.rmtree(struck.folder)


assert all(hasattr(errno, kind.error) for kind in KINDS_OF_FAULT)

PROMISE = Promise(
    id="P5",
    says="a disk that is full or fails is refused cleanly, loses nothing acknowledged, and heals without a restart",
    tried_by="a shim (LD_PRELOAD) fails the N-th call, once and for good, in 16 kinds, during every kind of operation; a file "
    "system without room, and files that may not grow; then, in the same process, the rest is done",
    run=run,
    evidence=(
        *(kind.name for kind in KINDS_OF_FAULT[:8]),
        "failed once",
        "failed for good",
        FILE_LIMIT,
        AT_WORK,
        REFUSED_ONCE,
        "background worker in trouble",
    ),
    figure="{wrong} lost, unhandled or not healed over {faults} faults of {kinds} kinds; {refusals} refusals by name",
)
