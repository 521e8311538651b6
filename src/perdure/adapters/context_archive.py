"""The archive of a context document: a file of lines to which each save adds a batch of what compaction took out.

A batch is written before its document is, so after a crash it may be there without it. Each line therefore names its
revision and the one before it, and a reader follows these from the document backwards.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from perdure.adapters.files import append_file, reading, writing
from perdure.domain.contexts import Archived
from perdure.domain.errors import Corrupt
from perdure.domain.text import Json, compact_json

NOTHING = "none"
TAIL_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Batch:
    """Which save a line belongs to."""

    revision: int
    after: int
    """The revision that it replaced."""
    base: str
    """A digest of the document that it replaced."""


def append_batch(path: Path, batch: Batch, archived: Iterable[Archived]) -> None:
    """Add a batch, durably. An empty one says that the batches since `after` were never completed."""
    items: list[tuple[str, Json]] = [(one.kind, one.body) for one in archived]
    head = {"revision": batch.revision, "after": batch.after, "base": batch.base}
    lines = "".join(f"{compact_json(head | {'kind': kind, 'body': body})}\n" for kind, body in items or [(NOTHING, None)])
    _cut_torn_line(path)
    append_file(path, lines.encode())


def last_batch(path: Path) -> Batch | None:
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
    current = Batch(0, revision, "")
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


def _batch(parsed: dict[str, Json]) -> Batch:
    return Batch(parsed["revision"], parsed["after"], parsed["base"])
