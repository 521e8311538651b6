"""What is sent to the API and is wrong: each gets its 4xx as a problem that names the place, never a 500."""

from __future__ import annotations

import json

import pytest
from fastapi.testclient import TestClient

MESSAGES = "/v1/users/ana/messages"
LONG_NUMBER = "1" + "0" * 9_000


def sent(
    client: TestClient, body: bytes, media: str | None = "application/json", *, home: str = "/v1/users/ana"
) -> tuple[int, dict[str, object]]:
    headers = {} if media is None else {"Content-Type": media}
    response = client.post(f"{home}/messages", content=body, headers=headers)
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()


WRONG = {
    "a NUL in a text": (b'{"role":"user","content":"a\\u0000b"}', 422, "content"),
    "a lone surrogate": (b'{"role":"user","content":"a\\ud800b"}', 422, "content"),
    "a lone surrogate in metadata": (b'{"role":"user","content":"x","metadata":{"a":"\\ud800"}}', 422, "metadata"),
    "a NUL in metadata": (b'{"role":"user","content":"x","metadata":{"a":"\\u0000"}}', 422, "metadata"),
    "a lone surrogate as a field": (b'{"role":"user","content":"x","\\ud800":1}', 422, "body"),
    "NaN": (b'{"role":"user","content":"x","tokens":NaN}', 400, "NaN"),
    "Infinity": (b'{"role":"user","content":"x","tokens":-Infinity}', 400, "Infinity"),
    "a number beyond floats": (b'{"role":"user","content":"x","tokens":1e400}', 422, "tokens"),
    "a number beyond floats in metadata": (b'{"role":"user","content":"x","metadata":{"a":1e400}}', 422, "metadata"),
    "a huge whole number": (b'{"role":"user","content":"x","tokens":1' + b"0" * 400 + b"}", 422, "tokens"),
    "a number of 9,000 digits": (f'{{"role":"user","content":"x","tokens":{LONG_NUMBER}}}'.encode(), 400, "digits"),
    "JSON nested 100,000 deep": (b"[" * 100_000, 400, "nested"),
    "metadata nested 500 deep": (
        b'{"role":"user","content":"x","metadata":{"a":' + b"[" * 500 + b"]" * 500 + b"}}",
        422,
        "metadata",
    ),
    "a field twice": (b'{"role":"user","role":"user","content":"x"}', 400, "role"),
    "a field twice further in": (b'{"role":"user","content":"x","metadata":{"a":{"b":1,"b":1}}}', 400, "'b'"),
    "an unknown field": (b'{"role":"user","content":"x","colour":"red"}', 422, "colour"),
    "a wrong type": (b'{"role":"user","content":7}', 422, "content"),
    "a truth value for a number": (b'{"role":"user","content":"x","tokens":true}', 422, "tokens"),
    "a text for a number": (b'{"role":"user","content":"x","tokens":"7"}', 422, "tokens"),
    "a time without a zone": (b'{"role":"user","content":"x","at":"2026-01-01T00:00:00"}', 422, "at"),
    "a number for a time": (b'{"role":"user","content":"x","at":1700000000}', 422, "at"),
    "an unknown role": (b'{"role":"root","content":"x"}', 422, "role"),
    "no body": (b"", 422, "body"),
    "no object": (b"[]", 422, "body"),
    "half an object": (b'{"role":', 400, "JSON"),
    "other bytes": (b"\xff\xfe\x00", 400, "UTF-8"),
}


@pytest.mark.parametrize(("body", "status", "named"), WRONG.values(), ids=WRONG)
def test_a_body_that_is_wrong_is_refused_with_its_place(
    client: TestClient, home: str, body: bytes, status: int, named: str
) -> None:
    found, problem = sent(client, body, home=home)
    assert found == status == problem["status"]
    assert named in str(problem["detail"])
    assert client.get(f"{home}/messages").json()["items"] == []


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "nonsense", None])
def test_a_body_that_is_not_json_by_its_type_is_refused(client: TestClient, media: str | None) -> None:
    status, problem = sent(client, b'{"role":"user","content":"x"}', media)
    assert status == 415
    assert "application/json" in str(problem["detail"])


def test_where_files_are_imported_another_method_is_what_is_wrong_and_not_their_type(client: TestClient, home: str) -> None:
    response = client.request("QUERY", f"{home}/import", content=b"{}\n", headers={"Content-Type": "application/x-ndjson"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("media", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_may_be_named_in_any_spelling(client: TestClient, media: str) -> None:
    response = client.post(MESSAGES, content=b'{"role":"user","content":"x"}', headers={"Content-Type": media})
    assert response.status_code == 201


def test_a_whole_number_may_be_written_with_a_point(client: TestClient) -> None:
    assert client.post(MESSAGES, json={"role": "user", "content": "x", "tokens": 7.0}).json()["tokens"] == 7


def test_a_message_over_its_bound_is_too_large(client: TestClient) -> None:
    response = client.post(MESSAGES, json={"role": "user", "content": "x" * 1_048_577})
    assert response.status_code == 413
    assert "message_bytes_max" in response.json()["detail"]


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("colour=red", "query.colour"),
        ("limit=1&limit=2", "query.limit"),
        ("limit=0", "query.limit"),
        ("limit=1e3", "query.limit"),
        ("limit=" + "9" * 5_000, "query.limit"),
        ("agent=", "query.agent"),
        ("agent=%00", "query.agent"),
        ("agent=" + "a" * 401, "query.agent"),
    ],
)
def test_a_parameter_that_is_wrong_is_named(client: TestClient, query: str, named: str) -> None:
    response = client.get(f"{MESSAGES}?{query}")
    assert response.status_code == 422
    assert [one["where"] for one in response.json()["errors"]] == [named]


@pytest.mark.parametrize("user", ["%00", "a%00b", "%FF%FE", "%ED%A0%80", "perdure%3Asystem", "a" * 401, "%C3%A9" * 201])
def test_a_user_that_cannot_be_is_refused(client: TestClient, user: str) -> None:
    assert client.get(f"/v1/users/{user}/messages").status_code == 422


@pytest.mark.parametrize("user", ["a%2Fb", "a%25b", "%2E%2E", "%C3%A9", "a b", "%E2%9C%A8", "a%3Fb%23c", "%252F"])
def test_ids_may_hold_any_character(client: TestClient, user: str) -> None:
    made = client.post(f"/v1/users/{user}/messages", json={"role": "user", "content": "x", "id": "m/1 %2F?#"})
    assert made.status_code == 201
    assert client.get(made.headers["location"]).json()["id"] == "m/1 %2F?#"


@pytest.mark.parametrize("cursor", ["0", "AAAA", "bm90aGluZw", "%00", "WyJiZWZvcmUiLCBudWxsXQ", "W10", "_" * 4_000, "W1tbW1tb"])
@pytest.mark.parametrize("place", ["messages", "journal", "decisions", "memories", "state", "jobs"])
def test_a_cursor_that_was_never_given_out_is_not_found(client: TestClient, place: str, cursor: str) -> None:
    assert client.get(f"/v1/users/ana/{place}?cursor={cursor}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", MESSAGES, {"GET", "POST", "DELETE"}),
        ("POST", f"{MESSAGES}/m-1", {"GET"}),
        ("GET", "/v1/users/ana/messages/batch/more", set()),
        ("OPTIONS", "/v1/users/a%2Fb/state/k", {"GET", "PUT", "DELETE"}),
        ("POST", "/v1/users/ana/memories/k/history", {"GET"}),
        ("GET", "/v1/users/ana/memories/k/pin", {"POST"}),
        ("POST", "/v1/users/ana/memories/k/burn", set()),
    ],
)
def test_a_method_that_there_is_not_is_refused_with_all_those_there_are(
    client: TestClient, method: str, path: str, allowed: set[str]
) -> None:
    response = client.request(method, path)
    assert response.status_code == (405 if allowed else 404)
    assert {one for one in response.headers.get("allow", "").split(", ") if one} == allowed


def test_a_path_that_there_is_not_is_a_problem(client: TestClient) -> None:
    response = client.get("/v1/nothing")
    assert response.status_code == 404
    assert json.loads(response.text)["code"] == "not_found"
    assert json.loads(response.text)["detail"] == "there is nothing at this path"


def test_an_idempotency_key_that_is_none_is_refused(client: TestClient) -> None:
    for key in ("a b", "é".encode("latin-1"), "x" * 401):
        response = client.post("/v1/users/ana/todos", json={"content": "Call Ben"}, headers={"Idempotency-Key": key})
        assert response.status_code == 422
        assert "Idempotency-Key" in response.json()["detail"]
