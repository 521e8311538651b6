"""`/v1/users/{user}/sessions`: stretches of talk, their working sets, and the digests over them."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field

from perdure.domain.agents import AgentState
from perdure.domain.digests import Digest, DigestKind
from perdure.domain.layers import PROFILES
from perdure.domain.messages import Message, Session
from perdure.domain.tally import Tally
from perdure.handles.memory import Memory
from perdure.interfaces.http.answering import answer, cursor, number_cursor, page_of
from perdure.interfaces.http.asking import NUMBER_MAX, PLAIN, Body, Page, Paged, Reads, Words, Writes, examples, in_path
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute
from perdure.services.sessions import SessionLine

router = APIRouter(prefix="/v1/users/{user:id}", tags=["sessions"], route_class=OnceRoute)
SessionId = Annotated[str, in_path("The session's id.", "s-1")]
Version = Annotated[int, Path(ge=1, le=NUMBER_MAX, description="The version of the digest.", examples=[1])]
Layer = Annotated[DigestKind, Path(description="Which layer.")]
Whole = Annotated[bool, Query(description="Also what the versions before it stand for.")]


Profile = Annotated[str, Field(json_schema_extra={"enum": list(PROFILES)})]


class Forced(Body):
    model_config = examples({"force": True})

    force: bool = Field(False, description="Fold also if it is within its bounds.")


class Replacement(Body):
    model_config = examples({"text": "We planned the trip to Lisbon; the flight is booked."})

    text: Words = Field(description="What the agent sees in place of the working set.")


class Layers(Body):
    model_config = examples({"casual": True})

    profile: Profile | None = Field(None, description="Which layers are kept.")
    casual: bool | None = Field(None, description="Small talk: no model reads it, no lessons are drawn.")
    private: bool | None = Field(None, description="What is learned here is visible to this agent alone.")
    shared: bool | None = Field(None, description="Others talk here, too: what is learned here stays here.")


@router.get("/sessions", summary="List sessions", **described("listSessions", many(Session)))
def list_sessions(memory: Reads, page: Paged) -> Response:
    """The sessions of this address, newest first."""
    return page_of(memory.sessions(page.rows), page, lambda one: one.id)


@router.get("/conversations", summary="List sessions of all addresses", **described("listConversations", many(SessionLine)))
def list_conversations(
    memory: Reads,
    page: Paged,
    source: Annotated[
        str | None, Query(min_length=1, max_length=200, pattern=PLAIN, description="Only channels such as `SOURCE:42`.")
    ] = None,
) -> Response:
    """Sessions of this user with all agents and on all channels, the last active first."""
    found = memory.conversation.list_sessions(source, limit=page.rows)
    return page_of(found, page, lambda one: [one.session.address.agent, one.session.address.channel, one.session.id])


@router.get("/sessions/{session:id}", summary="Get a session", **described("getSession", Session, errors=(404,)))
def get(memory: Reads, session: SessionId) -> Response:
    """One session of this address."""
    return answer(memory.conversation.session(session))


@router.delete(
    "/sessions/{session:id}",
    summary="Delete a session",
    **described("deleteSession", {"session": str, "deleted": bool, "messages": int}, errors=(404,), links=(
        leads_to("getSession", session="$request.path.session"),)),
)  # fmt: skip
def delete(memory: Writes, session: SessionId) -> Response:
    """Delete its messages and what was derived from them; its number and id stay taken."""
    return answer({"session": session, "deleted": True, "messages": memory.conversation.delete(session)})


@router.get("/sessions/{session:id}/tally", summary="Count a session", **described("getTally", Tally, errors=(404,)))
def tally(memory: Reads, session: SessionId) -> Response:
    """What was said by whom, with how many tokens and tools. Derived by a job, so it may lag behind."""
    return answer(memory.tally(session))


@router.post("/sessions/{session:id}/close", summary="Close a session", **described("closeSession", Session, errors=(404,)))
def close(memory: Writes, session: SessionId) -> Response:
    """End it at its last activity; its digest is written by a job."""
    return answer(memory.conversation.close(session))


@router.post("/sessions/{session:id}/resume", summary="Resume a session", **described("resumeSession", Session, errors=(404,)))
def resume(memory: Writes, session: SessionId) -> Response:
    """Go on with a session that ended not long ago; 409 if it was too long."""
    return answer(memory.conversation.resume(session))


@router.post(
    "/sessions/{session:id}/compact",
    summary="Compact a working set",
    **described(
        "compactSession",
        {"items": list[Digest]},
        errors=(404,),
        links=(
            leads_to("expandDigest", session="$request.path.session", kind="/items/0/kind", version="/items/0/version"),
            leads_to("undoFold", session="$request.path.session"),
        ),
    ),
)
def compact(memory: Writes, session: SessionId, body: Forced) -> Response:
    """Fold the oldest part of a working set that is over its bounds. Nothing leaves the log."""
    return answer({"items": memory.conversation.compact(session, force=body.force)})


@router.post(
    "/sessions/{session:id}/fold",
    summary="Fold a working set",
    **described("foldSession", {"items": list[Digest]}, errors=(404,)),
)
def fold(memory: Writes, session: SessionId) -> Response:
    """Fold all turns that are over, if there are enough messages."""
    return answer({"items": memory.conversation.fold(session)})


@router.post(
    "/sessions/{session:id}/clear",
    summary="Empty a working set",
    **described("clearSession", {"cleared": bool, "fold": Digest | None}, errors=(404,)),
)
def clear(memory: Writes, session: SessionId) -> Response:
    """Without a summary; null if it was empty. The messages stay in the log."""
    fold = memory.conversation.clear(session)
    return answer({"cleared": fold is not None, "fold": fold})


@router.post(
    "/sessions/{session:id}/replace",
    summary="Replace a working set",
    **described("replaceSession", Digest, errors=(404,)),
)
def replace(memory: Writes, session: SessionId, body: Replacement) -> Response:
    """Empty the working set, and show the agent a text in its place."""
    return answer(memory.conversation.replace(body.text, session))


@router.post("/sessions/{session:id}/undo", summary="Take back a fold", **described("undoFold", Digest, errors=(404,)))
def undo(memory: Writes, session: SessionId) -> Response:
    """What the newest fold had moved out of the working set is in it again."""
    return answer(memory.conversation.undo(session))


@router.get("/digests", summary="List digests", **described("listDigests", many(Digest), errors=(404,)))
def digests(
    memory: Reads,
    page: Paged,
    kind: Annotated[DigestKind | None, Query(description="Only this layer; `spine` is the user's.")] = None,
    session: Annotated[
        str | None, Query(min_length=1, max_length=400, pattern=PLAIN, description="Only of this session.")
    ] = None,
) -> Response:
    """Versions of the layers of this address, newest session and version first."""
    found = memory.conversation.digests(kind, session=session, limit=page.rows)
    return page_of(found, page, lambda one: [one.session_number, one.kind, one.version])


@router.get(
    "/sessions/{session:id}/digests/{kind}/{version}/messages",
    summary="Expand a digest",
    **described("expandDigest", many(Message), errors=(404,)),
)
def expand(memory: Reads, page: Paged, session: SessionId, kind: Layer, version: Version, whole: Whole = False) -> Response:
    """The messages that a digest of a session stands for, in the order of the log."""
    return _expanded(memory, page, memory.conversation.digest(kind, version, session=session), whole=whole)


@router.get(
    "/spine/{version}/messages",
    summary="Expand a spine",
    **described("expandSpine", many(Message), errors=(404,)),
)
def expand_spine(memory: Reads, page: Paged, version: Version, whole: Whole = False) -> Response:
    """The messages that a version of the user's spine stands for."""
    return _expanded(memory, page, memory.conversation.digest("spine", version), whole=whole)


def _expanded(memory: Memory, page: Page, digest: Digest, *, whole: bool) -> Response:
    start = number_cursor(page) or 0
    found = list(islice(memory.conversation.expand(digest, whole=whole), start, start + page.limit + 1))
    more = len(found) > page.limit
    return answer({"items": found[: page.limit], "next": cursor(start + page.limit) if more else None})


@router.get("/agent-state", summary="Get an address's counters", **described("getAgentState", AgentState))
def agent_state(memory: Reads) -> Response:
    """Counters and diagnostics of this agent and channel."""
    return answer(memory.conversation.agent_state())


@router.patch("/agent-state", summary="Configure an address", **described("configureAddress", AgentState))
def configure(memory: Writes, body: Layers) -> Response:
    """Choose the layers of this agent and channel; what is left out stays as it is."""
    told = body.model_dump()
    return answer(memory.conversation.configure(**told))
