"""A live server on the demo data, and a browser that looks at it.

def test_something(look):
    page = look("/u/demo")                # a page of a real Chromium; console errors and foreign requests fail the test
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

import browser as browsers
import perdure
from live_site import Site, looking, serving
from perdure.interfaces.demo import data as demo_data


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with perdure.open(f"sqlite:///{tmp_path_factory.mktemp('site')}/demo.db") as engine:
        demo_data.fill(engine)
        with serving(engine) as site:
            yield site


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    # No longer than a module: while it is open, nothing else in this thread can run a loop of its own.
    try:
        path = browsers.find()
    except browsers.NoBrowser as error:
        raise pytest.fail.Exception(str(error), pytrace=False) from None
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=path, args=list(browsers.ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture
def look(chromium: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Open a page, in one window for all that are looked at in the same way; `width`, `dark`, `scripts` and `failing` say how."""
    with looking(chromium, site.url) as opened:
        yield opened


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: a folder that is named by hand, or one that is thrown away."""
    import os

    named = os.environ.get("SCREENSHOTS_DIR")
    return Path(named) if named else tmp_path_factory.mktemp("pictures")
