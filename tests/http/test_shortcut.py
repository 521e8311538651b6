"""A plain request takes a short way through the server. Nobody can tell by its answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.http.derived import SHORT_ROUTES
from perdure.interfaces.server import build
from perdure.testing import StoppedClock

LONG_WAY = {"agent": "default"}
"""What every route takes anyway; a request that names it goes the framework's way."""
BODIES: dict[str, list[Any]] = {
    "messages": [
        {"role": "user", "content": "Hello."},
        {"role": "user", "content": "Hello.", "id": "m-1"},
        {"role": "user", "content": "Other.", "id": "m-1"},
        {"role": "user"},
        {"role": "nobody", "content": "x"},
        {"role": "user", "content": "x", "more": 1},
        {"role": "user", "content": "x" * 2_000_000},
    ],
    "messages/batch": [{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}, {"messages": []}],
    "recall": [{"query": "Hello"}, {"query": "Hello", "limit": 2.0}, {"query": ""}, {"query": "a", "limit": 0}, [], None, "x"],
    "memories": [{"content": "I like tea."}, {"content": "I like tea.", "kind": "NONE"}],
    "context": [{}, {"goal": "Plan", "budget_tokens": 1}],
    "before": [{"goal": "Make tea"}],
    "todos": [{"content": "Call Maria"}],
    "state/search": [{"query": "tea"}, {}],
}


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[TestClient, TestClient, dict[str, dict[str, str]]]]:
    """Two servers alike, so that the same is stored in both, and the keys to both."""
    engines = [perdure.open("memory:", clock=StoppedClock()) for _ in range(2)]
    headers: dict[str, dict[str, str]] = {}
    for permission in ("read", "write"):
        keys = [one.api_keys.create(permission, permission=permission, users=["ana", "b b"]) for one in engines]
        assert keys[0].secret != keys[1].secret
        headers |= {f"{permission} {place}": {"Authorization": f"Bearer {key.secret}"} for place, key in enumerate(keys)}
    short, long = (TestClient(build(one), base_url="http://127.0.0.1", raise_server_exceptions=False) for one in engines)
    yield short, long, headers
    for one in engines:
        one.close()


def _told(answer: Any) -> tuple[int, set[str], Any]:
    """What can be told of an answer without the names that each store makes for itself."""
    kept = {name for name in answer.headers if name not in ("content-length", "location")}
    body = answer.json()
    if answer.status_code >= 400:
        return answer.status_code, kept, body
    return answer.status_code, kept, sorted(body)


@pytest.mark.parametrize("place", BODIES)
@pytest.mark.parametrize("permission", ["read", "write"])
@pytest.mark.parametrize("user", ["ana", "b%20b", "ben", "a%2Fb"])
def test_both_ways_answer_alike(servers: Any, place: str, permission: str, user: str) -> None:
    short, long, headers = servers
    assert place in SHORT_ROUTES
    for body in BODIES[place]:
        path = f"/v1/users/{user}/{place}"
        one = short.post(path, json=body, headers=headers[f"{permission} 0"])
        other = long.post(path, json=body, headers=headers[f"{permission} 1"], params=LONG_WAY)
        assert _told(one) == _told(other), (path, str(body)[:80])


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b'{"role": "user", "content": "a", "content": "b"}', 400),
        (b'{"role": "user", "content": NaN}', 400),
        (b'{"role": "user", "content": "\xff"}', 400),
        (b"{", 400),
        (b"[" * 100_000, 400),
        (b'{"role": "user", "content": "a"}', 201),
    ],
    ids=["a field twice", "no JSON", "no UTF-8", "not closed", "nested", "as it should be"],
)
def test_a_body_is_read_as_strictly(servers: Any, raw: bytes, status: int) -> None:
    short, _, headers = servers
    typed = headers["write 0"] | {"Content-Type": "application/json; charset=utf-8"}
    assert short.post("/v1/users/ana/messages", content=raw, headers=typed).status_code == status


def test_a_request_is_counted_under_its_route_by_either_way(servers: Any) -> None:
    short, _, headers = servers
    for params in ({}, LONG_WAY):
        short.post("/v1/users/ana/recall", json={"query": "tea"}, headers=headers["read 0"], params=params)
    counted = 'perdure_http_requests_total{method="POST",route="/v1/users/{user:id}/recall",status="200"}'
    assert counted in short.app.state.metrics.text().decode()


def test_a_bug_is_told_alike(servers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    short, _, headers = servers

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret words")

    monkeypatch.setattr(perdure.Memory, "recall", broken)
    answers = [
        short.post("/v1/users/ana/recall", json={"query": "tea"}, headers=headers["read 0"], params=params)
        for params in ({}, LONG_WAY)
    ]
    assert [one.status_code for one in answers] == [500, 500]
    assert answers[0].json() == answers[1].json()
    assert "secret" not in answers[0].text


def test_a_repeat_that_names_its_key_is_carried_out_once(servers: Any) -> None:
    short, _, headers = servers
    once = headers["write 0"] | {"Idempotency-Key": "one-todo"}
    ids = {short.post("/v1/users/ana/todos", json={"content": "Buy tea"}, headers=once).json()["id"] for _ in range(2)}
    assert len(ids) == 1
