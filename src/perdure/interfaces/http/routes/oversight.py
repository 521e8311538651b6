"""`/v1/users/{user}/before`, `/after`, `/accept`, `/decisions`: the overseer of an agent, and what it has decided."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from perdure.domain.errors import InvalidInput
from perdure.domain.models import Usage
from perdure.domain.oversight import Decision, DecisionKind, Injection, Kept, SaveMode, SeriesOffer, Target
from perdure.domain.spans import Span
from perdure.domain.times import to_us
from perdure.interfaces.http.answering import answer, page_behind, page_of, text_cursor
from perdure.interfaces.http.asking import PLAIN, WORDS, Body, Id, Instant, Json, Paged, Reads, Text, Writes, examples
from perdure.interfaces.http.bodies import StrictRoute
from perdure.interfaces.http.description import described, many
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1/users/{user:id}", tags=["oversight"], route_class=StrictRoute)
writes = APIRouter(prefix="/v1/users/{user:id}", tags=["oversight"], route_class=OnceRoute)
Tool = Annotated[str, Field(min_length=1, max_length=50, pattern=WORDS, description="The tool's name.")]
Goal = Annotated[str, Field(max_length=20_000, pattern=PLAIN, description="What the agent works on.")]


class Window(Body):
    model_config = examples({"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"})

    start: Instant = Field(description="From here on.")
    end: Instant = Field(description="Up to here, which is not included.")

    def span(self) -> Span:
        """As a span."""
        if self.start >= self.end:
            raise InvalidInput(f"`window` ends at {self.end.isoformat()}, not after its start; swap them")
        return Span(to_us(self.start), to_us(self.end))


class Before(Body):
    model_config = examples({"goal": "Who gave me the most kudos in January?"})

    goal: str = Field(min_length=1, max_length=20_000, pattern=WORDS, description="What the agent will work on.")
    budget_tokens: int = Field(2_000, ge=100, le=10_000_000, description="What may be injected.")
    target: Target = Field("first_step", description="Where the text goes.")
    deadline_s: float = Field(2.0, gt=0, le=60, description="Then the goal runs with what is ready.")


class After(Body):
    model_config = examples(
        {"tool": "getAthlete", "result": {"name": "Ana", "ftp": 250}, "goal": "Plan my training", "mode": "suggest"}
    )

    tool: Tool
    result: Json = Field(description="What the tool returned.")
    goal: Goal = ""
    mode: SaveMode | None = Field(None, description="As the settings say, if left out.")
    allow: list[Id] | None = Field(None, max_length=1_000, description="Only results of these tools are kept.")
    deny: list[Id] = Field([], max_length=1_000, description="Results of these tools are not kept.")
    window: Window | None = Field(None, description="What was asked of the tool and answered completely.")
    deadline_s: float = Field(5.0, gt=0, le=60, description="How long it may take.")


class Offer(Body):
    name: Id
    id_field: Id
    time_field: Id
    entries: int = Field(ge=0)
    window: Window
    id_template: str | None = Field(None, max_length=400, pattern=PLAIN)

    def offer(self) -> SeriesOffer:
        """As it was made."""
        return SeriesOffer(self.name, self.id_field, self.time_field, self.entries, self.window.span(), self.id_template)


class Suggested(Body):
    """What `after` answered."""

    id: Id
    tool: Tool
    mode: SaveMode
    action: Literal["suggested"]
    reason: Text
    key: Id
    series: Offer | None = None
    revision: int | None = None
    preview: Text = ""
    window: Window | None = None
    model_calls: int = 0
    outcome: Text = "rules"
    took_ms: float = 0.0
    saved: bool = False

    def kept(self) -> Kept:
        """As it was decided."""
        told: dict[str, Any] = self.model_dump(exclude={"series", "window", "saved"})
        series = None if self.series is None else self.series.offer()
        return Kept(**told, series=series, window=None if self.window is None else self.window.span())


class Accept(Body):
    suggested: Suggested = Field(description="What `after` answered, as it is.")
    result: Json = Field(description="The result that the suggestion was made of.")


@writes.post("/before", summary="Before a goal", **described("before", Injection))
def before(memory: Writes, body: Before) -> Response:
    """What to give to an agent before it works on a goal: saved state, series, memories, lessons that matter; or nothing.

    The decision is recorded.
    """
    fields = body.model_dump(exclude={"goal"})
    return answer(memory.before(body.goal, **fields))


@writes.post("/after", summary="After a tool", **described("after", Kept))
def after(memory: Writes, body: After) -> Response:
    """What becomes of a tool's result: nothing, a suggestion, or it is saved. Secrets are refused."""
    fields: dict[str, Any] = body.model_dump(include={"mode", "allow", "deny", "deadline_s"}, exclude_none=True)
    if body.window is not None:
        fields["window"] = (body.window.start, body.window.end)
    return answer(memory.after(body.tool, body.result, body.goal, **fields))


@writes.post("/accept", summary="Accept a suggestion", **described("accept", Kept))
def accept(memory: Writes, body: Accept) -> Response:
    """Save what `after` suggested."""
    return answer(memory.accept(body.suggested.kept(), body.result))


@router.get("/decisions", summary="List decisions", **described("listDecisions", many(Decision)))
def decisions(
    memory: Reads, page: Paged, kind: Annotated[DecisionKind | None, Query(description="Of this kind only.")] = None
) -> Response:
    """What the overseer decided at this address, newest first: for which goal or tool, what it chose and why."""
    rows = min(page.limit + 1, page.most)
    return page_behind(memory.decisions(kind, limit=rows, before=text_cursor(page)), page, lambda one: one.id)


@router.get("/usage", summary="List what models cost", **described("listUsage", many(Usage)))
def usage(memory: Reads, page: Paged) -> Response:
    """What models were asked on behalf of this user, by purpose and outcome."""
    return page_of(memory.usage(), page, lambda one: [one.purpose, one.outcome])
