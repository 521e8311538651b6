"""How well the overseer chooses what a goal needs of saved state and series: labelled goals, with 95 % intervals.

`overseer_goals/` holds worlds: one user each, with 30 saved keys (24 of state, 6 series) and goals as people type them. Of a
goal, `needs` is what a careful colleague would fetch before doing it, `fine` what would do no harm and counts neither way.
Two in seven goals need nothing, and about half of those share words with what is saved. Each world is put into a fresh
store, its jobs are run, and each goal is asked once, at a clock that stands still.

*Recall*: of all needed keys, the share that was included. *Precision*: of all included ones that are not `fine`, the share
that was needed. *Right*: goals with all that was needed and nothing else. *False inject*: of the goals that need nothing,
those with something included. *Tokens*: estimated, of the included keys with their whole values, counted alike for every
line: a measure of what was chosen, not of how it is shown. *Word shared*: recall of keys of which a word of the name stands
in the goal; *none shared*: of the others, which only meaning, the value or another form of the word can find.

How far to trust it. The goals and labels were written by somebody who had not seen the code that chooses. Whoever changes that
code looks at the part `tune` only; the part `report` has other worlds. Both parts were balanced once, by counting shared words,
before anything but the two baselines had run. All is in English, short and made up, and 30 keys are few. Intervals are
bootstrapped over goals: five worlds a part are too few to resample, so expect more spread between users than they say.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import machine
import perdure
from machine import Interval
from perdure.engine.text.tokens import estimate_tokens
from perdure.settings import load
from perdure.testing import StoppedClock

GOALS = Path(__file__).with_name("overseer_goals")
PARTS = ("tune", "report")
NOW = datetime(2026, 6, 15, 9, tzinfo=UTC)
BUDGET_TOKENS = 2_000
JOBS_S = 60.0
EVERYTHING, SIMPLE, RULES, MODEL = "everything", "simple match", "rules", "model"
AIMS = {"recall": (0.9, False), "false inject": (0.1, True)}
WORD_LEAST = 3
KEY_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

World = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """What one line included for one goal."""

    world: str
    goal: dict[str, Any]
    chosen: dict[str, str]
    """The keys, each with the score and reason that were given."""
    tokens: int
    spent_s: float

    @property
    def needs(self) -> frozenset[str]:
        return frozenset(self.goal["needs"])

    @property
    def found(self) -> frozenset[str]:
        return self.needs & self.chosen.keys()

    @property
    def wrong(self) -> frozenset[str]:
        return frozenset(self.chosen) - self.needs - frozenset(self.goal.get("fine", ()))

    @property
    def is_right(self) -> bool:
        return self.needs <= self.chosen.keys() and not self.wrong


Choose = Callable[[str], dict[str, str]]
"""From a goal to the included keys, each with why."""


DEADLINE_S = 300.0
"""A model on a small machine is slow; how well it chooses is asked here, not how fast."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="and with a chat model: openai:URL#NAME or ollama:URL#NAME")
    parser.add_argument("--part", choices=PARTS, action="append", help="this part alone (both)")
    parser.add_argument("--misses", action="store_true", help="list what was wrong or missed, of the part tune only")
    parser.add_argument("--seed", type=int, default=1, help="of the order in which goals are asked (1)")
    parser.add_argument("--limit", type=int, help="goals per world that a model is asked about, chosen by the seed (all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    worlds = {part: json.loads((GOALS / f"{part}.json").read_text(encoding="utf-8")) for part in options.part or PARTS}
    answers = {part: answered(held, options.model, options.seed, options.limit) for part, held in worlds.items()}
    with tempfile.TemporaryDirectory() as folder:
        header = machine.facts(Path(folder))
    header |= {"data": "; ".join(counts(part, held) for part, held in worlds.items())}
    header |= {"seed": f"{options.seed} (order of goals), 0 (resampling)", "budget": f"{BUDGET_TOKENS:,} tokens"}
    asked = "all goals" if options.limit is None else f"{options.limit} goals per world"
    header |= {"model": f"{options.model}, asked about {asked}" if options.model else "none; give one with --model"}
    report = {part: {line: figures(given) for line, given in by.items()} for part, by in answers.items()}
    if options.json:
        print(json.dumps({"machine": header, "aims": AIMS, "parts": report}, indent=2, ensure_ascii=False))
        return
    for name, value in header.items():
        print(f"{name:24}{value}")
    for part, lines in report.items():
        show(part, lines)
        show_kinds(answers[part])
    if options.misses and "tune" in answers:
        for line in (RULES, MODEL):
            show_misses(line, answers["tune"].get(line, ()))


def counts(part: str, worlds: Sequence[World]) -> str:
    goals = [goal for world in worlds for goal in world["goals"]]
    keys = sum(len(world["state"]) + len(world["series"]) for world in worlds)
    nothing, needed = sum(not goal["needs"] for goal in goals), sum(len(goal["needs"]) for goal in goals)
    return f"{part}: {len(worlds)} worlds, {keys} keys, {len(goals)} goals ({nothing} need nothing), {needed} needed keys"


def answered(worlds: Sequence[World], model: str | None, seed: int, limit: int | None) -> dict[str, list[Answer]]:
    """What each line includes for each goal."""
    answers: dict[str, list[Answer]] = {}
    for world in worlds:
        asking = partial(ask, answers, world, seed)
        asking(EVERYTHING, partial(everything, list_keys(world)))
        asking(SIMPLE, partial(simple_match, list_keys(world)))
        for line, name in ((RULES, ""), (MODEL, model)):
            if name is None or not hasattr(perdure.Memory, "before"):
                continue
            with tempfile.TemporaryDirectory() as folder, opened(Path(folder), name) as engine:
                fill(engine, world)
                memory = engine.memory(user=world["world"], agent="bench")
                if line == RULES:
                    memory.before("Say hello", budget_tokens=BUDGET_TOKENS)  # what the first call loads is not timed
                asking(line, partial(before, memory), limit if line == MODEL else None)
    if RULES not in answers:
        print("this version of perdure has no `before`: rules and model are left out", file=sys.stderr)
    return answers


def opened(folder: Path, model: str) -> perdure.Engine:
    url, clock = f"sqlite:///{folder / 'world.db'}", StoppedClock(NOW)
    # The key of a model's server comes from the environment; the rules take nothing from there.
    settings = load(url=url, model=model) if model else perdure.Settings(url=url)
    return perdure.open(settings=settings, clock=clock)


def fill(engine: perdure.Engine, world: World) -> None:
    memory = engine.memory(user=world["world"], agent="bench")
    for key, value in world["state"].items():
        memory.state.save(key, value)
    for one in world["series"]:
        rules = {name: one[name] for name in ("description", "id_field", "timestamp_field")}
        merged = memory.series(one["name"], **rules).merge(one["entries"], window=tuple(one["window"]), strict=True)
        if merged.added != len(one["entries"]):
            raise SystemExit(f"FAILED: of {one['name']}, {merged.added} of {len(one['entries'])} entries were kept")
    engine.process(JOBS_S)


def ask(answers: dict[str, list[Answer]], world: World, seed: int, line: str, choose: Choose, limit: int | None = None) -> None:
    prices, goals = tokens(world), random.Random(seed).sample(world["goals"], len(world["goals"]))
    for goal in goals[:limit]:
        started = time.perf_counter()
        chosen = choose(goal["goal"])
        spent_s = time.perf_counter() - started
        price = sum(prices[key] for key in chosen)
        answers.setdefault(line, []).append(Answer(world["world"], goal, chosen, price, spent_s))


def before(memory: perdure.Memory, goal: str) -> dict[str, str]:
    choices = memory.before(goal, budget_tokens=BUDGET_TOKENS, deadline_s=DEADLINE_S).choices
    included = [one for one in choices if one.included and one.kind in ("state", "series")]
    return {one.id: f"{one.score:.2f} {one.reason}" for one in included}


def everything(keys: Iterable[str], _goal: str) -> dict[str, str]:
    return dict.fromkeys(keys, "")


def simple_match(keys: Iterable[str], goal: str) -> dict[str, str]:
    """The seed's `_simple_key_match`, which it names but does not show: a key matches if one of its words is in the goal."""
    said = set(re.findall(r"[a-z]+", goal.lower()))
    found = {key: [word for word in words(key) if word in said] for key in keys}
    return {key: ", ".join(shared) for key, shared in found.items() if shared}


def words(key: str) -> list[str]:
    return [word.lower() for word in KEY_WORD.findall(key) if len(word) >= WORD_LEAST]


def list_keys(world: World) -> frozenset[str]:
    return frozenset(world["state"]) | {one["name"] for one in world["series"]}


def tokens(world: World) -> dict[str, int]:
    """What each key costs when its whole value is put into the prompt."""
    whole = dict(world["state"]) | {one["name"]: [one["description"], one["entries"]] for one in world["series"]}
    return {key: estimate_tokens(f"{key}: {json.dumps(value, ensure_ascii=False)}") for key, value in whole.items()}


def figures(answers: Sequence[Answer]) -> dict[str, dict[str, float]]:
    pairs = [(one, key) for one in answers for key in one.needs]
    shared = [(one, key) for one, key in pairs if simple_match([key], one.goal["goal"])]
    unshared = [(one, key) for one, key in pairs if not simple_match([key], one.goal["goal"])]
    nothing = [one for one in answers if not one.needs]
    told = {
        "recall": ratio(answers, lambda one: (len(one.found), len(one.needs))),
        "word shared": ratio(shared, lambda pair: (pair[1] in pair[0].chosen, 1)),
        "none shared": ratio(unshared, lambda pair: (pair[1] in pair[0].chosen, 1)),
        "precision": ratio(answers, lambda one: (len(one.found), len(one.found) + len(one.wrong))),
        "right": ratio(answers, lambda one: (one.is_right, 1)),
        "false inject": ratio(nothing, lambda one: (bool(one.chosen), 1)),
        "tokens": ratio(answers, lambda one: (one.tokens, 1)),
        "tokens, nothing": ratio(nothing, lambda one: (one.tokens, 1)),
        "p50 ms": median_ms(answers),
    }
    return {name: asdict(figure) for name, figure in told.items()}


def ratio(cases: Sequence[Any], parts: Callable[[Any], tuple[float, float]]) -> Interval:
    """The sum of the first parts over that of the second ones."""
    counted = [parts(case) for case in cases]

    def figure(places: Sequence[int]) -> float:
        below = sum(counted[place][1] for place in places)
        return sum(counted[place][0] for place in places) / below if below else 0.0

    return machine.resampled(figure, len(counted))


def median_ms(answers: Sequence[Answer]) -> Interval:
    spent = [one.spent_s * 1e3 for one in answers]
    return machine.resampled(lambda places: machine.percentile([spent[place] for place in places], 0.5), len(spent))


def show(part: str, lines: dict[str, dict[str, dict[str, float]]]) -> None:
    print(f"\n{part:18}" + "".join(f"{line:>28}" for line in lines))
    for name in next(iter(lines.values())):
        cells = "".join(f"{cell(name, figures[name]):>28}" for figures in lines.values())
        print(f"  {name:16}{cells}{verdict(name, lines)}".rstrip())


def cell(name: str, figure: dict[str, float]) -> str:
    if name.startswith("tokens"):
        return f"{figure['value']:,.0f} ({figure['low']:,.0f} to {figure['high']:,.0f})"
    if name == "p50 ms":
        return f"{figure['value']:,.2f} ({figure['low']:,.2f} to {figure['high']:,.2f})"
    return f"{figure['value']:.1%} ({figure['low']:.1%} to {figure['high']:.1%})"


def verdict(name: str, lines: dict[str, dict[str, dict[str, float]]]) -> str:
    """Whether the rules reach what was aimed at: the figure itself, and whether the whole interval does."""
    if name not in AIMS or RULES not in lines:
        return ""
    aim, at_most = AIMS[name]
    figure = lines[RULES][name]
    met = figure["value"] <= aim if at_most else figure["value"] >= aim
    sure = figure["high"] <= aim or figure["low"] > aim if at_most else figure["low"] >= aim or figure["high"] < aim
    told = "met" if met else "MISSED"
    return f"   rules {'≤' if at_most else '≥'} {aim:.0%}: {told}{'' if sure else ' (interval: unclear)'}"


def show_kinds(by: dict[str, list[Answer]]) -> None:
    """Goals answered fully right, by kind of goal."""
    kinds = list(dict.fromkeys(one.goal["kind"] for answers in by.values() for one in answers))
    print("  goals fully right, by kind")
    for kind in sorted(kinds):
        some = {line: [one for one in answers if one.goal["kind"] == kind] for line, answers in by.items()}
        cells = "".join(f"{f'{sum(one.is_right for one in them)} of {len(them)}':>28}" for them in some.values())
        print(f"   {kind:15.15}{cells}")


def show_misses(line: str, answers: Sequence[Answer]) -> None:
    for one in sorted(answers, key=lambda one: one.goal["id"]):
        if not one.is_right:
            print(f"  {line}  {one.goal['id']:14}{one.goal['kind']:20.20}{one.goal['goal']!r}")
            for key in sorted(one.needs - one.chosen.keys()):
                print(f"      missed  {key}")
            for key in sorted(one.wrong):
                print(f"      wrong   {key}   {one.chosen[key]}")


if __name__ == "__main__":
    main()
