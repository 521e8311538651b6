"""Traces what one call runs through, so that the way stays short enough to follow.

    python tools/walk.py                     # a table: modules, functions and changes of room of each walk
    python tools/walk.py recall --calls      # the walk itself: each function at its first visit, below the one that called it
    python tools/walk.py --json

The walks are `append`, `jobs` (those that an append leaves behind), `recall`, `before` and `fetch` (of a series). Each is
warmed up first and then traced, on SQLite in a temporary folder, with the built-in embedder, without a model, on a stopped
clock. Only perdure's own functions are counted; what Python generates, such as the constructor of a dataclass, is not, nor
is the stopped clock, which the tracer hands in, and the declaration of an operation is part of the method that it stands on.

A change of room is a pair of functions in different folders, one calling the other: how often the reader of a walk turns to
another folder. A pair counts once, however often it is called. Where the standard library, a driver or the caller's code stands
between the two, the function of ours that comes next is the one called.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import CodeType, FrameType

import perdure
from perdure.testing import StoppedClock

SRC = Path(perdure.__file__).parent
DECLARATION = SRC / "handles" / "operation.py"
CLOCK = SRC / "testing" / "clock.py"
VALUES = SRC / "domain" / "values.py"
"""What stands in for the standard library's data classes, which are not walked through either."""
WALKS = ("append", "jobs", "recall", "before", "fetch")
SAID = "My sister Maria moved to Lisbon."
QUESTION = "Where does Maria live?"
GOAL = "Book a table for Maria"
TODAY = datetime(2026, 1, 5, 10, tzinfo=UTC)


@dataclass(frozen=True, order=True, slots=True)
class Function:
    """A function of ours. What has no name of its own (a lambda, a comprehension) is part of the one it stands in."""

    module: str
    name: str

    @property
    def folder(self) -> str:
        return self.module.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.module} {self.name}"


@dataclass(slots=True)
class Walk:
    """What one call ran through: every function with the one that called it first, and every pair of caller and called."""

    called_by: dict[Function, Function | None] = field(default_factory=dict)
    pairs: set[tuple[Function, Function]] = field(default_factory=set)

    def enter(self, function: Function, caller: Function | None) -> None:
        self.called_by.setdefault(function, caller)
        if caller is not None and caller != function:
            self.pairs.add((caller, function))

    @property
    def modules(self) -> list[str]:
        return sorted({function.module for function in self.called_by})

    @property
    def changes(self) -> int:
        return sum(caller.folder != function.folder for caller, function in self.pairs)

    def lines(self, caller: Function | None = None, depth: int = 0) -> Iterator[str]:
        for function, by in self.called_by.items():
            if by == caller:
                yield f"{'  ' * depth}{function}"
                yield from self.lines(function, depth + 1)


class Tracer:
    """Watches this thread and those that start while it is installed; writes down what runs while a walk is traced."""

    def __init__(self) -> None:
        self._walk: Walk | None = None

    @contextmanager
    def installed(self) -> Iterator[None]:
        before = sys.getprofile(), threading.getprofile()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(before[0])
            threading.setprofile(before[1])

    def trace(self, call: Callable[[], object]) -> Walk:
        self._walk = walk = Walk()
        try:
            call()
        finally:
            self._walk = None
        return walk

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        walk = self._walk
        if walk is None or event != "call" or (function := function_of(frame.f_code)) is None:
            return
        above = frame.f_back
        while above is not None and function_of(above.f_code) is None:
            above = above.f_back
        walk.enter(function, None if above is None else function_of(above.f_code))


def function_of(code: CodeType) -> Function | None:
    # By its names: two functions alike on the same line of two files have codes that are equal.
    return _named(code.co_filename, code.co_qualname)


@cache
def _named(file: str, qualified: str) -> Function | None:
    path = Path(file)
    names = [name for name in qualified.split(".") if not name.startswith("<")]
    if not names or not path.is_relative_to(SRC) or path in (DECLARATION, CLOCK, VALUES):
        return None
    return Function(path.relative_to(SRC).as_posix(), ".".join(names))


def walks() -> dict[str, Walk]:
    """All walks, traced."""
    tracer = Tracer()
    with tempfile.TemporaryDirectory() as folder, tracer.installed():
        settings = perdure.Settings(url=f"sqlite:///{folder}/walk.db", files_dir=folder)
        with perdure.open(settings=settings, clock=StoppedClock(TODAY)) as engine:
            return dict(traced(engine, tracer))


def traced(engine: perdure.Engine, tracer: Tracer) -> Iterator[tuple[str, Walk]]:
    memory = engine.memory("ana")
    append, recall, before = (
        partial(memory.append, "user", SAID),
        partial(memory.recall, QUESTION),
        partial(memory.before, GOAL),
    )
    days = (TODAY - timedelta(days=number) for number in count(1))

    def fetch() -> None:
        memory.series("calendar").fetch(day := next(days), day, entries)

    memory.state.save("trip_budget", {"city": "Lisbon", "euros": 900})
    for _ in range(2):  # what is said again goes another way than what is new, and loads other words
        append()
        engine.process()
    yield "append", tracer.trace(append)
    yield "jobs", tracer.trace(engine.process)
    for name, call in (("recall", recall), ("before", before), ("fetch", fetch)):
        call()
        yield name, tracer.trace(call)


def entries(window: perdure.Window) -> list[dict[str, str]]:
    return [{"id": f"e{window.start:%j}", "timestamp": window.start.isoformat(), "title": "Dinner"}]


def main() -> None:
    parser = argparse.ArgumentParser(description="Trace what calls run through.")
    parser.add_argument("walk", nargs="*", help=f"which to print: {', '.join(WALKS)}; all if none is named")
    parser.add_argument(
        "--calls", action="store_true", help="print each function at its first visit, below the one that called it"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the modules, the counts and, with --calls, the calls as JSON"
    )
    options = parser.parse_args()
    if unknown := set(options.walk) - set(WALKS):
        parser.error(f"no walk is called {min(unknown)!r}; there are {', '.join(WALKS)}")
    shown = {name: walk for name, walk in walks().items() if name in (options.walk or WALKS)}
    if options.json:
        print(json.dumps({name: as_json(walk, calls=options.calls) for name, walk in shown.items()}, indent=2))
        return
    print(f"{'walk':8} {'modules':>7} {'functions':>9} {'changes of room':>15}")
    for name, walk in shown.items():
        print(f"{name:8} {len(walk.modules):7} {len(walk.called_by):9} {walk.changes:15}")
    if options.calls:
        for name, walk in shown.items():
            print(f"\n{name}", *walk.lines(depth=1), sep="\n")


def as_json(walk: Walk, *, calls: bool) -> dict[str, object]:
    counted = {"modules": walk.modules, "functions": len(walk.called_by), "changes_of_room": walk.changes}
    return counted | ({"calls": list(walk.lines())} if calls else {})


if __name__ == "__main__":
    main()
