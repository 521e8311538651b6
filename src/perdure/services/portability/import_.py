"""Imports of lossless exports: a file is proven whole, staged and verified aside, and then taken over in one transaction.

A file may be damaged, or made by somebody else. So its rows go first into a store of their own, which is thrown away
afterwards: its constraints and the laws of verification hold there, an older schema is migrated there, and only what
comes out of it reaches a user.

An export of another engine is read here, too; what it says is proposed like what anybody says.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, groupby
from pathlib import Path
from typing import IO, Literal, Protocol

from perdure.domain.errors import InvalidInput, LimitExceeded, PerdureError
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import entity_ref
from perdure.domain.knowledge.memories import to_statement
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.reports import FORMAT, Doubt, ExportPart, ImportedItem, ImportReport, Verdict
from perdure.domain.scope import Owner, Scope
from perdure.domain.values import dataclass
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.audit import audit, export_entries, read_export
from perdure.engine.knowledge.outcomes import Outcome, ProposalOrigin
from perdure.engine.portability import FOREIGN_FORMATS, ForeignItem, foreign_format, foreign_items
from perdure.ports.clock import Clock
from perdure.ports.store import Progress, Row, Store, Tx, View, check_progress
from perdure.ports.tables.rows import LEAVING, holds_rows, owned
from perdure.ports.tables.table import AnyRow
from perdure.services.knowledge.commit import Submission, check_proposal, commit_in
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


BYTES_MAX = 256 * 1024 * 1024
BATCH = 200
PAGE = 1_000

VERDICTS: dict[str, Verdict] = {
    "added": "added",
    "mentioned": "mentioned",
    "known": "unchanged",
    "superseded": "changed",
    "ended": "changed",
    "past": "added",
    "proposed": "added",
    "refused": "refused",
}


class _Rehearsed(Exception):
    """Ends a transaction whose outcome is all that was wanted."""

    def __init__(self, outcomes: list[Outcome]) -> None:
        super().__init__("rehearsed")
        self.outcomes = outcomes


def format_of(file: IO[bytes]) -> Literal["jsonl", "mem0", "mcp"]:
    """What a file seems to be."""
    return "jsonl" if is_export(file) else foreign_format(export_entries(_text(file)))


def is_export(file: IO[bytes]) -> bool:
    """Whether a file begins as a lossless export does."""
    file.seek(0)
    start = file.readline(65_536)
    file.seek(0)
    if start.startswith(PACKED):
        return True
    try:
        first = json.loads(start)
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and first.get("format") == FORMAT


class ImportPlugins(Protocol):
    """Formats that other distributions read."""

    def check(self, name: str) -> None:
        """`InvalidInput`, with what there is, unless one of this name is installed."""

    def entries(self, name: str, text: str) -> Sequence[Mapping[str, object]]:
        """The memories in a text: each a `memory`, and, if known, a `created_at` and the `user_id`."""


@dataclass(frozen=True, slots=True)
class ForeignImporter:
    store: Store
    clock: Clock
    limits: Limits
    plugins: ImportPlugins

    def import_(self, scope: Scope, file: IO[bytes], form: str, *, dry_run: bool) -> ImportReport:
        """Take over what another engine has remembered of the user. Doing so again changes nothing."""
        text = _text(file, self.limits.import_bytes_max)
        now = self.clock.now()
        plugged = form not in FOREIGN_FORMATS
        if plugged:
            text = json.dumps(self.plugins.entries(form, text), default=str)
        read, items = foreign_items(text, now)
        found = form if plugged else read
        if found != form:
            raise InvalidInput(f"the export looks like one of `{found}`, not of `{form}`; say so, or leave the format out")
        if not items and (not text.strip() or export_entries(text)):
            raise InvalidInput("nothing in the export is a memory, an entity or a relation; use the unchanged export")
        mine, others = _of_user(items, scope.owner.user)
        known = self.store.read(scope.owner, lambda view: _imported_before(view, found))
        wrong = {id(item): why for item in mine if (why := _flaw(item)) is not None}
        new = [item for item in mine if id(item) not in wrong and item.proposal.content.strip() not in known]
        outcomes = dict(zip(map(id, new), self._commit(scope.owner, new, found, dry_run=dry_run), strict=True))
        taken = [_imported_item(item, outcomes.get(id(item)), wrong.get(id(item))) for item in mine]
        taken += [ImportedItem(item.place, item.kind, "ignored", f"it is of user {item.user!r:.80}") for item in others]
        doubts = [Doubt(one.fault, one.items, one.why) for one in audit(read_export(text), now)] if dry_run else []
        return ImportReport(
            format=found, users=(scope.owner.user,), dry_run=dry_run, rows={}, items=tuple(taken), doubts=tuple(doubts)
        )

    def _commit(self, owner: Owner, items: Sequence[ForeignItem], form: str, *, dry_run: bool) -> list[Outcome]:
        now = self.clock.now()
        origin = ProposalOrigin(form, "import", now, self.clock.new_id, is_single_valued, closings_max=0)
        by = Attribution("import", now, f"imported from {form}")
        batches = [
            Submission(
                [item.proposal for item in items[start : start + BATCH]],
                origin,
                by,
                [self.clock.new_id() for _ in range(2 * BATCH)],
            )
            for start in range(0, len(items), BATCH)
        ]
        if dry_run:
            return self._rehearse(owner, batches)
        return [
            outcome
            for batch in batches
            for outcome in self.store.write(owner, lambda tx, batch=batch: commit_in(tx, batch).outcomes)  # type: ignore[misc]
        ]

    def _rehearse(self, owner: Owner, batches: Sequence[Submission]) -> list[Outcome]:
        def work(tx: Tx) -> None:
            raise _Rehearsed([outcome for batch in batches for outcome in commit_in(tx, batch).outcomes])

        try:
            self.store.write(owner, work)
        except _Rehearsed as done:
            return done.outcomes
        raise AssertionError("a rehearsal always ends its transaction")


def _of_user(items: Sequence[ForeignItem], user: str) -> tuple[list[ForeignItem], list[ForeignItem]]:
    """What is this user's, and what is others': an export of one user is this one's, whatever they were called there."""
    users = sorted({item.user for item in items if item.user})
    if len(users) < 2:
        return list(items), []
    if user not in users:
        raise InvalidInput(
            f"the export is of {len(users)} users ({', '.join(users[:5])[:200]}), and {user!r:.80} is none of them; "
            "import it once for each, under the names they have there"
        )
    mine = [item for item in items if item.user in ("", user)]
    return mine, [item for item in items if item.user not in ("", user)]


def _imported_before(view: View, source: str) -> set[str]:
    """What was imported from there before and still stands, or was closed since: it is not said anew."""
    found: set[str] = set()
    before: str | None = None
    while page := view.records.list_(RecordQuery("statement", PAGE, None, before)):
        held = [to_statement(record.body) for record in page]
        found |= {one.content for one in held if one.source == source}
        before = page[-1].key
    return found


def _flaw(item: ForeignItem) -> str | None:
    """Why it cannot be proposed at all, such as a text that no store keeps."""
    try:
        check_proposal(item.proposal)
        for name in item.proposal.entities:
            entity_ref(name.type, name.label)
    except InvalidInput as error:
        return str(error)
    return None


def _imported_item(item: ForeignItem, outcome: Outcome | None, wrong: str | None) -> ImportedItem:
    if wrong is not None:
        return ImportedItem(item.place, item.kind, "refused", wrong)
    if outcome is None:
        return ImportedItem(item.place, item.kind, "unchanged", "it was imported before")
    return ImportedItem(item.place, item.kind, VERDICTS[outcome.verdict], outcome.reason or "")


def _text(file: IO[bytes], bytes_max: int = BYTES_MAX) -> str:
    most = min(bytes_max, BYTES_MAX)
    file.seek(0)
    data = file.read(most + 1)
    if len(data) > most:
        raise LimitExceeded(f"the export has more than {most} bytes; import it in parts")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput("the export is not UTF-8 text; use the unchanged export") from None
