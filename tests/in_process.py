"""The command line in this process, from its real entry: for tests with many commands. Building the commands takes longer
than running most of them, and so does opening a store, so both are done once."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import typer.main

import perdure
from perdure.interfaces.cli import commands


@dataclass(frozen=True)
class Done:
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What was answered: one value, or a list of them if there are several lines."""
        told = [json.loads(line) for line in self.stdout.splitlines()]
        return told[0] if len(told) == 1 else told


class InProcess:
    """Runs commands on an engine that stays open."""

    def __init__(self, patch: pytest.MonkeyPatch, engine: perdure.Engine) -> None:
        @contextmanager
        def opened(_: object, *, background: bool = False) -> Iterator[perdure.Engine]:
            yield engine

        patch.setattr(commands, "app", _group())
        patch.setattr(commands.GlobalOptions, "engine", opened)
        self._patch = patch

    def run(self, *args: str, stdin: str = "") -> Done:
        out, err = io.StringIO(), io.StringIO()
        with self._patch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr(sys, "argv", ["perdure", *args])
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            code = 0
            try:
                commands.run()
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Done(code, out.getvalue(), err.getvalue())


@cache
def _group() -> Any:
    return typer.main.get_command(commands.app)
