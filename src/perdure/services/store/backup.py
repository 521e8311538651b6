"""Backup and restore: one file format for every store, so that a backup of SQLite restores into PostgreSQL and back.

The file is gzip over lines of JSON: a header, then for each table its name and columns followed by its rows, then a
footer with the number of rows and a digest. A file that was cut off or altered is recognised before anything is stored.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from perdure.domain.errors import Conflict, Corrupt, InvalidInput, NotFound, Unavailable
from perdure.domain.reports import BackupReport
from perdure.domain.text.rules import brief, check_flag, compact_json
from perdure.ports.store import Progress, Row, Store, check_progress
from perdure.ports.tables.rows import TABLES

FORMAT = "perdure-backup"
FORMAT_VERSION = 1
PROGRESS_EVERY = 5_000
LEVEL = 3
COLUMN = re.compile(r"[a-z][a-z_]{0,40}")


class _Digested:
    """Writes lines of JSON and keeps the digest of all of them."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def line(self, value: object) -> None:
        data = compact_json(value).encode() + b"\n"
        self.digest.update(data)
        self._file.write(data)


def backup(store: Store, path: Path, *, replace: bool = False, progress: Progress | None = None) -> BackupReport:
    """Write everything the store holds at one moment to `path`; the file appears whole or not at all."""
    check_progress(progress)
    check_flag(replace, "replace")
    if path.exists() and not replace:
        raise Conflict(f"{path} exists already; choose another name, or replace it (`replace`, `--replace`)")
    counts: dict[str, int] = {}
    with new_file(path) as file, gzip.GzipFile(fileobj=file, mode="wb", filename="", compresslevel=LEVEL, mtime=0) as packed:
        out = _Digested(packed)
        with store.snapshot() as snapshot:
            version = snapshot.schema_version
            out.line({"format": FORMAT, "version": FORMAT_VERSION, "schema": version})
            for table, spec in TABLES.items():
                if spec.rebuilt:
                    continue
                out.line({"table": table, "columns": spec.columns})
                counts[table] = 0
                for row in snapshot.rows(table):
                    out.line([_plain(value) for value in row])
                    counts[table] += 1
                    if progress is not None and counts[table] % PROGRESS_EVERY == 0:
                        progress(table, counts[table])
                if progress is not None:
                    progress(table, counts[table])
        digest = out.digest.hexdigest()
        out.line({"rows": counts, "sha256": digest})
    return BackupReport(path, path.stat().st_size, counts, version, digest)


def restore(
    store: Store,
    path: Path,
    *,
    replace: bool = False,
    progress: Progress | None = None,
    through: Callable[[str, Iterator[Row]], Iterator[Row]] | None = None,
) -> Mapping[str, int]:
    """Fill the store from a backup: all of it or nothing. The rows of each table go through `through`, which may add some."""
    check_flag(replace, "replace")
    check_file(path)
    with _lines(path) as lines:
        header = next(lines)
        tables = _tables(lines, progress)
        if through is not None:
            tables = ((table, through(table, rows)) for table, rows in tables)
        return store.restore(header["schema"], tables, replace=replace)


def check_file(path: Path) -> None:
    """Prove the file whole and well-formed, so that no damaged or crafted one ever gets as far as a store."""
    digest = hashlib.sha256()
    counts: dict[str, int] = {}
    width = 0
    with _raw_lines(path) as lines:
        previous = next(lines, b"")
        _check_header(_parsed(previous, path), path)
        table = ""
        for line in lines:
            digest.update(previous)
            previous = line
            value = _parsed(line, path)
            if isinstance(value, dict) and "table" in value:
                table, width = _check_heading(value, counts, path)
                counts[table] = 0
            elif isinstance(value, list) and len(value) == width and table:
                counts[table] += 1
            elif not isinstance(value, dict):
                raise Corrupt(f"{path} has a row that does not fit its table; use another backup")
        footer = _parsed(previous, path)
    if not isinstance(footer, dict) or footer.get("sha256") != digest.hexdigest():
        raise Corrupt(f"{path} is cut off or altered: its digest does not match; use another backup")
    if footer.get("rows") != counts or not counts:
        raise Corrupt(f"{path} does not hold the rows it says; use another backup")


def _check_heading(heading: Mapping[str, Any], seen: Mapping[str, int], path: Path) -> tuple[str, int]:
    """A known table, once, with plain column names: what it says becomes part of SQL."""
    table, columns = heading.get("table"), heading.get("columns")
    known = isinstance(table, str) and table in TABLES and table not in seen
    if not known or not isinstance(columns, list) or not all(isinstance(one, str) and COLUMN.fullmatch(one) for one in columns):
        raise Corrupt(f"{path} has a table that perdure does not know, or twice; use another backup")
    return str(table), len(columns)


def _check_header(header: Any, path: Path) -> None:
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InvalidInput(f"{path} is not a perdure backup; choose a file made by `perdure admin backup`")
    if not isinstance(header.get("schema"), int):
        raise Corrupt(f"{path} does not say its schema version; use another backup")
    if header.get("version") != FORMAT_VERSION:
        raise InvalidInput(
            f"{path} has backup format {header.get('version')!r:.20}; this perdure reads {FORMAT_VERSION}; upgrade it"
        )


def _tables(lines: Iterator[Any], progress: Progress | None) -> Iterator[tuple[str, Iterator[Row]]]:
    """Tables in file order. Each one's rows are read before the next table is asked for."""
    heading = next(lines)
    while "table" in heading:
        table = heading["table"]
        # Mutable so that the inner iterator can hand the next heading to us.
        following: list[Any] = []

        def rows(table: str = table, following: list[Any] = following) -> Iterator[Row]:
            done = 0
            for line in lines:
                if isinstance(line, dict):
                    following.append(line)
                    break
                done += 1
                if progress is not None and done % PROGRESS_EVERY == 0:
                    progress(table, done)
                yield tuple(_unplain(value) for value in line)
            if progress is not None:
                progress(table, done)

        content = rows()
        yield table, content
        for _ in content:
            raise Corrupt(f"rows of table `{table}` were left unread")
        heading = following[0]


def _plain(value: object) -> object:
    return {"b64": b64encode(value).decode()} if isinstance(value, bytes) else value


def _unplain(value: Any) -> Any:
    return b64decode(value["b64"]) if isinstance(value, dict) else value


@contextmanager
def new_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the name `path` once it is complete and on the disk."""
    if not path.name:
        raise InvalidInput(f"{brief(str(path), 80)} is a folder; name a file in it")
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written ({error.strerror}); check the directory and its space") from error
    finally:
        # What cannot be removed now is never taken for a backup: it has another name, and no end.
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    if os.name != "posix":
        return
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def _raw_lines(path: Path) -> Iterator[Iterator[bytes]]:
    try:
        with gzip.open(path, "rb") as file:
            yield iter(file)
    except FileNotFoundError as error:
        raise NotFound(f"{path} does not exist; check the name") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Corrupt(f"{path} is cut off, altered or no backup at all; use another one") from error
    except OSError as error:
        raise Unavailable(f"{path} cannot be read ({error.strerror}); check its permissions") from error


@contextmanager
def _lines(path: Path) -> Iterator[Iterator[Any]]:
    with _raw_lines(path) as lines:
        yield (_parsed(line, path) for line in lines)


def _parsed(line: bytes, path: Path) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise Corrupt(f"{path} is altered or no backup at all; use another one") from error
