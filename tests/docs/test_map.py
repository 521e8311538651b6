"""The map of the code is true: the picture and the table of shelves are drawn from the source, and every path that is named exists."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import map as shelf_map
from perdure.settings import GROUPS, Settings

ROOT = Path(__file__).parents[2]
ARCHITECTURE, CONTRIBUTING, WORDS = ROOT / "docs" / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "DOMAIN.md"
STARTS = (ROOT, ROOT / "src" / "perdure", ROOT / "docs")
"""Where the paths on a page may start."""
CODE = re.compile(r"```.*?```|`([^`\n]+)`", re.DOTALL)
PATH = re.compile(r"[\w.-]*/[\w./-]*|[\w-]+\.(?:py|md|sql|toml|txt|svg)")
ELSEWHERE = {".venv/bin/python", "build/site", "adapters/sqlite/migrations/NNNN_name.sql"}
"""What a build makes, and the example of a name."""
SVG = "{http://www.w3.org/2000/svg}"
HEIGHT_MAX, TEXT_MIN = 860, 11


def test_the_picture_is_what_the_code_says() -> None:
    assert shelf_map.PICTURE.read_text(encoding="utf-8") == shelf_map.picture(), "run `python tools/map.py`"


def test_the_table_of_shelves_is_what_the_code_says() -> None:
    assert shelf_map.table() in ARCHITECTURE.read_text(encoding="utf-8"), "run `python tools/map.py`"


def test_every_shelf_says_what_it_holds() -> None:
    shelves = [shelf.name for shelf in shelf_map.members() if shelf.layer in shelf_map.ORDERED and not shelf.is_module]
    assert [shelf for shelf in shelves if not shelf_map.meaning(shelf)] == []


def test_the_picture_can_be_read() -> None:
    drawn = ET.fromstring(shelf_map.picture())
    assert int(drawn.attrib["width"]) <= 1100
    assert int(drawn.attrib["height"]) <= HEIGHT_MAX
    assert all(int(size) >= TEXT_MIN for size in re.findall(r"(\d+)px", drawn.findtext(f"{SVG}style") or "") if size)
    assert "prefers-color-scheme: dark" in (drawn.findtext(f"{SVG}style") or "")
    assert all(float(line.attrib["y1"]) < float(line.attrib["y2"]) for line in drawn.iter(f"{SVG}line"))


def test_every_shelf_has_its_words() -> None:
    """The nouns that the folders are named by are told on one page, which says where each section lies in the code."""
    said = re.findall(r"^In the code: (.+)\.$", WORDS.read_text(encoding="utf-8"), re.MULTILINE)
    named = {path for line in said for path in re.findall(r"`([^`]+)`", line)}
    shelves = {
        f"{shelf.layer}/{shelf.name}/"
        for shelf in shelf_map.members()
        if shelf.layer in shelf_map.ORDERED and not shelf.is_module
    }
    assert shelves - named == set()
    assert [path for path in named if not exists(path)] == []


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=lambda page: page.name)
def test_every_path_that_the_page_names_exists(page: Path) -> None:
    words = [word for found in CODE.finditer(page.read_text(encoding="utf-8")) for word in (found[1] or "").split()]
    named = [word for word in words if PATH.fullmatch(word)]
    assert len(named) > 20
    assert [name for name in named if name not in ELSEWHERE and not exists(name)] == []


def exists(name: str) -> bool:
    """Whether it is there, counted from one of the starts; a name alone may lie anywhere in the package."""
    return any((start / name).exists() for start in STARTS) or ("/" not in name and any(STARTS[1].rglob(name)))


def test_every_setting_is_read_somewhere() -> None:
    """Beside the module that declares it: a key that nothing reads promises what nobody keeps."""
    sources = [path.read_text(encoding="utf-8") for path in STARTS[1].rglob("*.py") if path.name != "settings.py"]
    keys = {one.name for one in (*fields(Settings), *fields(GROUPS["limits"]))} - GROUPS.keys()
    read = {name for text in sources for name in re.findall(r"\.(\w+)", text)}
    assert sorted(keys - read) == []
