"""Context documents as every face has them: loaded, saved, compacted and listed by their ids, for one user of a store."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import datetime

from perdure.domain.conversation.addresses import ConversationName, render
from perdure.domain.conversation.documents import (
    Archived,
    CompactionReport,
    ContextData,
    ContextDraft,
    ContextStore,
    ContextVersion,
    SavedContext,
)
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.limits import Limits
from perdure.domain.scope import Scope
from perdure.domain.text.rules import Json, brief, check_flag, check_json, compact_json
from perdure.domain.text.secrets import without_secrets_in
from perdure.domain.times.instants import to_us
from perdure.domain.values import dataclass, replace
from perdure.engine.documents.compaction import (
    CompactionRules,
    apply,
    planned,
    summary_request,
    with_summary,
)
from perdure.engine.documents.json_form import (
    DOCUMENT_BYTES_MAX,
    DOCUMENT_FIELDS,
    check_context,
    document_json,
    read_document,
    render_without_secrets,
)
from perdure.ports.clock import Clock
from perdure.ports.models import Summariser
from perdure.services.documents.stored import StoredContexts
from perdure.services.models.writer import SummaryFailed, summary_by

_log = logging.getLogger("perdure")
REVISION_MAX = 2**53
BESIDE = ("revision", "lineage", "notes")
"""What a loaded document carries besides its fields; the first two say what it was made from."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a store. A name is a whole id, or the session's alone, of the agent that asks."""

    stored: StoredContexts
    clock: Clock
    limits: Limits
    summariser: Summariser | None
    """None: a summary has a line for each entry."""
    for_agent: bool = False
    """An agent reaches its own documents only: another one's show what that one alone may know."""

    def load(self, scope: Scope, name: str, revision: int | None = None) -> ContextData:
        """The document as it stands, or as it was saved under a revision that is kept."""
        return loaded(self._of(scope), self._id(scope, name), revision)

    def save(self, scope: Scope, given: ContextData | Mapping[str, Json]) -> tuple[ContextData, SavedContext]:
        """Store a document, and what it is stored as."""
        context = given if isinstance(given, ContextData) else context_of(given)
        context.session_id = self._id(scope, context.session_id)
        return context, saved(self._of(scope), context)

    def compact(self, scope: Scope, name: str, rules: CompactionRules, *, force: bool) -> CompactionReport:
        """Compact a stored document in place. The model is asked before anything is written."""
        check_flag(force, "force")
        store, session_id = self._of(scope), self._id(scope, name)
        context = loaded(store, session_id)
        if not context.revision and not context.recent_history:
            raise NotFound(f"there is no document {session_id!r:.80}; list them with `conversation.documents.list()`")
        compact(context, rules, self.clock.now(), force=force, summariser=self.summariser)
        report = context.last_compaction
        assert report is not None  # noqa: S101 - it was compacted
        if report.compacted or report.facts_removed or report.tasks_removed:
            saved(store, context)
        return report

    def versions(self, scope: Scope, name: str) -> list[ContextVersion]:
        """The revisions that are kept, the newest first."""
        return self._of(scope).versions(self._id(scope, name))

    def delete(self, scope: Scope, name: str) -> bool:
        """Remove a document with its messages."""
        return self._of(scope).delete(self._id(scope, name))

    def list_(self, scope: Scope, *, limit: int) -> list[str]:
        """The ids of the user's documents; for an agent, of its own."""
        stored, rows = self._of(scope), self.limits.page(limit)
        found = stored.list_sessions()
        if self.for_agent:
            found = [one for one in found if stored.place(one).scope.address.agent == scope.address.agent]
        return found[:rows]

    def session(self, scope: Scope, name: str) -> str:
        """The session that a document is a view of."""
        return self._of(scope).place(self._id(scope, name)).session

    def _of(self, scope: Scope) -> StoredContexts:
        return replace(self.stored, space=scope.owner.space, user=scope.owner.user)

    def _id(self, scope: Scope, name: str) -> str:
        if isinstance(name, str) and name and ":" not in name:
            return render(ConversationName(scope.owner.user, scope.address.agent, name), "session")
        place = self._of(scope).place(name)
        if self.for_agent and place.scope.address.agent != scope.address.agent:
            raise InvalidInput(f"document {name!r:.80} is another agent's; use one of agent {scope.address.agent!r:.80}")
        return place.session_id


# -- for any storage


def loaded(store: ContextStore, session_id: str, revision: int | None = None) -> ContextData:
    """A document, or a revision of it; what had to be fixed is logged."""
    if revision is not None:
        past = store.load_version(session_id, _number(revision))
        if past is None:
            raise NotFound(f"revision {revision} of {session_id!r:.80} is not kept; `versions` lists what there is")
        return past
    context = store.load(session_id)
    for note in context.notes:
        _log.warning("%s", note)
    return context


def saved(store: ContextStore, context: ContextData) -> SavedContext:
    """Store a document, and note in it what is stored now."""
    draft = draft_of(context)
    done = store.save(draft)
    settle(context, draft, done)
    return done


def draft_of(context: ContextData, *, bytes_max: int = DOCUMENT_BYTES_MAX) -> ContextDraft:
    """The document at this moment, without secrets."""
    document = render_without_secrets(context, bytes_max=bytes_max)
    return ContextDraft(context.session_id, document, without_secrets(context.archived), context.revision, context.lineage)


def settle(context: ContextData, draft: ContextDraft, done: SavedContext) -> None:
    """Note in the context what is stored now. It may have been worked on since the draft was made."""
    context.revision, context.lineage = done.revision, done.lineage
    del context.archived[: len(draft.archived)]


def without_secrets(archived: Iterable[Archived]) -> tuple[Archived, ...]:
    """What compaction took out, as it may be stored."""
    return tuple(Archived(one.kind, without_secrets_in(one.body)) for one in archived)


def compact(context: ContextData, rules: CompactionRules, now: datetime, *, force: bool, summariser: Summariser | None) -> bool:
    """Compact a document in place; whether its history or summary changed. Without a summariser, or where it fails, the summary
    has a line for each entry."""
    plan = planned(check_context(context), rules, now_s=to_us(now) // 1_000_000, force=force)
    if summariser is not None and plan.report.summarised:
        try:
            written = summary_by(summariser, summary_request(context, plan.report.summarised, rules))
        except SummaryFailed as error:
            _log.warning("%s; the summary of the document is made by rules", error)
        else:
            plan = with_summary(plan, written.text, context.long_term_summary) if written.text.strip() else plan
    apply(context, plan)
    if plan.report.compacted:
        _log.info("Context compacted", extra={"compaction": plan.report})
    return plan.report.compacted


def context_of(given: Mapping[str, Json]) -> ContextData:
    """A document as a face was handed it: its fields, and the revision and lineage that it was loaded with."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"`document` is a `{type(given).__name__}`; pass a document as `load` gives it")
    fields = {name: value for name, value in given.items() if name not in BESIDE}
    check_json(fields, "document")
    context = read_document(compact_json(fields))
    revision, lineage = given.get("revision", 0), given.get("lineage", "")
    if isinstance(revision, bool) or not isinstance(revision, int) or not 0 <= revision <= REVISION_MAX:
        raise InvalidInput(f"`revision` = {brief(revision)} must be the revision that the document was loaded with, or 0")
    if not isinstance(lineage, str):
        raise InvalidInput(f"`lineage` = {brief(lineage)} must be the text that the document was loaded with")
    context.revision, context.lineage = revision, lineage
    return context


def face_json(context: ContextData) -> dict[str, Json]:
    """A loaded document for a face: its fields, and what has to come back with it."""
    told = document_json(context)
    return {**{name: told[name] for name in DOCUMENT_FIELDS}, **{name: getattr(context, name) for name in BESIDE}}


def _number(revision: int) -> int:
    if isinstance(revision, bool) or not isinstance(revision, int) or not 1 <= revision <= REVISION_MAX:
        raise InvalidInput(f"`revision` = {brief(revision)} must be the number of a revision; `versions` lists what there is")
    return revision
