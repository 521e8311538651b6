"""SQLite opens a file for reading only, without a word, if it may not write it at that moment: no such connection is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

import perdure
from perdure.adapters.sqlite import connections


def test_a_writer_that_could_be_opened_for_reading_only_does_not_outlive_its_first_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[apsw.Connection] = []

    def reading_only(path: str, **_: Any) -> apsw.Connection:
        opened.append(apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY))
        return opened[-1]

    with perdure.open(f"sqlite:///{tmp_path}/a.db") as engine:
        memory = engine.memory("ana")
        with monkeypatch.context() as patched:
            patched.setattr(connections, "connect", reading_only)
            with pytest.raises(perdure.Unavailable, match="may not be written"):
                memory.append("user", "one", id="m1")
        assert len(opened) == 2, "once more, in case it was the connection's fault alone"
        memory.append("user", "one", id="m1")
        assert [message.content for message in memory.messages()] == ["one"]
        assert engine.verify().findings == ()


def test_after_a_disk_error_what_was_read_with_before_is_not_read_with_again(tmp_path: Path) -> None:
    with perdure.open(f"sqlite:///{tmp_path}/a.db") as engine:
        pool = engine._store._connections  # type: ignore[attr-defined]
        with pool.reader() as first:
            pass
        with pool.reader() as second:
            assert second is first, "connections are kept"
        with pool.reader() as lent, pytest.raises(apsw.IOError), pool.reader():
            raise apsw.IOError
        with pool.reader() as fresh:
            assert fresh is not lent
