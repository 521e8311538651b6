"""Sessions as the user deals with them: closing, resuming, deleting, listing, searching, and reading their digests."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from perdure.domain.conversation.addresses import channel_name, split_channel
from perdure.domain.conversation.agent_state import AgentState
from perdure.domain.conversation.digests import (
    DIGEST_KINDS,
    SPINE_ADDRESS,
    SPINE_SESSION,
    Digest,
    DigestKind,
    DigestSource,
    check_profile,
)
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session, withdrawn_from
from perdure.domain.errors import Conflict, InvalidInput, NotFound
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.keys import term_value
from perdure.domain.knowledge.memories import Writer, only_people
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import NUMBER_MAX, Limits
from perdure.domain.scope import ID_BYTES_MAX, Address, Owner, Scope, SessionId, ToolCallId
from perdure.domain.text.rules import brief, check_choice, check_id
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import SWEEP, TRANSCRIPT, address_job, session_job
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.conversation.folds import SessionKey
from perdure.services.conversation.upkeep import JOBS_MAX, end_session
from perdure.services.index.writes import leave_digests, leave_messages
from perdure.services.jobs.idempotency import note_erasure
from perdure.services.knowledge.own_words import leave_own_words
from perdure.services.lessons.rows import leave_lessons
from perdure.services.models.writer import read_source

SEARCH_PAGE = 1_000
SEARCH_MESSAGES_MAX = 200_000
WITHDRAWALS_MAX = 10_000
BLANK = "forgotten:"
"""How the journal calls what is gone for good, with a number."""


@dataclass(frozen=True, slots=True)
class SessionLine:
    """One line of a listing of sessions. `source` and `session_id` are the seed's words for channels like `discord:42`."""

    session: Session
    source: str | None
    source_id: int | None
    message_count: int
    """Messages in the working set."""
    last_activity: datetime


@dataclass(frozen=True, slots=True)
class Sessions:
    store: Store
    clock: Clock
    limits: Limits
    resume_within: timedelta
    transcripts: bool
    """Whether transcripts are kept, so that a deleted session's has to go, too."""
    writer: Writer = "user"

    def find(self, scope: Scope, session: str | None) -> Session:
        """The session by its id, or the newest one."""
        return self.store.read(scope.owner, lambda view: held_session(view, scope.address, session))

    def where(self, scope: Scope, session: str | None) -> SessionKey:
        found = self.find(scope, session)
        return SessionKey(scope.owner, scope.address, found.number)

    def close(self, scope: Scope, session: str | None) -> Session:
        """End it now; one that has ended stays as it is."""
        now = self.clock.now()

        def work(tx: Tx) -> Session:
            held = held_session(tx, scope.address, session)
            return held if held.ended_at is not None else end_session(tx, held, now)

        return self.store.write(scope.owner, work)

    def resume(self, scope: Scope, session: str | None) -> Session:
        """Go on with a session that has ended; what is said next belongs to it."""
        now = self.clock.now()

        def work(tx: Tx) -> Session:
            tx.latest_session(scope.address)  # locked first, as `append` does
            held = held_session(tx, scope.address, session)
            if held.ended_at is None:
                return held
            if now - held.ended_at > self.resume_within:
                raise Conflict(
                    f"session {brief(held.id, 80)} ended at {held.ended_at.isoformat()}, longer ago than `session_resume_s` = "
                    f"{self.resume_within.total_seconds():g} allows; continue in a new session"
                )
            for other in reversed(tx.conversation.open_sessions(scope.address, limit=JOBS_MAX)):
                # Looked up once more, because that is what keeps rivals off its row.
                open_one = tx.find_session(scope.address, other.number)
                if open_one is not None and open_one.ended_at is None:
                    end_session(tx, open_one, now)
            resumed = replace(held, ended_at=None, last_at=max(held.last_at, now))
            tx.put_sessions([resumed])
            tx.enqueue(address_job(SWEEP, scope.address, now), now=now, queue_max=JOBS_MAX)
            return resumed

        return self.store.write(scope.owner, work)

    def delete(self, scope: Scope, session: str) -> int:
        """Delete its messages and all that was derived from them; how many messages that were.

        The spine, which may tell of them, is made anew from what is left.
        """
        only_people(self.writer, "delete what was said", "the user does, with `perdure session delete`")
        now = self.clock.now()
        return self.store.write(scope.owner, lambda tx: self.delete_in(tx, scope.address, session, now))

    def delete_in(self, tx: Tx, address: Address, session: str, now: datetime) -> int:
        """`delete` as part of a transaction."""
        by = Attribution("user", now, f"session {brief(session, 80)} deleted")
        note_erasure(tx, now)
        # Sessions are locked before the journal and the counters, and all of them in one order, as everywhere.
        spines = tx.conversation.list_digests(SPINE_ADDRESS, SPINE_SESSION, "spine", limit=JOBS_MAX)
        newest = tx.list_sessions(address, limit=1)
        told = {(one.address.agent, one.address.channel, one.session_number) for spine in spines for one in spine.sources}
        lock_sessions(tx, told | {(one.address.agent, one.address.channel, one.number) for one in newest})
        held = held_session(tx, address, session)
        void = self._void_spines(tx, held)
        gone = leave_messages(tx, held, now=now)
        told_of = tx.conversation.list_digests(address, held.number, None, limit=JOBS_MAX)
        forget_withdrawals(tx, held, by)
        nothing = replace(held, messages=0, tokens=0, turns=0, boundary_seq=0, spine_seq=0, learned_seq=0)
        tx.conversation.empty_session(replace(nothing, ended_at=held.last_at, deleted_at=now), by=by)
        leave_digests(tx, told_of, now=now)
        leave_lessons(tx, told_of, by)
        leave_own_words(tx, gone, by)
        self._renew_spine(tx, void, by)
        tx.conversation.forget_said(address)
        if self.transcripts:
            # The job finds that the session is gone, and removes what it had written.
            tx.enqueue(session_job(TRANSCRIPT, address, held.number, now), now=now, queue_max=JOBS_MAX)
        return held.messages

    def renew_spine_of(self, tx: Tx, session: Session, by: Attribution) -> None:
        """As part of a transaction that takes messages of a session away: no spine tells of it any more."""
        self._renew_spine(tx, self._void_spines(tx, session), by)

    def _void_spines(self, tx: Tx, gone: Session) -> list[Digest]:
        """The spines that tell of a session, or continue one that does; the sessions they took in are locked."""
        spines = tx.conversation.list_digests(SPINE_ADDRESS, SPINE_SESSION, "spine", limit=JOBS_MAX)
        citing = [
            spine.version
            for spine in spines
            if any((one.address, one.session_number) == (gone.address, gone.number) for one in spine.sources)
        ]
        void = [spine for spine in spines if citing and spine.version >= min(citing)]
        places = {(one.address.agent, one.address.channel, one.session_number) for spine in void for one in spine.sources}
        lock_sessions(tx, places)
        return void

    def _renew_spine(self, tx: Tx, void: list[Digest], by: Attribution) -> None:
        """Have the spine made anew from what those versions had taken in and is still there."""
        if not void:
            return
        for source in (source for spine in void for source in spine.sources):
            session = tx.find_session(source.address, source.session_number)
            if session is not None and session.deleted_at is None and session.spine_seq >= source.first_seq:
                tx.put_sessions([replace(session, spine_seq=source.first_seq - 1)])
        tx.conversation.remove_digests(void, by=by)
        leave_digests(tx, void, now=by.at)
        tx.enqueue(session_job("spine", SPINE_ADDRESS, SPINE_SESSION, by.at), now=by.at, queue_max=JOBS_MAX)

    def list_(self, scope: Scope, source: str | None, *, limit: int) -> list[SessionLine]:
        """Sessions of the user at all addresses, or on channels of one source; the last active first."""
        rows = self.limits.page(limit)
        prefix = "" if source is None else channel_name(source, 0).removesuffix("0")
        found = self.store.read(scope.owner, lambda view: view.conversation.sessions_by_activity(prefix, limit=rows))
        return [_line(session) for session in found]

    def search(self, scope: Scope, query: str, *, session: str | None, limit: int) -> list[Message]:
        """Messages of the address, or of one session, that contain every word of `query`; the newest first."""
        rows = self.limits.page(limit)
        words = _folded(query).split() if isinstance(query, str) else []
        if not words:
            raise InvalidInput("`query` has no words; give at least one")
        number = None if session is None else self.find(scope, session).number
        hits: list[Message] = []
        for message in self._newest_first(scope, number):
            text = _folded(message.content)
            if all(word in text for word in words):
                hits.append(message)
                if len(hits) == rows:
                    break
        return hits

    def _newest_first(self, scope: Scope, number: int | None) -> Iterator[Message]:
        before: Cursor | None = None
        for _ in range(SEARCH_MESSAGES_MAX // SEARCH_PAGE):
            query = MessageQuery(scope.address, SEARCH_PAGE, number, before=before)

            def read(view: View, query: MessageQuery = query) -> list[Message]:
                return view.list_messages(query)

            page = self.store.read(scope.owner, read)
            yield from reversed(page)
            if len(page) < SEARCH_PAGE:
                return
            before = Cursor(page[0].session_number, page[0].seq)

    # -- counters and settings of the address

    def agent_state(self, scope: Scope) -> AgentState:
        found = self.store.read(scope.owner, lambda view: view.conversation.find_agent_state(scope.address))
        return found if found is not None else AgentState(scope.address)

    def configure(
        self, scope: Scope, *, profile: str | None, casual: bool | None, private: bool | None, shared: bool | None = None
    ) -> AgentState:
        """Choose the layers of this address; None leaves a thing as it is."""
        if profile is not None:
            check_profile(profile)
        for name, given in (("casual", casual), ("private", private), ("shared", shared)):
            if given is not None and not isinstance(given, bool):
                raise InvalidInput(f"`{name}` = {brief(given)} must be True or False")

        def work(tx: Tx) -> AgentState:
            held = tx.conversation.find_agent_state(scope.address) or AgentState(scope.address)
            chosen = replace(
                held,
                profile=held.profile if profile is None else profile,
                casual=held.casual if casual is None else casual,
                private=held.private if private is None else private,
                shared=held.shared if shared is None else shared,
            )
            tx.conversation.configure(
                scope.address, profile=chosen.profile, casual=chosen.casual, private=chosen.private, shared=chosen.shared
            )
            return chosen

        return self.store.write(scope.owner, work)

    # -- digests

    def digests(self, scope: Scope, *, session: str | None, kind: DigestKind | None, limit: int) -> list[Digest]:
        """Versions of the layers of this address, or of one session; with `kind="spine"`, those of the user."""
        rows = self.limits.page(limit)
        if kind is not None:
            _check_kind(kind)

        def work(view: View) -> list[Digest]:
            if kind == "spine":
                return view.conversation.list_digests(SPINE_ADDRESS, SPINE_SESSION, "spine", limit=rows)
            number = None if session is None else held_session(view, scope.address, session).number
            found = view.conversation.list_digests(scope.address, number, kind, limit=rows)
            return [digest for digest in found if kind is not None or digest.kind != "spine"]

        return self.store.read(scope.owner, work)

    def digest(self, scope: Scope, kind: DigestKind, version: int, *, session: str | None) -> Digest:
        """One version of a layer; `NotFound` if there is none."""
        _check_kind(kind)
        if isinstance(version, bool) or not isinstance(version, int) or not 1 <= version <= NUMBER_MAX:
            raise InvalidInput(f"`version` = {brief(version)} must be a whole number from 1 on")

        def work(view: View) -> Digest | None:
            if kind == "spine":
                return view.conversation.find_digest(SPINE_ADDRESS, SPINE_SESSION, kind, version)
            number = held_session(view, scope.address, session).number
            return view.conversation.find_digest(scope.address, number, kind, version)

        found = self.store.read(scope.owner, work)
        if found is None:
            raise NotFound(f"there is no version {version} of the {kind} digest here; list them with `digests()`")
        return found

    def expand(self, scope: Scope, digest: Digest, *, whole: bool) -> Iterator[Message]:
        """The messages a digest stands for, in log order: its own, or with `whole` those of what it continues, too."""
        if not isinstance(digest, Digest):
            raise InvalidInput(f"`expand` takes a `Digest`, not a `{type(digest).__name__}`; get one with `digests()`")
        return self._expanded(scope, self._held_digest(scope, digest), whole=whole)

    def _expanded(self, scope: Scope, digest: Digest, *, whole: bool) -> Iterator[Message]:
        chain = [digest]
        while whole and chain[-1].based_on:
            newest = chain[-1]
            base = self._version(scope.owner, newest, newest.based_on)
            if base is None:
                break
            chain.append(base)
        for one in reversed(chain):
            for source in one.sources:
                yield from self._run_of(scope.owner, source)

    def _run_of(self, owner: Owner, source: DigestSource) -> Iterator[Message]:
        """The messages of a run, each result with its call: those that came later are here, those of earlier calls are not."""
        made: list[ToolCallId] = []
        for message in read_source(self.store, owner, source):
            made += [call.id for call in message.tool_calls]
            if message.tool_call_id is None or message.tool_call_id in made:
                yield message
        if not made:
            return

        def late(view: View) -> list[Message]:
            calls = view.find_calls(source.address, made)
            seqs = [
                call.result_seq
                for call in calls
                if call.session_number == source.session_number
                and source.first_seq <= call.call_seq
                and call.result_seq is not None
                and call.result_seq > source.last_seq
            ]
            return [message for seq in sorted(seqs) for message in _message_at(view, source, seq)]

        yield from self.store.read(owner, late)

    def _held_digest(self, scope: Scope, digest: Digest) -> Digest:
        """The digest as it is stored; what the caller holds may be a copy with other sources."""
        held = self._version(scope.owner, digest, digest.version)
        if held is None or (digest.kind != "spine" and digest.address != scope.address):
            raise NotFound("this address has no such digest; list them with `digests()`")
        return held

    def _version(self, owner: Owner, like: Digest, version: int) -> Digest | None:
        return self.store.read(
            owner, lambda view: view.conversation.find_digest(like.address, like.session_number, like.kind, version)
        )


def forget_withdrawals(tx: Tx, session: Session, by: Attribution) -> None:
    """As part of the transaction that deletes a session: what was taken back from it goes, too."""
    field, value = withdrawn_from(session.address, session.number)
    for record in tx.records.list_(RecordQuery("withdrawal", WITHDRAWALS_MAX, (field, term_value(value)))):
        number = tx.records.remove("withdrawal", record.key, by=by, action="forget")
        tx.records.blank_operations("withdrawal", record.key, name=f"{BLANK}{number}")


def lock_sessions(tx: Tx, places: Iterable[tuple[str, str, int]]) -> None:
    """Lock sessions (agent, channel, number) in the one order that everybody uses: the newest of an address first."""
    for agent, channel, number in sorted(places, key=lambda place: (place[0], place[1], -place[2])):
        tx.find_session(Address(agent, channel), number)


def held_session(view: View, address: Address, session: str | None) -> Session:
    """The session by its id, by default the one that goes on, or else the newest; `NotFound` if there is none."""
    if session is None:
        newest = view.conversation.open_sessions(address, limit=1) or view.list_sessions(address, limit=1)
        if not newest:
            raise NotFound("nothing was said at this address yet; append a message first")
        session = newest[0].id
    check_id(session, "session", bytes_max=ID_BYTES_MAX)
    held = view.find_session(address, SessionId(session))
    if held is None or held.deleted_at is not None:
        raise NotFound(f"no session {brief(session, 80)} at this address; list them with `sessions()`")
    return held


def _line(session: Session) -> SessionLine:
    parts = split_channel(session.address.channel)
    source, number = (None, None) if parts is None else parts
    return SessionLine(session, source, number, session.working, session.last_at)


def _message_at(view: View, source: DigestSource, seq: int) -> list[Message]:
    number = source.session_number
    return view.list_messages(MessageQuery(source.address, 1, number, after=Cursor(number, seq - 1)))


def _check_kind(kind: DigestKind) -> None:
    check_choice(kind, "kind", DIGEST_KINDS)


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
