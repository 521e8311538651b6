"""P22: what is acknowledged is in the store that stands under its name; a file taken away under an open engine is noticed."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

import perdure

WORDS = "was removed or replaced while it was open"


def remove(path: Path) -> None:
    path.unlink()


def remove_all(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def replace_by_a_copy(path: Path) -> None:
    shutil.copy(path, f"{path}.copy")
    Path(f"{path}.copy").replace(path)


def replace_by_another_store(path: Path) -> None:
    other = path.with_name("other.db")
    perdure.open(f"sqlite:///{other}").close()
    other.replace(path)


def move_away(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


TAKEN = [remove, remove_all, replace_by_a_copy, replace_by_another_store, move_away]


@pytest.mark.parametrize("take", TAKEN)
@pytest.mark.parametrize("key", ["", "correct horse"])
def test_an_append_to_a_file_that_was_taken_away_is_refused(tmp_path: Path, take: Any, key: str) -> None:
    if key:
        pytest.importorskip("sqlcipher3")
    path = tmp_path / "a.db"
    with perdure.open(settings=perdure.Settings(url=f"sqlite:///{path}", encryption_key=key)) as engine:
        ana = engine.memory("ana")
        ana.append("user", "here")
        take(path)
        for _ in range(3):
            with pytest.raises(perdure.Unavailable, match=WORDS):
                ana.append("user", "lost")
        with pytest.raises(perdure.Unavailable, match=WORDS):
            ana.state.save("a", 1)


def test_no_connection_is_opened_to_another_file_beside_the_old_log(tmp_path: Path) -> None:
    """SQLite would move the log of the old file into the new one."""
    path = tmp_path / "a.db"
    engine = perdure.open(f"sqlite:///{path}")
    engine.memory("ana").append("user", "here")
    replace_by_another_store(path)
    before = path.read_bytes()
    with pytest.raises(perdure.Unavailable, match=WORDS):
        engine.purge()
    with pytest.raises(perdure.Unavailable, match=WORDS):
        engine.memory("ana").append("user", "lost")
    assert path.read_bytes() == before


def test_a_store_in_place_of_the_old_one_is_used_after_opening_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    engine = perdure.open(f"sqlite:///{path}")
    engine.memory("ana").append("user", "here")
    remove_all(path)
    with pytest.raises(perdure.Unavailable, match=WORDS):
        engine.memory("ana").append("user", "lost")
    engine.close()
    with perdure.open(f"sqlite:///{path}") as engine:
        engine.memory("ana").append("user", "new")
        assert [message.content for message in engine.memory("ana").messages()] == ["new"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells of a process's own locks")
def test_doctor_sees_that_another_sqlite_library_dropped_the_locks(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with perdure.open(f"sqlite:///{path}") as engine:
        engine.memory("ana").append("user", "here")
        assert engine.doctor().healthy
        other = sqlite3.connect(path)
        other.execute("SELECT count(*) FROM messages").fetchall()
        other.close()
        assert any("lost its locks" in line for line in engine.doctor().degraded)
    with perdure.open(f"sqlite:///{path}") as engine:
        assert engine.doctor().healthy
