"""A disk that writes down everything done to the files of one folder, in order, together with what was acknowledged meanwhile.

Below SQLite it is a file layer of its own (a VFS); for what Python writes, the calls of `os` and `io` are stood in for. What
escapes it would make the proof worthless, so `Recording.check` compares what was written down with what is on the disk.
"""

from __future__ import annotations

import builtins
import ctypes
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apsw

from perdure.adapters import files

NAME = "recorded"
MODES = {"xb", "ab", "r+b", "wb", "rb+", "w", "a", "x", "r+", "w+b", "a+b"}


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
    _paths: dict[int, Path] = field(default_factory=dict)
    _count: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._names[self.root] = ROOT_FOLDER

    def acknowledge(self, what: object) -> None:
        with self.lock:
            self.events.append(Ack(what))

    def note(self, event: Event) -> None:
        with self.lock:
            self.events.append(event)

    def holds(self, path: str | os.PathLike[str]) -> bool:
        return Path(path).is_relative_to(self.root)

    def number(self, path: Path) -> int | None:
        return self._names.get(path)

    def created(self, path: Path, *, is_folder: bool = False) -> int:
        """The number of what is there; a new one if it was not there before."""
        with self.lock:
            found = self._names.get(path)
            if found is None:
                self._count += 1
                found = self._names[path] = self._count
                self.events.append(Name(self._names[path.parent], path.name, found, is_folder))
            return found

    def removed(self, path: Path) -> None:
        with self.lock:
            if self._names.pop(path, None) is not None:
                self.events.append(Name(self._names[path.parent], path.name, None))

    def renamed(self, old: Path, new: Path) -> None:
        with self.lock:
            moved = {path: number for path, number in self._names.items() if path == old or path.is_relative_to(old)}
            for path in moved:
                del self._names[path]
            self._names |= {new / path.relative_to(old): number for path, number in moved.items()}
            self.events.append(Name(self._names[new.parent], new.name, moved[old]))
            self.events.append(Name(self._names[old.parent], old.name, None))

    def exchanged(self, one: Path, other: Path) -> None:
        with self.lock:
            first, second = self._names[one], self._names[other]
            self._names |= {one: second, other: first}
            self.events.append(Name(self._names[other.parent], other.name, first))
            self.events.append(Name(self._names[one.parent], one.name, second))

    def opened(self, handle: int, path: Path) -> None:
        number = self.number(path)
        with self.lock:
            self._paths[handle] = path
            if number is None:
                self._handles.pop(handle, None)
            else:
                self._handles[handle] = number

    def path_of(self, handle: int) -> Path | None:
        return self._paths.get(handle)

    def number_of(self, handle: int) -> int | None:
        return self._handles.get(handle)

    def closed(self, handle: int) -> None:
        with self.lock:
            self._handles.pop(handle, None)
            self._paths.pop(handle, None)

    def check(self, left: dict[str, bytes]) -> None:
        """`left`: what the events say is there in the end. The disk must say the same."""
        found = {str(path.relative_to(self.root)): path.read_bytes() for path in self.root.rglob("*") if path.is_file()}
        found = {name: content for name, content in found.items() if not name.endswith("-shm")}
        wrong = {name for name in found.keys() | left.keys() if found.get(name) != left.get(name)}
        if wrong:
            raise AssertionError(f"the recording misses something of {sorted(wrong)}")


class _Disk(apsw.VFS):
    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.base = apsw.vfs_names()[0]
        self.synced_folders = threading.local()
        super().__init__(NAME, self.base, makedefault=True)
        # The only use SQLite has for opening a folder is to sync it.
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int))
        self._original = self.xGetSystemCall("openDirectory")
        really = kind(self._original)

        def open_folder(path: bytes, handle: Any) -> int:
            self.folders().append(Path(os.fsdecode(path)).parent)
            return really(path, handle)

        self._callback = kind(open_folder)
        self.xSetSystemCall("openDirectory", ctypes.cast(self._callback, ctypes.c_void_p).value)

    def folders(self) -> list[Path]:
        if not hasattr(self.synced_folders, "held"):
            self.synced_folders.held = []
        held: list[Path] = self.synced_folders.held
        return held

    def note_folders(self) -> None:
        """Folders that SQLite has synced in its last call."""
        for folder in self.folders():
            number = self.recording.number(folder)
            if number is not None:
                self.recording.note(Sync(number))
        self.folders().clear()

    def end(self) -> None:
        self.xSetSystemCall("openDirectory", self._original)
        self.unregister()

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.recording.removed(Path(filename))
        self.note_folders()


class _File(apsw.VFSFile):
    def __init__(self, disk: _Disk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__(disk.base, name, flags)
        self._disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else (name or "")
        self._number = disk.recording.created(Path(path)) if path and disk.recording.holds(path) else None

    def xLock(self, level: int) -> None:  # noqa: N802
        try:
            super().xLock(level)
        except apsw.IOError as error:
            # A file open for reading cannot be locked for writing. SQLite goes on without; from Python it would be raised.
            raise apsw.BusyError(str(error)) from None

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._note(lambda number: Write(number, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        self._note(lambda number: Truncate(number, size))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._note(Sync)
        self._disk.note_folders()

    def _note(self, event: Callable[[int], Event]) -> None:
        if self._number is not None:
            self._disk.recording.note(event(self._number))


class _Raw(io.FileIO):
    """A file of Python, below its buffers."""

    recording: Recording
    number: int

    def write(self, data: Any) -> int:
        at = os.fstat(self.fileno()).st_size if "a" in self.mode else self.tell()
        written = super().write(data)
        self.recording.note(Write(self.number, at, bytes(data)[:written]))
        return written

    def truncate(self, size: int | None = None) -> int:
        cut = super().truncate(size)
        self.recording.note(Truncate(self.number, cut))
        return cut


class _Calls:
    """What stands in for the calls of Python that change files."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        names = ("open", "close", "fsync", "unlink", "rmdir", "mkdir", "rename", "replace")
        self._real: dict[str, Any] = {name: getattr(os, name) for name in names}
        self._real_open, self._real_exchange = io.open, files._exchange

    def all(self) -> dict[tuple[Any, str], Any]:
        """By where they are."""
        calls = {"open": self.os_open, "close": self.close, "fsync": self.fsync, "fdatasync": self.fsync, "mkdir": self.mkdir}
        calls |= {"unlink": self._gone("unlink"), "remove": self._gone("unlink"), "rmdir": self._gone("rmdir")}
        calls |= {"rename": self._moved("rename"), "replace": self._moved("replace")}
        there = {(io, "open"): self.open, (builtins, "open"): self.open, (files, "_exchange"): self.exchange}
        return there | {(os, name): call for name, call in calls.items()}

    def open(self, file: Any, mode: str = "r", buffering: int = -1, *text: Any, **more: Any) -> Any:
        path = self._whole(file)
        if path is None or not set(mode) & set("wax+"):
            return self._real_open(file, mode, buffering, *text, **more)
        as_text = {**dict(zip(("encoding", "errors", "newline"), text, strict=False)), **more}
        if mode not in MODES or as_text.keys() - {"encoding", "errors", "newline"}:
            raise AssertionError(f"the recorded disk knows no files opened like {mode!r}, {as_text}")
        raw = _Raw(file, mode.replace("b", "").replace("t", ""))
        held = self._recording.number(path)
        raw.recording, raw.number = self._recording, self._recording.created(path) if held is None else held
        if "w" in mode and held is not None and not isinstance(file, int):
            self._recording.note(Truncate(raw.number, 0))
        self._recording.opened(raw.fileno(), path)
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, **as_text)

    def os_open(self, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        found = self._whole(path, dir_fd)
        handle: int = self._real["open"](path, flags, mode, dir_fd=dir_fd)
        self._recording.closed(handle)
        if found is not None:
            if flags & os.O_TRUNC:
                raise AssertionError("the recorded disk knows no O_TRUNC")
            if flags & os.O_CREAT:
                self._recording.created(found)
            self._recording.opened(handle, found)
        return handle

    def close(self, handle: int) -> None:
        self._recording.closed(handle)
        self._real["close"](handle)

    def fsync(self, handle: Any) -> None:
        self._real["fsync"](handle)
        number = self._recording.number_of(handle if isinstance(handle, int) else handle.fileno())
        if number is not None:
            self._recording.note(Sync(number))

    def mkdir(self, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        self._real["mkdir"](path, mode, dir_fd=dir_fd)
        found = self._whole(path, dir_fd)
        if found is not None:
            self._recording.created(found, is_folder=True)

    def exchange(self, one: Path, other: Path) -> bool:
        done = self._real_exchange(one, other)
        if done and self._recording.holds(one):
            self._recording.exchanged(one, other)
        return done

    def _gone(self, name: str) -> Callable[..., None]:
        def call(path: Any, *, dir_fd: int | None = None) -> None:
            self._real[name](path, dir_fd=dir_fd)
            found = self._whole(path, dir_fd)
            if found is not None:
                self._recording.removed(found)

        return call

    def _moved(self, name: str) -> Callable[..., None]:
        def call(old: Any, new: Any) -> None:
            self._real[name](old, new)
            before, after = self._whole(old), self._whole(new)
            if before is not None and after is not None:
                self._recording.renamed(before, after)

        return call

    def _whole(self, path: Any, folder: int | None = None) -> Path | None:
        """Where that is; None if it is none of ours."""
        if isinstance(path, int):
            return self._recording.path_of(path)
        base = self._recording.path_of(folder) if folder is not None else None
        found = Path(os.fsdecode(path)) if base is None else base / os.fsdecode(path)
        return found if self._recording.holds(found) else None


@contextmanager
def recorded(root: Path) -> Iterator[Recording]:
    """Write down what this process does to the files of the folder, which must be empty."""
    recording = Recording(root)
    disk = _Disk(recording)
    patches = [patch.object(where, name, call) for (where, name), call in _Calls(recording).all().items()]
    try:
        for one in patches:
            one.start()
        yield recording
    finally:
        for one in patches:
            one.stop()
        disk.end()
