"""Correcting on the page, without a browser: what is said otherwise takes the place of what was said."""

from __future__ import annotations

from urllib.parse import quote

from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.server import Options, build


def test_words_that_are_no_value_give_way_when_they_are_corrected() -> None:
    with perdure.open("memory:") as engine:
        ana = engine.memory("ana")
        said = ana.remember("Omar knows every buoy", "PEOPLE", entities=["person:Omar"]).statement
        assert said is not None
        app = build(engine, Options(no_auth=True))
        form = {"statement": said.id, "content": "Omar knows every lighthouse", "_csrf": app.state.guard.csrf_local}
        client = TestClient(app, base_url="http://127.0.0.1")
        done = client.post(f"/u/ana/memories/{quote(said.memory, safe='')}/correct", data=form, follow_redirects=False)
        assert done.status_code == 303
        assert [memory.content for memory in ana.memories.list()] == ["Omar knows every lighthouse"]
        assert [one.content for one in ana.memories.history(said.memory)] == [
            "Omar knows every buoy",
            "Omar knows every lighthouse",
        ]


def test_where_a_page_leads_back_to_may_hold_any_character() -> None:
    with perdure.open("memory:") as engine:
        todo = engine.memory("ana").todos.add("Call Maria")
        app = build(engine, Options(no_auth=True))
        client = TestClient(app, base_url="http://127.0.0.1")
        for back in ("/u/ana/€", "/u/ana/todos\r\nX-Evil: 1", "https://evil.example"):
            form = {"back": back, "_csrf": app.state.guard.csrf_local}
            done = client.post(f"/u/ana/todos/{todo.id}/complete", data=form, follow_redirects=False)
            assert done.status_code == 303
            assert done.headers["location"].startswith("/u/ana")
            assert "x-evil" not in done.headers
