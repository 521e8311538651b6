"""Erasing in place: freed bytes are overwritten where they lie, freed pages go back to the disk, and the log is cut.

SQLite overwrites what it frees (`secure_delete`), but for one thing: when rows move from a full page to its neighbour, a copy
of them may stay in the unused middle of the page, and outlive the rows. The sweep finds such middles and fills them with
zeros. That changes no byte which SQLite reads, so it is sound at any moment and after any crash.

The pages of an encrypted file cannot be swept from outside, and a file from before this was so does not say which pages are
whose: those are written anew as a whole (`VACUUM`), the latter once.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import apsw

from perdure.adapters.files.atomic import sync_file
from perdure.adapters.sqlite.connections import SqlitePool
from perdure.domain.errors import Unavailable
from perdure.ports.store import Progress

INCREMENTAL = 2
"""What `PRAGMA auto_vacuum` says of a file that can give pages back, and has a map of whose each page is."""
WITHIN_CALL_BYTES = 32 * 1024 * 1024
WITHIN_CALL_BYTES_ENCRYPTED = 4 * 1024 * 1024
"""Up to this size a call erases everything itself; beyond it, what grows with the file is left to a job."""
WITHIN_CALL_WAIT_S = 1.0
FREED_AT_ONCE = 1_000
"""Pages that go back to the disk in one transaction."""
MAPS_AT_ONCE = 8
"""Maps of 819 pages, 3.3 MB each, that are swept while writers wait."""
PAUSE_S = 0.02
STEPS_BETWEEN_REPORTS = 1_000_000

READER = "a reader keeps the old pages in use, so that they stay on the disk; it continues when that has ended"
OLD = "the file was made by an older perdure and is rewritten once"
ANNOUNCED = (
    f"erasure: {OLD}, which takes twice its size on the disk meanwhile: run `perdure admin purge`, or what is forgotten first "
    "will have the job `erase` do it"
)
LARGE = "copies that SQLite left in unused parts of its pages are looked for in the whole file"
ENCRYPTED = "the encrypted file is rewritten"

MAP_ENTRY = 5
TREE_PAGES = (1, 5)
"""In the map: the root of a tree, and a page below one. The others are free, or go on with a long value."""
INNER = (2, 5)
"""In the page: an inner page of an index or a table. Its header is four bytes longer than that of a leaf."""
PENDING_BYTE = 0x40000000
"""https://www.sqlite.org/fileformat2.html#the_lock_byte_page"""


class SqliteErasure:
    """How one file is rid of what was removed from it."""

    def __init__(self, path: Path, connections: SqlitePool, *, encrypted: bool) -> None:
        self._path = path
        self._connections = connections
        self._encrypted = encrypted
        self._within_call = WITHIN_CALL_BYTES_ENCRYPTED if encrypted else WITHIN_CALL_BYTES

    def within_call(self) -> str:
        """Erase what takes as long as what was removed is large; what is left to do, and what keeps it, or nothing."""
        with self._connections.own(WITHIN_CALL_WAIT_S) as connection:
            if self._path.stat().st_size <= self._within_call:
                try:
                    self._all(connection, None, WITHIN_CALL_WAIT_S)
                except (Unavailable, apsw.BusyError) as error:
                    return str(error) if isinstance(error, Unavailable) else READER
                return ""
            if not self._cut_log(connection):
                return READER
            return ENCRYPTED if self._encrypted else LARGE if erases_in_place(connection) else OLD

    def whole(self, progress: Progress | None, wait_s: float) -> None:
        """Leave nothing; `Unavailable` if a reader outlasts `wait_s`."""
        with self._connections.own(wait_s) as connection:
            self._all(connection, progress, wait_s)

    def due(self) -> bool:
        """Whether the next erasure writes a file anew that a call would not."""
        with self._connections.reader() as connection:
            return self._path.stat().st_size > self._within_call and not erases_in_place(connection)

    def _all(self, connection: apsw.Connection, progress: Progress | None, wait_s: float) -> None:
        if self._encrypted or not erases_in_place(connection):
            self._write_anew(connection, progress)
        else:
            self._give_back(connection)
            self._sweep(connection, progress, wait_s)
        if not self._cut_log(connection):
            raise Unavailable(READER)

    def _write_anew(self, connection: apsw.Connection, progress: Progress | None) -> None:
        # In a file: in memory it would take as much as the store. SQLCipher encrypts it as it does the store.
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute(f"PRAGMA auto_vacuum = {INCREMENTAL}")
        if progress is None or self._encrypted:
            connection.execute("VACUUM")
            return
        connection.set_progress_handler(_step_reporter(progress), STEPS_BETWEEN_REPORTS)
        try:
            connection.execute("VACUUM")
        finally:
            connection.set_progress_handler(None)

    def _give_back(self, connection: apsw.Connection) -> None:
        while connection.execute("PRAGMA freelist_count").fetchall() != [(0,)]:
            connection.execute(f"PRAGMA incremental_vacuum({FREED_AT_ONCE})").fetchall()

    def _cut_log(self, connection: apsw.Connection) -> bool:
        """Move the log into the file and empty it; False if a reader still needs it."""
        [(blocked, *_)] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if not blocked:
            # SQLite cuts its log without a sync: a power cut might bring it back, with the old pages in it.
            sync_file(Path(f"{self._path}-wal"))
        return not blocked

    # -- the sweep

    def _sweep(self, connection: apsw.Connection, progress: Progress | None, wait_s: float) -> None:
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
        file = apsw.VFSFile("", str(self._path), [flags, 0])
        try:
            at, before = 2, 0
            while True:
                with self._current(connection, wait_s) as pages:
                    # A file that has become shorter has pages from its end further in front now.
                    at, before = (2 if pages < before else at), pages
                    sweep = PageSweep(file, pages)
                    for _ in range(MAPS_AT_ONCE):
                        if at > pages:
                            break
                        sweep.map(at)
                        at += sweep.maps_apart
                    if sweep.changed:
                        file.xSync(apsw.SQLITE_SYNC_FULL)
                if progress is not None:
                    progress("pages", min(at - 1, pages))
                if at > pages:
                    break
        finally:
            file.xClose()

    @contextmanager
    def _current(self, connection: apsw.Connection, wait_s: float) -> Iterator[int]:
        """Nobody writes, and the file itself holds every page as it is; how many it has.

        The commit at the end changes nothing and tells every other connection that its pages are old: none of them writes one
        back as it was before.
        """
        until = time.monotonic() + wait_s
        with self._connections.own(wait_s) as other:
            while True:
                connection.execute("BEGIN IMMEDIATE")
                try:
                    [(_, logged, moved)] = other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    if logged == moved:
                        [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
                        yield cast(int, pages)
                        [(version,)] = connection.execute("PRAGMA user_version").fetchall()
                        connection.execute(f"PRAGMA user_version = {version}")
                        connection.execute("COMMIT")
                        return
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if time.monotonic() >= until:
                    raise Unavailable(READER)
                time.sleep(PAUSE_S)


def erases_in_place(connection: apsw.Connection) -> bool:
    return connection.execute("PRAGMA auto_vacuum").fetchall() == [(INCREMENTAL,)]


def _step_reporter(progress: Progress) -> Callable[[], bool]:
    steps = 0

    def report() -> bool:
        nonlocal steps
        steps += 1
        progress("million steps of writing the file anew", steps)
        return False

    return report


class PageSweep:
    """Fills the unused parts of a file's tree pages with zeros: https://www.sqlite.org/fileformat2.html says which."""

    def __init__(self, file: apsw.VFSFile, pages: int) -> None:
        head = file.xRead(100, 0)
        (size,) = struct.unpack(">H", head[16:18])
        self._file = file
        self._pages = pages
        self._page_bytes = 65_536 if size == 1 else size
        self._usable = self._page_bytes - head[20]
        self._lock_page = PENDING_BYTE // self._page_bytes + 1
        self.maps_apart = self._usable // MAP_ENTRY + 1
        self.changed = 0

    def map(self, number: int) -> None:
        """Sweep the pages that one map tells of."""
        last = min(number + self.maps_apart - 1, self._pages)
        # The page of the lock byte is never used; a map that would lie there lies behind it.
        map_page = number + 1 if number == self._lock_page else number
        if map_page >= last:
            return
        size = (last - map_page + 1) * self._page_bytes
        held = self._file.xRead(size, (map_page - 1) * self._page_bytes)
        for index in range(1, len(held) // self._page_bytes):
            kind = held[(index - 1) * MAP_ENTRY]
            if kind in TREE_PAGES and map_page + index != self._lock_page:
                self._tree_page(held[index * self._page_bytes : (index + 1) * self._page_bytes], map_page + index)

    def _tree_page(self, page: bytes, number: int) -> None:
        for start, end in unused(page, self._usable):
            if page.count(0, start, end) != end - start:
                self._file.xWrite(bytes(end - start), (number - 1) * self._page_bytes + start)
                self.changed += 1


def unused(page: bytes, usable: int) -> Iterator[tuple[int, int]]:
    """The ranges of a tree page that belong to no row: its middle, and the freed blocks behind their own headers."""
    freed, cells, content = struct.unpack(">HHH", page[1:7])
    content = content or 65_536
    middle = (12 if page[0] in INNER else 8) + 2 * cells
    if page[0] not in (2, 5, 10, 13) or not middle <= content <= usable:
        return
    yield middle, content
    while content <= freed <= usable - 4:
        following, size = struct.unpack(">HH", page[freed : freed + 4])
        if size < 4 or freed + size > usable:
            return
        yield freed + 4, freed + size
        if following <= freed:
            return
        freed = following
