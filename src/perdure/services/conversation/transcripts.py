"""Transcripts: written by a job after messages arrive, read back, archived by age and number, removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from perdure.domain.conversation.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.errors import InvalidInput, Unavailable
from perdure.domain.jobs import Job, NewJob
from perdure.domain.scope import Address, Owner, SessionId
from perdure.domain.text.rules import brief
from perdure.domain.times.instants import check_instant
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import TRANSCRIPT, session_job
from perdure.engine.conversation.transcript import grown, read_head, read_messages, survey, topic
from perdure.ports.files import Extension, TranscriptFile, TranscriptFiles, TranscriptPlace
from perdure.ports.store import Store, View
from perdure.ports.tables.access import OwnerVersion
from perdure.services.jobs.worker import Handler

MESSAGES_MIN = 3
"""A session has a transcript once it has more messages than this."""
MESSAGES_PER_PAGE = 500
TRIES_MAX = 10
# So that a folder does not grow for ever. What is deleted here is still in the log.
KEPT_FOR = timedelta(days=30)
FILES_MAX = 200
ARCHIVED_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Transcript:
    """One transcript, as a listing shows it."""

    address: Address
    session: SessionId
    session_number: int
    opened_at: datetime
    last_at: datetime
    size: int
    archived: bool
    path: str


@dataclass(frozen=True, slots=True)
class Transcripts:
    files: TranscriptFiles

    def append(
        self,
        owner: Owner,
        session: Session,
        messages: Sequence[Message],
        *,
        after: int = 0,
        still: Callable[[], bool] = lambda: True,
    ) -> int:
        """Add those of `messages` that the transcript does not hold yet; how many that were.

        They are the messages of the session after seq `after`, in order. Nothing to say makes no file. Nothing is written if
        they are not `still` what the session has: that is asked while nobody else can write or remove the file.
        """
        if any((one.address, one.session_number) != (session.address, session.number) for one in messages):
            raise InvalidInput(f"a message is not of session {session.id!r:.80}; write each session's messages to its own file")
        added = 0

        def decide(held: bytes) -> Extension | None:
            nonlocal added
            growth = grown(held, session, messages, after=after) if still() else None
            if growth is None:
                return None
            added = growth.added
            last_at = max(session.last_at, *(message.at for message in messages))
            return Extension(growth.keep, growth.more, last_at, session.opened_at, topic(messages))

        self.files.extend(place_of(owner, session), decide)
        return added

    def last_seq(self, owner: Owner, session: Session) -> int | None:
        """The newest message in the session's transcript; None if it has none."""
        held = self.files.find(place_of(owner, session))
        return None if held is None else survey(held).last_seq

    def read(self, place: TranscriptPlace) -> list[Message]:
        """The messages of a transcript, archived or not; none if there is no transcript."""
        held = self.files.find(place)
        return [] if held is None else read_messages(held)

    def list_(self, owner: Owner, *, limit: int) -> list[Transcript]:
        """The newest transcripts of the owner, newest first. Files that are no transcripts are left out."""
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidInput(f"`limit` = {brief(limit)} must be a whole number of at least 1")
        listed = (_transcript(file) for file in self.files.list_(owner, limit=limit))
        return [one for one in listed if one is not None]

    def archive(self, owner: Owner, *, before: datetime | None = None, keep: int | None = None) -> int:
        """Archive transcripts that ended before that instant, and all but the newest `keep`."""
        return self.files.archive(owner, before=_moment(before), keep=_checked(keep))

    def prune(self, owner: Owner, *, before: datetime | None = None, keep: int | None = None) -> int:
        """Delete archived ones: what ended before that instant, and all but the newest `keep`."""
        return self.files.prune(owner, before=_moment(before), keep=_checked(keep))

    def remove(self, place: TranscriptPlace) -> bool:
        """Delete one transcript. A job in hand writes it again only if the session still has its messages."""
        return self.files.remove(place)

    def erase(self, owner: Owner) -> int:
        """Delete all transcripts of the owner."""
        return self.files.erase(owner)


def place_of(owner: Owner, session: Session) -> TranscriptPlace:
    return TranscriptPlace(owner, session.address, session.id)


def anew_job(address: Address, session_number: int, due_at: datetime) -> NewJob:
    """A session's transcript is to be written anew: it tells what is not so any more. A job of its own, never a waiting one."""
    job = session_job(TRANSCRIPT, address, session_number, due_at, {"anew": True})
    return replace(job, key=f"{job.key}!")


def transcript_handler(store: Store, transcripts: Transcripts, *, messages_min: int = MESSAGES_MIN) -> Handler:
    """Bring a session's transcript up to date. All of it happens outside transactions, and twice is once."""

    def handle(job: Job) -> None:
        for _ in range(TRIES_MAX):
            if _write_transcript(store, transcripts, job, messages_min):
                return
        raise Unavailable(f"something was forgotten {TRIES_MAX} times while a transcript was written; it is tried again")

    return handle


def _write_transcript(store: Store, transcripts: Transcripts, job: Job, messages_min: int) -> bool:
    """False if something was forgotten meanwhile, so that what was read is not to be written any more."""
    address = Address(job.payload["agent"], job.payload["channel"])
    number: int = job.payload["session_number"]

    def look(view: View) -> tuple[OwnerVersion, Session | None]:
        return view.accesses.version(), view.find_session(address, number)

    def page(after: int) -> list[Message]:
        query = MessageQuery(address, MESSAGES_PER_PAGE, number, after=Cursor(number, after))
        return store.read(job.owner, lambda view: view.list_messages(query))

    seen, session = store.read(job.owner, look)
    if session is None:
        return True
    place = place_of(job.owner, session)
    if session.deleted_at is not None:
        transcripts.remove(place)
        return True

    def still() -> bool:
        now, held = store.read(job.owner, look)
        return now.holds_since(seen) and held is not None and held.id == session.id and held.deleted_at is None

    if job.payload.get("anew"):
        transcripts.remove(place)
    held = transcripts.last_seq(job.owner, session)
    if held is None and session.messages <= messages_min and not job.payload.get("always"):
        return True
    up_to = held or 0
    while messages := page(up_to):
        transcripts.append(job.owner, session, messages, after=up_to, still=still)
        up_to = messages[-1].seq
    if not still():
        return False
    if held is None:
        # A file more: older ones make room.
        transcripts.archive(job.owner, before=session.last_at - KEPT_FOR, keep=FILES_MAX)
        transcripts.prune(job.owner, keep=ARCHIVED_MAX)
    return True


def _transcript(file: TranscriptFile) -> Transcript | None:
    head = read_head(file.begin)
    if head is None:
        return None
    return Transcript(
        address=head.address,
        session=head.session,
        session_number=head.session_number,
        opened_at=head.opened_at,
        last_at=file.last_at,
        size=file.size,
        archived=file.archived,
        path=file.path,
    )


def _checked(keep: int | None) -> int | None:
    if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 0):
        raise InvalidInput(f"`keep` = {brief(keep)} must be a whole number from 0 on, or None for no bound")
    return keep


def _moment(before: datetime | None) -> datetime | None:
    return None if before is None else check_instant(before, "before")
