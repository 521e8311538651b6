"""`/u/{user}/conversations`: sessions on a timeline, a transcript beside its layers, and what each digest was made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import groupby, islice
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from perdure.domain.conversation.digests import DIGEST_KINDS, Digest, DigestKind
from perdure.domain.conversation.messages import Message, Session
from perdure.domain.errors import NotFound
from perdure.domain.scope import Address
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.interfaces.web.coverage import RIGHT, WIDTH, Axis, Tick
from perdure.interfaces.web.filters import plural
from perdure.interfaces.web.page import PageLinks, acted, door, memory_of, page, places_of, redirect_with_notice, zone_of
from perdure.interfaces.web.words import LAYERS

router = APIRouter()
SESSIONS = 50
SESSIONS_MAX = 1_000
MESSAGES = 100
AROUND = 50
FOUND = 30
BEGINNING = 40
VERSIONS = 50
SOURCES = 200
LANE_HEIGHT = 30
LANE_TOP = 8
LANES_LEFT = 150.0
LANES_LONGEST = timedelta(days=5 * 365)
ABOUT: dict[DigestKind, str] = {
    "fold": "What the agent reads instead of older messages",
    "rolling": "Where the conversation stands, every few turns",
    "session": "What the session came to",
    "spine": "The user's whole story, over all sessions",
}
ACTIONS = {
    "close": "Session closed. A job writes its summary.",
    "resume": "Session open again. New messages are added to it.",
    "undo": "Summary {.version} is undone. The agent reads its messages again.",
}


@dataclass(frozen=True, slots=True)
class Lane:
    """The sessions of one address on the time axis."""

    address: Address
    y: int
    sessions: list[tuple[Session, float, float]]
    """Each with its place and width."""


@dataclass(frozen=True, slots=True)
class Move:
    """A boundary that was moved: what is before it was folded."""

    digest: Digest
    after_seq: int
    current: bool


class ConversationFilter(BaseModel):
    """What of the conversations is looked at: those of one place, or messages with some words."""

    only: str = ""
    q: str = ""
    start: int = 0


@router.get("/u/{user:id}/conversations")
def index(request: Request, asked: Annotated[ConversationFilter, Query()]) -> Response:
    memory = memory_of(request)
    most = min(SESSIONS_MAX, request.app.state.engine.limits.page_rows_max)
    every = [line.session for line in memory.conversation.list_sessions(limit=most)]
    chosen = [one for one in every if asked.only in ("", _name(one.address))]
    start = max(0, asked.start)
    sessions = chosen[start : start + SESSIONS]
    more = start + SESSIONS if len(chosen) > start + SESSIONS else None
    zone = zone_of(request)
    days = [(at, list(group)) for at, group in groupby(sessions, key=lambda one: one.last_at.astimezone(zone).date())]
    found = _matching_messages(request, asked) if asked.q.strip() else None
    lanes, ticks, height = _lanes(sessions, zone)
    names = list(dict.fromkeys(_name(one.address) for one in every))
    return page(
        request,
        "conversations.html",
        days=days,
        lanes=lanes,
        ticks=ticks,
        height=height,
        names=names,
        asked=asked,
        found=found,
        sessions=sessions,
        more=more,
        name_of=_name,
        titles=_titles(request, sessions),
    )


class TranscriptPosition(BaseModel):
    """Where in a transcript one is, and which digest's sources are shown."""

    before: str = ""
    after: str = ""
    at: str = ""
    digest: str = ""


@router.get("/u/{user:id}/conversations/{session:id}")
def show(request: Request, session: str, asked: Annotated[TranscriptPosition, Query()]) -> Response:
    memory = memory_of(request)
    held = memory.conversation.session(session)
    messages = _messages(memory, held, asked)
    versions = {kind: _versions(memory, kind, held) for kind in DIGEST_KINDS}
    chosen = _chosen(versions, asked.digest)
    cited = [] if chosen is None else list(islice(memory.conversation.expand(chosen), SOURCES))
    moves = _moves(held, versions["fold"])
    return page(
        request,
        "conversation.html",
        session=held,
        messages=messages,
        versions=versions,
        layers=ABOUT,
        names=LAYERS,
        chosen=chosen,
        cited=cited,
        cited_ids={one.id for one in cited},
        moves=moves,
        more=_more(messages, held),
        top=_top(versions),
        state=memory.conversation.agent_state(),
        here_seq=held.boundary_seq,
    )


@router.get("/u/{user:id}/messages/{message:id}")
def message(request: Request, message: str) -> Response:
    """Go to where a message stands, at whichever address of the user that is."""
    user = request.path_params["user"]
    for at in places_of(request):
        memory = door(request).memory(user, "read", agent=at.agent, channel=at.channel)
        try:
            found = memory.conversation.message(message)
        except NotFound:
            continue
        to = PageLinks(request)("conversations", found.session, agent=at.agent, channel=at.channel, at=found.id)
        return RedirectResponse(f"{to}#m{found.seq}", 303)
    raise NotFound(f"no message {message!r:.80} of this user; it may have been forgotten")


@router.get("/u/{user:id}/sessions/{number}")
def numbered(request: Request, number: int, digest: str = "") -> Response:
    """Go to the session with that number at the agent and channel that the address names."""
    memory = memory_of(request)
    here = PageLinks(request)
    for one in memory.conversation.sessions(min(SESSIONS_MAX, request.app.state.engine.limits.page_rows_max)):
        if one.number == number:
            return RedirectResponse(here("conversations", one.id, digest=digest), 303)
    raise NotFound(f"there is no session {number} here; choose another agent")


@router.post("/u/{user:id}/conversations/{session:id}/{action}")
def act(request: Request, session: str, action: str) -> Response:
    """Close a session, resume it, summarise its older messages, or undo the newest summary."""
    talk = memory_of(request, "write").conversation
    to = PageLinks(request)("conversations", session)
    if action == "compact":
        folds = talk.compact(session, force=True)
        told = (
            f"{plural(len(folds), 'summary', 'summaries')} made. Every message stays in the log."
            if folds
            else "Nothing to summarise yet."
        )
    else:
        made, told = acted(request, talk, session, action, ACTIONS)
        told = told.format(made)
    return redirect_with_notice(request, to, told)


# -- the list


def _name(address: Address) -> str:
    return f"{address.agent} on {address.channel}"


def _lanes(sessions: Sequence[Session], zone: tzinfo) -> tuple[list[Lane], list[Tick], int]:
    """The sessions on a time axis, a lane for each address."""
    if not sessions:
        return [], [], 0
    now = datetime.now(UTC)
    start = max(min(now, *(one.opened_at for one in sessions)), now - LANES_LONGEST) - timedelta(hours=12)
    axis = Axis(Span(to_us(start), to_us(now)), zone, LANES_LEFT)
    lanes = []
    for number, address in enumerate(dict.fromkeys(one.address for one in sessions)):
        placed = []
        for one in sessions:
            if one.address == address:
                left = axis.x(to_us(one.opened_at))
                width = max(5.0 + min(one.messages, 60) / 6, axis.x(to_us(one.last_at)) - left)
                placed.append((one, min(left, WIDTH - RIGHT - width), width))
        lanes.append(Lane(address, LANE_TOP + number * LANE_HEIGHT, placed))
    return lanes, axis.ticks(), LANE_TOP + len(lanes) * LANE_HEIGHT


def _titles(request: Request, sessions: Sequence[Session]) -> dict[tuple[Address, int], str]:
    """What each session was about: its digest's line, or how it began."""
    told: dict[tuple[Address, int], str] = {}
    user = request.path_params["user"]
    for one in sessions:
        memory = door(request).memory(user, "read", agent=one.address.agent, channel=one.address.channel)
        first = memory.messages(BEGINNING, session=one.id) if one.deleted_at is None else ()
        digests = memory.conversation.digests("session", session=one.id, limit=1)
        line = digests[0].fields.get("one_liner") if digests else None
        said = next((message.content for message in first if message.role == "user"), "")
        told[one.address, one.number] = str(line) if line else said
    return told


def _matching_messages(request: Request, asked: ConversationFilter) -> list[Message]:
    """Messages with all the words, at every place or at the one that is looked at, the newest first."""
    user = request.path_params["user"]
    found: list[Message] = []
    for at in places_of(request):
        if asked.only in ("", _name(at)):
            memory = door(request).memory(user, "read", agent=at.agent, channel=at.channel)
            found += memory.conversation.search(asked.q, limit=FOUND)
    return sorted(found, key=lambda one: one.at, reverse=True)[:FOUND]


# -- one session


def _messages(memory: Memory, held: Session, asked: TranscriptPosition) -> list[Message]:
    if held.deleted_at is not None:
        return []
    if asked.at:
        at = memory.conversation.message(asked.at)
        before = memory.messages(AROUND, session=held.id, before=asked.at)
        return [*before, at, *memory.messages(AROUND, session=held.id, after=asked.at)]
    return list(memory.messages(MESSAGES, session=held.id, before=asked.before or None, after=asked.after or None))


def _more(messages: Sequence[Message], held: Session) -> dict[str, str | None]:
    """The messages that stand at the edges of the page, if there are more beyond them."""
    if not messages:
        return {"older": None, "newer": None}
    first, last = messages[0], messages[-1]
    return {"older": first.id if first.seq > 1 else None, "newer": last.id if last.seq < held.messages else None}


def _versions(memory: Memory, kind: DigestKind, held: Session) -> list[Digest]:
    session = None if kind == "spine" else held.id
    return list(memory.conversation.digests(kind, session=session, limit=VERSIONS))


def _top(versions: dict[DigestKind, list[Digest]]) -> dict[DigestKind, Digest | None]:
    """Of each layer the version that stands."""
    return {kind: next((one for one in found if not one.undone), None) for kind, found in versions.items()}


def _chosen(versions: dict[DigestKind, list[Digest]], asked: str) -> Digest | None:
    """The digest that an address names, as in `fold.3`."""
    kind, _, version = asked.partition(".")
    found = [one for name, held in versions.items() if name == kind for one in held if str(one.version) == version]
    return found[0] if found else None


def _moves(held: Session, folds: Sequence[Digest]) -> dict[int, list[Move]]:
    """The moves of the boundary, by the message they stand behind."""
    moves: dict[int, list[Move]] = {}
    for move in _each_move(held, folds):
        moves.setdefault(move.after_seq, []).append(move)
    return moves


def _each_move(held: Session, folds: Sequence[Digest]) -> Iterator[Move]:
    for one in sorted(folds, key=lambda one: one.version):
        if one.last_seq:
            yield Move(one, one.last_seq, one.last_seq == held.boundary_seq and not one.undone)
