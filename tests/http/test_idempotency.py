"""`Idempotency-Key`: carried out once, answered the same, and never answered with what was forgotten since."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

import perdure

FACT = {"content": "Lives in Hidden Valley", "attribute": "lives_in", "value": "Hidden Valley"}


def test_a_repeat_is_answered_the_same_and_changes_nothing(client: TestClient, home: str) -> None:
    first = client.post(f"{home}/todos", json={"content": "Call Maria"}, headers={"Idempotency-Key": "t1"})
    again = client.post(f"{home}/todos", json={"content": "Call Maria"}, headers={"Idempotency-Key": "t1"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert again.headers["Idempotent-Replay"] == "true"
    assert len(client.get(f"{home}/todos").json()["items"]) == 1
    other = client.post(f"{home}/todos", json={"content": "Call Ben"}, headers={"Idempotency-Key": "t1"})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


@pytest.mark.parametrize("forgetting", ["memory", "session", "entity"])
def test_what_was_forgotten_is_not_answered_again(
    client: TestClient, engine: perdure.Engine, home: str, forgetting: str
) -> None:
    """However it was forgotten: by a route, by another skin, or by another process on the same store."""
    ana = engine.memory(home.rpartition("/")[2])
    ana.append("user", "My sister Maria moved to Lisbon.", session="s1")
    first = client.post(f"{home}/memories", json={**FACT, "entities": ["person:Maria"]}, headers={"Idempotency-Key": "k"})
    assert first.status_code == 201, first.text
    if forgetting == "memory":
        ana.forget(memory=first.json()["statement"]["memory"])
    elif forgetting == "entity":
        ana.forget(entity="person:Maria")
    else:
        ana.conversation.delete("s1")
    again = client.post(f"{home}/memories", json={**FACT, "entities": ["person:Maria"]}, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert "Hidden Valley" not in again.text
    assert "201" in again.json()["detail"]


def test_a_key_must_exist_for_if_match_any(client: TestClient, home: str) -> None:
    anything = {"If-Match": "*"}
    assert client.put(f"{home}/state/units", json={"value": 1}, headers=anything).status_code == 409
    client.put(f"{home}/state/units", json={"value": 1})
    assert client.put(f"{home}/state/units", json={"value": 2}, headers=anything).json()["revision"] == 2


def test_pages_repeat_nothing_when_what_was_shown_changes_or_goes(
    client: TestClient, engine: perdure.Engine, home: str
) -> None:
    ana = engine.memory(home.rpartition("/")[2])
    for number in range(12):
        ana.remember(f"Likes tea number {number}", attribute=f"likes_{number}", value=str(number))
    shown: list[str] = []
    where = f"{home}/memories?limit=4"
    while where:
        page = client.get(where).json()
        shown += [one["key"] for one in page["items"]]
        if len(shown) == 4:
            ana.memories.pin(shown[3])
        if len(shown) == 8:
            ana.forget(memory=shown[7])
        where = f"{home}/memories?limit=4&cursor={page['next']}" if page["next"] else ""
    assert len(shown) == len(set(shown)) == 12
