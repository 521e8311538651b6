"""The report of a proof run: promise, test, figure, seed, time, and how to repeat each failure."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from proof.harness import Outcome


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
        "| # | promise | test | figure | verdict | seed | time |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in outcomes:
        verdict = one.verdict if one.verdict == "kept" else f"**{one.verdict}**"
        lines.append(
            f"| {one.promise.id} | {one.promise.says} | {one.promise.tried_by} | {one.figure} | {verdict} | {one.seed} "
            f"({one.size}) | {one.seconds:.0f} s |"
        )
    lines.append("")
    for one in outcomes:
        met = ", ".join(f"{name} {count:,}" for name, count in sorted(one.evidence.items()))
        facts = ", ".join(f"{name} {value}" for name, value in one.facts.items())
        lines += [f"- **{one.promise.id}** met: {met or 'nothing'}." + (f" Measured: {facts}." if facts else "")]
        if one.unmet:
            lines.append(f"  - never met: {', '.join(one.unmet)}")
        lines += [f"  - {wrong.kind} (case {wrong.case}): {wrong.what.strip()[:500]}" for wrong in one.wrongs[:10]]
        if one.error:
            lines += ["", "```", one.error.strip(), "```", ""]
        if one.verdict != "kept":
            lines.append(f"  - repeat: `{one.replay}`")
    return "\n".join([*lines, ""])


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


def write(folder: Path, outcomes: Sequence[Outcome]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    on = machine()
    (folder / "report.json").write_text(as_json(outcomes, on))
    path = folder / "report.md"
    path.write_text(as_markdown(outcomes, on))
    return path
