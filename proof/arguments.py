"""What the command lines of the proof have in common: nothing is guessed from half a word, and no number that means nothing is taken."""

from __future__ import annotations

import argparse
from typing import Any


class Parser(argparse.ArgumentParser):
    """Takes options by their whole names only: `--seed` must never be read as `--seeds`. Its commands do the same."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "allow_abbrev": False})


def positive(text: str) -> int:
    """A number from 1 on."""
    return _at_least(1, text)


def not_negative(text: str) -> int:
    """A number from 0 on."""
    return _at_least(0, text)


def part(text: str) -> tuple[int, int]:
    """`2/4`: the second of four parts."""
    number, slash, of = text.partition("/")
    if not slash or (found := (positive(number), positive(of)))[0] > found[1]:
        raise argparse.ArgumentTypeError(f"{text!r} is no part such as 2/4")
    return found


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} on")
    return number
