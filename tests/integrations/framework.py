"""How tests run something in the environment of a framework, and keep what passed for the page of integrations."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

import frameworks

HERE = Path(__file__).parent


def ready(name: str) -> None:
    """Fail in one line if the environment is not there and cannot be made. Skip, and say so, if it is left out here."""
    if why := frameworks.left_out(name):
        pytest.skip(why)
    try:
        frameworks.install(name)
    except frameworks.Missing as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def run(name: str, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What a command in the environment says. If it says how many checks passed, and fails nothing, that is kept."""
    environment = {**os.environ, "PYTHONPATH": str(HERE), "NO_COLOR": "1"}
    command = [str(frameworks.python(name)), *words]
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=500, check=False)
    passed = re.findall(r"^(\d+) passed", done.stdout, re.MULTILINE)
    if done.returncode == 0 and passed:
        frameworks.keep_run(name, suite(name, words), int(passed[-1]))
    return done


def suite(name: str, words: tuple[str, ...]) -> str:
    """Which checks a command runs, for a reader: our script, or files of the framework's source."""
    files = [Path(word) for word in words if word.endswith(".py")]
    if any(file.is_absolute() for file in files):
        return ", ".join(f"`tests/integrations/{file.name}`" for file in files)
    package = frameworks.FRAMEWORKS[name].source or name
    return f"{', '.join(f'`{file}`' for file in files)} of {package}"
