"""Folders of owners: private to the account that runs perdure, named so that no id leads out of them, and their locks."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from perdure.adapters.files import locked, safe_name, sync_folder, writing
from perdure.domain.errors import Corrupt, Unavailable
from perdure.domain.scope import Owner

PRIVATE = 0o700
LOCKS = ".locks"
LOCKS_PER_PURPOSE = 64


def owner_folder(root: Path, owner: Owner) -> Path:
    """`ROOT/SPACE/USER`. It need not exist."""
    return root / safe_name(owner.space) / safe_name(owner.user)


def check_root(root: Path) -> None:
    """`Unavailable` if something else than a folder stands at `root`: nobody may say then that a file is not there."""
    if root.exists() and not root.is_dir():
        raise Unavailable(f"{root} is not a folder; see that what it should be is there, then try again")


def make_folder(folder: Path) -> None:
    """Make the folder and those above it, as far as they are missing; others may not look into them."""
    if folder.is_dir():
        return
    with writing(folder):
        for one in (*reversed(folder.parents), folder):
            if not one.is_dir():
                one.mkdir(mode=PRIVATE, exist_ok=True)
                sync_folder(one.parent)


def remove_empty(folder: Path, *, up_to: Path) -> None:
    """Remove the folder and those above it below `up_to`, until one is not empty. What was removed in it stays removed."""
    with suppress(OSError):
        while folder != up_to:
            folder.rmdir()
            folder = folder.parent
    while True:
        try:
            sync_folder(folder)
        except FileNotFoundError:
            folder = folder.parent  # that of another owner has just taken it away
        else:
            return


@contextmanager
def owner_lock(root: Path, owner: Owner, purpose: str, *, shared: bool = False) -> Iterator[None]:
    """Keep other threads and processes from working on the same files of this owner.

    Lock files must outlive what they guard, or two could hold "the same" one. Owners share a few, so that these do not
    tell who was here once an owner is erased, and do not grow in number.
    """
    folder = root / LOCKS
    make_folder(folder)
    number = hashlib.sha256(f"{owner.space}\0{owner.user}".encode()).digest()[0] % LOCKS_PER_PURPOSE
    with locked(folder / f"{purpose}-{number:02}", shared=shared):
        yield


def followed(path: Path) -> Path:
    """Where a link leads: what people linked is written where they keep it, and stays a link."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def check_regular(path: Path) -> None:
    """`Corrupt` if something else than a file stands there: reading a pipe would wait for ever."""
    if path.exists() and not path.is_file():
        raise Corrupt(f"{path} is not a file; move it away")


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the operating system refuses, as our own error."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be read ({error.strerror or error}); see that it is there and may be read") from error
