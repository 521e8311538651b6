"""Exports: every row of one user, or of each user of a space, as of one moment, while writers go on.

The lines of a lossless export: a heading, a line of JSON for each row, and an end with the digest of what came before.

Rows are told by the names of their columns, without the owner, whom the heading names. What stands in a column as JSON is
told as JSON, so that two exports can be compared by eye; a row that is read back is the very row that was written."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, NoReturn, cast

from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.reports import FORMAT, VERSION, ExportPart, ExportReport
from perdure.domain.scope import RESERVED, Owner, Scope, shared_owner
from perdure.domain.text.rules import JSON_DEPTH_MAX, brief, check_flag, check_json, compact_json
from perdure.domain.values import dataclass, replace
from perdure.ports.files import Target, check_path
from perdure.ports.store import Progress, Snapshot, Store, check_progress
from perdure.ports.tables.index import INDEX_JOB
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow
from perdure.services.jobs.idempotency import PREFIX as REQUESTS
from perdure.services.knowledge.memories import Knowledge, MemoryQuery
from perdure.services.knowledge.seed_form import seed_dict
from perdure.services.store.backup import new_file
from perdure.services.store.soundness import flaw

JSON_COLUMNS = frozenset(("metadata", "tool_calls", "payload", "before", "after", "body", "spec"))
JSON_SHOWN_CHARS_MAX = 100_000
INTEGER_MAX = 2**63
PORTABLE = tuple(name for name, spec in TABLES.items() if not spec.rebuilt and not spec.stays and name != "series_leases")
"""All tables but those that are made anew or stay with the store, and the leases of processes that fetch just now."""
NOBODY = ("import", "import")
"""Whose rows are while they are read; the file does not say."""
_JOB = {name: place for place, name in enumerate(TABLES["jobs"].columns)}
_TURN = [TABLES["agent_states"].columns.index(name) for name in ("turn_holder", "turn_until_us")]


# -- writing


def portable_row(table: str, row: AnyRow) -> AnyRow | None:
    """The row without what binds it to this store and its processes; None if nothing of it is left.

    Jobs that run are ready again, those that are done are not needed; who holds the floor holds it here only; and which
    requests of the HTTP API were carried out here says nothing elsewhere.
    """
    if table == "jobs":
        return _portable_job(row)
    if table == "agent_states":
        return tuple(None if place in _TURN else value for place, value in enumerate(row))
    if table in ("state_keys", "state_revisions") and str(row[2]).startswith(REQUESTS):
        return None
    return row


def _portable_job(row: AnyRow) -> AnyRow | None:
    state = row[_JOB["state"]]
    if row[_JOB["kind"]] == INDEX_JOB or state == "done":
        return None
    if state != "running":
        return row
    changed = list(row)
    for name, value in (("state", "ready"), ("due_at_us", row[_JOB["updated_at_us"]]), ("worker", None), ("again", 0)):
        changed[_JOB[name]] = value
    return tuple(changed)


def line_of(table: str, row: AnyRow) -> bytes:
    columns = TABLES[table].columns
    told = {name: _as_json_value(name, value) for name, value in zip(columns[2:], row[2:], strict=True)}
    return encoded({"table": table, **told})


def encoded(value: object) -> bytes:
    return compact_json(value).encode() + b"\n"


def _as_json_value(column: str, value: object) -> object:
    """JSON as JSON, if that gives the same text again."""
    if column not in JSON_COLUMNS or not isinstance(value, str) or len(value) > JSON_SHOWN_CHARS_MAX:
        return value
    try:
        held = json.loads(value)
        return (
            held if isinstance(held, dict | list) and _depth(held) <= JSON_DEPTH_MAX and compact_json(held) == value else value
        )
    except (ValueError, RecursionError):
        return value


def _depth(value: object, depth: int = 1) -> int:
    if depth > JSON_DEPTH_MAX or not isinstance(value, dict | list):
        return depth
    inner = value.values() if isinstance(value, dict) else value
    return max((_depth(one, depth + 1) for one in inner), default=depth)


# -- reading


@dataclass(frozen=True, slots=True)
class ExportLine:
    number: int
    data: bytes

    def wrong(self, what: str) -> NoReturn:
        raise InvalidInput(f"line {self.number} of the export {what}; nothing was imported")

    def parsed(self) -> dict[str, Any]:
        try:
            value = json.loads(self.data)
        except (ValueError, RecursionError):
            self.wrong("is no JSON, or cut off; use the unchanged export")
        if not isinstance(value, dict):
            self.wrong(f"is a `{type(value).__name__}`, not an object; use the unchanged export")
        return value


def checked_parts(lines: Iterable[ExportLine], schema_max: int) -> list[ExportPart]:
    """The parts of a file that is proven whole; anything else is `InvalidInput` with the number of the line."""
    found: list[ExportPart] = []
    reading: _PartReader | None = None
    last = ExportLine(1, b"")
    for line in lines:
        last = line
        value = line.parsed()
        if reading is None:
            reading = _PartReader(line, _headed(line, value, found, schema_max), schema_max)
        elif "sha256" in value:
            found.append(reading.end(line, value))
            reading = None
        else:
            reading.row(line, value)
    if reading is not None:
        last.wrong("is the last one, but not the end of what was exported: the file was cut off; export it again")
    if not found:
        raise InvalidInput("the file is empty; choose one that `perdure admin export` wrote")
    if found[-1].number != found[-1].of:
        last.wrong(f"ends part {found[-1].number} of {found[-1].of}: the file was cut off; export it again")
    return found


def rows_of(lines: Iterable[ExportLine], wanted: int) -> Iterator[tuple[ExportLine, str, AnyRow]]:
    """The rows of one part, the first being 0, of a file that was checked. They are nobody's yet."""
    part = -1
    for line in lines:
        value = line.parsed()
        if "format" in value:
            part += 1
        elif part == wanted and "table" in value:
            yield line, value["table"], _row_of(value, [one for one in TABLES[value["table"]].columns[2:] if one in value])
        elif part > wanted:
            return


def _row_of(value: Mapping[str, Any], columns: Sequence[str]) -> AnyRow:
    held = (value[name] for name in columns)
    return (*NOBODY, *(compact_json(one) if isinstance(one, dict | list) else one for one in held))


class _PartReader:
    """A part while it is read."""

    def __init__(self, line: ExportLine, part: ExportPart, schema_max: int) -> None:
        self._part = part
        self._older = part.schema < schema_max
        self._digest = hashlib.sha256(line.data)
        self._counts: dict[str, int] = {}
        self._columns: dict[str, tuple[str, ...]] = {}

    def row(self, line: ExportLine, value: Mapping[str, Any]) -> None:
        self._digest.update(line.data)
        table = value.get("table")
        if not isinstance(table, str) or table not in PORTABLE:
            line.wrong(f"names table {brief(table)}, which no export holds")
        if any(PORTABLE.index(one) > PORTABLE.index(table) for one in self._counts):
            line.wrong(f"has a row of `{table}` behind those of another table")
        columns = tuple(name for name in TABLES[table].columns[2:] if name in value)
        unknown = sorted(value.keys() - {"table", *columns})
        # Of an older schema some columns are missing, of every row: the migrations add them.
        wanted = self._columns.setdefault(table, columns if self._older else TABLES[table].columns[2:])
        if unknown or columns != wanted:
            line.wrong(f"has not the columns of `{table}` ({', '.join(unknown)[:80] or 'some are missing'})")
        for name in columns:
            _check_value(line, name, value[name])
        if not self._older:  # else it is looked at when the migrations have made it a row of today
            found = flaw(table, _row_of(value, columns))
            if found is not None:
                line.wrong(f"is a row of `{table}` that does not fit ({found})")
        self._counts[table] = self._counts.get(table, 0) + 1

    def end(self, line: ExportLine, value: Mapping[str, Any]) -> ExportPart:
        if value.get("sha256") != self._digest.hexdigest():
            line.wrong("has another digest than what stands before it: the file was altered; export it again")
        if value.get("rows") != self._counts:
            line.wrong("counts other rows than stand before it: the file was altered; export it again")
        return replace(self._part, rows=sum(self._counts.values()))


def _headed(line: ExportLine, value: Mapping[str, Any], before: list[ExportPart], schema_max: int) -> ExportPart:
    if value.get("format") != FORMAT:
        line.wrong("is no heading of an export; choose a file that `perdure admin export` wrote, or say which format it has")
    if value.get("version") != VERSION:
        line.wrong(f"has format version {brief(value.get('version'), 20)}, this perdure reads {VERSION}; upgrade perdure")
    schema = value.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        line.wrong(f"has schema version {brief(schema, 20)}; use the unchanged export")
    if schema > schema_max:
        line.wrong(f"has schema version {schema}, but this perdure knows 1 to {schema_max}; upgrade perdure")
    number, of = value.get("part"), value.get("of")
    begins = not before or before[-1].number == before[-1].of
    wanted = (1, of) if begins else (before[-1].number + 1, before[-1].of)
    if not isinstance(of, int) or isinstance(of, bool) or of < 1 or (number, of) != wanted:
        line.wrong(
            f"begins part {brief(number, 20)} of {brief(of, 20)}, where another is due: the file was altered; export it again"
        )
    if not all(isinstance(value.get(name), str) for name in ("space", "user")):
        line.wrong("does not name its user; use the unchanged export")
    return ExportPart(schema, value["space"], value["user"], wanted[0], of)


def _check_value(line: ExportLine, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, str | int | float | dict | list | None):
        line.wrong(f"has a `{type(value).__name__}` as `{name}`")
    if isinstance(value, dict | list) and name not in JSON_COLUMNS:
        line.wrong(f"has JSON as `{name}`, which is none")
    if isinstance(value, int) and not -INTEGER_MAX <= value < INTEGER_MAX:
        line.wrong(f"has a number as `{name}` that no store holds")
    try:
        check_json(value, f"`{name}`")
    except InvalidInput as error:
        line.wrong(f"cannot be stored: {error}")


PROGRESS_EVERY = 1_000
LEVEL = 6
# Anyone who has anything has a row in one of these.
_TELL_OWNERS = ("owners", "index_heads", "sessions", "state_keys", "series", "agent_states", "usage", "decisions")


@dataclass(frozen=True, slots=True)
class Exporter:
    store: Store

    def export(self, owner: Owner, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """Every row of one user to a file, packed if its name ends with `.gz`, or to something that is written to."""
        check_progress(progress)
        with self.store.snapshot(owner) as snapshot, opened_target(to, replace=replace) as file:
            return _written(snapshot, [owner], file, progress)

    def export_all(self, space: str, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """The same for each user of a space, and for what its users share: its agents, and lessons that reach everybody."""
        check_progress(progress)
        with self.store.snapshot() as snapshot, opened_target(to, replace=replace) as file:
            return _written(snapshot, _owners(snapshot, space), file, progress)


def _owners(snapshot: Snapshot, space: str) -> list[Owner]:
    found = {str(row[1]) for table in _TELL_OWNERS for row in snapshot.rows(table) if row[0] == space}
    shared = shared_owner(space).user
    return [Owner(space, user) for user in sorted(found) if user == shared or not user.startswith(RESERVED)]


class CountedLines:
    """Counts what is written, and keeps the digest of all of it and of a part."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.bytes = 0
        self.whole = hashlib.sha256()
        self.part = hashlib.sha256()

    def line(self, data: bytes) -> None:
        self.whole.update(data)
        self.part.update(data)
        self.bytes += len(data)
        self._file.write(data)


def _written(snapshot: Snapshot, owners: Sequence[Owner], file: IO[bytes], progress: Progress | None) -> ExportReport:
    out = CountedLines(file)
    total: dict[str, int] = {}
    for number, owner in enumerate(owners, start=1):
        out.part = hashlib.sha256()
        out.line(encoded(ExportPart(snapshot.schema_version, owner.space, owner.user, number, len(owners)).heading()))
        counts: dict[str, int] = {}
        for table in PORTABLE:
            for held in snapshot.rows(table, owner):
                if (row := portable_row(table, held)) is None:
                    continue
                out.line(line_of(table, row))
                counts[table] = counts.get(table, 0) + 1
                if progress is not None and counts[table] % PROGRESS_EVERY == 0:
                    progress(table, counts[table])
        out.line(encoded({"rows": counts, "sha256": out.part.hexdigest()}))
        total = {name: total.get(name, 0) + counts.get(name, 0) for name in PORTABLE if name in total or name in counts}
    return ExportReport("jsonl", tuple(owner.user for owner in owners), total, out.bytes, out.whole.hexdigest())


@contextmanager
def opened_target(to: Target, *, replace: bool) -> Iterator[IO[bytes]]:
    """What is written to: a stream as it is, a file that appears whole or not at all."""
    if not isinstance(to, str | os.PathLike):
        if not hasattr(to, "write"):
            raise InvalidInput(f"`to` is a `{type(to).__name__}`; give the name of a file, or an open one in binary mode")
        stream: object = to
        if isinstance(stream, io.TextIOBase):
            raise InvalidInput("`to` is open in text mode; open it in binary mode")
        yield to
        return
    path = check_path(to, "to")
    check_flag(replace, "replace")
    if path.exists() and not replace:
        raise Conflict(f"{path} exists already; choose another name, or replace it with `replace=True`")
    with new_file(path) as file:
        if path.suffix != ".gz":
            yield file
            return
        with gzip.GzipFile(fileobj=file, mode="wb", filename="", compresslevel=LEVEL, mtime=0) as packed:
            yield cast("IO[bytes]", packed)


PAGE = 500


@dataclass(frozen=True, slots=True)
class SeedExporter:
    known: Knowledge

    def export(self, scope: Scope, to: Target, *, replace: bool = False, progress: Progress | None = None) -> ExportReport:
        """What the agent of the handle may see, the newest change first; packed if the file's name ends with `.gz`."""
        check_progress(progress)
        rows = min(PAGE, self.known.limits.page_rows_max)
        with opened_target(to, replace=replace) as file:
            out = CountedLines(file)
            query, count = MemoryQuery(archived=True, limit=rows), 0
            while page := self.known.list_(scope, query):
                for found in page:
                    out.line(encoded(seed_dict(found)))
                count += len(page)
                if progress is not None:
                    progress("memories", count)
                last = page[-1].memory
                query = MemoryQuery(archived=True, limit=rows, behind=(last.updated_at, last.record_key))
        return ExportReport("seed", (scope.owner.user,), {"memories": count}, out.bytes, out.whole.hexdigest())
