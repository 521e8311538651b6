"""Writes docs/reference/integrations.md from runs of the frameworks' suites: version, suite, how much passed, date.

python tools/integrations.py                runs all suites, then writes
python tools/integrations.py langgraph      runs the tests that name it, and leaves the other rows as they are
python tools/integrations.py --kept         runs nothing: writes what the tests have kept while they ran

A row comes from a command that `tests/integrations/framework.py` runs and that says `N passed`: a new adapter needs no edit.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import frameworks

PAGE = frameworks.ROOT / "docs" / "reference" / "integrations.md"
HEAD = """# Integrations

What each adapter was tried with. `python tools/integrations.py` runs the suites, each in the environment of its framework,
and writes this page. The versions are those in `tests/integrations/constraints`; a test compares them.

| Extra | Version | Suite | Passed | Date |
|---|---|---|---|---|
"""
TAIL = """
How each is used, and CrewAI, smolagents, Agno and Strands through tools: [agent frameworks](../how-to/frameworks.md).
Of your own: [embedders, rerankers, extractors, summarisers, importers and stores](../how-to/plugins.md).
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One suite of one framework."""

    name: str
    version: str
    suite: str
    passed: int
    date: str

    def line(self) -> str:
        package = frameworks.FRAMEWORKS[self.name].requirements[0]
        return f"| `{self.name}` | {package} {self.version} | {self.suite} | {self.passed} | {self.date} |"


def rows(page: str) -> list[Row]:
    """The rows of a page."""
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in page.splitlines() if line.startswith("| `")]
    return [Row(one[0].split("`")[1], one[1].rpartition(" ")[2], one[2], int(one[3]), one[4]) for one in cells]


def kept_rows() -> list[Row]:
    """What the tests have kept while they ran."""
    return [
        Row(name, **json.loads(file.read_text()))
        for name in frameworks.FRAMEWORKS
        for file in (frameworks.FOLDER / name / "runs").glob("*.json")
    ]


def text(found: Iterable[Row], before: Iterable[Row]) -> str:
    """The page: new rows in the place of older ones of the same framework."""
    new = list(found)
    names = {row.name for row in new}
    order: Mapping[str, int] = {name: place for place, name in enumerate(sorted(frameworks.FRAMEWORKS))}
    all_rows = new + [row for row in before if row.name not in names and row.name in order]
    lines = [row.line() for row in sorted(all_rows, key=lambda row: (order[row.name], row.suite))]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def main(words: list[str]) -> int:
    if words != ["--kept"]:
        for name in words or frameworks.FRAMEWORKS:
            for old in (frameworks.FOLDER / name / "runs").glob("*.json"):
                old.unlink()
        wanted = ["-k", " or ".join(word.replace("-", "_") for word in words) + " or " + " or ".join(words)] if words else []
        tests = [sys.executable, "-m", "pytest", "-q", "-n", "0", str(Path("tests", "integrations")), *wanted]
        if failed := subprocess.run(tests, cwd=frameworks.ROOT, check=False).returncode:  # noqa: S603 - our own words
            return failed
    before = rows(PAGE.read_text()) if PAGE.is_file() else []
    PAGE.write_text(text(kept_rows(), before))
    print(f"{PAGE.relative_to(frameworks.ROOT)} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
