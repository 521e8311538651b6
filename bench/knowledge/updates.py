"""How well new statements meet held ones: doubles made, true facts retired, changes missed, statements swallowed.

Every pair of `statements.jsonl` is told to an empty store in memory through the public call: first `held`, a day later `new`,
with the attributes and entities that the offline extractor would give them. Then the store is looked at.

What counts. *Duplicate*, of pairs labelled `same`: both are current side by side. *False retire*, of pairs labelled `same`,
`new` or `unrelated`: `held` is not current any more though it is still so; of a `same` pair that loses no knowledge, so the
figure is given without those, too. *Missed update*, of pairs labelled `supersedes`: `held` is still current. *Swallowed*, of
pairs labelled `new` or `unrelated`: `new` was taken for a mention of `held`, so what it says is lost. Intervals are Wilson's.

How far to trust it. The pairs are short, clean and English, and whoever wrote the rules could see them: look at single
verdicts of the part `tune` only (`--wrong tune`), and take the part `report` for the figures.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import perdure
from perdure.domain.knowledge.proposals import MemoryType
from perdure.engine.extraction.predicates import attributes
from perdure.testing import StoppedClock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

PAIRS = Path(__file__).with_name("statements.jsonl")
PARTS = ("tune", "report")
AIMS = {"false retire": 0.01, "missed update": 0.10}
OF_PROJECTS = ("status", "deadline", "technology")
Z = 1.959964


class Judged(NamedTuple):
    """A labelled pair and what became of it."""

    id: str
    part: str
    label: str
    attribute: str
    held: str
    new: str
    verdict: str
    held_is_current: bool
    new_is_current: bool


FIGURES: dict[str, tuple[tuple[str, ...], Callable[[Judged], bool]]] = {
    "duplicate": (("same",), lambda pair: pair.held_is_current and pair.new_is_current),
    "false retire": (("same", "new", "unrelated"), lambda pair: not pair.held_is_current),
    "false retire of others": (("new", "unrelated"), lambda pair: not pair.held_is_current),
    "missed update": (("supersedes",), lambda pair: pair.held_is_current),
    "swallowed": (("new", "unrelated"), lambda pair: pair.verdict in ("mentioned", "known")),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--wrong", choices=PARTS, help="list what went wrong in one part")
    options = parser.parse_args()
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    started = time.perf_counter()
    pairs = [judged(row) for row in rows]
    seconds = time.perf_counter() - started
    header = {
        "cpu": machine.cpu_model(),
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "pairs": str(len(pairs)),
        "pairs per second": f"{len(pairs) / seconds:,.0f}",
    }
    parts = {part: figures([pair for pair in pairs if pair.part == part]) for part in PARTS}
    if options.json:
        print(json.dumps({"machine": header, "aims": AIMS, "parts": parts}, indent=2, ensure_ascii=False))
        return
    for name, value in header.items():
        print(f"{name:18}{value}")
    for part, figure in parts.items():
        show(part, figure)
    print(f"\naims on `report`: {', '.join(f'{name} at most {aim:.0%}' for name, aim in AIMS.items())}")
    if options.wrong:
        show_wrong([pair for pair in pairs if pair.part == options.wrong])


def judged(row: dict[str, Any]) -> Judged:
    """Tell both statements to a store of their own, and look what is current."""
    clock = StoppedClock()
    with perdure.open("memory:", clock=clock) as engine:
        ana = engine.memory("ana")
        held = tell(ana, row["held"])
        clock.move(days=1)
        new = tell(ana, row["new"])
        current = {one.id for memory in ana.memories.list() for one in memory.statements}
    said = None if new.statement is None else new.statement.id
    first = None if held.statement is None else held.statement.id
    return Judged(
        row["id"],
        row["part"],
        row["label"],
        row["attribute"] or "none",
        row["held"]["content"],
        row["new"]["content"],
        new.verdict,
        held_is_current=first in current,
        new_is_current=said in current and said != first,
    )


def tell(memory: perdure.Memory, said: dict[str, Any]) -> Any:
    """As the offline extractor would propose it: about whom it is, and what it names."""
    attribute, value, subject = said["attribute"], said["value"], said["subject"]
    about: list[str] = []
    kind: MemoryType = "PROFILE"
    if subject is not None:
        kind = "PROJECT" if attribute in OF_PROJECTS else "PEOPLE"
        about.append(f"{'project' if kind == 'PROJECT' else 'person'}:{subject}")
    known = attributes().get(attribute)
    if known is not None and known.entity is not None and value:
        about.append(f"{known.entity}:{value}")
    return memory.remember(
        said["content"],
        kind,
        entities=about,
        subject=about[0] if subject is not None else None,
        fact_type="fact" if known is None else known.fact_type,
        attribute=attribute,
        value=value,
        ended=said["ended"],
        corrects=said["corrects"],
    )


def figures(pairs: Sequence[Judged]) -> dict[str, Any]:
    return {
        "labels": dict(sorted(Counter(pair.label for pair in pairs).items())),
        "verdicts": {
            label: dict(sorted(Counter(pair.verdict for pair in pairs if pair.label == label).items()))
            for label in sorted({pair.label for pair in pairs})
        },
        "rates": {
            name: share(is_so(pair) for pair in pairs if pair.label in labels) for name, (labels, is_so) in FIGURES.items()
        },
    }


def share(found: Iterable[bool]) -> dict[str, float | int]:
    """Some of all, with Wilson's interval of 95 %."""
    flags = list(found)
    part, whole = sum(flags), len(flags)
    if not whole:
        return {"value": 0.0, "low": 0.0, "high": 1.0, "cases": 0, "of": 0}
    rate, slack = part / whole, Z * Z / whole
    middle, spread = rate + slack / 2, Z * math.sqrt(rate * (1 - rate) / whole + slack / (4 * whole))
    low, high = max(0.0, (middle - spread) / (1 + slack)), min(1.0, (middle + spread) / (1 + slack))
    return {"value": rate, "low": low, "high": high, "cases": part, "of": whole}


def show(part: str, figure: dict[str, Any]) -> None:
    print(f"\n{part}: {', '.join(f'{count} {label}' for label, count in figure['labels'].items())}")
    for name, rate in figure["rates"].items():
        spread = f"{rate['low']:.1%} to {rate['high']:.1%}"
        aim = AIMS.get(name)
        verdict = "" if aim is None else f"aim ≤ {aim:.0%}: {judgement(rate, aim)}"
        print(f"  {name:24}{rate['value']:7.1%}   {spread:20}{rate['cases']:4} of {rate['of']:<5}{verdict}".rstrip())
    for label, verdicts in figure["verdicts"].items():
        print(f"  {label:12}{', '.join(f'{count} {verdict}' for verdict, count in verdicts.items())}")


def judgement(rate: dict[str, float | int], aim: float) -> str:
    """Only an interval that lies on one side of the aim is an answer."""
    if rate["high"] <= aim:
        return "met"
    if rate["low"] > aim:
        return "MISSED"
    return f"unclear, the figure itself {'meets' if rate['value'] <= aim else 'misses'} it"


def show_wrong(pairs: Sequence[Judged]) -> None:
    for name, (labels, is_so) in FIGURES.items():
        for pair in pairs:
            if pair.label in labels and is_so(pair):
                print(f"  {name:24}{pair.id}  {pair.attribute:14} {pair.verdict:11}{pair.held} | {pair.new}")


if __name__ == "__main__":
    main()
