"""A store whose file is encrypted: nothing of it can be read without the key, and a wrong key is told clearly."""

from __future__ import annotations

import multiprocessing
import shutil
import sys
from pathlib import Path

import pytest

import perdure
from perdure.adapters.sqlite import cipher
from perdure.domain.errors import InvalidInput, Unsupported

KEY = "correct horse 'battery' staple"
CANARY = "xylophonequartz"


def settings(path: Path, key: str = KEY, **more: object) -> perdure.Settings:
    return perdure.Settings(url=f"sqlite:///{path}", encryption_key=key, **more)  # type: ignore[arg-type]


def fill(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    ana.append("user", f"I moved to {CANARY}")
    ana.remember(f"ana lives in {CANARY}")
    ana.state.save("home", {"city": CANARY})
    engine.process(30)


def held(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_of_an_encrypted_store_is_on_the_disk_in_the_clear(tmp_path: Path) -> None:
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        fill(engine)
        while_open = held(tmp_path)
        assert [hit.text for hit in engine.memory("ana").recall(CANARY).hits]
        assert engine.verify().findings == ()
    assert any(name.endswith("-wal") and content for name, content in while_open.items()), "the log was looked at too"
    for name, content in {**while_open, **held(tmp_path)}.items():
        assert CANARY.encode() not in content, name
        assert b"SQLite format" not in content, name
        assert b"CREATE TABLE" not in content, name


def test_what_was_stored_is_there_with_the_same_key(tmp_path: Path) -> None:
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        fill(engine)
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        assert engine.memory("ana").messages()[0].content == f"I moved to {CANARY}"
        told = engine.health().store
    assert told.encryption == "every page of the file, by SQLCipher"
    assert told.versions.keys() == {"sqlite", "sqlcipher"}, "the SQLite that SQLCipher brings, not the other one"
    with perdure.open(settings=settings(tmp_path / "plain.db", "")) as engine:
        assert engine.health().store.encryption == "none"


@pytest.mark.parametrize("wrong", ["", "another key", KEY.upper(), KEY + " "])
def test_a_wrong_key_is_a_clear_error_and_changes_nothing(
    tmp_path: Path, wrong: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "s.db"
    with perdure.open(settings=settings(path)) as engine:
        fill(engine)
    before = held(tmp_path)
    with pytest.raises(InvalidInput) as told:
        perdure.open(settings=settings(path, wrong))
    assert str(path) in str(told.value)
    assert "key" in str(told.value)
    assert KEY not in str(told.value)
    assert not wrong or wrong not in str(told.value)
    assert held(tmp_path) == before
    assert capfd.readouterr() == ("", "")


def test_a_plain_store_is_not_opened_with_a_key_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with perdure.open(settings=settings(path, "")) as engine:
        fill(engine)
    before = held(tmp_path)
    with pytest.raises(InvalidInput, match="is not encrypted"):
        perdure.open(settings=settings(path))
    assert held(tmp_path) == before


def test_a_plain_store_becomes_an_encrypted_one_through_a_backup(tmp_path: Path) -> None:
    with perdure.open(settings=settings(tmp_path / "plain.db", "")) as engine:
        fill(engine)
        engine.backup(tmp_path / "backup")
    perdure.restore(tmp_path / "backup", settings=settings(tmp_path / "s.db"))
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        assert engine.memory("ana").messages()[0].content == f"I moved to {CANARY}"
        assert engine.verify().findings == ()
    assert CANARY.encode() not in (tmp_path / "s.db").read_bytes()


def test_sqlciphers_own_reader_opens_the_file_with_the_passphrase(tmp_path: Path) -> None:
    """The format is SQLCipher's default one: whoever has the key is not bound to perdure."""
    from sqlcipher3 import dbapi2

    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        fill(engine)
    connection = dbapi2.connect(str(tmp_path / "s.db"))
    connection.execute("PRAGMA key = '" + KEY.replace("'", "''") + "'")
    assert connection.execute("SELECT count(*) FROM messages").fetchall() == [(1,)]
    connection.close()


@pytest.mark.parametrize("url", ["memory:", "postgresql://localhost/none"])
def test_a_key_for_a_store_that_cannot_be_encrypted_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="`encryption_key` encrypts SQLite files only"):
        perdure.open(settings=perdure.Settings(url=url, encryption_key=KEY))


@pytest.mark.parametrize("bad", ["a\0b", "x" * 1_001])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(tmp_path: Path, bad: str) -> None:
    with pytest.raises(InvalidInput, match=r"encryption.key") as told:
        perdure.open(settings=settings(tmp_path / "s.db", bad))
    assert bad not in str(told.value)
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize("source", ["variable", "file"])
def test_an_empty_key_is_refused_and_makes_no_plain_store(tmp_path: Path, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment whose variable was never filled in would keep everything in the clear, and nobody would notice."""
    config = tmp_path / "config.toml"
    config.write_text('encryption_key = ""\n' if source == "file" else "")
    monkeypatch.setenv("PERDURE_CONFIG", str(config))
    if source == "variable":
        monkeypatch.setenv("PERDURE_ENCRYPTION_KEY", "")
    with pytest.raises(InvalidInput, match=r"`encryption_key` \(.*\) is empty; give the key, or leave it out"):
        perdure.open(f"sqlite:///{tmp_path}/s.db")
    assert not (tmp_path / "s.db").exists()


@pytest.mark.parametrize("key", [KEY, ""])
def test_a_folder_is_no_store_and_is_called_one(tmp_path: Path, key: str) -> None:
    with pytest.raises(InvalidInput, match="is a folder; name the file in it"):
        perdure.open(settings=settings(tmp_path, key))


def test_a_plain_store_that_somebody_made_meanwhile_is_called_plain(tmp_path: Path) -> None:
    """After `refuse_mismatch` found nothing there yet."""
    with perdure.open(settings=settings(tmp_path / "s.db", "")) as engine:
        fill(engine)
    with pytest.raises(InvalidInput, match="is not encrypted; open it without"):
        cipher.Cipher(str(tmp_path / "s.db"), KEY).open()


def test_without_the_driver_the_error_names_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlcipher3", None)
    with pytest.raises(Unsupported, match=r"pip install 'perdure\[encryption\]'"):
        perdure.open(settings=settings(tmp_path / "s.db"))
    assert not (tmp_path / "s.db").exists()


def _open_and_append(path: Path, number: int) -> None:
    with perdure.open(settings=settings(path)) as engine:
        engine.memory("ana").append("user", f"{number}")


@pytest.mark.slow
def test_processes_that_make_the_same_encrypted_store_at_once_all_find_it(tmp_path: Path) -> None:
    """Each of them finds a file without a salt; one writes it, and the others must not take theirs for it."""
    context = multiprocessing.get_context("spawn")
    makers = [context.Process(target=_open_and_append, args=(tmp_path / "s.db", number)) for number in range(4)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(120)
        assert maker.exitcode == 0
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        assert sorted(one.content for one in engine.memory("ana").messages()) == ["0", "1", "2", "3"]
        assert engine.verify().findings == ()


def test_a_damaged_encrypted_store_is_told_and_not_taken_for_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with perdure.open(settings=settings(path)) as engine:
        fill(engine)
    content = bytearray(path.read_bytes())
    content[100:200] = bytes(100)
    path.write_bytes(content)
    shutil.copy(path, tmp_path / "copy.db")
    with pytest.raises(InvalidInput, match="the file is damaged"):
        perdure.open(settings=settings(path))
    assert path.read_bytes() == (tmp_path / "copy.db").read_bytes()


def cut_short(path: Path) -> None:
    """A set-up that a power cut ended: the first sector of the first page is missing, and the journal says that there was no page."""
    path.write_bytes(bytes(512) + bytes(range(256)) * 14)
    counts = (0, 1, 0, 512, 4096)  # records, a nonce, pages before, and the sizes of a sector and of a page
    head = bytes.fromhex("d9d505f920a163d7") + b"".join(count.to_bytes(4, "big") for count in counts)
    Path(f"{path}-journal").write_bytes(head.ljust(512, b"\0"))


def test_a_store_whose_set_up_lost_its_salt_to_a_power_cut_gets_a_new_one(tmp_path: Path) -> None:
    cut_short(tmp_path / "s.db")
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        fill(engine)
    assert any((tmp_path / "s.db").read_bytes()[: cipher.SALT_BYTES])
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        assert engine.memory("ana").messages()[0].content == f"I moved to {CANARY}"
        assert engine.verify().findings == ()


def test_a_store_that_was_made_with_a_salt_of_zeros_still_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(cipher.os, "urandom", bytes)
        with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
            fill(engine)
    assert not any((tmp_path / "s.db").read_bytes()[: cipher.SALT_BYTES])
    cipher._salts.clear()
    with perdure.open(settings=settings(tmp_path / "s.db")) as engine:
        assert engine.memory("ana").messages()[0].content == f"I moved to {CANARY}"
