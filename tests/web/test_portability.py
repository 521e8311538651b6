"""Export, import and forget on the page: a look first, then the deed, then the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page, expect

import perdure
from live_site import Site, looking, serving
from perdure.interfaces.server import Options, build

Look = Callable[..., Page]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with perdure.open(f"sqlite:///{tmp_path}/data.db") as engine, serving(engine) as site:
        yield site


@pytest.fixture
def look(chromium: Browser, site: Site) -> Iterator[Look]:
    with looking(chromium, site.url) as opened:
        yield opened


def test_an_export_is_downloaded_and_imported_as_another_user(look: Look, site: Site, tmp_path: Path) -> None:
    site.engine.memory("ana").remember("Lives in Lisbon", attribute="lives_in", value="Lisbon")
    page = look("/u/ana/data")
    with page.expect_download() as loading:
        page.get_by_role("link", name="Download").click()
    file = tmp_path / "ana.jsonl"
    loading.value.save_as(file)

    page = look("/u/ben/data")
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Check").click()
    expect(page.locator("[data-report]")).to_contain_text("Preview: ")
    expect(page.locator("[data-report]")).to_contain_text("changes in the journal")
    expect(page.locator("[data-report]")).not_to_contain_text("record terms")
    assert site.engine.memory("ben").memories.list() == []
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("[data-report]")).to_contain_text("Imported: ")
    assert [one.content for one in site.engine.memory("ben").memories.list()] == ["Lives in Lisbon"]
    page.get_by_role("link", name="Open the journal").click()
    expect(page.locator("h1")).to_have_text("Journal")

    page = look("/u/ben/data", failing=True)
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("[data-report] [role=alert]")).to_contain_text("tick “Replace everything”")


def test_what_cannot_be_imported_is_told(look: Look, site: Site, tmp_path: Path) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps({"nothing": "of ours"}))
    page = look("/u/ana/data", failing=True)
    page.get_by_label("File").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("[data-report] [role=alert]")).to_be_visible()
    assert site.engine.memory("ana").memories.list() == []


def test_a_memory_is_forgotten_after_a_look_at_what_goes(look: Look, site: Site) -> None:
    ana = site.engine.memory("ana")
    said = ana.remember("Omar knows every buoy", "PEOPLE", entities=["person:Omar"]).statement
    ana.remember("Lives in Lisbon", attribute="lives_in", value="Lisbon")
    assert said is not None
    page = look(f"/u/ana/memories/{quote(said.memory, safe='')}")
    page.get_by_role("link", name="Forget", exact=True).click()
    expect(page.locator("main")).to_contain_text("Omar knows every buoy")
    assert len(ana.memories.list()) == 2
    page.get_by_role("button", name="Forget for good").click()
    expect(page.locator("#page > .notice[role=status]")).to_contain_text("Forgotten for good")
    expect(page.locator("h1")).to_have_text("Journal")
    gone = page.locator("main [data-rows] > li", has_text="Forgotten")
    expect(gone.first).to_contain_text("forgotten")
    expect(gone.get_by_role("button", name="Undo")).to_have_count(0)
    expect(
        page.locator("main [data-rows] > li", has_text="Lives in Lisbon").get_by_role("button", name="Undo")
    ).not_to_have_count(0)
    assert [one.content for one in ana.memories.list()] == ["Lives in Lisbon"]


def test_forgetting_works_without_scripts(look: Look, site: Site) -> None:
    ana = site.engine.memory("ana")
    ana.remember("Omar knows every buoy", "PEOPLE", entities=["person:Omar"])
    page = look("/u/ana/data", scripts=False)
    page.get_by_label("Person, place").fill("person:omar")
    page.get_by_role("button", name="Preview").first.click()
    page.get_by_role("button", name="Forget for good").click()
    expect(page.locator("h1")).to_have_text("Journal")
    assert ana.memories.list() == []


@pytest.fixture
def client() -> Iterator[TestClient]:
    with perdure.open("memory:") as engine:
        engine.memory("ana").remember("Lives in Lisbon", attribute="lives_in", value="Lisbon")
        yield TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1", headers={"Accept": "text/html"})


def forget(client: TestClient, **form: str) -> int:
    token = client.app.state.guard.csrf_local  # type: ignore[attr-defined]  # it is our application
    return client.post("/u/ana/forget", data={"_csrf": token, **form}, follow_redirects=False).status_code


def held(client: TestClient) -> int:
    engine: perdure.Engine = client.app.state.engine  # type: ignore[attr-defined]
    return len(engine.memory("ana").memories.list())


def test_everything_of_a_user_goes_only_when_the_name_is_written_out(client: TestClient) -> None:
    assert client.get("/u/ana/forget?everything=true").status_code == 200
    assert forget(client, everything="true", confirm="ben") == 422
    assert held(client) == 1
    assert forget(client, everything="true", confirm="ana") == 303
    assert held(client) == 0


def test_a_person_is_forgotten_by_name(client: TestClient) -> None:
    engine: perdure.Engine = client.app.state.engine  # type: ignore[attr-defined]
    engine.memory("ana").remember("Rui is a running friend", "PEOPLE", entities=["person:Rui Costa"])
    answer = client.get("/u/ana/forget?entity=rui+costa")
    assert answer.status_code == 200
    assert "Rui is a running friend" in answer.text
    assert 'name="entity" value="person:rui_costa"' in answer.text


def test_exactly_one_thing_is_forgotten(client: TestClient) -> None:
    assert client.get("/u/ana/forget").status_code == 422
    assert forget(client, entity="person:omar", everything="true", confirm="ana") == 422
    assert held(client) == 1


def test_what_is_not_known_is_told_before_it_is_forgotten(client: TestClient) -> None:
    assert "Nothing found" in client.get("/u/ana/forget?entity=person:nobody").text
    assert "Nothing found" in client.get("/u/ana/forget?memory=people%7Cperson%7Cnobody%7Cfact").text
