"""The API's description: complete, true to the values, with examples and links; and the page made of it."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from perdure.handles.agents import AgentHandle
from perdure.handles.conversation import Conversation
from perdure.handles.instructions import InstructionHandle
from perdure.handles.knowledge import EntityHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.series import SeriesHandle
from perdure.handles.state import State
from perdure.handles.transcripts import TranscriptHandle
from perdure.interfaces.http.schemas import BESIDE, INSTEAD, Components
from perdure.interfaces.shapes import MORE, WHOLE

ROOT = Path(__file__).parents[2]
ROUTES = ROOT / "src" / "perdure" / "interfaces" / "http" / "routes"
METHODS = ("get", "put", "post", "patch", "delete")
# Calls that take functions or blocks of the caller's program, or are another form of one that there is.
NOT_OVER_HTTP = {
    "Memory": {"run", "turn", "append"},
    "SeriesHandle": {"fetch", "tool", "rows", "entries", "to_pandas", "to_polars", "to_arrow"},
    "State": {"load", "keys"},
    "AgentHandle": {"of"},
}
HANDLES = (
    Memory, State, SeriesHandle, Conversation, Memories, EntityHandle, TodoHandle, TaskHandle, InstructionHandle,
    LessonHandle, AgentHandle, TranscriptHandle,
)  # fmt: skip


@pytest.fixture(scope="module")
def described(client: TestClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/openapi.json").json()
    return found


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, method, item[method]) for path, item in described["paths"].items() for method in METHODS if method in item]


def test_it_is_openapi_3_1_and_ids_are_unique_camel_case(described: dict[str, Any]) -> None:
    assert described["openapi"].startswith("3.1")
    ids = [operation["operationId"] for _, _, operation in operations(described)]
    assert len(set(ids)) == len(ids)
    assert [one for one in ids if not one.isalnum() or not one[0].islower()] == []


def test_every_operation_says_what_it_does_and_what_may_go_wrong(described: dict[str, Any]) -> None:
    for path, method, operation in operations(described):
        place = f"{method} {path}"
        assert operation["summary"], place
        assert operation["description"], place
        assert operation["tags"][0] in {tag["name"] for tag in described["tags"] if tag["description"]}, place
        assert {"401", "403", "422", "429", "503"} <= operation["responses"].keys(), place
        if path.startswith("/v1"):
            good = [response for status, response in operation["responses"].items() if status.startswith("2")]
            assert all(response["content"] for response in good), place
        for parameter in operation.get("parameters", ()):
            assert parameter["description"], (place, parameter["name"])


def test_every_body_has_an_example_and_refuses_what_it_does_not_know(described: dict[str, Any]) -> None:
    schemas = described["components"]["schemas"]
    for path, method, operation in operations(described):
        content = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None or "$ref" not in content["schema"]:
            continue
        name = content["schema"]["$ref"].rpartition("/")[2]
        assert schemas[name]["additionalProperties"] is False, (method, path)
        if operation["operationId"] != "accept":
            assert schemas[name]["examples"], (method, path, name)


def test_links_lead_to_operations_that_take_what_they_give(described: dict[str, Any]) -> None:
    known = {operation["operationId"]: operation for _, _, operation in operations(described)}
    count = 0
    for _, _, operation in operations(described):
        for response in operation["responses"].values():
            for link in response.get("links", {}).values():
                taken = {one["name"] for one in known[link["operationId"]].get("parameters", ())}
                assert set(link["parameters"]) <= taken, (operation["operationId"], link)
                count += 1
    assert count > 30


def test_all_references_are_there(described: dict[str, Any]) -> None:
    missing: set[str] = set()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            reference = value.get("$ref")
            if isinstance(reference, str):
                found: Any = described
                for part in reference.removeprefix("#/").split("/"):
                    found = found.get(part) if isinstance(found, dict) else None
                if found is None:
                    missing.add(reference)
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(described)
    assert missing == set()


def test_the_schemas_tell_of_every_value_that_is_told_otherwise() -> None:
    components = Components()
    told = {kind.__name__ for kind in WHOLE} & components.schemas.keys()
    assert told <= {kind.__name__ for kind in INSTEAD}
    assert BESIDE.keys() >= {kind for kind in MORE if kind.__module__.startswith("perdure.domain") and kind in BESIDE}
    assert INSTEAD.keys() <= WHOLE.keys()
    assert BESIDE.keys() <= MORE.keys()


@pytest.mark.parametrize("handle", HANDLES, ids=lambda one: one.__name__)
def test_every_call_of_a_handle_is_made_by_a_route(handle: type) -> None:
    source = "\n".join(path.read_text() for path in ROUTES.glob("*.py"))
    calls = {name for name, _ in inspect.getmembers(handle) if not name.startswith("_") and callable(getattr(handle, name))}
    properties = {name for name, value in inspect.getmembers(handle) if isinstance(value, property)}
    wanted = calls | properties - {"scope"}
    missing = {name for name in wanted if f".{name}" not in source}
    assert missing <= NOT_OVER_HTTP.get(handle.__name__, set())


def test_the_page_is_the_one_that_is_made_of_the_description(described: dict[str, Any]) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import http_reference
    finally:
        sys.path.pop(0)
    assert http_reference.PAGE.read_text(encoding="utf-8") == http_reference.page(described), (
        "run `python tools/http_reference.py`"
    )
