"""Context documents as a view over the store: the history is a session's working set, the summary its newest fold.

Everything else of a document is a state value under a reserved key; its revision is the document's. A save is one
transaction: what is new goes to the log, what was taken out is told by a fold, and the rest is stored beside it.

A document shows its own facts and what else is known to its agent, sorted, unless its own are in an order of their own. A fact
that is new in it is remembered as the agent's word, so that it is recalled; once that is superseded or forgotten, it is
shown no more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import cast, get_args

from perdure.domain.conversation.addresses import parse
from perdure.domain.conversation.documents import Archived, ContextData, ContextDraft, ContextVersion, SavedContext, Task
from perdure.domain.conversation.messages import Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.knowledge.entities import AgentTask, TaskState, from_body
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import Statement, to_statement
from perdure.domain.knowledge.proposals import NewStatement
from perdure.domain.scope import ID_BYTES_MAX, RESERVED, Address, Owner, Scope, SessionId
from perdure.domain.state import Revision
from perdure.domain.text.rules import compact_json
from perdure.domain.times.instants import to_us
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.append import draft as drafted
from perdure.engine.documents.compaction import normalised_fact
from perdure.engine.documents.json_form import check_session_id, read_document
from perdure.engine.documents.view import (
    DocumentRecord,
    HistoryChange,
    LogPosition,
    Run,
    ShownMessage,
    changed,
    document,
    fields_of,
    message_of_entry,
)
from perdure.engine.text.hygiene import CONTENT_CHARS_MAX
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.conversation.append import Appender
from perdure.services.conversation.folds import Folds
from perdure.services.conversation.sessions import Sessions
from perdure.services.documents.record import (
    DocumentAddress,
    StoredDocument,
    digest_of,
    held_as_saved,
    held_of,
    is_in_runs,
    joined,
    keys_of,
    record_of,
    removed,
    removed_keys,
    shown_of,
    taken_out,
    uncounted,
    unreadable,
)
from perdure.services.jobs.catch_up import CatchUp, reading
from perdure.services.jobs.idempotency import note_erasure
from perdure.services.knowledge.commit import Submission, commit_in
from perdure.services.knowledge.ledger import Ledger
from perdure.services.knowledge.memories import Knowledge, MemoryQuery
from perdure.services.knowledge.todos import Todos

FACTS_SHOWN, TASKS_SHOWN, TAUGHT_AT_ONCE = 1_000, 100, 200


@dataclass(frozen=True, slots=True)
class ScopeView:
    """What the agent of a document knows and does."""

    store: Store
    knowledge: Knowledge
    todos: Todos

    def show(self, context: ContextData, scope: Scope, record: DocumentRecord | None) -> ContextData:
        """Add to a loaded document what is known and done, and leave out of its own facts what no longer holds."""
        taught = {} if record is None else record.taught
        self.complete_facts(context, scope, taught)
        own = {task.id for task in context.active_tasks}
        context.active_tasks += [_task(one) for one in self._tasks(scope) if one.id not in own]
        return context

    def complete_facts(
        self, context: ContextData, scope: Scope, taught: Mapping[str, Sequence[str]], known_at: datetime | None = None
    ) -> None:
        """Add to a document's own facts what else its agent knows, or knew then, and leave out what no longer holds. Of a
        revision that is what was forgotten."""
        over = self._over(scope, taught, past=known_at is not None)
        context.facts[:] = [fact for fact in context.facts if fact not in over]
        mine = {statement for ids in taught.values() for statement in ids}
        held = set(map(normalised_fact, context.facts))
        in_order = context.facts == sorted(context.facts)
        context.facts += sorted(
            {
                statement.content
                for statement in self._current(scope, known_at)
                if statement.id not in mine and normalised_fact(statement.content) not in held
            }
        )
        if in_order:
            context.facts.sort()

    def saving(self, context: ContextData, scope: Scope, *, whole: bool) -> ScopeSaving:
        """What saving a document needs to know, and what it may have to remember, made before the transaction."""
        known = frozenset(normalised_fact(one.content) for one in self._current(scope))
        fresh = [fact for fact in dict.fromkeys(context.facts) if normalised_fact(fact) not in known and _is_sayable(fact)]
        said = [NewStatement(content=fact) for fact in fresh[:TAUGHT_AT_ONCE]]
        return ScopeSaving(scope, known, dict(zip(fresh, self.knowledge.submissions(scope, said), strict=False)), whole)

    def end_told(self, tx: Tx, scope: Scope, record: DocumentRecord | None, now: datetime) -> None:
        """With its document, what the agent knew from that alone is known no longer; undoing it brings it back."""
        ledger = Ledger(tx, Attribution(f"agent:{scope.address.agent}", now, "delete"))
        for one in () if record is None else [one for ids in record.taught.values() for one in ids]:
            held = tx.records.find("statement", one)
            found = None if held is None else to_statement(held.body)
            if found is not None and found.is_live() and found.trust == "agent" and found.mentions == 1 and not found.evidence:
                ledger.put_statement(found.closed(valid_to=now, at=now, by=None, reason="its document was deleted"))

    def _current(self, scope: Scope, known_at: datetime | None = None) -> list[Statement]:
        rows = min(FACTS_SHOWN, self.knowledge.limits.page_rows_max)
        found = self.knowledge.list_(scope, MemoryQuery(known_at=known_at, limit=rows))
        return [statement for one in found for statement in one.statements]

    def _tasks(self, scope: Scope) -> list[AgentTask]:
        return self.todos.list_tasks(scope, closed=False, limit=min(TASKS_SHOWN, self.todos.limits.page_rows_max))

    def _over(self, scope: Scope, taught: Mapping[str, Sequence[str]], *, past: bool) -> set[str]:
        """The document's own facts that were remembered, and then superseded, ended or forgotten; if `past`, forgotten."""

        def work(view: View) -> set[str]:
            return {fact for fact, ids in taught.items() if not any(_stands(view, one, past=past) for one in ids)}

        return self.store.read(scope.owner, work) if taught else set()


@dataclass(frozen=True, slots=True)
class ScopeSaving:
    """One save: which facts of it are known anyway, and how to remember the others."""

    scope: Scope
    known: frozenset[str]
    submissions: Mapping[str, Submission]
    whole: bool
    """All that is in the document is its own."""

    def keep_own(
        self, tx: Tx, context: ContextData, record: DocumentRecord | None, now: datetime
    ) -> dict[str, tuple[str, ...]]:
        """Leave in the document what is its own; remember its new facts, update the agent's tasks. Which fact is where."""
        before = set() if record is None else set(record.fields["facts"])
        if not self.whole:
            context.facts[:] = [fact for fact in context.facts if fact in before or normalised_fact(fact) not in self.known]
        taught = {} if record is None else {fact: ids for fact, ids in record.taught.items() if fact in context.facts}
        for fact in dict.fromkeys(context.facts):
            if fact not in before and fact in self.submissions:
                ids = [done.statement.id for done in commit_in(tx, self.submissions[fact]).outcomes if done.statement]
                taught |= {fact: tuple(ids)} if ids else {}
        own = set() if record is None else {task["id"] for task in record.fields["active_tasks"]}
        ledger = Ledger(tx, Attribution(f"agent:{self.scope.address.agent}", now, "update"))
        context.active_tasks[:] = [
            task for task in context.active_tasks if self.whole or task.id in own or not self._updated(tx, ledger, task, now)
        ]
        return taught

    def _updated(self, tx: Tx, ledger: Ledger, task: Task, now: datetime) -> bool:
        """Whether it is a task of the agent; what the document says of it is noted there."""
        held = tx.records.find("task", task.id) if task.id else None
        if held is None or (known := from_body(AgentTask, held.body)).agent != self.scope.address.agent:
            return False
        state = task.status.strip().casefold()
        stated = cast("TaskState", state) if state in get_args(TaskState) else known.state
        if (stated, float(task.progress)) != (known.state, known.progress):
            ledger.put(replace(known, state=stated, progress=float(task.progress), updated_at=now), "update")
        return True


def _stands(view: View, statement: str, *, past: bool) -> bool:
    held = view.records.find("statement", statement)
    if held is None or past:
        return held is not None
    found = to_statement(held.body)
    return found.is_live() or found.is_pending


def _is_sayable(fact: str) -> bool:
    return len(fact.strip()) > 0 and len(fact) <= CONTENT_CHARS_MAX and "\0" not in fact


def _task(one: AgentTask) -> Task:
    created, updated = (to_us(moment) // 1_000_000 for moment in (one.created_at, one.updated_at))
    return Task(
        id=one.id,
        description=one.description,
        status=one.state.capitalize(),
        progress=one.progress,
        created_at=created,
        updated_at=updated,
    )


KEYS = f"{RESERVED}context:"
REVISIONS_KEPT = 3
POLICY = "context_document"


@dataclass(frozen=True, slots=True)
class StoredContexts:
    """A `ContextStore` on a store: for one user, or for whichever user an id names."""

    store: Store
    clock: Clock
    ingest: Appender
    folds: Folds
    sessions: Sessions
    around: ScopeView
    space: str
    user: str | None = None
    """None: whichever user an id names."""
    catch_up: CatchUp | None = None
    """Does what is due before a document is loaded; None: the caller sees to that."""

    def initialize(self) -> None:
        """A store that is open is ready."""

    def load(self, session_id: str) -> ContextData:
        place = self.place(session_id)
        if self.catch_up is None:
            return self._load(place)
        with reading(place.scope.owner, self.catch_up, indexed=False):
            return self._load(place)

    def _load(self, place: DocumentAddress) -> ContextData:
        context, held, _ = self.store.read(place.scope.owner, lambda view: self._loaded(view, place))
        return self.around.show(context, place.scope, held.record)

    def versions(self, session_id: str) -> list[ContextVersion]:
        place = self.place(session_id)
        held = self.store.read(place.scope.owner, lambda view: view.state.list_revisions(place.key, limit=REVISIONS_KEPT))
        return [ContextVersion(one.number, one.saved_at) for one in held if one.body is not None]

    def load_version(self, session_id: str, revision: int) -> ContextData | None:
        place = self.place(session_id)

        def work(view: View) -> tuple[ContextData, DocumentRecord, datetime] | None:
            saved = view.state.find_revision(place.key, revision)
            record = record_of(saved, place.key)
            if saved is None or record is None:
                return None
            held = held_as_saved(view, place, record, revision)
            shown = shown_of(view, held, held.places(record.boundary, record.last))
            found = document(session_id, record, [one.entry for one in shown], held.summary, Tally(Address(), 0))
            found.revision = revision
            return found, record, saved.saved_at

        past = self.store.read(place.scope.owner, work)
        if past is None:
            return None
        context, record, saved_at = past
        self.around.complete_facts(context, place.scope, record.taught, saved_at)
        return context

    def with_archive(self, session_id: str) -> tuple[ContextData, list[Archived]]:
        place = self.place(session_id)

        def work(view: View) -> tuple[ContextData, list[Archived]]:
            context, held, shown = self._loaded(view, place)
            return context, [*taken_out(view, held, shown), *removed(view, place, self.clock.now())]

        return self.store.read(place.scope.owner, work)

    def save(self, draft: ContextDraft) -> SavedContext:
        place = self.place(draft.session_id)
        # Made before the work, which may run again: then it must find what it stored the first time.
        request = hashlib.sha256(_fingerprint(draft)).hexdigest()[:32]
        context = read_document(draft.document, bytes_max=len(draft.document))
        seen, known = LogPosition.parse(draft.lineage), self.around.saving(context, place.scope, whole=draft.whole)
        saving = _Saving(self, place, draft, seen, request, self.clock.new_id(), self.clock.now(), known)
        return self.store.write(place.scope.owner, lambda tx: saving.run(tx, context))

    def delete(self, session_id: str) -> bool:
        place = self.place(session_id)
        now = self.clock.now()

        def work(tx: Tx) -> bool:
            note_erasure(tx, now)
            held = held_of(tx, place)
            self.around.end_told(tx, place.scope, held.record, now)
            for key in removed_keys(tx, place, now):
                tx.state.remove(key)
            if held.session is not None:
                self.sessions.delete_in(tx, place.scope.address, held.session.id, now)
            return tx.state.remove(place.key) > 0 or held.session is not None

        return self.store.write(place.scope.owner, work)

    def list_sessions(self) -> list[str]:
        if self.user is not None:
            owner = Owner(self.space, self.user)
            keys = self.store.read(owner, lambda view: list(keys_of(view, KEYS, self.clock.now())))
            return sorted(self._session_id(owner, key) for key in keys)
        found: list[tuple[Owner, str]] = []
        with self.store.snapshot() as snapshot:
            for space, user, key, *_, size, _preview in snapshot.rows("state_keys"):
                if space == self.space and size is not None and str(key).startswith(KEYS):
                    found.append((Owner(self.space, str(user)), str(key)))
        return sorted(self._session_id(owner, key) for owner, key in found)

    def _session_id(self, owner: Owner, key: str) -> str:
        name = key.removeprefix(KEYS)
        if not name.startswith("~") or ":" in name:
            return name
        record = self.store.read(owner, lambda view: record_of(view.state.find(key), key))
        return "" if record is None else str(record.fields["session_id"])

    def place(self, session_id: str) -> DocumentAddress:
        """Where a document is held, by its id; `InvalidInput` if it is none, or somebody else's."""
        name = parse(check_session_id(session_id), "session")
        user, agent, session = (part or "" for part in (name.user, name.agent, name.session))
        if self.user is not None and user != self.user:
            raise InvalidInput(f"`session_id` = {session_id!r:.80} is not of user {self.user!r:.80}; read it as that user")
        key = f"{KEYS}{session_id}"
        if len(key.encode()) > ID_BYTES_MAX:
            key = f"{KEYS}~{digest_of(session_id)}"
        return DocumentAddress(session_id, Scope.of(user, agent=agent, space=self.space), session, key)

    def _loaded(self, view: View, place: DocumentAddress) -> tuple[ContextData, StoredDocument, list[ShownMessage]]:
        held = held_of(view, place)
        shown = shown_of(view, held, held.places(held.boundary, held.last))
        since = uncounted(view, held)
        try:
            context = document(place.session_id, held.record, [one.entry for one in shown], held.summary, since)
        except InvalidInput as error:
            raise unreadable(place.key) from error
        context.revision = held.revision
        name = "" if held.record is None else held.record.document
        context.lineage = LogPosition(name, self.clock.new_id(), held.boundary, held.last, held.fold_version).render()
        return context, held, shown


@dataclass(frozen=True, slots=True)
class _Saving:
    """One save, ready to run as often as its transaction has to."""

    to: StoredContexts
    place: DocumentAddress
    draft: ContextDraft
    seen: LogPosition | None
    request: str
    fresh: str
    now: datetime
    known: ScopeSaving

    def run(self, tx: Tx, context: ContextData) -> SavedContext:
        key = self.place.key
        tx.state.find(key)  # which keeps rivals off it
        made = tx.state.find_request(key, self.request)
        if made is not None and made.body is not None:
            record = record_of(made, key)
            assert record is not None  # noqa: S101 - it has a body
            return self._answer(made.number, record)  # done before; only the answer was lost
        # The newest session is locked before others, as appending does, so that the two cannot block each other.
        tx.latest_session(self.place.scope.address)
        held = held_of(tx, self.place)
        seen = self._checked(held)
        base = shown_of(tx, held, [seq for seq in held.places(seen.boundary, seen.last) if not is_in_runs(seq, seen.unseen)])
        unseen = joined((*seen.unseen, (seen.last + 1, held.last)))
        arrived = [seq for first, last in unseen for seq in range(max(first, held.boundary + 1), last + 1)]
        change = changed(base, arrived, held.last, context.recent_history, self.draft.archived)
        record = self._logged(tx, held, change, context, unseen)
        number = held.revision + 1
        body = compact_json(record.body())
        tx.state.put(Revision(key, number, body, self.now, request=self.request), keep=REVISIONS_KEPT)
        self._keep_removed(tx, number)
        return self._answer(number, record)

    def _checked(self, held: StoredDocument) -> LogPosition:
        """What the context was made from, if it is still so."""
        name = "" if held.record is None else held.record.document
        seen = self.seen
        if self.draft.revision != held.revision or (seen is not None and seen.document != name):
            now = f"is at revision {held.revision}" if held.revision else "is not stored"
            raise Conflict(
                f"context {self.place.session_id!r:.80} {now}, so revision {self.draft.revision} cannot be replaced: "
                "another write came first; load it and repeat the change"
            )
        if seen is None and held.record is None:
            return LogPosition(
                document="",
                copy="",
                boundary=held.boundary,
                last=held.boundary,
                fold=held.fold_version,
                unseen=joined([(1, held.boundary)]),
            )
        if seen is None and held.record is not None:
            one = held.record
            seen = LogPosition(
                document=one.document, copy="", boundary=one.boundary, last=one.last, fold=one.fold, unseen=one.unseen
            )
        assert seen is not None  # noqa: S101 - both cases are above
        if (seen.boundary, seen.fold) != (held.boundary, held.fold_version) or seen.last > held.last:
            raise Conflict(
                f"the working set of context {self.place.session_id!r:.80} was folded, or a fold was undone, since it was "
                "loaded; load it and repeat the change"
            )
        return seen

    def _logged(
        self, tx: Tx, held: StoredDocument, change: HistoryChange, context: ContextData, unseen: tuple[Run, ...]
    ) -> DocumentRecord:
        """Append what is new, fold what was taken out; the record of how it stands then."""
        name = self.fresh if held.record is None else held.record.document
        session, fold = held.session, held.fold_version
        if change.new:
            session = self._append(tx, change, session, name, held.revision + 1)
        last = 0 if session is None else session.messages
        boundary = change.boundary(last)
        summary = context.long_term_summary
        if session is not None and (boundary > session.boundary_seq or summary != held.words):
            fold = self.to.folds.tell(tx, session, boundary, summary, policy=POLICY).version
        taught = self.known.keep_own(tx, context, held.record, self.now)
        fields, facts_sorted = fields_of(context, held.record)
        return DocumentRecord(
            document=name,
            session=None if session is None else session.id,
            boundary=boundary,
            last=last,
            fold=fold,
            unseen=unseen,
            fields=fields,
            facts_sorted=facts_sorted,
            summary=None if fold else summary,
            shown=change.told_places(last),
            forms=change.forms,
            taught=taught,
        )

    def _append(self, tx: Tx, change: HistoryChange, session: Session | None, name: str, revision: int) -> Session:
        address, ingest = self.place.scope.address, self.to.ingest
        wanted = self._free_name(tx) if session is None else session.id
        by = ingest.drafting(self.now)
        drafts = [
            drafted(message_of_entry(entry, message_id=f"context-{name}-{revision}-{number}", session=wanted), by)
            for number, entry in enumerate(change.new)
        ]
        ingest.put(tx, self.place.scope, drafts, (), now=self.now)
        found = tx.find_session(address, SessionId(wanted))
        assert found is not None  # noqa: S101 - it was just appended to
        return found

    def _free_name(self, tx: Tx) -> str:
        """What the id calls the session; another name if one of that name was deleted, which keeps its name."""
        wanted = self.place.session
        if tx.find_session(self.place.scope.address, SessionId(wanted)) is None:
            return wanted
        other = f"{wanted}~{self.fresh}"
        return other if len(other.encode()) <= ID_BYTES_MAX else f"~{digest_of(other)}"

    def _keep_removed(self, tx: Tx, number: int) -> None:
        removed = [[one.kind, one.body] for one in self.draft.archived if one.kind not in ("entry", "whole")]
        if removed:
            key = f"{self.place.removed}{number:012}"
            tx.state.put(Revision(key, 1, compact_json(removed), self.now, request=self.request), keep=1)

    def _answer(self, number: int, record: DocumentRecord) -> SavedContext:
        seen = LogPosition(
            document=record.document,
            copy=self.fresh,
            boundary=record.boundary,
            last=record.last,
            fold=record.fold,
            unseen=record.unseen,
        )
        return SavedContext(number, seen.render())


def _fingerprint(draft: ContextDraft) -> bytes:
    archived = compact_json([[one.kind, one.body] for one in draft.archived])
    return b"\0".join((draft.lineage.encode(), str(draft.revision).encode(), draft.document, archived.encode()))
