"""A vault on the disk: notes with front matter, and a list of those that we wrote, by which we tell people's edits."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from perdure.domain.errors import Conflict, InvalidInput, Unavailable, Unsupported
from perdure.domain.values import dataclass, field

FORMAT = "perdure-vault"
VERSION = 1
OWN = ".perdure"
NOTE_BYTES_MAX = 1_048_576
NOTES_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Note:
    """A note as we write it."""

    path: str
    kind: str
    ref: str
    meta: Mapping[str, Any]
    body: str

    def text(self) -> str:
        matter = _frontmatter()
        made: str = matter.dumps(
            matter.Post(self.body.strip("\n"), **self.meta), sort_keys=False, width=10**6, allow_unicode=True
        )
        return made + "\n"


@dataclass(frozen=True, slots=True)
class WrittenNote:
    """A note as we wrote it last."""

    kind: str
    ref: str
    sha256: str


@dataclass(slots=True)
class Vault:
    """The folder, and what we know of it."""

    root: Path
    notes: dict[str, WrittenNote] = field(default_factory=dict)
    owner: tuple[str, str] | None = None
    """The space and the user that it was written for; None: by nobody yet."""

    @classmethod
    def open(cls, root: Path) -> Vault:
        _frontmatter()  # first: what cannot be written should leave nothing behind
        vault = cls(root)
        manifest = root / OWN / "manifest.json"
        if not manifest.is_file():
            return vault
        try:
            told = json.loads(manifest.read_text(encoding="utf-8"))
            if told["format"] != FORMAT or told["version"] != VERSION:
                raise InvalidInput(f"{manifest} is of another version of perdure; upgrade perdure, or use an empty folder")
            vault.owner = (str(told["space"]), str(told["user"]))
            vault.notes = {str(path): WrittenNote(*map(str, one)) for path, one in told["notes"].items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OSError) as error:
            raise InvalidInput(f"{manifest} cannot be read ({type(error).__name__}); export to an empty folder") from error
        vault._finish_interrupted()
        return vault

    def _finish_interrupted(self) -> None:
        """An export that was cut off noted beforehand what it was about to write."""
        log = self.root / OWN / "writing.jsonl"
        if not log.is_file():
            return
        for line in log.read_text(encoding="utf-8").splitlines():
            try:
                path, *rest = json.loads(line)
                found = WrittenNote(*map(str, rest))
            except (ValueError, TypeError):
                continue  # the last line, cut off: its note was not begun
            if sha256_of(self.root / str(path)) == found.sha256:
                self.notes[str(path)] = found

    def begin(self, owner: tuple[str, str]) -> None:
        """Make the folder ours to write for this user; one of another user is a `Conflict`."""
        if self.owner is not None and self.owner != owner:
            raise Conflict(f"{self.root} is the vault of user {self.owner[1]!r:.80}; choose another folder")
        try:
            self._safe_folder(self.root / OWN)
            if self.owner is None:
                self.owner = owner
                self._save()
        except OSError as error:
            raise _cannot(self.root, error) from error

    def put(self, note: Note, *, replace: bool) -> str:
        """Write a note unless it stands there: `written`, `unchanged`, or `edited` if a person's words are in its place."""
        data = note.text().encode()
        new = WrittenNote(note.kind, note.ref, hashlib.sha256(data).hexdigest())
        path = self.root / PurePosixPath(note.path)
        held, known = sha256_of(path), self.notes.get(note.path)
        if held == new.sha256:
            self.notes[note.path] = new
            return "unchanged"
        if held is not None and not replace and (known is None or held != known.sha256):
            return "edited"
        try:
            self._safe_folder(path.parent)
            with (self.root / OWN / "writing.jsonl").open("a", encoding="utf-8") as log:
                log.write(json.dumps([note.path, new.kind, new.ref, new.sha256]) + "\n")
            _write(path, data)
        except OSError as error:
            raise _cannot(path, error) from error
        self.notes[note.path] = new
        return "written"

    def remove(self, path: str) -> bool:
        """Take away a note of ours that nobody has changed; False if somebody has."""
        held = sha256_of(self.root / path)
        if held is not None and held != self.notes[path].sha256:
            return False
        (self.root / path).unlink(missing_ok=True)
        del self.notes[path]
        return True

    def end(self) -> None:
        try:
            self._save()
            (self.root / OWN / "writing.jsonl").unlink(missing_ok=True)
        except OSError as error:
            raise _cannot(self.root, error) from error

    def _save(self) -> None:
        space, user = self.owner or ("", "")
        notes = {path: [one.kind, one.ref, one.sha256] for path, one in sorted(self.notes.items())}
        told = {"format": FORMAT, "version": VERSION, "space": space, "user": user, "notes": notes}
        _write(self.root / OWN / "manifest.json", json.dumps(told, indent=1, ensure_ascii=False).encode() + b"\n")

    def _safe_folder(self, folder: Path) -> None:
        """Make a folder of the vault. One that leads elsewhere is refused: nothing is written outside."""
        # The names of the notes tell of what they hold.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not folder.resolve().is_relative_to(self.root.resolve()):
            raise InvalidInput(f"{folder} leads out of the vault; remove that link")

    def people_files(self) -> Iterator[str]:
        """The notes that are there, ours and others', by path; what is hidden or leads elsewhere is left out."""
        found = 0
        for folder, folders, files in os.walk(self.root, followlinks=False):
            folders[:] = sorted(one for one in folders if not one.startswith("."))
            for name in sorted(files):
                path = Path(folder) / name
                if name.endswith(".md") and not name.startswith(".") and not path.is_symlink():
                    found += 1
                    if found > NOTES_MAX:
                        raise InvalidInput(f"{self.root} has more than {NOTES_MAX} notes; import a folder of fewer")
                    yield path.relative_to(self.root).as_posix()


def read_note(path: Path) -> tuple[Mapping[str, Any], str, int]:
    """Front matter and body of a note, and how many lines stand before the body. What cannot be read is `InvalidInput`."""
    try:
        if path.stat().st_size > NOTE_BYTES_MAX:
            raise InvalidInput(f"has more than {NOTE_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise InvalidInput("cannot be read as text in UTF-8") from None
    matter = _frontmatter()
    import yaml  # type: ignore[import-untyped]  # it is what `frontmatter` reads with

    try:
        post = matter.loads(text)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, RecursionError):
        raise InvalidInput("has front matter that is no YAML") from None
    body: str = post.content
    before = text.rfind(body)
    return post.metadata, body, text.count("\n", 0, max(0, before))


def sha256_of(path: Path) -> str | None:
    """The digest of a file; None if there is none."""
    if not path.is_file() or path.is_symlink():
        return None
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(1_048_576):
            digest.update(data)
    return digest.hexdigest()


def _write(path: Path, data: bytes) -> None:
    """The file takes its name when it is whole; what stood there, a link too, is replaced, not followed."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "wb") as file:
            file.write(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _cannot(path: Path, error: OSError) -> Unavailable:
    return Unavailable(f"{path} cannot be written ({error.strerror}); check the folder and its space")


def _frontmatter() -> Any:
    try:
        import frontmatter
    except ImportError as error:
        raise Unsupported(f"a vault needs `{error.name}`; install it with: pip install 'perdure[vault]'") from error
    return frontmatter
