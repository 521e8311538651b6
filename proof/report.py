"""The report of a proof run: promise, figure, verdict, seed, time; how each was tried, and how to repeat each failure."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from proof.harness import Outcome

NAMES_MAX = 12
"""Of longer lists the rest is counted; all of them are in the JSON beside."""
WRONGS_SHOWN = 10
SAID_CHARS = 500
SAID_LINES = 30


def as_json(outcomes: Sequence[Outcome], machine: dict[str, object]) -> str:
    told = []
    for one in outcomes:
        body = {name: value for name, value in asdict(one).items() if name != "promise"}
        told.append(
            {"id": one.promise.id, "says": one.promise.says, "tried_by": one.promise.tried_by, **body, "replay": one.replay}
        )
    return json.dumps({"machine": machine, "outcomes": told}, indent=1, default=str)


def as_markdown(outcomes: Sequence[Outcome], machine: dict[str, object]) -> str:
    lines = [
        "# Proof report",
        "",
        ", ".join(f"{name}: {value}" for name, value in machine.items()),
        "",
        "| # | promise | figure | verdict | seed | time |",
        "|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        verdict = one.verdict if one.verdict == "kept" else f"**{one.verdict}**"
        round = f"{one.seed} ({one.extent})"
        lines.append(row(one.promise.id, one.promise.says, one.figure, verdict, round, f"{one.seconds:.0f} s"))
    for one in outcomes:
        lines += ["", *_details(one)]
    return "\n".join([*lines, ""])


def row(*cells: str) -> str:
    """One row of a table, whatever is in the cells."""
    plain = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(plain)} |"


def readable(value: object) -> str:
    """A measured value as a person would write it: no brackets, no quotes, and no list without an end."""
    match value:
        case dict():
            return _cut([f"{name} {readable(one)}" for name, one in value.items()])
        case list() | tuple() | set() | frozenset():
            return _cut([readable(one) for one in value])
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
    return str(value)


def _cut(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = len(names) - NAMES_MAX
    return ", ".join(names[:NAMES_MAX]) + (f" … and {more} more" if more > 0 else "")


def _details(one: Outcome) -> list[str]:
    """Below the table: how it was tried, what was met and measured, and what went wrong."""
    # First what the verdict depends on, so that nothing of it is cut off.
    names = sorted(one.evidence, key=lambda name: (name not in one.promise.evidence, name))
    met = [f"{name} ({one.evidence[name]:,})" for name in names if one.evidence[name]]
    lines = [f"**{one.promise.id}** {one.promise.says}", "", f"- tried by: {one.promise.tried_by}"]
    lines.append(f"- met: {_cut(met) if met else 'nothing'}")
    lines += [f"- measured: {name}: {readable(value)}" for name, value in one.facts.items()]
    if one.unmet:
        lines.append(f"- never met: {', '.join(one.unmet)}")
    for (kind, what), cases in [*_alike(one).items()][:WRONGS_SHOWN]:
        where = f" (case {', '.join(cases[:NAMES_MAX])}{' …' if len(cases) > NAMES_MAX else ''})" if cases else ""
        lines += _said(f"- {kind}{where}", what)
    if one.error:
        lines += _said("- the trial itself broke", one.error.strip())
    if one.verdict != "kept":
        lines.append(f"- repeat: `{one.replay}`")
    return lines


def _alike(one: Outcome) -> dict[tuple[str, str], list[str]]:
    """What went wrong, and the cases that showed the same."""
    found: dict[tuple[str, str], list[str]] = {}
    for wrong in one.wrongs:
        cases = found.setdefault((wrong.kind, wrong.what.strip()), [])
        cases += [] if wrong.case is None or str(wrong.case) in cases else [str(wrong.case)]
    return found


def _said(head: str, text: str) -> list[str]:
    """Behind its head if it is one line; otherwise below, as it was printed. What was raised is told by the last lines."""
    if "\n" not in text:
        return [f"{head}: {text[:SAID_CHARS]}"]
    return [f"{head}:", "", "  ```", *(f"  {line}" for line in text.splitlines()[-SAID_LINES:]), "  ```", ""]


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    import os

    from perdure.adapters.sqlite.store import apsw

    return {
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def write(folder: Path, outcomes: Sequence[Outcome], name: str = "report") -> Path:
    """The report as `name.md` and `name.json`; the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    on = machine()
    (folder / f"{name}.json").write_text(as_json(outcomes, on))
    path = folder / f"{name}.md"
    path.write_text(as_markdown(outcomes, on))
    return path
