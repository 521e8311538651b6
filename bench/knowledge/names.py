"""How well names are told to be one entity: precision and recall over labelled pairs, and the speed of a search.

`names.jsonl` holds pairs written for this purpose. Their labels follow one rule: `same` if whoever reads both names in one
user's notes takes them for one without asking; `likely` if they would ask; `different` if they would not think of it, or know
better. Verdicts on single pairs were looked at in the part `tune` only; of `report` only the sums were seen, though while
rules still changed. One author wrote pairs and rules, so both parts flatter the rules. Batch 2 was written when the rules
already fitted batch 1, and is the more honest half; `--data` adds public names that neither was written from.

Counted are two decisions. *Merged*: the verdict is `Same`; right only if the label is `same`; recall is over pairs labelled
`same`. *Found*: the verdict is `Same` or `Likely`, so that the user is at least asked; right if the label is `same` or
`likely`; recall is over both.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import platform
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from perdure.domain.knowledge.proposals import ENTITY_TYPES, EntityName
from perdure.engine.names.compare import NameIndex, compare
from perdure.engine.names.spelling import Likeness, distance

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import machine

PAIRS = Path(__file__).with_name("names.jsonl")
PARTS = ("tune", "report")
PRECISION_AIM, RECALL_AIM = 0.98, 0.8
RESAMPLES = 2_000
Z = 1.959964
SURNAME = "Lindqvist"
KNOWN, SEARCHES, DRAWN = 5_000, 300, 5_000


class Judged(NamedTuple):
    """A labelled pair and the verdict on it."""

    type: str
    a: str
    b: str
    label: str
    split: str
    batch: int
    note: str
    verdict: str


class Share(NamedTuple):
    """Some of all, with Wilson's interval."""

    part: int
    whole: int

    def row(self) -> dict[str, float | int]:
        low, high = wilson(self.part, self.whole)
        return {"value": self.part / self.whole if self.whole else 0.0, "low": low, "high": high, "of": self.whole}


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Where a share lies with 95 % confidence, given one sample."""
    if not whole:
        return 0.0, 1.0
    share, slack = part / whole, Z * Z / whole
    middle = share + slack / 2
    spread = Z * math.sqrt(share * (1 - share) / whole + slack / (4 * whole))
    return max(0.0, (middle - spread) / (1 + slack)), min(1.0, (middle + spread) / (1 + slack))


def word(verdict: Likeness) -> str:
    return type(verdict).__name__.lower()


def judged() -> list[Judged]:
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    return [Judged(**row, verdict=word(compare(*(EntityName(row["type"], row[side]) for side in "ab")))) for row in rows]


MERGED, FOUND = ("same",), ("same", "likely")


def counts(pairs: Sequence[Judged], taken: Sequence[str]) -> tuple[Share, Share]:
    """Precision and recall of the decision to take these verdicts."""
    hits = sum(pair.verdict in taken and pair.label in taken for pair in pairs)
    return Share(hits, sum(pair.verdict in taken for pair in pairs)), Share(hits, sum(pair.label in taken for pair in pairs))


def f1(pairs: Sequence[Judged], taken: Sequence[str]) -> float:
    precision, recall = counts(pairs, taken)
    return 2 * precision.part / (precision.whole + recall.whole) if precision.whole + recall.whole else 0.0


def resampled_f1(pairs: Sequence[Judged], taken: Sequence[str], seed: int) -> dict[str, float]:
    draw = random.Random(seed)
    figures = sorted(f1(draw.choices(pairs, k=len(pairs)), taken) for _ in range(RESAMPLES))
    return {"value": f1(pairs, taken), "low": machine.percentile(figures, 0.025), "high": machine.percentile(figures, 0.975)}


def figures(pairs: Sequence[Judged], seed: int) -> dict[str, Any]:
    """All figures of one part."""
    report: dict[str, Any] = {"pairs": len(pairs), "labels": dict(Counter(pair.label for pair in pairs))}
    for name, taken in (("merged", MERGED), ("found", FOUND)):
        precision, recall = counts(pairs, taken)
        report[name] = {"precision": precision.row(), "recall": recall.row(), "f1": resampled_f1(pairs, taken, seed)}
    report["types"] = {kind: kinds(kind, [pair for pair in pairs if pair.type == kind]) for kind in ENTITY_TYPES}
    report["wrong"] = [pair._asdict() for pair in pairs if pair.verdict != pair.label]
    return report


def kinds(kind: str, pairs: Sequence[Judged]) -> dict[str, Any]:
    precision, recall = counts(pairs, MERGED)
    _, found = counts(pairs, FOUND)
    return {"type": kind, "merged precision": precision.row(), "merged recall": recall.row(), "found recall": found.row()}


def public(data: Path, seed: int) -> list[dict[str, Any]]:
    """Figures over public nicknames and homophones, bare and with one surname for both."""
    folder = data / "names" if (data / "names").is_dir() else data
    with (folder / "nicknames.csv").open(encoding="utf-8", newline="") as file:
        related = {frozenset((row["name1"], row["name2"])) for row in csv.DictReader(file)}
    groups = json.loads((folder / "homophone_groups.json").read_text(encoding="utf-8"))["groups"]
    alike = {frozenset(pair) for group in groups for pair in itertools.combinations(group["names"], 2)}
    names = sorted({name for pair in related for name in pair})
    known = related | alike
    partners: dict[str, set[str]] = {}
    for pair in known:
        for name in pair:
            partners.setdefault(name, set()).update(pair)
    draw = random.Random(seed)
    strangers = {frozenset(draw.sample(names, 2)) for _ in range(DRAWN)}
    near = {
        frozenset((one, other))
        for one, other in itertools.combinations(names, 2)
        if one[0] == other[0] and abs(len(one) - len(other)) < 2 and len(one) > 3 and distance(one, other) == 1
    }
    strangers, near = ({pair for pair in pairs if not _share_partner(pair, partners)} for pairs in (strangers, near))
    lines = (
        ("nicknames", [pair for pair in related if len(pair) == 2]),
        ("homophones", list(alike)),
        ("strangers", sorted(strangers, key=sorted)),
        ("strangers one letter apart", sorted(near, key=sorted)),
    )
    return [shares(what, pairs, surname) for what, pairs in lines for surname in ("", SURNAME)]


def _share_partner(pair: frozenset[str], partners: dict[str, set[str]]) -> bool:
    one, other = pair
    return bool(partners.get(one, set()) & partners.get(other, set()))


def shares(what: str, pairs: Sequence[frozenset[str]], surname: str) -> dict[str, Any]:
    verdicts = Counter(
        word(compare(*(EntityName("person", f"{name.title()} {surname}".strip()) for name in sorted(pair)))) for pair in pairs
    )
    total = sum(verdicts.values())
    line = f"{what}, {'one surname' if surname else 'bare'}"
    return {"line": line, "pairs": total} | {verdict: Share(verdicts[verdict], total).row() for verdict in FOUND}


def speed(seed: int) -> dict[str, float]:
    """A search among many known names, as one who keeps an index sees it, and the making of the index."""
    draw = random.Random(seed)
    rows = [json.loads(line) for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    words = sorted({part for row in rows for side in "ab" for part in row[side].split()})
    known = [EntityName(draw.choice(ENTITY_TYPES), " ".join(draw.sample(words, 2))) for _ in range(KNOWN)]
    started = time.perf_counter()
    index = NameIndex(known)
    made_s = time.perf_counter() - started
    asked = [EntityName(draw.choice(ENTITY_TYPES), " ".join(draw.sample(words, 2))) for _ in range(SEARCHES)]
    sample = machine.in_turn(index.find, asked)
    p50, p95 = (machine.percentile(sample.calls_s, share) * 1e3 for share in (0.5, 0.95))
    return {"known": KNOWN, "index_ms": made_s * 1e3, "search_p50_ms": p50, "search_p95_ms": p95}


def facts(seed: int) -> dict[str, str]:
    return {
        "cpu": machine.cpu_model(),
        "cores": str(os.cpu_count()),
        "system": platform.platform(),
        "python": platform.python_version(),
        "rapidfuzz": version("rapidfuzz"),
        "seed": str(seed),
    }


def spread(figure: dict[str, float]) -> str:
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


def show(report: dict[str, Any], *, wrong: Sequence[str]) -> None:
    for part in PARTS:
        line = report[part]
        print(f"\n{part}: {line['pairs']} pairs, {line['labels']}")
        print(f"{'':12}{'precision':28}{'recall':28}{'F1':28}")
        for name in ("merged", "found"):
            print(f"{name:12}" + "".join(f"{spread(line[name][what]):28}" for what in ("precision", "recall", "f1")))
        print(f"{'':12}{'merged precision':28}{'merged recall':28}{'found recall':28}")
        for kind, row in line["types"].items():
            print(
                f"{kind:12}"
                + "".join(f"{spread(row[what]):28}" for what in ("merged precision", "merged recall", "found recall"))
            )
        if part in wrong:
            for pair in line["wrong"]:
                print(f"  {pair['type']:8} {pair['label']:9} judged {pair['verdict']:9} {pair['a']} | {pair['b']}")
    print(f"\naims on `report`, merged: precision {PRECISION_AIM}, recall {RECALL_AIM}")
    for row in report.get("public", ()):
        print(f"{row['line']:42}{row['pairs']:6} pairs   same {spread(row['same']):26} likely {spread(row['likely'])}")
    print("search: " + ", ".join(f"{name} {value:,.2f}" for name, value in report["speed"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Entity names: precision and recall of verdicts over labelled pairs.")
    parser.add_argument("--seed", type=int, default=1, help="of resampling and of drawn names (1)")
    parser.add_argument("--data", type=Path, default=os.environ.get("PERDURE_BENCH_DATA"), help="directory of public names")
    parser.add_argument("--wrong", choices=PARTS, action="append", default=[], help="list wrong verdicts of this part")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    pairs = judged()
    report: dict[str, Any] = {"facts": facts(options.seed)}
    report |= {part: figures([pair for pair in pairs if pair.split == part], options.seed) for part in PARTS}
    if options.data:
        report["public"] = public(Path(options.data), options.seed)
    report["speed"] = speed(options.seed)
    if options.json:
        for part in set(PARTS) - set(options.wrong):
            del report[part]["wrong"]
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    for name, value in report["facts"].items():
        print(f"{name}: {value}")
    show(report, wrong=options.wrong)


if __name__ == "__main__":
    main()
