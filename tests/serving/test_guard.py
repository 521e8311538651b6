"""Who the guard lets in: by the name that is asked for, the page that asks, the key, the token of a form."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import perdure
from perdure.interfaces.serving.guard import CSP
from perdure.interfaces.serving.options import Options, host_of
from tests.serving.server_world import World, call


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        yield engine


@pytest.fixture
def world(engine: perdure.Engine) -> World:
    return World(engine)


# -- names


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8765", 200),
        ("localhost.", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8765", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("192.168.1.5:8765", 421),
        ("0.0.0.0:8765", 421),
        ("", 400),
        ("localhost:notaport", 400),
        ("local host", 400),
        ("user@localhost", 400),
        ("[::1", 400),
        ("lócalhost", 400),
    ],
)
def test_only_names_of_this_server_are_answered(world: World, host: str, status: int) -> None:
    assert world.ask(headers={"host": host}).status == status


def test_two_host_headers_are_refused(world: World) -> None:
    headers = [(b"host", b"localhost"), (b"host", b"evil.example")]
    scope = {"type": "http", "method": "GET", "path": "/v1/x", "headers": headers, "query_string": b"", "scheme": "http"}
    assert asyncio.run(call(world.app, scope, [])).status == 400


def test_a_name_that_was_allowed_is_answered_but_needs_a_key(engine: perdure.Engine) -> None:
    """Whoever comes by another name than loopback's came through a proxy, and need not be on this machine."""
    world = World(engine, Options(allow_hosts=("memory.example.org",), no_auth=True))
    assert world.ask(headers={"host": "memory.example.org"}).status == 401
    assert world.ask(headers={"host": "localhost"}).status == 200
    assert world.ask(headers={"host": "other.example.org"}).status == 421


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP"])
def test_what_a_proxy_forwards_needs_a_key(world: World, header: str) -> None:
    assert world.ask(headers={header: "203.0.113.7"}).status == 401


@pytest.mark.parametrize(
    ("client", "status"), [("127.0.0.1", 200), ("::1", 200), ("127.9.9.9", 200), ("10.0.0.7", 401), ("2001:db8::7", 401)]
)
def test_who_comes_from_elsewhere_needs_a_key_whatever_name_they_ask_for(world: World, client: str, status: int) -> None:
    """A host program may have put the application at an address that others reach."""
    assert world.ask(client=client).status == status


@pytest.mark.parametrize(
    ("text", "host"),
    [
        (b"a.b:80", "a.b"),
        (b"[::1]:80", "::1"),
        (b"[::1]", "::1"),
        (b"::1", "::1"),
        (b"a:b:c", None),
        (b"[x]", None),
        (b":80", None),
    ],
)
def test_a_host_is_read_without_its_port(text: bytes, host: str | None) -> None:
    assert host_of(text) == host


# -- pages


@pytest.mark.parametrize("path", ["/v1/x", "/mcp", "/todos"])
@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:8765", True),
        ("null", False),
        ("https://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://evil.example:8765", False),
        ("file://", False),
        ("chrome-extension://abc", False),
        ("http://[", False),
    ],
)
def test_only_our_own_pages_may_change_something(world: World, path: str, origin: str, allowed: bool) -> None:
    headers = {"origin": origin, "content-type": "application/json", "x-csrf-token": world.guard.csrf_local}
    assert world.ask("POST", path, headers).status == (200 if allowed else 403)


@pytest.mark.parametrize("origin", ["http://127.0.0.1:3000", "http://[::1]:3000"])
@pytest.mark.parametrize(("path", "status"), [("/v1/x", 403), ("/todos", 403), ("/mcp", 200)])
def test_other_pages_of_this_machine_may_only_ask_for_mcp(world: World, path: str, origin: str, status: int) -> None:
    """Many changes need no body, and a browser lets any page send those; MCP takes JSON, which it does not."""
    token = {"x-csrf-token": world.guard.csrf_local}
    for more in ({"origin": origin, "content-type": "application/json"}, {"sec-fetch-site": "same-site"}):
        assert world.ask("POST", path, {**token, **more}).status == status


@pytest.mark.parametrize(("path", "status"), [("/v1/x", 200), ("/mcp", 403)])
def test_reading_is_not_bound_to_an_origin_but_for_mcp(world: World, path: str, status: int) -> None:
    assert world.ask("GET", path, {"origin": "https://evil.example"}).status == status


def test_a_request_that_a_browser_calls_cross_site_is_refused(world: World) -> None:
    headers = {"sec-fetch-site": "cross-site", "content-type": "application/json"}
    assert world.ask("DELETE", "/v1/x", headers).status == 403
    assert world.ask("DELETE", "/v1/x", {"sec-fetch-site": "same-origin"}).status == 200


def test_the_page_behind_a_proxy_may_change_something(engine: perdure.Engine) -> None:
    """The proxy took the encryption off: the origin has another scheme than the request."""
    secret = engine.api_keys.create("proxy").secret
    world = World(engine, Options(allow_hosts=("memory.example.org",)))
    headers = {"host": "memory.example.org", "origin": "https://memory.example.org", "authorization": f"Bearer {secret}"}
    assert world.ask("POST", "/v1/x", headers).status == 200


@pytest.mark.parametrize(
    ("kind", "path", "status"),
    [
        ("application/json", "/v1/x", 200),
        ("application/json; charset=utf-8", "/v1/x", 200),
        ("application/merge-patch+json", "/v1/x", 200),
        ("text/plain", "/v1/x", 415),
        ("application/x-www-form-urlencoded", "/v1/x", 415),
        ("multipart/form-data; boundary=x", "/v1/x", 415),
        ("application/x-ndjson", "/v1/x", 415),
        ("application/x-ndjson", "/v1/users/ana/import", 200),
        ("text/plain", "/v1/users/ana/import", 415),
        ("", "/v1/x", 415),
    ],
)
def test_what_a_page_elsewhere_could_send_unasked_is_not_taken(world: World, kind: str, path: str, status: int) -> None:
    assert world.ask("POST", path, {"content-type": kind, "content-length": "2"}, [b"{}"]).status == status


# -- keys


def test_with_no_auth_whoever_is_on_this_machine_is_let_in(world: World) -> None:
    assert world.ask().json["name"] == "local"
    assert world.ask(client="10.0.0.9").status == 401
    assert world.ask(headers={"x-forwarded-for": "10.0.0.9"}).status == 401


def test_a_key_is_asked_for_by_default(engine: perdure.Engine) -> None:
    made = engine.api_keys.create("first")
    world = World(engine, Options())
    refused = world.ask()
    assert (refused.status, refused.json["code"]) == (401, "unauthenticated")
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert world.ask(headers={"authorization": f"Bearer {made.secret}"}).json["name"] == made.key.id
    assert world.ask(headers={"authorization": f"bearer  {made.secret} "}).status == 200


def test_also_without_a_key_in_the_store_nobody_is_let_in(engine: perdure.Engine) -> None:
    world = World(engine, Options())
    assert world.ask().status == 401
    assert world.ask(path="/healthz").status == 200


TOKEN = "pdr_machine_" + "t" * 43
SHOWN = {"authorization": f"Bearer {TOKEN}"}


def test_the_token_is_the_person_at_this_machine(engine: perdure.Engine) -> None:
    world = World(engine, Options(token=TOKEN))
    assert world.ask().status == 401
    assert world.ask(headers=SHOWN).json["name"] == "local"
    assert world.ask(headers={"authorization": f"Bearer {TOKEN[:-1]}"}).status == 401
    assert TOKEN not in repr(world.options)


@pytest.mark.parametrize(
    ("options", "headers", "client"),
    [
        (Options(token=TOKEN), {}, "10.0.0.9"),
        (Options(token=TOKEN), {"x-forwarded-for": "10.0.0.9"}, "127.0.0.1"),
        (Options(token=TOKEN, allow_hosts=("memory.example.org",)), {"host": "memory.example.org"}, "127.0.0.1"),
        (Options(token=TOKEN, host="0.0.0.0"), {}, "127.0.0.1"),
        (Options(), {}, "127.0.0.1"),
    ],
)
def test_the_token_is_worth_nothing_elsewhere(
    engine: perdure.Engine, options: Options, headers: dict[str, str], client: str
) -> None:
    engine.api_keys.create("so that it starts")
    assert World(engine, options).ask(headers={**SHOWN, **headers}, client=client).status == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/openapi.json", "/static/x.css", "/login"])
def test_what_is_open_is_reached_by_nobody_in_particular(engine: perdure.Engine, path: str) -> None:
    assert World(engine, Options()).ask(path=path).json["name"] == "nobody"


@pytest.mark.parametrize("path", ["/v1/x", "/mcp", "/metrics", "/v1", "/healthz/x", "/loginx"])
def test_everything_else_is_not(engine: perdure.Engine, path: str) -> None:
    assert World(engine, Options()).ask(path=path).status in (401, 303)


@pytest.mark.parametrize(
    "given", ["Bearer", "Bearer ", "Basic abc", "pdr_000000000000_x", "Bearer pdr_000000000000_wrong", "Bearer \xff\xfe", "x"]
)
def test_a_wrong_key_is_refused_even_where_none_is_needed(world: World, given: str) -> None:
    assert world.ask(headers={"authorization": given}).status == 401


def test_a_revoked_key_ends_within_seconds(engine: perdure.Engine) -> None:
    engine.api_keys.create("other")
    made = engine.api_keys.create("first")
    world, headers = World(engine, Options()), {"authorization": f"Bearer {made.secret}"}
    assert world.ask(headers=headers).status == 200
    engine.api_keys.revoke(made.key.id)
    world.clock.now += 5
    assert world.ask(headers=headers).status == 401


def test_a_key_is_read_from_the_store_once_in_five_seconds(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    made = engine.api_keys.create("first")
    world, headers = World(engine, Options()), {"authorization": f"Bearer {made.secret}"}
    assert world.ask(headers=headers).status == 200
    monkeypatch.setattr(world.guard.keyring, "_keys", None)
    world.clock.now += 4.9
    assert world.ask(headers=headers).status == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "memory.example.org"])
def test_it_does_not_start_where_others_reach_it_without_a_key(engine: perdure.Engine, host: str) -> None:
    with pytest.raises(perdure.InvalidInput, match="perdure admin key create"):
        World(engine, Options(host=host))
    made = engine.api_keys.create("first")
    world = World(engine, Options(host=host))
    assert world.ask().status == 401
    engine.api_keys.revoke(made.key.id)
    world.clock.now += 5
    assert world.ask().status == 401, "not even when the last key is gone"
    with pytest.raises(perdure.InvalidInput, match="perdure admin key create"):
        World(engine, Options(host=host))


def test_where_others_reach_it_an_address_is_a_name_of_it(engine: perdure.Engine) -> None:
    made = engine.api_keys.create("first")
    world = World(engine, Options(host="0.0.0.0"))
    headers = {"authorization": f"Bearer {made.secret}"}
    assert world.ask(headers={**headers, "host": "192.168.1.5:8765"}).status == 200
    assert world.ask(headers={**headers, "host": "evil.example"}).status == 421


# -- forms


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_a_form_needs_the_token_of_its_page(world: World, method: str) -> None:
    assert world.ask(method, "/todos").status == 403
    assert world.ask(method, "/todos", {"x-csrf-token": "wrong"}).status == 403
    assert world.ask(method, "/todos", {"x-csrf-token": world.guard.csrf_local}).status == 200
    assert world.ask(method, "/todos", {"x-csrf-token": world.guard.csrf_login}).status == 403


def test_the_token_may_be_a_field_of_the_form_which_the_route_still_reads(world: World) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    sent = f"title=x&_csrf={world.guard.csrf_local}".encode()
    answer = world.ask("POST", "/todos", form, [sent[:5], sent[5:]])
    assert (answer.status, answer.json["bytes"]) == (200, len(sent))
    assert world.ask("POST", "/todos", form, [b"title=x&_csrf=wrong"]).status == 403
    assert world.ask("POST", "/todos", {"content-type": "multipart/form-data; boundary=x"}, [sent]).status == 403


def test_a_form_of_very_many_fields_is_refused(world: World) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert world.ask("POST", "/todos", form, [b"a=1&" * 2_000]).status == 400


def test_programs_need_no_token(world: World, engine: perdure.Engine) -> None:
    assert world.ask("POST", "/v1/x").status == 200
    secret = engine.api_keys.create("first").secret
    assert World(engine).ask("POST", "/todos", {"authorization": f"Bearer {secret}"}).status == 200


def test_a_page_that_needs_a_key_leads_to_the_sign_in(engine: perdure.Engine) -> None:
    world = World(engine, Options())
    answer = world.ask(path="/memories")
    assert (answer.status, answer.headers["location"]) == (303, "/login?next=%2Fmemories")
    answer = world.ask(path="/memories", headers={"hx-request": "true"})
    assert (answer.status, answer.headers["hx-redirect"]) == (401, "/login")
    assert world.ask("POST", "/memories").status == 401


# -- answers


def test_there_are_no_websockets(world: World) -> None:
    said: list[Any] = []

    async def send(message: object) -> None:
        said.append(message)

    scope = {"type": "websocket", "path": "/mcp", "headers": [(b"host", b"localhost")]}
    asyncio.run(world.app(scope, None, send))  # type: ignore[arg-type]
    assert [one["type"] for one in said] == ["websocket.close"]


@pytest.mark.parametrize("headers", [{}, {"host": "evil.example"}, {"authorization": "x"}])
def test_every_answer_has_the_headers_that_keep_browsers_out_of_trouble(world: World, headers: dict[str, str]) -> None:
    found = world.ask(headers=headers).headers
    assert found["content-security-policy"] == CSP
    assert "unsafe" not in CSP
    assert found["x-content-type-options"] == "nosniff"
    assert found["referrer-policy"] == "no-referrer"
    assert found["cross-origin-opener-policy"] == "same-origin"
    assert found["cache-control"] == "no-store"
    assert "server" not in found
    assert len(found["x-request-id"]) == 16


def test_a_request_keeps_the_id_that_it_came_with_if_it_is_a_plain_one(world: World) -> None:
    assert world.ask(headers={"x-request-id": "abc-123-def"}).headers["x-request-id"] == "abc-123-def"
    assert world.ask(headers={"x-request-id": "a b\x7f"}).headers["x-request-id"] != "a b\x7f"


def test_an_error_tells_nothing_of_where_it_came_from(engine: perdure.Engine, caplog: pytest.LogCaptureFixture) -> None:
    world = World(engine)

    async def broken(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("the words of a user")

    world.app = world.guard.wrapping(broken)
    answer = world.ask(headers={"x-request-id": "request-17"})
    assert (answer.status, answer.json["code"]) == (500, "error")
    assert b"words" not in answer.body
    assert "words" not in caplog.text
    assert f"request-17 failed: RuntimeError at {__name__}:" in caplog.text


def test_an_error_that_cannot_be_shown_is_still_answered(world: World, caplog: pytest.LogCaptureFixture) -> None:
    def broken(*_: object) -> Any:
        raise RuntimeError("the words of a user")

    world.guard.tell = broken
    answer = world.ask(headers={"host": "evil.example"})
    assert (answer.status, answer.headers["content-security-policy"]) == (421, CSP)
    assert "words" not in caplog.text


def test_a_store_that_is_away_is_told_as_such(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(engine)

    def away(_: str) -> None:
        raise perdure.Unavailable("the store is away")

    monkeypatch.setattr(type(engine.api_keys), "recognise", lambda _self, secret: away(secret))
    answer = world.ask(headers={"authorization": "Bearer pdr_000000000000_x"})
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
