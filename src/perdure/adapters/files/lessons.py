"""Books as files in UTF-8, for people and agents alike: `SPACE/USER/memory.md`, and `memory.md` and `agent-ID/memory.md`.

Beside each stands a hidden note of how it was left: that is how an edit by hand is told from one of ours. The note belongs to
the file, not to the store: a second machine on the same store has files of its own. Agents are folders
there, too: `agent-ID/` with `soul.md`, `mood.md` and `skill.md`.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from perdure.adapters.files.atomic import (
    TEMP_SUFFIX,
    check_regular,
    check_root,
    followed,
    make_folder,
    original_name,
    owner_folder,
    owner_lock,
    reading_present,
    remove_empty,
    replace_file,
    safe_name,
    swap_file,
    sync_folder,
    writing,
)
from perdure.domain.errors import Conflict, Corrupt, InvalidInput
from perdure.domain.lessons import Book
from perdure.domain.scope import shared_owner
from perdure.domain.values import dataclass
from perdure.ports.files import Change

TEXTS = ("soul", "mood", "skill")
PREFIX = "agent-"
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,98}[A-Za-z0-9_-])?")


def agent_folder(root: Path, agent: str) -> Path:
    """The folder of an agent. No id leads out of `root`: what is not a plain name is escaped."""
    return root / f"{PREFIX}{agent if _PLAIN.fullmatch(agent) else safe_name(agent)}"


@dataclass(frozen=True, slots=True)
class AgentFolders:
    root: Path

    def find(self, agent: str) -> dict[str, str] | None:
        folder = agent_folder(self.root, agent)
        with reading_present(folder):
            if not folder.is_dir():
                return None
        texts = {name: _stripped(folder / f"{name}.md") for name in TEXTS}
        return {name: text for name, text in texts.items() if text is not None}

    def put(self, agent: str, texts: dict[str, str]) -> None:
        folder = agent_folder(self.root, agent)
        if not _PLAIN.fullmatch(agent) and original_name(safe_name(agent)) != agent:
            raise InvalidInput(f"agent {agent!r:.60} has too long an id to name a folder; use at most 100 characters")
        make_folder(folder)
        for name, text in texts.items():
            path = folder / f"{name}.md"
            if text:
                replace_file(followed(path), text.encode())
            else:
                with writing(path):
                    path.unlink(missing_ok=True)
                    sync_folder(folder)

    def list_(self) -> list[str]:
        with reading_present(self.root):
            if not self.root.is_dir():
                return []
            names = [one.name.removeprefix(PREFIX) for one in self.root.glob(f"{PREFIX}*") if one.is_dir()]
        ids = [name if _PLAIN.fullmatch(name) else original_name(name) for name in names]
        return sorted(one for one in ids if one is not None)

    def remove(self, agent: str) -> bool:
        folder = agent_folder(self.root, agent)
        paths = [folder / f"{name}.md" for name in TEXTS]
        with writing(folder):
            found = [path for path in paths if path.is_file()]
            for path in found:
                path.unlink(missing_ok=True)
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
            if found:
                sync_folder(folder if folder.is_dir() else self.root)
        return bool(found)


def _stripped(path: Path) -> str | None:
    text = _text(path)
    return None if text is None else text.removeprefix("\ufeff").replace("\r\n", "\n").strip()


LOCK = "lessons"
BOOK = "memory.md"
NOTE = ".memory.md.left"
TRIES_MAX = 100
SETTLED_S = 2.0
"""File times are coarse: an edit so soon after ours may bear the same one, so the text itself is compared."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LessonFolders:
    """The books of users below `files_dir`, those of one space and its agents below `agents_dir`; either may be missing."""

    files_dir: Path | None = None
    agents_dir: Path | None = None
    space: str = "default"

    def keeps(self, book: Book) -> bool:
        return self._path(book) is not None

    def read(self, book: Book) -> str:
        # Replacing is atomic, so a reader needs no lock.
        path = self._path(book)
        if path is None:
            return ""
        check_root(self._root(book))
        return _text(path) or ""

    def is_as_left(self, book: Book, rows: str) -> bool:
        path = self._path(book)
        if path is None:
            return True
        note, stamp = _note(path), _stamp(path)
        if stamp is None and not note and rows.endswith("/"):
            return True  # there is no file, and none is needed
        if note.get("rows") != rows:
            return False
        if stamp is not None and stamp == note.get("stamp") and note.get("settled"):
            return True
        text = _text(path)
        if text is None or _fingerprint(text) != note.get("text"):
            return False
        if stamp != note.get("stamp") or _is_settled(path):
            with owner_lock(self._root(book), book.owner, LOCK):
                if _note(path) == note:
                    _put_note(path, {**note, "stamp": stamp, "settled": _is_settled(path)})
        return True

    def is_anothers(self, book: Book, rows: str) -> bool:
        """Whether a user's text was left by another store, or before that user was forgotten here."""
        path = self._path(book)
        if path is None or book.owner == shared_owner(book.owner.space):
            return False
        left = str(_note(path).get("rows", ""))
        return bool(left) and left.partition("/")[0] != rows.partition("/")[0]

    def edit(self, book: Book, change: Change[T], *, rows: Callable[[], str]) -> T:
        path = self._path(book)
        if path is None:
            raise Conflict("there is no place for this book; see `keeps`")
        with owner_lock(self._root(book), book.owner, LOCK):
            note = _note(path)
            # Ids of another store say nothing of what this one has given up: what stands in the text was written by hand.
            same = note.get("rows", "").partition("/")[0] == rows().partition("/")[0]
            base = frozenset(note.get("ids", ())) if same else frozenset[str]()
            for _ in range(TRIES_MAX):
                held = _text(path)
                text, ids, answer = change(held, base)
                if not _write(path, held, text):
                    continue  # somebody edited it meanwhile
                if held is not None or text:
                    left = {"ids": list(ids), "text": _fingerprint(text), "rows": rows()}
                    _put_note(path, {**left, "stamp": _stamp(path), "settled": False})
                else:
                    with writing(path):
                        path.with_name(NOTE).unlink(missing_ok=True)
                return answer
        raise Conflict(f"{path} changed {TRIES_MAX} times under us; see what keeps writing it")

    def erase(self, book: Book) -> bool:
        path = self._path(book)
        if path is None:
            return False
        root = self._root(book)
        check_root(root)
        if not path.parent.is_dir():
            return False
        with owner_lock(root, book.owner, LOCK), writing(path):
            found = path.is_file()
            # Whole books, if a process died while it wrote one.
            stale = [*path.parent.glob(f".{BOOK}.*{TEMP_SUFFIX}"), *path.parent.glob(f".{NOTE}.*{TEMP_SUFFIX}")]
            for one in (path, path.with_name(NOTE), *stale):
                one.unlink(missing_ok=True)
            remove_empty(path.parent, up_to=root)
            return found

    def _root(self, book: Book) -> Path:
        root = self.agents_dir if book.owner == shared_owner(book.owner.space) else self.files_dir
        assert root is not None  # noqa: S101 - only called for books that are kept
        return root

    def _path(self, book: Book) -> Path | None:
        if book.owner == shared_owner(self.space) and self.agents_dir is not None:
            folder = self.agents_dir if book.agent is None else agent_folder(self.agents_dir, book.agent)
            return followed(folder / BOOK)
        if book.owner == shared_owner(book.owner.space) or self.files_dir is None:
            return None
        plain = book.scope == "user" and book.agent is None
        return followed(owner_folder(self.files_dir, book.owner) / BOOK) if plain else None


def _write(path: Path, held: str | None, text: str) -> bool:
    """Put `text` where `held` is; False if something else is there."""
    if text == (held or ""):
        return True
    make_folder(path.parent)
    if held is None:
        if path.exists():
            return False
        replace_file(path, text.encode())
        return True
    return swap_file(path, held.encode(), text.encode())


def _text(path: Path) -> str | None:
    with reading_present(path):
        check_regular(path)
        try:
            return path.read_bytes().decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise Corrupt(f"{path} is not UTF-8 at byte {error.start}; save it in that encoding") from error


def _note(path: Path) -> dict[str, Any]:
    with reading_present(path), suppress(FileNotFoundError, ValueError, RecursionError):
        held = json.loads(path.with_name(NOTE).read_bytes())
        if isinstance(held, dict) and isinstance(held.get("rows", ""), str) and _are_texts(held.get("ids", [])):
            return held
    # Without it, what stands in the file was written by hand, as far as we know: nothing is taken away for it.
    return {}


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _put_note(path: Path, note: dict[str, Any]) -> None:
    replace_file(path.with_name(NOTE), json.dumps(note).encode())


def _stamp(path: Path) -> list[int] | None:
    with reading_present(path), suppress(FileNotFoundError):
        found = path.stat()
        return [found.st_ino, found.st_mtime_ns, found.st_size]
    return None


def _is_settled(path: Path) -> bool:
    stamp = _stamp(path)
    return stamp is not None and time.time() - stamp[1] / 1e9 > SETTLED_S


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
