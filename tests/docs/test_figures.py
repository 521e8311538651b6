"""The speed figures of the pages are those of bench/results.json, and each says of which commit it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import figures

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", figures.PAGES)
def test_the_table_of_a_page_is_what_was_measured(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert figures.BLOCK.search(text)
    # How many commits there were since depends on where this runs: that is renewed when the tables are written.
    assert figures.SINCE.sub("", text) == figures.SINCE.sub("", figures.written(page, text)), "run `python tools/figures.py`"


def test_each_figure_says_what_was_measured_when_and_of_which_code() -> None:
    declared, results = figures.declared(), figures.results()
    assert results.keys() <= declared.keys()
    for name, one in declared.items():
        assert [path for path in one.code if not (ROOT / path).exists()] == [], name
        assert (ROOT / one.command.split()[1]).is_file(), name
    for one in results.values():
        assert one.commit
        assert one.date
        assert one.machine
        assert (one.low is None) == (one.high is None)


def test_a_figure_whose_code_was_changed_since_says_so_and_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = tmp_path / "src" / "a.py"
    code.parent.mkdir()
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, code, "one = 1\n")
    measured = git(tmp_path, "rev-parse", "HEAD")
    (tmp_path / "figures.toml").write_text(
        '[a]\nwhat = "a call"\nunit = "ms"\ncommand = "python a.py"\ntable = "rows"\nrow = {}\nvalue = "p50"\ncode = ["src"]\n'
    )
    one = {"value": 1.5, "beside": "", "n": 10, "commit": measured, "date": "2026-01-01", "machine": "any", "load": 0.1}
    (tmp_path / "results.json").write_text(json.dumps({"a": one}))
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "DECLARED", tmp_path / "figures.toml")
    monkeypatch.setattr(figures, "RESULTS", tmp_path / "results.json")
    assert figures.stale() == {}
    assert f"| a call | 1.50 ms |  |  | {measured} |" in figures.table("numbers")
    commit(tmp_path, tmp_path / "other.py", "unrelated = 1\n")
    assert figures.stale() == {}
    commit(tmp_path, code, "one = 2\n")
    assert figures.stale() == {"a": 1}
    assert f"| {measured}, 1 change since |" in figures.table("numbers")
    monkeypatch.setattr(sys, "argv", ["figures.py", "stale"])
    assert figures.main() == 1


def test_nothing_is_measured_on_a_busy_machine(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(figures, "busyness", lambda: 2.0)
    monkeypatch.setattr(figures.subprocess, "run", lambda *_args, **_named: pytest.fail("it was run"))
    assert figures.measure(["append"]) == 1
    assert "busy machine: a loop takes 2.00 × its processor time" in capsys.readouterr().out


def test_what_stands_beside_a_figure_leaves_out_peers_that_were_not_there() -> None:
    declared = figures.declared()["mcp_search"]
    ratio = {"value": 3.0, "low": 2.5, "high": 3.5}
    ours = {"what": "MCP: search: p50 ms", "figure": {"value": 4.0, "low": 4.0, "high": 4.0}}
    alone = figures._result(declared, {"figures": [ours]})
    assert alone.beside == ""
    assert figures._said(declared, alone) == "4.00 ms"
    both = figures._result(declared, {"figures": [ours, {"what": "npm server-memory: search / perdure", "figure": ratio}]})
    assert "3.00 [2.50, 3.50] ×" in both.beside


def test_a_figure_that_nobody_declared_is_named() -> None:
    with pytest.raises(SystemExit, match="no such figure: nothing"):
        figures.measure(["nothing"])


def commit(folder: Path, file: Path, text: str) -> None:
    file.write_text(text)
    git(folder, "add", str(file))
    git(folder, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "a change")


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()
