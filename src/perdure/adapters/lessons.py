"""Lesson books as files: `SPACE/USER/memory.md`, in UTF-8, for people and agents alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from perdure.adapters.files import TEMP_SUFFIX, replace_file, writing
from perdure.adapters.folders import make_folder, owner_folder, owner_lock, reading, remove_empty
from perdure.domain.errors import Corrupt
from perdure.domain.scope import Owner

LOCK = "lessons"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LessonFolder:
    """The books of all owners, below `root`."""

    root: Path

    def read(self, owner: Owner) -> str:
        # Replacing is atomic, so a reader needs no lock.
        return _text(self._path(owner))

    def edit(self, owner: Owner, change: Callable[[str], tuple[str, T]]) -> T:
        path = self._path(owner)
        with owner_lock(self.root, owner, LOCK):
            held = _text(path)
            text, answer = change(held)
            if text != held:
                make_folder(path.parent)
                replace_file(path, text.encode())
            return answer

    def erase(self, owner: Owner) -> bool:
        path = self._path(owner)
        if not path.parent.is_dir():
            return False
        with owner_lock(self.root, owner, LOCK), writing(path):
            found = path.is_file()
            # Whole books, if a process died while it wrote one.
            for one in (path, *path.parent.glob(f".{path.name}.*{TEMP_SUFFIX}")):
                one.unlink(missing_ok=True)
            remove_empty(path.parent, up_to=self.root)
            return found

    def _path(self, owner: Owner) -> Path:
        return owner_folder(self.root, owner) / "memory.md"


def _text(path: Path) -> str:
    with reading(path):
        try:
            return path.read_bytes().decode()
        except FileNotFoundError:
            return ""
        except UnicodeDecodeError as error:
            raise Corrupt(f"{path} is not UTF-8 at byte {error.start}; save it in that encoding") from error
