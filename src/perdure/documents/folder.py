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
import json
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from perdure.adapters.files.atomic import (
    TEMP_SUFFIX,
    append_file,
    locked,
    make_folder,
    original_name,
    reading,
    replace_file,
    safe_name,
    sync_folder,
    writing,
)
from perdure.domain.conversation.documents import Archived, ContextData, ContextDraft, ContextVersion, SavedContext
from perdure.domain.errors import Conflict, Corrupt, InvalidInput, LimitExceeded
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.values import dataclass
from perdure.engine.documents.json_form import (
    DOCUMENT_BYTES_MAX,
    check_session_id,
    read_document,
    read_foreign_document,
    render_document,
)
from perdure.ports.clock import Clock

NOTHING = "none"
TAIL_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class ArchiveBatch:
    """Which save a line belongs to."""

    revision: int
    after: int
    """The revision that it replaced."""
    base: str
    """A digest of the document that it replaced."""


def append_batch(path: Path, batch: ArchiveBatch, archived: Iterable[Archived]) -> None:
    """Add a batch, durably. An empty one says that the batches since `after` were never completed."""
    items: list[tuple[str, Json]] = [(one.kind, one.body) for one in archived]
    head = {"revision": batch.revision, "after": batch.after, "base": batch.base}
    lines = "".join(f"{compact_json(head | {'kind': kind, 'body': body})}\n" for kind, body in items or [(NOTHING, None)])
    _cut_torn_line(path)
    append_file(path, lines.encode())


def last_batch(path: Path) -> ArchiveBatch | None:
    """The batch that was added last, completed or not; None if there is none."""
    try:
        with reading(path), path.open("rb") as file:
            line = b""
            start = file.seek(0, os.SEEK_END)
            while start and line.count(b"\n") < 2:
                length = min(TAIL_BYTES, start)
                start -= length
                file.seek(start)
                line = file.read(length) + line
    except FileNotFoundError:
        return None
    complete = line[: line.rfind(b"\n") + 1].splitlines()
    return _batch(_parsed(complete[-1], path)) if complete else None


def archived_up_to(path: Path, revision: int) -> list[Archived]:
    """Everything archived by the saves that led to `revision`, oldest first."""
    try:
        with reading(path):
            lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    found: list[Archived] = []
    current = ArchiveBatch(0, revision, "")
    for line in reversed(lines):
        parsed = _parsed(line, path)
        batch = _batch(parsed)
        if batch.revision == current.revision or batch.revision <= current.after:
            current = batch
            if parsed["kind"] != NOTHING:
                found.append(Archived(parsed["kind"], parsed["body"]))
    return found[::-1]


def _cut_torn_line(path: Path) -> None:
    """Remove the beginning of a line whose writer was interrupted."""
    if not path.exists():
        return
    with writing(path), path.open("r+b") as file:
        size = end = file.seek(0, os.SEEK_END)
        while end:
            start = max(0, end - TAIL_BYTES)
            file.seek(start)
            found = file.read(end - start).rfind(b"\n")
            if found >= 0:
                end = start + found + 1
                break
            end = start
        if end < size:
            file.truncate(end)


def _parsed(line: bytes, path: Path) -> dict[str, Json]:
    try:
        parsed = json.loads(line)
        return {name: parsed[name] for name in ("revision", "after", "base", "kind", "body")}
    except (ValueError, TypeError, KeyError) as error:
        raise Corrupt(f"{path} has a line that is not of an archive; move the file away, or correct the line") from error


def _batch(parsed: dict[str, Json]) -> ArchiveBatch:
    return ArchiveBatch(parsed["revision"], parsed["after"], parsed["base"])


SCHEMA = 1
"""Of the hidden folder. One with a higher number was written by a newer perdure."""
COPIES = 3
LOCKS = 64
PLACES_KEPT = 1_024
SUFFIX = ".json"
NAME_BYTES_MAX = 255
_PARTS = frozenset(("/", "\\", "\0"))
_COPY = re.compile(r"(\d{8,})-([0-9a-f]{8})\.json")
_TEMP = re.compile(r"\.(.+)\.json\.[0-9a-f]{16}\.tmp")


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where everything about one session is."""

    session_id: str
    name: str
    file: Path
    folder: Path

    @property
    def archive(self) -> Path:
        return self.folder / "history.jsonl"


@dataclass(frozen=True, slots=True)
class DocumentCopy:
    revision: int
    lineage: str
    path: Path


@dataclass(frozen=True, slots=True)
class SessionFiles:
    """What the folder has of a session: the document's bytes, the copies, newest first, and the one that equals it."""

    raw: bytes | None
    copies: tuple[DocumentCopy, ...]
    equal: DocumentCopy | None = None

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

    def versions(self, session_id: str) -> list[ContextVersion]:
        place = self._place(session_id)
        if not self._base.is_dir():
            return []
        with self._locked(place.name, shared=True), reading(place.folder):
            made = [(copy.revision, copy.path.stat().st_mtime) for copy in _copies(place.folder)]
        return [ContextVersion(revision, datetime.fromtimestamp(at, UTC)) for revision, at in made]

    def load_version(self, session_id: str, revision: int) -> ContextData | None:
        place = self._place(session_id)
        if not self._base.is_dir():
            return None
        with self._locked(place.name, shared=True), suppress(InvalidInput):
            for copy in _copies(place.folder):
                if copy.revision == revision and (raw := _read(copy.path, self._bytes_max)) is not None:
                    return self._parsed(place, raw, copy)
        return None

    def with_archive(self, session_id: str) -> tuple[ContextData, list[Archived]]:
        return self._opened(session_id, archive=True)

    def save(self, draft: ContextDraft) -> SavedContext:
        place = self._place(draft.session_id)
        with self._locked(place.name):
            held = self._read_session(place)
            replaced = _replaced(draft, held)
            make_folder(place.folder)
            last = last_batch(place.archive)
            revision = _newest(held, last) + 1
            lineage = held.lineage or secrets.token_hex(4)
            if draft.archived or (last is not None and last.revision > replaced):
                append_batch(place.archive, ArchiveBatch(revision, replaced, _digest(held.raw)), draft.archived)
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
            foreign = self._foreign(place)
            if foreign is not None and self._session_of(session_id) != session_id:
                foreign = None  # whatever it is, it is not this document
            existed = place.file.exists() or place.folder.exists() or foreign is not None
            place.file.unlink(missing_ok=True)
            if foreign is not None:
                foreign.unlink(missing_ok=True)
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
        return sorted({found for name in names if (found := self._session_of(name)) is not None})

    def _opened(self, session_id: str, *, archive: bool) -> tuple[ContextData, list[Archived]]:
        place = self._place(session_id)
        if not self._base.is_dir():
            return ContextData(session_id), []
        with self._locked(place.name, shared=True):
            context = self._sound(place, self._read_session(place))
            if context is not None:
                return context, archived_up_to(place.archive, context.revision) if archive else []
        with self._locked(place.name):
            held = self._read_session(place)
            context = self._sound(place, held) or self._mended(place, held, held.raw or b"")
            return context, archived_up_to(place.archive, context.revision) if archive else []

    def _sound(self, place: DocumentPlace, held: SessionFiles) -> ContextData | None:
        """The document, if there is nothing to fix."""
        if held.raw is None:
            return self._taken_over(place)
        if held.equal is None:
            return None
        with suppress(InvalidInput):
            return self._parsed(place, held.raw, held.equal)
        return None

    def _taken_over(self, place: DocumentPlace) -> ContextData:
        """What the file says that the seed's own program keeps the session in, `user1:agent1:123.json`; else a new document.

        That file is only read: the first save makes one of ours, which counts from then on.
        """
        found = self._foreign(place)
        if found is None:
            return ContextData(place.session_id)
        try:
            context, more = read_foreign_document(_read(found, self._bytes_max) or b"", bytes_max=self._bytes_max)
            _check_place(place, context)
        except (InvalidInput, LimitExceeded) as error:
            return ContextData(place.session_id, notes=[f"{found} could not be read: {error}. It is left as it is"])
        if more:
            context.notes.append(f"{found} also has {', '.join(more)}, which a context document does not have; they stay there")
        return context

    def _foreign(self, place: DocumentPlace) -> Path | None:
        name = f"{place.session_id}{SUFFIX}"
        # A name that we make ourselves is that of another session.
        ours = name == place.file.name or original_name(place.session_id) is not None
        if ours or len(name.encode()) > NAME_BYTES_MAX or any(one in _PARTS for one in name):
            return None
        path = self._base / name
        return path if path.is_file() else None

    def _mended(self, place: DocumentPlace, held: SessionFiles, raw: bytes) -> ContextData:
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

    def _adopted(self, place: DocumentPlace, held: SessionFiles, raw: bytes, revision: int) -> ContextData:
        return self._parsed(place, raw, _write_copy(place, revision, held.lineage or secrets.token_hex(4), raw))

    def _restored(self, place: DocumentPlace, held: SessionFiles, raw: bytes, why: InvalidInput) -> ContextData:
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
            f"{place.file} could not be read: {why}. It is now {aside}; no good revision is left, so this is a new document"
        )
        return context

    def _parsed(self, place: DocumentPlace, raw: bytes, copy: DocumentCopy) -> ContextData:
        context = _read_for(place, raw, self._bytes_max)
        context.revision, context.lineage = copy.revision, copy.lineage
        return context

    def _read_session(self, place: DocumentPlace) -> SessionFiles:
        raw = _read(place.file, self._bytes_max)
        copies = _copies(place.folder)
        if raw is None:
            return SessionFiles(None, copies)
        if len(raw) > self._bytes_max:
            raise LimitExceeded(f"{place.file} is larger than `document_bytes_max` = {self._bytes_max}; raise the limit")
        return SessionFiles(raw, copies, next((copy for copy in copies if _read(copy.path, self._bytes_max) == raw), None))

    def _session_of(self, name: str) -> str | None:
        """Whose document `<name>.json` is; None if it is none of ours."""
        found = original_name(name)
        if found is not None and (self._hidden / "sessions" / name).is_dir():
            return found
        # One that somebody else put here, or whose name is too short for its id.
        for path in (self._base / f"{name}{SUFFIX}", *(copy.path for copy in _copies(self._hidden / "sessions" / name))):
            with suppress(InvalidInput, LimitExceeded):
                session_id = read_foreign_document(_read(path, self._bytes_max) or b"", bytes_max=self._bytes_max)[0].session_id
                if name in (safe_name(session_id), session_id):
                    return session_id
        return None

    def _place(self, session_id: str) -> DocumentPlace:
        return self._place_of(check_session_id(session_id))

    def _new_place(self, session_id: str) -> DocumentPlace:
        name = safe_name(session_id)
        return DocumentPlace(session_id, name, self._base / f"{name}{SUFFIX}", self._hidden / "sessions" / name)

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


def _read_for(place: DocumentPlace, raw: bytes, bytes_max: int) -> ContextData:
    """The document in `raw`, which must be the one of this place."""
    context = read_document(raw, bytes_max=bytes_max)
    _check_place(place, context)
    return context


def _check_place(place: DocumentPlace, context: ContextData) -> None:
    if context.session_id != place.session_id:
        raise InvalidInput(f"`session_id` is that of another document than {place.file}; correct it")


def _replaced(draft: ContextDraft, held: SessionFiles) -> int:
    """The stored revision, if it is the one that the draft is to replace."""
    lineage = held.equal.lineage if held.equal is not None else ""
    if draft.revision == held.revision and (not lineage or draft.lineage in ("", lineage)):
        return draft.revision
    now = "was changed by another program" if held.revision is None else f"is at revision {held.revision}"
    raise Conflict(
        f"context {draft.session_id!r:.80} {now if held.revision != 0 else 'is not stored'}, so revision {draft.revision} "
        "cannot be replaced: another write came first; load it and repeat the change"
    )


def _newest(held: SessionFiles, last: ArchiveBatch | None) -> int:
    """The highest revision that was ever begun."""
    return max(held.copies[0].revision if held.copies else 0, last.revision if last is not None else 0)


def _copies(folder: Path) -> tuple[DocumentCopy, ...]:
    try:
        with reading(folder):
            found = [_COPY.fullmatch(entry.name) for entry in os.scandir(folder)]
    except FileNotFoundError:
        return ()
    copies = [DocumentCopy(int(match[1]), match[2], folder / match[0]) for match in found if match]
    return tuple(sorted(copies, key=lambda copy: copy.revision, reverse=True))


def _write_copy(place: DocumentPlace, revision: int, lineage: str, raw: bytes) -> DocumentCopy:
    """Without a sync: the document itself is synced, and a copy that a crash tore is recognised by its content."""
    path = place.folder / f"{revision:08}-{lineage}{SUFFIX}"
    with writing(path):
        path.write_bytes(raw)
    return DocumentCopy(revision, lineage, path)


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
