"""The API's description: complete, true to the values, with examples and links; and the page made of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

import perdure
from perdure.handles import operation as declared
from perdure.handles.admin import AdminHandle, AgentHandle, ApiKeyHandle, JournalHandle
from perdure.handles.conversation import Conversation, DocumentHandle, TranscriptHandle
from perdure.handles.knowledge import EntityHandle, InstructionHandle, Memories, TaskHandle, TodoHandle
from perdure.handles.lessons import LessonHandle
from perdure.handles.memory import Memory
from perdure.handles.registry.shapes import MORE, WHOLE
from perdure.handles.series import SeriesHandle, UserSeries
from perdure.handles.state import State
from perdure.interfaces.access import LOCAL
from perdure.interfaces.http import answers, description
from perdure.interfaces.http.derived import ROUTES, Place, Route, table
from perdure.interfaces.http.description import INSTEAD

ROOT = Path(__file__).parents[2]
METHODS = ("get", "put", "post", "patch", "delete")
# Calls that no route makes: they take functions or files of the caller's program, look after a store, or are another form of
# one that there is. The changelog says for each what to use instead.
NOT_OVER_HTTP = {
    "Memory": {"run", "export", "import_"},
    "UserSeries": set[str](),
    "SeriesHandle": {"fetch", "rows", "entries", "to_pandas", "to_polars", "to_arrow", "export"}
    | {"cleanup", "windows", "history", "count", "first", "last", "per", "group", "distinct"},
    "State": {"load", "keys", "clear"},
    "Conversation": {"search", "fold", "clear", "replace", "digest", "expand", "agent_state", "tally"},
    "Memories": {"changes", "groups", "foundation", "rejections", "seed", "extract", "curate", "audit"},
    "JournalHandle": {"diff"},
    "AdminHandle": {"overview", "reindex", "usage"},
    "EntityHandle": {"links"},
    "LessonHandle": {"text", "edit"},
    "AgentHandle": {"channels", "map_channel", "unmap_channel"},
    "TranscriptHandle": {"list", "read", "archive", "prune"},
}
HANDLES = (
    *(Memory, State, SeriesHandle, Conversation, Memories, EntityHandle, TodoHandle, TaskHandle, InstructionHandle),
    *(LessonHandle, AgentHandle, ApiKeyHandle, TranscriptHandle, DocumentHandle, JournalHandle, AdminHandle, UserSeries),
)


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


def test_the_schemas_tell_of_every_value_that_is_told_otherwise(described: dict[str, Any]) -> None:
    answered = described["components"]["schemas"].keys()
    assert {kind.__name__ for kind in WHOLE} & answered == {kind.__name__ for kind in INSTEAD}
    for kind, beside in MORE.items():
        assert all("return" in get_type_hints(make) for make in beside.values()), kind
        if kind.__name__ in answered:
            assert beside.keys() <= described["components"]["schemas"][kind.__name__]["properties"].keys()


@pytest.mark.parametrize("handle", HANDLES, ids=lambda one: one.__name__)
def test_every_call_of_a_handle_is_made_by_a_route_or_listed(handle: type) -> None:
    called = {name for route in ROUTES.values() if route.place.kind is handle for name in route.calls}
    assert declared.operations(handle).keys() - called == NOT_OVER_HTTP.get(handle.__name__, set())


class Weather(declared.Handle):
    """A handle that there is not."""

    @declared.operation("read")
    def forecast(
        self, place: Annotated[str, declared.Arg("Where.", min_length=2, example="Porto")], *, days: int = 1
    ) -> dict[str, int]:
        """How it will be."""
        return {"days": days, "letters": len(place)}


class WeatherByHour(Weather):
    """The same with one parameter more, which is one edit."""

    @declared.operation("read")
    def forecast(
        self,
        place: Annotated[str, declared.Arg("Where.", min_length=2, example="Porto")],
        *,
        days: int = 1,
        hours: Annotated[int | None, declared.Arg("How many hours.", ge=1, le=24)] = None,
    ) -> dict[str, int]:
        """How it will be."""
        return {"days": days, "letters": len(place), "hours": hours or 0}


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_parameter_that_is_added_to_a_handle_is_in_the_description(
    engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def parameters(kind: type[Weather]) -> tuple[dict[str, Any], TestClient]:
        app = FastAPI()
        monkeypatch.setitem(description.SAID, "forecast", None)
        monkeypatch.setitem(ROUTES, "forecast", None)
        reached = Place(kind, lambda memory, _: kind(memory.scope))
        app.include_router(table("weather", Route(f"{method} /forecast", "forecast", "forecast", on=reached)))
        description.install(app)
        answers.install(app)
        app.state.engine = engine

        @app.middleware("http")
        async def known(request: Any, go_on: Any) -> Any:
            request.state.access = LOCAL
            return await go_on(request)

        found = app.openapi()["paths"]["/v1/users/{user}/forecast"][method.lower()]
        assert found["description"] == "How it will be."
        if method == "POST":
            return app.openapi()["components"]["schemas"]["ForecastBody"]["properties"], TestClient(app)
        return {one["name"]: one for one in found["parameters"]}, TestClient(app)

    before, _ = parameters(Weather)
    after, client = parameters(WeatherByHour)
    assert after.keys() - before.keys() == {"hours"}
    assert after["hours"]["description"] == "How many hours."
    bounds = after["hours"]["schema"] if method == "GET" else after["hours"]["anyOf"][0]
    assert (bounds["minimum"], bounds["maximum"], bounds["type"]) == (1, 24, "integer")
    path = "/v1/users/ana/forecast"

    def ask(**given: object) -> Any:
        return client.get(path, params=given) if method == "GET" else client.post(path, json=given)  # type: ignore[arg-type]

    assert ask(place="Porto", hours=3).json() == {"days": 1, "letters": 5, "hours": 3}
    assert ask(place="Porto", hours=25).status_code == 422
    assert ask(place="P").status_code == 422
    assert ask(place="Porto", wind=1).status_code == 422


def test_the_page_is_the_one_that_is_made_of_the_description(described: dict[str, Any]) -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import http_reference
    finally:
        sys.path.pop(0)
    assert http_reference.PAGE.read_text(encoding="utf-8") == http_reference.page(described), (
        "run `python tools/http_reference.py`"
    )
