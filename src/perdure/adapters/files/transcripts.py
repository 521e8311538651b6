"""Transcripts in a folder: `SPACE/USER/session/session-memory-ID-TIME-TOPIC.md`, archived ones under `session/archive`.

Sessions with another agent or channel than the default one are in folders below, named after them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from perdure.adapters.files.atomic import (
    append_file,
    check_root,
    make_folder,
    owner_folder,
    owner_lock,
    reading_present,
    remove_empty,
    remove_temps,
    replace_file,
    safe_name,
    sync_folder,
    writing,
)
from perdure.domain.scope import DEFAULT, Address, Owner
from perdure.domain.times.instants import EPOCH, from_us, to_us
from perdure.domain.values import dataclass, replace
from perdure.ports.files import BEGIN_BYTES_MAX, Extension, TranscriptFile, TranscriptPlace

ARCHIVE = "archive"
LOCK = "transcripts"

# The capitals are what tells the parts apart: neither a safe name nor a topic has a T or a Z.
_NAME = re.compile(r"session-memory-(?P<session>.+)-[0-9]{8}T[0-9]{6}Z-.+\.md", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TranscriptFolder:
    """The files of all owners, below `root`."""

    root: Path
    new_each_time: bool = False
    """What was written stays as it is, and a new file has all of it."""

    def find(self, place: TranscriptPlace) -> bytes | None:
        if not self._folder(place.owner).is_dir():
            return None
        # Shared with other readers. Against writers, because they move files.
        with owner_lock(self.root, place.owner, LOCK, shared=True):
            path = self._path(place)
            return None if path is None else _content(path)

    def extend(self, place: TranscriptPlace, decide: Callable[[bytes], Extension | None]) -> None:
        with owner_lock(self.root, place.owner, LOCK):
            path = self._path(place)
            held = b"" if path is None else _content(path)
            todo = decide(held)
            if todo is None:
                return
            if self.new_each_time and held:
                todo = replace(todo, keep=0, more=held[: todo.keep] + todo.more, opened_at=todo.last_at)
                path = None
            path = self._new_path(place, todo) if path is None else self._brought_back(place.owner, path)
            if todo.keep == 0:
                replace_file(path, todo.more)
            else:
                if todo.keep < len(held):
                    _cut(path, todo.keep)
                append_file(path, todo.more)
            _set_time(path, todo.last_at)

    def list_(self, owner: Owner, *, limit: int) -> list[TranscriptFile]:
        folder = self._folder(owner)
        if not folder.is_dir():
            return []
        with owner_lock(self.root, owner, LOCK, shared=True):
            return [
                _transcript_file(path, archived=_is_under(path, folder / ARCHIVE)) for path in _newest_first(folder)[:limit]
            ]

    def archive(self, owner: Owner, *, before: datetime | None, keep: int | None) -> int:
        folder = self._folder(owner)
        if not folder.is_dir():
            return 0
        with owner_lock(self.root, owner, LOCK):
            live = [path for path in _newest_first(folder) if not _is_under(path, folder / ARCHIVE)]
            old = _beyond(live, before, keep)
            for path in old:
                _move(path, folder / ARCHIVE / path.relative_to(folder), folder)
            return len(old)

    def prune(self, owner: Owner, *, before: datetime | None, keep: int | None) -> int:
        archive = self._folder(owner) / ARCHIVE
        if not archive.is_dir():
            return 0
        with owner_lock(self.root, owner, LOCK):
            old = _beyond(_newest_first(archive), before, keep)
            for path in old:
                _delete(path, archive.parent)
            return len(old)

    def remove(self, place: TranscriptPlace) -> bool:
        check_root(self.root)
        if not self._folder(place.owner).is_dir():
            return False
        with owner_lock(self.root, place.owner, LOCK):
            # Also what a process left that died while it wrote: nobody else writes here now.
            remove_temps(self._folder(place.owner) / _address_folder(place.address))
            paths = self._paths(place)
            for path in paths:
                _delete(path, self.root)
            return bool(paths)

    def erase(self, owner: Owner) -> int:
        check_root(self.root)
        folder = self._folder(owner)
        if not folder.is_dir():
            return 0
        with owner_lock(self.root, owner, LOCK):
            files = len(_newest_first(folder))
            with writing(folder):
                shutil.rmtree(folder)
                remove_empty(folder.parent, up_to=self.root)
            return files

    def _folder(self, owner: Owner) -> Path:
        return owner_folder(self.root, owner) / "session"

    def _path(self, place: TranscriptPlace) -> Path | None:
        return next(iter(self._paths(place)), None)

    def _paths(self, place: TranscriptPlace) -> list[Path]:
        """The file of the session; should somebody have copied it, the newest first, and archived ones last."""
        part, here = safe_name(place.session), _address_folder(place.address)
        folder = self._folder(place.owner)
        return [
            path
            for where in (folder / here, folder / ARCHIVE / here)
            if where.is_dir()
            for path in sorted(where.iterdir(), reverse=True)
            if (match := _NAME.fullmatch(path.name)) and match["session"] == part
        ]

    def _new_path(self, place: TranscriptPlace, new: Extension) -> Path:
        folder = self._folder(place.owner) / _address_folder(place.address)
        make_folder(folder)
        time = new.opened_at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds")
        stamp = time.replace("-", "").replace(":", "")
        return folder / f"session-memory-{safe_name(place.session)}-{stamp}Z-{new.topic}.md"

    def _brought_back(self, owner: Owner, path: Path) -> Path:
        folder = self._folder(owner)
        if not _is_under(path, folder / ARCHIVE):
            return path
        back = folder / path.relative_to(folder / ARCHIVE)
        _move(path, back, folder)
        return back


def _address_folder(address: Address) -> Path:
    """Where under an owner's sessions those of the address are. The prefixes keep an agent called `archive` apart."""
    parts = (("agent", address.agent), ("channel", address.channel))
    return Path(*(f"{kind}-{safe_name(name)}" for kind, name in parts if name != DEFAULT))


def _newest_first(folder: Path) -> list[Path]:
    with reading_present(folder):
        paths = [path for path in folder.rglob("session-memory-*.md") if _NAME.fullmatch(path.name) and path.is_file()]
        return sorted(paths, key=lambda path: (-path.stat().st_mtime_ns, str(path)))


def _beyond(newest_first: list[Path], before: datetime | None, keep: int | None) -> list[Path]:
    return [
        path
        for rank, path in enumerate(newest_first)
        if (keep is not None and rank >= keep) or (before is not None and _time(path) < before)
    ]


def _transcript_file(path: Path, *, archived: bool) -> TranscriptFile:
    with reading_present(path), path.open("rb") as file:
        return TranscriptFile(str(path), file.read(BEGIN_BYTES_MAX), path.stat().st_size, _time(path), archived)


def _content(path: Path) -> bytes:
    with reading_present(path):
        return path.read_bytes()


def _cut(path: Path, size: int) -> None:
    with writing(path), path.open("r+b") as file:
        file.truncate(size)
        file.flush()
        os.fsync(file.fileno())


def _move(path: Path, target: Path, up_to: Path) -> None:
    make_folder(target.parent)
    with writing(target):
        path.replace(target)
        # First where it is, then where it is no more: between the two, a power cut leaves it twice, but not nowhere.
        sync_folder(target.parent)
        remove_empty(path.parent, up_to=up_to)


def _delete(path: Path, up_to: Path) -> None:
    with writing(path):
        path.unlink(missing_ok=True)
        remove_empty(path.parent, up_to=up_to)


def _time(path: Path) -> datetime:
    return from_us(path.stat().st_mtime_ns // 1_000)


def _set_time(path: Path, at: datetime) -> None:
    # Some systems have no time before 1970. A wrong time would only put the file away early, so no error comes of it.
    ns = to_us(max(at, EPOCH)) * 1_000
    with suppress(OSError, OverflowError):
        os.utime(path, ns=(ns, ns))


def _is_under(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder)
