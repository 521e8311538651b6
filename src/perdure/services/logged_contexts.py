"""Context documents of a store whose access log is on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.domain.contexts import Archived, ContextData
from perdure.domain.scope import Address, Owner, Scope, shared_owner
from perdure.ports.contexts import ContextDraft, SavedContext
from perdure.services.accessing import AccessLog
from perdure.services.context_reading import Place, held_of
from perdure.services.contexts import StoredContexts
from perdure.services.touching import Mention


@dataclass(frozen=True, slots=True)
class LoggedContexts:
    """The same `ContextStore`; a document is logged as the session that it is a view of, if there is one."""

    inner: StoredContexts
    log: AccessLog

    def initialize(self) -> None:
        self.inner.initialize()

    def load(self, session_id: str) -> ContextData:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope, "contexts.load", "read", lambda: self.inner.load(session_id), lambda _: self._held(place)
        )

    def with_archive(self, session_id: str) -> tuple[ContextData, Sequence[Archived]]:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope,
            "contexts.with_archive",
            "read",
            lambda: self.inner.with_archive(session_id),
            lambda _: self._held(place),
        )

    def save(self, draft: ContextDraft) -> SavedContext:
        place = self.inner.place(draft.session_id)
        return self.log.around(
            place.scope, "contexts.save", "change", lambda: self.inner.save(draft), lambda _: (_session(place),)
        )

    def delete(self, session_id: str) -> bool:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope, "contexts.delete", "erase", lambda: self.inner.delete(session_id),
            lambda deleted: (_session(place),) if deleted else (),
        )  # fmt: skip

    def list_sessions(self) -> list[str]:
        space, user = self.inner.space, self.inner.user
        owner = shared_owner(space) if user is None else Owner(space, user)
        return self.log.around(Scope(owner, Address()), "contexts.list_sessions", "read", self.inner.list_sessions)

    def _held(self, place: Place) -> Sequence[object]:
        """Whoever asks for a document that is not there gets an empty one, and may have named anything."""
        held = self.inner.store.read(place.scope.owner, lambda view: held_of(view, place))
        return () if held.record is None and held.session is None else (_session(place),)


def _session(place: Place) -> Mention:
    return Mention("session", place.session)
