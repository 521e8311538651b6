"""The seeded simulation of the whole system: many users and agents, a stopped clock, faults at every port, one process.

Every fourth seed runs twice, on SQLite and in memory, and both must give the same trace: that one seed always means one run,
and that the stores agree. A failing seed is told with the invariant that was violated first, and with the fewest calls that show it.
"""

from __future__ import annotations

import random
import shutil
import sys
import tempfile
import time
import traceback
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import proof.simulated.calls as public
from proof.arguments import Parser, positive
from proof.simulated.expected import Violated, must
from proof.simulated.world import World

SEEDS = 50
CALLS = 200
COMPARED_EVERY = 4
"""Of so many seeds, one is also run in memory and compared."""
SEEDS_TO_MEET_ALL = 50
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
        where = " --backend memory" if self.backend == "memory" else ""
        return f"python -m proof simulate --seed {self.seed} --calls {self.calls}{where} --trace"

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


def main(argv: Sequence[str] | None = None) -> int:
    """The command line: `--seeds N`, from a new place or from `--start S`; `--seed S` alone; with `--trace`, each call of one seed."""
    given = _given(argv)
    start = random.SystemRandom().randrange(10**9) if given.start is None else given.start
    if given.trace:
        ran = run(start, given.backend or "sqlite", calls=given.calls)
        print("\n".join(ran.trace))
        print(f"trace {ran.hash}; {dict(ran.counts)}; {ran.violated or 'nothing is wrong'}")
        return 0 if ran.violated is None else 1
    print(f"seeds {start} to {start + given.seeds - 1}", file=sys.stderr)
    began = time.monotonic()
    seeds = range(start, start + given.seeds)
    failures = simulate(seeds, calls=given.calls, jobs=given.jobs, shrink=not given.first, first=given.first)
    took = time.monotonic() - began
    print(
        f"{given.seeds} {'seed' if given.seeds == 1 else 'seeds'} of {given.calls} calls from {start} on: {len(failures)} failed ({took:.0f} s)"
    )
    for failure in failures:
        print(f"seed {failure.seed}: {failure.invariant}")
    return 1 if failures else 0


def _given(argv: Sequence[str] | None) -> Namespace:
    parser = Parser(prog="python -m proof simulate", description=__doc__)
    parser.add_argument("--seeds", type=positive, help=f"how many; default {SEEDS}")
    parser.add_argument("--start", type=int, help="the first seed; default: a new one, printed")
    parser.add_argument("--seed", type=int, help="that seed only")
    parser.add_argument("--calls", type=positive, default=CALLS, help=f"calls per seed; default {CALLS}")
    parser.add_argument("--jobs", type=positive, default=1, help="seeds tried at a time")
    parser.add_argument(
        "--first", action="store_true", help="stop at the first seed that fails, and do not look for fewer calls"
    )
    parser.add_argument("--trace", action="store_true", help="print what the first seed does, call by call")
    parser.add_argument("--backend", choices=["sqlite", "memory"], help="on which store, with --trace; default sqlite")
    given = parser.parse_args(argv)
    if given.seed is not None and (given.seeds, given.start) != (None, None):
        parser.error("--seed is that seed only: it goes with neither --seeds nor --start")
    if given.backend and not given.trace:
        parser.error("--backend goes with --trace: without it, each seed runs on SQLite, and every fourth in memory too")
    if given.seed is not None:
        given.start, given.seeds = given.seed, 1
    given.seeds = given.seeds or SEEDS
    return given


FAULTS = (
    "store faults",
    "model faults",
    "embedder faults",
    "source faults",
    "files away",
    "refused",
    "given up",
    "workers killed",
    "leases taken over",
    "restarts",
)
"""What a simulation of many seeds must have met, or it has shown nothing."""


@dataclass(frozen=True, slots=True)
class Tried:
    """What came of one seed."""

    failure: Failure | None
    counts: Counter[str]


def simulate(
    seeds: Iterable[int],
    *,
    tell: Callable[[str], None] = print,
    calls: int = CALLS,
    jobs: int = 1,
    shrink: bool = True,
    first: bool = False,
) -> list[Failure]:
    """Run the seeds; those that fail, each with what it shows. With `first`, no further than to the first of them."""
    one = partial(tried_and_counted, calls=calls, shrink=shrink)
    if jobs <= 1:
        return _told(map(one, seeds), tell, first=first)
    with ProcessPoolExecutor(jobs, mp_context=get_context("forkserver")) as pool:
        return _told(pool.map(one, seeds), tell, first=first)


def _told(outcomes: Iterable[Tried], tell: Callable[[str], None], *, first: bool) -> list[Failure]:
    failures = []
    counts: Counter[str] = Counter()
    number = 0
    for number, outcome in enumerate(outcomes, 1):
        counts += outcome.counts
        if outcome.failure is not None:
            failures.append(outcome.failure)
            tell(str(outcome.failure))
            if first:
                return failures
        elif number % 25 == 0:
            tell(f"{number} seeds, {len(failures)} failed")
    tell(", ".join(f"{name}: {counts[name]:,}" for name in ("calls", *FAULTS)))
    unmet = [name for name in FAULTS if not counts[name]]
    if unmet and number >= SEEDS_TO_MEET_ALL:
        detail = f"not met over {number} seeds: {', '.join(unmet)}"
        failures.append(Failure(0, "every fault is met", detail, "both", 0))
        tell(detail)
    return failures


def tried(seed: int, *, calls: int = CALLS, shrink: bool = True) -> Failure | None:
    """What is wrong with a seed; None: nothing."""
    return tried_and_counted(seed, calls=calls, shrink=shrink).failure


def tried_and_counted(seed: int, *, calls: int = CALLS, shrink: bool = True) -> Tried:
    """What is wrong with a seed, and what it met."""
    runs = {}
    for backend in ("sqlite", "memory") if seed % COMPARED_EVERY == 0 else ("sqlite",):
        runs[backend] = ran = run(seed, backend, calls=calls)
        if ran.violated is not None:
            fewest = _shrunk(seed, backend, calls) if shrink else calls
            ran = run(seed, backend, calls=fewest)
            shown = ran.violated or Violated("a seed always means one run", "it failed once, and then it did not")
            return Tried(Failure(seed, shown.invariant, str(shown), backend, fewest, tuple(ran.trace)), ran.counts)
    if "memory" in runs and runs["sqlite"].hash != runs["memory"].hash:
        pairs = zip(runs["sqlite"].trace, runs["memory"].trace, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), ("one", "is longer"))
        again = run(seed, "sqlite", calls=calls).hash == runs["sqlite"].hash
        what = "the stores agree" if again else "a seed always means one run"
        detail = f"{what}: {first[0][:500]} | {first[1][:500]}"
        return Tried(Failure(seed, what, detail, "both", calls), runs["sqlite"].counts)
    return Tried(None, runs["sqlite"].counts)


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
        for port, faulty in (("store", world.store), ("model", world.model), ("embedder", world.embedder)):
            world.counts[f"{port} faults"] = faulty.faults
        world.counts["source faults"] = sum(source.faults for source in world.sources.values())
        ran.hash, ran.trace, ran.counts = world.hash, world.trace, world.counts
        return ran


def _step(world: World) -> None:
    chance = world.chance
    if not world.counts["calls"] or chance.random() < 0.07:
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


if __name__ == "__main__":
    sys.exit(main())
