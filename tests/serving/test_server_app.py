"""The whole application behind its guard: what keys may do, signing in, who looks after the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import routing
from fastapi.dependencies import utils
from jinja2 import Environment
from starlette.testclient import TestClient

import perdure
from perdure.interfaces.server import Options, build
from perdure.interfaces.web import page

BASE = "http://localhost:8765"
TOKEN = "pdr_machine_" + "t" * 43
VALUE = {"value": 1}


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        yield engine


# Making an application takes a while: tests that leave nothing behind that others see share one of these.


@pytest.fixture(scope="module")
def closed() -> Iterator[tuple[perdure.Engine, TestClient]]:
    """A store, and its server as it comes."""
    with perdure.open("memory:") as engine:
        yield engine, client(engine)


@pytest.fixture(scope="module")
def opened() -> Iterator[tuple[perdure.Engine, TestClient]]:
    """A store, and its server without authentication."""
    with perdure.open("memory:") as engine:
        yield engine, client(engine, no_auth=True)


def client(engine: perdure.Engine, **options: Any) -> TestClient:
    return TestClient(build(engine, Options(**options)), base_url=BASE, follow_redirects=False, raise_server_exceptions=False)


def bearer(engine: perdure.Engine, permission: str, users: list[str] | None = None) -> dict[str, str]:
    return {"Authorization": f"Bearer {engine.api_keys.create(permission, users=users, permission=permission).secret}"}


def test_after_the_start_no_page_compiles_a_template_or_builds_a_route(
    engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.environment.cache_clear()
    app = build(engine, Options(no_auth=True))
    with TestClient(app, base_url=BASE) as opened:

        async def loaded() -> None:
            await app.state.preparing

        assert opened.portal is not None
        opened.portal.call(loaded)
        late: list[object] = []
        compiled, built = Environment.compile, utils.get_dependant
        monkeypatch.setattr(Environment, "compile", lambda *at, **how: (late.append(at[2:]), compiled(*at, **how))[1])
        monkeypatch.setattr(routing, "get_dependant", lambda **how: (late.append(how), built(**how))[1])
        for path in ("", "/memories", "/chat", "/journal", "/status", "/series"):
            assert opened.get(f"/u/ana{path}").status_code == 200
        assert opened.get("/v1/users/ana/memories").status_code == 200
        assert late == []


# -- what a key may do


@pytest.mark.parametrize(
    ("permission", "users", "method", "path", "status"),
    [
        ("read", None, "GET", "/v1/users/ana/state", 200),
        ("read", None, "PUT", "/v1/users/ana/state/k", 403),
        ("read", None, "DELETE", "/v1/users/ana/state/k", 403),
        ("write", None, "PUT", "/v1/users/ana/state/k", 200),
        ("write", ["ana"], "PUT", "/v1/users/ana/state/k", 200),
        ("write", ["ana"], "PUT", "/v1/users/bo/state/k", 403),
        ("read", ["ana"], "GET", "/v1/users/bo/state", 403),
        ("read", ["ana"], "GET", "/v1/users/nobody-yet/state", 403),
        ("admin", ["ana"], "GET", "/v1/users/bo/state", 403),
        ("write", None, "GET", "/v1/keys", 403),
        ("write", None, "POST", "/v1/keys", 403),
        ("admin", ["ana"], "GET", "/v1/keys", 403),
        ("admin", ["ana"], "POST", "/v1/keys", 403),
        ("admin", None, "GET", "/v1/keys", 200),
        ("read", None, "GET", "/metrics", 200),
        ("read", ["ana"], "GET", "/metrics", 403),
    ],
)
def test_a_key_does_what_it_permits_and_no_more(
    closed: tuple[perdure.Engine, TestClient],
    permission: str,
    users: list[str] | None,
    method: str,
    path: str,
    status: int,
) -> None:
    """Whatever the body says: it has no say in whose memory is meant."""
    engine, asking = closed
    held = engine.health().users, len(engine.api_keys.list())
    body = {"name": "more", "permission": "admin"} if path == "/v1/keys" else VALUE
    sent = {"json": body} if method in ("PUT", "POST") else {}
    answer = asking.request(method, path, headers=bearer(engine, permission, users), **sent)
    assert answer.status_code == status, answer.text
    if status == 403:
        assert answer.json()["code"] == "forbidden"
        assert (engine.health().users, len(engine.api_keys.list())) == (held[0], held[1] + 1)


def test_a_user_in_the_body_changes_nothing(engine: perdure.Engine) -> None:
    """Neither as a field nor as a parameter or header: the path is checked against the key, and nothing else names a user."""
    asking, headers = client(engine), bearer(engine, "write", ["ana"])
    engine.memory("bo").state.save("k", "bo's")
    said = [
        asking.put("/v1/users/ana/state/k", json={**VALUE, "user": "bo"}, headers=headers),
        asking.put("/v1/users/ana/state/k?user=bo", json=VALUE, headers=headers),
        asking.put("/v1/users/ana/state/k", json=VALUE, headers={**headers, "Perdure-User": "bo", "X-User": "bo"}),
        asking.put("/v1/users/ana%2F..%2Fbo/state/k", json=VALUE, headers=headers),
        asking.put("/v1/users/%61na/../bo/state/k", json=VALUE, headers=headers),
    ]
    assert [one.status_code for one in said[2:]] == [200, 403, 403]
    assert {one.status_code for one in said[:2]} <= {200, 422}
    assert engine.memory("bo").state.load("k") == "bo's"


def test_keys_are_made_listed_and_revoked_over_http(engine: perdure.Engine) -> None:
    asking = client(engine, token=TOKEN)
    here = {"Authorization": f"Bearer {TOKEN}"}
    made = asking.post("/v1/keys", json={"name": "laptop", "users": ["ana"], "permission": "read", "days": 1}, headers=here)
    assert made.status_code == 201
    secret, key = made.json()["secret"], made.json()["key"]
    mine, admin = {"Authorization": f"Bearer {secret}"}, bearer(engine, "admin")
    assert asking.get("/v1/users/ana/state", headers=mine).status_code == 200
    listed = asking.get("/v1/keys", headers=admin)
    assert [one["name"] for one in listed.json()["items"]] == ["admin", "laptop"]
    assert secret not in listed.text
    assert "digest" not in listed.text
    assert asking.delete(f"/v1/keys/{key['id']}", headers=mine).status_code == 403
    assert asking.delete(f"/v1/keys/{key['id']}", headers=admin).json()["revoked_at"]
    assert asking.get("/v1/users/ana/state", headers=mine).status_code == 401, "at once"
    assert asking.delete("/v1/keys/000000000000", headers=admin).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": "x", "permission": "root"},
        {"name": "x", "users": []},
        {"name": "x", "days": -1},
        {"name": "x\n"},
    ],
)
def test_a_key_that_makes_no_sense_is_refused(opened: tuple[perdure.Engine, TestClient], body: dict[str, Any]) -> None:
    engine, asking = opened
    assert asking.post("/v1/keys", json=body).status_code == 422
    assert engine.api_keys.list() == []


# -- signing in


def token(page: str) -> str:
    found = re.search(r'name="_csrf"[^>]*value="([^"]+)"|value="([^"]+)"[^>]*name="_csrf"', page)
    assert found, page
    return found[1] or found[2]


def signed_in(asking: TestClient, secret: str, there: str = "/") -> Any:
    form = {"key": secret, "next": there, "_csrf": token(asking.get("/login", headers={"Accept": "text/html"}).text)}
    return asking.post("/login", data=form)


def test_a_key_is_shown_once_and_a_cookie_stands_for_it(engine: perdure.Engine) -> None:
    made = engine.api_keys.create("page")
    asking = client(engine)
    answer = signed_in(asking, made.secret, "/memories?x=1")
    assert (answer.status_code, answer.headers["location"]) == (303, "/memories?x=1")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert "Secure" not in cookie
    assert made.secret not in cookie
    assert asking.get("/v1/users/ana/state").status_code == 200
    assert asking.put("/v1/users/ana/state/k", json=VALUE).status_code == 403, "a cookie alone writes nothing"


def test_the_link_with_the_token_is_exchanged_for_a_cookie_and_the_token_leaves_the_address(engine: perdure.Engine) -> None:
    asking = client(engine, token=TOKEN)
    assert asking.get("/u/ana").headers["location"] == "/login?next=%2Fu%2Fana"
    answer = asking.get(f"/login?token={TOKEN}&next=/u/ana")
    assert (answer.status_code, answer.headers["location"]) == (303, "/u/ana")
    assert TOKEN not in str(answer.headers)
    assert "HttpOnly" in answer.headers["set-cookie"]
    page = asking.get("/u/ana")
    assert page.status_code == 200
    assert (TOKEN not in str(page.url), TOKEN not in answer.text) == (True, True)
    assert asking.put("/v1/users/ana/state/k", json=VALUE).status_code == 403, "a cookie alone writes nothing"
    assert asking.put("/v1/users/ana/state/k", json=VALUE, headers={"X-CSRF-Token": token(page.text)}).status_code == 200
    asking.cookies.clear()
    assert asking.get(f"/login?token={TOKEN}&next=//evil.example").headers["location"] == "/"


def test_a_link_signs_in_by_the_token_of_this_machine_alone(engine: perdure.Engine) -> None:
    """Or somebody could have others work under a key of theirs without noticing."""
    asking = client(engine, token=TOKEN)
    for given in (engine.api_keys.create("page").secret, TOKEN[:-1], "", "x" * 3_000):
        answer = asking.get(f"/login?token={given}", headers={"Accept": "text/html"})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
    assert asking.get(f"/?token={TOKEN}").status_code == 303, "and nowhere else"
    assert asking.get(f"/v1/users?token={TOKEN}").status_code == 401
    statuses = [asking.get("/login?token=wrong").status_code for _ in range(11)]
    assert statuses[-1] == 429


def test_the_token_may_also_be_pasted(engine: perdure.Engine) -> None:
    asking = client(engine, token=TOKEN)
    assert signed_in(asking, TOKEN, "/u/ana").headers["location"] == "/u/ana"
    assert asking.get("/u/ana").status_code == 200
    assert asking.get("/u/ana", headers={"X-Forwarded-For": "10.0.0.9"}).status_code == 303, "the cookie is for this machine"


def test_the_cookie_is_for_encrypted_connections_where_there_are(engine: perdure.Engine) -> None:
    secret = engine.api_keys.create("page").secret
    asking = client(engine)
    asking.headers["X-Forwarded-Proto"] = "https"
    assert "Secure" in signed_in(asking, secret).headers["set-cookie"]


def test_signing_out_ends_it(engine: perdure.Engine) -> None:
    made = engine.api_keys.create("page")
    app = build(engine)
    asking = TestClient(app, base_url=BASE, follow_redirects=False)
    signed_in(asking, made.secret)
    [visit] = app.state.guard.visits._held.values()
    held = dict(asking.cookies)
    assert asking.post("/logout").status_code == 403
    answer = asking.post("/logout", data={"_csrf": visit.csrf})
    assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    asking.cookies.update(held)
    assert asking.get("/v1/users/ana/state").status_code == 401


def test_revoking_the_key_signs_out(engine: perdure.Engine) -> None:
    made, admin = engine.api_keys.create("page"), bearer(engine, "admin")
    asking = client(engine)
    signed_in(asking, made.secret)
    assert asking.get("/v1/users/ana/state").status_code == 200
    asking.delete(f"/v1/keys/{made.key.id}", headers=admin)
    assert asking.get("/v1/users/ana/state").status_code == 401


def test_a_wrong_key_signs_nobody_in(engine: perdure.Engine) -> None:
    engine.api_keys.create("page")
    asking = client(engine)
    answer = signed_in(asking, "pdr_000000000000_<script>")
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    assert "<script>" not in answer.text
    assert asking.post("/login", data={"key": "x"}).status_code == 403, "not without the token"
    statuses = [signed_in(asking, "wrong").status_code for _ in range(11)]
    assert statuses[-1] == 429


@pytest.mark.parametrize(
    "there", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:x", "", "/login", "/a\r\nX: y"]
)
def test_signing_in_leads_nowhere_else(closed: tuple[perdure.Engine, TestClient], there: str) -> None:
    engine, asking = closed
    asking.cookies.clear()
    answer = signed_in(asking, engine.api_keys.create("page").secret, there)
    asking.cookies.clear()
    assert answer.headers["location"] == "/"


def test_an_id_that_was_not_given_out_is_nobody(engine: perdure.Engine) -> None:
    engine.api_keys.create("page")
    asking = client(engine)
    asking.cookies.set("perdure_session", "made-up")
    assert asking.get("/v1/users/ana/state").status_code == 401


def test_who_needs_no_key_need_not_sign_in(opened: tuple[perdure.Engine, TestClient]) -> None:
    answer = opened[1].get("/login?next=/todos")
    assert (answer.status_code, answer.headers["location"]) == (303, "/todos")


# -- pages and MCP


@pytest.mark.parametrize(
    ("path", "host", "status"), [("/no/such/page", "localhost", 404), ("/", "evil.example", 421), ("/v1/x", "localhost", 404)]
)
def test_people_are_told_errors_as_pages_and_programs_as_problems(
    opened: tuple[perdure.Engine, TestClient], path: str, host: str, status: int
) -> None:
    asking = opened[1]
    shown = asking.get(path, headers={"Accept": "text/html,*/*", "Host": host})
    told = asking.get(path, headers={"Accept": "application/json", "Host": host})
    assert (shown.status_code, told.status_code) == (status, status)
    assert told.headers["content-type"] == "application/problem+json"
    page = not path.startswith("/v1")
    assert shown.headers["content-type"].startswith("text/html" if page else "application/problem+json")


def test_files_of_the_page_are_kept_by_browsers_and_nothing_else_is(opened: tuple[perdure.Engine, TestClient]) -> None:
    asking = opened[1]
    assert asking.get("/static/htmx.min.js?v=1").headers["cache-control"] == "public, max-age=86400"
    assert asking.get("/static/htmx.min.js").headers["cache-control"] == "no-cache"
    assert asking.get("/static/none.js?v=1").headers["cache-control"] == "no-store"
    assert asking.get("/static/../server.py").status_code == 404
    assert asking.get("/static/%2e%2e/%2e%2e/server.py").status_code == 404


def test_mcp_is_asked_with_the_same_key(engine: perdure.Engine) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2025-11-25"}
    mine = {**headers, **bearer(engine, "read", ["ana"])}
    with client(engine) as asking:
        assert asking.post("/mcp", json=asked, headers=headers).status_code == 401
        tools = asking.post("/mcp", json=asked, headers=mine).json()["result"]["tools"]
        assert {one["name"] for one in tools} >= {"loadState", "recall"}
        assert "saveState" not in {one["name"] for one in tools}
        assert asking.post("/mcp", json=asked, headers={**mine, "Origin": "https://evil.example"}).status_code == 403
        call = {**asked, "method": "tools/call", "params": {"name": "loadState", "arguments": {"key": "k"}}}
        told = asking.post("/mcp", json=call, headers={**mine, "Perdure-User": "bo"}).json()["result"]
        assert told["isError"]
        assert told["structuredContent"]["code"] == "forbidden"


# -- looking after it


def test_it_says_that_it_lives_and_whether_the_store_answers(opened: tuple[perdure.Engine, TestClient]) -> None:
    asking = opened[1]
    assert asking.get("/healthz").json() == {"status": "alive"}
    told = asking.get("/readyz").json()
    assert told["status"] == "degraded"
    assert told["degraded"] == ["durability: a store in memory is lost with the process"]
    assert told["jobs"]["dead"] == 0


def test_strangers_are_not_told_what_is_degraded(engine: perdure.Engine) -> None:
    engine.api_keys.create("first")
    asking = client(engine)
    assert asking.get("/readyz").json() == {"status": "degraded"}
    assert "jobs" in asking.get("/readyz", headers=bearer(engine, "read")).json()
    assert "jobs" not in asking.get("/readyz", headers=bearer(engine, "read", ["ana"])).json()
    assert asking.get("/metrics").status_code == 401


def test_a_store_that_does_not_answer_is_not_ready(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    asking = client(engine, no_auth=True)

    def away(_: perdure.Engine) -> None:
        raise perdure.Unavailable("the store at /secret/place is away")

    monkeypatch.setattr(perdure.Engine, "health", away)
    answer = asking.get("/readyz")
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "unavailable", "5")
    assert "perdure_store_up 0.0" in asking.get("/metrics").text


def test_a_store_that_is_too_slow_is_not_ready(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    from perdure.interfaces.http.routes import store

    go = threading.Event()
    monkeypatch.setattr(store, "READY_S", 0.01)
    monkeypatch.setattr(perdure.Engine, "health", lambda _: go.wait(30))
    answer = client(engine, no_auth=True).get("/readyz")
    go.set()
    assert answer.status_code == 503


def test_metrics_count_requests_by_template_and_name_no_user(engine: perdure.Engine) -> None:
    engine.memory("ana-the-user").append("user", "something private")
    asking = client(engine, no_auth=True)
    asking.get("/v1/users/ana-the-user/state")
    asking.get("/v1/users/ana-the-user/state/private-key")
    asking.get("/no/such/page")
    asking.request("BREW", "/healthz")
    text = asking.get("/metrics").text
    assert 'perdure_http_requests_total{method="GET",route="/v1/users/{user:id}/state",status="200"} 1.0' in text
    assert 'route="/v1/users/{user:id}/state/{key:id}",status="404"' in text
    assert 'method="GET",route="other",status="404"' in text
    assert 'method="OTHER"' in text
    assert "perdure_users 1.0" in text
    assert 'perdure_jobs{state="ready"}' in text
    assert "perdure_store_up 1.0" in text
    assert "perdure_http_requests_running 1.0" in text
    assert 'perdure_http_request_seconds_count{route="/v1/users/{user:id}/state"} 1.0' in text
    assert "ana" not in text
    assert "private" not in text


def test_questions_to_models_are_counted(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace
    from datetime import UTC, datetime

    from perdure.domain.models import Usage

    held = engine.health()
    used = Usage("extract", "ok", 3, 100, 20, 5.0, datetime(2026, 1, 1, tzinfo=UTC))
    monkeypatch.setattr(
        perdure.Engine, "health", lambda _: replace(held, models=(used,), worker_trouble="its thread has ended")
    )
    text = client(engine, no_auth=True).get("/metrics").text
    assert 'perdure_model_calls_total{outcome="ok",purpose="extract"} 3.0' in text
    assert 'perdure_model_tokens_total{direction="in",purpose="extract"} 100.0' in text
    assert "perdure_worker_trouble 1.0" in text


def test_two_servers_of_one_process_count_for_themselves(engine: perdure.Engine) -> None:
    one, other = client(engine, no_auth=True), client(engine, no_auth=True)
    one.get("/healthz")
    assert 'route="/healthz"' in one.get("/metrics").text
    assert 'route="/healthz"' not in other.get("/metrics").text


def test_a_bug_is_told_as_a_problem_without_a_trace(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: perdure.Engine) -> None:
        raise RuntimeError("private words")

    monkeypatch.setattr(perdure.Engine, "health", broken)
    answer = client(engine, no_auth=True).get("/readyz")
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "error"
    assert "private" not in answer.text
    assert "Traceback" not in answer.text
    assert "content-security-policy" in answer.headers


def test_a_large_body_is_told_as_a_problem(engine: perdure.Engine) -> None:
    asking = client(engine, body_max_mb=0.001, no_auth=True)
    answer = asking.put("/v1/users/ana/state/k", json={"value": "x" * 2_000})
    assert (answer.status_code, answer.json()["code"]) == (413, "limit_exceeded")
    answer = asking.put(
        "/v1/users/ana/state/k", content=iter([b'{"value": "' + b"x" * 2_000]), headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["code"]) == (413, "limit_exceeded")


def test_the_engine_says_how_it_is_without_writing(engine: perdure.Engine) -> None:
    engine.memory("ana").append("user", "hello")
    found = engine.health()
    assert (found.users, found.queue.dead, found.worker_trouble, found.healthy) == (1, 0, None, False)
    assert found.degraded == engine.doctor().degraded
