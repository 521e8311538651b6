"""Which tools are offered: named sets, of which a host takes those that its model needs. Every tool costs tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief
from perdure.handles.registry.toolset import HOST
from perdure.handles.tools import Result, Tools
from perdure.interfaces.mcp import tools
from perdure.interfaces.mcp.callers import ToolCaller
from perdure.interfaces.mcp.offers import Offer, shape

TITLES = {
    "saveState": "Save a value",
    "loadState": "Load a value",
    "listStateKeys": "List saved values",
    "searchState": "Search saved values",
    "deleteState": "Delete a value",
    "mergeTimeseriesState": "Add to a series",
    "queryTimeseriesState": "Query a series",
    "cleanupTimeseriesState": "Trim a series",
}
OUTPUTS = {
    "saveState": shape(success="boolean", key="string", revision="integer"),
    "loadState": {**shape(success="boolean", key="string", found="boolean"), "required": ["success", "value", "found"]},
    "listStateKeys": shape(success="boolean", count="integer", keys="array"),
    "searchState": shape(success="boolean", matches="array", results="object", truncated="boolean"),
    "deleteState": shape(success="boolean", deleted="boolean"),
    "mergeTimeseriesState": shape(success="boolean", added="integer", duplicates="integer", total_count="integer"),
    "queryTimeseriesState": shape(success="boolean", entries="array", coverage="string", gaps="array"),
    "cleanupTimeseriesState": shape(success="boolean", removed="integer", kept="integer"),
}
DONE = shape(success="boolean")
DESTRUCTIVE = ("deleteState", "cleanupTimeseriesState")
REPEATABLE = ("deleteState", "mergeTimeseriesState", "cleanupTimeseriesState")
STATE, SERIES = tuple(TITLES)[:5], tuple(TITLES)[5:]

NAMES = ("state", "series", "knowledge", "todos", "lessons", HOST, "conversation", "documents", "overseer", "upkeep")
DEFAULT: tuple[str, ...] = ("state", "series", "knowledge", "todos", "lessons", HOST)
"""What suits a chat host that logs nothing: a host that passes on every message and result takes the other sets as well."""


def offers(seeds: Tools, names: str = "default", *, read_only: bool = False) -> tuple[Offer, ...]:
    """The tools of the sets that `names` lists, separated by commas: names of sets, `default` or `all`."""
    every = by_set(seeds)
    return tuple(offer for name in chosen(names) for offer in every[name] if offer.permission == "read" or not read_only)


def chosen(names: str) -> tuple[str, ...]:
    """The sets that a list of names means, in their own order."""
    wanted: set[str] = set()
    for name in (part.strip() for part in names.split(",")):
        if name not in (*NAMES, "default", "all"):
            raise InvalidInput(f"there is no set of tools {brief(name)}; use some of {', '.join(NAMES)}, or default, or all")
        wanted.update(NAMES if name == "all" else DEFAULT if name == "default" else (name,))
    return tuple(name for name in NAMES if name in wanted)


def by_set(seeds: Tools) -> Mapping[str, tuple[Offer, ...]]:
    """Every tool there is. `seeds` tells how the state and series tools look; they are called through the caller's own."""
    schemas = {one["name"]: one for one in seeds.schemas("mcp")}
    permissions = seeds.permissions()

    def seed(name: str) -> Offer:
        told, may = schemas[name], permissions[name]
        return Offer(
            name=name,
            title=TITLES.get(name, name),
            permission=may,
            description=told["description"],
            parameters=told["inputSchema"]["properties"],
            required=tuple(told["inputSchema"]["required"]),
            output=OUTPUTS.get(name, DONE),
            call=_through(name, may),
            destructive=name in DESTRUCTIVE,
            idempotent=may == "read" or name in REPEATABLE,
        )

    return {
        "state": tuple(seed(name) for name in STATE),
        "series": tuple(seed(name) for name in SERIES),
        "knowledge": tools.KNOWLEDGE,
        "todos": tools.TODOS,
        "lessons": tools.LESSONS,
        HOST: tuple(seed(name) for name in seeds.sets().get(HOST, ())),
        "conversation": tools.CONVERSATION,
        "documents": tools.DOCUMENTS,
        "overseer": tools.OVERSEER,
        "upkeep": tools.UPKEEP,
    }


def _through(name: str, may: Any) -> Any:
    def call(caller: ToolCaller, **params: Any) -> Result:
        return caller.memory(may).tools.call_tool(name, params)

    return call
