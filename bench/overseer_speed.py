"""What it costs to look, before a goal runs, for what it needs: `before` without a model, beside the work that it cannot avoid.

One user with 1,000 state keys, 10,000 memories (9,000 messages and 1,000 remembered statements) and 20 series of 100
entries, all made from a seed. Of the goals, half are about a key, a quarter about something said, a quarter about nothing
that is held. All lines get the same goals and take turns in rounds, so that noise hits them alike; intervals are
bootstrapped over the rounds.

*list*: `ana.state.list()` and `ana.series.list()`, the names and previews alone. *recall*: `ana.recall(goal)` alone. *after
append*: when a message was just appended, as in a conversation; *after save*: when a state key was just saved. The append
and the save are not timed, and no job runs in between. *first*: the first call since the store was opened.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

# Before numpy is loaded: with more, the libraries would compete with each other for the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import machine
import perdure
from machine import Sample
from recall.lines import Line, in_rounds, show_times
from recall.peers import Perdure
from recall.talk import Talk

USER, TASK = "user-0", "one goal"
BUDGET_TOKENS = 2_000
BEFORE, APPENDED, SAVED, FIRST = "before", "before, after append", "before, after save", "before, first"
RECALL, LIST, BOTH = "recall alone", "list alone", "list and recall"
STYLES: tuple[Callable[[list[str]], str], ...] = (
    "_".join,
    ".".join,
    "-".join,
    lambda words: words[0] + "".join(word.title() for word in words[1:]),
    lambda words: "_".join([*words, "2025"]),
)
ABOUT_KEY = (
    "What is in my {0}?",
    "Update the {0} with what we said yesterday",
    "Compare {0} with {1} and tell me what changed",
    "Show the {0} of last week",
    "{0} {1}",
)
ABOUT_NOTHING = (
    "What is 17 % of 340?",
    "Translate 'good morning' into French",
    "Write a haiku about rain",
    "Thanks, that was all!",
)


class Sizes(NamedTuple):
    keys: int
    messages: int
    remembered: int
    series: int
    entries: int
    rounds: int
    goals: int
    """Per round."""


WHOLE, QUICK = Sizes(1_000, 9_000, 1_000, 20, 100, 15, 20), Sizes(100, 500, 50, 5, 20, 3, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small store, a few rounds: shows that it runs, proves nothing")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is made up (1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    options = parser.parse_args()
    if not hasattr(perdure.Memory, "before"):
        raise SystemExit("this version of perdure has no `before`")
    sizes = QUICK if options.quick else WHOLE
    with machine.working_directory(options.dir) as directory:
        header = machine.facts(directory)
        texts = Talk(options.seed, USER).texts(sizes.messages)
        names = key_names(sizes.keys + sizes.series, options.seed)
        filled_s = fill(directory, sizes, texts, names)
        lines = measured(directory, sizes, goals(sizes, texts, names, options.seed), names)
    held = f"{sizes.keys:,} state keys, {sizes.messages:,} messages, {sizes.remembered:,} remembered, {sizes.series} series"
    header |= {"data": f"{held} of {sizes.entries} entries; filled in {filled_s:.0f} s", "seed": str(options.seed)}
    header |= {"rounds": f"{sizes.rounds} of {sizes.goals} goals", "load after": f"{os.getloadavg()[0]:.2f}"}
    times, figures = [line.row() for line in lines.values()], compared(lines)
    if options.json:
        print(json.dumps({"machine": header, "times": times, "figures": figures}, indent=2, ensure_ascii=False))
        return
    for name, value in header.items():
        print(f"{name:24}{value}")
    show_times(times, (TASK,))
    machine.show_figures(figures, limit="")


def key_names(count: int, seed: int) -> list[str]:
    """Names of two or three words in the styles that people and programs use."""
    draw = random.Random(f"{seed} keys")
    known = sorted({word.strip(",.?!").lower() for text in Talk(seed, "names").texts(2_000) for word in text.split()})
    vocabulary = [word for word in known if word.isalpha() and 4 <= len(word) <= 10]
    names: dict[str, None] = {}
    while len(names) < count:
        names[draw.choice(STYLES)(draw.sample(vocabulary, draw.choice((2, 2, 3))))] = None
    return list(names)


def fill(directory: Path, sizes: Sizes, texts: list[str], names: list[str]) -> float:
    """Put everything in and run the jobs that index it; how long that took."""
    started = time.perf_counter()
    store = Perdure(directory)
    memory = store.engine.memory(USER)
    store.add(USER, texts)
    for number, name in enumerate(names[: sizes.keys]):
        memory.state.save(name, value(number, texts[number % len(texts)]))
    for name in names[sizes.keys :]:
        entries = [
            {"id": f"e{n}", "timestamp": f"2025-0{n // 28 + 1}-{n % 28 + 1:02}T12:00:00Z", "n": n} for n in range(sizes.entries)
        ]
        about = " ".join(texts[len(name)].split()[:8])
        memory.series(name, description=about).merge(entries, window=("2025-01-01", "2025-06-01"))
    for statement in Talk(len(texts), USER).texts(sizes.remembered):
        memory.remember(statement)
    store.index()
    store.close()
    return time.perf_counter() - started


def value(number: int, text: str) -> dict[str, Any]:
    return {"id": number, "note": text, "tags": text.split()[:3], "active": number % 2 == 0}


def goals(sizes: Sizes, texts: list[str], names: list[str], seed: int) -> list[list[str]]:
    """For every round, and one before that only warms up."""
    draw, talk = random.Random(f"{seed} goals"), Talk(seed, "goals")
    total = (sizes.rounds + 1) * sizes.goals
    made = [draw.choice(ABOUT_KEY).format(*map(spoken, draw.sample(names, 2))) for _ in range(total // 2)]
    made += talk.questions(texts, total // 4)
    made += [draw.choice(ABOUT_NOTHING) for _ in range(total - len(made))]
    draw.shuffle(made)
    return [list(part) for part in machine.batches(made, sizes.goals)]


def spoken(name: str) -> str:
    apart = "".join(f" {sign.lower()}" if sign.isupper() else sign for sign in name)
    return " ".join("".join(sign if sign.isalpha() else " " for sign in apart).split())


def measured(directory: Path, sizes: Sizes, asked: list[list[str]], names: list[str]) -> dict[str, Line]:
    first = Line(TASK, FIRST, sizes.keys, lambda _: None)
    for goal in asked[0][:5]:
        store = Perdure(directory)
        started = time.perf_counter()
        store.engine.memory(USER).before(goal, budget_tokens=BUDGET_TOKENS)
        spent = time.perf_counter() - started
        first.samples.append(Sample(spent, [spent]))
        store.close()
    store = Perdure(directory)
    memory = store.engine.memory(USER)
    before, size = partial(memory.before, budget_tokens=BUDGET_TOKENS), sizes.keys
    draw = random.Random(0)

    def append() -> None:
        memory.append("user", f"And another thing, number {draw.randrange(10**6)}")

    def save() -> None:
        memory.state.save(draw.choice(names[: sizes.keys]), {"n": draw.randrange(10**6)})

    listed = partial(_list, memory)
    steady = [
        Line(TASK, BEFORE, size, before),
        Line(TASK, RECALL, size, memory.recall),
        Line(TASK, LIST, size, listed),
        Line(TASK, BOTH, size, lambda goal: (listed(goal), memory.recall(goal))),
    ]
    in_rounds(steady, asked)
    changing = [Line(TASK, APPENDED, size, before, 5, before=append), Line(TASK, SAVED, size, before, 5, before=save)]
    in_rounds(changing, asked)
    store.close()
    return {line.who: line for line in (*steady, *changing, first)}


def _list(memory: perdure.Memory, _goal: str) -> None:
    memory.state.list()
    memory.series.list()


def compared(lines: dict[str, Line]) -> list[dict[str, Any]]:
    ours = lines[BEFORE]
    promised = machine.compared("seed: `before` under 1 s; slowest of all, ms", slowest_ms(lines), aim=1_000, at_most=True)
    return [
        machine.compared("before: p50 ms", ours.within_ms(0.5), aim=8, at_most=True),
        machine.compared("before: p95 ms", ours.within_ms(0.95)),
        machine.compared("before: p50 ms of CPU", ours.cpu_ms(), aim=8, at_most=True),
        *(machine.compared(f"{who}: p50 ms", lines[who].within_ms(0.5)) for who in (APPENDED, SAVED, FIRST)),
        machine.compared("before / list alone", ours.over(lines[LIST])),
        machine.compared("before / recall alone", ours.over(lines[RECALL])),
        machine.compared("before / list and recall", ours.over(lines[BOTH])),
        promised,
    ]


def slowest_ms(lines: dict[str, Line]) -> machine.Interval:
    """The slowest call of any line that calls `before`; a single figure has no interval."""
    slowest = max(max(line.calls_s(range(len(line.samples)))) for who, line in lines.items() if who.startswith(BEFORE)) * 1e3
    return machine.Interval(slowest, slowest, slowest)


if __name__ == "__main__":
    main()
