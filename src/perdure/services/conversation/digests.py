"""The layers that look back: rolling digest, session digest, spine. Each version continues the one before it.

Their texts are written outside any transaction, from the log; a rival's version in between makes this one void.
"""

from __future__ import annotations

from collections.abc import Mapping

from perdure.domain.conversation.digests import SPINE_ADDRESS, SPINE_SESSION, Digest, DigestKind, DigestSource, Layers, trust_of
from perdure.domain.conversation.messages import Session
from perdure.domain.jobs import Job, NewJob
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import least
from perdure.domain.scope import Address, Owner
from perdure.domain.text.rules import Json
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import session_job
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.access import OwnerVersion
from perdure.services.index.writes import enter_digests
from perdure.services.jobs.worker import Effect, RunLater
from perdure.services.models.writer import DigestRequest, DigestWriter, SummaryFailed, WrittenDigest

ACTOR = "digest/1"
SESSION_CHARS_MAX = 2_000
SPINE_SESSIONS_MAX = 200
SPINE_MESSAGES_MAX = 2_000
"""What one version of the spine takes in at most; the rest waits for the next."""


@dataclass(frozen=True, slots=True)
class _Base:
    """What a new version is decided on."""

    session: Session | None
    digest: Digest | None
    version: OwnerVersion
    casual: bool
    turns: int = 0
    to_condense: tuple[Session, ...] = ()
    small_talk: tuple[Session, ...] = ()
    """Sessions of casual channels: the spine passes them over."""

    @property
    def text(self) -> str:
        return "" if self.digest is None else self.digest.text


@dataclass(frozen=True, slots=True)
class Digests:
    """Handlers of the jobs `rolling_digest`, `session_digest` and `spine`. Running one twice changes nothing more."""

    store: Store
    clock: Clock
    writer: DigestWriter
    layers: Layers
    counted: int = 1
    """What the spine counts for each exchange."""

    # -- where we are

    def rolling(self, job: Job) -> Effect | None:
        address, number = _place(job)
        base = self._read(job.owner, address, number, "rolling")
        if base.session is None or not rolling_is_due(base.session, base.digest, self.layers):
            return None
        started = self.clock.now()
        source = DigestSource(address, number, covered(base.digest) + 1, base.session.messages)
        wanted = DigestRequest("rolling", (source,), base.text, chars_max=self.layers.rolling_chars_max, offline=base.casual)
        try:
            written, fallback = self._written(job, wanted)
        except SummaryFailed as error:
            # Counted with the job, and shown with the agent's state; the digest there is stays as it is.
            failure = error.failure
            self.store.write(
                job.owner, lambda tx: tx.conversation.note_rolling(address, tried_at=started, done_at=None, error=failure)
            )
            raise
        turns: dict[str, Json] = {"turns": base.session.turns}
        made = self._digest("rolling", (source,), base, written, turns, fallback=fallback)

        def effect(tx: Tx) -> None:
            if self._put(tx, made, base, job):
                tx.conversation.note_rolling(address, tried_at=started, done_at=self.clock.now(), error=None)

        return effect

    # -- what a session was about

    def session(self, job: Job) -> Effect | None:
        address, number = _place(job)
        base = self._read(job.owner, address, number, "session")
        session = base.session
        if session is None or session.ended_at is None or session.messages <= covered(base.digest):
            return None  # deleted, resumed, or done already
        source = DigestSource(address, number, covered(base.digest) + 1, session.messages)
        wanted = DigestRequest("session", (source,), base.text, chars_max=SESSION_CHARS_MAX, offline=base.casual)
        written, fallback = self._written(job, wanted)
        made = self._digest("session", (source,), base, written, {}, fallback=fallback)

        def effect(tx: Tx) -> None:
            self._put(tx, made, base, job)

        return effect

    # -- what is known of the user over all sessions

    def spine(self, job: Job) -> Effect | RunLater | None:
        base = self._read(job.owner, SPINE_ADDRESS, SPINE_SESSION, "spine")
        if not spine_is_due(base.turns, base.digest, self.layers, self.counted):
            return None
        passed = tuple(DigestSource(one.address, one.number, one.spine_seq + 1, one.messages) for one in base.small_talk)
        if not base.to_condense:
            return lambda tx: _take_in(tx, passed)
        sources = _within_reach(base.to_condense)
        wanted = DigestRequest("spine", sources, base.text, chars_max=self.layers.spine_chars_max)
        written, fallback = self._written(job, wanted)
        read = len(base.to_condense) + len(base.small_talk)
        reached = len(sources) == len(base.to_condense) and sources[-1].last_seq == base.to_condense[-1].messages
        whole = reached and read < SPINE_SESSIONS_MAX
        # As long as something waits, the spine stays due.
        counted = base.turns if whole else turns_at(base.digest)
        numbers: dict[str, Json] = {"turns": counted, "messageCount": base.turns - turns_at(base.digest)}
        made = self._digest("spine", sources, base, written, numbers, fallback=fallback)

        def effect(tx: Tx) -> None:
            # Sessions first, then the journal, as everywhere: another order could block both.
            held = [tx.find_session(one.address, one.session_number) for one in sorted((*sources, *passed), key=_by_place)]
            if any(session is None or session.deleted_at is not None for session in held):
                # Deleted while this was written: it must not be told, so what is left is told by another run.
                now = self.clock.now()
                tx.enqueue(session_job("spine", SPINE_ADDRESS, SPINE_SESSION, now), now=now, queue_max=2**31)
            elif self._put(tx, made, base, job):
                _take_in(tx, (*sources, *passed))

        return effect if whole else RunLater(self.clock.now(), effect)

    # -- how

    def _read(self, owner: Owner, address: Address, number: int, kind: DigestKind) -> _Base:
        def work(view: View) -> _Base:
            talk = view.conversation
            digest = talk.latest_digest(address, number, kind)
            if kind == "spine":
                waiting = talk.sessions_to_condense(limit=SPINE_SESSIONS_MAX)
                states = {address: talk.find_agent_state(address) for address in {one.address for one in waiting}}
                casual = {address for address, state in states.items() if state is not None and state.casual}
                return _Base(
                    None,
                    digest,
                    casual=False,
                    turns=talk.count_turns(),
                    to_condense=tuple(one for one in waiting if one.address not in casual),
                    small_talk=tuple(one for one in waiting if one.address in casual),
                    version=view.accesses.version(),
                )
            state = talk.find_agent_state(address)
            session = view.find_session(address, number)
            gone = session is None or session.deleted_at is not None
            is_casual = state is not None and state.casual
            return _Base(None if gone else session, digest, casual=is_casual, version=view.accesses.version())

        return self.store.read(owner, work)

    def _written(self, job: Job, wanted: DigestRequest) -> tuple[WrittenDigest, bool]:
        """The text, and whether the offline summariser stood in: it does at the last try, so that a digest there will be."""
        try:
            return self.writer.write(job.owner, wanted), False
        except SummaryFailed:
            if job.attempts < job.attempts_max:
                raise
            return self.writer.write(job.owner, replace(wanted, offline=True)), True

    def _digest(
        self,
        kind: DigestKind,
        sources: tuple[DigestSource, ...],
        base: _Base,
        written: WrittenDigest,
        more: Mapping[str, Json],
        *,
        fallback: bool,
    ) -> Digest:
        place = sources[-1] if kind != "spine" else DigestSource(SPINE_ADDRESS, SPINE_SESSION, 0, 0)
        return Digest(
            address=place.address,
            session_number=place.session_number,
            kind=kind,
            version=1,
            policy="spine" if kind == "spine" else f"{kind}_digest",
            based_on=0 if base.digest is None else base.digest.version,
            sources=sources,
            text=written.summary.text,
            pinned=(),
            lessons=(),
            fields={**written.summary.fields, **more, "trust": least((written.trust, trust_of(base.digest)), "agent")},
            summariser=written.summariser,
            fallback=fallback,
            made_at=self.clock.now(),
        )

    def _put(self, tx: Tx, made: Digest, base: _Base, job: Job) -> bool:
        """Store it as the next version; False if another run was faster, its session is gone, or something was forgotten."""
        talk = tx.conversation
        if made.kind != "spine":
            session = tx.find_session(made.address, made.session_number)
            if session is None or session.deleted_at is not None:
                return False
        if talk.latest_digest(made.address, made.session_number, made.kind) != base.digest:
            return False
        if not tx.accesses.version().holds_since(base.version):
            # What it tells may have been forgotten since it was read: another run reads again.
            again = NewJob(job.kind, job.key, made.made_at, job.payload)
            tx.enqueue(again, now=made.made_at, queue_max=2**31)
            return False
        held = talk.list_digests(made.address, made.session_number, made.kind, limit=1)
        version = held[0].version + 1 if held else 1
        spans = ", ".join(f"{one.first_seq} to {one.last_seq}" for one in made.sources[:3])
        by = Attribution(ACTOR, made.made_at, f"{made.policy}: messages {spans}")
        talk.put_digest(replace(made, version=version), by=by)
        enter_digests(tx, made.address, made.session_number, made.kind, now=made.made_at)
        return True


def covered(digest: Digest | None) -> int:
    """The last message of its session that a rolling or session digest has taken in."""
    return 0 if digest is None else digest.last_seq


def turns_at(digest: Digest | None) -> int:
    """How many turns there were when the digest was made."""
    turns = 0 if digest is None else digest.fields.get("turns", 0)
    return turns if isinstance(turns, int) else 0


def rolling_is_due(session: Session, newest: Digest | None, layers: Layers) -> bool:
    return session.turns - turns_at(newest) >= layers.rolling_turns


def spine_is_due(turns: int, newest: Digest | None, layers: Layers, counted: int) -> bool:
    return (turns - turns_at(newest)) * counted > layers.spine_turns


def _place(job: Job) -> tuple[Address, int]:
    return Address(job.payload["agent"], job.payload["channel"]), job.payload["session_number"]


def _within_reach(sessions: tuple[Session, ...]) -> tuple[DigestSource, ...]:
    """What one version takes in, oldest session first at each address, up to a number of messages."""
    sources: list[DigestSource] = []
    left = SPINE_MESSAGES_MAX
    for session in sessions:
        if left <= 0:
            break
        last = min(session.messages, session.spine_seq + left)
        sources.append(DigestSource(session.address, session.number, session.spine_seq + 1, last))
        left -= last - session.spine_seq
    return tuple(sources)


def _by_place(source: DigestSource) -> tuple[str, str, int]:
    # The newest session of an address first, as `append` has it.
    return source.address.agent, source.address.channel, -source.session_number


def _take_in(tx: Tx, sources: tuple[DigestSource, ...]) -> None:
    """Mark what a spine has seen."""
    for source in sources:
        session = tx.find_session(source.address, source.session_number)
        if session is not None and session.deleted_at is None:
            tx.put_sessions([replace(session, spine_seq=max(session.spine_seq, source.last_seq))])
