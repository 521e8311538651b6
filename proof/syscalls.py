"""The calls by which a process touches its files: counted, and at the N-th one killed, cut short or failed.

`shim/shim.c` does it inside the process (LD_PRELOAD). This module builds it, and programmes it through a file that both map.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

SOURCE = Path(__file__).parent / "shim" / "shim.c"
VARIABLE = "PROOF_SYSCALLS"
UNDER_BYTES = 1024
LOG_MAX = 65_536
_HEAD = struct.Struct("=8q")

KINDS = (
    "open",
    "read",
    "write",
    "fsync",
    "fdatasync",
    "truncate",
    "rename",
    "unlink",
    "link",
    "mkdir",
    "close",
    "lock",
    "map",
    "create",
)
"""As in the shim. `create` is an open that may make or empty a file, `truncate` also stands for fallocate."""
CHANGING = ("write", "fsync", "fdatasync", "truncate", "rename", "unlink", "link", "mkdir", "map", "create")
"""Those that change what is on the disk. Dying at any other call leaves what dying at the next one of these leaves."""

Act = Literal["count", "kill before", "kill after", "kill halfway", "fail", "shorten"]
ACTS: tuple[Act, ...] = ("count", "kill before", "kill after", "kill halfway", "fail", "shorten")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do at which call. `shorten` lets half of a write through; if it lasts, all later ones fail with `error`."""

    kinds: tuple[str, ...] = CHANGING
    at: int = 0
    act: Act = "count"
    error: str = "EIO"
    lasting: bool = False


class Control:
    """The shared file that programmes the shim of one process and of those it forks."""

    def __init__(self, path: Path, *, under: Path | None = None) -> None:
        """With `under`, a new one for calls below that folder; else the one that is there."""
        size = _HEAD.size + UNDER_BYTES + LOG_MAX
        if under is not None:
            name = os.fsencode(under.resolve())
            if len(name) >= UNDER_BYTES:
                raise ValueError(f"{under} has too long a name")
            path.write_bytes(bytes(_HEAD.size) + name.ljust(UNDER_BYTES, b"\0") + bytes(LOG_MAX))
        self.path = path
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), size)

    def arm(self, plan: Plan) -> None:
        """Begin to count at 1, and act as planned."""
        kinds = sum(1 << KINDS.index(kind) for kind in plan.kinds)
        number = getattr(errno, plan.error)
        self._map[: _HEAD.size] = _HEAD.pack(1, kinds, plan.at, ACTS.index(plan.act), number, plan.lasting, 0, 0)

    def disarm(self) -> None:
        """Let all calls through and stop counting; `seen` and `acted` stay."""
        self._map[:8] = bytes(8)

    @property
    def seen(self) -> int:
        """Calls counted since it was armed."""
        return int(_HEAD.unpack(self._map[: _HEAD.size])[6])

    @property
    def acted(self) -> int:
        """How many of them were killed, cut or failed."""
        return int(_HEAD.unpack(self._map[: _HEAD.size])[7])

    def log(self) -> tuple[str, ...]:
        """The kind of each counted call, in order."""
        start = _HEAD.size + UNDER_BYTES
        return tuple(KINDS[number] for number in self._map[start : start + min(self.seen, LOG_MAX)])

    def close(self) -> None:
        self._map.close()


@cache
def shim(source: Path = SOURCE) -> Path:
    """The built shim; built when first asked for."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise RuntimeError("the proof of I/O faults builds a small C library and finds no compiler; install `gcc` (or `clang`)")
    folder = Path(tempfile.mkdtemp(prefix="proof-shim-"))
    made = folder / f"{source.stem}.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(made), str(source), "-ldl", "-lpthread"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        shutil.rmtree(folder)
        raise RuntimeError(
            f"the shim cannot be built ({' '.join(command)}); install `libc6-dev` if a header is missing:\n{ended.stderr}"
        )
    return made


def environment(control: Control) -> dict[str, str]:
    """What a process must be started with, so that the control reaches into it."""
    preload: Iterable[str] = filter(None, (str(shim()), os.environ.get("LD_PRELOAD", "")))
    return {**os.environ, "LD_PRELOAD": ":".join(preload), VARIABLE: str(control.path)}
