"""Many writers of one `memory.md` (X-29, B-49): processes that draw lessons, prompts being built, and a person with an editor."""

from __future__ import annotations

import multiprocessing
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure.adapters.files import atomic as files
from perdure.adapters.files import lessons
from perdure.adapters.files.atomic import swap_file
from perdure.engine.lessons import lessons_of
from perdure.services.lessons import mirror

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


# -- the same, one moment at a time -------------------------------------------------------------------------------------


def editor_saves_during(monkeypatch: pytest.MonkeyPatch, saves: list[tuple[int, bytes]], book: Path) -> None:
    """Have somebody replace the file right before the given exchanges of names."""
    exchange, calls = files._exchange, 0

    def slow(one: Path, other: Path) -> bool:
        nonlocal calls
        for moment, content in saves:
            if moment == calls:
                temp = book.with_name("editor.swp")
                temp.write_bytes(content)
                temp.replace(book)
        calls += 1
        return exchange(one, other)

    monkeypatch.setattr(files, "_exchange", slow)


def test_a_file_that_is_saved_at_the_very_moment_keeps_what_was_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = tmp_path / "memory.md"
    book.write_bytes(b"old")
    assert swap_file(book, b"old", b"new")
    assert not swap_file(book, b"old", b"newer")
    assert book.read_bytes() == b"new"
    editor_saves_during(monkeypatch, [(0, b"by hand")], book)
    assert not swap_file(book, b"new", b"ours")
    assert book.read_bytes() == b"by hand"
    monkeypatch.undo()
    editor_saves_during(monkeypatch, [(0, b"one"), (1, b"two"), (2, b"three")], book)
    assert not swap_file(book, b"by hand", b"ours")
    assert book.read_bytes() == b"three", "the last who saved wins"
    book.unlink()
    assert not swap_file(book, b"three", b"ours")
    assert not book.exists()
    assert [path.name for path in tmp_path.iterdir()] == []


def test_where_names_cannot_be_exchanged_the_file_is_looked_at_just_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_exchange", lambda _one, _other: False)
    book = tmp_path / "memory.md"
    book.write_bytes(b"old")
    assert swap_file(book, b"old", b"new")
    assert not swap_file(book, b"old", b"newer")
    assert (book.read_bytes(), list(tmp_path.iterdir())) == (b"new", [book])


@pytest.fixture
def ana(tmp_path: Path) -> Iterator[perdure.Memory]:
    with perdure.open(settings=settings("memory:", "perdure", str(tmp_path / "agents"))) as engine:
        yield engine.memory("ana")


def test_an_edit_during_a_merge_is_merged_too(ana: perdure.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the lines that seemed gone for a moment, none is."""
    book = tmp_path / "agents/memory.md"
    ana.lessons.add("First thing to know")
    ana.lessons.add("Second thing to know")
    whole = book.read_bytes()
    monkeypatch.setattr(mirror.Mirrors, "tried", lambda _self, _books: [])
    ana.lessons.add("Third thing to know")
    monkeypatch.undo()
    book.write_bytes(b"")  # an editor has just begun to save
    editor_saves_during(monkeypatch, [(0, whole + b"- Written by hand\n")], book)
    ana.prompt()
    expected = ["First thing to know", "Second thing to know", "Written by hand", "Third thing to know"]
    assert list(lessons_of(book.read_text())) == expected
    assert {one.text for one in ana.lessons.list()} == set(expected)


def test_a_lesson_that_comes_in_while_the_file_is_written_joins_it_next(
    ana: perdure.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The note beside the file says which lessons it has, not which there are by then."""
    book = tmp_path / "agents/memory.md"
    ana.lessons.add("First thing to know")
    written = lessons._write

    def slow(path: Path, held: str | None, text: str) -> bool:
        monkeypatch.setattr(lessons, "_write", written)
        done = written(path, held, text)
        with monkeypatch.context() as elsewhere:  # another process, which has not come to the file yet
            elsewhere.setattr(mirror.Mirrors, "tried", lambda _self, _books: [])
            ana.lessons.add("Third thing to know")
        return done

    monkeypatch.setattr(lessons, "_write", slow)
    ana.lessons.add("Second thing to know")
    ana.prompt()
    expected = ["First thing to know", "Second thing to know", "Third thing to know"]
    assert list(lessons_of(book.read_text())) == expected


def test_a_crash_between_the_file_and_its_note_loses_and_doubles_nothing(
    ana: perdure.Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tmp_path / "agents/memory.md"
    ana.lessons.add("First thing to know")

    def crash(_path: Path, _note: object) -> None:
        raise perdure.Unavailable("power cut")

    monkeypatch.setattr(lessons, "_put_note", crash)
    ana.lessons.add("Second thing to know")
    monkeypatch.undo()
    book.write_text(book.read_text() + "- Written by hand\n")
    ana.prompt()
    expected = ["First thing to know", "Second thing to know", "Written by hand"]
    assert list(lessons_of(book.read_text())) == expected == [one.text for one in ana.lessons.list()]
    book.with_name(".memory.md.left").write_text("nonsense")
    book.write_text(f"{book.read_text()}- Written later\n")
    ana.prompt()
    assert [one.text for one in ana.lessons.list()] == [*expected, "Written later"]


def test_a_file_that_was_empty_for_a_moment_brings_its_lessons_back(ana: perdure.Memory, tmp_path: Path) -> None:
    book = tmp_path / "agents/memory.md"
    ana.lessons.add("First thing to know")
    whole = book.read_text()
    book.write_text("")
    ana.prompt()
    assert ana.lessons.list() == []
    book.write_text(whole)
    assert "First thing to know" in ana.prompt().text
    assert len(ana.lessons.list(ended=True)) == 1
