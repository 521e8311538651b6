"""Backups that somebody made by hand: each is refused, and the store stays as it is."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import perdure

HEADER = {"format": "perdure-backup", "version": 1, "schema": 2}
INJECTION = "owners VALUES('q','q',0); CREATE TABLE owned(x); INSERT INTO owners"


def crafted(tmp_path: Path, *lines: Any) -> Path:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines[:-1])
    footer = {**lines[-1], "sha256": hashlib.sha256(body).hexdigest()}
    path = tmp_path / "crafted"
    path.write_bytes(gzip.compress(body + json.dumps(footer).encode() + b"\n"))
    return path


@pytest.mark.parametrize(
    "lines",
    [
        [HEADER, {"table": INJECTION, "columns": []}, {"rows": {INJECTION: 0}}],
        [{"format": "perdure-backup", "version": 1}, {"rows": {}}],
        [HEADER, {"rows": {}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "operations"]}, 5, {"rows": {"owners": 1}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "operations"]}, ["a"], {"rows": {"owners": 1}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "1; DROP"]}, {"rows": {"owners": 0}}],
        [HEADER, {"table": "nope", "columns": ["a"]}, {"rows": {"nope": 0}}],
        [HEADER, {"table": "owners", "columns": ["space", "user_id", "operations"]}, {"rows": {"owners": 7}}],
    ],
)
def test_a_crafted_backup_is_refused(sqlite: Any, tmp_path: Path, lines: list[Any]) -> None:
    engine = sqlite.open()
    engine.memory("ana").append("user", "stays")
    with pytest.raises(perdure.Corrupt):
        perdure.restore(crafted(tmp_path, *lines), settings=sqlite.settings, replace=True)
    assert len(engine.memory("ana").messages()) == 1
    assert engine.verify().clean
