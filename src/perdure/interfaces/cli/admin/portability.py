"""Export and import from the command line: one user's data or everybody's, exactly or as notes; and other engines' memories."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from rich.text import Text

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.reports import EXPORT_FORMATS, IMPORT_FORMATS, ExportReport, ImportReport
from perdure.interfaces.cli.input import chosen
from perdure.interfaces.cli.output import Output, safe, visible

ITEMS_SHOWN = 50
CHUNK = 1_048_576


def export(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(help="The file (packed if it ends with .gz), the vault's folder, or - for stdout.")
    ] = "-",
    format: Annotated[str, typer.Option(help="jsonl: every row, exactly. vault: a folder of notes. seed: memories.")] = "jsonl",
    everybody: Annotated[bool, typer.Option("--all", help="Every user of the space, and what they share.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite the file, or notes that were edited.")] = False,
) -> None:
    """Write a user's data to a file, or to a folder of notes.

    `perdure admin import` takes over the file exactly.

    Example: perdure admin export ana.jsonl.gz --user ana
    """
    out: Output = ctx.obj.out
    form = chosen(format, EXPORT_FORMATS, "--format")
    if everybody and (form != "jsonl" or ctx.obj.user is not None):
        raise InvalidInput("`--all` is for the format jsonl and without `--user`; leave one of them out")
    to = _binary(sys.stdout, "stdout") if file == "-" else file
    with _whose(ctx, everybody=everybody) as (engine, memory), out.progress("exporting") as progress:
        if memory is None:
            report = engine.export(to, replace=replace, progress=progress)
        else:
            report = memory.export(to, form, replace=replace, progress=progress)
    if file != "-":
        out.value(report, _exported(report, file))


def _exported(report: ExportReport, file: str) -> Iterator[str]:
    total = sum(report.rows.values())
    if report.format == "jsonl":
        users = f" of {len(report.users)} users" if len(report.users) > 1 else ""
        yield f"{total:,} rows{users}, {report.bytes:,} bytes in {safe(file)}"
        return
    if report.format == "seed":
        yield f"{total:,} memories, {report.bytes:,} bytes in {safe(file)}"
        return
    yield f"{total:,} notes in {safe(file)}: {len(report.written):,} written, {len(report.removed):,} removed"
    for path in report.edited:
        yield f"left as it was edited: {safe(path)}"


def import_(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(help="An export, a vault's folder, another engine's export, or - for stdin.")],
    format: Annotated[str, typer.Option(help="auto, jsonl, vault, mem0, mcp, or an installed importer.")] = "auto",
    as_user: Annotated[str | None, typer.Option("--as", help="Import as this user.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="In place of what the user holds now.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
) -> None:
    """Take over an export, edited notes, or data of mem0 or MCP.

    An export is taken over whole or not at all.

    Example: perdure admin import ana.jsonl.gz --as ben
    """
    out: Output = ctx.obj.out
    form = next((one for one in IMPORT_FORMATS if one == format.casefold()), format)
    if as_user is not None:
        ctx.obj.user = as_user
    # Without a name, the users of a lossless export keep theirs.
    everybody = ctx.obj.user is None and form in ("auto", "jsonl") and _is_export(file)
    with _whose(ctx, everybody=everybody) as (engine, memory), _source(file, engine.limits.import_bytes_max) as source:
        with out.progress("importing") as progress:
            told: dict[str, Any] = {"replace": replace, "dry_run": dry_run, "progress": progress}
            report = engine.import_(source, **told) if memory is None else memory.import_(source, form, **told)
    out.value(report, _imported(report))


def _imported(report: ImportReport) -> Iterator[str | Text]:
    would = "; nothing was stored" if report.dry_run else ""
    if report.format == "jsonl":
        users = ", ".join(safe(user) for user in report.users[:5])
        yield f"{sum(report.rows.values()):,} rows as {users}{would}"
        return
    told = [item for item in report.items if item.verdict != "unchanged"]
    for item in told[:ITEMS_SHOWN]:
        why = f": {visible(item.why)}" if item.why else ""
        yield Text(f"{item.verdict:9} {item.kind:8} {visible(item.where)}{why}")
    if len(told) > ITEMS_SHOWN:
        yield f"… and {len(told) - ITEMS_SHOWN:,} more; --json tells all"
    for doubt in report.doubts[:ITEMS_SHOWN]:
        yield Text(f"{doubt.fault:9} {', '.join(map(visible, doubt.items[:5]))}: {visible(doubt.why)}")
    counted = ", ".join(f"{count:,} {verdict}" for verdict, count in report.counts.items())
    yield f"{safe(report.format)}: {counted or 'nothing to import'}{would}"


@contextmanager
def _whose(ctx: typer.Context, *, everybody: bool) -> Iterator[tuple[Any, Any]]:
    """The engine, and the memory of the user that is named; none if everybody is meant."""
    if not everybody:
        ctx.obj.named_user()  # before a store is made for nobody
    elif ctx.obj.space is not None:
        raise InvalidInput("`--space` is given for all users; set `PERDURE_SPACE` to name the space of all of them")
    with ctx.obj.engine() as engine:
        yield engine, None if everybody else ctx.obj.bound(engine)


def _is_export(file: str) -> bool:
    """Whether a file seems to be a lossless export; one that cannot be looked at first is taken for one."""
    from perdure.services.portability.import_ import is_export

    path = Path(file)
    if file == "-" or not path.is_file():
        return not path.is_dir()
    with path.open("rb") as found:
        return is_export(found)


@contextmanager
def _source(file: str, bytes_max: int) -> Iterator[str | IO[bytes]]:
    """What is read: a path as it is; stdin by way of a file, because it is read twice."""
    if file != "-":
        yield file
        return
    with tempfile.TemporaryFile() as held:
        size = 0
        stdin = _binary(sys.stdin, "stdin")
        while data := stdin.read(CHUNK):
            size += len(data)
            if size > bytes_max:
                raise LimitExceeded(f"stdin has more than `import_bytes_max` = {bytes_max} bytes; send less at a time")
            held.write(data)
        yield held


def _binary(stream: Any, name: str) -> IO[bytes]:
    found: IO[bytes] | None = getattr(stream, "buffer", None)
    if found is None:
        raise InvalidInput(f"{name} takes no bytes here; name a file")
    return found
