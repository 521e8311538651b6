"""The documentation as a site: it builds without a warning, its links lead somewhere, and it asks nothing of other servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from playwright.sync_api import sync_playwright

import browser

ROOT = Path(__file__).parents[2]
LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "video": "src", "object": "data"}
"""Which attribute makes a browser fetch something by itself."""
FOREIGN = re.compile(r"^(?:[a-z]+:)?//", re.IGNORECASE)
CSS_URL = re.compile(r"(?:url\(|@import\s+)[\"']?((?:https?:)?//[^\"')]+)")
SECTIONS = ["Start", "How-to", "Reference", "Explanation", "Decisions", "About"]

pytestmark = pytest.mark.slow


@dataclass
class PageOfSite(HTMLParser):
    """What a built page links to, loads by itself, and can be linked at."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.names |= {told[name] for name in ("id", "name") if name in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        elif (loaded := told.get(LOADED.get(tag, ""))) and told.get("rel") != "canonical":
            self.loads.append(loaded)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, PageOfSite]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = PageOfSite()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_every_page_is_in_the_site(site: Path, pages: dict[Path, PageOfSite]) -> None:
    written = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")}
    assert written <= {path.relative_to(site) for path in pages}


def test_the_navigation_has_the_five_parts_and_what_the_project_says_of_itself(site: Path) -> None:
    shown = re.findall(r'<span class="md-ellipsis">\s*([^<]+?)\s*<', (site / "index.html").read_text(encoding="utf-8"))
    assert [title for title in dict.fromkeys(shown) if title in SECTIONS] == SECTIONS


def test_every_link_leads_somewhere(pages: dict[Path, PageOfSite]) -> None:
    wrong = []
    for path, page in pages.items():
        for target in page.links + page.loads:
            if FOREIGN.match(target) or target.startswith(("mailto:", "data:", "javascript:")) or path.name == "404.html":
                continue  # the page for what is not there is served for every path, so its links begin at the root
            place, _, name = unquote(target).partition("#")
            file = (path.parent / place.partition("?")[0]).resolve() if place else path
            if file.is_dir():
                file /= "index.html"
            if not file.exists() or (name and file in pages and name not in pages[file].names):
                wrong.append(f"{path.name}: {target}")
    assert wrong == []


def test_no_page_loads_anything_from_elsewhere(site: Path, pages: dict[Path, PageOfSite]) -> None:
    assert {target for page in pages.values() for target in page.loads if FOREIGN.match(target)} == set()
    styles = {path.name: CSS_URL.findall(path.read_text(encoding="utf-8")) for path in site.rglob("*.css")}
    assert {name: found for name, found in styles.items() if found} == {}


def test_search_works_when_the_site_is_opened_from_a_folder(site: Path) -> None:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=browser.find(), args=list(browser.ARGUMENTS))
        try:
            page = chromium.new_page()
            page.set_default_timeout(120_000)
            page.goto((site / "how-to" / "mcp.html").as_uri())
            page.locator("input[name=query]").click()
            page.keyboard.type("coverage ledger")
            page.wait_for_selector(".md-search-result__item", state="attached")
            assert page.locator(".md-search-result__item").count() > 0
        finally:
            chromium.close()


def test_language_models_find_a_list_of_the_pages_and_the_pages_in_full(site: Path) -> None:
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# perdure\n\n> ")
    targets = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", listed, re.MULTILINE)
    assert len(targets) > 40
    assert [target for target in targets if not (site / target).is_file()] == []
    full = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert (ROOT / "docs" / "start.md").read_text(encoding="utf-8").strip() in full
    assert "# Decisions" not in full
