"""Everything that a process did to the files of one folder, in order, together with what was acknowledged meanwhile.

`shim/recorder.c` writes it down below the C library (LD_PRELOAD), so that it reaches every SQLite library, SQLCipher's too, and
what Python writes. What escapes it would make the proof worthless, so `Recording.check` compares it with what is on the disk.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proof import syscalls

SOURCE = Path(__file__).parent / "shim" / "recorder.c"
RECORD, RECORDED = "PROOF_RECORD", "PROOF_RECORDED"
_ENTRY = struct.Struct("=5q")
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Write:
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Truncate:
    file: int
    size: int


@dataclass(frozen=True, slots=True)
class Sync:
    """Of a file: its content. Of a folder: the names in it."""

    file: int


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a folder now means another file; None: nothing."""

    folder: int
    name: str
    file: int | None
    is_folder: bool = False


@dataclass(frozen=True, slots=True)
class Ack:
    """A call has returned: whatever it promised must survive from here on."""

    what: Any


Event = Write | Truncate | Sync | Name | Ack
ROOT_FOLDER = 0


@dataclass(slots=True)
class Recording:
    """What happened to the files below `root`. Files and folders are numbered; `ROOT_FOLDER` is `root` itself."""

    root: Path
    events: list[Event] = field(default_factory=list)
    _names: dict[Path, int] = field(default_factory=dict)
    _handles: dict[int, int] = field(default_factory=dict)
    _count: int = 0

    def __post_init__(self) -> None:
        self._names[self.root] = ROOT_FOLDER

    def check(self, left: dict[str, bytes]) -> None:
        """`left`: what the events say is there in the end. The disk must say the same."""
        found = {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
        found = {name: content for name, content in found.items() if not name.endswith("-shm")}
        wrong = {name for name in found.keys() | left.keys() if found.get(name) != left.get(name)}
        if wrong:
            raise AssertionError(f"the recording misses something of {sorted(wrong)}")

    def add(self, entry: _Entry, acknowledged: Callable[[bytes], Any]) -> None:
        """One more entry of the record."""
        match entry.kind:
            case "A":
                self.events.append(Ack(acknowledged(entry.first)))
            case "W":
                self.events.append(Write(self._handles[entry.handle], entry.number, entry.first))
            case "T":
                self.events.append(Truncate(self._handles[entry.handle], entry.number))
            case "S":
                self.events.append(Sync(self._handles[entry.handle]))
            case "O":
                self._opened(entry.handle, _path(entry.first), entry.number)
            case "C":
                self._handles.pop(entry.handle, None)
            case "M":
                self._made(_path(entry.first), is_folder=True)
            case "U":
                self._named(_path(entry.first), None)
            case "R":
                self._renamed(_path(entry.first), _path(entry.second))
            case "X":
                one, other = _path(entry.first), _path(entry.second)
                first, second = self._names[one], self._names[other]
                self._named(other, first)
                self._named(one, second)
            case _:
                raise AssertionError(f"files were changed by {entry.first.decode()}, which the recorded disk cannot read")

    def _opened(self, handle: int, path: Path, flags: int) -> None:
        number = self._names.get(path)
        if number is None:
            number = self._made(path)
        elif flags & os.O_TRUNC:
            self.events.append(Truncate(number, 0))
        self._handles[handle] = number

    def _made(self, path: Path, *, is_folder: bool = False) -> int:
        self._count += 1
        self._names[path] = self._count
        self.events.append(Name(self._names[path.parent], path.name, self._count, is_folder))
        return self._count

    def _named(self, path: Path, number: int | None) -> None:
        if number is None:
            del self._names[path]
        else:
            self._names[path] = number
        self.events.append(Name(self._names[path.parent], path.name, number))

    def _renamed(self, old: Path, new: Path) -> None:
        moved = {path: number for path, number in self._names.items() if path == old or path.is_relative_to(old)}
        for path in moved:
            del self._names[path]
        self._names |= {new / path.relative_to(old): number for path, number in moved.items()}
        self.events.append(Name(self._names[new.parent], new.name, moved[old]))
        self.events.append(Name(self._names[old.parent], old.name, None))


@dataclass(frozen=True, slots=True)
class _Entry:
    kind: str
    handle: int
    number: int
    first: bytes
    second: bytes


def _path(name: bytes) -> Path:
    return Path(os.path.normpath(os.fsdecode(name)))


def _entries(record: bytes) -> Iterator[_Entry]:
    at = 0
    while at < len(record):
        kind, handle, number, first, second = _ENTRY.unpack_from(record, at)
        start = at + _ENTRY.size
        at = start + first + second
        yield _Entry(chr(kind), handle, number, record[start : start + first], record[start + first : at])


def recorded(root: Path, module: str, asked: str, acknowledged: Callable[[bytes], Any]) -> Recording:
    """Run the module, with `asked` as its argument, and write down what it does to the files of the folder, which must be empty."""
    recording = Recording(root.resolve())
    with tempfile.TemporaryDirectory(prefix="proof-record-") as name:
        record = Path(name) / "record"
        preload = filter(None, (str(syscalls.shim(SOURCE)), os.environ.get("LD_PRELOAD", "")))
        more = {"LD_PRELOAD": ":".join(preload), RECORD: str(record), RECORDED: str(recording.root)}
        ended = subprocess.run(
            [sys.executable, "-m", module, asked],
            cwd=ROOT,
            env={**os.environ, **more},
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"{module} ended with {ended.returncode}:\n{ended.stderr[-4_000:]}")
        for entry in _entries(record.read_bytes()):
            recording.add(entry, acknowledged)
    return recording


def acknowledge(what: bytes) -> None:
    """In a process that is recorded: a call has returned, and that is what it promised."""
    ctypes.CDLL(None).proof_acknowledge(what, ctypes.c_size_t(len(what)))
