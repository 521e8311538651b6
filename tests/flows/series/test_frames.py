"""Series as tables of the libraries people analyse data with."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Any

import pytest

import perdure

ENTRIES = [
    {"id": 1, "timestamp": "2025-01-01T10:00:00Z", "who": "bob", "n": 3, "deep": {"a": [1]}},
    {"id": 2, "timestamp": "2025-01-02T10:00:00Z", "who": "cyd", "extra": None},
]


@pytest.fixture
def series() -> Any:
    series = perdure.open("memory:").memory("ana").series("s")
    series.merge(ENTRIES)
    return series


def test_pandas_gets_a_frame_with_timestamps(series: Any) -> None:
    frame = series.to_pandas()
    assert list(frame["who"]) == ["bob", "cyd"]
    assert frame["_at"].min().to_pydatetime() == datetime(2025, 1, 1, 10, tzinfo=UTC)
    assert frame["deep"][0] == '{"a": [1]}'
    assert list(series.to_pandas(start="2025-01-02")["_id"]) == ["2"]


def test_polars_gets_a_frame_with_timestamps(series: Any) -> None:
    frame = series.to_polars()
    assert frame["who"].to_list() == ["bob", "cyd"]
    assert frame["n"].to_list() == [3, None]
    assert frame["_at"].min() == datetime(2025, 1, 1, 10, tzinfo=UTC)


def test_arrow_gets_a_table(series: Any) -> None:
    table = series.to_arrow()
    assert table.column("who").to_pylist() == ["bob", "cyd"]
    assert str(table.schema.field("_at").type).startswith("timestamp[us")


def test_an_empty_series_is_an_empty_table() -> None:
    series = perdure.open("memory:").memory("ana").series("none")
    assert len(series.to_pandas()) == series.to_polars().height == series.to_arrow().num_rows == 0


@pytest.mark.parametrize(("library", "call"), [("pandas", "to_pandas"), ("polars", "to_polars"), ("pyarrow", "to_arrow")])
def test_a_library_that_is_not_there_is_named(series: Any, monkeypatch: pytest.MonkeyPatch, library: str, call: str) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(perdure.Unsupported, match=f"pip install {library}"):
        getattr(series, call)()
