"""Moving the boundary of a working set: what is before it is told by a fold, and stays in the log.

Every move is decided on a reading, its text is written outside any transaction, and it is applied only if the boundary
still stands where it stood: a message that arrives meanwhile stays in the working set.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from perdure.domain.context.context import Block
from perdure.domain.conversation.digests import Digest, DigestSource, Layers, Summary, trust_of
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.errors import Conflict, LimitExceeded, NotFound
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.knowledge.memories import least
from perdure.domain.scope import Address, Owner
from perdure.domain.text.rules import Json
from perdure.domain.text.secrets import without_secrets
from perdure.domain.values import dataclass, replace
from perdure.engine.context.assemble import MESSAGE_OVERHEAD_TOKENS, PINNED_HEADING, fold_text
from perdure.engine.conversation.turns import bounded, turn_starts, whole_turns
from perdure.engine.summary.pins import carried, fit_pins
from perdure.engine.text.sentences import count_words, cut_text
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.access import OwnerVersion
from perdure.services.index.writes import enter_digests, leave_digests
from perdure.services.lessons.lessons import Lessons
from perdure.services.models.writer import DigestRequest, DigestWriter, WrittenDigest

ACTOR = "fold/1"
WORKING_READ_MAX = 2_000
"""More of a working set than this is folded in several steps, of which somebody who waits for an answer waits for one."""
TRIES_MAX = 3
CHARS_PER_TOKEN = 4
PIN_SHARE = 0.5
"""So much of a fold's tokens may be pinned lines."""
PIN_WORDS_SHARE = 0.67
"""So much of its words, where these are counted; rules of the user are kept beyond it."""
FOLD_SHARE_MAX = 0.9
"""A fold is no longer than this share of what it replaces."""
FRAME_COUNTS_FROM = 50
"""Nor, with the frame around it, longer than the messages were in a prompt; where they had fewer tokens, that is no matter."""
FRAME = Block(
    "summary", "Earlier in this session", "fold version 1 by extractive/1: session 100 messages 100 to 108; trust: agent", "", 0
)
TEXT_SHARE_MIN = 0.1
"""If rules and ids leave less than this share for its text, it is not worth making yet."""
TEXT_SHARE = 0.7
"""Of what they leave, so much is for the text, and the rest for other words of the user."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """One session of one owner."""

    owner: Owner
    address: Address
    number: int


@dataclass(frozen=True, slots=True)
class _WorkingSet:
    session: Session
    fold: Digest | None
    working: list[Message]
    whole: bool
    """Whether `working` is all of the working set."""
    version: OwnerVersion


@dataclass(frozen=True, slots=True)
class _FoldStyle:
    """How a fold is written: by rules if the talk is casual, in so many words, before somebody stops waiting."""

    casual: bool
    words_max: int | None
    until: float | None = None
    shortens: bool = False
    """It is shorter than what it replaces."""
    asked: bool = False
    """It is made also if it cannot be shorter."""


@dataclass(frozen=True, slots=True)
class _Room:
    """Tokens that the text of a fold may cost, and its pinned lines."""

    text: int
    pins: int


Decide = Callable[[_WorkingSet], int]
"""How many of the oldest messages of the working set to fold."""


@dataclass(frozen=True, slots=True)
class Folds:
    store: Store
    clock: Clock
    writer: DigestWriter
    layers: Layers
    lessons: Lessons
    clear_small: bool = True

    def bound(self, where: SessionKey, *, casual: bool, force: bool = False, until: float | None = None) -> list[Digest]:
        """Fold what is over the bounds of a working set (`bounded_history`); `until`: as `DigestRequest` has it, and then it is
        one step of a large one."""

        def decide(reading: _WorkingSet) -> int:
            return bounded(reading.working, self.layers, force=force)

        return self._repeat(where, "bounded_history", decide, _FoldStyle(casual, None, until))

    def fold_request(self, where: SessionKey, *, casual: bool, until: float | None = None, asked: bool = False) -> list[Digest]:
        """Before a request is answered: fold all turns that are over, if there are messages enough (`request_fold`).

        Unless somebody asked for it, a fold that could not be shorter than its messages is not made yet.
        """

        def decide(reading: _WorkingSet) -> int:
            if reading.session.working < self.layers.fold_messages_min:
                return 0
            return whole_turns(reading.working)

        style = _FoldStyle(casual, self.layers.fold_words_max, until, shortens=True, asked=asked)
        return self._repeat(where, "request_fold", decide, style)

    def flush(self, where: SessionKey, *, casual: bool, now: datetime) -> list[Digest]:
        """Replace the working set of an active session by its fold, clear that of an inactive one (`periodic_flush`)."""
        session = self._session(where)
        silent_s = (now - session.last_at).total_seconds()
        inactive = session.ended_at is not None or silent_s > self.layers.flush_inactive_s
        small = session.working < self.layers.flush_messages_min
        if small and not (inactive and self.clear_small):
            return []

        def decide(reading: _WorkingSet) -> int:
            # Someone spoke meanwhile: then it is not inactive, and what was said last stays.
            if inactive and reading.session.last_at == session.last_at:
                return len(reading.working)
            return whole_turns(reading.working)

        return self._repeat(where, "periodic_flush", decide, _FoldStyle(casual or small, self.layers.fold_words_max))

    def clear(self, where: SessionKey, *, text: str | None = None) -> Digest | None:
        """Empty the working set at once; `text` (given by the caller) is what the agent sees in its place."""
        most = self.layers.summary_tokens_max
        text = None if text is None else without_secrets(text)
        if text is not None and (tokens := self.writer.count(text)) > most:
            raise LimitExceeded(f"the text costs {tokens} tokens, more than `summary_tokens_max` = {most}; shorten it")

        def work(tx: Tx) -> Digest | None:
            session = self._session_in(tx, where)
            if session.working == 0 and text is None:
                return None
            return self.tell(tx, session, session.messages, text or "", policy="clear" if text is None else "replace")

        return self.store.write(where.owner, work)

    def tell(self, tx: Tx, session: Session, last_seq: int, text: str, *, policy: str) -> Digest:
        """As part of a transaction that holds `session`: what is up to `last_seq` is told by `text` from now on."""
        base = tx.conversation.latest_digest(session.address, session.number, "fold")
        told = Summary(without_secrets(text))
        return self._put(tx, session, base, last_seq, policy, WrittenDigest(told, (), "caller" if text else "none"))

    def undo(self, where: SessionKey) -> Digest:
        """Put the boundary back to where the newest fold found it."""

        def work(tx: Tx) -> Digest:
            session = self._session_in(tx, where)
            newest = tx.conversation.latest_digest(where.address, where.number, "fold")
            if newest is None:
                raise NotFound("the session has no fold to undo; list them with `digests()`")
            now = self.clock.now()
            undone = replace(newest, undone=True)
            tx.conversation.put_digest(undone, by=Attribution("user", now, "undo"))
            leave_digests(tx, [undone], now=now)
            self.lessons.unfold(tx, undone, now)
            tx.put_sessions([replace(session, boundary_seq=newest.sources[0].first_seq - 1)])
            return undone

        return self.store.write(where.owner, work)

    # -- how

    def _repeat(self, where: SessionKey, policy: str, decide: Decide, manner: _FoldStyle) -> list[Digest]:
        """Fold until `decide` has enough: once, but for a working set too large to read at once. Of that, one step while
        somebody waits."""
        made: list[Digest] = []
        conflicts = 0
        while conflicts < TRIES_MAX:
            reading = self._read(where)
            # Of a part of the working set, the last turn may go on in the rest.
            cut = decide(reading) if reading.whole else max(turn_starts(reading.working), default=0)
            if cut == 0:
                return made
            last_seq = reading.working[cut - 1].seq
            room = self._room(reading, cut, manner) if manner.shortens and reading.whole else self._most
            if room is None and not manner.asked:
                return made
            written = self._write(where, reading, last_seq, manner, room or self._most)
            digest = self._apply(where, reading, last_seq, policy, written)
            if digest is None:
                conflicts += 1  # the boundary moved, or the turn went on: look again
                continue
            made.append(digest)
            if reading.whole or manner.until is not None:
                return made
        raise Conflict(f"the conversation changed {TRIES_MAX} times while it was folded; try again")

    def _read(self, where: SessionKey) -> _WorkingSet:
        def work(view: View) -> _WorkingSet:
            session = self._session_in(view, where)
            after = Cursor(where.number, session.boundary_seq)
            working = view.list_messages(MessageQuery(where.address, self._read_max, where.number, after=after))
            fold = view.conversation.latest_digest(where.address, where.number, "fold")
            whole = len(working) == session.working
            return _WorkingSet(session, fold, working, whole=whole, version=view.accesses.version())

        return self.store.read(where.owner, work)

    @property
    def _read_max(self) -> int:
        return max(WORKING_READ_MAX, 2 * self.layers.history_messages_max)

    def takes_steps(self, session: Session) -> bool:
        """Whether its working set is too large to be folded at once."""
        return session.working > self._read_max

    def _room(self, reading: _WorkingSet, cut: int, manner: _FoldStyle) -> _Room | None:
        """What a fold may cost, so that it is shorter than what it replaces; None: that cannot be yet.

        Known before a model is asked: what is kept word for word is found by rules.
        """
        gone = reading.working[:cut]
        held = 0 if reading.fold is None else self.writer.count(fold_text(reading.fold))
        replaced = held + sum(self.writer.count(f"{message.role}: {message.content}") for message in gone)
        pins = carried(() if reading.fold is None else reading.fold.pinned, gone)
        bound = [pin for pin in pins if pin.kind != "statement"]
        lines = fit_pins(bound, self._pin_tokens, self.writer.count, words_max=_pin_words(manner.words_max))
        # A third more than they cost alone: beside other words of the user, the heads of their lines cost, too.
        kept = self.writer.count("\n".join((PINNED_HEADING, *lines))) * 4 // 3 if lines else 0
        spare = int(replaced * FOLD_SHARE_MAX) - kept
        said = sum(self.writer.count(message.content) for message in gone)
        if reading.fold is None and said >= FRAME_COUNTS_FROM:
            frame = self.writer.count(FRAME.render() + PINNED_HEADING)
            spare = min(spare, said + MESSAGE_OVERHEAD_TOKENS * len(gone) - frame - kept)
        if spare < replaced * TEXT_SHARE_MIN:
            return None
        text = int(spare * TEXT_SHARE)
        return _Room(text, min(self._pin_tokens, kept + spare - text))

    @property
    def _most(self) -> _Room:
        whole = self.layers.summary_tokens_max
        return _Room(whole - int(whole * PIN_SHARE), self._pin_tokens)

    @property
    def _pin_tokens(self) -> int:
        heading = self.writer.count(PINNED_HEADING)
        return max(int(self.layers.summary_tokens_max * PIN_SHARE) - heading, 1)

    def _write(self, where: SessionKey, reading: _WorkingSet, last_seq: int, manner: _FoldStyle, room: _Room) -> WrittenDigest:
        tokens_max = min(self._most.text, room.text)
        wanted = DigestRequest(
            kind="fold",
            sources=(DigestSource(where.address, where.number, reading.session.boundary_seq + 1, last_seq),),
            previous="" if reading.fold is None else reading.fold.text,
            pinned=() if reading.fold is None else reading.fold.pinned,
            chars_max=tokens_max * CHARS_PER_TOKEN,
            words_max=manner.words_max,
            pin_tokens_max=room.pins,
            pin_words_max=_pin_words(manner.words_max),
            offline=manner.casual,
            lessons=not manner.casual,
            tokens_max=tokens_max,
            question=next((one.content for one in reversed(reading.working) if one.role == "user"), ""),
            until=manner.until,
        )
        written = self.writer.write(where.owner, wanted)
        return written if manner.words_max is None else _in_words(written, manner.words_max)

    def _apply(
        self, where: SessionKey, reading: _WorkingSet, last_seq: int, policy: str, written: WrittenDigest
    ) -> Digest | None:
        """The fold, stored; None if the session is not as it was when the cut was decided."""
        base = reading.fold

        def work(tx: Tx) -> Digest | None:
            session = self._session_in(tx, where)
            newest = tx.conversation.latest_digest(where.address, where.number, "fold")
            if session.boundary_seq != reading.session.boundary_seq or newest != base:
                return None
            if not tx.accesses.version().holds_since(reading.version):
                return None  # what was read may be forgotten by now
            if session.messages > last_seq and not self._starts_turn(tx, where, last_seq + 1):
                return None
            made = self._put(tx, session, base, last_seq, policy, written)
            self.lessons.learn(tx, where.owner, made, made.made_at)
            return made

        made = self.store.write(where.owner, work)
        if made is not None:
            self.lessons.carry(where.owner, made)
        return made

    def _starts_turn(self, view: View, where: SessionKey, seq: int) -> bool:
        after = Cursor(where.number, seq - 1)
        [message] = view.list_messages(MessageQuery(where.address, 1, where.number, after=after))
        return message.role == "user"

    def _put(self, tx: Tx, session: Session, base: Digest | None, last_seq: int, policy: str, written: WrittenDigest) -> Digest:
        now = self.clock.now()
        address, number = session.address, session.number
        held = tx.conversation.list_digests(address, number, "fold", limit=1)
        digest = Digest(
            address=address,
            session_number=number,
            kind="fold",
            version=held[0].version + 1 if held else 1,
            policy=policy,
            based_on=0 if base is None else base.version,
            sources=(DigestSource(address, number, session.boundary_seq + 1, last_seq),),
            text=written.summary.text,
            pinned=written.pinned,
            lessons=written.summary.lessons,
            fields={**self._covered(tx, session, last_seq), "trust": least((written.trust, trust_of(base)), "agent")},
            summariser=written.summariser,
            fallback=False,
            made_at=now,
        )
        why = f"{policy}: messages {session.boundary_seq + 1} to {last_seq}"
        tx.conversation.put_digest(digest, by=Attribution(ACTOR, now, why))
        enter_digests(tx, address, number, "fold", now=now)
        tx.put_sessions([replace(session, boundary_seq=last_seq)])
        return digest

    def _covered(self, view: View, session: Session, last_seq: int) -> dict[str, Json]:
        """How many tokens are out of the working set, so that its size is known without reading it."""
        after = Cursor(session.number, last_seq)
        left = view.list_messages(MessageQuery(session.address, WORKING_READ_MAX, session.number, after=after))
        if len(left) < session.messages - last_seq:
            return {}
        return {"tokens": session.tokens - sum(message.tokens for message in left)}

    def _session(self, where: SessionKey) -> Session:
        return self.store.read(where.owner, lambda view: self._session_in(view, where))

    def _session_in(self, view: View, where: SessionKey) -> Session:
        session = view.find_session(where.address, where.number)
        if session is None or session.deleted_at is not None:
            raise NotFound(f"there is no session number {where.number} at this address; it may have been deleted")
        return session


def _pin_words(words_max: int | None) -> int | None:
    return None if words_max is None else int(words_max * PIN_WORDS_SHARE)


def _in_words(written: WrittenDigest, words_max: int) -> WrittenDigest:
    """The text cut down until it has no more words with what is kept word for word beside it; a share of them at least."""
    text = written.summary.text
    kept = sum(count_words(line) for line in written.pinned if line not in text)
    left = max(words_max - kept, int(words_max * TEXT_SHARE_MIN))
    return replace(written, summary=replace(written.summary, text=cut_text(text, max(len(text), 1), left)))


def working_tokens(session: Session, fold: Digest | None) -> int:
    """What the working set of a session costs, at most."""
    covered = 0 if fold is None or session.boundary_seq == 0 else fold.fields.get("tokens", 0)
    return session.tokens - (covered if isinstance(covered, int) else 0)
