"""Mutation testing of storage and scope code: a seeded sample of mutants, and the share that the tests notice.

    python tools/mutants.py --count 200 --seed 1

mutmut makes the mutants and runs the tests that reach each; `[tool.mutmut]` in pyproject.toml says of which code. All of them
would take a night, so a sample is drawn, and the share is told with its 95 % interval (Wilson's). It works on a copy of what
is committed or not, in build/mutants, and changes nothing else.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPY = ROOT / "build" / "mutants"
COPIED = ("src", "tests", "tools", "proof", "pyproject.toml", "conftest.py", "README.md")
NOTICED = ("killed", "timeout", "caught by type check", "segfault")
RESULT = re.compile(r"^\s*(\S+__mutmut_\d+): (.+)$")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200, help="mutants to try")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--survivors", action="store_true", help="show the changes that nobody noticed")
    given = parser.parse_args()
    fresh_copy()
    every = all_mutants()
    chosen = sorted(random.Random(given.seed).sample(every, min(given.count, len(every))))
    print(f"{len(every):,} mutants, {len(chosen):,} drawn with seed {given.seed}", flush=True)
    mutmut("run", "--max-children", str(given.jobs), *chosen, shown=True)
    results = {name: told for name, told in told_results().items() if name in set(chosen)}
    counts = Counter(results.values())
    noticed, tried = sum(counts[word] for word in NOTICED), len(results)
    low, high = wilson(noticed, tried)
    print(", ".join(f"{word} {count}" for word, count in counts.most_common()))
    print(f"noticed: {noticed} of {tried}, {noticed / max(1, tried):.1%} [{low:.1%}, {high:.1%}], seed {given.seed}")
    unnoticed = [name for name, told in results.items() if told not in NOTICED]
    for name in unnoticed:
        print(f"not noticed: {name}: {results[name]}")
        if given.survivors:
            print(mutmut("show", name))


def fresh_copy() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    COPY.mkdir(parents=True)
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, COPY / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, COPY / name)


def all_mutants() -> list[str]:
    """Their names; mutmut makes them before it runs any."""
    mutmut("run", "perdure.domain.scope.no_such_mutant", shown=True)
    return sorted(told_results())


def told_results() -> dict[str, str]:
    found = (RESULT.match(line) for line in mutmut("results", "--all", "true").splitlines())
    return {one[1]: one[2].strip() for one in found if one is not None}


def mutmut(*arguments: str, shown: bool = False) -> str:
    command = [sys.executable, "-m", "mutmut", *arguments]
    env = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(command, cwd=COPY, env=env, stdout=None if shown else subprocess.PIPE, text=True, check=False)  # noqa: S603 - our own
    return done.stdout or ""


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """Where the share lies with 95 % confidence."""
    if not tries:
        return 0.0, 1.0
    z, share = 1.96, hits / tries
    middle = share + z * z / (2 * tries)
    spread = z * math.sqrt(share * (1 - share) / tries + z * z / (4 * tries * tries))
    below = 1 + z * z / tries
    return (middle - spread) / below, (middle + spread) / below


if __name__ == "__main__":
    main()
