"""The command line. `main` is the script; everything heavy is imported when it runs."""

from __future__ import annotations

import gc


def main() -> None:
    # What is imported stays: looking through it for garbage, while it is loaded and when the process ends, took a third of a
    # short command.
    gc.disable()
    from perdure.interfaces.cli.commands import run

    gc.freeze()
    gc.enable()
    run()
