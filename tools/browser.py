"""Finds a browser for the tests of the web page, by the first way that works; `python tools/browser.py` prints where it is.

One that is installed, else Playwright's own download, else the system's packages where this account may install them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "chrome", "microsoft-edge-stable")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
ARGUMENTS = (
    "--no-sandbox",
    "--headless=new",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-lcd-text",
)
"""What a browser is started with: without a window, and without a request of its own."""
DOWNLOAD_S, INSTALL_S, TRY_S = 300, 600, 60
REMEDY = (
    "no browser was found, and none could be fetched: install Chromium, for example with `apt-get install chromium`,"
    " or run `playwright install chromium`"
)


class NoBrowser(Exception):
    """There is none, and none can be had; the words name the one command to run."""


@cache
def find() -> str:
    """The path of a browser that starts."""
    for way in (_installed, _downloaded, _from_packages):
        for path in way():
            if _starts(path):
                return path
    raise NoBrowser(REMEDY)


def _installed() -> Iterator[str]:
    found = (shutil.which(name) for name in NAMES)
    yield from (path for path in found if path is not None)
    yield from (path for path in PLACES if Path(path).exists())
    yield from _of_playwright()


def _of_playwright() -> Iterator[str]:
    root = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    for pattern in ("chromium-*/chrome-linux*/chrome", "chromium-*/chrome-mac*/Chromium.app/Contents/MacOS/Chromium"):
        yield from sorted(map(str, root.glob(pattern)), reverse=True)


def _downloaded() -> Iterator[str]:
    if _done([sys.executable, "-m", "playwright", "install", "chromium"], DOWNLOAD_S):
        yield from _of_playwright()


def _from_packages() -> Iterator[str]:
    """Only where no password would be asked for."""
    if shutil.which("apt-get") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    _done(["apt-get", "update", "-q"], INSTALL_S, quiet)
    if _done(["apt-get", "install", "-q", "-y", "--no-install-recommends", "chromium"], INSTALL_S, quiet):
        yield from _installed()


def _done(command: list[str], seconds: float, environ: dict[str, str] | None = None) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, env=environ, check=False)  # noqa: S603 - our own words
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _starts(path: str) -> bool:
    return _done([path, "--version"], TRY_S)


if __name__ == "__main__":
    try:
        print(find())
    except NoBrowser as error:
        sys.exit(str(error))
