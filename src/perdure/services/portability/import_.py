"""Imports of lossless exports: a file is proven whole, staged and verified aside, and then taken over in one transaction.

A file may be damaged, or made by somebody else. So its rows go first into a store of their own, which is thrown away
afterwards: its constraints and the laws of verification hold there, an older schema is migrated there, and only what
comes out of it reaches a user.
"""

from __future__ import annotations

import gzip
import io
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, groupby
from pathlib import Path
from typing import IO

from perdure.domain.errors import InvalidInput, LimitExceeded, PerdureError
from perdure.domain.limits import Limits
from perdure.domain.portability import ExportPart, ImportReport
from perdure.domain.scope import Owner
from perdure.ports.store import Progress, Row, Store, check_progress
from perdure.ports.tables.rows import LEAVING, holds_rows, owned
from perdure.ports.tables.table import AnyRow
from perdure.services.portability.export import NOBODY, PORTABLE, ExportLine, checked_parts, portable_row, rows_of
from perdure.services.store.verify import verify

PACKED = b"\x1f\x8b"
PROGRESS_EVERY = 1_000
PIECE_BYTES = 1024 * 1024
LINE_BYTES_MORE = 8 * 1024 * 1024
"""For all of a row that has no limit of its own, such as what the journal says of a record."""
JSON_SHARE, TEXT_SHARE = 2, 6
"""As text inside JSON, what is JSON itself may take twice as much, and control characters six times as much."""
LONG_LINE = re.compile(rb'\s*\{\s*"table"\s*:\s*"state_revisions"')
"""How a line begins that may be longer than others: one value of state is the most that a row can hold."""


@dataclass(frozen=True, slots=True)
class Importer:
    store: Store
    limits: Limits
    scratch: Callable[[Path], Store]
    """A new store in a folder, with the newest schema, to be thrown away."""

    def import_rows(
        self,
        file: IO[bytes],
        owner_of: Callable[[ExportPart], Owner],
        *,
        replace: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Take over the users of an export, each in one transaction; `owner_of` says as whom.

        A user that holds data is a `Conflict`, before anything is changed, unless `replace`.
        """
        check_progress(progress)
        schema_max = self.store.describe().schema_version
        parts = checked_parts(self._lines(file), schema_max)
        owners = [owner_of(part) for part in parts]
        _refuse_twice(owners)
        if not replace:
            self._refuse_held(owners)
        total: dict[str, int] = {}
        for number, (part, owner) in enumerate(zip(parts, owners, strict=True)):
            with self._staged(file, number, part, progress) as (staged, whose):
                counts = _counted(staged, whose) if dry_run else self._refill(staged, whose, owner, replace=replace)
            total = {name: total.get(name, 0) + counts.get(name, 0) for name in PORTABLE if name in total or counts.get(name)}
        return ImportReport("jsonl", tuple(owner.user for owner in owners), dry_run, total)

    def _refuse_held(self, owners: Sequence[Owner]) -> None:
        for owner in owners:
            with self.store.snapshot(owner) as snapshot:
                for table in LEAVING:
                    if next(snapshot.rows(table, owner), None) is not None:
                        raise holds_rows(owner)

    @contextmanager
    def _staged(
        self, file: IO[bytes], number: int, part: ExportPart, progress: Progress | None
    ) -> Iterator[tuple[Store, Owner]]:
        """A store that holds the rows of one part and nothing else, verified; and whose they are there."""
        whose = Owner(*NOBODY)
        with tempfile.TemporaryDirectory(prefix="perdure-import-") as folder:
            store = self.scratch(Path(folder))
            try:
                place = [1]
                try:
                    store.restore(part.schema, _tables(self._lines(file), number, whose, (place, progress)), replace=True)
                except PerdureError as error:
                    raise InvalidInput(
                        f"the row in line {place[0]} of the export, or what it refers to, does not fit ({error}); "
                        "nothing was imported"
                    ) from error
                found = verify(store).findings
                if found:
                    raise InvalidInput(
                        f"the export breaks the law that {found[0].law} ({found[0].where}: {found[0].seen}); "
                        "nothing was imported"
                    )
                yield store, whose
            finally:
                store.close()

    def _refill(self, staged: Store, whose: Owner, owner: Owner, *, replace: bool) -> dict[str, int]:
        with staged.snapshot() as snapshot:

            def content(table: str) -> Iterator[Row]:
                for row in snapshot.rows(table, whose):
                    if (kept := portable_row(table, row)) is not None:
                        yield kept

            return dict(self.store.refill(owner, ((table, content(table)) for table in PORTABLE), replace=replace))

    def _lines(self, file: IO[bytes]) -> Iterator[ExportLine]:
        """The lines of a file from its beginning, packed or not, each and all of them bounded."""
        file.seek(0)
        packed = file.read(2) == PACKED
        file.seek(0)
        total = 0
        try:
            source = gzip.GzipFile(fileobj=file) if packed else file
            for number in count(1):
                data = self._line(source, number, self.limits.import_bytes_max - total)
                if not data:
                    return
                total += len(data)
                yield ExportLine(number, data)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInput("the export is packed, and cut off or altered; export it again; nothing was imported") from error

    def _line(self, source: IO[bytes] | gzip.GzipFile, number: int, left: int) -> bytes:
        """The next line; empty at the end. Of one that is too long no more is read than shows that it is."""
        first = data = source.readline(min(PIECE_BYTES, left + 1))
        most = min(left, self._line_max(first))
        if len(first) == PIECE_BYTES and not first.endswith(b"\n"):
            whole = io.BytesIO()
            size = whole.write(first)
            while size <= most and (piece := source.readline(min(PIECE_BYTES, most + 1 - size))):
                size += whole.write(piece)
                if piece.endswith(b"\n"):
                    break
            data = whole.getvalue()
        if len(data) > most:
            raise LimitExceeded(
                f"line {number} of the export goes beyond the {self._line_max(first)} bytes that a row of its kind may have, "
                f"or beyond `import_bytes_max` = {self.limits.import_bytes_max} of all of it; raise the limit, or take a "
                "backup instead; nothing was imported"
            )
        return data

    def _line_max(self, beginning: bytes) -> int:
        limits = self.limits
        if LONG_LINE.match(beginning):
            return JSON_SHARE * limits.state_value_bytes_max + LINE_BYTES_MORE
        text = TEXT_SHARE * limits.message_bytes_max + JSON_SHARE * limits.metadata_bytes_max
        return max(text, JSON_SHARE * limits.entry_bytes_max) + LINE_BYTES_MORE


def _tables(
    lines: Iterator[ExportLine], part: int, owner: Owner, telling: tuple[list[int], Progress | None]
) -> Iterator[tuple[str, Iterator[Row]]]:
    """The tables of a part with their rows, as this owner's. Where the reading is stands in the first of `telling`."""
    place, progress = telling

    def rows(found: Iterator[tuple[ExportLine, str, AnyRow]]) -> Iterator[Row]:
        for done, (line, table, row) in enumerate(found, start=1):
            place[0] = line.number
            if progress is not None and done % PROGRESS_EVERY == 0:
                progress(table, done)
            yield owned(owner, row)

    for table, group in groupby(rows_of(lines, part), key=lambda one: one[1]):
        yield table, rows(group)


def _counted(staged: Store, whose: Owner) -> dict[str, int]:
    with staged.snapshot() as snapshot:
        held = {table: (portable_row(table, row) for row in snapshot.rows(table, whose)) for table in PORTABLE}
        return {table: sum(row is not None for row in rows) for table, rows in held.items()}


def _refuse_twice(owners: Sequence[Owner]) -> None:
    twice = [owner.user for owner in owners if owners.count(owner) > 1]
    if twice:
        raise InvalidInput(f"the export holds several parts that would become user {twice[0]!r:.80}; import them one by one")
