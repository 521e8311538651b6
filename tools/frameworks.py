"""Makes an environment for each framework that `perdure.integrations` has an adapter for, with the framework's own tests.

python tools/frameworks.py              makes what is missing under .venv/frameworks
python tools/frameworks.py langgraph    of one framework

The frameworks do not resolve together, so each has an environment of its own; what perdure itself needs is taken from ours.
Once made, nothing is fetched.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(sys.prefix) / "frameworks"
CONSTRAINTS = ROOT / "tests" / "integrations" / "constraints"
TRIES = 3
TIMEOUT_S = 600.0


class Missing(Exception):
    """An environment is not there and could not be made."""


@dataclass(frozen=True, slots=True)
class Framework:
    """What is installed into one environment, and whose source has the tests."""

    requirements: tuple[str, ...]
    source: str | None = None
    """A package whose source distribution is unpacked beside the environment."""
    more_sources: tuple[str, ...] = ()
    """Others."""
    large: str = ""
    """How much it takes, if that is too much for everybody: it is made where `CI=true`, or when it is named."""


FRAMEWORKS: Mapping[str, Framework] = {
    "openai-agents": Framework(
        ("openai-agents", "pytest", "pytest-asyncio", "pytest-mock", "inline-snapshot", "graphviz"), "openai-agents"
    ),
    "langgraph": Framework(
        (
            *("langgraph-checkpoint", "langgraph-checkpoint-conformance", "langgraph-checkpoint-sqlite"),
            *("pytest", "pytest-asyncio", "pytest-mock"),
        ),
        "langgraph-checkpoint",
        ("langgraph-checkpoint-sqlite",),
    ),
    "langchain": Framework(("langchain", "langchain-tests")),
    "adk": Framework(("google-adk",)),
    "agent-framework": Framework(("agent-framework-core",)),
    "llama-index": Framework(("llama-index-core",)),
    "anthropic": Framework(("anthropic",)),
    "claude": Framework(("claude-agent-sdk",), large="420 MB"),
    "pydantic-ai": Framework(("pydantic-ai-slim",)),
}


def python(name: str) -> Path:
    """The interpreter of a framework's environment."""
    return FOLDER / name / "bin" / "python"


def source(name: str, package: str | None = None) -> Path:
    """The unpacked source of a framework, or of another package of its environment, with its tests."""
    [found] = _unpacked(name, package or FRAMEWORKS[name].source or name)
    return found


def _unpacked(name: str, package: str) -> list[Path]:
    return list((FOLDER / name / "source").glob(f"{package.replace('-', '_')}-[0-9]*"))


def version(name: str) -> str:
    """The version of a framework that its constraints pin."""
    package = FRAMEWORKS[name].requirements[0]
    pins = (CONSTRAINTS / f"{name}.txt").read_text().splitlines()
    return next(line for line in pins if line.startswith(f"{package}==")).partition("==")[2]


def keep_run(name: str, suite: str, passed: int) -> None:
    """Keep how much of a suite passed, for `tools/integrations.py`."""
    folder = FOLDER / name / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    run = {"suite": suite, "passed": passed, "version": version(name), "date": datetime.now(tz=UTC).date().isoformat()}
    made = folder / f"{hashlib.sha256(suite.encode()).hexdigest()[:16]}.{os.getpid()}"
    made.write_text(json.dumps(run))
    made.replace(made.with_suffix(".json"))


def left_out(name: str) -> str:
    """Why a framework is left out here, and how to have it; empty if it is not."""
    large = FRAMEWORKS[name].large
    if not large or os.environ.get("CI") == "true" or (FOLDER / name / "made").is_file():
        return ""
    return f"{name} takes {large}, so it is left out unless CI=true; `python tools/frameworks.py {name}` makes it here"


def install(name: str) -> None:
    """Make the environment of a framework unless it is there. Several processes may ask at once."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pins = (CONSTRAINTS / f"{name}.txt").read_text()
    made = FOLDER / name / "made"
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = ""
        for _ in range(TRIES):
            if made.is_file() and made.read_text() == pins:
                return
            said = _make(name)
            if not said:
                made.write_text(pins)
        if not made.is_file():
            raise Missing(f"pip could not install {name}; run {sys.executable} {__file__} {name} once it can. It said: {said}")


def _make(name: str) -> str:
    """One try; the last line that pip said if it failed."""
    framework, place = FRAMEWORKS[name], FOLDER / name
    pins = CONSTRAINTS / f"{name}.txt"
    if not python(name).is_file():
        venv.create(place, with_pip=True)
    if said := _pip(name, "install", "--quiet", "--constraint", str(pins), *framework.requirements):
        return said
    # Behind everything else: what the framework pins goes first, what perdure needs besides is ours.
    own = place / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages" / "perdure.pth"
    own.write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
    for package in filter(None, (framework.source, *framework.more_sources)):
        if _unpacked(name, package):
            continue
        pin = next(line for line in pins.read_text().splitlines() if line.startswith(f"{package}=="))
        fetched = place / "fetched" / package
        if said := _pip(name, "download", "--quiet", "--no-deps", "--no-binary", package, "--dest", str(fetched), pin):
            return said
        [archive] = fetched.glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(place / "source", filter="data")
    return ""


def _pip(name: str, *words: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [str(python(name)), "-m", "pip", "--disable-pip-version-check", *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return "" if done.returncode == 0 else (done.stderr or done.stdout).strip().splitlines()[-1][:300]


if __name__ == "__main__":
    for wanted in sys.argv[1:] or FRAMEWORKS:
        if not sys.argv[1:] and (why := left_out(wanted)):
            print(why)
            continue
        try:
            install(wanted)
        except Missing as error:
            sys.exit(str(error))
        print(f"{wanted} is in {FOLDER / wanted}")
