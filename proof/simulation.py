"""The seeded simulation of the whole system: many users and agents, a stopped clock, faults at every port, one process.

Every fourth seed runs twice, on SQLite and in memory, and both must give the same trace: that one seed always means one run,
and that the stores agree. A failing seed is told with the invariant that was violated first, and with the fewest calls that show it.
"""

from __future__ import annotations

import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import proof.simulated.calls as public
from proof.simulated.expected import Violated, must
from proof.simulated.world import World

CALLS = 200
COMPARED_EVERY = 4
"""Of so many seeds, one is also run in memory and compared."""
SHOWN = 15
"""Lines of the trace that are told of a failing seed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed that shows a defect."""

    seed: int
    invariant: str
    detail: str
    backend: str
    calls: int
    """How many calls it takes to show it."""
    trace: tuple[str, ...] = ()

    @property
    def replay(self) -> str:
        return f"python -m proof simulate --start {self.seed} --seeds 1 --trace"

    def __str__(self) -> str:
        lines = "\n".join(f"    {line}" for line in self.trace[-SHOWN:])
        return f"seed {self.seed} ({self.backend}, {self.calls} calls): {self.detail}\n{lines}\n  again: {self.replay}"


@dataclass(slots=True)
class Ran:
    """One run of one seed."""

    hash: str = ""
    trace: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    violated: Violated | None = None


def simulate(
    seeds: Iterable[int], *, tell: Callable[[str], None] = print, calls: int = CALLS, shrink: bool = True
) -> list[Failure]:
    """Run the seeds; those that fail, each with what it shows."""
    failures = []
    for number, seed in enumerate(seeds, 1):
        failure = tried(seed, calls=calls, shrink=shrink)
        if failure is not None:
            failures.append(failure)
            tell(str(failure))
        elif number % 25 == 0:
            tell(f"{number} seeds, {len(failures)} failed")
    return failures


def tried(seed: int, *, calls: int = CALLS, shrink: bool = True) -> Failure | None:
    """What is wrong with a seed; None: nothing."""
    runs = {}
    for backend in ("sqlite", "memory") if seed % COMPARED_EVERY == 0 else ("sqlite",):
        runs[backend] = ran = run(seed, backend, calls=calls)
        if ran.violated is not None:
            fewest = _shrunk(seed, backend, calls) if shrink else calls
            ran = run(seed, backend, calls=fewest)
            shown = ran.violated or Violated("a seed always means one run", "it failed once, and then it did not")
            return Failure(seed, shown.invariant, str(shown), backend, fewest, tuple(ran.trace))
    if "memory" in runs and runs["sqlite"].hash != runs["memory"].hash:
        pairs = zip(runs["sqlite"].trace, runs["memory"].trace, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), ("one", "is longer"))
        again = run(seed, "sqlite", calls=calls).hash == runs["sqlite"].hash
        what = "the stores agree" if again else "a seed always means one run"
        return Failure(seed, what, f"{what}: {first[0][:500]} | {first[1][:500]}", "both", calls)
    return None


def run(seed: int, backend: str = "sqlite", *, calls: int = CALLS) -> Ran:
    """One world from its beginning to its end."""
    with _folder() as folder:
        world = World(seed, backend, folder)
        ran = Ran()
        try:
            for _ in range(calls):
                _step(world)
            _end(world)
        except Violated as violated:
            ran.violated = violated
        except Exception as error:
            ran.violated = Violated("nothing else is raised", "".join(traceback.format_exception(error, limit=-6)))
        finally:
            world.change_to_calm()
            world.close()
        world.counts["faults"] = world.store.faults + world.model.faults + world.embedder.faults
        world.counts["faults"] += sum(source.faults for source in world.sources.values())
        ran.hash, ran.trace, ran.counts = world.hash, world.trace, world.counts
        return ran


def _step(world: World) -> None:
    chance = world.chance
    if chance.random() < 0.06:
        world.change_weather()
    if chance.random() < 0.15:
        world.clock.move(seconds=chance.choice([1, 60, 600, 2_000, 90_000, 260_000]))
    if chance.random() < 0.07:
        world.process()
    if chance.random() < 0.01:
        world.abandon_jobs()
    if chance.random() < 0.008:
        world.crash()
    weights, calls = zip(*public.CALLS, strict=True)
    [call] = chance.choices(calls, weights)
    call(world)
    world.counts["calls"] += 1


def _end(world: World) -> None:
    """The faults are over: everything is worked off and whole, and stays so when the store is opened anew."""
    world.drain()
    must(not (found := world.engine.verify().findings), "the store is whole", found)
    public.check_everything(world)
    world.check_rows()
    world.check_files()
    world.crash()
    public.check_everything(world)


def _shrunk(seed: int, backend: str, calls: int) -> int:
    """The fewest first calls after which it fails, as far as halving finds them."""
    low, high = 0, calls
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if run(seed, backend, calls=middle).violated is not None else (middle, high)
    return high


@contextmanager
def _folder() -> Iterator[Path]:
    # In memory where there is such a place: no seed needs a disk that is slow.
    shared = Path("/dev/shm")
    path = Path(tempfile.mkdtemp(prefix="simulation-", dir=shared if shared.is_dir() else None))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
