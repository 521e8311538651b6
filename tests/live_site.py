"""A live server in this process, and a browser's window on it in which whatever goes wrong is noted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from playwright.sync_api import Browser, Page, expect

import perdure
from perdure.interfaces.server import Options, build

START_S = 30
WAIT_MS = 20_000
expect.set_options(timeout=WAIT_MS)


@dataclass(frozen=True)
class Site:
    """A server that runs in this process, and the engine behind it."""

    url: str
    engine: perdure.Engine


@contextmanager
def serving(engine: perdure.Engine, options: Options | None = None) -> Iterator[Site]:
    """A server over an open engine, in a thread of this process."""
    server = uvicorn.Server(
        uvicorn.Config(build(engine, options or Options(no_auth=True)), host="127.0.0.1", port=0, log_level="error", ws="none")
    )
    started = threading.Event()
    startup = server.startup

    async def told(sockets: Any = None) -> None:
        await startup(sockets)
        started.set()

    server.startup = told  # type: ignore[method-assign]  # there is no other way to be told
    thread = threading.Thread(target=server.run, name="site", daemon=True)
    thread.start()
    assert started.wait(START_S), "the server did not start"
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Site(f"http://127.0.0.1:{port}", engine)
    server.should_exit = True
    thread.join(START_S)


@dataclass
class Watched:
    """What a page did that it should not."""

    url: str
    wrong: list[str] = field(default_factory=list)
    failing: bool = False
    """An answer with an error is expected; the browser itself complains of it."""

    def watch(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.wrong.append(f"script: {error}"))
        page.on("requestfailed", self._failed)
        page.on(
            "request",
            lambda request: (
                None if request.url.startswith((self.url, "data:")) else self.wrong.append(f"foreign: {request.url}")
            ),
        )
        page.on("dialog", self._dialog)

    def _console(self, said: Any) -> None:
        if said.type in ("error", "warning") and not (self.failing and "Failed to load resource" in said.text):
            self.wrong.append(f"console: {said.text}")

    def _failed(self, request: Any) -> None:
        # A page that is left takes back what it still waits for.
        if "ERR_ABORTED" not in str(request.failure):
            self.wrong.append(f"failed: {request.url} {request.failure}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()


@contextmanager
def looking(chromium: Browser, url: str) -> Iterator[Callable[..., Page]]:
    """The same for any server."""
    watched = Watched(url)
    pages: dict[tuple[object, ...], Page] = {}

    def opened(path: str, *, width: int = 1280, dark: bool = False, scripts: bool = True, failing: bool = False) -> Page:
        watched.failing = failing
        kind = (width, dark, scripts)
        if kind not in pages:
            context = chromium.new_context(
                viewport={"width": width, "height": 800},
                color_scheme="dark" if dark else "light",
                java_script_enabled=scripts,
                reduced_motion="reduce",
            )
            context.set_default_timeout(WAIT_MS)
            pages[kind] = context.new_page()
            watched.watch(pages[kind])
        page = pages[kind]
        answer = page.goto(url + path)
        assert answer is not None
        assert answer.status == 200, f"{path}: {answer.status}"
        return page

    yield opened
    for page in pages.values():
        page.context.close()
    assert watched.wrong == []
