"""A process whose files the shim watches: it forks a child for each trial, in which an operation meets its fault.

Asked by lines of JSON on its input (`proof/strikes.py` asks), it answers each with one line. Of itself it opens no store.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import perdure
import proof.workers.warm  # noqa: F401 - everything a store needs is imported before the first fork
from proof import small_disk
from proof.operations import WAIT, Act, Operation, SteppedClock, drained, made_by_jobs, named, settings, stuck_jobs
from proof.syscalls import VARIABLE, Control, Plan

CHILD_S = 900
"""Of the clock, against a child that hangs."""
FAULT_S = 1.2
TROUBLE_S = 30.0
"""So long it is waited for a worker that notices: a busy machine lets its thread run late."""
HEALED_S = 150.0
Tell = Callable[[object], None]


def main() -> None:
    control = Control(Path(os.environ[VARIABLE]))
    for line in sys.stdin:
        print(json.dumps(answered(json.loads(line), control)), flush=True)


def answered(asked: dict[str, Any], control: Control) -> dict[str, Any]:
    """Copy the scene, fork, and say what the child told and how it ended."""
    folder = Path(asked["folder"])
    shutil.copytree(asked["scene"], folder)
    receiving, sending = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(receiving)
        _child(asked, folder, control, sending)
    os.close(sending)
    late = not select.select([handle := os.pidfd_open(pid)], [], [], CHILD_S)[0]
    os.close(handle)
    if late:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    control.disarm()
    with os.fdopen(receiving, "rb") as told:
        lines = [json.loads(line) for line in told.read().splitlines()]
    return {
        "status": os.waitstatus_to_exitcode(status),
        "late": late,
        "told": lines,
        "seen": control.seen,
        "acted": control.acted,
    }


def _child(asked: dict[str, Any], folder: Path, control: Control, sending: int) -> None:
    def tell(what: object) -> None:
        os.write(sending, json.dumps(what).encode() + b"\n")

    try:
        operation = named(asked["operation"])
        plan = Plan(**{**asked["plan"], "kinds": tuple(asked["plan"]["kinds"])})
        if asked["states"] is None:
            until_killed(operation, folder, control, plan, tell)
        elif asked["background"]:
            in_background(folder, Fault(plan, control, folder), tell)
        elif asked["room"] is not None:
            _on_a_small_disk(asked, operation, folder, Fault(plan, control, folder, room=asked["room"]), tell)
        else:
            fault = Fault(plan, control, folder, bytes_left=asked["bytes_left"])
            through(operation, folder, fault, asked["states"], tell)
        os._exit(0)
    except BaseException:
        tell({"broken": traceback.format_exc(limit=-6)})
    finally:
        os._exit(1)


def _on_a_small_disk(asked: dict[str, Any], operation: Operation, folder: Path, fault: Fault, tell: Tell) -> None:
    """As `through`, on a file system of its own; what is on it at the end is put beside the folder."""
    if not small_disk.mount(folder):
        tell({"not permitted": True})
        return
    shutil.copytree(asked["scene"], folder, dirs_exist_ok=True)
    through(operation, folder, fault, asked["states"], tell)
    shutil.copytree(folder, f"{folder}-left", ignore=shutil.ignore_patterns("*-shm"))


def until_killed(operation: Operation, folder: Path, control: Control, plan: Plan, tell: Tell) -> None:
    """Do the steps and close the store; tell of each step when it has returned. Somewhere in there the process dies."""
    clock = SteppedClock()
    if operation.opening:
        control.arm(plan)
    engine = perdure.open(settings=settings(folder), clock=clock)
    if operation.opening:
        tell({"opened": control.seen})
    else:
        engine.memory("ana").messages(1)
        control.arm(plan)
    for number, step in enumerate(operation.steps):
        clock.begin(number)
        step.act(engine, folder)
        tell({"acked": control.seen})
    engine.close()
    tell({"closed": control.seen})


class Fault:
    """A disk that fails from a certain call on, on which no file may grow, or which is full; until it is well again."""

    def __init__(
        self, plan: Plan, control: Control, folder: Path, *, bytes_left: int | None = None, room: int | None = None
    ) -> None:
        self.plan = plan
        self._control = control
        self._folder = folder
        self._bytes_left = bytes_left
        self._room = room
        _, self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    @property
    def lasting(self) -> bool:
        return self.plan.lasting or self._bytes_left is not None or self._room is not None

    def begin(self) -> None:
        if self._room is not None:
            small_disk.leave(self._folder, self._room)
        if self._bytes_left is not None:
            # Python ignores the signal that comes with it, so that writes fail as they do on a full disk.
            largest = max((path.stat().st_size for path in self._folder.rglob("*") if path.is_file()), default=0)
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest + self._bytes_left, self._hard))
        self._control.arm(self.plan)

    def end(self) -> None:
        self._control.disarm()
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._hard, self._hard))
        if self._room is not None:
            small_disk.make_room(self._folder)


def through(operation: Operation, folder: Path, fault: Fault, states: Sequence[str], tell: Tell) -> None:
    """In one process: do the steps while the disk fails, then, when it does no more, what is left of them.

    Told are the steps that returned, each error by its class, what could be read meanwhile, and the state at the end.
    """
    clock = SteppedClock()
    engine: perdure.Engine | None = None

    def open_() -> perdure.Engine:
        return perdure.open(settings=settings(folder), clock=clock)

    if not operation.opening:
        engine = open_()
        engine.memory("ana").messages(1)
    fault.begin()
    if engine is None:
        engine = _tried(open_, "open", tell)
    done = 0
    if engine is not None:
        opened = engine
        while done < len(operation.steps):
            clock.begin(done)
            act = operation.steps[done].act
            if _tried(partial(_returned, act, opened, folder), done, tell) is None:
                break
            tell({"acked": done})
            done += 1
        if fault.lasting and done < len(operation.steps) and operation.scene == "filled":
            read = _tried(lambda: len(opened.memory("bob").messages(100)), "read", tell)
            tell({"read": read})
    fault.end()
    _finish(operation, folder, states, tell, engine or open_(), clock, done)


def _finish(
    operation: Operation,
    folder: Path,
    states: Sequence[str],
    tell: Tell,
    engine: perdure.Engine,
    clock: SteppedClock,
    done: int,
) -> None:
    """The fault is over: in the same process, on the same engine, the rest is done."""
    if operation.exact and not operation.parts:
        found = operation.state(engine, folder)
        place = states.index(found, done) if found in states[done:] else -1
        tell({"place": place, "done": done})
        if place < 0:
            return
        done = place
    if operation.waits:
        clock.move(seconds=WAIT.total_seconds())
    for number in range(done, len(operation.steps)):
        # Of jobs, some were done before the fault: their ids are taken.
        clock.begin(number if operation.exact else number + len(operation.steps))
        operation.steps[number].act(engine, folder)
        tell({"acked": number})
    if operation.jobs_after or not operation.exact:
        # Where the steps were all done in spite of the fault, nobody has run yet what came due since.
        drained(engine)
    tell({"state": operation.state(engine, folder), "findings": [str(one) for one in engine.verify().findings]})
    if not operation.exact:
        tell({"stuck": [*stuck_jobs(engine, clock.now())]})
    if operation.jobs_alone:
        tell({"made": made_by_jobs(engine)})
    # No `close`: what was acknowledged must not depend on it.


def in_background(folder: Path, fault: Fault, tell: Tell) -> None:
    """A worker thread meets the fault while messages come; afterwards the same thread does all that is waiting."""
    engine = perdure.open(settings=settings(folder), background=True)
    thread = next(one for one in threading.enumerate() if one.name == "perdure-worker")
    memory = engine.memory("ana")
    fault.begin()
    until = time.monotonic() + FAULT_S
    number = 0
    while time.monotonic() < until:
        _tried(partial(memory.append, "user", f"in trouble {number}", id=f"t{number}"), number, tell)
        number += 1
        time.sleep(0.02)
    until = time.monotonic() + TROUBLE_S
    while not engine._trouble() and time.monotonic() < until:
        time.sleep(0.02)
    tell({"troubled": engine._trouble()})
    fault.end()
    stored = [memory.append("user", f"in trouble {one}", id=f"t{one}").id for one in range(number)]
    until = time.monotonic() + HEALED_S
    while waiting(engine) and time.monotonic() < until:
        time.sleep(0.02)
    held = {message.id for message in memory.messages(1_000)}
    tell(
        {
            "alive": thread.is_alive(),
            "waiting": waiting(engine),
            "missing": [one for one in stored if one not in held],
            "trouble": engine.health().worker_trouble,
            "findings": [str(one) for one in engine.verify().findings],
        }
    )


def waiting(engine: perdure.Engine) -> int:
    """Jobs that are running or given up, that have failed, and whether any is late."""
    report = engine._store.queue(datetime.now(UTC))
    return report.running + report.failing + report.dead + (report.late_s > 0)


def _returned(act: Act, engine: perdure.Engine, folder: Path) -> bool:
    act(engine, folder)
    return True


def _tried(call: Callable[[], Any], what: object, tell: Tell) -> Any:
    """What it gives, or None and the class of the error."""
    try:
        return call()
    except perdure.PerdureError as error:
        tell({"error": type(error).__name__, "at": what, "says": str(error)[:300]})
    except BaseException as error:
        tell({"error": None, "at": what, "says": "".join(traceback.format_exception(error, limit=-6))[-1500:]})
    return None


if __name__ == "__main__":
    with suppress(KeyboardInterrupt, BrokenPipeError):
        main()
