"""The command line of the proof: `run`, `list`, `defects`, `simulate`. Each promise runs in a process of its own, with a deadline."""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from proof import breaking, needs, report
from proof.arguments import Parser, not_negative, part, positive
from proof.harness import WHOLE, Outcome, Promise, Round, Size, Wrong, run

ROOT = Path(__file__).parents[1]
REPORTS = ROOT / "build" / "proof"
DEADLINE_S = {"quick": 900.0, "full": 6 * 3_600.0}
"""Of the clock, against a promise that hangs: far more than a sound one takes on a machine with much else to do."""
STOPPING_S = 20.0
EXIT = {"kept": 0, "broken": 1, "unproven": 2, "failed": 3}
"""How a single promise's process ends, by its verdict."""
USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    words = [*(sys.argv[1:] if argv is None else argv)]
    try:
        if words[:1] == ["simulate"]:
            from proof import simulation

            return simulation.main(words[1:])
        return _command(_parser().parse_args(words))
    except ModuleNotFoundError as error:
        return _refused(needs.installed(error))


def _parser() -> Parser:
    parser = Parser(prog="python -m proof", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the promises and how each is tried")
    running = commands.add_parser("run", help="try promises; all of them, or those named")
    running.add_argument("promises", nargs="*", metavar="P1")
    running.add_argument("--quick", action="store_true", help="a short round of each")
    running.add_argument("--seed", type=int, help="repeat the round of that seed; default: a new one, printed")
    running.add_argument("--case", type=not_negative, help="only that case of the round of one promise")
    running.add_argument(
        "--part", type=part, default=WHOLE, metavar="2/4", help="only that part of the cases; all parts of a seed are its round"
    )
    running.add_argument("--jobs", type=positive, default=1, help="promises tried at a time")
    running.add_argument("--json", action="store_true", help="print the report as JSON")
    running.add_argument(
        "--report",
        type=Path,
        help="folder for report.md and report.json; default: build/proof, where only a full run of all is called so",
    )
    running.add_argument("--outcome", type=Path, help=argparse.SUPPRESS)
    commands.add_parser("simulate", help="the whole system, seed after seed; `simulate --help` tells more")
    broken = commands.add_parser("defects", help="break perdure on purpose and count what the promises catch")
    broken.add_argument("names", nargs="*")
    broken.add_argument("--list", action="store_true", help="only tell their names, what each breaks and what catches it")
    broken.add_argument("--jobs", type=positive, default=1, help="broken builds tried at a time")
    broken.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser


def _command(given: argparse.Namespace) -> int:
    if given.command == "list":
        for id, says, tried_by in listed():
            print(f"{id:4} {says}\n     {tried_by}")
        return 0
    if given.command == "defects" and given.list:
        return breaking.tell_all(as_json=given.json)
    if missing := needs.linux():
        return _refused(missing)
    if given.command == "defects":
        return breaking.main(given.names, jobs=given.jobs, as_json=given.json, folder=REPORTS)
    return _alone(given) if given.outcome else _all(given)


def _refused(line: str) -> int:
    print(f"python -m proof: {line}", file=sys.stderr)
    return USAGE


def _promises() -> Mapping[str, Promise]:
    # They import everything they break, which `list` and `--help` must not need.
    from proof.catalogue import all_promises

    return all_promises()


def listed() -> Iterator[tuple[str, str, str]]:
    """Id, words and trial of every promise, read from the source: a Python that has nothing installed can tell them too."""
    wanted = ("id", "says", "tried_by")
    for path in sorted((Path(__file__).parent / "promises").glob("p[0-9]*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PROMISE" and isinstance(node.value, ast.Call):
                told = dict(zip(wanted, node.value.args, strict=False)) | {one.arg: one.value for one in node.value.keywords}
                id, says, tried_by = (ast.literal_eval(told[name]) for name in wanted)
                yield id, says, tried_by


def _alone(given: argparse.Namespace) -> int:
    """One promise in this process; its outcome goes into a file."""
    from proof.servers import Postgres

    promise = _promises()[given.promises[0]]
    postgres = Postgres()
    folder = Path(tempfile.mkdtemp(prefix=f"proof-{promise.id}-"))

    def tell(text: str) -> None:
        print(f"{promise.id}: {text}", file=sys.stderr, flush=True)

    round = Round(promise.id, given.seed, _size(given), folder, given.case, given.part, tell, postgres.url)
    try:
        outcome = run(promise, round)
    finally:
        postgres.stop()
    if outcome.verdict == "kept" or outcome.no_such_case:
        shutil.rmtree(folder, ignore_errors=True)
    else:
        tell(f"what it left is in {folder}")
    told = {name: value for name, value in asdict(outcome).items() if name != "promise"}
    given.outcome.write_text(json.dumps(told, default=str))
    return EXIT[outcome.verdict]


def _all(given: argparse.Namespace) -> int:
    known = _promises()
    wanted = dict.fromkeys(name.upper() for name in given.promises)
    names = [name for name in known if name in wanted or not wanted]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        return _refused(f"no promise is called {', '.join(unknown)}; there are {', '.join(known)}")
    if given.case is not None and len(names) != 1:
        return _refused(f"--case is a case of one promise; {len(names)} are to be tried")
    folder = REPORTS if given.report is None else given.report
    if unfit := _unfit(folder):
        return _refused(unfit)
    seed = random.SystemRandom().randrange(2**32) if given.seed is None else given.seed
    print(f"seed {seed}", file=sys.stderr)
    outcomes = _in_processes([known[name] for name in names], seed, given)
    if absent := next((one.no_such_case for one in outcomes if one.no_such_case), ""):
        return _refused(absent)
    path = report.write(folder, outcomes, _name(given, names, all_of_them=len(names) == len(known)))
    on = report.machine()
    print(report.as_json(outcomes, on) if given.json else report.as_markdown(outcomes, on))
    print(f"report: {path}", file=sys.stderr)
    return 0 if all(one.verdict == "kept" for one in outcomes) else 1


def _unfit(folder: Path) -> str:
    """Why no report can be written there; found out before anything runs, since that may take hours."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"no report can be written into {folder}: {error.strerror or error}"


def _name(given: argparse.Namespace, names: Sequence[str], *, all_of_them: bool) -> str:
    """What the report is called. Where nobody named a folder, nothing may take the place of the report of all in full."""
    if given.report is not None:
        return "report"
    parts = [*(["report"] if all_of_them else names), *(["quick"] if given.quick else [])]
    parts += [] if given.part == WHOLE else ["part-{}-of-{}".format(*given.part)]
    return "-".join([*parts, *([f"case-{given.case}"] if given.case is not None else [])])


def _size(given: argparse.Namespace) -> Size:
    return "quick" if given.quick else "full"


def _in_processes(promises: Sequence[Promise], seed: int, given: argparse.Namespace) -> list[Outcome]:
    running: set[subprocess.Popen[bytes]] = set()
    pool = ThreadPoolExecutor(given.jobs)
    try:
        return [*pool.map(lambda promise: _in_a_process(promise, seed, given, running), promises)]
    except BaseException:
        # Each has a session of its own, so that Ctrl-C reaches this process alone; without this it would wait for their ends.
        pool.shutdown(wait=False, cancel_futures=True)
        for process in [*running]:
            _end(process)
        raise
    finally:
        pool.shutdown()


def _in_a_process(promise: Promise, seed: int, given: argparse.Namespace, running: set[subprocess.Popen[bytes]]) -> Outcome:
    name, size = promise.id, _size(given)
    began = time.monotonic()

    def failed(error: str) -> Outcome:
        print(f"{name}: failed: {error}", file=sys.stderr, flush=True)
        seconds = time.monotonic() - began
        return Outcome(promise, "failed", "none", seed, size, seconds, {}, {}, (), {}, (), error, given.case, part=given.part)

    if missing := needs.compiler(name, size) or needs.etcd(name):
        return failed(missing)
    with tempfile.TemporaryDirectory(prefix="proof-") as folder:
        path = Path(folder) / "outcome.json"
        command = [sys.executable, "-m", "proof", "run", name, "--seed", str(seed), "--outcome", str(path)]
        command += ["--quick"] * given.quick + (["--case", str(given.case)] if given.case is not None else [])
        command += ["--part", "{}/{}".format(*given.part)]
        error = ""
        process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        running.add(process)
        try:
            process.wait(DEADLINE_S[size])
        except subprocess.TimeoutExpired:
            error = f"it did not end within {DEADLINE_S[size]:.0f} s"
            _end(process)
        finally:
            running.discard(process)
        if not path.exists():
            return failed(error or f"its process ended with {process.returncode} and told nothing")
        told = json.loads(path.read_text())
    told["wrongs"] = tuple(Wrong(**one) for one in told["wrongs"])
    told["unmet"] = tuple(told["unmet"])
    told["part"] = tuple(told["part"])
    outcome = Outcome(promise=promise, **told)
    if not outcome.no_such_case:
        print(f"{name}: {outcome.verdict}: {outcome.figure} ({outcome.seconds:.0f} s)", file=sys.stderr, flush=True)
    return outcome


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let it stop what it started; then by force. Its group is its own, and its number is not given away before `wait`."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOPPING_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    # As Ctrl-C does: leave by the way that stops servers and removes folders.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read it has read enough, as `head` does. Nothing is left to be written at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
