"""State and series as tools for an agent, for hosts that speak no MCP."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Response
from pydantic import ConfigDict, Field

from perdure.domain.scope import ID_BYTES_MAX
from perdure.handles.arguments import PLAIN
from perdure.interfaces.http.answers import answer
from perdure.interfaces.http.derived import USER
from perdure.interfaces.http.description import described
from perdure.interfaces.http.fields import Body
from perdure.interfaces.http.idempotency import OnceRoute
from perdure.interfaces.http.requests import Reads, Whole

router = APIRouter(prefix=f"{USER}/tools", tags=["tools"], route_class=OnceRoute)
ToolName = Annotated[
    str, Path(min_length=1, max_length=ID_BYTES_MAX, pattern=PLAIN, description="The tool.", examples=["saveState"])
]


class Params(Body):
    model_config = ConfigDict(json_schema_extra={"examples": [{"params": {"key": "units", "value": "metric"}}]})

    params: dict[str, Any] = Field(default={}, description="What the model gave.")


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
