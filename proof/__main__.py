"""The command line of the proof: `run`, `list`, `defects`, `simulate`. Each promise runs in a process of its own, with a deadline."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from proof import breaking, report
from proof.catalogue import all_promises
from proof.harness import Outcome, Round, Wrong, run
from proof.servers import Postgres

ROOT = Path(__file__).parents[1]
DEADLINE_S = {"quick": 300.0, "full": 3_600.0}
STOPPING_S = 20.0
EXIT = {"kept": 0, "broken": 1, "unproven": 2, "failed": 3}
"""How a single promise's process ends, by its verdict."""


def main() -> int:
    if sys.argv[1:2] == ["simulate"]:
        from proof import simulation

        return simulation.main(sys.argv[2:])
    parser = argparse.ArgumentParser(prog="python -m proof", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the promises and how each is tried")
    running = commands.add_parser("run", help="try promises; all of them, or those named")
    running.add_argument("promises", nargs="*", metavar="P1")
    running.add_argument("--quick", action="store_true", help="a short round of each")
    running.add_argument("--seed", type=int, help="repeat the round of that seed; default: a new one, printed")
    running.add_argument("--case", type=int, help="only that case of the round")
    running.add_argument("--jobs", type=int, default=1, help="promises tried at a time")
    running.add_argument("--json", action="store_true", help="print the report as JSON")
    running.add_argument("--report", type=Path, default=ROOT / "build" / "proof", help="folder for the report")
    running.add_argument("--outcome", type=Path, help=argparse.SUPPRESS)
    commands.add_parser("simulate", help="the whole system, seed after seed; `simulate --help` tells more")
    broken = commands.add_parser("defects", help="break perdure on purpose and count what the promises catch")
    broken.add_argument("names", nargs="*")
    broken.add_argument("--jobs", type=int, default=1)
    broken.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if given.command == "list":
        for promise in all_promises().values():
            print(f"{promise.id:4} {promise.says}\n     {promise.tried_by}")
        return 0
    if given.command == "defects":
        return breaking.main(given.names, jobs=given.jobs, as_json=given.json)
    return _alone(given) if given.outcome else _all(given)


def _alone(given: argparse.Namespace) -> int:
    """One promise in this process; its outcome goes into a file."""
    promise = all_promises()[given.promises[0]]
    postgres = Postgres()
    folder = Path(tempfile.mkdtemp(prefix=f"proof-{promise.id}-"))

    def tell(text: str) -> None:
        print(f"{promise.id}: {text}", file=sys.stderr, flush=True)

    round = Round(promise.id, given.seed, "quick" if given.quick else "full", folder, given.case, tell, postgres.url)
    try:
        outcome = run(promise, round)
    finally:
        postgres.stop()
    if outcome.verdict == "kept":
        shutil.rmtree(folder, ignore_errors=True)
    else:
        tell(f"what it left is in {folder}")
    told = {name: value for name, value in asdict(outcome).items() if name != "promise"}
    given.outcome.write_text(json.dumps(told, default=str))
    return EXIT[outcome.verdict]


def _all(given: argparse.Namespace) -> int:
    known = all_promises()
    names = [name.upper() for name in given.promises] or [*known]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"no promise is called {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", file=sys.stderr)
    with ThreadPoolExecutor(max(1, given.jobs)) as pool:
        outcomes = [*pool.map(lambda name: _in_a_process(name, seed, given), names)]
    path = report.write(given.report, outcomes)
    on = report.machine()
    print(report.as_json(outcomes, on) if given.json else report.as_markdown(outcomes, on))
    print(f"report: {path}", file=sys.stderr)
    return 0 if all(one.verdict == "kept" for one in outcomes) else 1


def _in_a_process(name: str, seed: int, given: argparse.Namespace) -> Outcome:
    promise = all_promises()[name]
    size = "quick" if given.quick else "full"
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        path = Path(folder) / "outcome.json"
        command = [sys.executable, "-m", "proof", "run", name, "--seed", str(seed), "--outcome", str(path)]
        command += ["--quick"] * given.quick + (["--case", str(given.case)] if given.case is not None else [])
        began = time.monotonic()
        error = ""
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        try:
            process.wait(DEADLINE_S[size])
        except subprocess.TimeoutExpired:
            error = f"it did not end within {DEADLINE_S[size]:.0f} s"
            _end(process)
        if not path.exists():
            error = error or f"its process ended with {process.returncode} and told nothing"
            return Outcome(promise, "failed", "none", seed, size, time.monotonic() - began, {}, {}, (), {}, (), error)
        told = json.loads(path.read_text())
    told["wrongs"] = tuple(Wrong(**one) for one in told["wrongs"])
    told["unmet"] = tuple(told["unmet"])
    outcome = Outcome(promise=promise, **told)
    print(f"{name}: {outcome.verdict}: {outcome.figure} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True)
    return outcome


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it stop what it started; then by force. Its group is its own, and its number is not given away before `wait`."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOPPING_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    # As Ctrl-C does: leave by the way that stops servers and removes folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
