"""`ana.conversation.documents`: sessions as context documents, one JSON document each, to load, change and save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from perdure.domain.conversation.documents import CompactionReport, ContextData, ContextVersion, SavedContext
from perdure.domain.scope import Scope
from perdure.domain.text.rules import Json
from perdure.engine.documents.compaction import SUMMARY_CHARS_MIN, TOKENS_MIN, CompactionRules
from perdure.handles import arguments as arg
from perdure.handles.operation import Arg, Handle, operation
from perdure.services.access.log import AccessLog
from perdure.services.access.mentions import Mention
from perdure.services.documents.documents import REVISION_MAX, Documents

DocumentId = Annotated[
    str,
    Arg(
        "Its id, `USER:AGENT:SESSION`; the session alone means this user and agent.",
        min_length=1,
        max_length=1_300,
        pattern=arg.PLAIN,
        example="ana:coach:123",
    ),
]
EXAMPLE = {
    "session_id": "ana:coach:123",
    "system_state": {},
    "facts": ["Project uses Rust 1.75"],
    "recent_history": [{"timestamp": 1708654321, "role": "user", "content": "Create a new file", "token_count": 5}],
    "long_term_summary": "",
    "active_tasks": [],
    "tool_stats": {"total_calls": 0, "by_tool": {}, "failures": 0},
    "last_known_environment": {"workspace": "", "last_update": 0, "system_snapshot": {}},
    "token_usage": {"total_input": 0, "total_output": 0, "by_session": 0},
    "revision": 0,
    "lineage": "",
}


class DocumentHandle(Handle, namespace="documents"):
    """A document is a view: its history is the log, its facts are what is known, its tasks are the agent's."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, documents: Documents, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = documents

    @operation("read")
    def load(
        self,
        document: DocumentId,
        *,
        revision: Annotated[int | None, Arg("As it was saved under this revision.", ge=1, le=REVISION_MAX)] = None,
    ) -> ContextData:
        """Load a context document, or a new one.

        A new one is empty and not yet stored. Hand it back to `save` with its `revision` and `lineage`. `NotFound` if that
        `revision` is not kept.
        """
        found = self._do.load(self.scope, document, revision)
        if found.revision:
            self._note(self._session(document))
        return found

    @operation("change")
    def save(
        self, document: Annotated[ContextData | Mapping[str, Json], Arg("The document as loaded, changed.", example=EXAMPLE)]
    ) -> SavedContext:
        """Save a context document, whole or not at all. What its history has more than before goes to the log.

        `Conflict` if the stored document is no longer the one that was loaded: load it again and repeat the change.
        """
        context, done = self._do.save(self.scope, document)
        self._note(self._session(context.session_id))
        return done

    @operation("change")
    def compact(
        self,
        document: DocumentId,
        *,
        force: Annotated[bool, Arg("Also if it is within its limits.")] = False,
        max_history: Annotated[int, Arg("More entries than this are compacted to 60 % of it.", ge=2, le=arg.NUMBER_MAX)] = 50,
        max_tokens: Annotated[
            int, Arg("A history of more tokens loses its older half.", ge=TOKENS_MIN, le=arg.NUMBER_MAX)
        ] = 100_000,
        summary_chars_max: Annotated[int, Arg("Characters of its summary.", ge=SUMMARY_CHARS_MIN, le=arg.NUMBER_MAX)] = 8_000,
    ) -> CompactionReport:
        """Compact a stored context document and save it.

        History, tokens, facts and tasks are brought within their limits. What leaves the document stays in the log. The
        summary is written by the summariser or model that is set, else it has a line for each entry.
        """
        rules = CompactionRules(max_history=max_history, max_tokens=max_tokens, summary_chars_max=summary_chars_max)
        done = self._do.compact(self.scope, document, rules, force=force)
        self._note(self._session(document))
        return done

    @operation("read")
    def list(self, limit: arg.Limit = 100) -> Sequence[str]:
        """List the ids of the user's context documents."""
        found = self._do.list_(self.scope, limit=limit)
        self._note(*map(self._session, found))
        return found

    @operation("read")
    def versions(self, document: DocumentId) -> Sequence[ContextVersion]:
        """List the kept revisions of a context document, newest first."""
        found = self._do.versions(self.scope, document)
        if found:
            self._note(self._session(document))
        return found

    @operation("erase")
    def delete(self, document: DocumentId) -> bool:
        """Delete a context document with the messages of its session. False if there was none."""
        gone = self._do.delete(self.scope, document)
        if gone:
            self._note(self._session(document))
        return gone

    def _session(self, document: str) -> Any:
        return Mention("session", self._do.session(self.scope, document))
