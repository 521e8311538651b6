"""The ledger of a process that may be killed: what it was about to ask for, and what was acknowledged, each noted at once."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Ledger:
    """Written by one process, a line at a time, past every buffer: what is noted outlives the process."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, value: Any = None) -> None:
        os.write(self._file, (json.dumps([what, value]) + "\n").encode())


@dataclass(slots=True)
class LedgerReader:
    """Follows a growing ledger."""

    path: Path
    _offset: int = 0

    def new(self) -> list[tuple[str, Any]]:
        """The lines that came since the last time. One that was cut off by a kill was never noted."""
        if not self.path.exists():
            return []
        with self.path.open("rb") as file:
            file.seek(self._offset)
            whole = file.read().rpartition(b"\n")[0]
        self._offset += len(whole) + 1 if whole else 0
        return [(what, value) for what, value in map(json.loads, whole.splitlines())]
