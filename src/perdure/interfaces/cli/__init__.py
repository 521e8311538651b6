"""The command line. `main` is the script; everything heavy is imported when it runs."""

from __future__ import annotations


def main() -> None:
    from perdure.interfaces.cli.commands import run

    run()
