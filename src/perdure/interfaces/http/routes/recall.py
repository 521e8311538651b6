"""`/v1/users/{user}/recall`, `/context`, `/prompt`: finding again, and what an agent should be given."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import Field

from perdure.domain.context import Context
from perdure.domain.errors import InvalidInput
from perdure.domain.prompts import Prompt
from perdure.domain.recall import EntryKind, Recall
from perdure.handles.recall import RecallFields
from perdure.interfaces.http.answering import answer
from perdure.interfaces.http.asking import WORDS, Body, Id, Instant, Reads, Writes, examples
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described
from perdure.services.prompting import BUDGET_TOKENS

# They take bodies, and so they are POST. `recall` changes nothing; the others note what they told, which is not learned again.
router = APIRouter(prefix="/v1/users/{user:id}", tags=["recall"], route_class=StrictRoute)
TOKENS_MAX = 10_000_000
Question = Annotated[str, Field(min_length=1, max_length=10_000, pattern=WORDS, description="In plain words.")]


class Asked(Body):
    model_config = examples({"query": "Where does Ana live?"}, {"query": "kudos last week", "kinds": ["series"], "limit": 5})

    query: Question
    kinds: list[EntryKind] | None = Field(None, min_length=1, max_length=8, description="Only these kinds.")
    since: Instant | None = Field(None, description="Only what was said, or speaks of a time, from then on; with `until`.")
    until: Instant | None = Field(None, description="And before then.")
    entities: list[Id] = Field([], max_length=100, description="Only what names one of these: `person:John Doe`.")
    sessions: list[Id] = Field([], max_length=100, description="Only what was said in these.")
    as_of: Instant | None = Field(None, description="What was so then.")
    known_at: Instant | None = Field(None, description="As far as was known then.")
    limit: int = Field(10, ge=1, le=100, description="Hits at most.")
    budget_tokens: int | None = Field(None, ge=1, le=TOKENS_MAX, description="What they may cost together.")
    neighbours: int = Field(0, ge=0, le=10, description="Messages on either side of a found one.")
    explain: bool = Field(False, description="Tell in words why each hit stands where it stands.")

    def fields(self) -> RecallFields:
        """As the handle takes them."""
        if (self.since is None) != (self.until is None):
            raise InvalidInput("`since` and `until` make a range together; give both or neither")
        told: dict[str, Any] = self.model_dump(exclude={"query", "since", "until"}, exclude_none=True)
        if self.since is not None:
            told["time_range"] = (self.since, self.until)
        found: RecallFields = told  # type: ignore[assignment]  # the model has the same fields
        return found


class Goal(Body):
    model_config = examples({"goal": "Plan a weekend trip"}, {})

    goal: Question | None = None
    budget_tokens: int | None = Field(None, ge=100, le=TOKENS_MAX, description="Never more than so much.")


class Request(Body):
    model_config = examples({"request": "Book a table for two"}, {})

    request: str = Field("", max_length=10_000, pattern=r"^[^\x00]*$", description="What the user wants.")
    budget_tokens: int = Field(BUDGET_TOKENS, ge=100, le=TOKENS_MAX, description="Never more than so much.")


@router.post("/recall", summary="Recall", **described("recall", Recall, errors=(404,)))
def recall(memory: Reads, body: Asked) -> Response:
    """What is remembered that answers a question, best first, each hit with its source and the trace of its score."""
    return answer(memory.recall(body.query, **body.fields()))


@router.post("/context", summary="Build a context", **described("buildContext", Context, errors=(409,)))
def context(memory: Writes, body: Goal) -> Response:
    """What the agent should be given now: what is remembered of this user, then the conversation as it stands.

    Ends a session that was silent for too long, and folds what is due.
    """
    return answer(memory.context(body.goal, budget_tokens=body.budget_tokens))


@router.post("/prompt", summary="Build a prompt", **described("buildPrompt", Prompt))
def prompt(memory: Writes, body: Request) -> Response:
    """What the agent should be told of itself: soul, mood, memory (the lessons that hold here) and skill, then the time."""
    return answer(memory.prompt(body.request, budget_tokens=body.budget_tokens))
