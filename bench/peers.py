"""perdure beside everybody in one command: appending, recalling, the first answer, taking in, the disk, and MCP over stdio.

Runs `append.py`, the parts of `recall_speed.py` in which peers take part, and `start.py`, one after the other, and prints
what compares perdure with peers, with intervals. Peers that are not installed are named and left out. All get the same texts
from a seed; those that search get the same vectors from perdure's built-in embedder. What is fair about each stands in
bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import machine

HERE = Path(__file__).parent
RECALL = ("10k", "100k", "opening", "ingest")
RUNS: dict[str, tuple[str, ...]] = {
    "append": ("append.py",),
    "recall": ("recall_speed.py", *(word for part in RECALL for word in ("--only", part))),
    "mcp": ("start.py",),
}
OTHERS = ("openai-agents", "langgraph", "LangGraph", "mem0", "Chroma", "agno", "npm", "raw", "numpy")
NAMED_LEFT_OUT = ("MISSING", "left out")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=RUNS, action="append", help="this run alone; may be given several times")
    parser.add_argument("--quick", action="store_true", help="small stores, few calls: shows that it runs, proves nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    options = parser.parse_args()
    busy = machine.busyness()
    told: dict[str, Any] = {"commit": machine.commit(), "date": datetime.now(UTC).date().isoformat(), "runs": {}}
    for name in options.only or RUNS:
        told["runs"][name] = run(name, options)
    told["busy"] = max(busy, machine.busyness())
    if options.json:
        print(json.dumps(told, indent=1, ensure_ascii=False))
        return
    show(told)


def run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """What a benchmark says of perdure and its peers; how it goes is seen on stderr."""
    more = [*(["--quick"] if options.quick else []), *(["--dir", str(options.dir)] if options.dir else [])]
    command = [str(HERE / RUNS[name][0]), *RUNS[name][1:], *more, "--json"]
    print(f"{' '.join(command)}", file=sys.stderr, flush=True)
    began = time.monotonic()
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"FAILED: {name}\n{done.stderr[-2_000:]}")
    report = json.loads(done.stdout)
    notes = [*report.get("notes", ()), *done.stderr.splitlines()]
    return {
        "notes": [note for note in notes if any(other in note for other in OTHERS)],
        "figures": [row for row in report.get("comparisons", report.get("figures", ())) if compares(row["what"])],
        "machine": report.get("machine")
        or [note for note in notes if note.startswith(("load", "4 KiB", "cpu", "file system"))],
        "seconds": round(time.monotonic() - began),
    }


def compares(what: str) -> bool:
    """Whether a row is about a peer, or the limit, or of perdure where they have one too."""
    shared = ("MB on disk, ", "first search, ", "ingest: messages/s, ", "MCP: ")
    return any(other in what for other in OTHERS) or any(part in what for part in shared)


def show(told: dict[str, Any]) -> None:
    print(f"commit {told['commit']}, {told['date']}, load {os.getloadavg()[0]:.2f}")
    if told["busy"] > machine.BUSY:
        print(f"busy machine: a loop takes {told['busy']:.2f} × its processor time; none of this is to be published")
    left_out: list[str] = []
    for name, one in told["runs"].items():
        print(f"\n{name}, in {one['seconds']} s")
        left_out += [note for note in one["notes"] if any(word in note for word in NAMED_LEFT_OUT)]
        machine.show_figures(one["figures"], limit="the limit")
    print("\n" + ("\n".join(dict.fromkeys(left_out)) or "nobody was left out"))


if __name__ == "__main__":
    main()
