"""P14: upgrades are safe. A migration that dies is completed by the next opening; a newer store is refused as it is."""

from __future__ import annotations

import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

import perdure
from perdure.adapters.sql.statements import migrations
from perdure.adapters.sqlite import schema as migrating
from perdure.adapters.sqlite.store import PACKAGE
from proof.harness import Promise, Round
from proof.kills import die_everywhere, target
from proof.old_scenes import NEWEST, OLD_VERSIONS, build_sqlite
from proof.operations import STORE, migration, opened, settings
from proof.postgres_kills import die_on_postgres, refuse_newer_on_postgres
from proof.strikes import Struck, arena

ROOT = Path(__file__).parents[2]
DIES = """
import sys
import apsw
connection = apsw.Connection(sys.argv[1])
connection.execute("PRAGMA wal_autocheckpoint = 0")
connection.execute(sys.argv[2])
print("done", flush=True)
sys.stdin.read()
"""


def run(round: Round) -> None:
    with arena() as made:
        for version in OLD_VERSIONS:
            build_sqlite(made.scene(f"v{version}"), version)
        targets = [target(round, made, migration(version)) for version in OLD_VERSIONS]
        round.facts["calls by version"] = {one.operation.name: one.points[-1][1] for one in targets}
        expected = _catalogs()
        die_everywhere(round, made, targets, turns=4, look=lambda struck, when: _between(round, struck, expected, when))
    _refuse_newer(round)
    assert round.postgres is not None
    url = round.postgres()
    die_on_postgres(round, url)
    refuse_newer_on_postgres(round, url)


def _catalogs() -> dict[int, set[tuple[str, str, str]]]:
    """What tables and indexes each version has."""
    connection = apsw.Connection(":memory:")
    found: dict[int, set[tuple[str, str, str]]] = {}
    for one in migrations(PACKAGE):
        migrating.apply(connection, one)
        found[one.version] = migrating.catalog(connection)
    connection.close()
    return found


def _between(round: Round, struck: Struck, expected: dict[int, set[tuple[str, str, str]]], when: str) -> None:
    """What the dead process left has the schema of exactly one version: each step was done wholly, or not at all."""
    with tempfile.TemporaryDirectory(prefix="proof-between-") as name:
        for path in struck.folder.glob(f"{STORE}*"):
            if not path.name.endswith("-shm"):
                shutil.copy(path, name)
        connection = apsw.Connection(str(Path(name) / STORE))
        try:
            version = len(migrating.applied(connection))
            round.met("died with the old schema" if version < NEWEST else "died with the new schema")
            round.check(
                migrating.catalog(connection) == expected[version], "half a step", f"{when}: says it is version {version}"
            )
        except apsw.Error as error:
            round.wrong("unreadable", f"{when}: {error!r}")
        finally:
            connection.close()


# -- a store of a newer version


def _refuse_newer(round: Round) -> None:
    """Closed well, left by a process that died, or open in another one: it is refused in words, and no byte of it changes."""
    future = f"INSERT INTO perdure_migrations VALUES ({NEWEST + 1}, 'future', 'x'); CREATE TABLE future (a TEXT) STRICT"
    with tempfile.TemporaryDirectory(prefix="proof-newer-") as name:
        for manner in ("closed well", "left by a dead process", "open in another process"):
            folder = Path(name) / manner.replace(" ", "-")
            folder.mkdir()
            with opened(folder) as engine:
                engine.memory("ana").append("user", "hello")
            backup = folder / "backup.perdure"
            with opened(folder) as engine:
                engine.backup(backup)
            with _changed(folder / STORE, future, manner):
                for call, words in _ways_in(folder, backup):
                    _check_refused(round, folder, call, f"{words}, {manner}")
                round.count("newer stores")


@contextmanager
def _changed(path: Path, sql: str, manner: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-c", DIES, str(path), sql], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        if process.stdout.readline() != "done\n":
            raise RuntimeError("the newer store could not be made")
        if manner == "left by a dead process":
            process.send_signal(signal.SIGKILL)
            process.wait(20)
        elif manner == "closed well":
            process.communicate(timeout=20)
        yield
    finally:
        process.kill()
        process.communicate(timeout=20)


def _ways_in(folder: Path, backup: Path) -> list[tuple[Callable[[], object], str]]:
    return [
        (lambda: perdure.open(settings=settings(folder)), "opening"),
        (lambda: perdure.restore(backup, settings=settings(folder), replace=True), "restoring over it"),
    ]


def _bytes(folder: Path) -> dict[str, str]:
    """Of the file and its log. The third file, -shm, is an index of the log that whoever reads it makes for himself; an empty
    log is the same as none."""
    held = {path.name: path.read_bytes() for path in folder.glob(f"{STORE}*") if not path.name.endswith("-shm")}
    return {name: hashlib.sha256(content).hexdigest() for name, content in held.items() if content}


def _check_refused(round: Round, folder: Path, call: Callable[[], object], when: str) -> None:
    before = _bytes(folder)
    if f"{STORE}-wal" in before:
        round.met("a newer store with a log")
    try:
        call()
    except perdure.Conflict as error:
        round.check("upgrade perdure" in str(error), "refused in wrong words", f"{when}: {error}")
        round.met("newer store refused")
    except Exception as error:
        round.wrong("refused in wrong words", f"{when}: {error!r}")
    else:
        round.wrong("newer store taken", when)
    after = _bytes(folder)
    round.check(before == after, "newer store changed", f"{when}: {before} became {after}")


PROMISE = Promise(
    id="P14",
    says="upgrades are safe: one that dies is completed by the next opening, and a newer store is refused and left as it is",
    tried_by="opening a store of each old schema version dies at every system call that changes its files, and halfway through "
    "each write; on PostgreSQL the backend is ended at each statement; stores of a newer version, with and without a log",
    run=run,
    evidence=(
        "died before a call",
        "died halfway through a write",
        "died with the old schema",
        "died with the new schema",
        "newer store refused",
        "a newer store with a log",
        "backend ended within a script",
        "backend ended between statements",
        "newer schema refused",
    ),
    figure="{wrong} broken over {kills} kills and {backend ends} ends of a backend; {newer stores} newer stores refused as they are",
)
