"""Exports: every row of one user, or of each user of a space, as of one moment, while writers go on."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, cast

from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.portable import ExportReport, Part
from perdure.domain.scope import RESERVED, Owner, shared_owner
from perdure.domain.text import check_flag
from perdure.ports.paths import check_path
from perdure.ports.store import Progress, Snapshot, Store, check_progress
from perdure.services.backup import new_file
from perdure.services.portable import PORTABLE, encoded, line_of, portable_row

PROGRESS_EVERY = 1_000
LEVEL = 6
# Whoever has anything has a row in one of these.
_TELL_OWNERS = ("owners", "index_heads", "sessions", "state_keys", "series", "agent_states", "usage", "decisions")
Target = str | os.PathLike[str] | IO[bytes]


@dataclass(frozen=True, slots=True)
class Exporting:
    store: Store

    def export(self, owner: Owner, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """Every row of one user to a file, packed if its name ends with `.gz`, or to something that is written to."""
        check_progress(progress)
        with self.store.snapshot(owner) as snapshot, _opened(to, replace=replace) as file:
            return _written(snapshot, [owner], file, progress)

    def export_all(self, space: str, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """The same for each user of a space, and for what its users share: its agents, and lessons that reach everybody."""
        check_progress(progress)
        with self.store.snapshot() as snapshot, _opened(to, replace=replace) as file:
            return _written(snapshot, _owners(snapshot, space), file, progress)


def _owners(snapshot: Snapshot, space: str) -> list[Owner]:
    found = {str(row[1]) for table in _TELL_OWNERS for row in snapshot.rows(table) if row[0] == space}
    shared = shared_owner(space).user
    return [Owner(space, user) for user in sorted(found) if user == shared or not user.startswith(RESERVED)]


class _Counted:
    """Counts what is written, and keeps the digest of all of it and of a part."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = 0
        self.whole = hashlib.sha256()
        self.part = hashlib.sha256()

    def line(self, data: bytes) -> None:
        self.whole.update(data)
        self.part.update(data)
        self.bytes += len(data)
        self._file.write(data)


def _written(snapshot: Snapshot, owners: Sequence[Owner], file: IO[bytes], progress: Progress | None) -> ExportReport:
    out = _Counted(file)
    total: dict[str, int] = {}
    for number, owner in enumerate(owners, start=1):
        out.part = hashlib.sha256()
        out.line(encoded(Part(snapshot.schema_version, owner.space, owner.user, number, len(owners)).heading()))
        counts: dict[str, int] = {}
        for table in PORTABLE:
            for held in snapshot.rows(table, owner):
                if (row := portable_row(table, held)) is None:
                    continue
                out.line(line_of(table, row))
                counts[table] = counts.get(table, 0) + 1
                if progress is not None and counts[table] % PROGRESS_EVERY == 0:
                    progress(table, counts[table])
        out.line(encoded({"rows": counts, "sha256": out.part.hexdigest()}))
        total = {name: total.get(name, 0) + counts.get(name, 0) for name in PORTABLE if name in total or name in counts}
    return ExportReport("jsonl", tuple(owner.user for owner in owners), total, out.bytes, out.whole.hexdigest())


@contextmanager
def _opened(to: Target, *, replace: bool) -> Iterator[IO[bytes]]:
    """What is written to: a stream as it is, a file that appears whole or not at all."""
    if not isinstance(to, str | os.PathLike):
        if not hasattr(to, "write"):
            raise InvalidInput(f"`to` is a `{type(to).__name__}`; give the name of a file, or an open one in binary mode")
        yield to
        return
    path = check_path(to, "to")
    check_flag(replace, "replace")
    if path.exists() and not replace:
        raise Conflict(f"{path} exists already; choose another name, or say that it is to be replaced")
    with new_file(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", compresslevel=LEVEL, mtime=0) as packed:
            yield cast("IO[bytes]", packed)
