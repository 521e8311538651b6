"""What may name a file: rules that every place shares which is given a path."""

from __future__ import annotations

import os
from pathlib import Path

from perdure.domain.errors import InvalidInput

PATH_BYTES_MAX, NAME_BYTES_MAX = 4_000, 255
"""What file systems allow, but for a little room that a temporary name needs."""


def check_path(value: str | os.PathLike[str], what: str) -> Path:
    """`value` as a path, if the system can have a file of that name."""
    text = str.__str__(value) if isinstance(value, str) else os.fspath(value) if isinstance(value, os.PathLike) else None
    if not isinstance(text, str):
        raise InvalidInput(f"`{what}` must be the name of a file, not a `{type(value).__name__}`; pass a text or a path")
    try:
        raw = os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidInput(f"`{what}` contains a lone surrogate, which no file is named by; remove it") from None
    if b"\0" in raw:
        raise InvalidInput(f"`{what}` contains a NUL character, which no file is named by; remove it")
    if len(raw) > PATH_BYTES_MAX or any(len(part) > NAME_BYTES_MAX for part in raw.split(b"/")):
        raise InvalidInput(
            f"`{what}` is longer than the {PATH_BYTES_MAX} bytes of a path or the {NAME_BYTES_MAX} of a name; use a shorter one"
        )
    return Path(text)
