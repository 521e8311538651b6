"""Exports for tests: as they are made, line by line, and as somebody could forge them."""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any

import perdure

Lines = list[dict[str, Any]]


def exported(memory: perdure.Memory) -> bytes:
    file = io.BytesIO()
    memory.export(file)
    return file.getvalue()


def parsed(data: bytes) -> Lines:
    return [json.loads(line) for line in data.splitlines()]


def sealed(lines: Lines) -> io.BytesIO:
    """Lines of one part with an end that fits them, as somebody could make it who knows how."""
    rows = [line for line in lines if "table" in line]
    body = b"".join(json.dumps(line).encode() + b"\n" for line in [lines[0], *rows])
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["table"]] = counts.get(row["table"], 0) + 1
    return io.BytesIO(body + json.dumps({"rows": counts, "sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n")
