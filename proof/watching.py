"""Watches what this process does to the world outside: where it connects, what it starts, which files it writes or removes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STARTS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.startfile")
CHANGES = (
    "os.remove",
    "os.rename",
    "os.rmdir",
    "os.mkdir",
    "os.link",
    "os.symlink",
    "os.truncate",
    "shutil.rmtree",
    "shutil.move",
)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(slots=True)
class Watch:
    """What may be done, and what was done besides."""

    address: tuple[str, int]
    folder: Path
    connections: int = 0
    strange: list[str] = field(default_factory=list)

    def see(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            self.connections += 1
            self._check(tuple(args[1][:2]) if isinstance(args[1], tuple) else args[1], self.address, event)
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
            named = args[1] if event == "socket.sendto" else args[:2]
            self._check(
                (named[0], int(named[1] or 0)) if isinstance(named, tuple) and len(named) > 1 else named, self.address, event
            )
        elif event in STARTS:
            self.strange.append(f"{event} {args!r:.200}")
        elif event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & WRITING):
            self._check_path(event, args[0])

    def _check(self, found: object, allowed: object, event: str) -> None:
        if found != allowed:
            self.strange.append(f"{event} {found!r:.200}")

    def _check_path(self, event: str, path: object) -> None:
        if isinstance(path, int):
            return  # a descriptor that was opened before
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else repr(path)
        inside = Path(os.path.realpath(text)).is_relative_to(os.path.realpath(self.folder))
        if not inside and "__pycache__" not in text and text != os.devnull:
            self.strange.append(f"{event} {text!r:.200}")


_WATCHES: list[Watch] = []
_HOOKED: list[bool] = []


def _hook(event: str, args: tuple[Any, ...]) -> None:
    for watch in _WATCHES:
        watch.see(event, args)


@contextmanager
def watched(address: tuple[str, int], folder: Path) -> Iterator[Watch]:
    """While it lasts, everything is seen that goes elsewhere than to that address and that folder."""
    if not _HOOKED:
        sys.addaudithook(_hook)  # it cannot be taken off again
        _HOOKED.append(True)
    watch = Watch(address, folder)
    _WATCHES.append(watch)
    try:
        yield watch
    finally:
        _WATCHES.remove(watch)
