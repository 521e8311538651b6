"""What the commands about conversations look up: a session by its id, a layer by its version."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.domain.digests import DIGEST_KINDS, Digest, DigestKind
from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.messages import Session
from perdure.domain.text import brief
from perdure.handles.conversation import Conversation
from perdure.handles.memory import Memory

Which = Annotated[str | None, typer.Argument(metavar="SESSION", help="Its id; by default the newest of the address.")]

SESSION_LAYERS: tuple[DigestKind, ...] = ("session", "rolling", "fold")
SESSIONS_SOUGHT = 10_000
VERSIONS_SOUGHT = 100


def find_session(memory: Memory, wanted: str | None) -> Session:
    """The session with this id; by default the newest."""
    for limit in (20, SESSIONS_SOUGHT):
        found = memory.sessions(limit)
        for session in found:
            if wanted is None or session.id == wanted:
                return session
        if len(found) < limit:
            break
    if wanted is None:
        raise NotFound("nothing was said at this address yet; append a message first")
    raise NotFound(f"no session {wanted!r:.80} at this address; `perdure session list` shows them")


def newest(talk: Conversation, kind: DigestKind, session: str | None) -> Digest | None:
    """The newest version of a layer that was not undone."""
    for limit in (1, VERSIONS_SOUGHT):
        found = talk.digests(kind, session=session, limit=limit)
        for digest in found:
            if not digest.undone:
                return digest
        if len(found) < limit:
            break
    return None


def find_version(memory: Memory, session: str | None, kind: DigestKind, version: int | None) -> Digest:
    """This version of a layer; by default the newest that was not undone."""
    talk = memory.conversation
    where = None if kind == "spine" else find_session(memory, session).id
    if version is None:
        digest = newest(talk, kind, where)
        if digest is None:
            raise NotFound(f"there is no {kind} digest here; `perdure session digests` lists what there is")
        return digest
    for top in talk.digests(kind, session=where, limit=1):
        for digest in talk.digests(kind, session=where, limit=max(1, top.version - version + 1)):
            if digest.version == version:
                return digest
    raise NotFound(f"there is no version {version} of the {kind} digest here; `perdure session digests` lists what there is")


def as_kind(text: str) -> DigestKind:
    for kind in DIGEST_KINDS:
        if kind == text:
            return kind
    raise InvalidInput(f"`--kind` = {brief(text)} is unknown; use one of {', '.join(DIGEST_KINDS)}")
