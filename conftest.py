"""Runs the Python examples of README.md and docs/: one page is one test, so that its blocks stay together and in order.

Sybil finds and runs the blocks. Its own pytest item is one per block, which pytest-xdist would deal out to different
processes, although the blocks of a page share their names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sybil import Sybil
from sybil.example import SybilFailure
from sybil.parsers.markdown import PythonCodeBlockParser

PAGES = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    # The first needs a server, and tests/docs runs it; the second is no page of the documentation.
    excludes=["docs/how-to/postgresql.md", "bench/README.md"],
)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Page | None:
    return Page.from_parent(parent, path=file_path) if PAGES.should_parse(file_path) else None


class Page(pytest.File):
    """A page of the documentation."""

    def collect(self) -> Iterator[Examples]:
        if any(PAGES.parse(self.path).examples()):
            examples = Examples.from_parent(self, name="examples")
            examples.add_marker(pytest.mark.slow)
            yield examples


class Examples(pytest.Item):
    """All examples of a page, in order, in an empty directory of their own."""

    def runtest(self) -> None:
        with a_home_of_their_own():
            for example in PAGES.parse(self.path).examples():
                try:
                    example.evaluate()
                except Exception as error:
                    error.add_note(f"in the example at {self.path}:{example.line}")
                    raise

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> object:
        if isinstance(excinfo.value, SybilFailure):
            return f"{excinfo.value}\n{''.join(excinfo.value.__notes__)}"
        return super().repr_failure(excinfo, style)  # type: ignore[arg-type]

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, "examples"


@contextmanager
def a_home_of_their_own() -> Iterator[None]:
    """An empty working directory and home; no setting of the person who runs the tests."""
    with TemporaryDirectory(prefix="perdure-docs-") as folder, pytest.MonkeyPatch.context() as patch, chdir(folder):
        for name in [*os.environ]:
            if name.startswith("PERDURE_"):
                patch.delenv(name)
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
            patch.setenv(name, folder)
        yield
