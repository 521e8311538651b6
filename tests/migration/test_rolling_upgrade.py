"""Machines are upgraded one after the other: the build before the last migration goes on beside the one that brings it.

The earlier build is this one without its last migration: what it knows of the schema is what the earlier migrations made.
So this holds the rule that a migration adds, and that the code of the version before runs on what it leaves.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import perdure
import pg
from perdure.adapters.postgres.store import PACKAGE
from perdure.adapters.sql.statements import migrations
from tests.simulation.conftest import HOSTS, Host

ROUNDS = 12
OLD_S = 120.0


def build_before(folder: Path) -> Path:
    """The package as it was before its last migration."""
    source = Path(perdure.__file__).parent
    copied = folder / "perdure"
    shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for dialect in ("postgres", "sqlite"):
        steps = sorted((copied / "adapters" / dialect / "migrations").glob("*.sql"))
        steps.pop().unlink()
        (copied / "adapters" / dialect / "schema.sql").write_text("\n".join(step.read_text() for step in steps))
    return folder


@pytest.fixture
def old(postgres_url: str, postgres_schema: str, tmp_path: Path) -> Iterator[Host]:
    """A server of the build before, at work."""
    host = Host("serve_until_told", build_before(tmp_path), postgres_url, postgres_schema)
    host.expect("ready")
    yield host
    host.clean_up()


def test_old_and_new_build_work_side_by_side_while_the_schema_is_migrated(
    postgres_url: str, postgres_schema: str, tmp_path: Path, old: Host
) -> None:
    known = len(migrations(PACKAGE))
    acknowledged: dict[str, list[str]] = {}
    # Under the load of the old one, which has the tables in use: the migration waits for its turn, and it for the migration.
    with perdure.open(settings=pg.settings(postgres_url, postgres_schema)) as engine:
        assert engine.health().store.schema_version == known
        for number in range(ROUNDS):
            user, name = f"user-{number % 4}", f"new-{number}"
            memory = engine.memory(user)
            memory.append("user", f"Message {number} of the new build", id=name)
            acknowledged.setdefault(user, []).append(name)
            memory.context("message")
            memory.remember(f"Owns {number} cars")
            engine.process(0.05)
        old.tell("stop")
        said = json.loads(old.finish(seconds=OLD_S))
        assert said["version"] == known - 1, "it was opened before, and knew nothing of the last migration"
        assert sum(map(len, said["acknowledged"].values())) >= 3
        engine.process(60)
        for user, names in acknowledged.items():
            ids = [message.id for message in engine.memory(user).messages(1_000)]
            both = [*names, *said["acknowledged"].get(user, [])]
            assert len(ids) == len(set(ids)) == len(both)
            assert [name for name in ids if name.startswith("new")] == names
            assert [name for name in ids if name.startswith("old")] == said["acknowledged"].get(user, [])
        assert engine.verify().findings == ()
    again = subprocess.run(
        [sys.executable, HOSTS / "serve_until_told.py", tmp_path, postgres_url, postgres_schema],
        input=b"stop\n",
        capture_output=True,
        timeout=OLD_S,
        check=False,
    )
    assert again.returncode != 0
    assert b"upgrade perdure" in again.stderr, "one that starts anew says what to do, and changes nothing"


def test_two_servers_that_upgrade_at_once_migrate_once(postgres_url: str, postgres_schema: str, tmp_path: Path) -> None:
    """The second waits for the first; neither fails."""
    settings = pg.settings(postgres_url, postgres_schema)
    build = [sys.executable, HOSTS / "serve_until_told.py", build_before(tmp_path), postgres_url, postgres_schema]
    subprocess.run(build, input=b"stop\n", capture_output=True, timeout=OLD_S, check=True)
    versions: list[int] = []

    def upgrade() -> None:
        with perdure.open(settings=settings) as engine:
            versions.append(engine.health().store.schema_version)

    threads = [threading.Thread(target=upgrade) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions == [len(migrations(PACKAGE))] * 3
