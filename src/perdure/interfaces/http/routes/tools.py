"""`/v1/users/{user}/tools`: state and series as tools for an agent, for hosts that speak no MCP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field

from perdure.interfaces.http.answering import answer
from perdure.interfaces.http.asking import Body, Json, Reads, Whole, examples, in_path
from perdure.interfaces.http.description import described
from perdure.interfaces.http.once import OnceRoute

router = APIRouter(prefix="/v1/users/{user:id}/tools", tags=["tools"], route_class=OnceRoute)
ToolName = Annotated[str, in_path("The tool.", "saveState")]


class Params(Body):
    model_config = examples({"params": {"key": "units", "value": "metric"}})

    params: dict[str, Json] = Field(default={}, description="What the model gave.")


@router.get("", summary="List tools", **described("listTools", {"items": list[dict[str, Any]]}))
def list_tools(
    memory: Reads, style: Annotated[Literal["openai", "anthropic", "mcp"], Query(description="For which API.")] = "openai"
) -> Response:
    """Definitions in the form that an API takes."""
    return answer({"items": memory.tools.schemas(style)})


@router.post("/{tool:id}", summary="Call a tool", **described("callTool", dict[str, Any]))
def call(memory: Reads, door: Whole, tool: ToolName, body: Params) -> Response:
    """Whatever is wrong comes back as an answer with `success` false, for the model to read."""
    if memory.tools.permissions().get(tool) != "read":
        door.access.allow("write", memory.scope.owner.user)
    return answer(memory.tools.call_tool(tool, body.params))
