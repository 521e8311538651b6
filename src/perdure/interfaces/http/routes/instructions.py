"""`/v1/users/{user}/instructions`: lasting orders of the user to an agent."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from perdure.domain.instructions import Instruction
from perdure.interfaces.http.answering import answer, page_of
from perdure.interfaces.http.asking import WORDS, Body, Paged, Reads, Writes, examples, in_path
from perdure.interfaces.http.description import described, leads_to, many
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1/users/{user:id}/instructions", tags=["instructions"], route_class=OnceRoute)
InstructionId = Annotated[str, in_path("The instruction's id.", "i-1")]


class Order(Body):
    model_config = examples({"text": "Always answer in metric units"})

    text: str = Field(min_length=1, max_length=500, pattern=WORDS, description="What the agent is to do from now on.")


@router.get("", summary="List instructions", **described("listInstructions", many(Instruction)))
def list_instructions(
    memory: Reads, page: Paged, withdrawn: Annotated[bool, Query(description="Also those that stand no longer.")] = False
) -> Response:
    """Standing orders to this agent, the newest last."""
    return page_of(memory.instructions.list(withdrawn=withdrawn, limit=page.rows), page, lambda one: one.id)


@router.post(
    "",
    summary="Add an instruction",
    **described("addInstruction", Instruction, status=201, links=(leads_to("withdrawInstruction", instruction="/id"),)),
)
def add(memory: Writes, body: Order) -> Response:
    """The same words again change nothing; one that it contradicts is withdrawn."""
    return answer(memory.instructions.add(body.text), 201)


@router.post(
    "/{instruction:id}/withdraw",
    summary="Withdraw an instruction",
    **described("withdrawInstruction", Instruction, errors=(404,)),
)
def withdraw(memory: Writes, instruction: InstructionId) -> Response:
    """It stands no longer."""
    return answer(memory.instructions.withdraw(instruction))
