"""`/u/{user}/search`: what is remembered that answers a question, why each hit is there, and why others are not."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel

from perdure.domain.context.recall import ENTRY_KINDS, Hit, Recall
from perdure.domain.values import dataclass
from perdure.interfaces.web.page import memory_of, page
from perdure.interfaces.web.words import TONES, page_of, read_moment

router = APIRouter()
QUESTION_CHARS_MAX = 4_000
ARMS = {
    "words": ("words", "accent"),
    "meaning": ("meaning", "violet"),
    "session": ("same session", "blue"),
    "around": ("messages around", "soft"),
    "speaker": ("speaker", "strong"),
    "telling": ("detail", "amber"),
    "time": ("time", "red"),
}
"""In words, and in colours, what each way of finding looks at."""


class SearchForm(BaseModel):
    q: Annotated[str, Query(max_length=QUESTION_CHARS_MAX)] = ""
    kind: str = ""
    as_of: str = ""
    limit: Annotated[int, Query(ge=1, le=100)] = 10


@dataclass(frozen=True, slots=True)
class ScorePart:
    """What one way of finding added to a score."""

    name: str
    tone: str
    share: float
    """Of the best hit's score, so that bars can be compared."""
    added: float
    raw: float
    start: float
    """Where its part of the bar begins, as a share, too."""


@dataclass(frozen=True, slots=True)
class Explained:
    hit: Hit
    tone: str
    link: tuple[str, ...]
    pieces: tuple[ScorePart, ...]


@router.get("/u/{user:id}/search")
def search(request: Request, asked: Annotated[SearchForm, Query()]) -> Response:
    memory = memory_of(request)
    kinds = [kind for kind in ENTRY_KINDS if kind == asked.kind]
    found: Recall | None = None
    if asked.q.strip():
        fields: dict[str, Any] = {"limit": asked.limit, "explain": True}
        if kinds:
            fields["kinds"] = kinds
        if (moment := read_moment(asked.as_of, request, "as of")) is not None:
            fields["as_of"] = moment
        found = memory.recall(asked.q, **fields)
    best = max((hit.trace.relevance for hit in found.hits), default=0.0) if found is not None else 0.0
    return page(
        request,
        "search.html",
        asked=asked,
        kinds=ENTRY_KINDS,
        found=found,
        hits=[] if found is None else [_explained(hit, best) for hit in found.hits],
        left=[] if found is None else [(_explained(one.hit, best), one.why) for one in found.left_out],
        blended=found is not None and any(hit.trace.recency or hit.trace.frequency for hit in found.hits),
        arms=ARMS,
    )


def _explained(hit: Hit, best: float) -> Explained:
    pieces = []
    start = 0.0
    for name, arm in hit.trace.arms.items():
        words, tone = ARMS.get(name, (name, "soft"))
        share = arm.share / best if best > 0 else 0.0
        pieces.append(ScorePart(name=words, tone=tone, share=share, added=arm.share, raw=arm.raw, start=start))
        start += share
    return Explained(hit, TONES.get(hit.kind, ""), page_of(hit.kind, hit.id, hit.memory) or ("conversations",), tuple(pieces))
