"""Context documents of a store whose access log is on."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.conversation.documents import Archived, ContextData, ContextDraft, ContextVersion, SavedContext
from perdure.domain.scope import Address, Owner, Scope, shared_owner
from perdure.domain.values import dataclass
from perdure.services.access.log import AccessLog
from perdure.services.access.mentions import Mention
from perdure.services.documents.record import DocumentAddress, held_of
from perdure.services.documents.stored import StoredContexts


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
            place.scope, "documents.load", "read", lambda: self.inner.load(session_id), lambda _: self._mentions(place)
        )

    def versions(self, session_id: str) -> list[ContextVersion]:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope, "documents.versions", "read", lambda: self.inner.versions(session_id), lambda _: self._mentions(place)
        )

    def load_version(self, session_id: str, revision: int) -> ContextData | None:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope,
            "documents.load",
            "read",
            lambda: self.inner.load_version(session_id, revision),
            lambda _: self._mentions(place),
        )

    def with_archive(self, session_id: str) -> tuple[ContextData, Sequence[Archived]]:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope,
            "documents.with_archive",
            "read",
            lambda: self.inner.with_archive(session_id),
            lambda _: self._mentions(place),
        )

    def save(self, draft: ContextDraft) -> SavedContext:
        place = self.inner.place(draft.session_id)
        return self.log.around(
            place.scope, "documents.save", "change", lambda: self.inner.save(draft), lambda _: (_session(place),)
        )

    def delete(self, session_id: str) -> bool:
        place = self.inner.place(session_id)
        return self.log.around(
            place.scope,
            "documents.delete",
            "erase",
            lambda: self.inner.delete(session_id),
            lambda deleted: (_session(place),) if deleted else (),
        )

    def list_sessions(self) -> list[str]:
        space, user = self.inner.space, self.inner.user
        owner = shared_owner(space) if user is None else Owner(space, user)
        return self.log.around(Scope(owner, Address()), "documents.list_sessions", "read", self.inner.list_sessions)

    def _mentions(self, place: DocumentAddress) -> Sequence[object]:
        """Anyone who asks for a document that is not there gets an empty one, and may have named anything."""
        held = self.inner.store.read(place.scope.owner, lambda view: held_of(view, place))
        return () if held.record is None and held.session is None else (_session(place),)


def _session(place: DocumentAddress) -> Mention:
    return Mention("session", place.session)
