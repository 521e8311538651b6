"""All pages together: each loads cleanly, can be used by everybody and on a phone, obeys no text that it shows, and is drawn."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from perdure.interfaces.demo import data as demo_data

Look = Callable[..., Page]
USER = demo_data.USER
PAGES = {
    "home": "",
    "chat": "/chat",
    "search": "/search?q=who+is+Rui",
    "memories": "/memories",
    "memory-list": "/memories?view=list",
    "timeline": "/timeline",
    "graph": "/entities/graph",
    "entities": "/entities",
    "todos": "/todos",
    "lessons": "/lessons",
    "lesson-book": "/lessons/book",
    "context": "/context?goal=Plan+my+long+run+for+the+Harbour+Half",
    "conversations": "/conversations",
    "series": "/series",
    "state": "/state",
    "journal": "/journal",
    "jobs": "/jobs",
    "data": "/data",
    "status": "/status",
    "forget": "/forget?entity=person:rui",
}
"""The first page of each part. What they list is looked at, too: the first link of each list."""
DETAILS = ("memory-list", "entities", "conversations", "series", "state")
PICTURED = {
    "home": "",
    "chat": "/chat",
    "memories": "/memories",
    "search": "/search?q=who+is+Rui",
    "context": "/context?goal=Plan+my+long+run+for+the+Harbour+Half",
    "series-detail": "/series/kudos_timeseries",
}
"""What the documentation shows."""
ROOT = Path(__file__).parents[2]
PICTURE_BYTES_MAX = 150_000
PICTURE_HEIGHT = 620
PHONE = 360
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"><svg onload=alert(3)>{{7*7}}"
TURNED = EVIL + "\u202eevil"
"""With a mark that turns the order of reading. Knowledge refuses it; what was said, and state, may hold it."""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def details(page: Page, name: str) -> str | None:
    """The address of the first thing that a page lists."""
    part = "memories" if name == "memory-list" else name
    found = page.locator(f"main [data-rows] a[href*='/{part}/'], main table a[href*='/{part}/']")
    return found.first.get_attribute("href") if found.count() else None


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_clean_for_everybody_in_light_and_dark_and_on_a_phone(look: Look, name: str) -> None:
    page = look(f"/u/{USER}{PAGES[name]}")
    _checked(page, name)
    if name in DETAILS and (more := details(page, name)) is not None:
        _checked(look(more), f"{name}, in detail")


def _checked(page: Page, name: str) -> None:
    for scheme, width in (("light", 1280), ("dark", PHONE)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 700})
        found = Axe().run(page).response["violations"]
        serious = [_told(one) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], f"{name}, {scheme}"
        assert page.evaluate(SIDEWAYS) == [], f"{name} scrolls sideways at {width}"
        assert page.evaluate(TINY) == [], f"{name} has text that is too small at {width}"
    assert page.evaluate(OVERFLOW) <= 0, f"{name} is wider than a phone: {page.evaluate(WIDE)}"
    assert page.locator("h1").count() == 1, name


def _told(violation: dict[str, Any]) -> str:
    nodes = [node["html"][:160] for node in violation["nodes"][:3]]
    return f"{violation['id']}: {violation['help']} at {nodes}"


WIDE = """[...document.querySelectorAll("main *")].filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .slice(0, 4).map((one) => one.outerHTML.slice(0, 120))"""


SIDEWAYS = """[...document.querySelectorAll("main *")].filter((one) => /auto|scroll/.test(getComputedStyle(one).overflowX)
  && one.scrollWidth > one.clientWidth + 1 && one.tagName !== "TEXTAREA").map((one) => one.outerHTML.slice(0, 120))"""
TINY = """[...document.querySelectorAll("main *")].filter((one) => {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !one.checkVisibility() || one.closest("title")) return false;
    const scale = one.ownerSVGElement ? Math.abs(one.getScreenCTM().a) : 1;
    return parseFloat(getComputedStyle(one).fontSize) * scale < 10.99;
  }).map((one) => one.outerHTML.slice(0, 120))"""
"""What scrolls sideways in a box of its own, and words that are shown smaller than 11 pixels."""


@pytest.fixture(scope="module")
def evil(site: Any) -> str:
    """A user all of whose texts would like to be run."""
    user = "<b onmouseover=alert(0)>eve/%2F?#&"
    memory = site.engine.memory(user)
    now = datetime.now(UTC)
    memory.append("user", f"I like {TURNED}", metadata={"name": TURNED})
    memory.append("assistant", TURNED)
    memory.remember(
        f"Likes {EVIL}", "PEOPLE", entities=[f"person:{EVIL}", "person:Bob"], attribute="likes", value=EVIL, pinned=True
    )
    memory.remember(f"Bob says {EVIL}", "PEOPLE", entities=["person:Bob"])
    memory.entities.alias("person:Bob", f"Bobby {EVIL}")
    memory.todos.add(f"Do {EVIL}", due_at=now)
    memory.todos.tasks.start(f"Doing {TURNED}")
    memory.instructions.add(f"Always write {EVIL}")
    memory.lessons.add(f"Answer with {EVIL[:60]} only when asked", "user")
    memory.state.save(f"key {EVIL}", {"a": TURNED, TURNED: [TURNED]})
    memory.state.save(f"key {EVIL}", {"a": TURNED * 2})
    series = memory.series(f"series {EVIL}", id_field="id", timestamp_field="at", description=TURNED)
    series.merge([{"id": EVIL, "at": now.isoformat(), "what": TURNED}], window=(now - timedelta(hours=5), now))
    site.engine.process(5)
    return user


def test_no_text_from_memory_is_ever_run(look: Look, evil: str) -> None:
    base = f"/u/{quote(evil, safe='')}"
    seen: set[str] = set()
    for name, path in PAGES.items():
        page = look(base + path.replace("who+is+Rui", quote(EVIL)))
        _inert(page, name)
        links = page.locator("main a[href^='/u/']").evaluate_all("all => all.map((one) => one.getAttribute('href'))")
        new = [link for link in links if link.split("?")[0] not in seen][:3]
        seen |= {link.split("?")[0] for link in new}
        for link in new:
            _inert(look(link), f"{name} → {link[:80]}")
    page = look(f"{base}/context?goal={quote(EVIL)}")
    page.get_by_role("button", name="Show").click()
    page.locator(".result").wait_for()
    _inert(page, "context, shown")


def _inert(page: Page, name: str) -> None:
    """Nothing of the text became markup. Whether a script ran, the watcher of `look` knows."""
    assert page.locator("img, main script, svg[onload], [onerror], [onmouseover]").count() == 0, name
    assert "\u202e" not in page.content(), name


def test_the_first_page_of_a_new_user_tells_how_to_begin(look: Look) -> None:
    page = look("/u/nobody-yet")
    text = page.locator("main").inner_text()
    assert "No memories yet" in text
    assert "mcpServers" in text
    assert "curl" in text
    assert "import perdure" in text
    page.goto(page.url.partition("/u/")[0] + "/")
    assert page.url.endswith(f"/u/{USER}") or "/u/" in page.url


def test_what_is_not_there_is_told_in_words(look: Look, site: Any) -> None:
    page = look(f"/u/{USER}", failing=True)
    answer = page.goto(f"{site.url}/u/{USER}/memories/people%7Cperson%7Cnobody%7Cfact")
    assert answer is not None
    assert answer.status == 404
    assert "there is no memory" in page.locator("[data-problem]").inner_text()
    assert "Traceback" not in page.content()


def test_what_the_documentation_shows_is_drawn(look: Look, pictures: Path) -> None:
    pictures.mkdir(parents=True, exist_ok=True)
    for name, path in PICTURED.items():
        page = look(f"/u/{USER}{path}")
        if name == "context":
            page.get_by_role("button", name="Show").click()
            page.locator(".result").wait_for()
        if name == "chat":
            page.get_by_text("Learned").first.evaluate("(one) => one.scrollIntoView({block: 'center'})")
        _drawn(page, pictures / f"{name}.png")


def test_every_picture_of_a_page_is_shown_in_the_documentation() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    shown = {name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text(encoding="utf-8"))}
    assert shown == set(PICTURED) == {path.stem for path in (ROOT / "docs" / "images").glob("*.png")}


def _drawn(page: Page, path: Path) -> None:
    page.evaluate("document.activeElement?.blur()")
    width = page.evaluate("innerWidth")
    page.screenshot(path=path, clip={"x": 0, "y": 0, "width": width, "height": PICTURE_HEIGHT})
    # Fonts differ from machine to machine, and so do sizes: only what is kept has to be small.
    assert path.stat().st_size < PICTURE_BYTES_MAX or "SCREENSHOTS_DIR" not in os.environ, path.name
