"""All of a user's data out and in, as a stream."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from perdure.domain.errors import LimitExceeded, Unavailable
from perdure.domain.reports import ImportReport
from perdure.handles.registry.shapes import plain
from perdure.interfaces.http.answers import answer
from perdure.interfaces.http.derived import USER
from perdure.interfaces.http.description import described
from perdure.interfaces.http.requests import Reads, StrictRoute, Whole, Writes
from perdure.interfaces.lines import LINES, Line, Say, work_lines
from perdure.ports.store import Progress

router = APIRouter(prefix=USER, tags=["portability"], route_class=StrictRoute)
CHUNK_BYTES = 256 * 1024
IMPORTS_MAX = 2
AT_ONCE = threading.BoundedSemaphore(IMPORTS_MAX)
FORMATS = "What the body is: `auto`, `jsonl`, `mem0`, `mcp`, or the name of an importer that is installed."
Exportable = Literal["jsonl", "seed"]
Run = Callable[[Progress | None], ImportReport]
BODY = {
    "requestBody": {
        "required": True,
        "description": "What `/export` answered, packed with gzip or not; or what mem0 or MCP's memory server exports.",
        "content": {
            LINES: {"schema": {"type": "string"}, "example": '{"perdure": "export"}\n'},
            "application/json": {"schema": {}, "example": {"memories": [{"memory": "Likes tea", "user_id": "ana"}]}},
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.get(
    "/export",
    summary="Export a user",
    response_class=StreamingResponse,
    **described("exportUser", None, media={LINES: "A heading, a line for each row, and an end with a digest."}),
)
def export(
    memory: Reads,
    format: Annotated[  # noqa: A002 - the parameter's name
        Exportable, Query(description="`jsonl`: every row. `seed`: the memories, under the seed's names.")
    ] = "jsonl",
) -> Response:
    """Every row of the user as a line of JSON, as of one moment: what `/import` takes over exactly."""
    # By way of a file: a caller who reads slowly must not keep the store's snapshot open.
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was sent
    try:
        size = memory.export(file, format).bytes
        file.seek(0)
    except BaseException:
        file.close()
        raise
    name = quote(f"{memory.scope.owner.user}.jsonl", safe="")
    headers = {"Content-Length": str(size), "Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return StreamingResponse(_chunks(file), headers=headers, media_type=LINES)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        while data := file.read(CHUNK_BYTES):
            yield data


@router.post(
    "/import",
    summary="Import a user",
    openapi_extra=BODY,
    **described("importUser", ImportReport, errors=(409,)),
)
async def import_(
    request: Request,
    memory: Writes,
    door: Whole,
    format: Annotated[str, Query(description=FORMATS, min_length=1, max_length=100)] = "auto",  # noqa: A002 - the parameter's name
    replace: Annotated[bool, Query(description="Replace all data of the user; needs `admin`.")] = False,
    dry_run: Annotated[bool, Query(description="Only say what would be done.")] = False,
) -> Response:
    """Take over an export as a whole or not at all, or add what another engine has remembered.

    With `Accept: application/x-ndjson` the answer is lines: `{"progress": …}` while it goes on, and at last `{"done": …}`
    with the report, or `{"error": …}`.
    """
    if replace:
        door.access.allow("admin", memory.scope.owner.user)
    file = await _received(request, door.engine.limits.import_bytes_max)

    def run(progress: Progress | None) -> ImportReport:
        with file, _one_of_few():
            return memory.import_(file, format, replace=replace, dry_run=dry_run, progress=progress)

    if LINES in request.headers.get("accept", ""):
        return StreamingResponse(work_lines("an import", lambda say: _imported(run, say)), media_type=LINES)
    return answer(await run_in_threadpool(run, None))


@contextmanager
def _one_of_few() -> Iterator[None]:
    """An import may hold a line as long as the largest value there may be: many at once would take the memory of the server."""
    if not AT_ONCE.acquire(blocking=False):
        raise Unavailable(
            f"{IMPORTS_MAX} imports are being read already; try again when one of them has ended", retry_after_s=5
        )
    try:
        yield
    finally:
        AT_ONCE.release()


async def _received(request: Request, bytes_max: int) -> IO[bytes]:
    """The body in a file that has no name and ends with the request."""
    file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was imported
    try:
        size = 0
        async for data in request.stream():
            size += len(data)
            if size > bytes_max:
                raise LimitExceeded(f"the body has more than `import_bytes_max` = {bytes_max} bytes; send less at a time")
            await run_in_threadpool(file.write, data)
    except BaseException:
        file.close()
        raise
    return file


def _imported(run: Run, say: Say) -> Line:
    return {"done": plain(run(lambda what, count: say({"progress": {"table": what, "rows": count}})))}
