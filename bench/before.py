"""How well `before` chooses among all that is kept: state, series and memories, in worlds of independent writers.

`overseer_goals/worlds/` has ten worlds with about 30 keys, 8 series and 32 memories each, and 36 goals with what each needs
(`needs`) and what would not disturb (`fine`). Five are there to tune on, five are held out: only figures of those are printed.
Each world is put into a fresh store, on a clock that stands at the world's own moment: state and series are saved, memories
are told with `remember`, and `before` is asked once for every goal.

*Needed given*: of all that goals need, what stands in the text that the agent gets. *Precision*: of what was given, what is
needed or fine. *Alarms*: of the goals that need nothing, those that got something (of `fine` nothing counts). *Tokens*: of the
whole text, median over the goals that got something. Intervals are 95 %, bootstrapped over goals; worlds are few.

`overseer_goals/lives/` has 38 smaller lives by five more writers, who may be looked at: `--part lives`.

    python bench/before.py [--part tune] [--misses] [--json]
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path

import machine
import perdure
from overseer import World, fill, ratio
from perdure.testing import StoppedClock

GOALS = Path(__file__).parent / "overseer_goals"
WORLDS, LIVES = GOALS / "worlds", GOALS / "lives"
PARTS = ("tune", "held")
AIMS = {"needed given": "≥ 90 %", "precision, keys": "≥ 60 %", "alarms": "≤ 5 %", "tokens, median": "≤ 300"}


@dataclass(frozen=True)
class Given:
    """What one goal got."""

    world: str
    kind: str
    goal: str
    needs: frozenset[str]
    right: frozenset[str]
    """What it needs, or what is fine beside it."""
    keys: frozenset[str]
    memories: frozenset[str]
    is_memory: frozenset[str]
    """All memories of the world."""
    tokens: int

    @property
    def all(self) -> frozenset[str]:
        return self.keys | self.memories


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=(*PARTS, "lives"), action="append", help="this part alone (tune and held)")
    parser.add_argument("--misses", action="store_true", help="list what was wrong or missed, but not of the part held")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    given = {part: [one for world in worlds(part) for one in asked(world)] for part in options.part or PARTS}
    report = {part: figures(answers) for part, answers in given.items()}
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for part, lines in report.items():
        nothing = sum(not one.needs for one in given[part])
        count = len({one.world for one in given[part]})
        print(f"{part}: {count} worlds, {len(given[part])} goals, {nothing} of which need nothing")
        for name, figure in lines.items():
            shown = [f"{figure[end]:.0f}" if "tokens" in name else f"{figure[end]:.1%}" for end in ("value", "low", "high")]
            print(f"  {name:24}{shown[0]:>8} ({shown[1]} to {shown[2]})  n = {figure['n']:.0f}  {AIMS.get(name, '')}".rstrip())
    if options.misses:
        show_misses([one for part in ("tune", "lives") for one in given.get(part, ())])


def worlds(part: str) -> Iterator[World]:
    if part != "lives":
        for path in sorted((WORLDS / part).glob("*.json")):
            yield json.loads(path.read_text(encoding="utf-8"))
        return
    for path in sorted((LIVES / "train").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            life = json.loads(line)
            yield {**life, "series": [_with_a_week(one, datetime.fromisoformat(life["now"])) for one in life["series"]]}


def _with_a_week(series: dict[str, object], now: datetime) -> dict[str, object]:
    """Lives say what a series is about, not what is in it."""
    start = now - timedelta(days=7)
    entries = [{"id": f"e{day}", "at": (start + timedelta(days=day)).isoformat()} for day in range(7)]
    window = [start.isoformat(), now.isoformat()]
    return {"id_field": "id", "timestamp_field": "at", "entries": entries, "window": window, **series}


def asked(world: World) -> list[Given]:
    with opened(world) as (memory, names):
        return [answered(memory, goal, world, names) for goal in world["goals"]]


@contextmanager
def opened(world: World) -> Iterator[tuple[perdure.Memory, dict[str, str]]]:
    """A store that holds the world, and which of its memories each statement is."""
    clock = StoppedClock(datetime.fromisoformat(world["now"]))
    with (
        tempfile.TemporaryDirectory() as folder,
        perdure.open(settings=perdure.Settings(url=f"sqlite:///{folder}/world.db"), clock=clock) as engine,
    ):
        memory = engine.memory(user=world["world"], agent="bench")
        names: dict[str, str] = {}
        for one in world["memories"]:
            told = memory.remember(one["text"])
            for outcome in (told, *told.also):
                if outcome.statement is not None:
                    names[outcome.statement.id] = one["id"]
        fill(engine, world)
        yield memory, names


def answered(memory: perdure.Memory, goal: dict[str, object], world: World, names: dict[str, str]) -> Given:
    got = memory.before(str(goal["goal"]))
    sources = {source for block in got.blocks for source in block.sources}
    keys = {*world["state"], *(one["name"] for one in world["series"])}
    return Given(
        world=world["world"],
        kind=str(goal.get("kind", goal.get("lang"))),
        goal=str(goal["goal"]),
        needs=frozenset(goal["needs"]),  # type: ignore[call-overload]
        right=frozenset((*goal["needs"], *goal.get("fine", ()))),  # type: ignore[misc]
        keys=frozenset(sources & keys),
        memories=frozenset(names[source] for source in sources if source in names),
        is_memory=frozenset(one["id"] for one in world["memories"]),
        tokens=got.tokens,
    )


def figures(answers: Sequence[Given]) -> dict[str, dict[str, float]]:
    nothing = [one for one in answers if not one.needs]
    something = [one for one in answers if one.needs]
    given = [one for one in answers if one.all]
    told = {
        "needed given": (answers, lambda one: (len(one.needs & one.all), len(one.needs))),
        "needed keys given": (
            answers,
            lambda one: (len((one.needs - one.is_memory) & one.all), len(one.needs - one.is_memory)),
        ),
        "needed memories given": (
            answers,
            lambda one: (len(one.needs & one.memories), len(one.needs & one.is_memory)),
        ),
        "precision, keys": (answers, lambda one: (len(one.keys & one.right), len(one.keys))),
        "precision, memories": (answers, lambda one: (len(one.memories & one.right), len(one.memories))),
        "alarms": (nothing, lambda one: (bool(one.all), 1)),
        "alarms, not even fine": (nothing, lambda one: (bool(one.all - one.right), 1)),
        "nothing given, needed": (something, lambda one: (not one.all, 1)),
    }
    report = {
        name: asdict(ratio(cases, parts)) | {"n": sum(parts(case)[1] for case in cases)}
        for name, (cases, parts) in told.items()
    }
    tokens = [one.tokens for one in given]
    median = machine.resampled(lambda places: statistics.median(tokens[place] for place in places), len(tokens))
    report["tokens, median"] = asdict(median) | {"n": len(tokens)}
    every = [one.tokens for one in answers]
    median = machine.resampled(lambda places: statistics.median(every[place] for place in places), len(every))
    report["tokens, all goals"] = asdict(median) | {"n": len(every)}
    return report


def show_misses(answers: Sequence[Given]) -> None:
    for one in answers:
        missed, wrong = one.needs - one.all, one.all - one.right
        if missed or wrong:
            print(f"{one.world} {one.kind} {one.goal!r}\n   missed {sorted(missed)}\n   wrong {sorted(wrong)}")


if __name__ == "__main__":
    main()
