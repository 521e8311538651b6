"""A process that dies while it forgets: what it has stored is gone from files, too, once the jobs have run or it is told again."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.services.forget.forget import ForgetService
from perdure.testing import StoppedClock

NOW = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)


class Died(BaseException):
    """Stands for the end of the process."""


def dies(*_: object) -> None:
    raise Died


def files_with(folder: Path, word: str) -> list[str]:
    return [path.name for path in folder.rglob("*.md") if word in path.read_text()]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Apart from the store, which must stay where it is."""
    folder = tmp_path / "files"
    folder.mkdir()
    return folder


@pytest.fixture
def told(backend: Any, files: Path, monkeypatch: pytest.MonkeyPatch) -> perdure.Engine:
    """A session with a transcript and a lesson in a file; whoever forgets dies as soon as the rows are gone."""
    engine: perdure.Engine = backend.open(clock=StoppedClock(NOW), files_dir=str(files))
    ana = engine.memory("ana")
    for number in range(4):
        ana.append("user", f"John Doe called, number {number}", id=f"m{number}")
    ana.remember("John Doe drinks tea", entities=["person:John Doe"])
    ana.lessons.add("Never call John Doe before noon.")
    engine.process(30)
    assert len(files_with(files, "John Doe")) == 2
    monkeypatch.setattr(ForgetService, "_drop_transcripts", dies)
    return engine


def test_transcripts_are_written_anew_by_a_job_if_nobody_lived_to_remove_them(
    told: perdure.Engine, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Died):
        told.memory("ana").forget(messages=("m1", "m2"))
    monkeypatch.undo()
    assert files_with(files, "number 1")
    assert told.process(30).failed == 0
    assert not files_with(files, "number 1")
    assert not files_with(files, "number 2")
    assert files_with(files, "number 3"), "what is left is written again"
    assert told.verify().findings == ()


def test_an_entity_that_is_forgotten_again_leaves_the_files_that_the_first_time_did_not_reach(
    told: perdure.Engine, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Died):
        told.memory("ana").forget(entity="person:John Doe")
    monkeypatch.undo()
    told.memory("ana").forget(entity="person:John Doe")
    assert told.process(30).failed == 0
    assert not files_with(files, "John Doe")
    assert told.verify().findings == ()


def test_nobody_is_said_to_be_forgotten_while_the_folder_of_files_is_away(
    told: perdure.Engine, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not found there may be elsewhere: a volume that is not mounted, a folder that was moved."""
    monkeypatch.undo()
    ana, aside = told.memory("ana"), files.with_name("aside")
    files.rename(aside)
    files.write_text("no folder")
    with pytest.raises(perdure.Unavailable, match="is not a folder"):
        ana.forget(user=True)
    files.unlink()
    aside.rename(files)
    ana.forget(user=True)
    assert not files_with(files, "John Doe")
