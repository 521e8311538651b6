"""The first page of a new user: three ways in that work as they stand, and a demo that comes and goes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser

import perdure
from live_site import looking, serving
from perdure.interfaces.server import Options, build

TOKEN = "pdr_local_token_of_this_test"


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[perdure.Engine]:
    with perdure.open(f"sqlite:///{tmp_path}/home.db") as engine:
        yield engine


def visitor(engine: perdure.Engine, secret: str) -> TestClient:
    headers = {"Accept": "text/html", "Authorization": f"Bearer {secret}"}
    return TestClient(
        build(engine, Options(token=TOKEN)), base_url="http://localhost", headers=headers, client=("127.0.0.1", 1)
    )


def way(page: str, name: str) -> str:
    found = re.search(rf'id="way-{name}">(.*?)</pre>', page, re.DOTALL)
    assert found is not None
    return unescape(found[1])


def test_the_three_ways_in_have_full_paths_the_store_and_the_token(engine: perdure.Engine, tmp_path: Path) -> None:
    page = visitor(engine, TOKEN).get("/u/ana").text
    store = f"sqlite:///{tmp_path}/home.db"
    started = json.loads(way(page, "mcp"))["mcpServers"]["perdure"]
    assert Path(started["command"]).is_absolute()
    assert started["args"] == ["mcp", "--user", "ana", "--url", store]
    assert f"Bearer {TOKEN}" in way(page, "http")
    assert store in page


def test_the_python_way_works_as_it_stands(engine: perdure.Engine) -> None:
    code = way(visitor(engine, TOKEN).get("/u/ana").text, "python")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Lisbon" in done.stdout
    assert [one.content for one in engine.memory("ana").messages()] == ["I moved to Lisbon"]


def test_who_has_a_key_of_one_user_sees_neither_the_token_nor_the_path(engine: perdure.Engine, tmp_path: Path) -> None:
    key = engine.api_keys.create("a key", users=["ana"], permission="write").secret
    page = visitor(engine, key).get("/u/ana").text
    assert TOKEN not in page
    assert str(tmp_path) not in page
    assert "Add demo data" not in page


def test_the_demo_comes_with_a_button_and_goes_with_another(engine: perdure.Engine) -> None:
    client = visitor(engine, TOKEN)
    assert "Add demo data" in client.get("/u/ana").text
    added = client.post("/demo/add")
    assert added.url.path == "/u/demo"
    assert "Remove demo data" in added.text
    assert "failed" not in added.text
    assert "Add demo data" not in client.get("/u/ana").text
    removed = client.post("/demo/remove")
    assert "The demo data is removed" in removed.text
    assert "demo" not in engine.users()


LIFE_MS = 90_000
"""A whole life is made and imported, beside other tests."""


def test_the_page_of_the_demo_is_all_the_demos(chromium: Browser, engine: perdure.Engine) -> None:
    with serving(engine) as site, looking(chromium, site.url) as look:
        page = look("/u/ana")
        page.set_default_timeout(LIFE_MS)
        page.get_by_role("button", name="Add demo data").click()
        page.get_by_role("button", name="Remove demo data").wait_for()
        assert page.locator("header .who").inner_text().split()[-1] == "demo"
        assert (page.get_by_role("link", name="Memories", exact=True).get_attribute("href") or "").startswith("/u/demo/")


def test_only_who_may_change_the_whole_store_adds_the_demo(engine: perdure.Engine) -> None:
    key = engine.api_keys.create("a key", permission="write").secret
    assert visitor(engine, key).post("/demo/add").status_code == 403
    assert visitor(engine, TOKEN).post("/demo/everything").status_code == 422
    assert visitor(engine, TOKEN).post("/demo/remove").status_code == 404


def test_what_agents_propose_is_counted_until_it_is_decided(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.remember("Lives in Porto", attribute="lives_in", value="Porto")
    ana.as_agent().remember("Lives in Minsk", attribute="lives_in", value="Minsk", corrects=True)
    client = visitor(engine, TOKEN)
    assert "1 proposal<" in client.get("/u/ana").text
    assert "<span>proposed</span>" in client.get("/u/ana").text
    [waiting] = ana.memories.proposals()
    ana.memories.reject(waiting.statement.id)
    assert "1 proposal<" not in client.get("/u/ana").text
