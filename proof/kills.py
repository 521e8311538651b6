"""Death at a system call: the kill points of an operation, and what must be true of the store that a dead process left."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import perdure
from proof.harness import Round
from proof.operations import Operation, SteppedClock, drained, opened, place_in
from proof.strikes import KILLED, Ahead, Arena, Struck
from proof.syscalls import Act, Plan
from proof.wholeness import check_heals, check_whole

LEASE_OVER_H = 2
DRAFT_SUFFIX = ".part"


@dataclass(frozen=True, slots=True)
class Target:
    """An operation, the states between its steps, and the calls at which it can die."""

    operation: Operation
    states: tuple[str, ...]
    points: tuple[tuple[Act, int], ...]
    parts: tuple[tuple[tuple[Act, int], ...], ...]
    """The same, by what was going on: opening, each step, closing."""


Points = Sequence[tuple[Target, Act, int]]
Look = Callable[[Struck, str], None]


def target(round: Round, arena: Arena, operation: Operation) -> Target:
    """Run the operation twice undisturbed: once for its states, once for its calls.

    Dying after a call leaves what dying before the next one leaves; so each call is died before, each write halfway, too,
    and after the last call.
    """
    states, findings = arena.states(operation)
    for finding in findings:
        round.wrong("not whole", f"{operation.name}, undisturbed: {finding}")
    counted = arena.strike(operation, Plan())
    log = arena.control.log()
    if counted.status != 0 or not counted.said("closed"):
        round.wrong("fails undisturbed", f"{operation.name}: {counted.told}")
    shutil.rmtree(counted.folder)
    points: list[tuple[Act, int]] = []
    for number, kind in enumerate(log, start=1):
        points.append(("kill before", number))
        if kind == "write":
            points.append(("kill halfway", number))
    points.append(("kill after", len(log)))
    round.count("calls", len(log))
    bounds = [0, *counted.said("opened"), *counted.said("acked"), len(log)]
    parts = [tuple(point for point in points if first < point[1] <= last) for first, last in pairwise(bounds)]
    return Target(operation, tuple(states), tuple(points), tuple(filter(None, parts)))


def note(round: Round, chosen: Target, struck: Struck, act: Act, at: int) -> None:
    """Whether the child really died there is evidence."""
    if struck.status == KILLED and struck.acted:
        round.met(
            {"kill before": "died before a call", "kill halfway": "died halfway through a write"}.get(act, "died after a call")
        )
        round.count(f"kills in {chosen.operation.name}")
    elif struck.status == 0:
        round.count("calls not reached")
    else:
        round.wrong("fails without a fault", f"{chosen.operation.name}, {act} {at}: ended with {struck.status}: {struck.told}")


def judge(round: Round, chosen: Target, struck: Struck, when: str) -> None:
    """What the dead left: whole; every step that returned is there; the one in flight is, or is not; the rest can be done."""
    operation, states = chosen.operation, chosen.states
    clock = SteppedClock()
    if operation.waits:
        clock.move(hours=LEASE_OVER_H)
    with round.guarded("does not open or go on"), opened(struck.folder, clock=clock) as engine:
        check_whole(round, engine, when=when)
        done = struck.acked
        if operation.exact:
            found = place_in(states[: struck.acked + 2], operation.state(engine, struck.folder), at_least=struck.acked)
            if found is None and not operation.parts:
                round.wrong(
                    "torn or lost", f"{when}: {struck.acked} steps returned, and the store is in no state between steps"
                )
                return
            done = struck.acked if found is None else found
            round.met("found done" if done > struck.acked else "found undone")
        drafts = _taken_drafts(round, struck.folder, when)
        for number in range(done - 1 if done and operation.steps[done - 1].again else done, len(operation.steps)):
            clock.begin(number)
            operation.steps[number].act(engine, struck.folder)
        for name, content in drafts.items():
            whole = (struck.folder / name).read_bytes()
            round.check(
                content == whole, "half a file taken for a whole one", f"{when}: {len(content)} of {len(whole)} bytes of {name}"
            )
        if operation.jobs_after:
            drained(engine)
        if operation.exact:
            after = operation.state(engine, struck.folder)
            # The same rows as those of the undisturbed run, which was verified; so the pages are all that is left to look at.
            round.check(after == states[-1], "not completed by repeating", f"{when}: repeated, it left another state")
            for finding in engine._store.check():
                round.wrong("not whole", f"{when}, then repeated: {finding}")
        else:
            drained(engine)
            check_heals(round, engine, when=when)


def die_everywhere(
    round: Round, arena: Arena, targets: Sequence[Target], *, turns: int, always: Points = (), look: Look | None = None
) -> None:
    """In the full round at every kill point; in the quick one `turns` times in each operation, and at those of `always`.

    `look` sees what each dead process left before anybody opens it.
    """
    everything = [(one, act, at) for one in targets for act, at in one.points]

    def struck_at(place: tuple[Target, Act, int]) -> Struck:
        chosen, act, at = place
        return arena.strike(chosen.operation, Plan(at=at, act=act))

    whole = round.size == "full"
    with Ahead(struck_at, everything, in_turn=round.numbers(len(everything)) if whole else range(0)) as ahead:
        for case in round.cases(quick=turns * len(targets) + len(always), full=len(everything), name="kills"):
            turn, which = divmod(case.number, len(targets))
            if whole:
                place = everything[case.number]
            elif turn < turns:
                parts = targets[which].parts
                place = (targets[which], *case.chance.choice(parts[turn % len(parts)]))
            else:
                place = always[case.number - turns * len(targets)]
            struck = ahead.struck(place, case.number)
            chosen, act, at = place
            note(round, chosen, struck, act, at)
            when = f"{chosen.operation.name}, {act} {at} of {chosen.points[-1][1]}"
            if look is not None:
                look(struck, when)
            judge(round, chosen, struck, when)
            shutil.rmtree(struck.folder)


def _taken_drafts(round: Round, folder: Path, when: str) -> dict[str, bytes]:
    """Files that were being written when the process died: each is refused, or has all that the finished one has.

    It is tried under the name it was to have. What is taken is given back, by that name, to be compared.
    """
    taken = {}
    for draft in [path for path in folder.iterdir() if path.suffix == DRAFT_SUFFIX]:
        # As in `.new.perdure.4711.01234567.part`.
        name = draft.name.removeprefix(".").rsplit(".", 3)[0]
        round.count("drafts left")
        with tempfile.TemporaryDirectory(prefix="proof-draft-") as place:
            posed = Path(place) / name
            shutil.copy(draft, posed)
            try:
                _take(posed, f"sqlite:///{Path(place) / 'new.db'}")
            except (perdure.Corrupt, perdure.InvalidInput):
                round.met("draft refused")
                continue
        round.count("drafts complete")
        taken[name] = draft.read_bytes()
    return taken


def _take(path: Path, url: str) -> None:
    if path.suffix == ".perdure":
        perdure.restore(path, url)
    else:
        with perdure.open(url) as engine:
            engine.memory("ana").import_(path)
