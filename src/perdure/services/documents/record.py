"""Reading a context document from the store: its record, its session, the newest fold, and the messages it shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime

from perdure.domain.conversation.digests import Digest
from perdure.domain.conversation.documents import Archived
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.conversation.tally import Tally, extended
from perdure.domain.errors import Corrupt, InvalidInput, LimitExceeded
from perdure.domain.scope import RESERVED, Address, Scope, SessionId
from perdure.domain.state import Revision
from perdure.domain.values import dataclass, replace
from perdure.engine.context.assemble import fold_text
from perdure.engine.documents.json_form import entry_json
from perdure.engine.documents.view import DocumentRecord, Run, ShownMessage, entry_of_message
from perdure.ports.store import View

REMOVED = f"{RESERVED}context-removed:"
"""Summary text, facts and tasks that compaction took out: a key for each save that brought some."""
PAGE = 1_000
ENTRIES_MAX = 100_000
"""A working set of more messages than this is not shown as a document."""


@dataclass(frozen=True, slots=True)
class DocumentAddress:
    """Where everything about one document is."""

    session_id: str
    scope: Scope
    session: str
    """What the id calls the session."""
    key: str

    @property
    def removed(self) -> str:
        return f"{REMOVED}{digest_of(self.session_id)}:"


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """What the store has of a document, as of one moment."""

    revision: int
    record: DocumentRecord | None
    session: Session | None
    fold: Digest | None

    @property
    def words(self) -> str:
        """What the agent is told of what is out of the working set."""
        return "" if self.fold is None else fold_text(self.fold)

    @property
    def summary(self) -> str:
        if self.fold is not None or self.record is None:
            return self.words
        return self.record.summary or ""

    @property
    def fold_version(self) -> int:
        return 0 if self.fold is None else self.fold.version

    @property
    def boundary(self) -> int:
        return 0 if self.session is None else self.session.boundary_seq

    @property
    def last(self) -> int:
        return 0 if self.session is None else self.session.messages

    def places(self, boundary: int, last: int) -> list[int]:
        if self.record is None or self.session is None or self.record.session != self.session.id:
            return list(range(boundary + 1, last + 1))
        return self.record.places(boundary, last)


def held_of(view: View, place: DocumentAddress) -> StoredDocument:
    latest = view.state.find(place.key)
    record = record_of(latest, place.key)
    address = place.scope.address
    name = place.session if record is None or record.session is None else record.session
    session = view.find_session(address, SessionId(name))
    if session is not None and session.deleted_at is not None:
        session = None
    fold = None if session is None else view.conversation.latest_digest(address, session.number, "fold")
    return StoredDocument(0 if latest is None else latest.number, record, session, fold)


def held_as_saved(view: View, place: DocumentAddress, record: DocumentRecord, revision: int) -> StoredDocument:
    """What the store had of a document when that revision of it was saved."""
    address = place.scope.address
    session = None if record.session is None else view.find_session(address, SessionId(record.session))
    if session is None or session.deleted_at is not None:
        return StoredDocument(revision, record, None, None)
    fold = view.conversation.find_digest(address, session.number, "fold", record.fold) if record.fold else None
    return StoredDocument(revision, record, session, fold)


def record_of(revision: Revision | None, key: str) -> DocumentRecord | None:
    if revision is None or revision.body is None:
        return None
    try:
        return DocumentRecord.of(json.loads(revision.body))
    except (ValueError, TypeError, KeyError, AttributeError, InvalidInput) as error:
        raise unreadable(key) from error


def unreadable(key: str) -> Corrupt:
    return Corrupt(f"the state value {key!r:.120} is not the record of a context document; restore it, or delete the document")


def shown_of(view: View, held: StoredDocument, places: list[int]) -> list[ShownMessage]:
    if held.session is None or not places:
        return []
    if len(places) > ENTRIES_MAX:
        raise LimitExceeded(
            f"the working set has {len(places)} messages, more than {ENTRIES_MAX}; fold it with `compact()` first"
        )
    forms = {} if held.record is None else held.record.forms
    messages = {message.seq: message for message in _messages(view, held.session, min(places), max(places))}
    shown = []
    for seq in places:
        cut = forms.get(seq, ())
        shown.append(ShownMessage(seq, cut[-1] if cut else entry_of_message(messages[seq]), cut))
    return shown


def taken_out(view: View, held: StoredDocument, shown: Iterable[ShownMessage]) -> Iterator[Archived]:
    """The messages that the history does not show, and the whole of those of which it shows an excerpt."""
    if held.session is None:
        return
    cut = {one.seq: one.forms for one in shown}
    for message in _messages(view, held.session, 1, held.last):
        body = entry_json(entry_of_message(message))
        if message.seq not in cut:
            yield Archived("entry", body)
        elif cut[message.seq]:
            yield Archived("whole", body)
            yield from (Archived("whole", entry_json(form)) for form in cut[message.seq][:-1])


def removed(view: View, place: DocumentAddress, now: datetime) -> Iterator[Archived]:
    for key in removed_keys(view, place, now):
        held = view.state.find(key)
        for kind, body in json.loads(held.body or "[]") if held is not None else ():
            yield Archived(kind, body)


def removed_keys(view: View, place: DocumentAddress, now: datetime) -> list[str]:
    return list(keys_of(view, place.removed, now))


def keys_of(view: View, prefix: str, now: datetime) -> Iterator[str]:
    after: str | None = None
    while page := view.state.list_keys(now=now, prefix=prefix, after=after, limit=PAGE):
        yield from (info.key for info in page)
        after = page[-1].key


def uncounted(view: View, held: StoredDocument) -> Tally:
    """The tool calls, failures and reported tokens of the messages that the document's counters do not have."""
    session, record = held.session, held.record
    if session is None:
        return Tally(Address(), 0)
    total = Tally(session.address, session.number)
    if record is None or record.session != session.id:
        tally = view.find_tally(session.address, session.number)
        total = total if tally is None else tally
        runs = joined([(total.up_to_seq + 1, session.messages)])
    else:
        runs = joined((*record.unseen, (record.last + 1, session.messages)))
    for first, last in runs:
        total = extended(replace(total, up_to_seq=first - 1), _messages(view, session, first, last))
    return total


def _messages(view: View, session: Session, first: int, last: int) -> Iterator[Message]:
    while first <= last:
        limit = min(PAGE, last - first + 1)
        page = view.list_messages(MessageQuery(session.address, limit, session.number, after=Cursor(session.number, first - 1)))
        yield from page
        first = page[-1].seq + 1 if page else last + 1


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The runs that are not empty, in order, adjoining ones as one."""
    joined: list[Run] = []
    for first, last in sorted(run for run in runs if run[0] <= run[1]):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def is_in_runs(seq: int, runs: Iterable[Run]) -> bool:
    return any(first <= seq <= last for first, last in runs)


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:40]
