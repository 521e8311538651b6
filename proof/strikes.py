"""Trials of operations under a fault: scenes made once, a process that forks one child per trial, and what each one told."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

from perdure.domain.reports import Finding
from proof.operations import WAIT, Operation, SteppedClock, drained, fill, leave_work, made_by_jobs, opened, states_of
from proof.syscalls import Control, Plan, environment

if TYPE_CHECKING:
    from typing import Unpack

Place = TypeVar("Place")
ROOT = Path(__file__).parents[1]
KILLED = -9
IN_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, slots=True)
class Struck:
    """What became of one child."""

    folder: Path
    status: int
    """How it ended; below zero by a signal."""
    told: tuple[dict[str, Any], ...]
    seen: int
    acted: int

    @property
    def acked(self) -> int:
        """Steps that returned before it died."""
        return sum("acked" in one for one in self.told)

    def said(self, name: str) -> list[Any]:
        return [one[name] for one in self.told if name in one]


class Lives(TypedDict, total=False):
    """How a child that outlives its fault meets it, if not at a call."""

    bytes_left: int | None
    """No file may grow by more than so many bytes."""
    room: int | None
    """Its disk is small, and has so many bytes left."""
    background: bool
    """Its jobs are run by a thread of its own."""


class Arena:
    """Scenes, the process that is struck, and folders for the trials, each removed when it has been looked at."""

    def __init__(self, folder: Path) -> None:
        self._scenes = folder / "scenes"
        self._trials = folder / "trials"
        self._trials.mkdir(parents=True)
        self._scenes.mkdir()
        self._number = 0
        self.control = Control(folder / "control", under=self._trials)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "proof.workers.struck"],
            cwd=ROOT,
            env=environment(self.control),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def scene(self, name: str) -> Path:
        """The folder of a scene, made when first asked for; `v1` and so on are put there by whoever needs them."""
        path = self._scenes / name
        if not path.exists():
            path.mkdir()
            if name in ("filled", "waiting"):
                with opened(path) as engine:
                    fill(engine, path)
                    if name == "waiting":
                        leave_work(engine)
        return path

    def copy(self, scene: str) -> Path:
        """A folder of its own with that scene."""
        self._number += 1
        path = self._trials / f"{self._number}"
        shutil.copytree(self.scene(scene), path)
        return path

    def states(self, operation: Operation) -> tuple[list[str], tuple[Finding, ...]]:
        """The states before, between and after the steps of an operation that nothing disturbs; what is unsound then."""
        path = self.copy(operation.scene)
        try:
            return states_of(operation, path)
        finally:
            shutil.rmtree(path)

    def made(self, operation: Operation) -> list[str]:
        """What its jobs make when nothing disturbs them."""
        path = self.copy(operation.scene)
        clock = SteppedClock(0)
        try:
            with opened(path, clock=clock) as engine:
                for wait in (timedelta(0), WAIT):
                    clock.move(seconds=wait.total_seconds())
                    drained(engine)
                return made_by_jobs(engine)
        finally:
            shutil.rmtree(path)

    def strike(self, operation: Operation, plan: Plan, *, states: Sequence[str] | None = None, **more: Unpack[Lives]) -> Struck:
        """Run the operation in a child under that plan. With `states`, the child outlives the fault and finishes its work."""
        self._number += 1
        path = self._trials / f"{self._number}"
        asked = {"scene": str(self.scene(operation.scene)), "folder": str(path), "operation": operation.name}
        asked |= {"plan": asdict(plan), "states": states}  # type: ignore[dict-item]
        asked |= {"bytes_left": None, "room": None, "background": False, **more}  # type: ignore[dict-item]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the process that is struck ended with {self._process.wait(10)}")
        answer = json.loads(line)
        if answer["late"]:
            raise TimeoutError(f"{operation.name} under {plan} did not end: {answer['told'][-3:]}")
        return Struck(path, answer["status"], tuple(answer["told"]), answer["seen"], answer["acted"])

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self.control.close()


class Ahead(Generic[Place]):
    """Strikes the next place while what the one before has left is judged, as long as they are tried in turn."""

    def __init__(self, strike: Callable[[Place], Struck], places: Sequence[Place], *, in_turn: range) -> None:
        self._strike = strike
        self._places = places
        self._in_turn = in_turn
        self._pool = ThreadPoolExecutor(1)
        self._following: Future[Struck] | None = None

    def struck(self, place: Place, number: int) -> Struck:
        """The child of that place, which is the one of that number if they are tried in turn."""
        struck = self._strike(place) if self._following is None else self._following.result()
        goes_on = number + 1 in self._in_turn
        self._following = self._pool.submit(self._strike, self._places[number + 1]) if goes_on else None
        return struck

    def __enter__(self) -> Ahead[Place]:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()


@contextmanager
def arena() -> Iterator[Arena]:
    """In memory if the system has such a folder: what a dead process wrote is in the kernel's hands either way, on any disk."""
    with tempfile.TemporaryDirectory(prefix="proof-arena-", dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as name:
        made = Arena(Path(name))
        try:
            yield made
        finally:
            made.close()
