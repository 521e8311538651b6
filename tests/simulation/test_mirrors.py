"""Many writers of one `memory.md` (X-29, B-49): processes that draw lessons, prompts being built, and a person with an editor."""

from __future__ import annotations

import multiprocessing
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.adapters.files import swap_file
from perdure.engine.lessons import lessons_of

WRITERS, EACH, LINES = 3, 6, 25
PAUSE_S = 0.02
SPAWN = multiprocessing.get_context("spawn")


def settings(url: str, schema: str, folder: str) -> perdure.Settings:
    return perdure.Settings(url=url, postgres_schema=schema, agents_dir=folder, user="ana", embedder="none")


def learns(url: str, schema: str, folder: str, name: str, strict: bool) -> None:
    """A process that draws lessons, some of which everybody draws, and builds prompts."""
    with perdure.open(settings=settings(url, schema, folder)) as engine:
        ana = engine.memory("ana")
        for number in range(EACH):
            ana.lessons.take_from(f"MEMORY_APPEND: Process {name} learned thing number {number}")
            ana.lessons.add(f"Everybody learned thing number {number}")
            if strict:
                assert f"Process {name} learned thing number {number}" in ana.prompt(budget_tokens=20_000).text
            else:
                ana.prompt()


def writes_carefully(folder: str, done: Any) -> None:
    """A person whose editor looks whether the file has changed before it saves."""
    book = Path(folder) / "memory.md"
    number = 0
    while number < LINES and not done.is_set():
        if not book.exists():
            time.sleep(PAUSE_S)
            continue
        held = book.read_bytes()
        if swap_file(book, held, f"- Somebody wrote line number {number}\n".encode() + held):
            number += 1
        time.sleep(PAUSE_S)
    (Path(folder) / "lines").write_text(str(number))


def writes_carelessly(folder: str, done: Any) -> None:
    """A person whose editor saves what it has: lines that came in since it read the file are gone from it."""
    book = Path(folder) / "memory.md"
    number = 0
    mine: list[str] = []
    while number < LINES and not done.is_set():
        if not book.exists():
            time.sleep(PAUSE_S)
            continue
        text = book.read_text()
        mine.append(f"- Somebody wrote line number {number}\n")
        missing = [line for line in mine if line not in text]
        temp = book.with_name(f"{secrets.token_hex(4)}.swp")
        temp.write_text("".join(missing) + text)
        temp.replace(book)
        number += 1
        time.sleep(PAUSE_S)
    (Path(folder) / "lines").write_text(str(number))


@pytest.mark.parametrize("hand", [writes_carefully, writes_carelessly])
def test_nobody_loses_a_line(backend: Any, tmp_path: Path, hand: Callable[[str, Any], None]) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    chosen = (backend.url, backend.schema, str(folder))
    backend.open().close()  # the store is made before they all come
    done = SPAWN.Event()
    person = SPAWN.Process(target=hand, args=(str(folder), done))
    writers = [SPAWN.Process(target=learns, args=(*chosen, str(name), hand is writes_carefully)) for name in range(WRITERS)]
    for process in (person, *writers):
        process.start()
    try:
        for writer in writers:
            writer.join(60)
        done.set()
        person.join(30)
    finally:
        for process in (person, *writers):
            process.kill()
    assert [process.exitcode for process in (person, *writers)] == [0] * (1 + WRITERS)
    by_hand = {f"Somebody wrote line number {number}" for number in range(int((folder / "lines").read_text()))}
    drawn = {f"Process {name} learned thing number {number}" for name in range(WRITERS) for number in range(EACH)}
    drawn |= {f"Everybody learned thing number {number}" for number in range(EACH)}
    with perdure.open(settings=settings(*chosen)) as engine:
        ana = engine.memory("ana")
        ana.prompt()
        standing = {one.text for one in ana.lessons.list(archived=True, limit=1_000)}
        held = {one.text for one in ana.lessons.list(archived=True, ended=True, limit=1_000)}
        assert by_hand <= standing, "what a person wrote holds"
        assert drawn <= held
        if hand is writes_carefully:
            assert drawn <= standing, "what nobody took out holds"
        written = lessons_of((folder / "memory.md").read_text())
        assert len(written) == len(set(written))
        assert set(written) == {one.text for one in ana.lessons.list(limit=1_000)}
        assert engine.process().failed == 0
        assert engine.verify().clean
    assert not list(folder.rglob("*.tmp"))
