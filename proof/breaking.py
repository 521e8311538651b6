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
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from proof import needs, report

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
        try:
            result, shown = (_simulated if defect.caught_by == SIMULATION else _promised)(defect, folder, source)
        except subprocess.TimeoutExpired:
            result, shown = "failed", f"it did not end within {ROUND_S} s"
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


def tell_all(*, as_json: bool) -> int:
    """The names, what each breaks, and what catches it."""
    if as_json:
        told = [{"name": one.name, "breaks": one.breaks, "caught_by": one.caught_by} for one in known().values()]
        print(json.dumps(told, indent=1))
    else:
        for one in known().values():
            print(f"{one.name}\n     breaks: {one.breaks}\n     caught by: {one.caught_by}")
    return 0


def main(names: Sequence[str], *, jobs: int, as_json: bool, folder: Path) -> int:
    all_of_them = known()
    wanted = dict.fromkeys(names)
    unknown = [name for name in wanted if name not in all_of_them]
    if unknown:
        print("\n  ".join([f"no broken build is called {', '.join(unknown)}; there are:", *all_of_them]), file=sys.stderr)
        return 2
    if missing := needs.patch():
        print(missing, file=sys.stderr)
        return 2
    chosen = [all_of_them[name] for name in wanted or all_of_them]
    trials = _all_tried(chosen, jobs)
    caught = sum(trial.result == "caught" for trial in trials)
    path = write(folder, trials, "defects" if len(chosen) == len(all_of_them) else _name([*wanted]))
    if as_json:
        print(json.dumps([asdict(trial) for trial in trials], indent=1))
    else:
        print(f"{caught} of {len(trials)} broken builds were caught")
        for trial in trials:
            if trial.result != "caught":
                print(f"not caught: {trial.name} ({trial.promise}): {trial.result}: {trial.shown}")
    print(f"report: {path}", file=sys.stderr)
    return 0 if caught == len(trials) else 1


def _all_tried(chosen: Sequence[Defect], jobs: int) -> list[Trial]:
    """In the order they are given; each is told when it ends."""
    trials: dict[str, Trial] = {}
    with ThreadPoolExecutor(jobs) as pool:
        for number, done in enumerate(as_completed([pool.submit(tried, one) for one in chosen]), 1):
            trial = done.result()
            trials[trial.name] = trial
            caught = sum(one.result == "caught" for one in trials.values())
            print(
                f"{number} of {len(chosen)}, {caught} caught: {trial.result:8} {trial.promise:4} {trial.name}: {trial.breaks} "
                f"({trial.seconds:.0f} s)",
                file=sys.stderr,
                flush=True,
            )
    return [trials[one.name] for one in chosen]


def _name(names: Sequence[str]) -> str:
    """Some of them never take the place of the result of all."""
    more = len(names) - 1
    return f"defects-{names[0]}" + (f"-and-{more}-more" if more else "")


def write(folder: Path, trials: Sequence[Trial], name: str) -> Path:
    """The result as `name.md` and `name.json`; the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    on = report.machine()
    (folder / f"{name}.json").write_text(
        json.dumps({"machine": on, "seed": SEED, "trials": [asdict(one) for one in trials]}, indent=1)
    )
    caught = sum(trial.result == "caught" for trial in trials)
    lines = [
        "# Broken builds",
        "",
        ", ".join(f"{name}: {value}" for name, value in on.items()),
        "",
        f"{caught} of {len(trials)} were caught, by the quick round of the promise named ({SIMULATION}: the simulation), seed {SEED}.",
        "",
        "| build | breaks | promise | result | time |",
        "|---|---|---|---|---|",
    ]
    for one in trials:
        result = one.result if one.result == "caught" else f"**{one.result}**"
        lines.append(report.row(one.name, one.breaks, one.promise, result, f"{one.seconds:.0f} s"))
    lines += ["", *(f"- {one.name}: {one.result}: {' '.join(one.shown.split())}" for one in trials if one.result != "caught")]
    path = folder / f"{name}.md"
    path.write_text("\n".join(lines).rstrip() + "\n")
    return path
