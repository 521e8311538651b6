"""`/v1/users/{user}/memories`: what is known of the user's world."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import Field

from perdure.domain.journal import Operation
from perdure.domain.knowledge import FactType, MemoryType
from perdure.domain.memories import Statement
from perdure.domain.things import Rejection
from perdure.handles.knowledge import ListFields, RememberFields
from perdure.interfaces.http.answering import answer, located, page_behind, page_of, read_place
from perdure.interfaces.http.asking import PLAIN, Body, Id, Instant, Paged, Reads, Words, Writes, examples, in_path
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute
from perdure.knowledge import Outcome
from perdure.services.curating import Curation
from perdure.services.extracting import Learned
from perdure.services.forgetting import Forgotten
from perdure.services.knowledge import Recalled

router = APIRouter(prefix="/v1/users/{user:id}", tags=["memories"], route_class=OnceRoute)
Key = Annotated[str, in_path("The memory's key.", "profile||lives_in|fact")]
Reference = Annotated[
    str,
    Field(min_length=3, max_length=400, pattern=r"^(person|place|org|project):[^\x00]*[A-Za-z0-9][^\x00]*$",
          description="A kind and a name.", examples=["person:John Doe"]),
]  # fmt: skip


OF_A_MEMORY = (
    "getMemory", "getMemoryHistory", "listMemoryChanges", "editMemory", "pinMemory", "unpinMemory", "archiveMemory",
    "restoreMemory", "forgetMemory",
)  # fmt: skip
"""What can be done with the memory that a statement is in."""


class NewStatement(Body):
    model_config = examples(
        {"content": "Lives in Austin", "attribute": "lives_in", "value": "Austin"},
        {"content": "John is my cofounder", "type": "PEOPLE", "entities": ["person:John Doe"], "fact_type": "relationship"},
    )

    content: str = Field(
        min_length=1, max_length=4_000, pattern=r"^[^\x00]*[^\s\x00][^\x00]*$", description="What is so, in few words."
    )
    type: MemoryType = Field("PROFILE", description="What it is about.")
    entities: list[Reference] = Field([], max_length=20, description="Whom and what it is about; the primary one first.")
    fact_type: FactType = Field("fact", description="What kind of statement it is.")
    subject: Reference | None = Field(None, description="Of whom the attribute is; the user, if left out.")
    attribute: str | None = Field(None, pattern=r"^[a-z][a-z0-9_]{0,59}$", description="What of the subject it tells.")
    value: str | None = Field(None, min_length=1, max_length=1_000, pattern=PLAIN, description="The attribute's value.")
    importance: int = Field(1, ge=0, le=3, description="From 0 to 3.")
    confidence: float = Field(1.0, ge=0, le=1, description="From 0 to 1.")
    valid_from: Instant | None = Field(None, description="Since when it is so; now, if left out.")
    ended: bool = Field(False, description="It is so no longer.")
    corrects: bool = Field(False, description="What was said before was wrong.")
    pinned: bool = Field(False, description="Part of the foundation.")
    visible_to: Id | None = Field(None, description="The one agent that may see it; all, if left out.")
    source: Id = Field("user", description="Where it comes from.")


class Change(Body):
    model_config = examples({"importance": 2})

    importance: int | None = Field(None, ge=0, le=3, description="From 0 to 3; a pinned one keeps its own.")
    label: str | None = Field(None, min_length=1, max_length=300, pattern=PLAIN, description="Its name as people write it.")


class Profile(Body):
    model_config = examples({"text": "Ana is a nurse. She lives in Porto and has two sons."})

    text: Words = Field(description="What somebody wrote about the user.")


class Extract(Body):
    model_config = examples({"dry_run": True})

    session: Id | None = Field(None, description="The one that goes on, if left out.")
    dry_run: bool = Field(False, description="Keep nothing.")


class Curate(Body):
    model_config = examples({"dry_run": True})

    dry_run: bool = Field(False, description="Change nothing.")


@router.post(
    "/memories",
    summary="Remember a statement",
    **described("remember", Outcome, status=201, also=200, headers=("Location",), links=tuple(
        leads_to(name, key="/statement/memory") for name in OF_A_MEMORY)),
)  # fmt: skip
def remember(memory: Writes, body: NewStatement) -> Response:
    """Keep a statement about the user's world. 201 if it is new; 200 if it was known, or refused with its reason.

    A new value of a single-valued attribute closes the old one, which stays in the history.
    """
    told = body.model_dump(exclude={"content", "type"})
    fields: RememberFields = told  # type: ignore[assignment]  # the model has the same fields
    done = memory.remember(body.content, body.type, **fields)
    if done.statement is None:
        return answer(done)
    is_new = done.verdict in ("added", "superseded", "past", "ended")
    return answer(done, 201 if is_new else 200, located(memory, "memories", done.statement.memory))


@router.post(
    "/memories/seed", summary="Learn from a profile", **described("seedMemories", {"items": list[Outcome]}, status=201)
)
def seed(memory: Writes, body: Profile) -> Response:
    """Learn from a text about the user that somebody wrote for this purpose."""
    return answer({"items": memory.seed(body.text)}, 201)


async def _wanted(
    entity: Annotated[
        str | None,
        Query(
            pattern=r"^(person|place|org|project):[^\x00]*[A-Za-z0-9][^\x00]*$", max_length=400, description="About it only."
        ),
    ] = None,
    pinned: Annotated[bool | None, Query(description="Pinned ones only, or others only.")] = None,
    archived: Annotated[bool, Query(description="Also what is put away.")] = False,
    as_of: Annotated[Instant | None, Query(description="As it was in the world then.")] = None,
    known_at: Annotated[Instant | None, Query(description="As far as was known then.")] = None,
) -> ListFields:
    return {"entity": entity, "pinned": pinned, "archived": archived, "as_of": as_of, "known_at": known_at}


@router.get("/memories", summary="List memories", **described("listMemories", many(Recalled)))
def list_memories(
    memory: Reads,
    page: Paged,
    wanted: Annotated[ListFields, Depends(_wanted)],
    type: Annotated[MemoryType | None, Query(description="Of this type only.")] = None,  # noqa: A002 - the parameter's name
) -> Response:
    """What is current, the newest change first."""
    wanted["limit"] = page.limit + 1
    if page.cursor is not None:
        wanted["behind"] = read_place(page.cursor)
    return page_behind(memory.memories.list(type, **wanted), page, lambda one: [one.memory.updated_at, one.memory.record_key])


@router.get("/memories/{key:id}", summary="Get a memory", **described("getMemory", Recalled, errors=(404,)))
def get(memory: Reads, key: Key) -> Response:
    """One memory with its current statements."""
    return answer(memory.memories.get(key))


@router.get("/memories/{key:id}/history", summary="Look back", **described("getMemoryHistory", many(Statement), errors=(404,)))
def history(memory: Reads, page: Paged, key: Key) -> Response:
    """Every statement of a memory, and what it took the place of or gave way to, oldest first."""
    return page_of(memory.memories.history(key), page, lambda one: one.id)


@router.get(
    "/memories/{key:id}/changes", summary="List changes", **described("listMemoryChanges", many(Operation), errors=(404,))
)
def changes(memory: Reads, page: Paged, key: Key) -> Response:
    """What was done to a memory and to its statements, newest first: the part of the journal that is about it."""
    return page_of(memory.memories.changes(key, page.rows), page, lambda one: one.seq)


@router.patch("/memories/{key:id}", summary="Edit a memory", **described("editMemory", Recalled, errors=(404,)))
def edit(memory: Writes, key: Key, body: Change) -> Response:
    """Correct what is said about the memory as a whole. What it states is corrected by remembering with `corrects`."""
    return answer(memory.memories.edit(key, importance=body.importance, label=body.label))


@router.post("/memories/{key:id}/pin", summary="Pin a memory", **described("pinMemory", Recalled, errors=(404,)))
def pin(memory: Writes, key: Key) -> Response:
    """Make it part of the foundation; its importance becomes 3, and no curator touches it."""
    return answer(memory.memories.pin(key))


@router.post("/memories/{key:id}/unpin", summary="Unpin a memory", **described("unpinMemory", Recalled, errors=(404,)))
def unpin(memory: Writes, key: Key) -> Response:
    """No longer part of the foundation; its importance stays."""
    return answer(memory.memories.unpin(key))


@router.post("/memories/{key:id}/archive", summary="Archive a memory", **described("archiveMemory", Recalled, errors=(404,)))
def archive(memory: Writes, key: Key) -> Response:
    """Hide it; nothing is lost. A pinned one has to be unpinned first."""
    return answer(memory.memories.archive(key))


@router.post("/memories/{key:id}/restore", summary="Restore a memory", **described("restoreMemory", Recalled, errors=(404,)))
def restore(memory: Writes, key: Key) -> Response:
    """Show an archived one again."""
    return answer(memory.memories.restore(key))


@router.delete("/memories/{key:id}", summary="Forget a memory", **described("forgetMemory", Forgotten, errors=(404,)))
def forget(memory: Writes, key: Key) -> Response:
    """Remove it for good, with all that was derived from it. It cannot be undone."""
    return answer(memory.forget(memory=key))


@router.get(
    "/foundation", summary="Get the foundation", **described("getFoundation", {"memories": list[Recalled], "more": int})
)
def foundation(memory: Reads) -> Response:
    """The first pinned memories, by creation, and how many more are pinned."""
    found, more = memory.memories.foundation()
    return answer({"memories": found, "more": more})


@router.get("/rejections", summary="List refused proposals", **described("listRejections", many(Rejection)))
def rejections(memory: Reads, page: Paged) -> Response:
    """Proposals that were not taken over, each with its reason, the newest first."""
    return page_of(memory.memories.rejections(page.rows), page, lambda one: one.id)


@router.post("/extract", summary="Learn from a session", **described("extract", Learned, errors=(404,)))
def extract(memory: Writes, body: Extract) -> Response:
    """Look through what is new in a session for something to learn, now; a job does so anyway."""
    return answer(memory.extract(body.session, dry_run=body.dry_run))


@router.post("/curate", summary="Curate memories", **described("curate", Curation))
def curate(memory: Writes, body: Curate) -> Response:
    """Fold scattered memories of one entity and flag what clashes, now; a job does so once a day."""
    return answer(memory.curate(dry_run=body.dry_run))
