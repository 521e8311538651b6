"""The names of the seeds at the edges: a memory in the seed's form, and a persona for an agent."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure

SEED_NAMES = {"entityRefs", "entityLabel", "subtype", "importance", "pinned", "memoryKey", "source", "status", "confidence"}


def remembered(client: TestClient, home: str) -> None:
    said = {"content": "John is my cofounder", "type": "PEOPLE", "entities": ["person:John Doe"], "fact_type": "relationship"}
    assert client.post(f"{home}/memories", json=said).status_code == 201


def test_a_memory_has_one_seed_form_on_every_face(client: TestClient, engine: perdure.Engine, home: str) -> None:
    """S3-5 to S3-16."""
    remembered(client, home)
    ana = engine.memory(home.rpartition("/")[2])
    [one] = ana.memories.list(form="seed")
    told: dict[str, Any] = dict(one)  # type: ignore[call-overload]
    assert told.keys() >= SEED_NAMES | {"personaId", "content", "type"}
    assert (told["memoryKey"], told["entityRefs"]) == ("people|person|john_doe|relationship", ["person:john_doe"])
    assert (told["entityLabel"], told["subtype"]) == ("John Doe", {"entityType": "person", "factType": "relationship"})
    assert (told["status"], told["pinned"], told["personaId"]) == ("ACTIVE", False, None)
    assert dict(ana.memories.get(told["id"], form="seed")) == told  # type: ignore[call-overload]
    assert client.get(f"{home}/memories?form=seed").json()["items"] == [told]
    assert client.get(f"{home}/memories/{told['id']}?form=seed").json() == told
    assert client.get(f"{home}/memories/{told['id']}").json()["statements"]
    with pytest.raises(perdure.InvalidInput, match="`form`"):
        ana.memories.list(form="other")  # type: ignore[arg-type]


def test_memories_are_exported_under_the_seeds_names(client: TestClient, engine: perdure.Engine, home: str) -> None:
    """S3-5 to S3-16: a line each, archived ones included, on every face."""
    remembered(client, home)
    ana = engine.memory(home.rpartition("/")[2])
    for number in range(7):
        ana.remember(f"Has been to Town {number}", entities=[f"place:Town {number}"])
    ana.memories.archive(ana.memories.list(entity="place:Town 3")[0].memory.record_key)
    file = BytesIO()
    report = ana.export(file, "seed")
    told = [json.loads(line) for line in file.getvalue().splitlines()]
    assert (report.format, report.rows, report.bytes) == ("seed", {"memories": 8}, len(file.getvalue()))
    assert told == [dict(one) for one in ana.memories.list(archived=True, form="seed")]  # type: ignore[call-overload]
    assert sorted(one["status"] for one in told) == ["ACTIVE"] * 7 + ["ARCHIVED"]
    assert client.get(f"{home}/export?format=seed").content == file.getvalue()
    assert client.get(f"{home}/export?format=vault").status_code == 422


def test_pages_of_seed_forms_go_on(client: TestClient, home: str) -> None:
    for city in ("Austin", "Oslo", "Bergen"):
        said = {"content": f"Has been to {city}", "entities": [f"place:{city}"]}
        assert client.post(f"{home}/memories", json=said).status_code == 201
    first = client.get(f"{home}/memories?form=seed&limit=2").json()
    rest = client.get(f"{home}/memories", params={"form": "seed", "cursor": first["next"]}).json()
    assert len({one["id"] for one in (*first["items"], *rest["items"])}) == 3


def test_a_persona_is_an_agent(client: TestClient, engine: perdure.Engine, home: str) -> None:
    """X-31."""
    user = home.rpartition("/")[2]
    coach = engine.memory(user, persona="coach")
    assert coach.scope == engine.memory(user, agent="coach").scope
    with pytest.raises(perdure.InvalidInput, match="`agent` and `persona` name two agents"):
        engine.memory(user, agent="coach", persona="companion")
    assert client.post(f"{home}/todos?persona=coach", json={"content": "Run 5 km"}).status_code == 201
    assert [one["content"] for one in client.get(f"{home}/todos?agent=coach").json()["items"]] == ["Run 5 km"]
    assert client.get(f"{home}/todos?persona=companion").json()["items"] == []
    again = {"Idempotency-Key": "k1"}
    for _ in range(2):
        sent = client.post(f"{home}/todos?persona=coach", json={"content": "Sleep"}, headers=again)
        assert sent.status_code == 201
    assert len(client.get(f"{home}/todos?persona=coach").json()["items"]) == 2
    assert client.get(f"{home}/todos?persona=coach&agent=coach").status_code == 422, "an agent is named once"
