"""The picture and the table of how perdure grows are what bench/growth.json says, and the picture can be read on a telephone."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import figures
import growth

SVG = "{http://www.w3.org/2000/svg}"
TEXT_MIN, WIDTH_MAX, WIDTH_OF_A_SIGN = 11, 390, 6.0


def test_the_picture_is_what_was_measured() -> None:
    assert growth.PICTURE.read_text(encoding="utf-8") == growth.picture(), "run `python tools/growth.py`"


def test_the_table_of_the_page_is_what_was_measured() -> None:
    page = growth.PAGE.read_text(encoding="utf-8")
    assert growth.BLOCK.search(page)
    # How many commits there were since depends on where this runs: that is renewed when the table is written.
    assert figures.SINCE.sub("", page) == figures.SINCE.sub("", growth.written(page)), "run `python tools/growth.py`"


def test_the_file_says_what_was_measured_when_and_where() -> None:
    told = growth.measured()
    assert told["commit"]
    assert told["date"]
    assert told["machine"]
    assert told["conditions"]
    assert all(len(sizes) > 1 for sizes in growth.parts().values())


def test_the_picture_can_be_read() -> None:
    drawn = ET.fromstring(growth.picture())
    style = drawn.findtext(f"{SVG}style") or ""
    assert int(drawn.attrib["width"]) <= WIDTH_MAX
    assert all(int(size) >= TEXT_MIN for size in re.findall(r"(\d+)px", style))
    assert "prefers-color-scheme: dark" in style
    for text in drawn.iter(f"{SVG}text"):
        starts = text.attrib["class"].split()[-1] not in {"right", "middle"}
        assert not starts or float(text.attrib["x"]) + WIDTH_OF_A_SIGN * len(text.text or "") <= WIDTH_MAX, text.text


def test_labels_of_lines_that_end_close_together_stand_apart() -> None:
    at = growth._apart([10, 10, 11, 90], top=0, bottom=100)
    assert all(after - before >= growth.LABEL_STEP for before, after in itertools.pairwise(at))
    assert growth._apart([98, 99], top=0, bottom=100) == [86, 100]


def test_larger_sizes_and_calls_measured_since_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `bench/scale.py` writes: a million memories, memory of every process, and one call more."""
    told: dict[str, Any] = json.loads(growth.MEASURED.read_text(encoding="utf-8"))
    giant = json.loads(json.dumps(told["sqlite"]["one"][-1]))
    giant |= {"memories": 1_000_000, "file_mb": 4_800.0, "index_mb": 1_200.0, "process_mb": 815.0}
    giant["ms"] |= {
        "recall, first": {"p50": 1_900.0, "p95": 2_000.0},
        "recall, after an append": {"p50": 60_000.0, "p95": 61_000.0},
    }
    told["sqlite"]["one"].append(giant)
    told |= {"busy": 1.5}
    kept = tmp_path / "growth.json"
    kept.write_text(json.dumps(told), encoding="utf-8")
    monkeypatch.setattr(growth, "MEASURED", kept)
    growth.measured.cache_clear()
    try:
        drawn, table = growth.picture(), growth.table()
    finally:
        growth.measured.cache_clear()
    assert ">first recall 1,900<" in drawn
    assert ">after an append 60k<" in drawn
    assert ">1M<" in drawn
    assert "| 1 | 1,000,000 | 4,800 MB | 815 MB |" in table
    assert "60,000 / 61,000" in table
    assert "busy (1.5 × the processor time): for orientation only" in table
