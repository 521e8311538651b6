"""`/docs`: the HTTP API is drawn from files that are part of the package, tried as the reader, with an example for each call."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

import perdure
from live_site import Site, looking, serving
from perdure.interfaces.server import Options, build

Look = Callable[..., Page]
TOKEN = "pdr_" + "t" * 43
WAIT_MS = 120_000
"""The bundle is large, and the machine may be busy."""


def opened(page: Page, tag: str, operation: str) -> Any:
    """The block of an operation, unfolded."""
    page.locator("#api[data-ready]").wait_for(timeout=WAIT_MS)
    page.locator(f"#operations-tag-{tag}").click()
    block = page.locator(f"#operations-{tag}-{operation}")
    block.locator(".opblock-summary-control").click()
    expect(block.locator(".execute")).to_be_visible(timeout=WAIT_MS)
    return block


def tried(block: Any) -> Any:
    block.locator(".execute").click()
    found = block.locator(".live-responses-table .response-col_status").nth(1)
    expect(found).to_be_visible(timeout=WAIT_MS)
    return json.loads(block.locator(".live-responses-table .response-col_description pre").first.inner_text())


def test_a_call_is_tried_with_its_example(look: Look, site: Site) -> None:
    site.engine.memory("ana").remember("Likes tea")
    page = look("/docs")
    block = opened(page, "knowledge", "listMemories")
    expect(block.locator("tr[data-param-name=user] input")).to_have_value("ana")
    assert tried(block)["items"][0]["content"] == "Likes tea"


def test_a_change_is_made_with_the_pages_own_word(look: Look, site: Site) -> None:
    page = look("/docs")
    block = opened(page, "knowledge", "remember")
    expect(block.locator("textarea.body-param__text")).to_have_value(re.compile("Lives in Austin"))
    assert tried(block)["verdict"] in ("added", "mentioned")
    assert any(one.content == "Lives in Austin" for one in site.engine.memory("ana").memories.list())


def test_the_readers_token_is_filled_in(chromium: Browser, tmp_path: Path) -> None:
    with (
        perdure.open(f"sqlite:///{tmp_path}/one.db") as engine,
        serving(engine, Options(token=TOKEN)) as site,
        looking(chromium, site.url) as look,
    ):
        page = look(f"/login?token={TOKEN}&next=/docs")
        page.locator("#api[data-ready]").wait_for(timeout=WAIT_MS)
        assert "Your token is filled in" in page.locator("#page").inner_text()
        block = opened(page, "knowledge", "listEntities")
        assert tried(block)["items"] == []
        expect(block.locator(".curl")).to_contain_text(f"Authorization: Bearer {TOKEN}")


def test_the_api_page_is_clean_in_both_themes_and_on_a_phone(look: Look) -> None:
    page = look("/docs")
    opened(page, "todos", "listTodos")
    for scheme, width in (("light", 1280), ("dark", 390)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 700})
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        found = Axe().run(page).response["violations"]
        serious = [
            (one["id"], [node["html"][:120] for node in one["nodes"][:2]])
            for one in found
            if one["impact"] in ("serious", "critical") and one["id"] in ("color-contrast", "label", "button-name", "link-name")
        ]
        assert serious == [], scheme


def test_every_operation_has_an_example() -> None:
    with perdure.open("memory:") as engine:
        told = build(engine, Options(no_auth=True)).openapi()
    calls = [call for item in told["paths"].values() for call in item.values()]
    without = [
        (call["operationId"], one["name"])
        for call in calls
        for one in call.get("parameters", ())
        if one.get("required") and "example" not in one
    ]
    without += [
        (call["operationId"], media)
        for call in calls
        for media, one in call.get("requestBody", {}).get("content", {}).items()
        if "example" not in one and media != "application/octet-stream"
    ]
    assert len(calls) > 80
    assert without == []


@pytest.mark.parametrize("name", ["swagger-ui-bundle.js", "swagger-ui.css"])
def test_what_is_shipped_names_its_licence(name: str) -> None:
    root = Path(__file__).parents[2]
    assert name in (root / "NOTICE").read_text()
    static = root / "src" / "perdure" / "interfaces" / "web" / "static"
    assert (static / "swagger-ui.LICENSE").stat().st_size > 1_000
    assert b"sourceMappingURL" not in (static / name).read_bytes()[-2_000:]
