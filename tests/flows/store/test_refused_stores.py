"""A store that cannot be opened: the error names the file or the folder, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import perdure


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("milk, bread, and something for the cat")
    with pytest.raises(perdure.Corrupt, match=r"^the file .*notes\.db is not a SQLite database"):
        perdure.open(tmp_path / "notes.db")


def test_a_file_in_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(perdure.Unavailable, match=r"^the SQLite file .*missing/a\.db cannot be opened"):
        perdure.open(tmp_path / "missing" / "a.db")


def test_for_a_folder_a_whole_path_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(perdure.InvalidInput) as refused:
        perdure.open(tmp_path)
    assert str(refused.value).endswith(f"name the file in it, such as {tmp_path}/perdure.db")


def test_a_data_folder_that_cannot_be_made_is_told_and_no_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: (tmp_path / "file" / "perdure").mkdir())
    with pytest.raises(perdure.Unavailable, match=r"the data folder cannot be made \(Not a directory: .*`PERDURE_URL`"):
        perdure.open()
