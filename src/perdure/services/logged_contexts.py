"""Context documents of a store whose access log is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.domain.contexts import Archived, ContextData
from perdure.domain.scope import Address, Owner, Scope, shared_owner
from perdure.ports.contexts import ContextDraft, SavedContext
from perdure.services.accessing import About, AccessLog
from perdure.services.contexts import StoredContexts
from perdure.services.touching import Mention


@dataclass(frozen=True, slots=True)
class LoggedContexts:
    """The same `ContextStore`; a document is logged as the session that it is a view of."""

    inner: StoredContexts
    log: AccessLog

    def initialize(self) -> None:
        self.inner.initialize()

    def load(self, session_id: str) -> ContextData:
        scope, about = self._place(session_id)
        return self.log.around(scope, "contexts.load", "read", lambda: self.inner.load(session_id), about)

    def with_archive(self, session_id: str) -> tuple[ContextData, Sequence[Archived]]:
        scope, about = self._place(session_id)
        return self.log.around(scope, "contexts.with_archive", "read", lambda: self.inner.with_archive(session_id), about)

    def save(self, draft: ContextDraft) -> SavedContext:
        scope, about = self._place(draft.session_id)
        return self.log.around(scope, "contexts.save", "change", lambda: self.inner.save(draft), about)

    def delete(self, session_id: str) -> bool:
        scope, about = self._place(session_id)
        return self.log.around(scope, "contexts.delete", "erase", lambda: self.inner.delete(session_id), about)

    def list_sessions(self) -> list[str]:
        space, user = self.inner.space, self.inner.user
        owner = shared_owner(space) if user is None else Owner(space, user)
        return self.log.around(Scope(owner, Address()), "contexts.list_sessions", "read", self.inner.list_sessions)

    def _place(self, session_id: str) -> tuple[Scope, About]:
        place = self.inner.place(session_id)
        return place.scope, lambda _: (Mention("session", place.session),)
