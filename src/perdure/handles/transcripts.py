"""`Memory.transcripts`: the Markdown files of one user's sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.domain.messages import Message
from perdure.domain.scope import ID_BYTES_MAX, Scope, SessionId
from perdure.domain.text import check_id
from perdure.ports.transcripts import TranscriptPlace
from perdure.services.transcripts import Transcript, Transcripts


class TranscriptHandle:
    """What jobs have written down. The log stays the truth; a file can be written again from it."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, transcripts: Transcripts) -> None:
        self._scope = scope
        self._do = transcripts

    def list(self, limit: int = 100) -> Sequence[Transcript]:
        """The transcripts of this user, at all addresses, newest first, including those put away."""
        return self._do.list_(self._scope.owner, limit=limit)

    def read(self, session: str) -> Sequence[Message]:
        """The messages in the transcript of a session of this address; none if it has no transcript."""
        check_id(session, "session", bytes_max=ID_BYTES_MAX)
        return self._do.read(TranscriptPlace(self._scope.owner, self._scope.address, SessionId(session)))

    def archive(self, *, before: datetime | None = None, keep: int | None = None) -> int:
        """Put away this user's transcripts that ended before that instant, and all but the newest `keep`; how many."""
        return self._do.archive(self._scope.owner, before=before, keep=keep)

    def prune(self, *, before: datetime | None = None, keep: int | None = None) -> int:
        """Delete, of those put away, what ended before that instant, and all but the newest `keep`; how many."""
        return self._do.prune(self._scope.owner, before=before, keep=keep)
