"""The speed figures of README.md and docs/explanation/numbers.md: measured, kept in bench/results.json, written into the pages.

    python tools/figures.py measure [NAME …]   run their benchmarks (all) and keep what they say; not on a busy machine
    python tools/figures.py                    write the tables, between `<!-- speed: … -->` and `<!-- end -->`
    python tools/figures.py stale              name the figures whose code was changed since; fail if there are some

`bench/figures.toml` says what each figure is, which benchmark gives it, and which files it depends on.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))

from machine import BUSY, busyness, commit  # noqa: E402 - it lies in a folder that is no package

DECLARED, RESULTS = ROOT / "bench" / "figures.toml", ROOT / "bench" / "results.json"
PAGES = {"README.md": "readme", "docs/explanation/numbers.md": "numbers"}
BLOCK = re.compile(r"(<!-- speed: [^>]*-->\n).*?(?=<!-- end -->)", re.DOTALL)
SINCE = re.compile(r", \d+ changes? since")


@dataclass(frozen=True)
class Figure:
    """What one figure is, as `bench/figures.toml` declares it."""

    name: str
    what: str
    unit: str
    command: str
    table: str
    """Where in the report of the benchmark its rows stand."""
    row: dict[str, Any]
    """What its row says there."""
    value: str
    """The field of that row."""
    code: tuple[str, ...]
    """Files and folders that it depends on."""
    readme: bool = False
    aim: str = ""
    beside: dict[str, str] = field(default_factory=dict)
    """What is said beside it, with `{}` for a figure of the comparisons, and the `what` of its row there."""
    times: float = 1.0
    """What the field is multiplied with to be in the unit."""


@dataclass(frozen=True)
class Result:
    """What was measured, when, where and of which code."""

    value: float
    beside: str
    n: int | None
    """Calls; None: not kept."""
    commit: str
    date: str
    machine: str
    load: float | None
    low: float | None = None
    high: float | None = None
    """95 % interval over the rounds; None: not kept."""


def declared() -> dict[str, Figure]:
    """All figures, in the order of the tables."""
    read = tomllib.loads(DECLARED.read_text(encoding="utf-8"))
    return {name: Figure(name=name, **{**said, "code": tuple(said["code"])}) for name, said in read.items()}


def results() -> dict[str, Result]:
    return {name: Result(**said) for name, said in json.loads(RESULTS.read_text(encoding="utf-8")).items()}


def commits_since(code: Sequence[str], commit: str) -> int | None:
    """How many commits since then touched these files and folders; None if this repository does not know that commit."""
    done = _git("rev-list", "--count", f"{commit}..HEAD", "--", *code)
    return None if done is None else int(done)


def table(page: str) -> str:
    """The rows of a page."""
    held = results()
    lines = ["| What | Figure | Compared with | Aim | Commit |", "|---|---|---|---|---|"]
    for name, figure in declared().items():
        if name in held and (figure.readme or page != "readme"):
            one = held[name]
            lines.append(f"| {figure.what} | {_said(figure, one)} | {one.beside} | {figure.aim} | {_at(figure, one)} |")
    return "\n".join(lines) + "\n"


def _said(figure: Figure, one: Result) -> str:
    return f"{_number(one.value)} {figure.unit}{_spread(one.low, one.high)}".strip()


def _spread(low: float | None, high: float | None) -> str:
    """The interval; none where there is nothing to draw again, as of a file's size."""
    return "" if low is None or high is None or low == high else f" [{_number(low)}, {_number(high)}]"


def _at(figure: Figure, one: Result) -> str:
    changes = commits_since(figure.code, one.commit)
    return one.commit + (f", {changes} change{'s' * (changes > 1)} since" if changes else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def written(page: str, text: str) -> str:
    """The page with its table as it is now."""
    return BLOCK.sub(lambda block: block[1] + table(PAGES[page]), text)


def measure(wanted: list[str]) -> int:
    """Run each benchmark once and keep what it says of the figures that are wanted."""
    if unknown := sorted(set(wanted) - declared().keys()):
        raise SystemExit(f"no such figure: {', '.join(unknown)}; bench/figures.toml has {', '.join(declared())}")
    figures = [one for one in declared().values() if not wanted or one.name in wanted]
    held = results()
    for command in dict.fromkeys(one.command for one in figures):
        print(f"{datetime.now():%H:%M:%S} {command}", flush=True)  # noqa: DTZ005 - for those who wait
        started = time.monotonic()
        if (by := busyness()) > BUSY:
            print(
                f"busy machine: a loop takes {by:.2f} × its processor time; `{command}` is not run, nothing of it is published"
            )
            return 1
        done = subprocess.run(  # noqa: S603 - a command of bench/figures.toml
            [sys.executable, *command.split()[1:], "--json"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"`{command}` failed:\n{done.stderr[-2_000:]}")
            return 1
        if (by := busyness()) > BUSY:
            print(f"busy machine after `{command}`: a loop takes {by:.2f} × its processor time; nothing of it is published")
            return 1
        report = json.loads(done.stdout)
        held |= {one.name: _result(one, report) for one in figures if one.command == command}
        told = {name: asdict(one) for name, one in held.items()}
        RESULTS.write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(
            f"kept: {', '.join(one.name for one in figures if one.command == command)}, in {time.monotonic() - started:.0f} s"
        )
    return 0


def _result(figure: Figure, report: dict[str, Any]) -> Result:
    row = _row(figure, report[figure.table], figure.row)
    found = row[figure.value]
    spread = found if isinstance(found, dict) else {"value": found, "low": None, "high": None}
    return Result(
        **{name: value * figure.times for name, value in spread.items() if value is not None},
        beside=_beside(figure, report),
        n=row.get("calls"),
        commit=commit(),
        date=datetime.now(UTC).date().isoformat(),
        machine=f"{os.cpu_count()} cores, {sys.platform}, Python {sys.version_info.major}.{sys.version_info.minor}",
        load=round(os.getloadavg()[0], 2),
    )


def _beside(figure: Figure, report: dict[str, Any]) -> str:
    """What the comparisons say, of those that were made: a peer that is not installed has no row."""
    rows = {row["what"]: row["figure"] for row in report.get("comparisons", report.get("figures", ()))}
    told = [(said, rows[what]) for said, what in figure.beside.items() if what in rows]
    return ", ".join(said.format(_number(one["value"]) + _spread(one["low"], one["high"])) for said, one in told)


def _row(figure: Figure, rows: list[dict[str, Any]], wanted: dict[str, Any]) -> dict[str, Any]:
    found = [row for row in rows if all(row.get(key) == value for key, value in wanted.items())]
    if len(found) != 1:
        raise SystemExit(f"{figure.name}: {len(found)} rows say {wanted}; correct bench/figures.toml")
    return found[0]


def stale() -> dict[str, int | None]:
    """The figures whose code was changed since they were measured, and how often; None: the commit is not known here."""
    figures, held = declared(), results()
    found = {name: commits_since(figure.code, held[name].commit) if name in held else None for name, figure in figures.items()}
    return {name: changes for name, changes in found.items() if changes != 0}


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return done.stdout.strip() if done.returncode == 0 else None


def main() -> int:
    parser = argparse.ArgumentParser(description="The speed figures of the pages: measured, kept, written, and looked after.")
    parser.add_argument("what", nargs="?", choices=("write", "measure", "stale"), default="write")
    parser.add_argument("names", nargs="*", help="of figures in bench/figures.toml (all)")
    given = parser.parse_args()
    if given.what == "measure":
        return measure(given.names)
    if given.what == "stale":
        old = stale()
        for name, changes in old.items():
            print(f"{name}: {'not measured here' if changes is None else f'{changes} changes since it was measured'}")
        return 1 if old else 0
    for page in PAGES:
        path = ROOT / page
        path.write_text(written(page, path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
