"""P22: what is acknowledged is in the file that stands under the store's name.

Writers append while the file is removed, replaced or moved away under the open engine. Nothing that began after that may be
acknowledged, and the file that stands there instead must stay as it is: the log of the old one must not be moved into it.
"""

from __future__ import annotations

import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import perdure
from perdure.domain.errors import Unavailable
from perdure.settings import Settings
from proof.harness import Case, Promise, Round

WRITERS = 3
BEFORE, AFTER = 20, 10
WORDS = "was removed or replaced while it was open"


def _remove(path: Path) -> None:
    path.unlink()


def _remove_all(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _replace_by_a_copy(path: Path) -> None:
    shutil.copy(path, f"{path}.copy")
    Path(f"{path}.copy").replace(path)


def _replace_by_another(path: Path) -> None:
    other = path.with_name("other.db")
    with perdure.open(settings=Settings(url=f"sqlite:///{other}")) as engine:
        engine.memory("bob").append("user", "another store")
    other.replace(path)


def _move_away(path: Path) -> None:
    path.rename(path.with_name("moved.db"))


WAYS: dict[str, Callable[[Path], None]] = {
    "removed": _remove,
    "removed with its log": _remove_all,
    "replaced by a copy": _replace_by_a_copy,
    "replaced by another store": _replace_by_another,
    "moved away": _move_away,
}


def _run(round: Round) -> None:
    for case in round.cases(quick=10, full=200):
        way = [*WAYS][case.number % len(WAYS)]
        with round.guarded(way):
            _take_away(round, case, way)
    if round.begins:
        with round.guarded("another library"):
            _drop_locks(round)


def _take_away(round: Round, case: Case, way: str) -> None:
    folder = round.folder / f"case-{case.number}"
    folder.mkdir()
    path = folder / "store.db"
    engine = perdure.open(settings=Settings(url=f"sqlite:///{path}"))
    taken, warm = threading.Event(), threading.Barrier(WRITERS + 1)
    late: list[str] = []
    refused: list[str] = []

    def write(name: str) -> None:
        memory, left = engine.memory(name), AFTER
        for number in range(100_000):
            after = taken.is_set()
            try:
                memory.append("user", f"word {number}")
                if after:
                    late.append(f"{name} {number}")
            except Unavailable as error:
                refused.append(str(error))
            left -= after
            if number == BEFORE:
                warm.wait()
            if not left:
                return

    writers = [threading.Thread(target=write, args=(f"writer{number}",)) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    warm.wait()
    threading.Event().wait(case.chance.random() * 0.01)
    WAYS[way](path)
    taken.set()
    standing = path.read_bytes() if path.exists() else None
    for writer in writers:
        writer.join()
    round.count("appends after", WRITERS * AFTER)
    round.met(f"refused: {way}", sum(WORDS in words for words in refused))
    round.check(not late, "acknowledged", f"{way}: {len(late)} appends, such as {late[:1]}")
    for words in refused:
        round.check(WORDS in words, "refused in other words", f"{way}: {words}")
    for call in (engine.purge, engine.doctor, engine.health):
        try:
            call()
        except Unavailable:
            round.count("calls refused")
    engine.close()
    round.check(
        (path.read_bytes() if path.exists() else None) == standing, "written to", f"{way}: the file that stands there now"
    )
    shutil.rmtree(folder)


def _drop_locks(round: Round) -> None:
    """Python's own SQLite opens and closes the file in the same process."""
    path = round.folder / "locks.db"
    with perdure.open(settings=Settings(url=f"sqlite:///{path}")) as engine:
        engine.memory("ana").append("user", "here")
        before = [line for line in engine.doctor().degraded if line.startswith("locks: ")]
        other = sqlite3.connect(path)
        other.execute("SELECT count(*) FROM messages").fetchall()
        other.close()
        after = [line for line in engine.doctor().degraded if line.startswith("locks: ")]
    round.met("another SQLite library in the process")
    round.check(not before and bool(after), "locks", f"`doctor` said {before} before and {after} after")


PROMISE = Promise(
    id="P22",
    says="a file that is removed or replaced under an open engine is noticed: nothing more is acknowledged, and nothing else written to",
    tried_by="threads append while the file is removed with and without its log, moved, replaced by a copy and by another store; "
    "then the file under the name is compared; and another SQLite library closes the file in the same process",
    run=_run,
    evidence=(*(f"refused: {way}" for way in WAYS), "another SQLite library in the process"),
    figure="{wrong} wrong over {cases} files taken away and {appends after} appends afterwards",
)
