"""`Memory.conversation`: sessions of one address and the layers over them. `Turn`: the floor of its channel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from perdure.domain.agents import AgentState
from perdure.domain.digests import Digest, DigestKind
from perdure.domain.errors import InvalidInput
from perdure.domain.messages import Message, MessageFields, NewMessage, Session
from perdure.domain.scope import Scope
from perdure.domain.text import check_flag, utf8_size
from perdure.services.assembly import Assembly
from perdure.services.folding import Folding, Where
from perdure.services.ingest import Ingest
from perdure.services.sessions import SessionLine, Sessions
from perdure.services.turns import HeldTurn, Turns

if TYPE_CHECKING:
    from typing import Unpack


@dataclass(frozen=True, slots=True)
class ConversationServices:
    """What the handle calls."""

    ingest: Ingest
    sessions: Sessions
    folding: Folding
    assembly: Assembly
    turns: Turns


class Conversation:
    """The sessions of one address: what is in their working sets, and the summaries of what is not."""

    __slots__ = ("_do", "_scope")

    def __init__(self, scope: Scope, services: ConversationServices) -> None:
        self._scope = scope
        self._do = services

    # -- sessions

    def list_sessions(self, source: str | None = None, *, limit: int = 100) -> Sequence[SessionLine]:
        """Sessions of this user at all addresses, the last active first; with `source`, those on its channels.

        The channels of a source are called `SOURCE:NUMBER`, as in `discord:42`.
        """
        return self._do.sessions.list_(self._scope, source, limit=limit)

    def session(self, session: str | None = None) -> Session:
        """A session (default: the one that goes on, or else the newest); `NotFound` if this address has none."""
        return self._do.sessions.find(self._scope, session)

    def close(self, session: str | None = None) -> Session:
        """End a session (default: the one that goes on) at its last activity; its digest is written by a job."""
        return self._do.sessions.close(self._scope, session)

    def resume(self, session: str | None = None) -> Session:
        """Go on with a session that ended no longer ago than the setting `session_resume_s`; else `Conflict`."""
        return self._do.sessions.resume(self._scope, session)

    def delete(self, session: str) -> int:
        """Delete the messages of a session and what was derived from them; how many messages there were.

        Its number and id stay taken. A spine that tells of it is made anew by a job.
        """
        return self._do.sessions.delete(self._scope, session)

    def search(self, query: str, *, session: str | None = None, limit: int = 20) -> Sequence[Message]:
        """Messages of this address that contain all words of `query`, in any case, the newest first."""
        return self._do.sessions.search(self._scope, query, session=session, limit=limit)

    # -- the working set

    def compact(self, session: str | None = None, *, force: bool = False) -> Sequence[Digest]:
        """Fold the oldest part of a working set that is over its bounds; the folds made, none if it is within them.

        With `force` it is folded down to what is kept after an overflow, or to its last turn. Nothing leaves the log.
        """
        check_flag(force, "force")
        return self._do.folding.bound(self._where(session), casual=self.agent_state().casual, force=force)

    def fold(self, session: str | None = None) -> Sequence[Digest]:
        """Fold all turns that are over, if there are `fold_messages_min` messages; as `context()` does before a request."""
        return self._do.folding.fold_request(self._where(session), casual=self.agent_state().casual)

    def clear(self, session: str | None = None) -> Digest | None:
        """Empty the working set without a summary; None if it is empty. The messages stay in the log."""
        return self._do.folding.clear(self._where(session))

    def replace(self, text: str, session: str | None = None) -> Digest:
        """Empty the working set, and show the agent `text` in its place."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("`text` is empty; say what the agent should see, or use `clear()`")
        if "\0" in text:
            raise InvalidInput("`text` contains NUL, which no store keeps; remove it")
        utf8_size(text, "`text`")
        digest = self._do.folding.clear(self._where(session), text=text)
        assert digest is not None  # noqa: S101 - a text is always stored
        return digest

    def undo(self, session: str | None = None) -> Digest:
        """Take back the newest fold: what it had moved out of the working set is in it again."""
        return self._do.folding.undo(self._where(session))

    # -- layers

    def digests(self, kind: DigestKind | None = None, *, session: str | None = None, limit: int = 20) -> Sequence[Digest]:
        """Versions of the layers of this address, newest session and version first; `spine` is the user's."""
        return self._do.sessions.digests(self._scope, session=session, kind=kind, limit=limit)

    def digest(self, kind: DigestKind, version: int, *, session: str | None = None) -> Digest:
        """One version of a layer of a session (default: the one that goes on), or of the user's spine; else `NotFound`."""
        return self._do.sessions.digest(self._scope, kind, version, session=session)

    def expand(self, digest: Digest, *, whole: bool = False) -> Iterator[Message]:
        """The messages that a digest stands for; with `whole`, also those of the versions that it continues."""
        return self._do.sessions.expand(self._scope, digest, whole=whole)

    def agent_state(self) -> AgentState:
        """Counters and diagnostics of this address."""
        return self._do.sessions.agent_state(self._scope)

    def configure(
        self,
        *,
        profile: str | None = None,
        casual: bool | None = None,
        private: bool | None = None,
        shared: bool | None = None,
    ) -> AgentState:
        """Choose the layers of this address; None leaves a thing as it is.

        Casual talk is read by no model, and no lessons are drawn from it. What is learned from private talk is visible
        to this agent alone. On a shared channel others talk, too: what is learned there stays there.
        """
        return self._do.sessions.configure(self._scope, profile=profile, casual=casual, private=private, shared=shared)

    def _where(self, session: str | None) -> Where:
        return self._do.sessions.where(self._scope, session)


class Turn:
    """The floor of a channel. What is appended through it is refused once the lease is lost."""

    __slots__ = ("_held", "_ingest", "_scope")

    def __init__(self, scope: Scope, ingest: Ingest, held: HeldTurn) -> None:
        self._scope = scope
        self._ingest = ingest
        self._held = held

    def append(self, role: str, content: str, **fields: Unpack[MessageFields]) -> Message:
        """As `Memory.append`; `Conflict` if the floor was lost."""
        return self.append_many([new_message(role, content, fields)])[0]

    def append_many(self, messages: Iterable[NewMessage]) -> list[Message]:
        """As `Memory.append_many`; `Conflict` if the floor was lost."""
        return self._ingest.append(self._scope, messages, holder=self._held.holder)


@contextmanager
def held_turn(scope: Scope, services: ConversationServices, *, wait_s: float, lease_s: float) -> Iterator[Turn]:
    """The floor of a channel for the length of a `with` block."""
    held = services.turns.take(scope, wait_s=wait_s, lease_s=lease_s)
    try:
        yield Turn(scope, services.ingest, held)
    finally:
        held.end()


def new_message(role: str, content: str, fields: MessageFields) -> NewMessage:
    """The message that a call of `append` describes."""
    try:
        return NewMessage(role, content, **fields)
    except TypeError:
        known = NewMessage.__dataclass_fields__
        extra = sorted(name for name in fields if name not in known)
        raise InvalidInput(f"`append` does not take {', '.join(extra)}; it takes {', '.join(known)}") from None
