"""`/u/{user}/memories`: what is known, each with where it was said, since when it holds, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.errors import InvalidInput, PerdureError
from perdure.domain.knowledge.memories import MemoryWithStatements, Statement
from perdure.domain.knowledge.proposals import FACT_TYPES, MEMORY_TYPES, MemoryType
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass
from perdure.handles.memory import Memory
from perdure.interfaces.web.filters import entity_label
from perdure.interfaces.web.page import PageLinks, acted, memory_of, own_page, page, redirect_with_notice, undoable, zone_of
from perdure.interfaces.web.words import change_line, read_moment
from perdure.services.knowledge.memories import MemoryGroup

router = APIRouter()
ROWS_MAX = 1_000
PAGE = 25
HITS_MAX = 60
"""So many of the best matches of a search are shown."""
GROUP_ROWS = 12
FACETS_MAX = 8
RECENT = 8
PROPOSALS_MAX = 50
QUOTED_MAX = 3
"""So many of the messages in which a statement was said are shown word for word."""

ACTIONS = {
    "pin": "Pinned. It is part of every context from now on.",
    "unpin": "Unpinned.",
    "archive": "Archived. Nothing is lost.",
    "restore": "Restored.",
}


class MemoryFilter(BaseModel):
    """What the list is asked for."""

    type: str = ""
    kind: str = ""
    entity: str = ""
    status: str = ""
    q: str = ""
    as_of: str = ""
    behind: str = ""
    """Where the page before ended: the change and the key of its last memory."""
    view: str = ""
    all: str = ""
    """The type of entities of which every group is listed."""

    @property
    def is_list(self) -> bool:
        asked = (self.type, self.kind, self.entity, self.status, self.q, self.as_of, self.behind)
        return self.view == "list" or any(one.strip() for one in asked)


@dataclass(frozen=True, slots=True)
class GroupRow:
    """What is known of one person or thing: how many memories, of which kinds."""

    ref: str
    label: str
    count: int
    kinds: tuple[tuple[str, int], ...]


@router.get("/u/{user:id}/memories")
def list_memories(request: Request, asked: Annotated[MemoryFilter, Query()]) -> Response:
    memory = memory_of(request)
    proposals = memory.memories.proposals(PROPOSALS_MAX)
    shared: dict[str, Any] = {"asked": asked, "types": MEMORY_TYPES, "fact_types": FACT_TYPES, "proposals": proposals}
    labels = {one.ref: one.label for one in memory.entities.list(limit=ROWS_MAX)}
    if asked.is_list:
        return page(request, "memories.html", **shared, **_listed(request, memory, asked, labels))
    groups = memory.memories.groups()
    return page(
        request,
        "memory_groups.html",
        **shared,
        total=sum(one.count for one in groups),
        you=_group_row("", request.path_params["user"], [one for one in groups if one.type == "PROFILE"]),
        about=_sections(groups, labels, asked.all),
        kinds=_counted(groups, lambda one: [one.fact_type]),
        recent=memory.memories.list(limit=RECENT),
    )


def _listed(request: Request, memory: Memory, asked: MemoryFilter, labels: Mapping[str, str]) -> dict[str, Any]:
    """One page of the list, and what it can be narrowed down by."""
    moment = read_moment(asked.as_of, request, "as of")
    plain = moment is None and asked.status in ("", "pinned")
    if asked.q.strip() and plain:
        found = [one for one in _matches(memory, asked.q) if _fits(one, asked)]
        more = False
    else:
        found, more = _newest(memory, asked, moment)
    every = not asked.q.strip() and moment is None
    shown = memory.memories.groups(archived=asked.status in ("archived", "all")) if every else _facet_source(found)
    return {
        "found": found,
        "months": [(name, list(rows)) for name, rows in groupby(found, lambda one: _month(request, one))],
        "total": sum(one.count for one in shown if _in_group(one, asked)) if every else None,
        "more": f"{found[-1].memory.updated_at.isoformat()}|{found[-1].memory.record_key}" if more and found else None,
        "labels": labels,
        "people": _counted([one for one in shown if _in_group(one, asked, but="entity")], lambda one: one.entities)[
            :FACETS_MAX
        ],
        "kinds": _counted([one for one in shown if _in_group(one, asked, but="kind")], lambda one: [one.fact_type]),
        "abouts": _counted([one for one in shown if _in_group(one, asked, but="type")], lambda one: [one.type]),
    }


def _newest(memory: Memory, asked: MemoryFilter, moment: datetime | None) -> tuple[list[MemoryWithStatements], bool]:
    """The next memories that fit, the newest change first, and whether there are more."""
    which: dict[str, Any] = {"archived": asked.status in ("archived", "all"), "as_of": moment}
    which |= {"fact_type": asked.kind if asked.kind in FACT_TYPES else None, "entity": asked.entity.strip() or None}
    which["pinned"] = True if asked.status == "pinned" else None
    behind = _place(asked.behind)
    whole = asked.status == "archived" or bool(asked.q.strip())
    rows = memory.memories.list(_type(asked.type), behind=behind, limit=ROWS_MAX if whole else PAGE + 1, **which)
    found = [one for one in rows if _fits(one, asked) and _has_words(one, asked.q)]
    return found[:PAGE], len(found) > PAGE


def _place(text: str) -> tuple[datetime, str] | None:
    at, _, key = text.partition("|")
    if not key:
        return None
    try:
        return datetime.fromisoformat(at), key
    except ValueError:
        raise InvalidInput(f"`behind` = {brief(text)} is no place in the list; open the list again") from None


def _matches(memory: Memory, words: str) -> list[MemoryWithStatements]:
    """Memories that have the words, the best match first."""
    hits = memory.recall(words, kinds=["memory"], limit=HITS_MAX).hits
    keys = dict.fromkeys(hit.memory for hit in hits if hit.memory is not None and "words" in hit.trace.arms)
    return [memory.memories.get(key) for key in keys]


def _fits(one: MemoryWithStatements, asked: MemoryFilter) -> bool:
    held = one.memory
    if (asked.status == "pinned" and not held.pinned) or (asked.status == "archived" and held.status != "ARCHIVED"):
        return False
    about = not asked.entity.strip() or asked.entity.strip() in held.entities or not asked.q.strip()
    return about and asked.type in ("", held.type) and asked.kind in ("", held.fact_type)


def _has_words(one: MemoryWithStatements, words: str) -> bool:
    text = f"{one.memory.label or ''} {one.content} {' '.join(one.memory.entities)}".casefold()
    return all(word in text for word in words.casefold().split())


def _facet_source(found: Sequence[MemoryWithStatements]) -> list[MemoryGroup]:
    rows = (one.memory for one in found)
    return [
        MemoryGroup(
            type=one.type, fact_type=one.fact_type, entities=one.entities, status=one.status, pinned=one.pinned, count=1
        )
        for one in rows
    ]


def _in_group(one: MemoryGroup, asked: MemoryFilter, but: str = "") -> bool:
    """Whether the filter takes a group; `but`: leaving out one of its questions."""
    return (
        (asked.status != "pinned" or one.pinned)
        and (asked.status != "archived" or one.status == "ARCHIVED")
        and (but == "type" or asked.type in ("", one.type))
        and (but == "kind" or asked.kind in ("", one.fact_type))
        and (but == "entity" or not asked.entity.strip() or asked.entity.strip() in one.entities)
    )


def _counted(groups: Sequence[MemoryGroup], of: Callable[[MemoryGroup], Iterable[str]]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    for one in groups:
        counts.update(dict.fromkeys(of(one), one.count))
    return counts.most_common()


def _group_row(ref: str, label: str, groups: Sequence[MemoryGroup]) -> GroupRow:
    kinds = _counted(groups, lambda one: [one.fact_type])
    return GroupRow(ref, label, sum(one.count for one in groups), tuple(kinds))


def _sections(
    groups: Sequence[MemoryGroup], labels: Mapping[str, str], whole: str
) -> list[tuple[str, str, list[GroupRow], int]]:
    """Groups by the type of what they are about: its name, the type, the largest groups, and how many more there are."""
    about: dict[str, list[MemoryGroup]] = {}
    for one in groups:
        for ref in one.entities:
            about.setdefault(ref, []).append(one)
    rows = [_group_row(ref, labels.get(ref) or entity_label(ref), held) for ref, held in about.items()]
    rows.sort(key=lambda row: (-row.count, row.label))
    found = []
    for kind, title in SECTIONS.items():
        some = [row for row in rows if row.ref.partition(":")[0] == kind]
        if some:
            shown = ROWS_MAX if whole == kind else GROUP_ROWS
            found.append((title, kind, some[:shown], max(0, len(some) - shown)))
    return found


SECTIONS = {"person": "People", "project": "Projects", "org": "Organisations", "place": "Places"}


def _month(request: Request, one: MemoryWithStatements) -> str:
    return f"{one.memory.updated_at.astimezone(zone_of(request)):%B %Y}"


@router.post("/u/{user:id}/proposals/{proposal:id}/accept")
def accept(request: Request, proposal: str) -> Response:
    """Make what an agent proposes the user's own word."""
    memory = memory_of(request, "write")
    memory.memories.accept(proposal)
    return _back_to_proposals(request, memory, proposal, "Accepted. It counts as the user's own word from now on.")


@router.post("/u/{user:id}/proposals/{proposal:id}/reject")
def reject(request: Request, proposal: str) -> Response:
    """Refuse what an agent proposes."""
    memory = memory_of(request, "write")
    memory.memories.reject(proposal)
    return _back_to_proposals(request, memory, proposal, "Rejected. It is refused if it is proposed again.")


def _back_to_proposals(request: Request, memory: Memory, proposal: str, told: str) -> Response:
    undo = undoable(memory, "statement", proposal)
    return redirect_with_notice(request, PageLinks(request)("memories"), told, undo=undo)


@router.post("/u/{user:id}/memories")
def remember(
    request: Request,
    content: Annotated[str, Form()],
    type: Annotated[str, Form()] = "PROFILE",  # noqa: A002 - the word of the requirements
    fact_type: Annotated[str, Form()] = "fact",
    entities: Annotated[str, Form()] = "",
    importance: Annotated[int, Form()] = 1,
    pinned: Annotated[bool, Form()] = False,
) -> Response:
    memory = memory_of(request, "write")
    fields: dict[str, Any] = {"importance": importance, "pinned": pinned, "fact_type": fact_type}
    if names := [name.strip() for name in entities.split(",") if name.strip()]:
        fields["entities"] = names
    outcome = memory.remember(content.strip(), type, **fields)  # type: ignore[arg-type]  # checked by the service
    if outcome.statement is None:
        raise InvalidInput(f"not saved: {outcome.reason or outcome.verdict}")
    here = PageLinks(request)
    said = {
        "added": "Saved.",
        "mentioned": "Already known. Counted as another mention.",
        "superseded": f"Saved. It replaces: {'; '.join(one.content for one in outcome.closed)[:200]}",
    }
    return redirect_with_notice(
        request,
        here("memories", outcome.statement.memory),
        said.get(outcome.verdict, f"Saved ({outcome.verdict})."),
        undo=undoable(memory, "statement", outcome.statement.id),
    )


@router.get("/u/{user:id}/memories/{key:id}")
def show(request: Request, key: str) -> Response:
    memory = memory_of(request)
    held = memory.memories.get(key)
    history = memory.memories.history(key)
    changes = memory.memories.changes(key, limit=30)
    current = {one.id for one in held.statements}
    return page(
        request,
        "memory.html",
        held=held,
        key=held.memory.record_key,
        statements=[(one, _quotes(memory, one)) for one in held.statements],
        past=[one for one in history if one.id not in current],
        changes=[(one, change_line(one)) for one in changes],
        fact_types=FACT_TYPES,
    )


@router.post("/u/{user:id}/memories/{key:id}/edit")
def edit(
    request: Request,
    key: str,
    importance: Annotated[int | None, Form()] = None,
    label: Annotated[str, Form()] = "",
) -> Response:
    memory = memory_of(request, "write")
    held = memory.memories.edit(key, importance=importance, label=label.strip() or None)
    return _back_to_memory(request, memory, held, "Changes saved.")


@router.post("/u/{user:id}/memories/{key:id}/correct")
def correct(
    request: Request,
    key: str,
    statement: Annotated[str, Form()],
    content: Annotated[str, Form()],
    value: Annotated[str, Form()] = "",
    back: Annotated[str, Form()] = "",
) -> Response:
    """Say it otherwise: the statement ends, and another one takes its place."""
    memory = memory_of(request, "write")
    outcome = memory.memories.correct(key, content.strip(), statement=statement, value=value.strip() or None)
    if outcome.statement is None:
        raise InvalidInput(f"not saved: {outcome.reason or outcome.verdict}")
    where = own_page(request, back) if back else PageLinks(request)("memories", outcome.statement.memory)
    return redirect_with_notice(request, where, "Corrected.", undo=undoable(memory, "statement", outcome.statement.id))


@router.post("/u/{user:id}/memories/{key:id}/{action}")
def act(request: Request, key: str, action: str, back: Annotated[str, Form()] = "") -> Response:
    memory = memory_of(request, "write")
    held, told = acted(request, memory.memories, key, action, ACTIONS)
    return _back_to_memory(request, memory, held, told, back=back)


def _back_to_memory(request: Request, memory: Memory, held: MemoryWithStatements, told: str, *, back: str = "") -> Response:
    here = PageLinks(request)
    key = held.memory.record_key
    where = here("memories") if back == "list" else own_page(request, back) if back else here("memories", key)
    return redirect_with_notice(request, where, told, undo=undoable(memory, "memory", key))


def _type(text: str) -> MemoryType | None:
    known: Sequence[MemoryType] = get_args(MemoryType)
    return next((one for one in known if one == text), None)


def _quotes(memory: Memory, statement: Statement) -> list[dict[str, Any]]:
    """The last places where it was said, with the words if the message can be read here."""
    found = []
    for evidence in reversed(statement.evidence[-QUOTED_MAX:]):
        try:
            text = memory.conversation.message(evidence.message).content
        except PerdureError:  # said to another agent, or forgotten since
            text = None
        found.append({"evidence": evidence, "text": text})
    return found
