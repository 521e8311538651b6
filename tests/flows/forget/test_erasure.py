"""P16: on SQLite what is forgotten is overwritten where it lies, and what cannot be so within the call is left to a job."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from perdure.adapters.sqlite import erasure
from perdure.adapters.sqlite.store import SqliteStore
from perdure.domain.scope import SYSTEM
from perdure.services.jobs.erasure import ERASE, REST
from perdure.testing import StoppedClock

SECRET = "vqjzkwkq"


def held(engine: perdure.Engine) -> bytes:
    return b"".join(file.path.read_bytes() for file in engine.files())


def erasure_told(engine: perdure.Engine) -> list[str]:
    """Reading the file in this process drops its locks, which `doctor` tells of, too: not what is asked here."""
    return [line for line in engine.doctor().degraded if line.startswith("erasure: ")]


def talk(engine: perdure.Engine, user: str, count: int = 40) -> None:
    draw = random.Random(user)
    words = [f"{SECRET} {user} {'x' * draw.randrange(1, 900)}" for _ in range(count)]
    engine.memory(user).append_many(perdure.NewMessage("user", text) for text in words)


def crowd(engine: perdure.Engine, users: int = 30) -> list[str]:
    names = [f"user{number}" for number in range(users)]
    for user in random.Random(7).sample([*names, *names, *names], 3 * users):
        talk(engine, user)
    return names


def test_rows_that_moved_to_another_page_leave_no_copy_behind(tmp_path: Path) -> None:
    """SQLite's own `secure_delete` leaves some: this is what the sweep is for."""
    path, draw = tmp_path / "a.db", random.Random(1)
    store = SqliteStore(path, synchronous="NORMAL")
    gone = [f"{SECRET}{user:03}" for user in range(0, 200, 2)]

    def left() -> int:
        content = path.read_bytes() + Path(f"{path}-wal").read_bytes()
        return sum(content.count(user.encode()) for user in gone)

    with store._connections.own() as connection:
        connection.execute("CREATE TABLE t (a TEXT, b INTEGER, body TEXT, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID")
        connection.execute("CREATE INDEX t_body ON t (a, body)")
        connection.execute("BEGIN")
        for number in range(20_000):
            user = f"{SECRET}{draw.randrange(200):03}"
            row = (user, draw.randrange(1_000_000), user + f"x{number} " * draw.randrange(1, 60))
            connection.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", row)
        connection.execute("COMMIT")
        connection.executemany("DELETE FROM t WHERE a = ?", [(user,) for user in gone])
        rows = connection.execute("SELECT * FROM t").fetchall()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert left() > 0, "nothing is left to be swept: the test tries nothing"
        store.purge()
        assert left() == 0
        assert connection.execute("SELECT * FROM t").fetchall() == rows
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    store.close()


def test_forgetting_in_a_small_store_leaves_nothing_and_no_job_that_says_otherwise(sqlite: Any) -> None:
    engine = sqlite.open()
    names = crowd(engine, 10)
    for user in names:
        assert engine.memory(user).forget(user=True).bytes_remain == ""
    assert SECRET.encode() not in held(engine)
    assert not erasure_told(engine)
    assert engine.verify().clean


def test_forgetting_in_a_large_store_leaves_the_sweep_to_a_job_that_says_so(sqlite: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(erasure, "WITHIN_CALL_BYTES", 100_000)
    engine = sqlite.open()
    names = crowd(engine)
    inodes = [file.path.stat().st_ino for file in engine.files()]
    answers = [engine.memory(user).forget(user=True) for user in names]
    assert "until the job `erase` has run" in answers[0].bytes_remain
    assert any("erasure: " in line for line in engine.doctor().degraded)
    job = engine._store.read(SYSTEM, lambda view: view.find_job(ERASE, REST))
    assert job is not None
    assert job.state == "ready"
    engine.process(60)
    assert SECRET.encode() not in held(engine)
    assert not erasure_told(engine)
    assert [file.path.stat().st_ino for file in engine.files()] == inodes


def test_a_busy_reader_makes_the_erasure_finish_later_and_the_answer_says_so(sqlite: Any) -> None:
    clock = StoppedClock()
    engine = sqlite.open(clock=clock, deadline_s=0.3)
    talk(engine, "ana")
    with engine._store.snapshot() as snapshot:
        next(snapshot.rows("messages"))
        answer = engine.memory("ana").forget(user=True)
        assert "a reader keeps the old pages in use" in answer.bytes_remain
        assert any("erasure: " in line for line in engine.doctor().degraded)
        assert "a reader keeps" in engine.purge().bytes_remain
        assert any("a reader keeps" in line for line in engine.doctor().degraded)
        assert SECRET.encode() in held(engine)
    clock.move(minutes=2)
    engine.process(60)
    assert SECRET.encode() not in held(engine)
    assert not erasure_told(engine)


def test_whoever_dies_after_forgetting_leaves_the_erasure_to_a_worker(sqlite: Any, monkeypatch: Any) -> None:
    clock = StoppedClock()
    engine = sqlite.open(clock=clock)
    names = crowd(engine)

    def die(_store: SqliteStore) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "overwrite", die)
        for user in names:
            with pytest.raises(KeyboardInterrupt):
                engine.memory(user).forget(user=True)
    assert SECRET.encode() in held(engine)
    clock.move(minutes=2)
    engine.process(60)
    assert SECRET.encode() not in held(engine)


def as_of_old(path: Path) -> None:
    """The file as an older perdure made it: it cannot give pages back, and has no map of them."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = DELETE").fetchall()
    connection.execute("PRAGMA auto_vacuum = NONE")
    connection.execute("VACUUM")
    assert connection.execute("PRAGMA auto_vacuum").fetchall() == [(0,)]
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.close()


def test_a_store_of_an_older_perdure_is_written_anew_once_and_that_is_announced(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(erasure, "WITHIN_CALL_BYTES", 100_000)
    monkeypatch.setattr(erasure, "STEPS_BETWEEN_REPORTS", 1_000)
    url = f"sqlite:///{tmp_path / 'old.db'}"
    with perdure.open(url) as engine:
        names = crowd(engine, 10)
    as_of_old(tmp_path / "old.db")
    with perdure.open(url) as engine:
        assert any("older perdure" in line and "perdure admin purge" in line for line in engine.doctor().degraded)
        assert "rewritten once" in engine.memory(names[0]).forget(user=True).bytes_remain
        told: list[tuple[str, int]] = []
        engine.purge(lambda what, count: told.append((what, count)))
        assert [count for _, count in told] == [*range(1, len(told) + 1)] != []
        assert f"{SECRET} {names[0]} ".encode() not in held(engine)
        assert f"{SECRET} {names[1]} ".encode() in held(engine)
        assert not erasure_told(engine)
        with engine._store._connections.reader() as connection:
            assert erasure.erases_in_place(connection)
        assert engine.verify().clean


def test_an_encrypted_store_is_written_anew_by_the_job(tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("sqlcipher3")
    monkeypatch.setattr(erasure, "WITHIN_CALL_BYTES_ENCRYPTED", 100_000)
    chosen = perdure.Settings(url=f"sqlite:///{tmp_path / 'secret.db'}", encryption_key="correct horse")
    with perdure.open(settings=chosen) as engine:
        names = crowd(engine, 10)
        engine.process(60)
        pages = engine.files()[0].bytes
        answers = [engine.memory(user).forget(user=True).bytes_remain for user in names]
        assert "encrypted" in answers[0]
        engine.process(60)
        assert not erasure_told(engine)
        assert engine.files()[0].bytes < pages
        assert engine.verify().clean


MEASURED = """
import sys
import perdure

def peak():
    [line] = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1])

engine = perdure.open(sys.argv[1])
ana = engine.memory("ana")
ana.append("user", "vqjzkwkq", id="m1")
before = peak()
ana.forget(messages=("m1", "m1"))
engine.purge()
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells the peak of one process")
@pytest.mark.parametrize("old", [False, True])
def test_neither_forgetting_nor_the_erasure_takes_memory_with_the_size_of_the_store(tmp_path: Path, old: bool) -> None:
    path = tmp_path / "large.db"
    store = SqliteStore(path)
    with store._connections.own() as connection:
        connection.execute("CREATE TABLE ballast (content BLOB)")
        connection.executemany("INSERT INTO ballast VALUES (randomblob(?))", [(1_000_000,)] * 80)
    store.close()
    if old:
        as_of_old(path)
    size = path.stat().st_size
    assert size > 64_000_000
    done = subprocess.run([sys.executable, "-c", MEASURED, f"sqlite:///{path}"], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < size / 2


# -- the sweep changes nothing that SQLite reads

STEPS = st.lists(
    st.tuples(st.sampled_from(("put", "remove", "sweep")), st.integers(0, 25), st.integers(0, 6_000)), min_size=10, max_size=60
)


@settings(max_examples=25, deadline=None)
@given(STEPS)
def test_a_sweep_changes_nothing_that_sqlite_reads(steps: list[tuple[str, int, int]]) -> None:
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"perdure-sweep-{os.getpid()}"
    folder.mkdir()
    try:
        store = SqliteStore(folder / "a.db", synchronous="NORMAL")
        with store._connections.own() as writer:
            writer.execute("CREATE TABLE t (a TEXT, b INTEGER, body TEXT, PRIMARY KEY (a, b)) STRICT, WITHOUT ROWID")
            writer.execute("CREATE INDEX t_body ON t (body)")
            for what, key, size in steps:
                if what == "put":
                    for number in range(8):
                        row = (f"k{key}", size % 97 + number, f"{key}-{'z' * (size if number == 0 else size % 300)}")
                        writer.execute("INSERT OR REPLACE INTO t VALUES (?, ?, ?)", row)
                elif what == "remove":
                    writer.execute("DELETE FROM t WHERE a = ?", (f"k{key}",))
                else:
                    before = writer.execute("SELECT * FROM t").fetchall()
                    store.purge()
                    assert writer.execute("SELECT * FROM t").fetchall() == before
                    assert writer.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        store.close()
    finally:
        shutil.rmtree(folder)
