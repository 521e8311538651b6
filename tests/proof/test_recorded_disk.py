"""The recording of P3: below every library that writes, complete or refused, and read as what happened."""

from __future__ import annotations

import random
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from proof.power_cut import Disk  # noqa: E402
from proof.recorded_disk import Ack, Recording, recorded  # noqa: E402


def recording_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Recording:
    """What a process does to the files of a folder that it is given the name of."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "written_here.py").write_text(
        "import os, sys\nfrom pathlib import Path\nfrom proof.recorded_disk import acknowledge\nroot = Path(sys.argv[1])\n"
        + textwrap.dedent(script)
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'modules'}:{ROOT}")
    root = tmp_path / "disk"
    root.mkdir()
    return recorded(root, "written_here", str(root.resolve()), bytes.decode)


def test_what_sqlcipher_writes_is_seen_and_what_it_synced_survives(tmp_path, monkeypatch):
    recording = recording_of(
        tmp_path,
        monkeypatch,
        """
        from sqlcipher3 import dbapi2
        held = dbapi2.connect(root / "s.db", isolation_level=None)
        held.execute("PRAGMA key = 'k'")
        held.execute("PRAGMA journal_mode = WAL")
        held.execute("PRAGMA synchronous = FULL")
        held.execute("CREATE TABLE t (x)")
        acknowledge(b"made")
        os._exit(0)
        """,
    )
    recording.check(Disk(recording.events).content())
    made = next(number for number, event in enumerate(recording.events) if isinstance(event, Ack))
    kept, cut = Disk(recording.events[:made]).cut(random.Random(1), "nothing")
    assert cut.pending == 0, "a commit of SQLCipher leaves nothing that is not synced"
    assert kept["s.db-wal"] == (recording.root / "s.db-wal").read_bytes()


def test_what_was_not_synced_is_lost_and_what_python_moved_is_followed(tmp_path, monkeypatch):
    recording = recording_of(
        tmp_path,
        monkeypatch,
        """
        (root / "deep").mkdir()
        with open(root / "deep" / "new", "wb") as file:
            file.write(b"synced")
            file.flush()
            os.fsync(file.fileno())
            os.replace(root / "deep" / "new", root / "name")
            for folder in (root / "deep", root):
                handle = os.open(folder, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
            file.write(b" and not")
        os.remove(root / "name")
        (root / "deep").rmdir()
        """,
    )
    assert Disk(recording.events).content() == {}
    recording.check({})
    chance = random.Random(1)
    assert Disk(recording.events).cut(chance, "nothing")[0] == {"name": b"synced"}


def test_a_change_that_nobody_reads_is_refused(tmp_path, monkeypatch):
    with pytest.raises(AssertionError, match="link"):
        recording_of(tmp_path, monkeypatch, '(root / "one").touch()\nos.link(root / "one", root / "other")')


def test_a_recording_that_misses_something_is_refused(tmp_path, monkeypatch):
    recording = recording_of(tmp_path, monkeypatch, '(root / "one").write_text("seen")')
    (recording.root / "one").write_text("changed by somebody else")
    with pytest.raises(AssertionError, match=r"misses something of .'one'."):
        recording.check(Disk(recording.events).content())
