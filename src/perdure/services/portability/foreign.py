"""Imports of what another engine has remembered. Its texts are proposals like any others, trusted as imported ones are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Literal, Protocol

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import entity_ref
from perdure.domain.knowledge.memories import to_statement
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import Limits
from perdure.domain.portability import FORMAT, Doubt, ImportedItem, ImportReport, Verdict
from perdure.domain.scope import Owner, Scope
from perdure.engine.extraction.predicates import is_single_valued
from perdure.engine.knowledge.audit import audit, export_entries, read_export
from perdure.engine.knowledge.outcomes import Outcome, ProposalOrigin
from perdure.engine.portability import FOREIGN_FORMATS, ForeignItem, foreign_format, foreign_items
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.knowledge.commit import Submission, check_proposal, commit_in

BYTES_MAX = 256 * 1024 * 1024
BATCH = 200
PAGE = 1_000
PACKED = b"\x1f\x8b"
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
            raise InvalidInput("nothing in the export is a memory, an entity or a relation; give it as it was exported")
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
        raise InvalidInput("the export is no text in UTF-8; give it as it was exported") from None
