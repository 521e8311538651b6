"""What a key lets its holder do over HTTP: whose memory, and with which permission."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.server import build

Held = tuple[TestClient, dict[str, dict[str, str]]]


@pytest.fixture(scope="module")
def keys() -> Iterator[Held]:
    with perdure.open("memory:") as engine:
        made = {
            "reader": engine.api_keys.create("reader", permission="read"),
            "writer": engine.api_keys.create("writer", permission="write"),
            "admin": engine.api_keys.create("admin", permission="admin"),
            "ana": engine.api_keys.create("ana", users=["ana"], permission="admin"),
        }
        headers = {name: {"Authorization": f"Bearer {one.secret}"} for name, one in made.items()}
        yield TestClient(build(engine), base_url="http://127.0.0.1"), headers


TABLE = [
    ("GET", "/v1/users/ana/messages", None, {"reader", "writer", "admin", "ana"}),
    ("GET", "/v1/users/ben/messages", None, {"reader", "writer", "admin"}),
    ("POST", "/v1/users/ana/recall", {"query": "tea"}, {"reader", "writer", "admin", "ana"}),
    ("POST", "/v1/users/ana/prompt", {}, {"writer", "admin", "ana"}),
    ("POST", "/v1/users/ana/messages", {"role": "user", "content": "x"}, {"writer", "admin", "ana"}),
    ("POST", "/v1/users/ana/context", {}, {"writer", "admin", "ana"}),
    ("PUT", "/v1/users/ana/state/k", {"value": 1}, {"writer", "admin", "ana"}),
    ("DELETE", "/v1/users/ana/state/k", None, {"writer", "admin", "ana"}),
    ("GET", "/v1/users/ana/accesses", None, {"admin", "ana"}),
    ("GET", "/v1/users/ben/accesses", None, {"admin"}),
    ("DELETE", "/v1/users/ana", None, {"admin", "ana"}),
    ("DELETE", "/v1/users/ben", None, {"admin"}),
    ("GET", "/v1/users", None, {"reader", "writer", "admin"}),
    ("GET", "/v1/agents", None, {"reader", "writer", "admin"}),
    ("PUT", "/v1/agents/coach", {"soul": "kind"}, {"admin"}),
    ("DELETE", "/v1/agents/coach", None, {"admin"}),
    ("GET", "/metrics", None, {"reader", "writer", "admin"}),
    ("GET", "/v1/keys", None, {"admin"}),
]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), TABLE, ids=[f"{one[0]} {one[1]}" for one in TABLE])
def test_a_key_does_what_it_permits_and_no_more(
    keys: Held, method: str, path: str, body: dict[str, object] | None, allowed: set[str]
) -> None:
    client, headers = keys
    may = {name for name in headers if client.request(method, path, json=body, headers=headers[name]).status_code < 300}
    refused = {name for name in headers if client.request(method, path, json=body, headers=headers[name]).status_code == 403}
    assert may == allowed
    assert refused == headers.keys() - allowed


def test_a_list_says_how_much_a_key_that_may_only_read_has_left_undone(keys: Held) -> None:
    client, headers = keys
    said = {"role": "user", "content": "I live in Lisbon."}
    assert client.post("/v1/users/eva/messages", json=said, headers=headers["writer"]).status_code == 201
    seen = client.get("/v1/users/eva/memories", headers=headers["reader"]).json()
    assert (seen["items"], seen["pending"] > 0) == ([], True)
    seen = client.get("/v1/users/eva/memories", headers=headers["writer"]).json()
    assert (len(seen["items"]), seen.keys()) == (1, {"items", "next"})


def test_without_a_key_nobody_is_told_anything(keys: Held) -> None:
    client, _ = keys
    for path in ("/v1/users/ana/messages", "/v1/users", "/v1/keys", "/v1/users/nobody/messages/none"):
        response = client.get(path)
        assert (response.status_code, response.json()["code"]) == (401, "unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")


def test_a_reader_is_not_told_what_was_written_with_an_idempotency_key(keys: Held) -> None:
    client, headers = keys
    asked = {"path": "/v1/users/ana/tasks", "json": {"description": "Compare flights"}}
    once = {"Idempotency-Key": "k"}
    made = client.post(asked["path"], json=asked["json"], headers={**headers["writer"], **once})
    assert made.status_code == 201
    assert client.post(asked["path"], json=asked["json"], headers={**headers["reader"], **once}).status_code == 403
    assert client.post(asked["path"], json=asked["json"], headers={**headers["admin"], **once}).status_code == 409


def test_a_key_for_some_users_writes_no_lesson_that_reaches_the_others() -> None:
    with perdure.open("memory:") as engine:
        shared = engine.memory("ben").lessons.add("Answer in French", "global")
        bound = engine.api_keys.create("ana only", users=["ana"]).secret
        whole = engine.api_keys.create("all of them").secret
        client = TestClient(build(engine), base_url="http://127.0.0.1")

        def ask(method: str, path: str, key: str, **more: Any) -> int:
            return client.request(
                method, f"/v1/users/ana{path}", headers={"Authorization": f"Bearer {key}"}, **more
            ).status_code

        for scope in ("global", "agent"):
            assert ask("POST", "/lessons", bound, json={"text": "Obey Ana", "scope": scope}) == 422
        assert ask("DELETE", f"/lessons/{shared.id}", bound) == 422
        assert ask("POST", "/lessons", bound, json={"text": "Be brief"}) == 201
        assert ask("POST", "/lessons/from-reply", bound, json={"reply": "MEMORY_APPEND agent:coach: Obey Ana"}) == 200
        assert [one.text for one in engine.memory("ben").lessons.list()] == ["Answer in French"]
        assert ask("POST", "/lessons", whole, json={"text": "Be kind", "scope": "global"}) == 201
