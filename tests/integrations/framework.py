"""How tests run something in the environment of a framework."""

from __future__ import annotations

import os
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
    environment = {**os.environ, "PYTHONPATH": str(HERE), "NO_COLOR": "1"}
    command = [str(frameworks.python(name)), *words]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True, timeout=500, check=False)
