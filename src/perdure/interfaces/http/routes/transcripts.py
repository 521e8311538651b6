"""`/v1/users/{user}/transcripts`: the Markdown files of sessions, where the setting `files_dir` says that they are kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from perdure.domain.messages import Message
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import Body, Instant, Paged, Reads, Writes, examples, in_path
from perdure.interfaces.http.description import described, many
from perdure.interfaces.http.once import OnceRoute
from perdure.services.transcripts import Transcript

router = APIRouter(prefix="/v1/users/{user:id}/transcripts", tags=["transcripts"], route_class=OnceRoute)
SessionId = Annotated[str, in_path("The session's id.", "s-1")]


class Older(Body):
    model_config = examples({"keep": 100}, {"before": "2026-01-01T00:00:00Z"})

    before: Instant | None = Field(None, description="What ended before that.")
    keep: int | None = Field(None, ge=0, le=10**9, description="All but the newest of so many.")


@router.get("", summary="List transcripts", **described("listTranscripts", many(Transcript)))
def list_transcripts(memory: Reads, page: Paged) -> Response:
    """Those of this user at all addresses, newest first, including those put away."""
    found = memory.transcripts.list(page.rows)
    return page_of(found, page, lambda one: [one.address.agent, one.address.channel, one.session])


@router.get("/{session:id}", summary="Read a transcript", **described("readTranscript", many(Message)))
def read(memory: Reads, page: Paged, session: SessionId) -> Response:
    """The messages in the transcript of a session of this address; none if it has no transcript."""
    return page_of(memory.transcripts.read(session), page, lambda one: one.id)


@router.post("/archive", summary="Put transcripts away", **described("archiveTranscripts", {"archived": int}))
def archive(memory: Writes, body: Older) -> Response:
    """Those that ended before a moment, and all but the newest."""
    return answer({"archived": memory.transcripts.archive(before=body.before, keep=body.keep)})


@router.post("/prune", summary="Delete transcripts", **described("pruneTranscripts", {"deleted": int}))
def prune(memory: Writes, body: Older) -> Response:
    """Of those put away."""
    return answer({"deleted": memory.transcripts.prune(before=body.before, keep=body.keep)})
