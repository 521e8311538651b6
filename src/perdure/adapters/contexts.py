"""Context documents as files of a folder.

    <base>/<name>.json                  the document, and nothing else
    <base>/.perdure/sessions/<name>/    beside it: copies of the last revisions (`<revision>-<lineage>.json`), what
                                        compaction took out (`history.jsonl`), files that could not be read
    <base>/.perdure/locks/              held while a document is read or written

The revision of a document is that of the copy with the same bytes. So a save that was cut short between copy and
document leaves the revision before it, and a document that equals no copy was written by somebody else: it counts.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perdure.adapters.context_archive import Batch, append_batch, archived_up_to, last_batch
from perdure.adapters.files import TEMP_SUFFIX, locked, original_name, reading, replace_file, safe_name, sync_folder, writing
from perdure.adapters.folders import make_folder
from perdure.domain.context_json import DOCUMENT_BYTES_MAX, check_session_id, read_document, render_document
from perdure.domain.contexts import Archived, ContextData
from perdure.domain.errors import Conflict, Corrupt, InvalidInput, LimitExceeded
from perdure.ports.clock import Clock
from perdure.ports.contexts import ContextDraft, SavedContext

SCHEMA = 1
"""Of the hidden folder. One with a higher number was written by a newer perdure."""
COPIES = 3
LOCKS = 64
PLACES_KEPT = 1_024
SUFFIX = ".json"
_COPY = re.compile(r"(\d{8,})-([0-9a-f]{8})\.json")
_TEMP = re.compile(r"\.(.+)\.json\.[0-9a-f]{16}\.tmp")


@dataclass(frozen=True, slots=True)
class Place:
    """Where everything about one session is."""

    session_id: str
    name: str
    file: Path
    folder: Path

    @property
    def archive(self) -> Path:
        return self.folder / "history.jsonl"


@dataclass(frozen=True, slots=True)
class Copy:
    revision: int
    lineage: str
    path: Path


@dataclass(frozen=True, slots=True)
class Held:
    """What the folder has of a session: the document's bytes, the copies, newest first, and the one that equals it."""

    raw: bytes | None
    copies: tuple[Copy, ...]
    equal: Copy | None = None

    @property
    def revision(self) -> int | None:
        """0 if there is no document, None if it is not one that was saved here."""
        if self.raw is None:
            return 0
        return None if self.equal is None else self.equal.revision

    @property
    def lineage(self) -> str:
        return self.copies[0].lineage if self.copies else ""


class ContextFolder:
    """A `ContextStore` on plain files, for any number of threads and processes of one machine."""

    def __init__(self, base: Path, clock: Clock, *, document_bytes_max: int = DOCUMENT_BYTES_MAX) -> None:
        self._base = base
        self._hidden = base / ".perdure"
        self._clock = clock
        self._bytes_max = document_bytes_max
        self._checked = False
        # Names are made letter by letter, and paths part by part: for each load anew, that would be a tenth of its time.
        self._place_of = lru_cache(PLACES_KEPT)(self._new_place)

    def initialize(self) -> None:
        self._prepare()
        for temp in self._base.glob(f".*{TEMP_SUFFIX}"):
            if found := _TEMP.fullmatch(temp.name):
                # A writer holds its document's lock for as long as its temporary file exists: this one has no writer.
                with self._locked(found[1]), writing(temp):
                    temp.unlink(missing_ok=True)

    def load(self, session_id: str) -> ContextData:
        return self._opened(session_id, archive=False)[0]

    def with_archive(self, session_id: str) -> tuple[ContextData, list[Archived]]:
        return self._opened(session_id, archive=True)

    def save(self, draft: ContextDraft) -> SavedContext:
        place = self._place(draft.session_id)
        with self._locked(place.name):
            held = self._held(place)
            replaced = _replaced(draft, held)
            make_folder(place.folder)
            last = last_batch(place.archive)
            revision = _newest(held, last) + 1
            lineage = held.lineage or secrets.token_hex(4)
            if draft.archived or (last is not None and last.revision > replaced):
                append_batch(place.archive, Batch(revision, replaced, _digest(held.raw)), draft.archived)
            copy = _write_copy(place, revision, lineage, draft.document)
            try:
                replace_file(place.file, draft.document)
            except BaseException:
                # Were the bytes the same as before, the copy would make a revision of them.
                _remove(copy.path)
                raise
            for old in held.copies[COPIES - 1 :]:
                _remove(old.path)
        return SavedContext(revision, lineage)

    def delete(self, session_id: str) -> bool:
        place = self._place(session_id)
        if not self._base.is_dir():
            return False
        with self._locked(place.name), writing(place.file):
            existed = place.file.exists() or place.folder.exists()
            place.file.unlink(missing_ok=True)
            if place.folder.exists():
                shutil.rmtree(place.folder)
                sync_folder(place.folder.parent)
            if existed:
                sync_folder(self._base)
        return existed

    def list_sessions(self) -> list[str]:
        if not self._base.is_dir():
            return []
        with writing(self._base):
            files = [entry.name for entry in os.scandir(self._base) if entry.name.endswith(SUFFIX) and entry.is_file()]
        names = [name.removesuffix(SUFFIX) for name in files]
        return sorted(found for name in names if (found := self._session_of(name)) is not None)

    def _opened(self, session_id: str, *, archive: bool) -> tuple[ContextData, list[Archived]]:
        place = self._place(session_id)
        if not self._base.is_dir():
            return ContextData(session_id), []
        with self._locked(place.name, shared=True):
            context = self._sound(place, self._held(place))
            if context is not None:
                return context, archived_up_to(place.archive, context.revision) if archive else []
        with self._locked(place.name):
            held = self._held(place)
            context = self._sound(place, held) or self._mended(place, held, held.raw or b"")
            return context, archived_up_to(place.archive, context.revision) if archive else []

    def _sound(self, place: Place, held: Held) -> ContextData | None:
        """The document, if there is nothing to mend."""
        if held.raw is None:
            return ContextData(place.session_id)
        if held.equal is None:
            return None
        with suppress(InvalidInput):
            return self._parsed(place, held.raw, held.equal)
        return None

    def _mended(self, place: Place, held: Held, raw: bytes) -> ContextData:
        """The document after a change by others is taken over, or after the last good revision is put back."""
        make_folder(place.folder)
        try:
            _read_for(place, raw, self._bytes_max)
        except InvalidInput as error:
            return self._restored(place, held, raw, error)
        last = last_batch(place.archive)
        # The copy of a document may be lost with the power; that its save was never completed must still be seen.
        waits = last is not None and last.base == _digest(raw)
        return self._adopted(place, held, raw, last.after if last is not None and waits else _newest(held, last) + 1)

    def _adopted(self, place: Place, held: Held, raw: bytes, revision: int) -> ContextData:
        return self._parsed(place, raw, _write_copy(place, revision, held.lineage or secrets.token_hex(4), raw))

    def _restored(self, place: Place, held: Held, raw: bytes, why: InvalidInput) -> ContextData:
        """Put the unreadable document aside, and the last good revision, or an empty one, in its place."""
        stamp = self._clock.now().strftime("%Y%m%dT%H%M%SZ")
        aside = place.folder / f"quarantine-{stamp}-{secrets.token_hex(4)}{SUFFIX}"
        replace_file(aside, raw)
        for copy in held.copies:
            good = _read(copy.path, self._bytes_max)
            with suppress(InvalidInput, LimitExceeded):
                context = self._parsed(place, good or b"", copy)
                replace_file(place.file, good or b"")
                context.notes.append(
                    f"{place.file} could not be read: {why}. It is now {aside}; revision {copy.revision} is back"
                )
                return context
        fresh = render_document(ContextData(place.session_id))
        context = self._adopted(place, held, fresh, _newest(held, last_batch(place.archive)) + 1)
        replace_file(place.file, fresh)
        context.notes.append(
            f"{place.file} could not be read: {why}. It is now {aside}; with no good revision left, we start anew"
        )
        return context

    def _parsed(self, place: Place, raw: bytes, copy: Copy) -> ContextData:
        context = _read_for(place, raw, self._bytes_max)
        context.revision, context.lineage = copy.revision, copy.lineage
        return context

    def _held(self, place: Place) -> Held:
        raw = _read(place.file, self._bytes_max)
        copies = _copies(place.folder)
        if raw is None:
            return Held(None, copies)
        if len(raw) > self._bytes_max:
            raise LimitExceeded(f"{place.file} is larger than `document_bytes_max` = {self._bytes_max}; raise the limit")
        return Held(raw, copies, next((copy for copy in copies if _read(copy.path, self._bytes_max) == raw), None))

    def _session_of(self, name: str) -> str | None:
        """Whose document `<name>.json` is; None if it is none of ours."""
        found = original_name(name)
        if found is not None and (self._hidden / "sessions" / name).is_dir():
            return found
        # One that somebody else put here, or whose name is too short for its id.
        for path in (self._base / f"{name}{SUFFIX}", *(copy.path for copy in _copies(self._hidden / "sessions" / name))):
            with suppress(InvalidInput, LimitExceeded):
                session_id = read_document(_read(path, self._bytes_max) or b"", bytes_max=self._bytes_max).session_id
                if safe_name(session_id) == name:
                    return session_id
        return None

    def _place(self, session_id: str) -> Place:
        return self._place_of(check_session_id(session_id))

    def _new_place(self, session_id: str) -> Place:
        name = safe_name(session_id)
        return Place(session_id, name, self._base / f"{name}{SUFFIX}", self._hidden / "sessions" / name)

    @contextmanager
    def _locked(self, name: str, *, shared: bool = False) -> Iterator[None]:
        """Hold the lock of a document. Locks are few, shared by hash, and stay, so nobody holds a removed one."""
        folder = self._hidden / "locks"
        if not self._checked or not folder.is_dir():
            self._prepare()
        with locked(folder / f"{zlib.crc32(name.encode()) % LOCKS:02}", shared=shared):
            yield

    def _prepare(self) -> None:
        for folder in (self._base, self._hidden, self._hidden / "locks", self._hidden / "sessions"):
            make_folder(folder)
        path = self._hidden / "schema"
        stated = _read(path, 100)
        if stated is None:
            replace_file(path, f"{SCHEMA}\n".encode())
        elif not stated.strip().isdigit():
            raise Corrupt(f"{path} does not say a number; if the folder is perdure's, write {SCHEMA} into it")
        elif int(stated) > SCHEMA:
            raise Conflict(f"{self._base} has schema {int(stated)}, newer than {SCHEMA}; use a newer perdure")
        self._checked = True


def _read_for(place: Place, raw: bytes, bytes_max: int) -> ContextData:
    """The document in `raw`, which must be the one of this place."""
    context = read_document(raw, bytes_max=bytes_max)
    if context.session_id != place.session_id:
        raise InvalidInput(f"`session_id` is that of another document than {place.file}; correct it")
    return context


def _replaced(draft: ContextDraft, held: Held) -> int:
    """The stored revision, if it is the one that the draft is to replace."""
    lineage = held.equal.lineage if held.equal is not None else ""
    if draft.revision == held.revision and (not lineage or draft.lineage in ("", lineage)):
        return draft.revision
    now = "was changed by another program" if held.revision is None else f"is at revision {held.revision}"
    raise Conflict(
        f"context {draft.session_id!r:.80} {now if held.revision != 0 else 'is not stored'}, so revision {draft.revision} "
        "cannot be replaced: another write came first; load it and repeat the change"
    )


def _newest(held: Held, last: Batch | None) -> int:
    """The highest revision that was ever begun."""
    return max(held.copies[0].revision if held.copies else 0, last.revision if last is not None else 0)


def _copies(folder: Path) -> tuple[Copy, ...]:
    try:
        with reading(folder):
            found = [_COPY.fullmatch(entry.name) for entry in os.scandir(folder)]
    except FileNotFoundError:
        return ()
    copies = [Copy(int(match[1]), match[2], folder / match[0]) for match in found if match]
    return tuple(sorted(copies, key=lambda copy: copy.revision, reverse=True))


def _write_copy(place: Place, revision: int, lineage: str, raw: bytes) -> Copy:
    """Without a sync: the document itself is synced, and a copy that a crash tore is recognised by its content."""
    path = place.folder / f"{revision:08}-{lineage}{SUFFIX}"
    with writing(path):
        path.write_bytes(raw)
    return Copy(revision, lineage, path)


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _read(path: Path, bytes_max: int) -> bytes | None:
    """At most one byte more than the limit; None if there is no such file."""
    try:
        # Not `path.open`, which takes half as long again as reading a document does.
        with reading(path), open(os.fspath(path), "rb", buffering=0) as file:  # noqa: PTH123
            return file.read() if os.fstat(file.fileno()).st_size <= bytes_max else file.read(bytes_max + 1)
    except FileNotFoundError:
        return None


def _digest(raw: bytes | None) -> str:
    return "" if raw is None else hashlib.sha256(raw).hexdigest()[:32]
