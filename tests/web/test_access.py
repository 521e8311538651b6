"""Who sees which page, and what a page offers to whom; without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.server import Options, build

Enter = Callable[[str | None], TestClient]


@pytest.fixture(scope="module")
def engine() -> Iterator[perdure.Engine]:
    with perdure.open("memory:") as engine:
        for user in ("ana", "ben"):
            engine.memory(user).remember("Lives in Lisbon", attribute="lives_in", value="Lisbon")
            engine.memory(user).lessons.add("Answer in short sentences", "global")
        yield engine


@pytest.fixture(scope="module")
def enter(engine: perdure.Engine) -> Enter:
    app = build(engine, Options())

    def enter(secret: str | None) -> TestClient:
        client = TestClient(app, base_url="http://localhost", follow_redirects=False, headers={"Accept": "text/html"})
        if secret is not None:
            client.headers["Authorization"] = f"Bearer {secret}"
        return client

    return enter


def secret_of(engine: perdure.Engine, **fields: Any) -> str:
    return str(engine.api_keys.create("a key", **fields).secret)


def test_who_is_not_known_is_asked_for_a_key(enter: Enter) -> None:
    client = enter(None)
    sent = client.get("/u/ana/memories")
    assert sent.status_code == 303
    assert sent.headers["location"].startswith("/login")
    page = client.get(sent.headers["location"])
    assert page.status_code == 200
    assert 'name="key"' in page.text
    assert "Lisbon" not in page.text


def test_a_key_that_only_reads_is_offered_nothing_that_changes(engine: perdure.Engine, enter: Enter) -> None:
    client = enter(secret_of(engine, permission="read"))
    page = client.get("/u/ana/memories").text
    assert "Lives in Lisbon" in page
    assert "Add a memory" not in page
    assert 'method="post"' not in page
    assert client.post("/u/ana/todos", data={"content": "Call the bank"}).status_code == 403


def test_a_key_of_one_user_sees_no_other(engine: perdure.Engine, enter: Enter) -> None:
    client = enter(secret_of(engine, users=["ana"], permission="write"))
    assert client.get("/").headers["location"] == "/u/ana"
    assert client.get("/u/ana/memories").status_code == 200
    assert "ben" not in client.get("/users").text
    refused = client.get("/u/ben/memories")
    assert refused.status_code == 403
    assert "Lisbon" not in refused.text


@pytest.fixture
def local() -> Iterator[TestClient]:
    """The person at this machine."""
    with perdure.open("memory:") as engine:
        yield TestClient(build(engine, Options(no_auth=True)), base_url="http://localhost", headers={"Accept": "text/html"})


def test_an_error_is_told_without_what_lies_behind_it(local: TestClient) -> None:
    answer = local.get("/u/ana/memories?as_of=yesterday-ish")
    assert answer.status_code == 422
    assert "is no date" in answer.text
    assert "Traceback" not in answer.text
    assert local.get("/u/ana/nowhere").status_code == 404


@pytest.mark.parametrize(
    "back",
    ["https://example.org/", "//example.org", "/u/ben", "/u/ana/todos\r\nSet-Cookie: a=b", "/u/anaconda/todos", "/u/ana/é"],
)
def test_an_action_leads_back_to_pages_of_its_user_alone(local: TestClient, back: str) -> None:
    memory = local.app.state.engine.memory("ana")  # type: ignore[attr-defined]  # it is our application
    todo = memory.todos.add(f"Call the bank about {len(back)} things")
    form = {"_csrf": local.app.state.guard.csrf_local, "back": back}  # type: ignore[attr-defined]
    answer = local.post(f"/u/ana/todos/{todo.id}/complete", data=form, follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/u/ana"
    assert "a=b" not in str(answer.headers)


def test_pages_are_kept_nowhere_and_load_nothing_from_elsewhere(local: TestClient) -> None:
    answer = local.get("/u/ana")
    assert answer.headers["cache-control"] == "no-store"
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert "style=" not in answer.text
    assert "http://" not in answer.text.replace("http://localhost", "").replace("http://www.w3.org", "")
