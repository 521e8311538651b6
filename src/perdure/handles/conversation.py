"""`ana.conversation`: sessions, transcripts, turns, folds and digests of a user, and sessions as context documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated, Any

from perdure.domain.conversation.agent_state import AgentState
from perdure.domain.conversation.digests import PROFILES, Digest, DigestKind
from perdure.domain.conversation.documents import CompactionReport, ContextData, ContextVersion, SavedContext
from perdure.domain.conversation.messages import Message, NewMessage, Session
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import InvalidInput, Unsupported
from perdure.domain.scope import ID_BYTES_MAX, Scope, SessionId
from perdure.domain.text.rules import Json, check_flag, check_id, utf8_size
from perdure.domain.values import dataclass, replace
from perdure.engine.documents.compaction import SUMMARY_CHARS_MIN, TOKENS_MIN, CompactionRules
from perdure.handles import arguments as arg
from perdure.handles.operation import Arg, Handle, fresh, fresh_as, names, operation
from perdure.ports.files import TranscriptPlace
from perdure.services.access.log import AccessLog
from perdure.services.access.mentions import Mention
from perdure.services.context.assembly import ContextAssembly
from perdure.services.conversation.append import Appender, HeldTurn, Turns
from perdure.services.conversation.folds import Folds, SessionKey
from perdure.services.conversation.history import LogReader
from perdure.services.conversation.sessions import SessionLine, Sessions
from perdure.services.conversation.transcripts import Transcript, Transcripts
from perdure.services.conversation.withdrawal import POPPED_MAX, Withdrawals
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
    """Sessions as context documents: history from the log, facts from memories, tasks of the agent."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, documents: Documents, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = documents

    @operation("read")
    @fresh()
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


Before = Annotated[datetime | None, Arg("Those that ended before this moment.")]
Keep = Annotated[int | None, Arg("All but the newest ones: how many to keep.", ge=0, le=10**9)]
OfSession = Annotated[str | None, arg.an_id("Of this session only.", "s-1")]


class TranscriptHandle(Handle, namespace="transcripts"):
    """Markdown files of sessions, written by jobs. The log stays the truth; a file can be written again from it."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, transcripts: Transcripts, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = transcripts

    @operation("read")
    def list(self, limit: arg.Limit = 100) -> Sequence[Transcript]:
        """List a user's transcripts, newest first, archived ones too. They are those of all addresses."""
        return self._do.list_(self.scope.owner, limit=limit)

    @operation("read")
    def read(self, session: arg.SessionRef) -> Sequence[Message]:
        """Show the messages in a transcript of the address. None if the session has no transcript."""
        check_id(session, "session", bytes_max=ID_BYTES_MAX)
        return self._do.read(TranscriptPlace(self.scope.owner, self.scope.address, SessionId(session)))

    @operation("change")
    def archive(self, *, before: Before = None, keep: Keep = None) -> int:
        """Archive transcripts. Those that ended before then, and all but the newest `keep`. The number says how many."""
        return self._do.archive(self.scope.owner, before=before, keep=keep)

    @operation("erase")
    def prune(self, *, before: Before = None, keep: Keep = None) -> int:
        """Delete archived transcripts. The log stays. Those that ended before then, and all but the newest `keep`. The
        number says how many there were.
        """
        return self._do.prune(self.scope.owner, before=before, keep=keep)


@dataclass(frozen=True, slots=True)
class ConversationServices:
    """What the handle calls."""

    ingest: Appender
    history: LogReader
    sessions: Sessions
    folds: Folds
    assembly: ContextAssembly
    turns: Turns
    transcripts: Transcripts | None
    documents: Documents

    @property
    def withdrawals(self) -> Withdrawals:
        """What takes back the end of a session."""
        return Withdrawals(self.sessions)

    def by_agent(self) -> ConversationServices:
        """The same for what an agent does: what it logs is its word, and it deletes nothing."""
        return replace(
            self,
            ingest=replace(self.ingest, writer="agent"),
            sessions=replace(self.sessions, writer="agent"),
            documents=replace(self.documents, for_agent=True),
        )


class Conversation(Handle, namespace="conversation"):
    """Sessions of one address, their working sets and summaries."""

    __slots__ = ("_do",)

    def __init__(self, scope: Scope, services: ConversationServices, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._do = services

    # -- sessions

    @operation("read")
    def sessions(self, limit: arg.Limit = 20) -> Sequence[Session]:
        """The sessions of this address, newest first."""
        return self._do.history.sessions(self.scope, limit=limit)

    @operation("read")
    def message(self, id: Annotated[str, arg.an_id("The message's id.", "m-1")]) -> Message:
        """Show one message in full. `NotFound` if this address has none with this id."""
        return self._do.history.message(self.scope, id)

    @operation("read")
    def tally(self, session: arg.SessionOrCurrent = None) -> Tally:
        """Show the counts of a session. A job derives them, so they may lag behind the log. By default of the newest."""
        return self._do.history.tally(self.scope, session)

    @property
    def transcripts(self) -> TranscriptHandle:
        """Markdown files of this user's sessions; needs the setting `files_dir`."""
        if self._do.transcripts is None:
            raise Unsupported("no transcripts are kept; set `files_dir` to the folder they should be in")
        return TranscriptHandle(self.scope, self._do.transcripts, self._log)

    @property
    def documents(self) -> DocumentHandle:
        """Sessions as JSON documents to load, change and save."""
        return fresh_as(self, DocumentHandle(self.scope, self._do.documents, self._log))

    @operation("read")
    def list_sessions(
        self,
        source: Annotated[
            str | None,
            Arg("Only channels of this source, such as `SOURCE:42`.", min_length=1, max_length=200, pattern=arg.PLAIN),
        ] = None,
        *,
        limit: arg.Limit = 100,
    ) -> Sequence[SessionLine]:
        """List this user's sessions at all addresses, the last active first; with `source`, on its channels.

        The channels of a source are called `SOURCE:NUMBER`, as in `discord:42`.
        """
        return self._do.sessions.list_(self.scope, source, limit=limit)

    @operation("read")
    def session(self, session: arg.SessionOrCurrent = None) -> Session:
        """A session (default: the open one, or else the newest); `NotFound` if this address has none."""
        return self._do.sessions.find(self.scope, session)

    @operation("change")
    def close(self, session: arg.SessionOrCurrent = None) -> Session:
        """End a session at its last activity. A job writes its summary. By default the open one."""
        return self._do.sessions.close(self.scope, session)

    @operation("change")
    def resume(self, session: arg.SessionOrCurrent = None) -> Session:
        """Continue a session that ended recently. `Conflict` if that is longer ago than the setting `session_resume_s`."""
        return self._do.sessions.resume(self.scope, session)

    @operation("erase", about=names("session", "session"))
    def delete(self, session: arg.SessionRef) -> int:
        """Delete a session's messages and everything derived from them; returns how many messages.

        Its id can be used again: what names it begins anew. A spine that tells of it is made anew by a job.
        """
        return self._do.sessions.delete(self.scope, session)

    @operation("change", permission="write", about=names("session", "session"))
    def pop(
        self,
        session: arg.SessionOrCurrent = None,
        *,
        messages: Annotated[
            int | None, Arg("So many of the last messages; the last exchange, if left out.", ge=1, le=POPPED_MAX)
        ] = None,
    ) -> Sequence[Message]:
        """Take back the last exchange of an open session.

        Its messages leave the log, and what was learned from them alone is unlearned; what that had replaced holds again. It is
        one action of the journal: undoing that brings all of it back, until the talk continues. The messages that went, oldest
        first; none if nothing was said.
        """
        return self._do.withdrawals.pop(self.scope, session, messages)

    @operation("read")
    def search(self, query: arg.Question, *, session: OfSession = None, limit: arg.Limit = 20) -> Sequence[Message]:
        """Find messages of the address, the newest first. They contain all words of `query`, in any case."""
        return self._do.sessions.search(self.scope, query, session=session, limit=limit)

    # -- the working set

    @operation("change")
    def compact(
        self,
        session: arg.SessionOrCurrent = None,
        *,
        force: Annotated[bool, Arg("Also if it is within its bounds.")] = False,
    ) -> Sequence[Digest]:
        """Fold the oldest messages if there are too many. Nothing leaves the log. With `force` the working set is folded down
        to what is kept after an overflow, or to its last turn.
        """
        check_flag(force, "force")
        return self._do.folds.bound(self._where(session), casual=self.agent_state().casual, force=force)

    @operation("change")
    def fold(self, session: arg.SessionOrCurrent = None) -> Sequence[Digest]:
        """Fold all finished turns, as before a request. It is made even if it is no shorter; there have to be
        `fold_messages_min` messages.
        """
        return self._do.folds.fold_request(self._where(session), casual=self.agent_state().casual, asked=True)

    @operation("change")
    def clear(self, session: arg.SessionOrCurrent = None) -> Digest | None:
        """Empty the working set without a summary. The messages stay in the log, and `undo` brings them back."""
        return self._do.folds.clear(self._where(session))

    @operation("change")
    def replace(
        self,
        text: Annotated[
            str,
            Arg("What the agent sees in its place.", min_length=1, max_length=arg.TEXT_CHARS_MAX, pattern=arg.WORDS),
        ],
        session: arg.SessionOrCurrent = None,
    ) -> Digest:
        """Show the agent a text in place of the messages. The messages stay in the log; `undo` brings them back."""
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput("`text` is empty; say what the agent should see, or use `clear()`")
        if "\0" in text:
            raise InvalidInput("`text` contains NUL, which no store keeps; remove it")
        utf8_size(text, "`text`")
        digest = self._do.folds.clear(self._where(session), text=text)
        assert digest is not None  # noqa: S101 - a text is always stored
        return digest

    @operation("change")
    def undo(self, session: arg.SessionOrCurrent = None) -> Digest:
        """Undo the newest fold: its messages are shown again."""
        return self._do.folds.undo(self._where(session))

    # -- layers

    @operation("read")
    def digests(
        self,
        kind: Annotated[DigestKind | None, Arg("Of this layer only; `spine` is the user's.")] = None,
        *,
        session: OfSession = None,
        limit: arg.Limit = 20,
    ) -> Sequence[Digest]:
        """List versions of the summaries, undone ones too. Newest session and version first; the `spine` is the user's."""
        return self._do.sessions.digests(self.scope, session=session, kind=kind, limit=limit)

    @operation("read")
    def digest(
        self,
        kind: Annotated[DigestKind, Arg("The layer.")],
        version: Annotated[int, Arg("The version.", ge=1, le=arg.NUMBER_MAX)],
        *,
        session: arg.SessionOrCurrent = None,
    ) -> Digest:
        """One version of a session's summary (default: the open one), or of the user's spine; else `NotFound`."""
        return self._do.sessions.digest(self.scope, kind, version, session=session)

    @operation("read", about=names("", "digest"))
    def expand(
        self, digest: Digest, *, whole: Annotated[bool, Arg("Also the messages of the versions before it.")] = False
    ) -> Iterator[Message]:
        """The messages that a digest covers; with `whole`, also those of earlier versions."""
        return self._do.sessions.expand(self.scope, digest, whole=whole)

    @operation("read")
    def agent_state(self) -> AgentState:
        """Counters and diagnostics of this address."""
        return self._do.sessions.agent_state(self.scope)

    @operation("change")
    def configure(
        self,
        *,
        profile: Annotated[str | None, Arg("Which layers are kept.", choices=tuple(PROFILES))] = None,
        casual: Annotated[bool | None, Arg("Small talk: no model reads it, and no lessons are drawn.")] = None,
        private: Annotated[bool | None, Arg("What is learned here is visible to this agent alone.")] = None,
        shared: Annotated[bool | None, Arg("Others talk here, too: what is learned here stays here.")] = None,
    ) -> AgentState:
        """Choose the summaries of the address, and who may know of it. What is left out stays as it is.

        Casual talk is read by no model, and no lessons are drawn from it. What is learned from private talk is visible to this
        agent alone. On a shared channel others talk, too: what is learned there stays there.
        """
        return self._do.sessions.configure(self.scope, profile=profile, casual=casual, private=private, shared=shared)

    def _where(self, session: str | None) -> SessionKey:
        return self._do.sessions.where(self.scope, session)


class Turn(Handle, namespace="turn"):
    """The turn lock of a channel. What is appended through it is refused once the lease is lost."""

    __slots__ = ("_held", "_ingest")

    def __init__(self, scope: Scope, ingest: Appender, held: HeldTurn, log: AccessLog | None = None) -> None:
        super().__init__(scope, log)
        self._ingest = ingest
        self._held = held

    @operation("change")
    def append(
        self,
        role: arg.MessageRole,
        content: arg.Content,
        *,
        id: arg.OwnId = None,
        at: arg.SaidAt = None,
        session: arg.IntoSession = None,
        tokens: arg.Tokens = None,
        metadata: arg.Metadata = None,
        tool_calls: arg.ToolCalls = (),
        tool_call_id: arg.ToolCallRef = None,
        failed: arg.Failed = False,
    ) -> Message:
        """As `Memory.append`; `Conflict` if the lock was lost."""
        said = NewMessage(
            role,
            content,
            id=id,
            at=at,
            session=session,
            tokens=tokens,
            metadata=metadata,
            tool_calls=tool_calls,
            tool_call_id=tool_call_id,
            failed=failed,
        )
        return self._ingest.append(self.scope, [said], holder=self._held.holder)[0]

    @operation("change")
    def append_many(self, messages: arg.Messages) -> list[Message]:
        """As `Memory.append_many`; `Conflict` if the lock was lost."""
        return self._ingest.append(self.scope, messages, holder=self._held.holder)


@contextmanager
def held_turn(
    scope: Scope, services: ConversationServices, log: AccessLog | None, *, wait_s: float, lease_s: float
) -> Iterator[Turn]:
    """The turn lock of a channel for the length of a `with` block."""
    held = services.turns.take(scope, wait_s=wait_s, lease_s=lease_s)
    try:
        yield Turn(scope, services.ingest, held, log)
    finally:
        held.end()
