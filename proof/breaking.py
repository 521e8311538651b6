"""Broken builds: each patch of `defects/` breaks one rule of perdure, and its promise must notice.

A patch begins with two lines that say what it breaks and which promise catches it, then a unified diff against the root:

    breaks: an append is acknowledged before it is committed
    caught by: P1
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PATCHES = Path(__file__).parent / "defects"
SEED = 1
SIMULATION = "SIM"
"""Caught by the simulation of the whole system, not by one of the promises."""
ROUND_S = 400


@dataclass(frozen=True, slots=True)
class Defect:
    """A patch that breaks perdure."""

    name: str
    breaks: str
    caught_by: str
    path: Path


@dataclass(frozen=True, slots=True)
class Trial:
    """Whether the promise noticed: `caught`, `missed`, or what else became of it."""

    name: str
    breaks: str
    promise: str
    result: str
    seconds: float
    shown: str = ""


def known() -> dict[str, Defect]:
    """All defects by name."""
    found = {}
    for path in sorted(PATCHES.glob("*.patch")):
        head = dict(line.split(": ", 1) for line in path.read_text().splitlines()[:2])
        found[path.stem] = Defect(path.stem, head["breaks"], head["caught by"], path)
    return found


def broken_copy(defect: Defect, folder: Path) -> Path:
    """A copy of the package with the defect in it; the folder to put first on the import path."""
    shutil.copytree(ROOT / "src" / "perdure", folder / "src" / "perdure", ignore=shutil.ignore_patterns("__pycache__"))
    # No fuzz, no offset in the wrong place: a patch that no longer fits must be renewed, not guessed at.
    subprocess.run(["patch", "-p1", "--fuzz=0", "--silent", "-i", str(defect.path)], cwd=folder, check=True)
    return folder / "src"


def tried(defect: Defect) -> Trial:
    """Run what should catch it against the broken build."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="defect-") as name:
        folder = Path(name)
        try:
            source = broken_copy(defect, folder)
        except subprocess.CalledProcessError:
            return Trial(defect.name, defect.breaks, defect.caught_by, "the patch does not fit", 0.0)
        result, shown = (_simulated if defect.caught_by == SIMULATION else _promised)(defect, folder, source)
    return Trial(defect.name, defect.breaks, defect.caught_by, result, time.monotonic() - began, shown[:300])


def _promised(defect: Defect, folder: Path, source: Path) -> tuple[str, str]:
    """By the quick round of a promise."""
    command = ["run", defect.caught_by, "--quick", "--seed", str(SEED), "--report", str(folder), "--json"]
    ended = _run(command, source)
    path = folder / "report.json"
    told = json.loads(path.read_text())["outcomes"][0] if path.exists() else {"verdict": "failed", "error": ended.stderr}
    shown = (told.get("wrongs") or [{"what": told.get("error", "")}])[0]["what"]
    return {"broken": "caught", "kept": "missed"}.get(told["verdict"], told["verdict"]), shown


def _simulated(_: Defect, __: Path, source: Path) -> tuple[str, str]:
    """By the simulation: the first seeds, up to the one that fails. Anything raised that is no invariant proves nothing."""
    ended = _run(["simulate", "--start", str(SEED), "--seeds", "4", "--first"], source)
    last = (ended.stdout.strip().splitlines() or [""])[-1]
    caught = ended.returncode == 1 and last.startswith("seed ") and not last.endswith("nothing else is raised")
    return ("caught" if caught else "missed" if ended.returncode == 0 else "failed"), last or ended.stderr[-300:]


def _run(arguments: Sequence[str], source: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proof", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=ROUND_S,
        check=False,
    )


def main(names: Sequence[str], *, jobs: int, as_json: bool) -> int:
    all_of_them = known()
    chosen = [all_of_them[name] for name in names] if names else [*all_of_them.values()]
    trials = []
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        for trial in pool.map(tried, chosen):
            trials.append(trial)
            print(f"{trial.result:8} {trial.promise:4} {trial.name}: {trial.breaks} ({trial.seconds:.0f} s)", file=sys.stderr)
    caught = sum(trial.result == "caught" for trial in trials)
    if as_json:
        print(json.dumps([asdict(trial) for trial in trials], indent=1))
    else:
        print(f"{caught} of {len(trials)} broken builds were caught")
        for trial in trials:
            if trial.result != "caught":
                print(f"not caught: {trial.name} ({trial.promise}): {trial.result}: {trial.shown}")
    return 0 if caught == len(trials) else 1
