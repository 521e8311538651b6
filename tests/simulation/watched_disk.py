"""A disk under SQLite that counts what is synced, can be slow, stuck or broken, and knows what a power cut would leave.

SQLite's own file layer does the work; this one stands between as the default, so that stores use it unawares. What a
power cut leaves is, of every file, its content when it was last synced, and nothing of files that never were.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import apsw

Image = Mapping[str, bytes]


class WatchedDisk(apsw.VFS):
    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        super().__init__("watched", self.base, makedefault=True)
        self.log_syncs = 0
        """Syncs of a write-ahead log."""
        self.log_sync_s = 0.0
        self.passable = threading.Event()
        """While it is clear, syncs of the log do not end."""
        self.passable.set()
        self.broken = False
        """While it is set, syncs of the log fail."""
        self.stuck = threading.Event()
        self._durable: Image = {}
        self._lock = threading.Lock()

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return WatchedFile(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        with self._lock:
            self._durable = {name: content for name, content in self._durable.items() if name != filename}

    def durable(self) -> Image:
        """What a power cut at this moment would leave: file names and their content."""
        return self._durable

    def synced(self, name: str, content: bytes) -> None:
        with self._lock:
            self._durable = {**self._durable, name: content}


class WatchedFile(apsw.VFSFile):
    def __init__(self, disk: WatchedDisk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        super().__init__(disk.base, name, flags)
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else (name or "")

    def xSync(self, flags: int) -> None:  # noqa: N802
        content = self.xRead(self.xFileSize(), 0)
        if self._name.endswith("-wal"):
            self._delay()
        super().xSync(flags)
        self._disk.synced(self._name, content)

    def _delay(self) -> None:
        disk = self._disk
        disk.log_syncs += 1
        if not disk.passable.is_set():
            disk.stuck.set()
            disk.passable.wait(60)
        time.sleep(disk.log_sync_s)
        if disk.broken:
            raise apsw.IOError("the disk lost its grip")


@contextmanager
def watched_disk() -> Iterator[WatchedDisk]:
    disk = WatchedDisk()
    try:
        yield disk
    finally:
        disk.passable.set()
        disk.unregister()


def ids_after_power_cut(image: Image, directory: Path) -> set[str]:
    """The ids of the messages in the store that `image` is of."""
    directory.mkdir()
    for name, content in image.items():
        (directory / Path(name).name).write_bytes(content)
    connection = apsw.Connection(str(directory / "perdure.db"), vfs="unix")
    try:
        return {found for (found,) in connection.execute("SELECT id FROM messages")}
    finally:
        connection.close()
